package attention

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stoa/node/money"
	"stoa/protocol"
	"stoa/storage"
)

// locked returns a bid and its board, whose row is locked: everything that moves a bid goes through
// here, so that a board has one writer.
func locked(ctx context.Context, tx *storage.Tx, id string) (*storage.StoredBid, *storage.AttentionBoard, error) {
	bid, err := tx.Bids().ByID(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	board, err := tx.AttentionBoards().ByID(ctx, bid.Board)
	if err != nil {
		return nil, nil, err
	}
	bid, err = tx.Bids().ByID(ctx, id)
	return bid, board, err
}

// move changes the state of a bid, with everything that follows from any change: its history, news
// for both sides, and the bidder's callback.
func (a *Attention) move(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, to protocol.BidState, note string) error {
	if !bid.State.May(to) {
		return fmt.Errorf("bid %s is %s and cannot become %s", bid.ID, bid.State, to)
	}
	bid.State = to
	if to != protocol.BidClaimed {
		bid.HoldUntil = time.Time{}
		bid.Hold = ""
	}
	if to != protocol.BidClaimed && to != protocol.BidLive {
		bid.Slot = 0
	}
	if to != protocol.BidLive {
		bid.FreeAt = time.Time{}
	}
	return a.remark(ctx, tx, bid, note)
}

// remark adds to the history of a bid, whose state has changed or only what is said of it, and tells both sides.
func (a *Attention) remark(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, note string) error {
	if err := tx.Bids().Move(ctx, bid, note); err != nil {
		return err
	}
	ref := storage.MessageRef(bid.ID, bid.Moves)
	if err := tx.News().Append(ctx, storage.NewsBid, ref, bidReaders(bid)...); err != nil {
		return err
	}
	if err := tx.News().Append(ctx, storage.NewsBidHere, ref, "handle:"+bid.Handle); err != nil {
		return err
	}
	if bid.Callback == "" {
		return nil
	}
	return enqueueUpdate(ctx, tx, bid)
}

// bidReaders returns the names under which the bidder reads news.
func bidReaders(bid *storage.StoredBid) []string {
	readers := []string{storage.BidReader(bid.ID)}
	if len(bid.Visitor) > 0 {
		readers = append(readers, storage.VisitorReader(string(bid.Visitor)))
	}
	return append(readers, bid.Author.Names()...)
}

// endDue ends the holds of a board that are over, and the waits for its owner; not that of the bid
// except.
func (a *Attention) endDue(ctx context.Context, tx *storage.Tx, board *storage.AttentionBoard, except string) error {
	due, err := tx.Bids().ListDue(ctx, board.ID)
	if err != nil {
		return err
	}
	for i := range due {
		if due[i].ID == except {
			continue
		}
		if err := a.endHold(ctx, tx, &due[i]); err != nil {
			return err
		}
	}
	return nil
}

// endHold ends the hold of an unpaid bid that is over.
func (a *Attention) endHold(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) error {
	if bid.State == protocol.BidClaimed {
		return a.move(ctx, tx, bid, protocol.BidUnconfirmed, "the owner did not confirm the payment in time")
	}
	note := "not paid within 20 minutes"
	if bid.Link.ID == "" { // the provider was away all the time
		bid.Link.Failed, note = money.NoLink, money.NoLink
	}
	if err := a.move(ctx, tx, bid, protocol.BidLapsed, note); err != nil {
		return err
	}
	return money.CancelLink(ctx, tx, paid{a, bid})
}

// goLive gives a paid bid its slot.
func (a *Attention) goLive(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, board *storage.AttentionBoard, slot int) error {
	terms := bid.Terms
	bid.Slot = slot
	bid.LiveAt, bid.EndsAt = tx.Now, tx.Now.Add(terms.SlotFor())
	if terms.RespondWithinDays > 0 {
		bid.RespondBy = tx.Now.Add(time.Duration(terms.RespondWithinDays) * 24 * time.Hour)
	}
	bid.FreeAt = tx.Now.Add(time.Duration(terms.ProtectHours) * time.Hour)
	if err := a.move(ctx, tx, bid, protocol.BidLive, ""); err != nil {
		return err
	}
	if err := watch(ctx, tx, bid, nextDue(bid)); err != nil {
		return err
	}
	if bid.Approved {
		if err := a.tell(ctx, tx, bid, board); err != nil {
			return err
		}
	}
	return notify(ctx, tx, board, protocol.BidIsLive, bid, noticeTitle("Live bid", bid))
}

// notify tells the owner of a board of a bid.
func notify(ctx context.Context, tx *storage.Tx, board *storage.AttentionBoard, event protocol.NoticeEvent, bid *storage.StoredBid, title string) error {
	return tx.Notify(ctx, protocol.Notice{Handle: board.Handle, Event: event, Subject: bid.ID, Title: title})
}

func noticeTitle(what string, bid *storage.StoredBid) string {
	title := what + " of " + protocol.FormatRupees(bid.Paise) + " from " + bid.Author.Name
	if !bid.Author.Verified {
		title += " (unverified)"
	}
	if bid.Test {
		title = "TEST: " + title
	}
	return title
}

// nextDue returns when something of a live bid is due next: the promised answer, or its end.
func nextDue(bid *storage.StoredBid) time.Time {
	if bid.Terms.RefundIfNoReply && bid.AnsweredAt.IsZero() && !bid.RespondBy.IsZero() && bid.RespondBy.Before(bid.EndsAt) {
		return bid.RespondBy
	}
	return bid.EndsAt
}

// tell adds a live bid to the feed, also of the nodes that follow this one, once. What moves no money
// is no news.
func (a *Attention) tell(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, board *storage.AttentionBoard) error {
	if bid.Test || bid.FeedID != "" {
		return nil
	}
	bid.FeedID = protocol.NewID(protocol.FeedID, tx.Now)
	if err := tx.Bids().Save(ctx, bid); err != nil {
		return err
	}
	summary := bid.Author.Name + " bids " + protocol.Rupee + " " + rupees(bid.Paise).Amount + " for the attention of @" + board.Handle + "."
	return tx.Bids().Publish(ctx, protocol.BoardID(a.Base), "", protocol.FeedItem{
		ID: bid.FeedID, Type: protocol.FeedAttentionBid, At: tx.Now, Actor: bid.Author,
		Subject: protocol.Subject{Kind: "bid", ID: bid.ID, URL: a.page(board.Handle), Title: protocol.Shorten(protocol.OneLine(bid.Message), 120)},
		Summary: strings.TrimSpace(summary), Untrusted: true,
	})
}

// watch enqueues the job that does what is due of a bid, at exactly that time.
func watch(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, at time.Time) error {
	return money.Enqueue(ctx, tx, storage.BidDueJob, "", money.Job{ID: bid.ID, N: bid.Moves}, at)
}
