package storage

import (
	"context"
	"fmt"
	"time"

	"stoa/protocol"
)

// A RefundState is the state of a refund.
type RefundState string

const (
	RefundDue     RefundState = "due"     // to be ordered
	RefundOrdered RefundState = "ordered" // from the provider
	RefundManual  RefundState = "manual"  // the owner has to make it
	RefundFailed  RefundState = "failed"  // the provider refused it; tried again, or made by hand
	RefundDone    RefundState = "done"
)

// A StoredRefund is money that goes back. ID is also the idempotency key at the provider.
type StoredRefund struct {
	ID, Board, Bid, Payment string
	Paise                   int64
	Why                     string
	Whole                   bool // of the bid itself: the bid's state follows it
	State                   RefundState
	Reference               string // at the provider, or of the owner's transfer
	Tries                   int
	LastError               string
	Until                   time.Time // after it a refused refund is tried no more
	CreatedAt               time.Time
	DoneAt                  *time.Time
}

const refundColumns = `id, board, bid, payment, paise, why, whole, state, reference, tries, last_error, until, created_at, done_at`

func scanRefund(s scanner) (r StoredRefund, err error) {
	var until, created int64
	var done *int64
	err = s.Scan(&r.ID, &r.Board, &r.Bid, &r.Payment, &r.Paise, &r.Why, &r.Whole, &r.State, &r.Reference, &r.Tries, &r.LastError, &until, &created, &done)
	r.Until, r.CreatedAt, r.DoneAt = moment(until), moment(created), momentPtr(done)
	return r, err
}

// InsertRefund stores a new refund.
func (tx *Tx) InsertRefund(ctx context.Context, r *StoredRefund) error {
	r.ID, r.CreatedAt = protocol.NewID(protocol.RefundID, tx.Now), tx.Now
	if _, err := tx.write(ctx, `INSERT INTO refund (`+refundColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, r.Board, r.Bid, r.Payment, r.Paise, r.Why, r.Whole, string(r.State),
		r.Reference, r.Tries, r.LastError, millis(r.Until), millis(r.CreatedAt), millisPtr(r.DoneAt)); err != nil {
		return fmt.Errorf("store refund: %w", err)
	}
	return nil
}

// SaveRefund stores what may change of a refund. One that is done gets its line of the ledger, once.
func (tx *Tx) SaveRefund(ctx context.Context, r *StoredRefund) error {
	var was RefundState
	if err := tx.row(ctx, `SELECT state FROM refund WHERE id = ?`, r.ID).Scan(&was); err != nil || was == RefundDone {
		return err
	}
	if _, err := tx.write(ctx, `UPDATE refund SET state = ?, reference = ?, tries = ?, last_error = ?, done_at = ? WHERE id = ?`,
		string(r.State), r.Reference, r.Tries, storable(r.LastError), millisPtr(r.DoneAt), r.ID); err != nil {
		return err
	}
	if r.State != RefundDone {
		return nil
	}
	return tx.addToLedger(ctx, r.Board, r.Bid, r.Payment, r.ID, -r.Paise)
}

// RefundByID returns a refund; ErrNotFound when there is none. Who changes it locks the board first.
func (tx *Tx) RefundByID(ctx context.Context, id string) (*StoredRefund, error) {
	r, err := scanRefund(tx.row(ctx, `SELECT `+refundColumns+` FROM refund WHERE id = ?`, id))
	return &r, err
}

const refundByReference = `SELECT r.id FROM refund r JOIN payment p ON p.id = r.payment WHERE r.reference = ? AND r.reference <> '' AND p.payee = ?`

// RefundByReference returns the refund of that id at the provider, of a payment to payee.
func (tx *Tx) RefundByReference(ctx context.Context, payee, reference string) (*StoredRefund, error) {
	var id string
	if err := tx.row(ctx, refundByReference, reference, payee).Scan(&id); err != nil {
		return nil, err
	}
	return tx.RefundByID(ctx, id)
}

// RefundsOf returns the refunds of a bid, oldest first.
func (tx *Tx) RefundsOf(ctx context.Context, bid string) ([]StoredRefund, error) {
	rows, err := tx.query(ctx, `SELECT `+refundColumns+` FROM refund WHERE bid = ? ORDER BY id LIMIT 200`, bid)
	return collect(rows, err, scanRefund)
}

// OpenRefunds returns the refunds of a board that are not done, oldest first.
func (tx *Tx) OpenRefunds(ctx context.Context, board string, limit int, after string) (protocol.Page[StoredRefund], error) {
	limit = bounded(limit)
	const listing = "refunds"
	from, err := protocol.ParseCursor(listing, after)
	if err != nil {
		return protocol.Page[StoredRefund]{}, err
	}
	rows, err := tx.query(ctx, openRefunds, board, from, limit+1)
	found, err := collect(rows, err, scanRefund)
	return page(found, limit, listing, func(r StoredRefund) string { return r.ID }), err
}

const openRefunds = `SELECT ` + refundColumns + ` FROM refund WHERE board = ? AND state <> 'done' AND id > ? ORDER BY id LIMIT ?`
