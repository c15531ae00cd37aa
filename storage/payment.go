package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"
)

// A StoredPayment is money that came in for a bid.
type StoredPayment struct {
	ID, Board, Bid, Account string
	Provider                protocol.PayName
	Payee                   string // what PaymentID is unique within: an address or an account
	PaymentID, Reference    string // at the provider; of the bank
	Paise                   int64  // minor units of Currency
	Currency                string
	Placed                  bool // it paid for a slot
	Test                    bool
	PaidAt, At              time.Time // by the provider's clock; when it was stored
}

const paymentColumns = `id, board, bid, account, provider, payee, payment_id, reference, paise, currency, placed, test, paid_at, at`

func scanPayment(s scanner) (p StoredPayment, err error) {
	var paid, at int64
	err = s.Scan(&p.ID, &p.Board, &p.Bid, &p.Account, &p.Provider, &p.Payee, &p.PaymentID, &p.Reference, &p.Paise, &p.Currency, &p.Placed, &p.Test, &paid, &at)
	p.PaidAt, p.At = moment(paid), moment(at)
	return p, err
}

// Payments reads and writes payments for bids, their receipts, and the events of
// providers.
type Payments struct{ tx *Tx }

func (tx *Tx) Payments() Payments { return Payments{tx} }

// Insert stores a payment and its line of the ledger; ErrExists when it was stored before.
func (ps Payments) Insert(ctx context.Context, p *StoredPayment) error {
	p.ID, p.At = protocol.NewID(protocol.PaymentID, ps.tx.Now), ps.tx.Now
	n, err := ps.tx.write(ctx, `INSERT INTO payment (`+paymentColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		p.ID, p.Board, p.Bid, p.Account, string(p.Provider), p.Payee, p.PaymentID, p.Reference, p.Paise, p.Currency, p.Placed, p.Test,
		millis(p.PaidAt), millis(p.At))
	if err != nil {
		return fmt.Errorf("store payment: %w", err)
	}
	if n == 0 {
		return ErrExists
	}
	return ps.addToLedger(ctx, p.Board, p.Bid, p.ID, "", p.Paise)
}

// Place notes that a payment paid for a slot.
func (ps Payments) Place(ctx context.Context, p *StoredPayment) error {
	p.Placed = true
	return one(ps.tx.write(ctx, `UPDATE payment SET placed = TRUE WHERE id = ?`, p.ID))
}

// Exists reports whether a payment is stored.
func (ps Payments) Exists(ctx context.Context, provider protocol.PayName, payee, id string) (bool, error) {
	_, err := ps.AtProvider(ctx, provider, payee, id)
	if err == ErrNotFound {
		return false, nil
	}
	return err == nil, err
}

// AtProvider returns the payment with that id at the provider, to payee; ErrNotFound when it is not stored.
func (ps Payments) AtProvider(ctx context.Context, provider protocol.PayName, payee, id string) (*StoredPayment, error) {
	p, err := scanPayment(ps.tx.row(ctx, `SELECT `+paymentColumns+` FROM payment WHERE provider = ? AND payee = ? AND payment_id = ?`,
		string(provider), payee, id))
	return &p, err
}

func (ps Payments) addToLedger(ctx context.Context, board, bid, payment, refund string, paise int64) error {
	_, err := ps.tx.write(ctx, `INSERT INTO ledger (board, bid, payment, refund, paise, at) VALUES (?, ?, ?, ?, ?, ?)`,
		board, bid, payment, refund, paise, millis(ps.tx.Now))
	return err
}

// OfBid returns the payments of a bid, oldest first.
func (ps Payments) OfBid(ctx context.Context, bid string) ([]StoredPayment, error) {
	rows, err := ps.tx.query(ctx, `SELECT `+paymentColumns+` FROM payment WHERE bid = ? ORDER BY id LIMIT 200`, bid)
	return collect(rows, err, scanPayment)
}

// ByID returns a payment; ErrNotFound when there is none.
func (ps Payments) ByID(ctx context.Context, id string) (*StoredPayment, error) {
	p, err := scanPayment(ps.tx.row(ctx, `SELECT `+paymentColumns+` FROM payment WHERE id = ?`, id))
	return &p, err
}

// List returns the payments of a board, newest first.
func (ps Payments) List(ctx context.Context, board string, limit int, after string) (protocol.Page[StoredPayment], error) {
	limit = bounded(limit)
	const listing = "payments"
	before, err := positionID(listing, after)
	if err != nil {
		return protocol.Page[StoredPayment]{}, err
	}
	rows, err := ps.tx.query(ctx, paymentsOfBoard, board, before, limit+1)
	found, err := collect(rows, err, scanPayment)
	return page(found, limit, listing, func(p StoredPayment) string { return p.ID }), err
}

const paymentsOfBoard = `SELECT ` + paymentColumns + ` FROM payment WHERE board = ? AND ` + onesOwn

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
		payment, refund string
		paise, at       int64
	}
	rows, err := ps.tx.query(ctx, ledgerOfMonth, board, millis(from), millis(to))
	lines, err := collect(rows, err, func(s scanner) (l line, err error) { return l, s.Scan(&l.payment, &l.refund, &l.paise, &l.at) })
	if err != nil {
		return err
	}
	for _, l := range lines {
		p, err := ps.ByID(ctx, l.payment)
		if err != nil {
			return err
		}
		out := LedgerLine{Paise: l.paise, At: moment(l.at), Payment: *p}
		if l.refund != "" {
			if out.Refund, err = ps.tx.Refunds().ByID(ctx, l.refund); err != nil {
				return err
			}
		}
		bid, err := ps.tx.Bids().ByID(ctx, p.Bid)
		if err != nil {
			return err
		}
		out.Payer = bid.Author.Name
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
	_, err = ps.tx.write(ctx, `INSERT INTO receipt_no (board, year, n, payment, at, doc) VALUES (?, ?, ?, ?, ?, ?)`,
		board, year.String(), last+1, payment, millis(ps.tx.Now), string(doc))
	return err
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
