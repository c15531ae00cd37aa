package storage

import (
	"context"
	"fmt"
)

// Feed items and news are numbered over all boards and readers. A reader asks for
// what follows the last number it has seen and must miss nothing, so it sees items
// up to a number below which no more are committed (Tx.told). On SQLite that is the
// head of the counter. On PostgreSQL numbers come from a sequence, for which no
// transaction waits, and commits may have another order (number.go). Numbers
// increase and may have gaps.

// take returns count new numbers in increasing order. It is called at the end of a
// batch where possible, because readers wait for transactions that have taken
// numbers.
func (b *batch) take(ctx context.Context, count int) (numbers []int64, err error) {
	if b.db.engine == enginePostgres {
		rows, err := b.tx.queryUnsettled(ctx, `SELECT nextval('feed_number') FROM generate_series(1, ?)`, count)
		if numbers, err = collect(rows, err, scanInt); err != nil {
			return nil, fmt.Errorf("take numbers for the feed: %w", err)
		}
		return numbers, nil
	}
	var head int64
	if err := first(b.tx.queryUnsettled(ctx, `UPDATE tally SET head = head + ? WHERE one = 1 RETURNING head`, count)).Scan(&head); err != nil {
		return nil, fmt.Errorf("raise the counter of the feed: %w", err)
	}
	for n := head - int64(count) + 1; n <= head; n++ {
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// toldUpTo is the number up to which this transaction may read feed items and news:
// no item with a number at or below it is committed later.
func (tx *Tx) toldUpTo(ctx context.Context) (n int64, err error) {
	if tx.db.engine == enginePostgres {
		return tx.told, nil
	}
	err = tx.row(ctx, `SELECT head FROM tally WHERE one = 1`).Scan(&n)
	return n, err
}

// flushFeed numbers and writes the first held-back rows: so many feed items and so
// many news.
func (b *batch) flushFeed(ctx context.Context, items, news int) error {
	if items+news == 0 {
		return nil
	}
	b.feed.sort(items)
	events := b.news.events(news)
	numbers, err := b.take(ctx, items+events)
	if err != nil {
		return err
	}
	for i := range items {
		b.feed.args[(i+1)*b.feed.wide-1] = numbers[i]
	}
	b.news.number(news, numbers[items:])
	if err := b.feed.flush(ctx, b.conn, items); err != nil {
		return err
	}
	return b.news.flush(ctx, b.conn, news)
}

// settleFeed writes the feed items and news that are held back. As with words
// (settleWords), those of earlier ops must not be written inside the savepoint of
// the running op.
func (tx *Tx) settleFeed() error {
	b := tx.batch
	if b == nil || b.feed.n+b.news.n == 0 {
		return nil
	}
	ctx := context.Background()
	if b.feed.mark+b.news.mark > 0 {
		if b.savepoint {
			return b.apart(fmt.Errorf("storage: feed items of earlier writes are held back"))
		}
		if err := b.flushFeed(ctx, b.feed.mark, b.news.mark); err != nil {
			return b.apart(err)
		}
	}
	if b.feed.n+b.news.n > 0 && !b.single {
		if err := b.openSavepoint(ctx); err != nil {
			return b.apart(err)
		}
	}
	if err := b.flushFeed(ctx, b.feed.n, b.news.n); err != nil {
		return b.apart(err)
	}
	return nil
}

// holdsSubject reports whether a feed item about a subject is held back.
func (b *batch) holdsSubject(subjectID any) bool {
	if _, text := subjectID.(string); !text { // []byte cannot be compared
		return false
	}
	for i := range b.feed.n {
		if b.feed.args[i*b.feed.wide+3] == subjectID {
			return true
		}
	}
	return false
}

// skipNumbers continues above every number that may have been issued before a
// restore from a backup, so that readers whose last number is newer than the backup
// miss no later item. Fewer than a thousand numbers are issued per second, so the
// time in milliseconds is greater than all of them.
func (tx *Tx) skipNumbers(ctx context.Context) error {
	raise := `UPDATE tally SET head = ? WHERE one = 1 AND head < ?`
	if tx.db.engine == enginePostgres {
		raise = `SELECT setval('feed_number', ?) FROM feed_number WHERE last_value < ?`
	}
	_, err := tx.write(ctx, raise, millis(tx.Now), millis(tx.Now))
	return err
}
