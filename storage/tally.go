package storage

import (
	"context"
	"fmt"
)

// Feed items and news are numbered in the order of commits: their readers come
// back with the last number they know and must miss nothing. The counter is a
// row that the transaction holds until it ends. It is the last thing a batch
// takes, so that no two transactions wait for each other, and for the time of a
// commit only. Numbers rise and may have gaps.

// take raises the counter and returns the number before the first that is ours.
func (b *batch) take(ctx context.Context, count int) (int64, error) {
	var head int64
	if err := b.tx.row(ctx, `UPDATE tally SET head = head + ? WHERE one = 1 RETURNING head`, count).Scan(&head); err != nil {
		return 0, fmt.Errorf("raise the counter of the feed: %w", err)
	}
	return head - int64(count), nil
}

// flushFeed numbers and writes the first feed items and news that are held back.
func (b *batch) flushFeed(ctx context.Context, items, news int) error {
	if items+news == 0 {
		return nil
	}
	b.feed.sort(items)
	events := b.news.events(news)
	last, err := b.take(ctx, items+events)
	if err != nil {
		return err
	}
	for i := range items {
		last++
		b.feed.args[(i+1)*b.feed.wide-1] = last
	}
	b.news.number(news, last)
	if err := b.feed.flush(ctx, b.conn, items); err != nil {
		return err
	}
	return b.news.flush(ctx, b.conn, news)
}

// settleFeed is called before what looks at or changes feed items about a
// subject, "" for any. Like words (settleWords), items of earlier ops must not be
// written behind the savepoint of this one.
func (tx *Tx) settleFeed(subjectID string) error {
	b := tx.batch
	if b == nil || !b.holdsFeed(subjectID) {
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

func (b *batch) holdsFeed(subjectID string) bool {
	if subjectID == "" {
		return b.feed.n+b.news.n > 0
	}
	for i := range b.feed.n {
		if b.feed.args[i*b.feed.wide+3] == subjectID {
			return true
		}
	}
	return false
}

// skipNumbers leaves every number behind that may have been handed out before a
// restore from a backup, so that readers whose place lies beyond the backup miss
// nothing of what comes. Numbers are fewer than a thousand a second, so that the
// time in milliseconds is beyond all of them.
func (tx *Tx) skipNumbers(ctx context.Context) error {
	if err := tx.settleFeed(""); err != nil {
		return err
	}
	_, err := tx.write(ctx, `UPDATE tally SET head = ? WHERE one = 1 AND head < ?`, millis(tx.Now), millis(tx.Now))
	return err
}
