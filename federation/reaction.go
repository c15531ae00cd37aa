package federation

import (
	"context"
	"encoding/json"

	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/netx"
	"stoa/storage"
)

// Actors of the fediverse like, boost and quote posts of this node (storage.Reactions). Each counts once an actor, a quote once a quoting
// post. Only posts that were made here are counted: the likes of a copy are known to its origin, and two nodes would show two numbers.
// A reaction changes neither the log nor the Create of the post, and follows no rule of the post's author but that of quotes.

// reactionOf is what an activity does with its object, "" for nothing that is counted.
func reactionOf(a *activity.Activity) storage.ReactionKind {
	switch {
	case a.Type.Is("Like", "EmojiReact"):
		return storage.Like
	case a.Type.Is("Announce"):
		return storage.Share
	}
	return ""
}

// handleReaction counts a Like, an EmojiReact, or a boost by an actor that is not one of a stoa node: a board boosts to its followers what
// it logs.
func (f *Federation) handleReaction(ctx context.Context, in *incoming) (after, error) {
	p, err := f.ownPost(ctx, in.act.ObjectID())
	if err != nil || p == nil || p.State != protocol.Visible {
		return nil, err
	}
	r := storage.Reaction{PostID: p.ID, Actor: in.actor, Kind: reactionOf(&in.act), URI: string(in.act.ID)}
	if r.Kind == storage.Share {
		if stoa, err := f.ofStoaNode(ctx, in.actor); err != nil || stoa {
			return nil, err
		}
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		_, err := f.react(ctx, tx, r)
		return err
	}, nil
}

// ownPost returns the post of this node with that id, in any state; nil without one.
func (f *Federation) ownPost(ctx context.Context, uri string) (*protocol.StoredPost, error) {
	if !f.isLocal(uri) {
		return nil, nil
	}
	p, err := f.storedPost(ctx, uri)
	if err != nil || p == nil || p.Node != nil {
		return nil, err
	}
	return p, nil
}

// ofStoaNode reports whether an actor's document, as it was stored when its signature verified, is of a stoa node.
func (f *Federation) ofStoaNode(ctx context.Context, actor string) (stoa bool, err error) {
	err = f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		known, err := tx.Peers().ActorByID(ctx, actor)
		if err != nil {
			return absent(err)
		}
		var a activity.Actor
		stoa = strictjson.DecodeLoose(known.Doc, &a) == nil && a.Implements(activity.LogFeature)
		return nil
	})
	return stoa, err
}

// react stores a reaction and reports whether it is stored: not of an actor that is blocked or deleted, or of a silenced host.
func (f *Federation) react(ctx context.Context, tx *storage.Tx, r storage.Reaction) (stored bool, err error) {
	host := hostOf(r.Actor)
	r.Domain = netx.Registrable(host)
	policy, err := policyOf(ctx, tx, host)
	if err != nil || policy == storage.PolicyReject || policy == storage.PolicySilence {
		return false, err
	}
	if gone, err := tx.Inbox().Tombstoned(ctx, r.Actor); err != nil || gone {
		return false, err
	}
	if blocked, err := tx.Blocks().Match(ctx, protocol.BlockActor, r.Actor); err != nil || blocked {
		return false, err
	}
	stored, fresh, err := tx.Reactions().Add(ctx, r)
	if err != nil || !fresh {
		return stored, err
	}
	return true, f.grow(ctx, tx, storage.StockReactions)
}

// undoReaction undoes a Like or an Announce by its id; one that is embedded and has another id than the one that was counted, by what it
// did. inner is the zero value when only the id was sent.
func (f *Federation) undoReaction(in *incoming, inner *activity.Activity) after {
	id, kind := in.act.ObjectID(), reactionOf(inner)
	return func(ctx context.Context, tx *storage.Tx) error {
		found, err := tx.Reactions().Withdraw(ctx, in.actor, id)
		if err == nil && !found && kind == "" {
			return f.unblock(ctx, tx, in, inner)
		}
		if err != nil || found {
			return err
		}
		p, err := tx.Posts().ByURI(ctx, inner.ObjectID())
		if err != nil {
			return absent(err)
		}
		return tx.Reactions().WithdrawKey(ctx, storage.ReactionKey(storage.Reaction{PostID: p.ID, Actor: in.actor, Kind: kind}))
	}
}

// dropReactions deletes the reactions of an actor that is blocked or deleted, of a host that is blocked, or to a post that is not visible
// any more. Who quotes the post, and still can be told, is told that its permission is revoked.
func (f *Federation) dropReactions(_ context.Context, j storage.Job) (after, error) {
	var d storage.DropReactions
	if err := j.Decode(&d); err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		gone, next, err := tx.Reactions().Drop(ctx, d)
		if err != nil {
			return err
		}
		left := d.Host != "" // nobody is told any more
		if d.Actor != "" {
			if left, err = tx.Inbox().Tombstoned(ctx, d.Actor); err != nil {
				return err
			}
		}
		for _, r := range gone {
			if left || r.Kind != storage.Quote && r.Kind != storage.QuietQuote {
				continue
			}
			args, err := json.Marshal(submitArgs{Post: r.PostID, To: r.Actor, Stamp: r.Key})
			if err != nil {
				return err
			}
			if err := tx.Enqueue(ctx, storage.Job{Kind: storage.SubmitJob, Lane: laneTo(r.Actor), Args: args}); err != nil {
				return err
			}
		}
		if next == nil {
			return nil
		}
		return tx.Reactions().EnqueueDrop(ctx, *next)
	}, nil
}
