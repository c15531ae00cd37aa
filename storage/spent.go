package storage

import (
	"context"

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

// spentLook is how many keys PruneSpent looks at in one call.
const spentLook = 4000

// PruneSpent forgets what has run out among the keys after one, and returns how
// many, and the last key it looked at: nil when there are no more. The table has
// no index by time, which every write would pay for. Call it with nil first and
// then with what it returned, each time in its own transaction.
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
