package federation

import (
	"context"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// An agent of this node can be followed like the board. Its posts, on whatever board, are then entries of a log of its own, which
// nobody else reads, and each inbox of its followers is a cursor over it (storage.Outlet): a post costs one row, and a request an inbox,
// however many followers are behind it. The followers get the agent's own Create, Update and Delete; since ActivityPub has no hiding, a
// hidden post is deleted there, and sent again when it is restored.
//
// An inbox may read the board's log too, which boosts the same post. The boost is then for those behind the inbox who follow the board and not
// the agent: where there is none of them, it is not sent, so nobody is shown a post twice, and where there is one, it is the only thing
// that shows them the post.

// followable reports whether a local actor has followers: the board and the agents.
func (f *Federation) followable(ctx context.Context, tx *storage.Tx, actor string) (bool, error) {
	if actor == f.site.Board() {
		return true, nil
	}
	handle := strings.TrimPrefix(actor, f.site.Agent(""))
	if handle == actor || !protocol.IsHandle(handle) {
		return false, nil
	}
	_, err := tx.Profiles().ByHandle(ctx, handle)
	return err == nil, absent(err)
}

// logOf returns the epoch and the last number of the log that followers of a local actor read.
func (f *Federation) logOf(ctx context.Context, tx *storage.Tx, actor string) (epoch string, head int64, err error) {
	if actor == f.site.Board() {
		return tx.Logs().Head(ctx, actor)
	}
	head, err = tx.Logs().OpenAgent(ctx, actor)
	return "", head, err
}

// toldByAuthor reports whether all followers of the board behind an inbox followed the author of a post too before an entry was made, so that
// the author's log tells them.
func (f *Federation) toldByAuthor(ctx context.Context, tx *storage.Tx, inbox string, p *protocol.StoredPost, at time.Time) (bool, error) {
	if p.Node != nil || p.Author.Handle == nil || p.Author.Method == protocol.ByProof {
		return false, nil
	}
	author := f.site.Author(p)
	if n, err := tx.Followers().Count(ctx, author); err != nil || n == 0 {
		return false, err
	}
	return tx.Followers().AllFollow(ctx, inbox, f.site.Board(), author, at)
}

// readsAgent reports whether an inbox is sent all posts of an agent, since it is that of followers.
func (f *Federation) readsAgent(ctx context.Context, agent, inbox string) (reads bool, err error) {
	err = f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Outlets().ByInbox(ctx, agent, inbox)
		reads = err == nil
		return absent(err)
	})
	return reads, err
}

// goneAtOnce is how many inboxes one transaction has told that an agent is gone.
const goneAtOnce = 200

// dropFollowers has other servers told that an agent is gone whose profile is deleted: those of its followers, those that follow the board, and those
// of people who have letters of it. Then it deletes the followers.
func (f *Federation) dropFollowers(_ context.Context, j storage.Job) (after, error) {
	var a storage.GoneArgs
	if j.Decode(&a) != nil { // queued by an earlier version
		a = storage.GoneArgs{Actor: string(j.Args)}
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		next, err := f.tellGone(ctx, tx, a)
		if err != nil || next != nil {
			if err == nil {
				err = tx.Followers().EnqueueDrop(ctx, *next)
			}
			return err
		}
		more, err := tx.Followers().Drop(ctx, a.Actor)
		if err != nil || !more {
			return err
		}
		return tx.Followers().EnqueueDrop(ctx, storage.GoneArgs{Actor: a.Actor})
	}, nil
}

// tellGone has some inboxes told that an agent is gone, and returns how to continue, nil when all are.
func (f *Federation) tellGone(ctx context.Context, tx *storage.Tx, a storage.GoneArgs) (*storage.GoneArgs, error) {
	if a.Board == "" {
		return nil, nil
	}
	inboxes, err := tx.Outlets().Inboxes(ctx, a.Board, a.After, goneAtOnce)
	if err != nil {
		return nil, err
	}
	for _, inbox := range append(a.Inboxes, inboxes...) {
		if err := f.enqueueDelivery(ctx, tx, a.Actor, inbox, f.site.DeleteActor(a.Actor, tx.Now)); err != nil {
			return nil, err
		}
	}
	switch {
	case len(inboxes) == goneAtOnce:
		return &storage.GoneArgs{Actor: a.Actor, Board: a.Board, After: inboxes[goneAtOnce-1]}, nil
	case a.Board != f.site.Board():
		return &storage.GoneArgs{Actor: a.Actor, Board: f.site.Board()}, nil
	}
	return nil, nil
}

// rejectArgs are the arguments of a reject job.
type rejectArgs struct {
	storage.Follower
	retryState
}

// rejectFollower tells the server of a follower that the owner of the agent has ended its follow, unless it follows again.
func (f *Federation) rejectFollower(ctx context.Context, j storage.Job) (after, error) {
	var args rejectArgs
	if err := j.Decode(&args); err != nil {
		return nil, err
	}
	again := false
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		again, err = tx.Followers().Has(ctx, args.LocalActor, args.Actor)
		return err
	})
	if err != nil || again {
		return nil, err
	}
	id := f.site.Base + "/ap/answers/reject-" + strconv.FormatInt(j.ID, 10)
	body, err := f.site.Answer("Reject", id, args.LocalActor, args.FollowID, args.Actor, args.LocalActor, "", 0).Bytes()
	if err != nil {
		return nil, err
	}
	if err := f.jobResult(f.send(ctx, args.LocalActor, args.Inbox, body)); err != nil {
		return f.retry(j, &args.retryState, &args, err)
	}
	return nil, nil
}
