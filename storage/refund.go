package storage

import (
	"context"
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
	ID        string
	Book      string `db:"board"`
	Subject   string `db:"bid"`
	Payment   string
	Paise     int64 // minor units of Currency, which is that of the payment
	Currency  string
	Why       string
	Whole     bool // of what it paid for, whose state follows it
	State     RefundState
	Reference string // at the provider, or of the owner's transfer; "" while no refund is known that may still be made
	Round     int    // how many refunds at the provider have failed
	Unsure    bool   // a request for the present one had no answer
	Tries     int
	LastError string
	Until     time.Time // after it a refused refund is tried no more
	CreatedAt time.Time
	DoneAt    *time.Time
}

var refundTable = tableOf[StoredRefund]("refund")

// Refunds reads and writes the refunds of payments.
type Refunds struct{ tx *Tx }

func (tx *Tx) Refunds() Refunds { return Refunds{tx} }

// Insert stores a new refund.
func (rs Refunds) Insert(ctx context.Context, r *StoredRefund) error {
	r.ID, r.CreatedAt = protocol.NewID(protocol.RefundID, rs.tx.Now), rs.tx.Now
	return refundTable.insert(ctx, rs.tx, r)
}

// Save stores what may change of a refund. One that is done gets its line of the ledger, once.
func (rs Refunds) Save(ctx context.Context, r *StoredRefund) error {
	was, err := find[RefundState](ctx, rs.tx, `SELECT state FROM refund WHERE id = ?`, r.ID)
	if err != nil || was == RefundDone {
		return err
	}
	stored := *r
	stored.LastError = storable(r.LastError)
	if err := refundTable.update(ctx, rs.tx, &stored, "id", "paise", "state", "reference", "tries", "last_error", "done_at", "round", "unsure"); err != nil {
		return err
	}
	if r.State != RefundDone {
		return nil
	}
	return rs.tx.Payments().addToLedger(ctx, r.Book, r.Subject, r.Payment, r.ID, -r.Paise)
}

// ByID returns a refund; ErrNotFound when there is none. Who changes it locks the board first.
func (rs Refunds) ByID(ctx context.Context, id string) (*StoredRefund, error) {
	return pointer(find[StoredRefund](ctx, rs.tx, refundTable.from+`WHERE id = ?`, id))
}

const refundByReference = `SELECT r.id FROM refund r JOIN payment p ON p.id = r.payment WHERE r.reference = ? AND r.reference <> '' AND p.payee = ?`

// ByReference returns the refund of that id at the provider, of a payment to payee.
func (rs Refunds) ByReference(ctx context.Context, payee, reference string) (*StoredRefund, error) {
	id, err := find[string](ctx, rs.tx, refundByReference, reference, payee)
	if err != nil {
		return nil, err
	}
	return rs.ByID(ctx, id)
}

var refundsOfPayment = refundTable.from + `WHERE payment = ? ORDER BY id LIMIT 200`

// OfPayment returns the refunds of a payment, oldest first.
func (rs Refunds) OfPayment(ctx context.Context, payment string) ([]StoredRefund, error) {
	return list[StoredRefund](ctx, rs.tx, refundsOfPayment, payment)
}

// Of returns the refunds of a bid or an order, oldest first.
func (rs Refunds) Of(ctx context.Context, subject string) ([]StoredRefund, error) {
	return list[StoredRefund](ctx, rs.tx, refundTable.from+`WHERE bid = ? ORDER BY id LIMIT 200`, subject)
}

// RefundedOf returns how much of a payment that counted went back, from the refunds of its subject.
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
	found, err := list[StoredRefund](ctx, rs.tx, openRefunds, board, from, limit+1)
	return page(found, limit, listing, func(r StoredRefund) string { return r.ID }), err
}

var openRefunds = refundTable.from + `WHERE board = ? AND state <> 'done' AND id > ? ORDER BY id LIMIT ?`
