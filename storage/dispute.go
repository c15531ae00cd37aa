package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

const countDisputes = `SELECT count(DISTINCT dispute) FROM bid WHERE board = ? AND dispute > ''`

// CountDisputes counts the known payers with an undecided dispute on a board, whose row is locked, and stores the number there.
func (bs Bids) CountDisputes(ctx context.Context, board string) error {
	var n int
	if err := bs.tx.row(ctx, countDisputes, board).Scan(&n); err != nil {
		return err
	}
	return one(bs.tx.write(ctx, `UPDATE attention_board SET disputes = ? WHERE id = ?`, n, board))
}

const unconfirmedBids = `SELECT count(*) FROM (SELECT 1 FROM bid WHERE board = ? AND anonymous = ? AND moved_at > ? AND state = 'unconfirmed' LIMIT ?) r`

// Unconfirmed counts the bids of a board, of known bidders and of others, whose reported payment was not confirmed since a time.
func (bs Bids) Unconfirmed(ctx context.Context, board string, since time.Time) (known, others int, err error) {
	for _, x := range []struct {
		n         *int
		anonymous bool
	}{{&known, false}, {&others, true}} {
		if err := bs.tx.row(ctx, unconfirmedBids, board, x.anonymous, millis(since), protocol.MaxUnconfirmed).Scan(x.n); err != nil {
			return 0, 0, err
		}
	}
	return known, others, nil
}

var disputedBids = bidTable.from + `WHERE board = ? AND dispute IS NOT NULL AND ` + onesOwn

// ListDisputed returns the bids of a board whose dispute is not decided, newest first.
func (bs Bids) ListDisputed(ctx context.Context, board string, limit int, after string) (protocol.Page[StoredBid], error) {
	return newest[StoredBid](ctx, bs.tx, "bids-disputed", "id", limit, after, disputedBids, board)
}
