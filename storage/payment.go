package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"
)

// A StoredPayment is money that came in for a bid or an order: its subject. Its book is the attention board, or the till of the
// shop; their columns have the names of the first.
type StoredPayment struct {
	ID                   string
	Book                 string `db:"board"`
	Subject              string `db:"bid"`
	Account              string
	Provider             protocol.PayName
	Payee                string // what PaymentID is unique within: an address or an account
	PaymentID, Reference string // at the provider; of the bank
	Paise                int64  // minor units of Currency
	Currency             string
	Placed               bool // it paid for its subject
	Test                 bool
	PaidAt, At           time.Time // by the provider's clock; when it was stored
}

var paymentTable = tableOf[StoredPayment]("payment")

// Payments reads and writes payments for bids, their receipts, and the events of
// providers.
type Payments struct{ tx *Tx }

func (tx *Tx) Payments() Payments { return Payments{tx} }

// Insert stores a payment and its line of the ledger; ErrExists when it was stored before.
func (ps Payments) Insert(ctx context.Context, p *StoredPayment) error {
	p.ID, p.At = protocol.NewID(protocol.PaymentID, ps.tx.Now), ps.tx.Now
	if err := paymentTable.create(ctx, ps.tx, p); err != nil {
		return err
	}
	return ps.addToLedger(ctx, p.Book, p.Subject, p.ID, "", p.Paise)
}

// Place notes that a payment paid for its subject.
func (ps Payments) Place(ctx context.Context, p *StoredPayment) error {
	p.Placed = true
	return one(ps.tx.write(ctx, `UPDATE payment SET placed = TRUE WHERE id = ?`, p.ID))
}

// Exists reports whether a payment is stored.
func (ps Payments) Exists(ctx context.Context, provider protocol.PayName, payee, id string) (bool, error) {
	_, err := ps.AtProvider(ctx, provider, payee, id)
	return err == nil, orNothing(err)
}

// AtProvider returns the payment with that id at the provider, to payee; ErrNotFound when it is not stored.
func (ps Payments) AtProvider(ctx context.Context, provider protocol.PayName, payee, id string) (*StoredPayment, error) {
	p, err := find[StoredPayment](ctx, ps.tx, paymentTable.from+`WHERE provider = ? AND payee = ? AND payment_id = ?`,
		string(provider), payee, id)
	return &p, err
}

func (ps Payments) addToLedger(ctx context.Context, board, bid, payment, refund string, paise int64) error {
	return ps.tx.exec(ctx, `INSERT INTO ledger (board, bid, payment, refund, paise, at) VALUES (?, ?, ?, ?, ?, ?)`,
		board, bid, payment, refund, paise, millis(ps.tx.Now))
}

// Of returns the payments of a bid or an order, oldest first.
func (ps Payments) Of(ctx context.Context, subject string) ([]StoredPayment, error) {
	return list[StoredPayment](ctx, ps.tx, paymentTable.from+`WHERE bid = ? ORDER BY id LIMIT 200`, subject)
}

// ByID returns a payment; ErrNotFound when there is none.
func (ps Payments) ByID(ctx context.Context, id string) (*StoredPayment, error) {
	return pointer(find[StoredPayment](ctx, ps.tx, paymentTable.from+`WHERE id = ?`, id))
}

// List returns the payments of a board, newest first.
func (ps Payments) List(ctx context.Context, board string, limit int, after string) (protocol.Page[StoredPayment], error) {
	return newest[StoredPayment](ctx, ps.tx, "payments", "id", limit, after, paymentsOfBoard, board)
}

var paymentsOfBoard = paymentTable.from + `WHERE board = ? AND ` + onesOwn

// A LedgerLine is one line of a board's ledger.
type LedgerLine struct {
	Paise   int64 // negative for a refund
	At      time.Time
	Payment StoredPayment
	Refund  *StoredRefund // nil for a payment
	Payer   string
}

const ledgerOfMonth = `SELECT payment, refund, paise, at FROM ledger WHERE board = ? AND at >= ? AND at < ? ORDER BY at, n`

// Ledger calls fn for the lines of a board's ledger between two times, in their order.
func (ps Payments) Ledger(ctx context.Context, board string, from, to time.Time, fn func(LedgerLine) error) error {
	type line struct {
		Payment, Refund string
		Paise           int64
		At              time.Time
	}
	lines, err := list[line](ctx, ps.tx, ledgerOfMonth, board, millis(from), millis(to))
	if err != nil {
		return err
	}
	for _, l := range lines {
		p, err := ps.ByID(ctx, l.Payment)
		if err != nil {
			return err
		}
		out := LedgerLine{Paise: l.Paise, At: l.At, Payment: *p}
		if l.Refund != "" {
			if out.Refund, err = ps.tx.Refunds().ByID(ctx, l.Refund); err != nil {
				return err
			}
		}
		bid, err := ps.tx.Bids().ByID(ctx, p.Subject)
		if orNothing(err) != nil {
			return err
		}
		if err == nil { // an order's is sealed
			out.Payer = bid.Author.Name
		}
		if err := fn(out); err != nil {
			return err
		}
	}
	return nil
}

// AddReceipt stores a receipt under the next number of a financial year of its board, whose row is
// locked, and returns the number.
func (ps Payments) AddReceipt(ctx context.Context, board, payment string, year protocol.FinancialYear, r *protocol.Receipt) error {
	var last int
	if err := ps.tx.row(ctx, `SELECT COALESCE(max(n), 0) FROM receipt_no WHERE board = ? AND year = ?`, board, year.String()).Scan(&last); err != nil {
		return err
	}
	r.Number = protocol.ReceiptNumber(year, last+1)
	doc, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode receipt: %w", err)
	}
	return ps.tx.exec(ctx, `INSERT INTO receipt_no (board, year, n, payment, at, doc) VALUES (?, ?, ?, ?, ?, ?)`,
		board, year.String(), last+1, payment, millis(ps.tx.Now), string(doc))
}

// Receipt returns the receipt of a payment; ErrNotFound when there is none.
func (ps Payments) Receipt(ctx context.Context, payment string) (*protocol.Receipt, error) {
	var doc []byte
	if err := ps.tx.row(ctx, `SELECT doc FROM receipt_no WHERE payment = ?`, payment).Scan(&doc); err != nil {
		return nil, err
	}
	r := &protocol.Receipt{}
	return r, json.Unmarshal(doc, r)
}
