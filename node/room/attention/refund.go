package attention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stoa/node/out/pay"
	"stoa/protocol"
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

// owe stores that money goes back, and enqueues the job that makes the refund. whole says that it
// is the money of the bid itself, whose state follows the refund. What the provider does not send
// back, such as money paid by UPI, or less than a rupee, is a task of the owner at once.
func (a *Attention) owe(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, payment *storage.StoredPayment, paise int64, why string,
	whole bool) error {
	r := &storage.StoredRefund{
		Board: bid.Board, Bid: bid.ID, Payment: payment.ID, Paise: paise, Currency: payment.Currency, Why: why, Whole: whole,
		State: storage.RefundDue, Until: tx.Now.Add(refundFor),
	}
	if err := tx.Refunds().Insert(ctx, r); err != nil {
		return err
	}
	provider, err := a.refunder(ctx, tx, payment, paise)
	if err != nil {
		return err
	}
	if provider != nil {
		return enqueue(ctx, tx, storage.RefundJob, "pay:"+bid.Account, subject{ID: r.ID}, tx.Now)
	}
	board, err := tx.AttentionBoards().ByID(ctx, bid.Board)
	if err != nil {
		return err
	}
	return a.byHand(ctx, tx, bid, board, r)
}

// refunder returns the provider that sends an amount of a payment back; nil when it cannot.
func (a *Attention) refunder(ctx context.Context, tx *storage.Tx, payment *storage.StoredPayment, paise int64) (pay.Provider, error) {
	account, err := tx.PaymentAccounts().ByID(ctx, payment.Account)
	if err != nil {
		return nil, err
	}
	provider, err := a.provider(account)
	if err != nil || provider.Caps().AdmitRefund(paise) != nil {
		return nil, nil // an account that the node cannot use refunds nothing
	}
	return provider, nil
}

// byHand makes a refund a task of the owner.
func (a *Attention) byHand(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, board *storage.AttentionBoard, r *storage.StoredRefund) error {
	if r.Whole && bid.State.May(protocol.BidRefunding) {
		if err := a.move(ctx, tx, bid, protocol.BidRefunding, "the owner has to make the refund"); err != nil {
			return err
		}
	}
	r.State = storage.RefundManual
	if err := tx.Refunds().Save(ctx, r); err != nil {
		return err
	}
	return notify(ctx, tx, board, protocol.BidRefundByHand, bid, noticeTitle("A refund to make: bid", bid))
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
func (a *Attention) Refund(ctx context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	var r *storage.StoredRefund
	var payment *storage.StoredPayment
	var provider pay.Provider
	err := a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		r, payment, provider, err = a.order(ctx, tx, s)
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
	return func(ctx context.Context, tx *storage.Tx) error { return a.refunded(ctx, tx, s, made, err) }, nil
}

// order returns a refund that the provider is to be asked for; nil when there is nothing to ask.
func (a *Attention) order(ctx context.Context, tx *storage.Tx, s subject) (*storage.StoredRefund, *storage.StoredPayment, pay.Provider, error) {
	r, err := tx.Refunds().ByID(ctx, s.ID)
	if err != nil {
		return nil, nil, nil, err
	}
	bid, board, err := locked(ctx, tx, r.Bid)
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
	provider, err := a.refunder(ctx, tx, payment, r.Paise)
	if err != nil {
		return nil, nil, nil, err
	}
	if provider == nil { // such as after the owner deleted the account's keys
		return nil, nil, nil, a.byHand(ctx, tx, bid, board, r)
	}
	if r.Whole && bid.State.May(protocol.BidRefunding) {
		if err := a.move(ctx, tx, bid, protocol.BidRefunding, "the refund was ordered"); err != nil {
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
func over(r *storage.StoredRefund, s subject) bool {
	return r.State == storage.RefundDone || r.State == storage.RefundManual || r.Round != s.N
}

// refunded stores what a provider answered about a refund, and enqueues what follows.
func (a *Attention) refunded(ctx context.Context, tx *storage.Tx, s subject, made pay.Refund, failed error) error {
	r, err := tx.Refunds().ByID(ctx, s.ID)
	if err != nil {
		return err
	}
	bid, board, err := locked(ctx, tx, r.Bid)
	if err != nil {
		return err
	}
	if r, err = tx.Refunds().ByID(ctx, s.ID); err != nil || over(r, s) {
		return err
	}
	if made.ID != "" {
		r.Reference, r.Unsure = made.ID, false
	}
	next := subject{ID: r.ID, N: r.Round, Try: s.Try + 1}
	switch {
	case errors.Is(failed, pay.ErrTemporary):
		r.LastError = failed.Error()
		wait := max(netx.Jitter(netx.Backoff(moneyFirst, moneyMost, s.Try+1)), pay.RetryAfter(failed))
		return errors.Join(tx.Refunds().Save(ctx, r), enqueue(ctx, tx, storage.RefundJob, "pay:"+bid.Account, next, tx.Now.Add(wait)))
	case failed != nil:
		r.LastError = failed.Error()
		if r.Reference == "" && !r.Unsure { // nothing was made under this key, and nothing will be
			next = again(r)
		}
		return a.refundRefused(ctx, tx, bid, board, r, next)
	case made.Status == pay.RefundNot:
		r.LastError = "refund " + made.ID + " failed at the payment provider"
		return a.refundRefused(ctx, tx, bid, board, r, again(r))
	case made.Status == pay.RefundOK:
		return a.finish(ctx, tx, bid, r, r.Reference)
	}
	r.LastError = ""
	return errors.Join(tx.Refunds().Save(ctx, r), enqueue(ctx, tx, storage.RefundJob, "pay:"+bid.Account, next, tx.Now.Add(refundLook)))
}

// again makes a refund ready to be made under the next key, and returns its job.
func again(r *storage.StoredRefund) subject {
	r.Round, r.Reference, r.Unsure = r.Round+1, "", false
	return subject{ID: r.ID, N: r.Round}
}

// refundRefused notes that the provider refused a refund, or that it failed there. It is tried again
// each day for a week; the owner may make it by hand at any time.
func (a *Attention) refundRefused(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, board *storage.AttentionBoard, r *storage.StoredRefund,
	next subject) error {
	r.State = storage.RefundFailed
	if err := tx.Refunds().Save(ctx, r); err != nil {
		return err
	}
	if r.Whole && bid.State.May(protocol.BidRefundFailed) {
		if err := a.move(ctx, tx, bid, protocol.BidRefundFailed, "the payment provider refused the refund"); err != nil {
			return err
		}
	}
	if err := notify(ctx, tx, board, protocol.BidRefundByHand, bid, noticeTitle("A refund failed: bid", bid)); err != nil {
		return err
	}
	if at := tx.Now.Add(refundEvery); !at.After(r.Until) {
		return enqueue(ctx, tx, storage.RefundJob, "pay:"+bid.Account, next, at)
	}
	return nil
}

// finish notes that a refund is made.
func (a *Attention) finish(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, r *storage.StoredRefund, reference string) error {
	r.State, r.Reference, r.LastError, r.DoneAt = storage.RefundDone, reference, "", new(tx.Now)
	if err := tx.Refunds().Save(ctx, r); err != nil {
		return err
	}
	if !r.Whole {
		return nil
	}
	return a.sentBack(ctx, tx, bid)
}

// sentBack moves a bid whose money is back, unless its state says so already or it is live.
func (a *Attention) sentBack(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) error {
	if bid.State.May(protocol.BidRefunding) && bid.State != protocol.BidRefundFailed {
		if err := a.move(ctx, tx, bid, protocol.BidRefunding, ""); err != nil {
			return err
		}
	}
	if !bid.State.May(protocol.BidRefunded) {
		return nil
	}
	if err := a.move(ctx, tx, bid, protocol.BidRefunded, "the money was sent back"); err != nil {
		return err
	}
	return a.dropSecrets(ctx, tx, bid.Account)
}

// dropSecrets deletes the secrets of a retired account that no bid needs any more.
func (a *Attention) dropSecrets(ctx context.Context, tx *storage.Tx, account string) error {
	owes, err := tx.PaymentAccounts().Owes(ctx, account)
	if err != nil || owes {
		return err
	}
	return tx.PaymentAccounts().DropSecrets(ctx, account)
}
