package storage

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
)

// Kinds of news. Ref identifies the reply, the thread message or the thread.
const (
	NewsReply  = "reply"  // to a post of the reader
	NewsInbox  = "inbox"  // a message to an agent of the reader
	NewsAnswer = "answer" // a message in a thread that the reader began
	NewsClosed = "closed" // a thread that the reader began
	NewsLapsed = "lapsed" // a thread with an agent of the reader, closed because nobody wrote
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

// A NewsItem is one event that concerns a reader.
type NewsItem struct {
	N         int64
	Kind, Ref string
}

// newsRows are held-back news. Until a row is written, its number is the ordinal of
// its event, which the rows of one event share.
type newsRows struct {
	*rows
	event int64
}

var newsInsert = insert{into: `INSERT INTO news (reader, n, kind, ref) VALUES `, row: `(?, ?, ?, ?)`}

// events counts the events of the first n rows.
func (r *newsRows) events(n int) (count int) {
	for i := range n {
		if i == 0 || r.args[i*r.wide+1] != r.args[(i-1)*r.wide+1] {
			count++
		}
	}
	return count
}

// number gives the events of the first n rows their numbers.
func (r *newsRows) number(n int, numbers []int64) {
	var ordinal any
	event := -1
	for i := range n {
		at := i*r.wide + 1
		if i == 0 || r.args[at] != ordinal {
			ordinal = r.args[at]
			event++
		}
		r.args[at] = numbers[event]
	}
}

// AppendNews adds an event for its readers. A reader may have several names
// (protocol.Caller.Names) and gets the event once.
func (tx *Tx) AppendNews(_ context.Context, kind, ref string, readers ...string) error {
	b := tx.batch
	if b == nil {
		return ErrReadOnly
	}
	b.news.event++
	told := map[string]bool{}
	for _, reader := range readers {
		if reader != "" && !told[reader] {
			told[reader] = true
			b.appended(topicNumbers)
			b.news.add(reader, b.news.event, kind, ref)
		}
	}
	return nil
}

// maxNames bounds the names of one query: an account's profiles, the account, a
// chain identity, a key and a browser.
const maxNames = protocol.MaxProfiles + 4

// News returns the events of a reader after a number, oldest first, at most limit,
// and the number up to which they are complete, from which the next call continues.
// more is true when the limit was reached.
func (tx *Tx) News(ctx context.Context, names []string, after int64, limit int) (items []NewsItem, upTo int64, more bool, err error) {
	limit = bounded(limit)
	if upTo, err = tx.toldUpTo(ctx); err != nil {
		return nil, 0, false, err
	}
	names = names[:min(len(names), maxNames)]
	if len(names) == 0 {
		return []NewsItem{}, max(upTo, after), false, nil
	}
	text, args := newsQuery(names, after, upTo, limit+1)
	rows, err := tx.query(ctx, text, args...)
	items, err = collect(rows, err, func(s scanner) (i NewsItem, err error) {
		return i, s.Scan(&i.N, &i.Kind, &i.Ref)
	})
	if err != nil {
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

// PruneNews deletes about a thousand of the news from before a time, which is exact
// to a day, and returns the number of deleted rows. It also adds the mark of the day.
func (tx *Tx) PruneNews(ctx context.Context, before time.Time) (int, error) {
	if err := tx.settleFeed(); err != nil { // before the first write opens a savepoint
		return 0, err
	}
	told, err := tx.toldUpTo(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := tx.write(ctx, `INSERT INTO news_mark (n, at) SELECT CAST(? AS BIGINT), CAST(? AS BIGINT)
		WHERE NOT EXISTS (SELECT 1 FROM news_mark WHERE at > ?) ON CONFLICT DO NOTHING`,
		told, millis(tx.Now), millis(tx.Now.Add(-markEvery))); err != nil {
		return 0, fmt.Errorf("mark the news: %w", err)
	}
	var upTo int64
	if err := tx.row(ctx, newsMark, millis(before)).Scan(&upTo); err != nil {
		return 0, orNothing(err)
	}
	rows, err := tx.query(ctx, newsOld, upTo)
	old, err := collect(rows, err, scanInt)
	if err != nil {
		return 0, err
	}
	if len(old) == 0 { // older marks are no longer needed
		_, err := tx.write(ctx, `DELETE FROM news_mark WHERE n < ?`, upTo)
		return 0, err
	}
	last := old[len(old)-1]
	n, err := tx.write(ctx, `DELETE FROM news WHERE n + 0 <= ?`, last)
	if err != nil {
		return 0, err
	}
	return int(n), tx.PutSetting(ctx, forgottenSetting, number(last))
}

// NewsForgotten returns the number up to which news were deleted: a reader that
// continues after a smaller one may miss some.
func (tx *Tx) NewsForgotten(ctx context.Context) (int64, error) {
	text, err := tx.Setting(ctx, forgottenSetting)
	if err != nil || text == "" {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}
