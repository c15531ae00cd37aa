package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"stoa/protocol"
)

// A StoredReceipt is a receipt for an order.
type StoredReceipt struct {
	ID, Handle, Order, Agent, Client, Buyer string // Agent, Client: "" for none
	Issuer                                  string // node that issued it; "" for this one
	Currency                                string
	Minor                                   int64
	PaidAt, IssuedAt                        time.Time
	RevokedAt                               *time.Time
	Reason, Token                           string
	Lines                                   []protocol.OrderLine
	Adjustments                             []protocol.Adjustment

	n int64
}

// Refunded reports whether the completed adjustments of the order leave nothing of what was paid.
func (r StoredReceipt) Refunded() bool {
	left := r.Minor
	for _, a := range r.Adjustments {
		left += a.Back()
	}
	return len(r.Adjustments) > 0 && left <= 0
}

// receiptDoc is what no statement searches.
type receiptDoc struct {
	Lines       []protocol.OrderLine  `json:"lines,omitempty"`
	Adjustments []protocol.Adjustment `json:"adjustments,omitempty"`
}

const receiptColumns = `id, handle, n, order_id, agent, client, buyer, currency, minor, paid_at, issued_at, revoked_at, reason, token, doc, issuer`

func scanReceipt(s scanner) (r StoredReceipt, err error) {
	var paid, issued int64
	var revoked *int64
	var raw []byte
	if err = s.Scan(&r.ID, &r.Handle, &r.n, &r.Order, &r.Agent, &r.Client, &r.Buyer, &r.Currency, &r.Minor, &paid, &issued, &revoked, &r.Reason, &r.Token,
		&raw, &r.Issuer); err != nil {
		return r, err
	}
	r.PaidAt, r.IssuedAt, r.RevokedAt = moment(paid), moment(issued), momentPtr(revoked)
	var doc receiptDoc
	err = json.Unmarshal(raw, &doc)
	r.Lines, r.Adjustments = doc.Lines, doc.Adjustments
	return r, err
}

func (r StoredReceipt) doc() (string, error) {
	raw, err := json.Marshal(receiptDoc{r.Lines, r.Adjustments})
	if err != nil {
		return "", fmt.Errorf("encode receipt: %w", err)
	}
	return string(raw), nil
}

// OrderReceipts reads and writes receipts for orders.
type OrderReceipts struct{ tx *Tx }

func (tx *Tx) OrderReceipts() OrderReceipts { return OrderReceipts{tx} }

// Insert stores a receipt and deletes the oldest of the shop that are more than most. The caller has
// locked the shop's profile.
func (rs OrderReceipts) Insert(ctx context.Context, r StoredReceipt, most int) error {
	if err := rs.tx.row(ctx, receiptNewest, r.Handle).Scan(&r.n); err != nil && err != ErrNotFound {
		return err
	}
	r.n++
	if err := rs.insert(ctx, r); err != nil {
		return err
	}
	_, err := rs.tx.write(ctx, `DELETE FROM order_receipt WHERE handle = ? AND n <= ?`, r.Handle, r.n-int64(most))
	return err
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
	r.n = oldest - 1
	return rs.insert(ctx, r)
}

func (rs OrderReceipts) insert(ctx context.Context, r StoredReceipt) error {
	doc, err := r.doc()
	if err != nil {
		return err
	}
	_, err = rs.tx.write(ctx, `INSERT INTO order_receipt (`+receiptColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, r.Handle, r.n, r.Order, r.Agent, r.Client, r.Buyer, r.Currency, r.Minor, millis(r.PaidAt), millis(r.IssuedAt), millisPtr(r.RevokedAt), r.Reason,
		r.Token, doc, r.Issuer)
	return err
}

const (
	receiptNewest = `SELECT n FROM order_receipt WHERE handle = ? ORDER BY n DESC LIMIT 1`
	receiptOldest = `SELECT n FROM order_receipt WHERE handle = ? ORDER BY n LIMIT 1`
	receiptByID   = `SELECT ` + receiptColumns + ` FROM order_receipt WHERE id = ?`
	receiptsOf    = `SELECT ` + receiptColumns + ` FROM order_receipt WHERE handle = ? AND n < ? ORDER BY n DESC LIMIT ?`
	receiptsOrder = `SELECT ` + receiptColumns + ` FROM order_receipt WHERE handle = ? AND order_id = ? AND n < ? ORDER BY n DESC LIMIT ?`
)

// ByID returns a receipt; ErrNotFound when there is none.
func (rs OrderReceipts) ByID(ctx context.Context, id string) (StoredReceipt, error) {
	return scanReceipt(rs.tx.row(ctx, receiptByID, id))
}

// Lock holds a receipt as it is until the transaction ends, if there is one.
func (rs OrderReceipts) Lock(ctx context.Context, id string) error {
	_, err := scanReceipt(rs.tx.row(ctx, receiptByID+rs.tx.db.engine.ForUpdate(), id))
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
	rows, err := rs.tx.query(ctx, query, args...)
	found, err := collect(rows, err, scanReceipt)
	return page(found, limit, listing, func(r StoredReceipt) string { return number(r.n + above) }), err
}

// Put stores what changes of a receipt: its revocation and its adjustments.
func (rs OrderReceipts) Put(ctx context.Context, r StoredReceipt) error {
	doc, err := r.doc()
	if err != nil {
		return err
	}
	return one(rs.tx.write(ctx, `UPDATE order_receipt SET revoked_at = ?, reason = ?, doc = ? WHERE id = ?`, millisPtr(r.RevokedAt), r.Reason, doc, r.ID))
}
