package federation

import (
	"context"
	"encoding/json"

	"stoa/protocol/activity"
	"stoa/storage"
)

// eraseArgs are the arguments of an erase job: an actor whose account is deleted.
type eraseArgs struct {
	Actor    string `json:"actor"`
	Activity string `json:"activity"` // id of the Delete
}

// erasedAtOnce is how many posts one erase job deletes.
const erasedAtOnce = 50

// handleActorDelete handles the deletion of an account: the actor's follow is
// removed, its posts that arrive later are refused, and its stored posts are
// erased, in as many jobs as needed.
func (f *Federation) handleActorDelete(in *incoming) after {
	return func(ctx context.Context, tx *storage.Tx) error {
		if err := f.grow(ctx, tx, storage.StockTombstones); err != nil {
			return err
		}
		if err := tx.Inbox().PutTombstone(ctx, in.actor, in.host, tx.Now.Add(tombstoneAge)); err != nil {
			return err
		}
		if err := tx.Followers().Remove(ctx, f.site.Board(), in.actor); err != nil {
			return err
		}
		if err := tx.RemoteAgents().Drop(ctx, in.actor); err != nil { // of a node that is followed
			return err
		}
		if err := tx.FeedOrigins().DropOf(ctx, in.actor); err != nil {
			return err
		}
		if err := tx.Reactions().EnqueueDrop(ctx, storage.DropReactions{Actor: in.actor}); err != nil {
			return err
		}
		return enqueueErase(ctx, tx, eraseArgs{in.actor, string(in.act.ID)})
	}
}

func enqueueErase(ctx context.Context, tx *storage.Tx, d eraseArgs) error {
	args, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: storage.EraseJob, Lane: "erase " + d.Actor, Args: args})
}

// eraseJob deletes posts of a deleted actor, and ends its follows of agents. Each post on our board becomes an
// entry of the board's log: our followers ask the author's server whether the post
// is gone, since the actor's Delete does not name it.
func (f *Federation) eraseJob(_ context.Context, j storage.Job) (after, error) {
	var d eraseArgs
	if err := j.Decode(&d); err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		posts, err := tx.Posts().OfActor(ctx, d.Actor, erasedAtOnce)
		if err != nil {
			return err
		}
		for i := range posts {
			p := &posts[i]
			if err := f.c.Receiver.DeletePost(ctx, tx, p.URI); err != nil {
				return err
			}
			if p.Board != f.site.Board() {
				continue
			}
			raw, err := activity.RelayedDelete(d.Activity, d.Actor, p.URI).Bytes()
			if err != nil {
				return err
			}
			if err := f.logDeletion(ctx, tx, p, raw); err != nil {
				return err
			}
		}
		followed, err := tx.Followers().FollowedBy(ctx, d.Actor, erasedAtOnce)
		if err != nil {
			return err
		}
		for _, local := range followed {
			if err := tx.Followers().Remove(ctx, local, d.Actor); err != nil {
				return err
			}
		}
		more, err := f.withdrawOf(ctx, tx, d.Actor)
		if err != nil || len(posts) < erasedAtOnce && len(followed) < erasedAtOnce && !more {
			return err
		}
		return enqueueErase(ctx, tx, d)
	}, nil
}
