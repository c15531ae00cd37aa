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

// Kinds of news. Ref names what it is about: the reply, the thread message, the
// thread.
const (
	NewsReply  = "reply"  // to a post of the reader
	NewsInbox  = "inbox"  // a message to an agent of the reader
	NewsAnswer = "answer" // a message in a thread that the reader began
	NewsClosed = "closed" // a thread that the reader began
	NewsLapsed = "lapsed" // a thread with an agent of the reader, closed by silence
)

// ThreadReader is the name of whoever holds the read token of a thread.
func ThreadReader(threadID string) string { return "thread:" + threadID }

// VisitorReader is the name of a browser, by the hash of its cookie.
func VisitorReader(hash string) string {
	return "visitor:" + base64.RawURLEncoding.EncodeToString([]byte(hash))
}

// MessageRef names a message of a thread by its number; ParseMessageRef reads it.
func MessageRef(threadID string, n int) string { return threadID + "#" + strconv.Itoa(n) }

// ParseMessageRef undoes MessageRef.
func ParseMessageRef(ref string) (threadID string, n int, err error) {
	threadID, number, _ := strings.Cut(ref, "#")
	n, err = strconv.Atoi(number)
	return threadID, n, err
}

// A NewsItem is one thing that happened to a reader.
type NewsItem struct {
	N         int64
	Kind, Ref string
}

// newsRows are held-back news. The number of a row is, until it is written, the
// ordinal of its event: the rows of one event share it.
type newsRows struct {
	*rows
	event int64
}

var newsInsert = insert{into: `INSERT INTO news (reader, n, kind, ref) VALUES `, row: `(?, ?, ?, ?)`}

// events is how many events the first n rows are of.
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

// AppendNews tells readers what happened to them. A reader is known by several
// names (protocol.Caller.Names); the event counts once for all of them.
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

// maxNames bounds the names that one question is asked for: an account's profiles,
// the account, a chain identity, a key and a browser.
const maxNames = protocol.MaxProfiles + 4

// News returns what happened to a reader behind a number, oldest first, at most
// limit, and the number up to which everything is told: the next question goes
// on from there. more says that the limit was reached.
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

// newsQuery merges one index range a name; the rows of one event become one.
func newsQuery(names []string, after, upTo int64, limit int) (string, []any) {
	const one = `SELECT n, kind, ref FROM (SELECT n, kind, ref FROM news WHERE reader = ? AND n > ? AND n <= ? ORDER BY n LIMIT ?) r`
	var args []any
	for _, name := range names {
		args = append(args, name, after, upTo, limit)
	}
	return `SELECT n, kind, ref FROM (` + strings.Repeat(one+` UNION `, len(names)-1) + one + `) m ORDER BY n LIMIT ?`, append(args, limit)
}

// NewsCursor and ParseNewsCursor are the number as readers hold it.
func NewsCursor(n int64) string { return *protocol.Cursor(listNews, number(n)) }

// ParseNewsCursor gives 0 for no cursor.
func ParseNewsCursor(after string) (int64, error) { return position(listNews, after, 0) }

// Numbers of news hold no time. A mark says which number was the last one at a
// time, so that what is older than a time can be forgotten; there is one a day.
const markEvery = 24 * time.Hour

const (
	newsOld  = `SELECT n FROM news WHERE n + 0 <= ? ORDER BY n + 0 LIMIT 1000`
	newsMark = `SELECT n FROM news_mark WHERE at <= ? ORDER BY n DESC LIMIT 1`
	// forgottenSetting is the number up to which news are gone.
	forgottenSetting = "news forgotten"
)

// PruneNews forgets about a thousand of the news from before a time, a day more or
// less, and returns how many rows are gone. It also notes how far news have come.
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
	if len(old) == 0 { // what the mark is for is done
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

// NewsForgotten is the number up to which news are gone: who asks for what came
// after a smaller one may miss some.
func (tx *Tx) NewsForgotten(ctx context.Context) (int64, error) {
	text, err := tx.Setting(ctx, forgottenSetting)
	if err != nil || text == "" {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}
