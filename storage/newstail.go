package storage

import (
	"cmp"
	"context"
	"hash/maphash"
	"sync"
	"time"
)

const (
	tailReaders = 100_000     // of a half of the tail, which takes 3 MB
	tailPage    = 2000        // news that one statement reads
	tailPages   = 10          // more are not read: the tail begins anew
	tailMark    = time.Minute // how old the daily mark may be
)

// A newsTail has the newest news of all readers in memory, so that a poll of a caller for whom nothing is new costs PostgreSQL
// nothing: by a hash of the reader, the greatest number. Two readers with one hash are told to look.
//
// It is read up to DB.told, as a transaction that begins now is, so its answer is that of the database. The first poll after
// told has moved reads on for all.
type newsTail struct {
	mu           sync.Mutex
	from, upTo   int64            // all news of numbers above from, up to upTo, are in it
	newer, older map[uint64]int64 // older ones are forgotten when there are tailReaders newer ones
	between      int64            // the number at which newer begins
	most         int              // readers of a half; 0 for tailReaders
	mark         int64
	marked       time.Time
}

var tailSeed = maphash.MakeSeed()

// Quiet reports whether it is known, without asking the database, that nothing is new for a reader after a number of
// the last day. On SQLite it never is: to ask costs less there.
func (db *DB) Quiet(ctx context.Context, names []string, after int64) bool {
	if db.engine != enginePostgres || after == 0 {
		return false
	}
	t := &db.tail
	t.mu.Lock()
	defer t.mu.Unlock()
	if told := db.told.Load(); told > t.upTo && t.follow(ctx, db, told) != nil {
		return false
	}
	if after < t.from || after < t.mark || after > t.upTo {
		return false
	}
	for _, name := range names {
		h := maphash.String(tailSeed, name)
		if t.newer[h] > after || t.older[h] > after {
			return false
		}
	}
	return true
}

const newsTailRows = `SELECT reader, n FROM news WHERE n + 0 > ? AND n + 0 <= ? ORDER BY n + 0 LIMIT ?`

// follow reads the tail up to a number.
func (t *newsTail) follow(ctx context.Context, db *DB, told int64) error {
	for range tailPages {
		var page []struct {
			Reader string
			N      int64
		}
		err := db.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
			if t.marked.Before(tx.Now.Add(-tailMark)) {
				if t.mark, err = tx.News().Marked(ctx); err != nil {
					return err
				}
				t.marked = tx.Now
			}
			if t.upTo == 0 { // the first poll of this process
				return nil
			}
			page, err = list[struct {
				Reader string
				N      int64
			}](ctx, tx, newsTailRows, t.upTo, told, tailPage)
			return err
		})
		switch {
		case err != nil:
			return err
		case t.upTo == 0:
			t.restart(told)
			return nil
		}
		for _, row := range page {
			t.newer[maphash.String(tailSeed, row.Reader)] = row.N
		}
		if len(page) < tailPage {
			t.upTo = told
			if len(t.newer) >= cmp.Or(t.most, tailReaders) {
				t.older, t.from = t.newer, t.between
				t.newer, t.between = map[uint64]int64{}, told
			}
			return nil
		}
		t.upTo = page[len(page)-1].N - 1 // an event has several rows of one number
	}
	t.restart(told)
	return nil
}

func (t *newsTail) restart(told int64) {
	t.from, t.between, t.upTo, t.newer, t.older = told, told, told, map[uint64]int64{}, nil
}
