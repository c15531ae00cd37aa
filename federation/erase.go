package federation

import (
	"context"
	"encoding/json"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// A departure is the argument of an erase job: an actor whose account is deleted.
type departure struct {
	Actor    string `json:"actor"`
	Activity string `json:"activity"` // id of the Delete
}

// erasedAtOnce is how many posts one erase job deletes.
const erasedAtOnce = 50

// left takes the deletion of an account: the actor follows no longer, posts that
// are still on their way are not taken, and those that are here are erased, in as
// many jobs as they need.
func (f *Federation) left(in *incoming) after {
	return func(ctx context.Context, tx *storage.Tx) error {
		if err := f.grow(ctx, tx, storage.StockTombstones); err != nil {
			return err
		}
		if err := tx.PutTombstone(ctx, in.actor, in.host, tx.Now.Add(tombstoneAge)); err != nil {
			return err
		}
		if err := f.unfollow(ctx, tx, f.site.Board(), in.actor); err != nil {
			return err
		}
		return enqueueErase(ctx, tx, departure{in.actor, string(in.act.ID)})
	}
}

func enqueueErase(ctx context.Context, tx *storage.Tx, d departure) error {
	args, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: "erase", Lane: "erase " + d.Actor, Args: args})
}

// eraseJob deletes posts of an actor that left. What was on our board is an
// entry of its log each: our followers ask the author's server whether the post
// is gone, since the actor's word does not name it.
func (f *Federation) eraseJob(_ context.Context, j storage.Job) (after, error) {
	var d departure
	if err := json.Unmarshal(j.Args, &d); err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "arguments of the job: %w", err)
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		posts, err := tx.PostsOfActor(ctx, d.Actor, erasedAtOnce)
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
			said, err := activity.Departed(d.Activity, d.Actor, p.URI).Bytes()
			if err != nil {
				return err
			}
			if err := f.logDeletion(ctx, tx, p, said); err != nil {
				return err
			}
		}
		if len(posts) < erasedAtOnce {
			return nil
		}
		return enqueueErase(ctx, tx, d)
	}, nil
}
