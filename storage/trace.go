package storage

import (
	"context"
	"time"
)

// Bids and orders by the ids that others have of their money, ten at most.
const (
	ordersByUTR     = `SELECT id FROM shop_order WHERE utr = ? LIMIT 10`
	bidsByUTR       = `SELECT id FROM bid WHERE utr = ? LIMIT 10`
	bidsByPayment   = `SELECT bid FROM payment WHERE id = ? LIMIT 10`
	bidsByRefund    = `SELECT bid FROM refund WHERE id = ? LIMIT 10`
	bidsByPaymentID = `SELECT bid FROM payment WHERE payment_id = ? LIMIT 10`
	bidsByReference = `SELECT bid FROM payment WHERE reference = ? AND reference <> '' LIMIT 10`
	bidsByTransfer  = `SELECT bid FROM refund WHERE reference = ? AND reference <> '' LIMIT 10`
)

// SubjectsOf returns the ids of the bids and orders that an id of a payment, refund or transfer, here, at the provider or at the bank, leads to.
func (ps Payments) SubjectsOf(ctx context.Context, of string) (bids []string, err error) {
	for _, x := range [][2]string{
		{bidsByUTR, of}, {ordersByUTR, of}, {bidsByPayment, of}, {bidsByRefund, of}, {bidsByPaymentID, of}, {bidsByPaymentID, "utr:" + of}, {bidsByReference, of},
		{bidsByTransfer, of},
	} {
		found, err := list[string](ctx, ps.tx, x[0], x[1])
		if err != nil {
			return nil, err
		}
		bids = append(bids, found...)
	}
	return bids, nil
}

const nextJob = `SELECT run_at FROM job WHERE lane = ? AND blocked IS NOT NULL AND dedupe > ? AND dedupe < ? LIMIT 1`

// DueAt returns when the waiting job of a lane, of a kind and about a subject, which its dedupe key names after the kind, runs; ErrNotFound
// when there is none.
func (js Jobs) DueAt(ctx context.Context, lane string, kind JobKind, subject string) (at time.Time, err error) {
	var run int64
	prefix := string(kind) + " " + subject
	err = js.tx.row(ctx, nextJob, lane, prefix+" ", prefix+"!").Scan(&run)
	return moment(run), err
}
