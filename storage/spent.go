package storage

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"stoa/protocol"
)

// Spend spends a proof or nonce. The second use, by any process, in this batch or
// any earlier one, is an error with the code of s. On PostgreSQL a use that another
// batch of this process has not committed yet already counts: waiting for it while
// holding a log's counter would deadlock both.
func (tx *Tx) Spend(ctx context.Context, s protocol.Spend) error {
	b := tx.batch
	if b == nil {
		return ErrReadOnly
	}
	used := &protocol.Error{Code: s.Code, Detail: "This was used before; each proof of work and each signature can be used for one write only."}
	switch state, declared := b.ahead[s.Key]; {
	case declared && state != aheadFree:
		return used
	case declared:
		b.ahead[s.Key] = aheadTaken
		b.taken = append(b.taken, s.Key)
		b.touched = true
		return nil
	}
	if tx.db.engine == enginePostgres {
		if holder, taken := tx.db.spends.LoadOrStore(s.Key, b); taken && holder != any(b) {
			return used
		}
	}
	n, err := tx.conn.exec(tx.in(ctx), `INSERT INTO spent (key, until) VALUES (?, ?) ON CONFLICT DO NOTHING`, s.Key[:], millis(s.Until))
	if err != nil {
		return err
	}
	if n == 0 {
		return used
	}
	b.touched = true
	b.spent = append(b.spent, s.Key)
	return nil
}

// An aheadState is the state of a key that an op of the batch declared (DB.Write).
type aheadState byte

const (
	aheadUsed  aheadState = iota // spent by an earlier batch, or by one that is running
	aheadFree                    // its row is inserted, for the first op that spends it
	aheadTaken                   // spent by an op of this batch
)

var spentInsert = insert{into: `INSERT INTO spent (key, until) VALUES `, row: `(?, ?)`}

// spendAhead inserts the keys that the ops declared, before any of them runs and
// with one statement for all: the returned rows are those that were not spent. It
// saves PostgreSQL a round trip each; on SQLite a prepared statement for one row is
// faster. They are sorted by key, so that processes which insert the same ones wait
// for each other in one order. Which op gets a key is decided when it calls Spend;
// a key of an op that fails is free again for the next one.
func (b *batch) spendAhead(ctx context.Context, ops []*op) error {
	if b.db.engine != enginePostgres {
		return nil
	}
	var fresh []protocol.Spend
	for _, o := range ops {
		for _, s := range o.spends {
			if _, known := b.ahead[s.Key]; known {
				continue
			}
			if b.ahead == nil {
				b.ahead = map[[16]byte]aheadState{}
			}
			b.ahead[s.Key] = aheadUsed
			if _, held := b.db.spends.LoadOrStore(s.Key, b); held {
				continue
			}
			fresh = append(fresh, s)
		}
	}
	slices.SortFunc(fresh, func(x, y protocol.Spend) int { return bytes.Compare(x.Key[:], y.Key[:]) })
	for len(fresh) > 0 {
		size := spentInsert.size(b.conn, len(fresh))
		args := make([]any, 0, 2*size)
		for _, s := range fresh[:size] {
			args = append(args, s.Key[:], millis(s.Until))
		}
		rows, err := b.conn.query(ctx, spentInsert.text(size)+` ON CONFLICT DO NOTHING RETURNING key`, args...)
		_, err = collect(rows, err, func(row scanner) (none struct{}, err error) {
			var raw sql.RawBytes
			if err = row.Scan(&raw); err == nil && len(raw) == 16 {
				b.ahead[[16]byte(raw)] = aheadFree
			}
			return none, err
		})
		if err != nil {
			return fmt.Errorf("spend: %w", err)
		}
		fresh = fresh[size:]
	}
	return nil
}

// giveBack deletes the rows of declared keys that no op has spent.
func (b *batch) giveBack(ctx context.Context) error {
	for key, state := range b.ahead {
		if state != aheadFree {
			continue
		}
		if _, err := b.conn.exec(ctx, `DELETE FROM spent WHERE key = ?`, key[:]); err != nil {
			return fmt.Errorf("give back what was not spent: %w", err)
		}
	}
	return nil
}

// forgetSpends releases the keys that the batch held; its transaction has ended.
func (b *batch) forgetSpends() {
	if b.db.engine != enginePostgres {
		return
	}
	b.db.spends.Range(func(key, holder any) bool {
		if holder == any(b) {
			b.db.spends.Delete(key)
		}
		return true
	})
}

// spentLook is how many keys PruneSpent reads in one call.
const spentLook = 4000

// PruneSpent deletes the expired keys among those after a key, and returns how
// many, and the last key it read: nil at the end. The table has no index by time,
// which every write would have to update: keys are valid for some minutes, a day at
// most, so nearly all of those that an hourly run reads have expired, and
// neighbours are deleted together. Call it with nil first and then with the
// returned key, each time in its own transaction.
func (tx *Tx) PruneSpent(ctx context.Context, after []byte) (last []byte, n int, err error) {
	if after == nil {
		after = []byte{}
	}
	err = tx.row(ctx, `SELECT key FROM (SELECT key FROM spent WHERE key > ? ORDER BY key LIMIT ?) r ORDER BY key DESC LIMIT 1`, after, spentLook).Scan(&last)
	if err == ErrNotFound {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	gone, err := tx.write(ctx, `DELETE FROM spent WHERE key > ? AND key <= ? AND until < ?`, after, last, millis(tx.Now))
	return last, int(gone), err
}

// UseSignature records that an author's signature was used for a post, and reports
// whether this is the first time. It is remembered until a time which is years
// away, in a separate table, since PruneSpent reads every row of spent.
func (tx *Tx) UseSignature(ctx context.Context, key [32]byte, until time.Time) (first bool, err error) {
	n, err := tx.write(ctx, `INSERT INTO used_signature (key, until) VALUES (?, ?) ON CONFLICT DO NOTHING`, key[:16], millis(until))
	return n == 1, err
}

// PruneSignatures deletes expired signatures, at most a thousand per call, and
// returns how many.
func (tx *Tx) PruneSignatures(ctx context.Context) (int, error) {
	return tx.deleteSome(ctx, "used_signature", "key", usedSignatures, millis(tx.Now))
}

const usedSignatures = `until < ? ORDER BY until LIMIT 1000`
