package money

import (
	"context"
	"errors"

	"stoa/node/out/pay"
	"stoa/protocol"
	"stoa/storage"
)

// Apply applies one event of a payment provider: from a webhook, from the poller, or from an owner
// who confirms a payment. Events come more than once, late and in any order; the outcome says in
// words what became of one. No event moves a subject backwards.
func (m *Money) Apply(ctx context.Context, tx *storage.Tx, account *storage.PaymentAccount, ev pay.Event) (outcome string, err error) {
	switch ev.Kind {
	case pay.RefundDone, pay.RefundFailed:
		return m.applyRefund(ctx, tx, account, ev)
	case pay.Paid, pay.Partial:
	default:
		return "nothing to do: " + string(ev.Kind), nil
	}
	id, _, ok := pay.ParseRef(ev.Ref)
	if !ok {
		return "unknown reference", nil
	}
	of, err := m.Subject(ctx, tx, id)
	if errors.Is(err, storage.ErrNotFound) || err == nil && of.Due().Account != account.ID {
		return "unknown reference", nil
	}
	if err != nil {
		return "", err
	}
	due := of.Due()
	payment := &storage.StoredPayment{
		Book: due.Book, Subject: due.ID, Account: account.ID, Provider: account.Provider, Payee: PayeeOf(account), PaymentID: ev.PaymentID,
		Reference: ev.Reference, Paise: ev.AmountPaise, Currency: ev.Currency, Test: due.Test, PaidAt: ev.OccurredAt,
	}
	if err := tx.Payments().Insert(ctx, payment); errors.Is(err, storage.ErrExists) {
		return "a repeat", nil
	} else if err != nil {
		return "", err
	}
	if err := m.eventsBefore(ctx, tx, account, ev.PaymentID); err != nil {
		return "", err
	}
	if err := of.Arrived(ctx, tx); err != nil {
		return "", err
	}
	switch {
	case ev.Currency != protocol.Rupee:
		return "another currency", m.Owe(ctx, tx, of, payment, payment.Paise, "paid in another currency", false)
	case !of.Payable():
		return "paid twice", m.Owe(ctx, tx, of, payment, payment.Paise, "it was paid more than once, or is over", false)
	case ev.AmountPaise < due.Paise:
		return "paid in part", m.Owe(ctx, tx, of, payment, payment.Paise, "less was paid than was due", false)
	}
	outcome, err = of.Place(ctx, tx, payment)
	if err != nil || !payment.Placed {
		return outcome, err
	}
	switch excess := protocol.ExcessRefund(payment.Paise, due.Paise); {
	case excess > 0:
		return outcome + ", paid too much", m.Owe(ctx, tx, of, payment, excess, "more was paid than was due", false)
	case payment.Paise > due.Paise:
		return outcome + ", paid less than a rupee too much, which stays", nil
	}
	return outcome, nil
}

// Kept returns how much of a subject's money the owner still has: its amount without what was sent back at the provider.
func Kept(ctx context.Context, tx *storage.Tx, due Due) (int64, error) {
	refunds, err := tx.Refunds().Of(ctx, due.ID)
	kept := due.Paise
	for _, r := range refunds {
		if r.Whole {
			kept -= r.Paise
		}
	}
	return kept, err
}

// RefundView is a refund as answers have it.
func RefundView(r *storage.StoredRefund) protocol.BidRefund {
	return protocol.BidRefund{ID: r.ID, Amount: protocol.MoneyOf(r.Currency, r.Paise), Why: r.Why, State: string(r.State),
		Reference: r.Reference, DoneAt: r.DoneAt}
}

// Placed returns the payment that paid for a subject; nil when there is none.
func Placed(ctx context.Context, tx *storage.Tx, id string) (*storage.StoredPayment, error) {
	all, err := tx.Payments().Of(ctx, id)
	for i := range all {
		if all[i].Placed {
			return &all[i], err
		}
	}
	return nil, err
}
