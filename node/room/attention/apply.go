package attention

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"stoa/node/out/pay"
	"stoa/protocol"
	"stoa/storage"
)

// Apply applies one event of a payment provider: from a webhook, from the poller, or from an owner
// who confirms a payment. Events come more than once, late and in any order; the outcome says in
// words what became of one. No event moves a bid backwards.
func (a *Attention) Apply(ctx context.Context, tx *storage.Tx, account *storage.PaymentAccount, ev pay.Event) (outcome string, err error) {
	switch ev.Kind {
	case pay.RefundDone, pay.RefundFailed:
		return a.applyRefund(ctx, tx, account, ev)
	case pay.Paid, pay.Partial:
	default:
		return "nothing to do: " + string(ev.Kind), nil
	}
	id, _, ok := pay.ParseRef(ev.Ref)
	if !ok {
		return "unknown reference", nil
	}
	bid, board, err := locked(ctx, tx, id)
	if errors.Is(err, storage.ErrNotFound) || err == nil && bid.Account != account.ID {
		return "unknown reference", nil
	}
	if err != nil {
		return "", err
	}
	payment := &storage.StoredPayment{
		Board: board.ID, Bid: bid.ID, Account: account.ID, Provider: account.Provider, Payee: payeeOf(account), PaymentID: ev.PaymentID,
		Reference: ev.Reference, Paise: ev.AmountPaise, Currency: ev.Currency, Test: bid.Test, PaidAt: ev.OccurredAt,
	}
	if err := tx.Payments().Insert(ctx, payment); errors.Is(err, storage.ErrExists) {
		return "a repeat", nil
	} else if err != nil {
		return "", err
	}
	if err := a.eventsBefore(ctx, tx, account, ev.PaymentID); err != nil {
		return "", err
	}
	bid.Paid = true
	if err := a.decided(ctx, tx, bid); err != nil {
		return "", err
	}
	switch {
	case ev.Currency != protocol.Rupee:
		return "another currency", a.giveBack(ctx, tx, bid, payment, payment.Paise, "paid in another currency")
	case !bid.State.May(protocol.BidLive):
		return "paid twice", a.giveBack(ctx, tx, bid, payment, payment.Paise, "the bid was paid more than once")
	case ev.AmountPaise < bid.Paise:
		return "paid in part", a.giveBack(ctx, tx, bid, payment, payment.Paise, "less was paid than the bid")
	}
	return a.place(ctx, tx, bid, board, payment)
}

// payeeOf returns what the payment ids of an account are unique within: for UPI the address, which
// several profiles may share, otherwise the account itself.
func payeeOf(account *storage.PaymentAccount) string {
	if account.Provider == protocol.PayUPI {
		return strings.ToLower(account.VPA)
	}
	return account.ID
}

// giveBack stores that money of a payment goes back without moving the bid.
func (a *Attention) giveBack(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, payment *storage.StoredPayment, paise int64, why string) error {
	if err := tx.Bids().Save(ctx, bid); err != nil {
		return err
	}
	return a.owe(ctx, tx, bid, payment, paise, why, false)
}

// place decides about a paid bid: it goes live, or all of its money goes back.
func (a *Attention) place(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, board *storage.AttentionBoard,
	payment *storage.StoredPayment) (string, error) {
	own := 0
	if bid.Slot > 0 && (bid.State == protocol.BidClaimed || !payment.PaidAt.After(bid.HoldUntil.Add(protocol.HoldGrace))) {
		own = bid.Slot
	} else if bid.Slot > 0 && !bid.HoldUntil.After(tx.Now) {
		if err := a.endHold(ctx, tx, bid); err != nil {
			return "", err
		}
	} else if bid.Slot > 0 {
		own = bid.Slot // the provider's clock is ahead
	}
	if err := a.endDue(ctx, tx, board, bid.ID); err != nil {
		return "", err
	}
	view, err := tx.AttentionBoards().View(ctx, board, bid.ID)
	if err != nil {
		return "", err
	}
	verdict := view.Settle(bid.Paise, bid.Terms.Step, own, tx.Now)
	if !board.Open || !verdict.Live {
		if err := a.move(ctx, tx, bid, protocol.BidRefundDue, "paid, and no slot could be had"); err != nil {
			return "", err
		}
		return "no slot", a.owe(ctx, tx, bid, payment, payment.Paise, "no slot could be had", true)
	}
	if verdict.Displaces != nil {
		if err := a.displace(ctx, tx, verdict.Displaces.ID); err != nil {
			return "", err
		}
	}
	if err := tx.Payments().Place(ctx, payment); err != nil {
		return "", err
	}
	if err := a.goLive(ctx, tx, bid, board, verdict.Slot); err != nil {
		return "", err
	}
	if err := a.receipt(ctx, tx, bid, board, payment); err != nil {
		return "", err
	}
	switch excess := protocol.ExcessRefund(payment.Paise, bid.Paise); {
	case excess > 0:
		return "live, paid too much", a.owe(ctx, tx, bid, payment, excess, "more was paid than the bid", false)
	case payment.Paise > bid.Paise:
		return "live, paid less than a rupee too much, which stays", nil
	}
	return "live", nil
}

// displace takes the slot of a live bid, which gets its money back for the unused part of its time.
func (a *Attention) displace(ctx context.Context, tx *storage.Tx, id string) error {
	bid, err := tx.Bids().ByID(ctx, id)
	if err != nil {
		return err
	}
	kept, err := keptOf(ctx, tx, bid)
	if err != nil {
		return err
	}
	back := protocol.UnusedRefund(kept, bid.LiveAt, bid.EndsAt, tx.Now, bid.Terms.FullRefundHours)
	if err := a.move(ctx, tx, bid, protocol.BidOutbid, "displaced by a higher bid"); err != nil {
		return err
	}
	return a.oweWhole(ctx, tx, bid, back, "displaced before its time was over")
}

// keptOf returns how much of a live bid the owner still has: its amount without what was sent back at the provider.
func keptOf(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) (int64, error) {
	refunds, err := tx.Refunds().OfBid(ctx, bid.ID)
	kept := bid.Paise
	for _, r := range refunds {
		if r.Whole {
			kept -= r.Paise
		}
	}
	return kept, err
}

// oweWhole stores the refund of a bid that was live. Nothing is stored for an amount of 0.
func (a *Attention) oweWhole(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, paise int64, why string) error {
	if paise == 0 {
		return nil
	}
	all, err := tx.Payments().OfBid(ctx, bid.ID)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Placed {
			return a.owe(ctx, tx, bid, &all[i], paise, why, true)
		}
	}
	return fmt.Errorf("bid %s was live without a payment", bid.ID)
}

// receipt numbers the receipt of a payment that got a slot.
func (a *Attention) receipt(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, board *storage.AttentionBoard, payment *storage.StoredPayment) error {
	account, err := tx.PaymentAccounts().ByID(ctx, payment.Account)
	if err != nil {
		return err
	}
	profile, err := tx.Profiles().Own(ctx, board.Handle)
	if err != nil {
		return err
	}
	year := protocol.FinancialYearOf(tx.Now)
	r := protocol.Receipt{
		FinancialYear: year.String(), IssuedAt: tx.Now, Payer: bid.Author.Name, Amount: rupees(bid.Paise), Provider: string(payment.Provider),
		Payee:     protocol.ReceiptPayee{Name: firstOf(account.LegalName, account.PayeeName, profile.Draft.Name), Address: account.Address, GSTIN: account.GSTIN},
		PaymentID: payment.PaymentID, Reference: payment.Reference, PaidAt: payment.PaidAt, Board: board.Handle, Bid: bid.ID,
		SlotFrom: &bid.LiveAt, SlotUntil: &bid.EndsAt, Test: bid.Test, Notice: protocol.ReceiptNotice, Untrusted: true,
	}
	if rate, fault := protocol.Decimal(account.GSTPercent).Paise(); account.GSTPercent != "" && fault == nil {
		r.Tax = protocol.TaxOf(bid.Paise, rate)
	}
	if err := tx.Payments().AddReceipt(ctx, board.ID, payment.ID, year, &r); err != nil {
		return err
	}
	return tellPayer(ctx, tx, bid, &r)
}

// tellPayer notifies the bidder, when a profile of this node bid, of the receipt.
func tellPayer(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, r *protocol.Receipt) error {
	if !bid.Author.Verified || bid.Author.Node != nil || bid.Author.Handle == nil {
		return nil
	}
	title := "Receipt " + r.Number + " of " + protocol.FormatRupees(bid.Paise) + " to @" + r.Board
	if r.Test {
		title = "TEST: " + title
	}
	return tx.Notify(ctx, protocol.Notice{Handle: *bid.Author.Handle, Event: protocol.ReceiptIssued, Subject: bid.ID, Title: title})
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}
