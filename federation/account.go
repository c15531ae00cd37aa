package federation

import (
	"context"
	"strings"

	"stoa/protocol/activity"
	"stoa/protocol/netx"
	"stoa/storage"
)

// maxMoved is how many follows of an actor move with it.
const maxMoved = 200

// handleMove moves the follows of an actor to the actor that it says it is now, if that one's document says so too (alsoKnownAs). The document
// is fetched, for an actor that follows.
func (f *Federation) handleMove(ctx context.Context, in *incoming) (after, error) {
	target := in.act.Target.One()
	if in.act.ObjectID() != in.actor || target == in.actor || f.isLocal(target) {
		return nil, nil
	}
	var followed []string
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		followed, err = tx.Followers().FollowedBy(ctx, in.actor, maxMoved)
		return err
	})
	if err != nil || len(followed) == 0 {
		return nil, err
	}
	a, err := f.lookUpActor(ctx, target)
	if err != nil {
		return nil, f.skipRefused(in.host, err)
	}
	if !a.AlsoKnown(in.actor) {
		return nil, nil
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		if err := f.keepActor(ctx, tx, a); err != nil {
			return err
		}
		for _, local := range followed {
			if err := f.moveFollower(ctx, tx, local, in, a); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// moveFollower makes the target of a Move a follower in the place of the actor.
func (f *Federation) moveFollower(ctx context.Context, tx *storage.Tx, local string, in *incoming, a *activity.Actor) error {
	if there, err := tx.Followers().Has(ctx, local, in.actor); err != nil || !there {
		return err // it has unfollowed since
	}
	if err := tx.Followers().Remove(ctx, local, in.actor); err != nil {
		return err
	}
	host := hostOf(string(a.ID))
	err := tx.Followers().Put(ctx, storage.Follower{
		LocalActor: local, Actor: string(a.ID), Inbox: a.Inbox.One(), SharedInbox: string(a.Endpoints.SharedInbox),
		Host: host, FollowID: string(in.act.ID), CreatedAt: tx.Now,
	})
	if err != nil {
		return err
	}
	_, head, err := f.logOf(ctx, tx, local)
	if err != nil {
		return err
	}
	return f.openOutlet(ctx, tx, local, inboxOf(a), host, false, head)
}

// handleBlock honours that an actor blocks one of this node: its follow and its reactions to posts of that actor are removed, and nothing is
// sent to it in that actor's name, until it is undone.
func (f *Federation) handleBlock(in *incoming) after {
	local := in.act.ObjectID()
	if !f.isLocal(local) {
		return nil
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		known, err := f.followable(ctx, tx, local)
		if err != nil || !known {
			return err
		}
		err = tx.Peers().PutBlock(ctx, storage.BlockedBy{Actor: in.actor, LocalActor: local, URI: string(in.act.ID), Domain: netx.Registrable(in.host)})
		if err != nil {
			return err
		}
		if err := tx.Followers().Remove(ctx, local, in.actor); err != nil {
			return err
		}
		if err := f.grow(ctx, tx, storage.StockBlockedBy); err != nil {
			return err
		}
		handle, agent := strings.CutPrefix(local, f.site.Agent(""))
		if !agent {
			return nil
		}
		return tx.Reactions().EnqueueDrop(ctx, storage.DropReactions{Actor: in.actor, By: handle})
	}
}

// unblock undoes a Block, which is embedded or named by its id.
func (f *Federation) unblock(ctx context.Context, tx *storage.Tx, in *incoming, inner *activity.Activity) error {
	what := in.act.ObjectID()
	if inner.Type.Is("Block") {
		what = inner.ObjectID()
	}
	return tx.Peers().DropBlock(ctx, in.actor, what)
}
