package attention

import (
	"cmp"
	"context"
	"slices"

	"stoa/node/money"
	"stoa/protocol"
	"stoa/storage"
)

// view returns a bid as its bidder sees it.
func (a *Attention) view(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) (protocol.Bid, error) {
	out := protocol.Bid{
		ID: bid.ID, Handle: bid.Handle, State: a.stateNow(tx, bid), Amount: rupees(bid.Paise), Message: bid.Message, Category: protocol.OrNil(bid.Category),
		Bidder: bid.Author, URL: protocol.OrNil(bid.URL), Test: bid.Test, CreatedAt: bid.BidAt, Answer: protocol.OrNil(bid.Answer),
		AnswerURL: protocol.OrNil(bid.AnswerURL),
		Reason:    protocol.OrNil(bid.Reason), Refunds: []protocol.BidRefund{}, Untrusted: true,
	}
	if out.State.Unpaid() {
		out.Hold, out.HoldExpiresAt = &bid.Hold, &bid.HoldUntil
	}
	if !bid.LiveAt.IsZero() {
		out.LiveAt, out.EndsAt = &bid.LiveAt, &bid.EndsAt
		if !bid.RespondBy.IsZero() {
			out.RespondBy = &bid.RespondBy
		}
	}
	if !bid.DisputedAt.IsZero() {
		out.DisputedAt = &bid.DisputedAt
	}
	var err error
	if out.History, err = tx.Bids().Moves(ctx, bid.ID); err != nil {
		return out, err
	}
	if bid.State == protocol.BidLive {
		if out.Place, err = placeOf(ctx, tx, bid); err != nil {
			return out, err
		}
	}
	if bid.Paid {
		refunds, err := tx.Refunds().Of(ctx, bid.ID)
		if err != nil {
			return out, err
		}
		for i := range refunds {
			out.Refunds = append(out.Refunds, money.RefundView(&refunds[i]))
		}
		if out.Receipt, err = receiptOf(ctx, tx, bid, refunds); err != nil {
			return out, err
		}
	}
	out.Note = advice(out, bid)
	return out, nil
}

// stateNow returns the state of a bid, also in the moments before the job ends a hold that is over.
func (a *Attention) stateNow(tx *storage.Tx, bid *storage.StoredBid) protocol.BidState {
	switch {
	case bid.HoldUntil.After(tx.Now):
	case bid.State == protocol.BidHeld:
		return protocol.BidLapsed
	case bid.State == protocol.BidClaimed:
		return protocol.BidUnconfirmed
	}
	return bid.State
}

func placeOf(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) (*int, error) {
	v, err := tx.AttentionBoards().View(ctx, &storage.AttentionBoard{ID: bid.Board}, "")
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(v.Rank(), func(p protocol.PlacedBid) bool { return p.ID == bid.ID })
	if at < 0 {
		return nil, nil
	}
	return new(at + 1), nil
}

// receiptOf returns the receipt of the payment that got the slot, with what was refunded since; nil
// without one.
func receiptOf(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, refunds []storage.StoredRefund) (*protocol.Receipt, error) {
	payments, err := tx.Payments().Of(ctx, bid.ID)
	if err != nil {
		return nil, err
	}
	for _, p := range payments {
		if !p.Placed {
			continue
		}
		r, err := tx.Payments().Receipt(ctx, p.ID)
		if err != nil {
			return nil, storage.IfMissing(err, nil)
		}
		if back := storage.RefundedOf(p.ID, refunds); back > 0 {
			r.Refunded = new(rupees(back))
		}
		return r, nil
	}
	return nil, nil
}

// advice tells a bidder what to do next.
func advice(b protocol.Bid, bid *storage.StoredBid) string {
	switch b.State {
	case protocol.BidHeld:
		if *b.Hold == protocol.HoldCompeting {
			return protocol.NoCharge + " Another bid that is paid first may win the slot; then all money goes back."
		}
		return protocol.NoCharge
	case protocol.BidClaimed:
		return "The owner of the board has to confirm that the payment arrived."
	case protocol.BidLapsed:
		if bid.GaveWay {
			return "It gave way to newer bids, because too many waited unpaid on this board. Bid again, best signed; money that arrives all the same " +
				"goes back, or gets a slot if one can be had."
		}
		return cmp.Or(bid.Link.Failed, "It was not paid in time. Bid again; money that arrives late goes back, or gets a slot if one can be had.")
	case protocol.BidUnconfirmed:
		switch {
		case bid.Dispute != nil:
			return "The owner has to decide about the payment that you dispute."
		case !bid.DisputedAt.IsZero():
			return "The owner denied the payment that you disputed. Ask your bank about it, and the owner."
		}
		return "The owner did not confirm the payment. If you paid, say so once more with dispute_payment."
	case protocol.BidRefundDue, protocol.BidRefunding:
		return "The money goes back; refunds says how far that is."
	case protocol.BidRefundFailed:
		return "The payment provider refused the refund. It is tried again each day, and the owner of the board was told to make it by hand."
	}
	return ""
}

func bidNotFound() error {
	return protocol.Errorf(protocol.NotFound, "there is no bid with that id that you may read; send its status token, or sign as its bidder")
}

// bidOf returns the bid that a caller may read: with its status token, or as its bidder.
func bidOf(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.BidInput) (*storage.StoredBid, error) {
	bid, err := tx.Bids().ByID(ctx, in.ID)
	if err != nil {
		return nil, storage.IfMissing(err, bidNotFound())
	}
	if token := cmp.Or(in.StatusToken, c.ReadToken); token != "" {
		if !protocol.SecretMatches(token, bid.TokenHash) {
			return nil, bidNotFound()
		}
		return bid, nil
	}
	visitor := len(bid.Visitor) > 0 && c.Visitor == string(bid.Visitor)
	if !visitor && !(c.May(protocol.ScopePost) && c.Made(bid.Author, bid.By)) {
		return nil, bidNotFound()
	}
	return bid, nil
}

// Opens returns the name under which a bidder reads the news of a bid, when the caller may read it.
func (a *Attention) Opens(ctx context.Context, tx *storage.Tx, c protocol.Caller, id, token string) (string, error) {
	_, err := bidOf(ctx, tx, c, protocol.BidInput{ID: id, StatusToken: token})
	return storage.BidReader(id), err
}

// Get returns a bid to its bidder; for everyone else it is not found.
func (a *Attention) Get(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.BidInput) (protocol.Bid, error) {
	bid, err := bidOf(ctx, tx, c, in)
	if err != nil {
		return protocol.Bid{}, err
	}
	return a.view(ctx, tx, bid)
}

// Withdraw takes back a bid that is not paid.
func (a *Attention) Withdraw(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.BidInput) (protocol.Bid, error) {
	if _, err := bidOf(ctx, tx, c, in); err != nil {
		return protocol.Bid{}, err
	}
	bid, _, err := locked(ctx, tx, in.ID)
	if err != nil {
		return protocol.Bid{}, err
	}
	switch state := a.stateNow(tx, bid); {
	case state == protocol.BidWithdrawn:
	case state != protocol.BidHeld:
		return protocol.Bid{}, protocol.Errorf(protocol.Conflict, "the bid is %s; only one that is held can be withdrawn", state)
	default:
		if err := a.move(ctx, tx, bid, protocol.BidWithdrawn, "withdrawn by the bidder"); err != nil {
			return protocol.Bid{}, err
		}
		if err := money.CancelLink(ctx, tx, paid{a, bid}); err != nil {
			return protocol.Bid{}, err
		}
	}
	return a.view(ctx, tx, bid)
}
