package attention

import (
	"context"
	"errors"
	"time"

	"stoa/node/provider/pay"
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
// is the money of the bid itself, whose state follows the refund. What providers do not move, below
// a rupee, is kept.
func (a *Attention) owe(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, payment *storage.StoredPayment, paise int64, why string, whole bool) error {
	r := &storage.StoredRefund{
		Board: bid.Board, Bid: bid.ID, Payment: payment.ID, Paise: paise, Why: why, Whole: whole, State: storage.RefundDue, Until: tx.Now.Add(refundFor),
	}
	if err := tx.InsertRefund(ctx, r); err != nil {
		return err
	}
	return enqueue(ctx, tx, storage.RefundJob, "pay:"+bid.Account, subject{ID: r.ID}, tx.Now)
}

// Refund makes one refund. It is ordered first in a transaction of its own, so that the same key is
// used again when the process dies during the call.
func (a *Attention) Refund(ctx context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	s, err := subjectOf(j)
	if err != nil {
		return nil, err
	}
	var r *storage.StoredRefund
	var payment *storage.StoredPayment
	var provider pay.Provider
	err = a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		r, payment, provider, err = a.order(ctx, tx, s.ID)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) || err == nil && r == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var made pay.Refund
	if r.Reference == "" || r.State == storage.RefundFailed { // the same key: a refund that was made after all is not made twice
		made, err = provider.Refund(ctx, payment.PaymentID, r.ID, r.Paise)
	} else {
		made, err = provider.FetchRefund(ctx, r.Reference)
	}
	return func(ctx context.Context, tx *storage.Tx) error { return a.refunded(ctx, tx, s, made, err) }, nil
}

// order returns a refund that the provider is to be asked for; nil when there is nothing to ask.
func (a *Attention) order(ctx context.Context, tx *storage.Tx, id string) (*storage.StoredRefund, *storage.StoredPayment, pay.Provider, error) {
	r, err := tx.RefundByID(ctx, id)
	if err != nil {
		return nil, nil, nil, err
	}
	bid, board, err := locked(ctx, tx, r.Bid)
	if err != nil {
		return nil, nil, nil, err
	}
	if r, err = tx.RefundByID(ctx, id); err != nil || r.State == storage.RefundDone || r.State == storage.RefundManual {
		return nil, nil, nil, err
	}
	payment, err := tx.PaymentByID(ctx, r.Payment)
	if err != nil {
		return nil, nil, nil, err
	}
	account, err := tx.PaymentAccountByID(ctx, payment.Account)
	if err != nil {
		return nil, nil, nil, err
	}
	provider, err := a.provider(account)
	manual := err != nil || provider.Caps().AdmitRefund(r.Paise) != nil
	if r.Whole && bid.State.May(protocol.BidRefunding) && bid.State != protocol.BidRefundFailed {
		note := "the refund was ordered"
		if manual {
			note = "the owner has to make the refund"
		}
		if err := a.move(ctx, tx, bid, protocol.BidRefunding, note); err != nil {
			return nil, nil, nil, err
		}
	}
	if manual {
		r.State = storage.RefundManual
		if err := tx.SaveRefund(ctx, r); err != nil {
			return nil, nil, nil, err
		}
		return nil, nil, nil, tx.Notify(ctx, protocol.Notice{Handle: board.Handle, Event: protocol.BidRefundByHand, Subject: bid.ID, Title: noticeTitle("A refund to make: bid", bid)})
	}
	if r.State == storage.RefundDue {
		r.State = storage.RefundOrdered
	}
	r.Tries++
	return r, payment, provider, tx.SaveRefund(ctx, r)
}

// refunded stores what a provider answered about a refund, and enqueues what follows.
func (a *Attention) refunded(ctx context.Context, tx *storage.Tx, s subject, made pay.Refund, failed error) error {
	r, err := tx.RefundByID(ctx, s.ID)
	if err != nil {
		return err
	}
	bid, board, err := locked(ctx, tx, r.Bid)
	if err != nil {
		return err
	}
	if r, err = tx.RefundByID(ctx, s.ID); err != nil || r.State == storage.RefundDone || r.State == storage.RefundManual {
		return err
	}
	if made.ID != "" {
		r.Reference = made.ID
	}
	next := subject{ID: r.ID, Try: s.Try + 1}
	switch {
	case errors.Is(failed, pay.ErrTemporary):
		r.LastError = failed.Error()
		wait := max(netx.Jitter(netx.Backoff(moneyFirst, moneyMost, s.Try+1)), pay.RetryAfter(failed))
		return errors.Join(tx.SaveRefund(ctx, r), enqueue(ctx, tx, storage.RefundJob, "pay:"+bid.Account, next, tx.Now.Add(wait)))
	case failed != nil || made.Status == pay.RefundNot:
		r.LastError = "the payment provider refused the refund"
		if failed != nil {
			r.LastError = failed.Error()
		}
		return a.refundRefused(ctx, tx, bid, board, r, next)
	case made.Status == pay.RefundOK:
		return a.finish(ctx, tx, bid, r, r.Reference)
	}
	r.LastError = ""
	return errors.Join(tx.SaveRefund(ctx, r), enqueue(ctx, tx, storage.RefundJob, "pay:"+bid.Account, next, tx.Now.Add(refundLook)))
}

// refundRefused notes that the provider refused a refund. It is tried again each day for a week
// under the same key; the owner may make it by hand at any time.
func (a *Attention) refundRefused(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, board *storage.AttentionBoard, r *storage.StoredRefund, next subject) error {
	first := r.State != storage.RefundFailed
	r.State = storage.RefundFailed
	if err := tx.SaveRefund(ctx, r); err != nil {
		return err
	}
	if r.Whole && bid.State.May(protocol.BidRefundFailed) {
		if err := a.move(ctx, tx, bid, protocol.BidRefundFailed, "the payment provider refused the refund"); err != nil {
			return err
		}
	}
	if first {
		if err := tx.Notify(ctx, protocol.Notice{Handle: board.Handle, Event: protocol.BidRefundByHand, Subject: bid.ID, Title: noticeTitle("A refund failed: bid", bid)}); err != nil {
			return err
		}
	}
	if at := tx.Now.Add(refundEvery); !at.After(r.Until) {
		return enqueue(ctx, tx, storage.RefundJob, "pay:"+bid.Account, next, at)
	}
	return nil
}

// finish notes that a refund is made.
func (a *Attention) finish(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, r *storage.StoredRefund, reference string) error {
	r.State, r.Reference, r.LastError, r.DoneAt = storage.RefundDone, reference, "", new(tx.Now)
	if err := tx.SaveRefund(ctx, r); err != nil {
		return err
	}
	if !r.Whole {
		return nil
	}
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
	owes, err := tx.PaymentAccountOwes(ctx, account)
	if err != nil || owes {
		return err
	}
	return tx.DropPaymentSecrets(ctx, account)
}

// applyRefund applies the news of a provider about a refund.
func (a *Attention) applyRefund(ctx context.Context, tx *storage.Tx, account *storage.PaymentAccount, ev pay.Event) (string, error) {
	r, err := tx.RefundByReference(ctx, payeeOf(account), ev.RefundID)
	if errors.Is(err, storage.ErrNotFound) || ev.RefundID == "" {
		return "unknown refund", nil
	}
	if err != nil {
		return "", err
	}
	bid, board, err := locked(ctx, tx, r.Bid)
	if err != nil {
		return "", err
	}
	if r, err = tx.RefundByID(ctx, r.ID); err != nil || r.State == storage.RefundDone {
		return "a repeat", err
	}
	if ev.Kind == pay.RefundDone {
		return "refunded", a.finish(ctx, tx, bid, r, r.Reference)
	}
	r.LastError = "the payment provider reports that the refund failed"
	return "the refund failed", a.refundRefused(ctx, tx, bid, board, r, subject{ID: r.ID, Try: r.Tries + 100})
}
