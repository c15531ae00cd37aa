package federation

import (
	"context"
	"errors"

	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// handleFollow answers a Follow. The board and the agents of this node can be followed; its other actors reject.
func (f *Federation) handleFollow(ctx context.Context, in *incoming) (after, error) {
	a, err := f.actorOf(ctx, in.actor, actorAge)
	if err != nil {
		if errors.Is(err, errGone) {
			return nil, nil
		}
		return nil, err
	}
	object := in.act.ObjectID()
	stoa := object == f.site.Board() && a.Implements(activity.LogFeature) && a.Type.Is("Application", "Group")
	return func(ctx context.Context, tx *storage.Tx) error {
		takes, err := f.followable(ctx, tx, object)
		if err != nil {
			return err
		}
		if !takes {
			from := f.site.Node()
			if f.isLocal(object) {
				from = object
			}
			return f.answer(ctx, tx, "Reject", from, in, a.Inbox.One(), "", 0)
		}
		full, err := f.full(ctx, tx, object, in)
		if err != nil {
			return err
		}
		if full {
			f.log.Warn("follow rejected: as many follow as this node takes", "actor", in.actor, "object", object)
			return f.answer(ctx, tx, "Reject", object, in, a.Inbox.One(), "", 0)
		}
		err = tx.Followers().Put(ctx, storage.Follower{
			LocalActor: object, Actor: in.actor, Inbox: a.Inbox.One(), SharedInbox: string(a.Endpoints.SharedInbox),
			Host: in.host, FollowID: string(in.act.ID), Stoa: stoa, CreatedAt: tx.Now,
		})
		if err != nil {
			return err
		}
		epoch, head, err := f.logOf(ctx, tx, object)
		if err != nil {
			return err
		}
		if err := f.openOutlet(ctx, tx, object, inboxOf(a), in.host, stoa, head); err != nil {
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
	maxFollowers       = 100_000 // of one actor
	maxFollowersOfHost = 20_000  // follows by one host, after which agents have no new ones of it
	maxFollowersInAll  = 500_000 // after which agents have no new ones
	maxAnswers         = 200     // pending for one host
)

// full reports whether an actor cannot have a new follower, even after inactive
// ones are deleted.
func (f *Federation) full(ctx context.Context, tx *storage.Tx, local string, in *incoming) (bool, error) {
	if there, err := tx.Followers().Has(ctx, local, in.actor); err != nil || there {
		return false, err
	}
	if local != f.site.Board() {
		all, err := tx.Followers().Count(ctx, "")
		if err != nil || all >= maxFollowersInAll {
			return true, err
		}
		ofHost, err := tx.Followers().OfHost(ctx, in.host, f.maxFollowersOfHost)
		if err != nil || ofHost >= f.maxFollowersOfHost {
			return true, err
		}
	}
	n, err := tx.Followers().Count(ctx, local)
	if err != nil || n < f.maxFollowers {
		return false, err
	}
	gone, err := tx.Followers().DropDead(ctx, local)
	return gone == 0, err
}

// openOutlet creates the cursor of an inbox at the head of the log of the board or
// of an agent: a stoa peer pulls older entries, and the fediverse does not ask for them.
func (f *Federation) openOutlet(ctx context.Context, tx *storage.Tx, local, inbox, host string, stoa bool, head int64) error {
	known, err := tx.Outlets().ByInbox(ctx, local, inbox)
	if absent(err) != nil {
		return err
	}
	if err == nil && known != nil {
		return tx.Outlets().WakeHost(ctx, host)
	}
	return tx.Outlets().Put(ctx, storage.Outlet{
		Board: local, Inbox: inbox, Host: host, Stoa: stoa, Cursor: head, State: storage.OutletActive,
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

// handleUndo undoes a Follow, Like, Announce or Block for the actor that sent it. The undone activity is embedded; one that is no Follow may
// be named by its id.
func (f *Federation) handleUndo(in *incoming) after {
	var inner activity.Activity
	if in.act.Embedded() && (strictjson.DecodeChecked(in.act.Object, &inner) != nil || inner.Actor.One() != in.actor) {
		return nil
	}
	if !inner.Type.Is("Follow") {
		return f.undoReaction(in, &inner)
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		return tx.Followers().Remove(ctx, inner.ObjectID(), in.actor)
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
