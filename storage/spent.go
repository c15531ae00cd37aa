package storage

import (
	"context"
	"math"
	"slices"

	"stoa/protocol"
)

// Spend uses up a proof or nonce. The second use, by any process, in this batch
// or any earlier one, is an error with the code of s. On PostgreSQL a use that
// another batch of this process has not committed yet counts already: waiting
// for it while holding a log's counter would lock both up.
func (tx *Tx) Spend(ctx context.Context, s protocol.Spend) error {
	b := tx.batch
	if b == nil {
		return ErrReadOnly
	}
	used := &protocol.Error{Code: s.Code, Detail: "This was used before; each proof of work and each signature is good for one write."}
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

// forgetSpends gives back the keys that the batch held; its transaction has ended.
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

// PruneSpent forgets what has run out among the keys that begin with the given
// byte, and returns how many. The table has no index by time, which every write
// would pay for; a call reads one row in 256 of it. Call it for
// 0 to 255, each in its own transaction.
func (tx *Tx) PruneSpent(ctx context.Context, first byte) (int, error) {
	low, high := []byte{first}, slices.Repeat([]byte{math.MaxUint8}, 17)
	high[0] = first
	n, err := tx.write(ctx, `DELETE FROM spent WHERE key >= ? AND key <= ? AND until < ?`, low, high, millis(tx.Now))
	return int(n), err
}
