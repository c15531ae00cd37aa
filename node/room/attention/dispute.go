package attention

import (
	"cmp"
	"context"

	"stoa/protocol"
	"stoa/storage"
)

// The dispute of a payer whose reported payment the owner of a board did not confirm. It moves no bid: the owner decides, by
// confirming or denying the payment. While those of known payers wait, a board takes no bids (protocol.Disputed).

// Dispute stores that a payer says once more to have paid.
func (a *Attention) Dispute(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PaymentDispute) (protocol.Bid, error) {
	if _, err := bidOf(ctx, tx, c, in.BidInput); err != nil {
		return protocol.Bid{}, err
	}
	bid, board, err := locked(ctx, tx, in.ID)
	if err != nil {
		return protocol.Bid{}, err
	}
	switch state := a.stateNow(tx, bid); {
	case !bid.DisputedAt.IsZero() && bid.UTR == in.UTR:
		return a.view(ctx, tx, bid)
	case !bid.DisputedAt.IsZero():
		return protocol.Bid{}, errDisputed
	case state != protocol.BidUnconfirmed:
		return protocol.Bid{}, protocol.Errorf(protocol.Conflict, "the bid is %s; only a payment that was reported and not confirmed is disputed", state)
	case board.Handle == "":
		return protocol.Bid{}, hasLeft(bid)
	}
	if err := a.unusedUTR(ctx, tx, bid, in.UTR); err != nil {
		return protocol.Bid{}, err
	}
	if bid.State != protocol.BidUnconfirmed { // the job that ends the wait has not run yet
		if err := a.endHold(ctx, tx, bid); err != nil {
			return protocol.Bid{}, err
		}
	}
	bid.UTR, bid.DisputedAt, bid.Dispute = in.UTR, tx.Now, new(disputer(c, bid))
	if err := a.remark(ctx, tx, bid, saysOnceMore); err != nil {
		return protocol.Bid{}, err
	}
	if err := tx.Bids().CountDisputes(ctx, bid.Board); err != nil {
		return protocol.Bid{}, err
	}
	if err := notify(ctx, tx, board, protocol.BidIsClaimed, bid, noticeTitle("A payment is disputed: bid", bid)); err != nil {
		return protocol.Bid{}, err
	}
	return a.view(ctx, tx, bid)
}

const saysOnceMore = "the payer says once more that the payment was made"

var errDisputed = protocol.Errorf(protocol.Conflict, "the payment was disputed before; the owner of the board decides")

// disputer is the name under which a dispute counts: that of the bid's author if it is known, otherwise of a known caller, "" for a
// stranger.
func disputer(c protocol.Caller, bid *storage.StoredBid) string {
	switch {
	case !bid.Anonymous:
		return cmp.Or(bid.Bidder, bid.ID)
	case c.Known():
		return c.ID()
	}
	return ""
}

// decided ends the dispute of a bid, since its owner has confirmed or denied the payment.
func (a *Attention) decided(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) error {
	if bid.Dispute == nil {
		return nil
	}
	bid.Dispute = nil
	if err := tx.Bids().Save(ctx, bid); err != nil {
		return err
	}
	return tx.Bids().CountDisputes(ctx, bid.Board)
}
