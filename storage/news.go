package storage

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage/commit"
)

// Kinds of news. Ref identifies the reply, the thread message or the thread.
const (
	NewsReply  = "reply"  // to a post of the reader
	NewsInbox  = "inbox"  // a message to an agent of the reader
	NewsAnswer = "answer" // a message in a thread that the reader began
	NewsClosed = "closed" // a thread that the reader began
	NewsLapsed = "lapsed" // a thread with an agent of the reader, closed because nobody wrote

	NewsBid     = "bid"      // a move of a bid of the reader; Ref is of MessageRef
	NewsBidHere = "bid-here" // a move of a bid on a board of the reader

	NewsMeeting     = "meeting"      // a move of a meeting request of the reader; Ref is of MessageRef
	NewsMeetingHere = "meeting-here" // a move of a request to the reader
)

// ThreadReader returns the reader name of a client with the read token of a thread.
func ThreadReader(threadID string) string { return "thread:" + threadID }

// VisitorReader returns the reader name of a browser, from the hash of its cookie.
func VisitorReader(hash string) string {
	return "visitor:" + base64.RawURLEncoding.EncodeToString([]byte(hash))
}

// MessageRef identifies a message of a thread by its number.
func MessageRef(threadID string, n int) string { return threadID + "#" + strconv.Itoa(n) }

// ParseMessageRef reads a reference that MessageRef made.
func ParseMessageRef(ref string) (threadID string, n int, err error) {
	threadID, number, _ := strings.Cut(ref, "#")
	n, err = strconv.Atoi(number)
	return threadID, n, err
}

// pushed are the reader names of one thing, whose news go to devices too.
var pushed = map[string]bool{"thread": true, "bid": true, "meeting": true}

// A NewsItem is one event that concerns a reader.
type NewsItem struct {
	N         int64
	Kind, Ref string
}

var newsInsert = insert{Into: `INSERT INTO news (reader, n, kind, ref) VALUES `, Row: `(?, ?, ?, ?)`}

// numberNews gives the events of the first n rows their numbers. Until then, an event
// has a pointer, which its rows share.
func numberNews(ctx context.Context, tx *commit.Tx, r *commit.Rows, n int) error {
	events := 0
	for i := range n {
		if i == 0 || r.Row(i)[1] != r.Row(i - 1)[1] {
			events++
		}
	}
	numbers, err := take(ctx, tx, events)
	if err != nil {
		return err
	}
	var event any
	next := 0
	for i := range n {
		row := r.Row(i)
		if i == 0 || row[1] != event {
			event = row[1]
			next++
		}
		row[1] = numbers[next-1]
	}
	return nil
}

// News reads and writes the events that whats_new tells their readers.
type News struct{ tx *Tx }

func (tx *Tx) News() News { return News{tx} }

// Append adds an event for its readers. A reader may have several names
// (protocol.Caller.Names) and gets the event once.
func (ns News) Append(ctx context.Context, kind, ref string, readers ...string) error {
	if !ns.tx.writes() {
		return ErrReadOnly
	}
	event := new(int)
	told := map[string]bool{}
	for _, reader := range readers {
		if reader != "" && !told[reader] {
			told[reader] = true
			if what, id, ok := strings.Cut(reader, ":"); ok && pushed[what] {
				if err := ns.tx.Devices().Enqueue(ctx, reader, kind+" "+id, Push{Kind: kind}); err != nil {
					return err
				}
			}
			ns.tx.appended(topicNumbers)
			if err := ns.tx.hold(heldNews, reader, event, kind, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxNames bounds the names of one query: an account's profiles, the account, a
// chain identity, a key and a browser.
const maxNames = protocol.MaxProfiles + 4

// After returns the events of a reader after a number, oldest first, at most limit,
// and the number up to which they are complete, from which the next call continues.
// more is true when the limit was reached.
func (ns News) After(ctx context.Context, names []string, after int64, limit int) (items []NewsItem, upTo int64, more bool, err error) {
	limit = bounded(limit)
	if upTo, err = ns.tx.toldUpTo(ctx); err != nil {
		return nil, 0, false, err
	}
	names = names[:min(len(names), maxNames)]
	if len(names) == 0 {
		return []NewsItem{}, max(upTo, after), false, nil
	}
	text, args := newsQuery(names, after, upTo, limit+1)
	if items, err = list[NewsItem](ctx, ns.tx, text, args...); err != nil {
		return nil, 0, false, err
	}
	if len(items) > limit {
		return items[:limit], items[limit-1].N, true, nil
	}
	return items, max(upTo, after), false, nil
}

// newsQuery merges one index range per name; the rows of one event become one.
func newsQuery(names []string, after, upTo int64, limit int) (string, []any) {
	const one = `SELECT n, kind, ref FROM (SELECT n, kind, ref FROM news WHERE reader = ? AND n > ? AND n <= ? ORDER BY n LIMIT ?) r`
	var args []any
	for _, name := range names {
		args = append(args, name, after, upTo, limit)
	}
	return `SELECT n, kind, ref FROM (` + strings.Repeat(one+` UNION `, len(names)-1) + one + `) m ORDER BY n LIMIT ?`, append(args, limit)
}

// NewsCursor returns the cursor of a number.
func NewsCursor(n int64) string { return *protocol.Cursor(listNews, number(n)) }

// ParseNewsCursor returns the number of a cursor, 0 for "".
func ParseNewsCursor(after string) (int64, error) { return position(listNews, after, 0) }

// Numbers of news contain no time. A mark records which number was the last one at
// a time, so that older news can be deleted; there is one mark per day.
const markEvery = 24 * time.Hour

const (
	newsOld  = `SELECT n FROM news WHERE n + 0 <= ? ORDER BY n + 0 LIMIT 1000`
	newsMark = `SELECT n FROM news_mark WHERE at <= ? ORDER BY n DESC LIMIT 1`
	// forgottenSetting is the number up to which news were deleted.
	forgottenSetting = "news forgotten"
)

// Prune deletes about a thousand of the news from before a time, which is exact to a
// day, and returns the number of deleted rows. It also adds the mark of the day.
func (ns News) Prune(ctx context.Context, before time.Time) (int, error) {
	if err := ns.tx.settleFeed(); err != nil { // before the first write opens a savepoint
		return 0, err
	}
	told, err := ns.tx.toldUpTo(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := ns.tx.write(ctx, `INSERT INTO news_mark (n, at) SELECT CAST(? AS BIGINT), CAST(? AS BIGINT)
		WHERE NOT EXISTS (SELECT 1 FROM news_mark WHERE at > ?) ON CONFLICT DO NOTHING`,
		told, millis(ns.tx.Now), millis(ns.tx.Now.Add(-markEvery))); err != nil {
		return 0, fmt.Errorf("mark the news: %w", err)
	}
	var upTo int64
	if err := ns.tx.row(ctx, newsMark, millis(before)).Scan(&upTo); err != nil {
		return 0, orNothing(err)
	}
	old, err := list[int64](ctx, ns.tx, newsOld, upTo)
	if err != nil {
		return 0, err
	}
	if len(old) == 0 { // older marks are no longer needed
		_, err := ns.tx.write(ctx, `DELETE FROM news_mark WHERE n < ?`, upTo)
		return 0, err
	}
	last := old[len(old)-1]
	n, err := ns.tx.write(ctx, `DELETE FROM news WHERE n + 0 <= ?`, last)
	if err != nil {
		return 0, err
	}
	return int(n), ns.tx.Settings().Put(ctx, forgottenSetting, number(last))
}

// Marked returns the number that was the last one about a day ago, 0 on the first day. No later news were deleted.
func (ns News) Marked(ctx context.Context) (n int64, err error) {
	err = ns.tx.row(ctx, newsMark, millis(ns.tx.Now)).Scan(&n)
	return n, orNothing(err)
}

// Forgotten returns the number up to which news were deleted: a reader that
// continues after a smaller one may miss some.
func (ns News) Forgotten(ctx context.Context) (int64, error) {
	text, err := ns.tx.Settings().Get(ctx, forgottenSetting)
	if err != nil || text == "" {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}
