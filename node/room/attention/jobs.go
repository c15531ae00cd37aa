package attention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"stoa/node/money"
	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/storage"
)

// Due does what is due of a bid: it ends a hold that nobody paid, a wait for the owner, a live bid
// that was not answered as promised, or one whose time is over.
func (a *Attention) Due(_ context.Context, j storage.Job, s money.Job) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error {
		bid, _, err := locked(ctx, tx, s.ID)
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		if err != nil || bid.Moves != s.N { // it has moved, and that enqueued what is due next
			return err
		}
		switch {
		case bid.State.Unpaid() && !bid.HoldUntil.After(tx.Now):
			return a.endHold(ctx, tx, bid)
		case bid.State.Unpaid():
			return watch(ctx, tx, bid, bid.HoldUntil)
		case bid.State == protocol.BidLive:
			return a.endLive(ctx, tx, bid)
		}
		return nil
	}, nil
}

// endLive ends a live bid whose time is over, or which was not answered as promised.
func (a *Attention) endLive(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) error {
	promised := bid.Terms.RefundIfNoReply && bid.AnsweredAt.IsZero() && !bid.RespondBy.IsZero()
	switch {
	case promised && !bid.RespondBy.After(tx.Now):
		kept, err := money.Kept(ctx, tx, paid{a, bid}.Due())
		if err != nil {
			return err
		}
		if err := a.move(ctx, tx, bid, protocol.BidUnanswered, "not answered in time"); err != nil {
			return err
		}
		return a.oweWhole(ctx, tx, bid, kept, "the owner did not answer in time")
	case !bid.EndsAt.After(tx.Now):
		if err := a.move(ctx, tx, bid, protocol.BidEnded, "its time is over"); err != nil {
			return err
		}
		return a.DropSecrets(ctx, tx, bid.Account)
	}
	return watch(ctx, tx, bid, nextDue(bid))
}

// enqueueUpdate enqueues the first attempt to tell a bidder's callbackUrl of the last change.
func enqueueUpdate(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) error {
	return money.Enqueue(ctx, tx, storage.BidUpdateJob, webhook.Lane(bid.Callback), money.Job{ID: bid.ID, N: bid.Moves}, tx.Now)
}

// Update makes one attempt to tell a bidder's callbackUrl of one change of the bid. It is repeated
// under the same id, for a day at most.
func (a *Attention) Update(ctx context.Context, j storage.Job, s money.Job) (func(context.Context, *storage.Tx) error, error) {
	var address string
	u := protocol.BidUpdate{Type: "bid.updated", BidID: s.ID, ID: fmt.Sprintf("%s-%d", s.ID, s.N)}
	err := a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		bid, err := tx.Bids().ByID(ctx, s.ID)
		if err != nil {
			return err
		}
		address = bid.Callback
		m, err := tx.Bids().MoveByNumber(ctx, s.ID, s.N)
		if err != nil {
			return err
		}
		u.Handle, u.State, u.CreatedAt = bid.Handle, m.State, m.At
		u.Bid, err = a.view(ctx, tx, bid)
		return err
	})
	if err != nil || address == "" {
		return nil, storage.Missing(err, nil)
	}
	body, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	sent := a.Webhook.Send(ctx, address, u.ID, body)
	if sent == nil {
		return nil, nil
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		f, at := webhook.After(sent, s.Try+1, tx.Now, u.CreatedAt.Add(protocol.CallbackFor))
		switch {
		case !at.IsZero():
			return money.Enqueue(ctx, tx, storage.BidUpdateJob, j.Lane, money.Job{ID: s.ID, N: s.N, Try: s.Try + 1}, at)
		case f.Kind != webhook.ErrGone:
			return nil
		}
		bid, _, err := locked(ctx, tx, s.ID)
		if err != nil {
			return storage.IfMissing(err, nil)
		}
		bid.Callback = ""
		return tx.Bids().Save(ctx, bid)
	}, nil
}
