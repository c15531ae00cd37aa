package storage

import (
	"context"
	"math"
	"time"

	"stoa/protocol"
)

// A StoredReceipt is a receipt for an order.
type StoredReceipt struct {
	ID, Handle, Agent, Client, Buyer string // Agent, Client: "" for none
	Order                            string `db:"order_id"`
	Issuer                           string // node that issued it; "" for this one
	Currency                         string
	Minor                            int64
	PaidAt, IssuedAt                 time.Time
	RevokedAt                        *time.Time
	Reason, Token                    string
	ReceiptDoc                       `db:"doc"`

	N int64 // orders the receipts of a shop
}

// Left is what the completed adjustments of the order leave of what was paid.
func (r StoredReceipt) Left() int64 {
	left := r.Minor
	for _, a := range r.Adjustments {
		left += a.Back()
	}
	return max(0, min(left, r.Minor))
}

// Refunded reports whether that is nothing.
func (r StoredReceipt) Refunded() bool { return len(r.Adjustments) > 0 && r.Left() == 0 }

// A ReceiptDoc is what no statement searches.
type ReceiptDoc struct {
	Lines       []protocol.OrderLine  `json:"lines,omitempty"`
	Adjustments []protocol.Adjustment `json:"adjustments,omitempty"`
	Buyers      []string              `json:"buyers,omitempty"` // names by which this node tells the buyer: account:, agent:, wallet:, mail: with a keyed hash
}

var receiptTable = tableOf[StoredReceipt]("order_receipt")

// OrderReceipts reads and writes receipts for orders.
type OrderReceipts struct{ tx *Tx }

func (tx *Tx) OrderReceipts() OrderReceipts { return OrderReceipts{tx} }

// Insert stores a receipt and deletes the oldest of the shop that are more than most. The caller has
// locked the shop's profile.
func (rs OrderReceipts) Insert(ctx context.Context, r StoredReceipt, most int) error {
	if err := rs.tx.row(ctx, receiptNewest, r.Handle).Scan(&r.N); err != nil && err != ErrNotFound {
		return err
	}
	r.N++
	if err := receiptTable.insert(ctx, rs.tx, &r); err != nil {
		return err
	}
	return rs.tx.exec(ctx, `DELETE FROM order_receipt WHERE handle = ? AND n <= ?`, r.Handle, r.N-int64(most))
}

// Import stores a receipt of an archive as older than those that the shop has. ErrFull when it has most.
// The caller has locked the shop's profile.
func (rs OrderReceipts) Import(ctx context.Context, r StoredReceipt, most int) error {
	var newest, oldest int64
	err := rs.tx.row(ctx, receiptNewest, r.Handle).Scan(&newest)
	if err == nil {
		err = rs.tx.row(ctx, receiptOldest, r.Handle).Scan(&oldest)
	}
	switch {
	case err == ErrNotFound:
		oldest = int64(most) + 1
	case err != nil:
		return err
	case newest-oldest+1 >= int64(most):
		return ErrFull
	}
	r.N = oldest - 1
	return receiptTable.insert(ctx, rs.tx, &r)
}

var (
	receiptNewest = `SELECT n FROM order_receipt WHERE handle = ? ORDER BY n DESC LIMIT 1`
	receiptOldest = `SELECT n FROM order_receipt WHERE handle = ? ORDER BY n LIMIT 1`
	receiptByID   = receiptTable.from + `WHERE id = ?`
	receiptsOf    = receiptTable.from + `WHERE handle = ? AND n < ? ORDER BY n DESC LIMIT ?`
	receiptsOrder = receiptTable.from + `WHERE handle = ? AND order_id = ? AND n < ? ORDER BY n DESC LIMIT ?`
)

// ByID returns a receipt; ErrNotFound when there is none.
func (rs OrderReceipts) ByID(ctx context.Context, id string) (StoredReceipt, error) {
	return find[StoredReceipt](ctx, rs.tx, receiptByID, id)
}

// Lock holds a receipt as it is until the transaction ends, if there is one.
func (rs OrderReceipts) Lock(ctx context.Context, id string) error {
	_, err := find[StoredReceipt](ctx, rs.tx, receiptByID+rs.tx.db.engine.ForUpdate(), id)
	return orNothing(err)
}

// List returns the receipts of a shop, newest first, those of archives last; with an order only those of it.
func (rs OrderReceipts) List(ctx context.Context, handle, order string, limit int, after string) (protocol.Page[StoredReceipt], error) {
	limit = bounded(limit)
	const listing = "order-receipts"
	const above = protocol.MaxOrderReceipts // n of imported receipts may be negative, by less than that
	before, err := position(listing, after, math.MaxInt64)
	if err != nil {
		return protocol.Page[StoredReceipt]{}, err
	}
	before -= above
	query, args := receiptsOf, []any{handle, before, limit + 1}
	if order != "" {
		query, args = receiptsOrder, []any{handle, order, before, limit + 1}
	}
	found, err := list[StoredReceipt](ctx, rs.tx, query, args...)
	return page(found, limit, listing, func(r StoredReceipt) string { return number(r.N + above) }), err
}

// Put stores what changes of a receipt: its revocation, its adjustments, and the document itself where more is known of the payment.
func (rs OrderReceipts) Put(ctx context.Context, r StoredReceipt) error {
	return receiptTable.update(ctx, rs.tx, &r, "id", "revoked_at", "reason", "token", "doc")
}
