package money

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stoa/node/out/pay"
	"stoa/protocol/netx"
	"stoa/storage"
)

const (
	refundFor   = 7 * 24 * time.Hour // a refused refund is tried so long, each day
	refundEvery = 24 * time.Hour
	refundLook  = time.Hour // an ordered one is asked after
	moneyFirst  = 15 * time.Second
	moneyMost   = time.Hour
)

// Owe stores that money goes back, and enqueues the job that makes the refund. whole says that it
// is the money of the subject itself, whose state follows the refund. What the provider does not send
// back, such as money paid by UPI, or less than a rupee, is a task of the owner at once.
func (m *Money) Owe(ctx context.Context, tx *storage.Tx, of Subject, payment *storage.StoredPayment, paise int64, why string,
	whole bool) error {
	r := &storage.StoredRefund{
		Book: payment.Book, Subject: payment.Subject, Payment: payment.ID, Paise: paise, Currency: payment.Currency, Why: why, Whole: whole,
		State: storage.RefundDue, Until: tx.Now.Add(refundFor),
	}
	if err := tx.Refunds().Insert(ctx, r); err != nil {
		return err
	}
	provider, err := m.refunder(ctx, tx, payment, paise)
	if err != nil {
		return err
	}
	if provider != nil {
		return Enqueue(ctx, tx, storage.RefundJob, "pay:"+of.Due().Account, Job{ID: r.ID}, tx.Now)
	}
	return m.byHand(ctx, tx, of, r)
}

// refunder returns the provider that sends an amount of a payment back; nil when it cannot.
func (m *Money) refunder(ctx context.Context, tx *storage.Tx, payment *storage.StoredPayment, paise int64) (pay.Provider, error) {
	account, err := tx.PaymentAccounts().ByID(ctx, payment.Account)
	if err != nil {
		return nil, err
	}
	provider, err := m.Provider(account)
	if err != nil || provider.Caps().AdmitRefund(paise) != nil {
		return nil, nil // an account that the node cannot use refunds nothing
	}
	return provider, nil
}

// byHand makes a refund a task of the owner.
func (m *Money) byHand(ctx context.Context, tx *storage.Tx, of Subject, r *storage.StoredRefund) error {
	if r.Whole {
		if err := of.Refund(ctx, tx, ByHand); err != nil {
			return err
		}
	}
	r.State = storage.RefundManual
	if err := tx.Refunds().Save(ctx, r); err != nil {
		return err
	}
	return of.TellRefund(ctx, tx, false)
}

// keyOf returns the idempotency key of a refund. A request without an answer is sent again under the
// same key, so that a refund that was made after all is not made twice; after a refund that failed
// that key would only return the failed one.
func keyOf(r *storage.StoredRefund) string {
	if r.Round == 0 {
		return r.ID
	}
	return fmt.Sprintf("%s-%d", r.ID, r.Round)
}

// Refund makes one refund. A separate transaction stores the order before the call, so that the
// same key is used again when the process dies during the call.
func (m *Money) Refund(ctx context.Context, j storage.Job, s Job) (func(context.Context, *storage.Tx) error, error) {
	var r *storage.StoredRefund
	var payment *storage.StoredPayment
	var provider pay.Provider
	err := m.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		r, payment, provider, err = m.order(ctx, tx, s)
		return err
	})
	if err != nil || r == nil {
		return nil, storage.Missing(err, nil)
	}
	var made pay.Refund
	if r.Reference == "" {
		made, err = provider.Refund(ctx, payment.PaymentID, keyOf(r), r.Paise)
	} else {
		made, err = provider.FetchRefund(ctx, r.Reference)
	}
	return func(ctx context.Context, tx *storage.Tx) error { return m.refunded(ctx, tx, s, made, err) }, nil
}

// order returns a refund that the provider is to be asked for; nil when there is nothing to ask.
func (m *Money) order(ctx context.Context, tx *storage.Tx, s Job) (*storage.StoredRefund, *storage.StoredPayment, pay.Provider, error) {
	r, err := tx.Refunds().ByID(ctx, s.ID)
	if err != nil {
		return nil, nil, nil, err
	}
	of, err := m.Subject(ctx, tx, r.Subject)
	if err != nil {
		return nil, nil, nil, err
	}
	if r, err = tx.Refunds().ByID(ctx, s.ID); err != nil || over(r, s) {
		return nil, nil, nil, err
	}
	payment, err := tx.Payments().ByID(ctx, r.Payment)
	if err != nil {
		return nil, nil, nil, err
	}
	provider, err := m.refunder(ctx, tx, payment, r.Paise)
	if err != nil {
		return nil, nil, nil, err
	}
	if provider == nil { // such as after the owner deleted the account's keys
		return nil, nil, nil, m.byHand(ctx, tx, of, r)
	}
	if r.Whole {
		if err := of.Refund(ctx, tx, Ordered); err != nil {
			return nil, nil, nil, err
		}
	}
	r.Unsure = r.Unsure || r.State == storage.RefundOrdered && r.Reference == ""
	r.State = storage.RefundOrdered
	r.Tries++
	return r, payment, provider, tx.Refunds().Save(ctx, r)
}

// over reports whether a job about a refund has nothing to do any more: the owner makes it, it is
// made, or another job has taken it over since it failed.
func over(r *storage.StoredRefund, s Job) bool {
	return r.State == storage.RefundDone || r.State == storage.RefundManual || r.Round != s.N
}

// refunded stores what a provider answered about a refund, and enqueues what follows.
func (m *Money) refunded(ctx context.Context, tx *storage.Tx, s Job, made pay.Refund, failed error) error {
	r, err := tx.Refunds().ByID(ctx, s.ID)
	if err != nil {
		return err
	}
	of, err := m.Subject(ctx, tx, r.Subject)
	if err != nil {
		return err
	}
	if r, err = tx.Refunds().ByID(ctx, s.ID); err != nil || over(r, s) {
		return err
	}
	if made.ID != "" {
		r.Reference, r.Unsure = made.ID, false
	}
	next := Job{ID: r.ID, N: r.Round, Try: s.Try + 1}
	switch {
	case errors.Is(failed, pay.ErrTemporary):
		r.LastError = failed.Error()
		wait := max(netx.Jitter(netx.Backoff(moneyFirst, moneyMost, s.Try+1)), pay.RetryAfter(failed))
		return errors.Join(tx.Refunds().Save(ctx, r), Enqueue(ctx, tx, storage.RefundJob, "pay:"+of.Due().Account, next, tx.Now.Add(wait)))
	case failed != nil:
		r.LastError = failed.Error()
		if r.Reference == "" && !r.Unsure { // nothing was made under this key, and nothing will be
			next = again(r)
		}
		return m.refundRefused(ctx, tx, of, r, next)
	case made.Status == pay.RefundNot:
		r.LastError = "refund " + made.ID + " failed at the payment provider"
		return m.refundRefused(ctx, tx, of, r, again(r))
	case made.Status == pay.RefundOK:
		return m.Finish(ctx, tx, of, r, r.Reference)
	}
	r.LastError = ""
	return errors.Join(tx.Refunds().Save(ctx, r), Enqueue(ctx, tx, storage.RefundJob, "pay:"+of.Due().Account, next, tx.Now.Add(refundLook)))
}

// again makes a refund ready to be made under the next key, and returns its job.
func again(r *storage.StoredRefund) Job {
	r.Round, r.Reference, r.Unsure = r.Round+1, "", false
	return Job{ID: r.ID, N: r.Round}
}

// refundRefused notes that the provider refused a refund, or that it failed there. It is tried again
// each day for a week; the owner may make it by hand at any time.
func (m *Money) refundRefused(ctx context.Context, tx *storage.Tx, of Subject, r *storage.StoredRefund,
	next Job) error {
	r.State = storage.RefundFailed
	if err := tx.Refunds().Save(ctx, r); err != nil {
		return err
	}
	if r.Whole {
		if err := of.Refund(ctx, tx, Refused); err != nil {
			return err
		}
	}
	if err := of.TellRefund(ctx, tx, true); err != nil {
		return err
	}
	if at := tx.Now.Add(refundEvery); !at.After(r.Until) {
		return Enqueue(ctx, tx, storage.RefundJob, "pay:"+of.Due().Account, next, at)
	}
	return nil
}

// Finish notes that a refund is made.
func (m *Money) Finish(ctx context.Context, tx *storage.Tx, of Subject, r *storage.StoredRefund, reference string) error {
	r.State, r.Reference, r.LastError, r.DoneAt = storage.RefundDone, reference, "", new(tx.Now)
	if err := tx.Refunds().Save(ctx, r); err != nil || !r.Whole {
		return err
	}
	return m.sentBack(ctx, tx, of)
}

// sentBack tells a subject that its money is back.
func (m *Money) sentBack(ctx context.Context, tx *storage.Tx, of Subject) error {
	if err := of.Refund(ctx, tx, Made); err != nil {
		return err
	}
	return m.DropSecrets(ctx, tx, of.Due().Account)
}

// DropSecrets deletes the secrets of a retired account that nothing needs any more.
func (m *Money) DropSecrets(ctx context.Context, tx *storage.Tx, account string) error {
	owes, err := tx.PaymentAccounts().Owes(ctx, account)
	if err != nil || owes {
		return err
	}
	return tx.PaymentAccounts().DropSecrets(ctx, account)
}
