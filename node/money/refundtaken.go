package money

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"stoa/node/out/pay"
	"stoa/protocol"
	"stoa/storage"
)

// Refunds that the node learns of from the provider: its own, and those that the owner makes in the provider's own pages,
// which go into the books as they are.

// unknownPayment is the outcome of a refund's event that comes before its payment is known; Apply takes it up again.
const unknownPayment = "unknown payment"

// applyRefund applies the news of a provider about a refund. One that is done and unknown here is one whose answer was
// lost, or one that the owner made at the provider.
func (m *Money) applyRefund(ctx context.Context, tx *storage.Tx, account *storage.PaymentAccount, ev pay.Event) (string, error) {
	if ev.RefundID == "" {
		return "unknown refund", nil
	}
	r, err := tx.Refunds().ByReference(ctx, PayeeOf(account), ev.RefundID)
	switch {
	case errors.Is(err, storage.ErrNotFound) && ev.Kind == pay.RefundDone:
		return m.takeIn(ctx, tx, account, ev)
	case errors.Is(err, storage.ErrNotFound):
		return "unknown refund", nil
	case err != nil:
		return "", err
	}
	of, err := m.Subject(ctx, tx, r.Subject)
	if err != nil {
		return "", err
	}
	if r, err = tx.Refunds().ByID(ctx, r.ID); err != nil || r.State == storage.RefundDone {
		return "a repeat", err
	}
	if ev.Kind == pay.RefundDone {
		return "refunded", m.Finish(ctx, tx, of, r, ev.RefundID)
	}
	r.LastError = "refund " + ev.RefundID + " failed at the payment provider"
	return "the refund failed", m.refundRefused(ctx, tx, of, r, again(r))
}

// takeIn takes a refund into the books that was made at the provider and has no row here. It is the refund of that amount
// that is still to be made, if there is one; otherwise more goes back than was owed.
func (m *Money) takeIn(ctx context.Context, tx *storage.Tx, account *storage.PaymentAccount, ev pay.Event) (string, error) {
	payment, err := tx.Payments().AtProvider(ctx, account.Provider, PayeeOf(account), ev.PaymentID)
	if errors.Is(err, storage.ErrNotFound) {
		return unknownPayment, nil
	}
	if err != nil {
		return "", err
	}
	of, err := m.Subject(ctx, tx, payment.Subject)
	if err != nil {
		return "", err
	}
	refunds, err := tx.Refunds().OfPayment(ctx, payment.ID)
	if err != nil {
		return "", err
	}
	left, owed := payment.Paise, int64(0) // not sent back yet; to be sent back
	var open []*storage.StoredRefund
	for i := range refunds {
		r := &refunds[i]
		switch {
		case r.Reference == ev.RefundID:
			return "a repeat", nil
		case r.State == storage.RefundDone:
			left -= r.Paise
			continue
		}
		owed += r.Paise
		open = append(open, r)
	}
	paise := min(ev.AmountPaise, left)
	switch {
	case ev.Currency != payment.Currency:
		return "refunded in another currency", nil
	case paise <= 0:
		return "refunded again: all of the payment had gone back", nil
	}
	for _, r := range open {
		if r.Paise == paise && r.Reference == "" {
			return "refunded", m.Finish(ctx, tx, of, r, ev.RefundID)
		}
	}
	rest, err := m.settle(ctx, tx, of, open, paise, paise-(left-owed), ev.RefundID)
	if err != nil || rest == 0 {
		return "refunded", err
	}
	return "refunded by the owner", m.addRefund(ctx, tx, of, payment, rest, ev.RefundID)
}

// settle takes what does not fit beside the open refunds of a payment out of them, the oldest first and those that the provider
// knows last: over of paise. A refund that is only partly made so is made anew for the rest. It returns what of paise is no
// open refund's.
func (m *Money) settle(ctx context.Context, tx *storage.Tx, of Subject, open []*storage.StoredRefund,
	paise, over int64, reference string) (rest int64, err error) {
	slices.SortStableFunc(open, func(x, y *storage.StoredRefund) int { return cmp.Compare(len(x.Reference), len(y.Reference)) })
	rest = paise
	for _, r := range open {
		switch {
		case over <= 0:
			return rest, nil
		case r.Paise <= over:
			over, rest = over-r.Paise, rest-r.Paise
			err = m.Finish(ctx, tx, of, r, reference)
		default:
			r.Paise -= over
			over = 0
			err = m.reorder(ctx, tx, of, r)
		}
		if err != nil {
			return 0, err
		}
	}
	return rest, nil
}

// reorder makes an open refund, whose amount has changed, anew under another key. One that waits for the owner goes on waiting.
func (m *Money) reorder(ctx context.Context, tx *storage.Tx, of Subject, r *storage.StoredRefund) error {
	if r.State == storage.RefundManual {
		return tx.Refunds().Save(ctx, r)
	}
	payment, err := tx.Payments().ByID(ctx, r.Payment)
	if err != nil {
		return err
	}
	next := again(r)
	provider, err := m.refunder(ctx, tx, payment, r.Paise)
	if err != nil {
		return err
	}
	if provider == nil {
		return m.byHand(ctx, tx, of, r)
	}
	r.State = storage.RefundDue
	return errors.Join(tx.Refunds().Save(ctx, r), Enqueue(ctx, tx, storage.RefundJob, "pay:"+of.Due().Account, next, tx.Now))
}

// addRefund adds a refund to the books that nobody owed. The subject learns when all of its money is back.
func (m *Money) addRefund(ctx context.Context, tx *storage.Tx, of Subject, payment *storage.StoredPayment, paise int64,
	reference string) error {
	r := &storage.StoredRefund{
		Book: payment.Book, Subject: payment.Subject, Payment: payment.ID, Paise: paise, Currency: payment.Currency,
		Why:   "refunded by the owner at the payment provider",
		Whole: payment.Placed, State: storage.RefundDue, Until: tx.Now,
	}
	if err := tx.Refunds().Insert(ctx, r); err != nil {
		return err
	}
	r.State, r.Reference, r.DoneAt = storage.RefundDone, reference, new(tx.Now)
	if err := tx.Refunds().Save(ctx, r); err != nil || !payment.Placed {
		return err
	}
	all, err := tx.Refunds().OfPayment(ctx, payment.ID)
	back := int64(0)
	for _, r := range all {
		if r.State != storage.RefundDone && r.Whole { // the subject's state follows that one
			return err
		}
		back += r.Paise
	}
	if err != nil {
		return err
	}
	if !protocol.SentBack(payment.Paise, back) {
		return of.Refund(ctx, tx, Part)
	}
	if err := of.TakenBack(ctx, tx, r.Why); err != nil {
		return err
	}
	return m.sentBack(ctx, tx, of)
}

// eventsBefore applies the events about a payment that came before it was known.
func (m *Money) eventsBefore(ctx context.Context, tx *storage.Tx, account *storage.PaymentAccount, payment string) error {
	events, err := tx.Payments().ReopenEvents(ctx, account.ID, payment, unknownPayment)
	for _, id := range events {
		err = errors.Join(err, Enqueue(ctx, tx, storage.PayEventJob, "pay:"+account.ID, Job{ID: account.ID, N: int(id), Try: 1}, tx.Now))
	}
	return err
}
