package federation

import (
	"context"
	"errors"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// handleFollow answers a Follow. Only the board has a log to follow; the node's
// other actors reject.
func (f *Federation) handleFollow(ctx context.Context, in *incoming) (after, error) {
	a, err := f.actorOf(ctx, in.actor, actorAge)
	if err != nil {
		if errors.Is(err, errGone) {
			return nil, nil
		}
		return nil, err
	}
	object, stoa := in.act.ObjectID(), a.Implements(activity.LogFeature) && a.Type.Is("Application", "Group")
	inbox := inboxOf(a)
	return func(ctx context.Context, tx *storage.Tx) error {
		if object != f.site.Board() {
			from := f.site.Node()
			if f.isLocal(object) {
				from = object
			}
			return f.answer(ctx, tx, "Reject", from, in, a.Inbox.One(), "", 0)
		}
		full, err := f.full(ctx, tx, object, in.actor)
		if err != nil {
			return err
		}
		if full {
			f.log.Warn("follow rejected: as many follow the board as this node takes", "actor", in.actor)
			return f.answer(ctx, tx, "Reject", object, in, a.Inbox.One(), "", 0)
		}
		err = tx.Followers().Put(ctx, storage.Follower{
			LocalActor: object, Actor: in.actor, Inbox: a.Inbox.One(), SharedInbox: string(a.Endpoints.SharedInbox),
			Host: in.host, FollowID: string(in.act.ID), Stoa: stoa, CreatedAt: tx.Now,
		})
		if err != nil {
			return err
		}
		epoch, head, err := tx.Logs().Head(ctx, object)
		if err != nil {
			return err
		}
		if err := f.openOutlet(ctx, tx, inbox, in.host, stoa, head); err != nil {
			return err
		}
		if !stoa {
			epoch, head = "", 0
		}
		return f.answer(ctx, tx, "Accept", object, in, a.Inbox.One(), epoch, head)
	}, nil
}

// Limits of the followers and answers that throw-away actors can create.
const (
	maxFollowers = 100_000
	maxAnswers   = 200 // pending for one host
)

// full reports whether the board cannot have a new follower, even after inactive
// ones are deleted.
func (f *Federation) full(ctx context.Context, tx *storage.Tx, board, actor string) (bool, error) {
	n, err := tx.Followers().Count(ctx, board)
	if err != nil || n < f.maxFollowers {
		return false, err
	}
	if there, err := tx.Followers().Has(ctx, board, actor); err != nil || there {
		return false, err
	}
	gone, err := tx.Followers().DropDead(ctx, board)
	return gone == 0, err
}

// openOutlet creates the cursor of an inbox at the head of the log: a stoa peer
// pulls older entries, and the fediverse does not ask for them.
func (f *Federation) openOutlet(ctx context.Context, tx *storage.Tx, inbox, host string, stoa bool, head int64) error {
	known, err := tx.Outlets().ByInbox(ctx, f.site.Board(), inbox)
	if absent(err) != nil {
		return err
	}
	if err == nil && known != nil {
		return tx.Outlets().WakeHost(ctx, host)
	}
	return tx.Outlets().Put(ctx, storage.Outlet{
		Board: f.site.Board(), Inbox: inbox, Host: host, Stoa: stoa, Cursor: head, State: storage.OutletActive,
	})
}

func (f *Federation) answer(ctx context.Context, tx *storage.Tx, kind, actor string, in *incoming, inbox, epoch string, head int64) error {
	if full, err := tx.Jobs().LaneFull(ctx, laneTo(inbox), maxAnswers); err != nil || full {
		return err // no more answers to a host that accepts none
	}
	id := f.site.Base + "/ap/answers/" + protocol.NewID(protocol.ActivityID, tx.Now)
	o := f.site.Answer(kind, id, actor, string(in.act.ID), in.actor, in.act.ObjectID(), epoch, head)
	return f.enqueueDelivery(ctx, tx, actor, inbox, o)
}

// handleUndo undoes a Follow, Like or Announce for the actor that sent it. The undone activity is embedded; one of the latter may be
// named by its id.
func (f *Federation) handleUndo(in *incoming) after {
	var inner activity.Activity
	if in.act.Embedded() && (inboxLimits.DecodeLoose(in.act.Object, &inner) != nil || inner.Actor.One() != in.actor) {
		return nil
	}
	if !inner.Type.Is("Follow") {
		return f.undoReaction(in, &inner)
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		return f.unfollow(ctx, tx, inner.ObjectID(), in.actor)
	}
}

// unfollow deletes a follower, and its outlet if no other follower uses it.
func (f *Federation) unfollow(ctx context.Context, tx *storage.Tx, local, actor string) error {
	var inbox string
	behind := map[string]int{}
	err := eachFollower(ctx, tx, local, func(w storage.Follower) {
		to := w.SharedInbox
		if to == "" {
			to = w.Inbox
		}
		if w.Actor == actor {
			inbox = to
		} else {
			behind[to]++
		}
	})
	if err != nil || inbox == "" {
		return err
	}
	if err := tx.Followers().Delete(ctx, local, actor); err != nil {
		return err
	}
	if behind[inbox] > 0 {
		return nil
	}
	return tx.Outlets().Delete(ctx, local, inbox)
}

func eachFollower(ctx context.Context, tx *storage.Tx, local string, do func(storage.Follower)) error {
	for at := ""; ; {
		page, err := tx.Followers().List(ctx, local, protocol.MaxLimit, at)
		if err != nil {
			return err
		}
		for _, w := range page.Items {
			do(w)
		}
		if page.Next == nil {
			return nil
		}
		at = *page.Next
	}
}

// handleAccept handles the Accept or Reject of our Follow, from the followed board
// only.
func (f *Federation) handleAccept(in *incoming) after {
	follow := in.act.ObjectID()
	return func(ctx context.Context, tx *storage.Tx) error {
		s, err := tx.Subscriptions().ByBoard(ctx, in.actor)
		if err != nil || s == nil || s.FollowID != follow {
			return absent(err)
		}
		if in.act.Type.Is("Reject") {
			s.State = storage.SubscriptionRejected
			return tx.Subscriptions().Put(ctx, *s)
		}
		s.State, s.NextAt, s.Failures, s.LastError = storage.SubscriptionAccepted, tx.Now, 0, ""
		if err := tx.Subscriptions().Put(ctx, *s); err != nil {
			return err
		}
		return f.enqueuePull(ctx, tx, s.Board)
	}
}
