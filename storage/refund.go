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

// A StoredRefund is money that goes back.
type StoredRefund struct {
	ID, Board, Bid, Payment string
	Paise                   int64 // minor units of Currency, which is that of the payment
	Currency                string
	Why                     string
	Whole                   bool // of the bid itself: the bid's state follows it
	State                   RefundState
	Reference               string // at the provider, or of the owner's transfer; "" while no refund is known that may still be made
	Round                   int    // how many refunds at the provider have failed
	Unsure                  bool   // a request for the present one had no answer
	Tries                   int
	LastError               string
	Until                   time.Time // after it a refused refund is tried no more
	CreatedAt               time.Time
	DoneAt                  *time.Time
}

const refundColumns = `id, board, bid, payment, paise, why, whole, state, reference, tries, last_error, until, created_at, done_at, round, unsure, currency`

func scanRefund(s scanner) (r StoredRefund, err error) {
	var until, created int64
	var done *int64
	err = s.Scan(&r.ID, &r.Board, &r.Bid, &r.Payment, &r.Paise, &r.Why, &r.Whole, &r.State, &r.Reference, &r.Tries, &r.LastError, &until, &created, &done,
		&r.Round, &r.Unsure, &r.Currency)
	r.Until, r.CreatedAt, r.DoneAt = moment(until), moment(created), momentPtr(done)
	return r, err
}

// Refunds reads and writes the refunds of payments.
type Refunds struct{ tx *Tx }

func (tx *Tx) Refunds() Refunds { return Refunds{tx} }

// Insert stores a new refund.
func (rs Refunds) Insert(ctx context.Context, r *StoredRefund) error {
	r.ID, r.CreatedAt = protocol.NewID(protocol.RefundID, rs.tx.Now), rs.tx.Now
	if _, err := rs.tx.write(ctx, `INSERT INTO refund (`+refundColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, r.Board, r.Bid, r.Payment, r.Paise, r.Why, r.Whole, string(r.State),
		r.Reference, r.Tries, r.LastError, millis(r.Until), millis(r.CreatedAt), millisPtr(r.DoneAt), r.Round, r.Unsure, r.Currency); err != nil {
		return fmt.Errorf("store refund: %w", err)
	}
	return nil
}

// Save stores what may change of a refund. One that is done gets its line of the ledger, once.
func (rs Refunds) Save(ctx context.Context, r *StoredRefund) error {
	var was RefundState
	if err := rs.tx.row(ctx, `SELECT state FROM refund WHERE id = ?`, r.ID).Scan(&was); err != nil || was == RefundDone {
		return err
	}
	if _, err := rs.tx.write(ctx, `UPDATE refund SET paise = ?, state = ?, reference = ?, tries = ?, last_error = ?, done_at = ?,
		round = ?, unsure = ? WHERE id = ?`,
		r.Paise, string(r.State), r.Reference, r.Tries, storable(r.LastError), millisPtr(r.DoneAt), r.Round, r.Unsure, r.ID); err != nil {
		return err
	}
	if r.State != RefundDone {
		return nil
	}
	return rs.tx.Payments().addToLedger(ctx, r.Board, r.Bid, r.Payment, r.ID, -r.Paise)
}

// ByID returns a refund; ErrNotFound when there is none. Who changes it locks the board first.
func (rs Refunds) ByID(ctx context.Context, id string) (*StoredRefund, error) {
	r, err := scanRefund(rs.tx.row(ctx, `SELECT `+refundColumns+` FROM refund WHERE id = ?`, id))
	return &r, err
}

const refundByReference = `SELECT r.id FROM refund r JOIN payment p ON p.id = r.payment WHERE r.reference = ? AND r.reference <> '' AND p.payee = ?`

// ByReference returns the refund of that id at the provider, of a payment to payee.
func (rs Refunds) ByReference(ctx context.Context, payee, reference string) (*StoredRefund, error) {
	var id string
	if err := rs.tx.row(ctx, refundByReference, reference, payee).Scan(&id); err != nil {
		return nil, err
	}
	return rs.ByID(ctx, id)
}

const refundsOfPayment = `SELECT ` + refundColumns + ` FROM refund WHERE payment = ? ORDER BY id LIMIT 200`

// OfPayment returns the refunds of a payment, oldest first.
func (rs Refunds) OfPayment(ctx context.Context, payment string) ([]StoredRefund, error) {
	rows, err := rs.tx.query(ctx, refundsOfPayment, payment)
	return collect(rows, err, scanRefund)
}

// OfBid returns the refunds of a bid, oldest first.
func (rs Refunds) OfBid(ctx context.Context, bid string) ([]StoredRefund, error) {
	rows, err := rs.tx.query(ctx, `SELECT `+refundColumns+` FROM refund WHERE bid = ? ORDER BY id LIMIT 200`, bid)
	return collect(rows, err, scanRefund)
}

// RefundedOf returns how much of the payment of a slot went back, from the refunds of its bid.
func RefundedOf(payment string, refunds []StoredRefund) (paise int64) {
	for _, r := range refunds {
		if r.Payment == payment && r.Whole && r.State == RefundDone {
			paise += r.Paise
		}
	}
	return paise
}

// ListOpen returns the refunds of a board that are not done, oldest first.
func (rs Refunds) ListOpen(ctx context.Context, board string, limit int, after string) (protocol.Page[StoredRefund], error) {
	limit = bounded(limit)
	const listing = "refunds"
	from, err := protocol.ParseCursor(listing, after)
	if err != nil {
		return protocol.Page[StoredRefund]{}, err
	}
	rows, err := rs.tx.query(ctx, openRefunds, board, from, limit+1)
	found, err := collect(rows, err, scanRefund)
	return page(found, limit, listing, func(r StoredRefund) string { return r.ID }), err
}

const openRefunds = `SELECT ` + refundColumns + ` FROM refund WHERE board = ? AND state <> 'done' AND id > ? ORDER BY id LIMIT ?`
