package attention

import (
	"context"
	"errors"

	"stoa/node/money"
	"stoa/protocol"
	"stoa/storage"
)

// ownBid returns a bid on a board of the caller, and the board, whose row is locked. Another
// owner's bid is not found.
func ownBid(ctx context.Context, tx *storage.Tx, c protocol.Caller, id string) (*storage.StoredBid, *storage.AttentionBoard, error) {
	bid, board, err := locked(ctx, tx, id)
	if errors.Is(err, storage.ErrNotFound) || err == nil && !owns(c, board.Handle) {
		return nil, nil, protocol.Errorf(protocol.NotFound, "there is no bid with that id on a board of yours")
	}
	return bid, board, err
}

func owns(c protocol.Caller, handle string) bool {
	return handle != "" && (c.Owns(handle) || c.Standing == protocol.Operator)
}

// ownBoardID returns the board of the profile that the caller acts as; nil when there never was one.
func ownBoardID(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned) (*storage.AttentionBoard, error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return nil, err
	}
	b, err := tx.AttentionBoards().ByHandle(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	return b, err
}

// ownBook returns the book of the profile that the caller acts as: the board of a person, the till of a shop; "" when there never was one.
func ownBook(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned) (book, handle string, err error) {
	b, err := ownBoardID(ctx, tx, c, in)
	if err != nil || b != nil {
		if b != nil {
			book, handle = b.ID, b.Handle
		}
		return book, handle, err
	}
	if handle, err = c.ActsAs(in.Handle); err != nil {
		return "", "", err
	}
	t, err := tx.Tills().ByHandle(ctx, handle)
	if err != nil {
		return "", handle, storage.IfMissing(err, nil)
	}
	return t.ID, handle, nil
}

// ownView returns a bid as the board's owner sees it.
func (a *Attention) ownView(ctx context.Context, tx *storage.Tx, id string) (protocol.OwnBid, error) {
	bid, err := tx.Bids().ByID(ctx, id)
	if err != nil {
		return protocol.OwnBid{}, err
	}
	if bid, err = tx.Leavings().Bid(ctx, bid); err != nil {
		return protocol.OwnBid{}, err
	}
	view, err := a.view(ctx, tx, bid)
	if err != nil {
		return protocol.OwnBid{}, err
	}
	out := protocol.OwnBid{Bid: view, UTR: protocol.OrNil(bid.UTR), Approved: bid.Approved, Payments: []protocol.OwnPayment{}}
	account, err := tx.PaymentAccounts().ByID(ctx, bid.Account)
	if err != nil {
		return out, err
	}
	out.Provider = string(account.Provider)
	if !bid.Paid {
		return out, nil
	}
	payments, err := tx.Payments().Of(ctx, id)
	if err != nil {
		return out, err
	}
	for i := range payments {
		p, err := paymentView(ctx, tx, &payments[i])
		if err != nil {
			return out, err
		}
		out.Payments = append(out.Payments, p)
	}
	return out, nil
}

func paymentView(ctx context.Context, tx *storage.Tx, p *storage.StoredPayment) (protocol.OwnPayment, error) {
	out := protocol.OwnPayment{
		ID: p.ID, BidID: p.Subject, Amount: protocol.MoneyOf(p.Currency, p.Paise), Provider: string(p.Provider),
		Reference: firstOf(p.Reference, p.PaymentID), Placed: p.Placed, PaidAt: p.PaidAt, Test: p.Test, Refunds: []protocol.BidRefund{},
	}
	refunds, err := tx.Refunds().Of(ctx, p.Subject)
	for i := range refunds {
		if refunds[i].Payment == p.ID {
			out.Refunds = append(out.Refunds, money.RefundView(&refunds[i]))
		}
	}
	return out, err
}

// Bids lists the bids on a board of the caller.
func (a *Attention) Bids(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.BidQuery) (protocol.Page[protocol.OwnBid], error) {
	out := protocol.Page[protocol.OwnBid]{Items: []protocol.OwnBid{}}
	b, err := ownBoardID(ctx, tx, c, in.Owned)
	if err != nil || b == nil {
		return out, err
	}
	found, err := listBids(ctx, tx, b.ID, in)
	if err != nil {
		return out, err
	}
	out.Next = found.Next
	for i := range found.Items {
		one, err := a.ownView(ctx, tx, found.Items[i].ID)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, one)
	}
	return out, nil
}

func listBids(ctx context.Context, tx *storage.Tx, board string, in protocol.BidQuery) (protocol.Page[storage.StoredBid], error) {
	if in.Disputed {
		return tx.Bids().ListDisputed(ctx, board, in.Size(), in.After)
	}
	return tx.Bids().List(ctx, board, in.State, in.Size(), in.After)
}

// GetBid returns one bid on a board of the caller.
func (a *Attention) GetBid(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnBidRef) (protocol.OwnBid, error) {
	if _, _, err := ownBid(ctx, tx, c, in.ID); err != nil {
		return protocol.OwnBid{}, err
	}
	return a.ownView(ctx, tx, in.ID)
}

// liveOf returns a live bid on a board of the caller.
func liveOf(ctx context.Context, tx *storage.Tx, c protocol.Caller, id string) (*storage.StoredBid, *storage.AttentionBoard, error) {
	bid, board, err := ownBid(ctx, tx, c, id)
	if err == nil && bid.State != protocol.BidLive {
		err = protocol.Errorf(protocol.Conflict, "the bid is %s; only a live one can be answered, approved or removed", bid.State)
	}
	return bid, board, err
}

// Answer answers a live bid.
func (a *Attention) Answer(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.BidAnswer) (protocol.OwnBid, error) {
	bid, _, err := liveOf(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.OwnBid{}, err
	}
	first := bid.AnsweredAt.IsZero()
	bid.Answer, bid.AnswerURL, bid.AnsweredAt = in.Answer, in.URL, tx.Now
	if err := tx.Bids().Save(ctx, bid); err != nil {
		return protocol.OwnBid{}, err
	}
	if first {
		if err := tx.News().Append(ctx, storage.NewsBid, storage.MessageRef(bid.ID, bid.Moves), bidReaders(bid)...); err != nil {
			return protocol.OwnBid{}, err
		}
	}
	return a.ownView(ctx, tx, in.ID)
}

// Approve makes the text of a live bid public.
func (a *Attention) Approve(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnBidRef) (protocol.OwnBid, error) {
	bid, board, err := liveOf(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.OwnBid{}, err
	}
	if !bid.Approved {
		bid.Approved = true
		if err := tx.Bids().Save(ctx, bid); err != nil {
			return protocol.OwnBid{}, err
		}
		if err := a.tell(ctx, tx, bid, board); err != nil {
			return protocol.OwnBid{}, err
		}
	}
	return a.ownView(ctx, tx, in.ID)
}

// Remove takes a live bid off the board and out of the feed. All of its money goes back.
func (a *Attention) Remove(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.BidRemoval) (protocol.OwnBid, error) {
	bid, _, err := liveOf(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.OwnBid{}, err
	}
	kept, err := money.Kept(ctx, tx, paid{a, bid}.Due())
	if err != nil {
		return protocol.OwnBid{}, err
	}
	if err := a.takeOff(ctx, tx, bid, in.Reason); err != nil {
		return protocol.OwnBid{}, err
	}
	if err := a.oweWhole(ctx, tx, bid, kept, "removed by the owner of the board"); err != nil {
		return protocol.OwnBid{}, err
	}
	return a.ownView(ctx, tx, in.ID)
}

// takeOff takes a live bid off the board and out of the feed.
func (a *Attention) takeOff(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, reason string) error {
	bid.Reason = reason
	if err := a.move(ctx, tx, bid, protocol.BidRemoved, reason); err != nil {
		return err
	}
	return tx.Bids().Retract(ctx, protocol.BoardID(a.Base), bid.ID)
}

// Close closes a board. Live bids end with their money for the unused time, unpaid ones end.
func (a *Attention) Close(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.ClosedBoard, error) {
	p, err := own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.ClosedBoard{}, err
	}
	b, err := tx.AttentionBoards().ByHandle(ctx, p.Draft.Handle)
	if err != nil {
		return protocol.ClosedBoard{}, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "@%s has no attention board", p.Draft.Handle))
	}
	out, total := protocol.ClosedBoard{}, int64(0)
	if err := a.endDue(ctx, tx, b, ""); err != nil {
		return out, err
	}
	bids, err := tx.Bids().ListOpen(ctx, b.ID)
	if err != nil {
		return out, err
	}
	for i := range bids {
		bid := &bids[i]
		if bid.State == protocol.BidHeld {
			out.Withdrawn++
			err = errors.Join(a.move(ctx, tx, bid, protocol.BidWithdrawn, "the board was closed"), money.CancelLink(ctx, tx, paid{a, bid}))
		} else {
			out.Ended++
			kept, failed := money.Kept(ctx, tx, paid{a, bid}.Due())
			if failed != nil {
				return out, failed
			}
			back := protocol.UnusedRefund(kept, bid.LiveAt, bid.EndsAt, tx.Now, bid.Terms.FullRefundHours)
			total += back
			err = errors.Join(a.move(ctx, tx, bid, protocol.BidEnded, "the board was closed"), a.oweWhole(ctx, tx, bid, back, "the board was closed"))
		}
		if err != nil {
			return out, err
		}
	}
	out.Refunds = rupees(total)
	b.Open = false
	return out, tx.AttentionBoards().Put(ctx, b)
}

// Payments lists the money that came in.
func (a *Attention) Payments(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PaymentQuery) (protocol.Page[protocol.OwnPayment], error) {
	out := protocol.Page[protocol.OwnPayment]{Items: []protocol.OwnPayment{}}
	book, _, err := ownBook(ctx, tx, c, in.Owned)
	if err != nil || book == "" {
		return out, err
	}
	found, err := tx.Payments().List(ctx, book, in.Size(), in.After)
	if err != nil {
		return out, err
	}
	out.Next = found.Next
	for i := range found.Items {
		one, err := paymentView(ctx, tx, &found.Items[i])
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, one)
	}
	return out, nil
}

// Refunds lists the refunds that are not done.
func (a *Attention) Refunds(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PaymentQuery) (protocol.Page[protocol.OwnRefund], error) {
	out := protocol.Page[protocol.OwnRefund]{Items: []protocol.OwnRefund{}}
	book, _, err := ownBook(ctx, tx, c, in.Owned)
	if err != nil || book == "" {
		return out, err
	}
	found, err := tx.Refunds().ListOpen(ctx, book, in.Size(), in.After)
	if err != nil {
		return out, err
	}
	out.Next = found.Next
	for i := range found.Items {
		one, err := ownRefund(ctx, tx, &found.Items[i])
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, one)
	}
	return out, nil
}

func ownRefund(ctx context.Context, tx *storage.Tx, r *storage.StoredRefund) (protocol.OwnRefund, error) {
	p, err := tx.Payments().ByID(ctx, r.Payment)
	if err != nil {
		return protocol.OwnRefund{}, err
	}
	return protocol.OwnRefund{
		BidRefund: money.RefundView(r), BidID: r.Subject, Provider: string(p.Provider), PaymentRef: firstOf(p.Reference, p.PaymentID), LastError: r.LastError,
	}, nil
}

// bookOwner returns the profile whose book it is, "" once that is deleted.
func bookOwner(ctx context.Context, tx *storage.Tx, book string) (string, error) {
	if protocol.IsID(protocol.TillID, book) {
		t, err := tx.Tills().ByID(ctx, book)
		return t.Handle, err
	}
	b, err := tx.AttentionBoards().ByID(ctx, book)
	return b.Handle, err
}

// MarkRefunded says that the owner has made a refund by hand.
func (a *Attention) MarkRefunded(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.RefundDone) (protocol.OwnRefund, error) {
	missing := protocol.Errorf(protocol.NotFound, "there is no refund with that id on a board of yours")
	r, err := tx.Refunds().ByID(ctx, in.ID)
	if err != nil {
		return protocol.OwnRefund{}, storage.IfMissing(err, missing)
	}
	of, err := a.Money.Subject(ctx, tx, r.Subject)
	if err != nil {
		return protocol.OwnRefund{}, err
	}
	handle, err := bookOwner(ctx, tx, r.Book)
	if err != nil {
		return protocol.OwnRefund{}, err
	}
	if !owns(c, handle) {
		return protocol.OwnRefund{}, missing
	}
	if r, err = tx.Refunds().ByID(ctx, in.ID); err != nil {
		return protocol.OwnRefund{}, err
	}
	switch r.State {
	case storage.RefundDone:
		return ownRefund(ctx, tx, r)
	case storage.RefundManual, storage.RefundFailed:
	default:
		return protocol.OwnRefund{}, protocol.Errorf(protocol.Conflict, "the refund is %s; the payment provider makes it", r.State)
	}
	if err := a.Finish(ctx, tx, of, r, in.Reference); err != nil {
		return protocol.OwnRefund{}, err
	}
	if err := tx.Audit(ctx, c.Actor(), "bid refund", r.ID, in.Reference); err != nil {
		return protocol.OwnRefund{}, err
	}
	return ownRefund(ctx, tx, r)
}

// Export returns the ledger of a month as CSV.
func (a *Attention) Export(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MonthQuery) (string, error) {
	rows := []protocol.MoneyRow{}
	book, handle, err := ownBook(ctx, tx, c, in.Owned)
	if err != nil {
		return "", err
	}
	from, to, ok := protocol.MonthInIndia(in.Month)
	if book == "" || !ok {
		return string(protocol.MoneyCSV(rows)), nil
	}
	err = tx.Payments().Ledger(ctx, book, from, to, func(l storage.LedgerLine) error {
		row := protocol.MoneyRow{
			At: l.At, Paise: l.Paise, Currency: l.Payment.Currency, Payer: l.Payer, Board: handle, Bid: l.Payment.Subject, Provider: string(l.Payment.Provider),
			PaymentID: l.Payment.PaymentID, Reference: l.Payment.Reference, Test: l.Payment.Test,
		}
		if l.Refund != nil {
			row.RefundID, row.Reference, row.Note = l.Refund.ID, l.Refund.Reference, l.Refund.Why
		}
		r, err := tx.Payments().Receipt(ctx, l.Payment.ID)
		if err == nil {
			row.Receipt = r.Number
		} else if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		rows = append(rows, row)
		return nil
	})
	return string(protocol.MoneyCSV(rows)), err
}
