package attention

import (
	"context"
	"fmt"

	"stoa/node/money"
	"stoa/protocol"
	"stoa/storage"
)

// A paid is a bid as the subject of a payment (money.Subject).
type paid struct {
	*Attention
	bid *storage.StoredBid
}

// Subject returns a bid, its board locked (money.Kind).
func (a *Attention) Subject(ctx context.Context, tx *storage.Tx, id string) (money.Subject, error) {
	bid, _, err := locked(ctx, tx, id)
	return paid{a, bid}, err
}

func (p paid) Due() money.Due {
	b := p.bid
	return money.Due{
		ID: b.ID, Book: b.Board, Account: b.Account, Paise: b.Paise, Test: b.Test, At: b.BidAt, Until: b.HoldUntil,
		What: "Attention bid on the board of @" + b.Handle, Page: p.Base + "/bids/" + b.ID,
	}
}

func (p paid) Link() *storage.PayLink                             { return &p.bid.Link }
func (p paid) SaveLink(ctx context.Context, tx *storage.Tx) error { return tx.Bids().Save(ctx, p.bid) }
func (p paid) Waits() bool                                        { return p.bid.State == protocol.BidHeld }
func (p paid) Payable() bool                                      { return p.bid.State.May(protocol.BidLive) }

// Arrived ends the dispute of the bid, whose owner has decided about it by what came in.
func (p paid) Arrived(ctx context.Context, tx *storage.Tx) error {
	p.bid.Paid = true
	if err := p.decided(ctx, tx, p.bid); err != nil {
		return err
	}
	return tx.Bids().Save(ctx, p.bid)
}

// Unlinked ends a bid that cannot be paid: it keeps no slot.
func (p paid) Unlinked(ctx context.Context, tx *storage.Tx) error {
	if err := p.move(ctx, tx, p.bid, protocol.BidLapsed, p.bid.Link.Failed); err != nil {
		return err
	}
	return p.tells(ctx, tx, "No payment link could be made: check your payment account")
}

// tells tells the owner of the board of something to do about a refund.
func (p paid) tells(ctx context.Context, tx *storage.Tx, title string) error {
	board, err := tx.AttentionBoards().ByID(ctx, p.bid.Board)
	if err != nil {
		return err
	}
	return notify(ctx, tx, board, protocol.BidRefundByHand, p.bid, title)
}

func (p paid) TellRefund(ctx context.Context, tx *storage.Tx, failed bool) error {
	what := "A refund to make: bid"
	if failed {
		what = "A refund failed: bid"
	}
	return p.tells(ctx, tx, noticeTitle(what, p.bid))
}

// Refund moves the bid to the state that a step of its refund leads to, unless it is there already or is live.
func (p paid) Refund(ctx context.Context, tx *storage.Tx, step money.Step) error {
	bid := p.bid
	to, note := protocol.BidRefunding, ""
	switch step {
	case money.Part:
		return nil
	case money.Ordered:
		note = "the refund was ordered"
	case money.ByHand:
		note = "the owner has to make the refund"
	case money.Refused:
		to, note = protocol.BidRefundFailed, "the payment provider refused the refund"
	case money.Made:
		if bid.State == protocol.BidRefundFailed {
			to = bid.State // it goes from there to refunded
		}
	}
	if to != bid.State && bid.State.May(to) {
		if err := p.move(ctx, tx, bid, to, note); err != nil {
			return err
		}
	}
	if step != money.Made || !bid.State.May(protocol.BidRefunded) {
		return nil
	}
	return p.move(ctx, tx, bid, protocol.BidRefunded, "the money was sent back")
}

// TakenBack takes a live bid off the board.
func (p paid) TakenBack(ctx context.Context, tx *storage.Tx, why string) error {
	if p.bid.State != protocol.BidLive {
		return nil
	}
	return p.takeOff(ctx, tx, p.bid, why)
}

// Place decides about a paid bid: it goes live, or all of its money goes back.
func (p paid) Place(ctx context.Context, tx *storage.Tx, payment *storage.StoredPayment) (string, error) {
	a, bid, own := p.Attention, p.bid, 0
	board, err := tx.AttentionBoards().ByID(ctx, bid.Board)
	if err != nil {
		return "", err
	}
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
		return "no slot", a.Owe(ctx, tx, p, payment, payment.Paise, "no slot could be had", true)
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
	return "live", nil
}

// displace takes the slot of a live bid, which gets its money back for the unused part of its time.
func (a *Attention) displace(ctx context.Context, tx *storage.Tx, id string) error {
	bid, err := tx.Bids().ByID(ctx, id)
	if err != nil {
		return err
	}
	kept, err := money.Kept(ctx, tx, paid{a, bid}.Due())
	if err != nil {
		return err
	}
	back := protocol.UnusedRefund(kept, bid.LiveAt, bid.EndsAt, tx.Now, bid.Terms.FullRefundHours)
	if err := a.move(ctx, tx, bid, protocol.BidOutbid, "displaced by a higher bid"); err != nil {
		return err
	}
	return a.oweWhole(ctx, tx, bid, back, "displaced before its time was over")
}

// oweWhole stores the refund of a bid that was live. Nothing is stored for an amount of 0.
func (a *Attention) oweWhole(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, paise int64, why string) error {
	if paise == 0 {
		return nil
	}
	payment, err := money.Placed(ctx, tx, bid.ID)
	if err == nil && payment == nil {
		err = fmt.Errorf("bid %s was live without a payment", bid.ID)
	}
	if err != nil {
		return err
	}
	return a.Owe(ctx, tx, paid{a, bid}, payment, paise, why, true)
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
