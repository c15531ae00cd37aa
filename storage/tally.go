package storage

import (
	"context"
	"fmt"

	"stoa/storage/commit"
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
func take(ctx context.Context, tx *commit.Tx, count int) (numbers []int64, err error) {
	if tx.Engine() == enginePostgres {
		rows, err := tx.QueryRaw(ctx, `SELECT nextval('feed_number') FROM generate_series(1, ?)`, count)
		if numbers, err = collect(rows, err, scanInt); err != nil {
			return nil, fmt.Errorf("take numbers for the feed: %w", err)
		}
		return numbers, nil
	}
	var head int64
	if err := commit.First(tx.QueryRaw(ctx, `UPDATE tally SET head = head + ? WHERE one = 1 RETURNING head`, count)).Scan(&head); err != nil {
		return nil, fmt.Errorf("raise the counter of the feed: %w", err)
	}
	for n := head - int64(count) + 1; n <= head; n++ {
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// toldUpTo is the number up to which this transaction may read feed items and news:
// no item with a number at or below it is committed later.
func (tx *Tx) toldUpTo(ctx context.Context) (int64, error) {
	if tx.db.engine == enginePostgres {
		return tx.told, nil
	}
	return find[int64](ctx, tx, `SELECT head FROM tally WHERE one = 1`)
}

// numberFeed gives the first n items their numbers.
func numberFeed(ctx context.Context, tx *commit.Tx, r *commit.Rows, n int) error {
	numbers, err := take(ctx, tx, n)
	if err != nil {
		return err
	}
	for i, number := range numbers {
		row := r.Row(i)
		row[len(row)-1] = number
	}
	return nil
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
	return tx.exec(ctx, raise, millis(tx.Now), millis(tx.Now))
}
