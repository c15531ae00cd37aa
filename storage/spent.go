package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// Spend spends a proof or nonce. The second use, by any process, in this batch or
// any earlier one, is an error with the code of s.
func (rs Requests) Spend(ctx context.Context, s protocol.Spend) error { return rs.tx.sql.Spend(ctx, s) }

// spentLook is how many keys Requests.PruneSpent reads in one call.
const spentLook = 4000

// PruneSpent deletes the expired keys among those after a key, and returns how
// many, and the last key it read: nil at the end. The table has no index by time,
// which every write would have to update: keys are valid for some minutes, a day at
// most, so nearly all of those that an hourly run reads have expired, and
// neighbours are deleted together. Call it with nil first and then with the
// returned key, each time in its own transaction.
func (rs Requests) PruneSpent(ctx context.Context, after []byte) (last []byte, n int, err error) {
	if after == nil {
		after = []byte{}
	}
	err = rs.tx.row(ctx, `SELECT key FROM (SELECT key FROM spent WHERE key > ? ORDER BY key LIMIT ?) r ORDER BY key DESC LIMIT 1`, after, spentLook).Scan(&last)
	if err == ErrNotFound {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	gone, err := rs.tx.write(ctx, `DELETE FROM spent WHERE key > ? AND key <= ? AND until < ?`, after, last, millis(rs.tx.Now))
	return last, int(gone), err
}

// UseSignature records that an author's signature was used for a post, and reports
// whether this is the first time. It is remembered until a time which is years
// away, in a separate table, since PruneSpent reads every row of spent.
func (rs Requests) UseSignature(ctx context.Context, key [32]byte, until time.Time) (first bool, err error) {
	n, err := rs.tx.write(ctx, `INSERT INTO used_signature (key, until) VALUES (?, ?) ON CONFLICT DO NOTHING`, key[:16], millis(until))
	return n == 1, err
}
