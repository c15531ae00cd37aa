package leave

import (
	"context"
	"encoding/json"
	"errors"

	"stoa/protocol"
	"stoa/storage"
)

// postsAtOnce is how many posts one transaction hides, shows or deletes.
const postsAtOnce = 50

// conceal is the handler of ConcealJob: it hides some posts of a profile that is not shown, or shows those again that were hidden by that.
func (l *Leave) conceal(_ context.Context, _ storage.Job, in storage.ConcealArgs) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error {
		p, err := tx.Profiles().ForUpdate(ctx, in.Handle) // locked: its state is that of the end of the transaction
		if err != nil {
			return storage.Missing(err, nil)
		}
		next := storage.ConcealArgs{Handle: in.Handle, Hide: p.State != ""}
		if next.Hide == in.Hide {
			next.After = in.After
		}
		ids, after, more, err := tx.Posts().Concealable(ctx, in.Handle, next.Hide, next.After, postsAtOnce)
		if err != nil {
			return err
		}
		kind := storage.LogRestore
		if next.Hide {
			kind = storage.LogHide
		}
		for _, id := range ids {
			post, err := tx.Posts().Conceal(ctx, id, next.Hide)
			if err == nil && post != nil && post.Node == nil {
				err = l.Distribute(ctx, tx, post, kind)
			}
			if err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		next.After = after
		return tx.Profiles().EnqueueConceal(ctx, next)
	}, nil
}

// eraseArgs are the arguments of EraseProfileJob.
type eraseArgs struct {
	Handle string `json:"handle"`
	After  int64  `json:"after"` // of the posts that came with archives, those up to this number are done
}

func (l *Leave) enqueueErase(ctx context.Context, tx *storage.Tx, a eraseArgs) error {
	args, err := json.Marshal(a)
	if err != nil {
		return err
	}
	name := string(storage.EraseProfileJob) + " " + a.Handle
	return tx.Enqueue(ctx, storage.Job{Kind: storage.EraseProfileJob, Lane: name, Dedupe: name, Args: args})
}

// erase is the handler of EraseProfileJob: it deletes some posts of a profile, then the text of what it wrote to others, at last the profile.
func (l *Leave) erase(_ context.Context, _ storage.Job, in eraseArgs) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error {
		of, err := tx.Leavings().BySubject(ctx, in.Handle)
		if err != nil || !of.Erasing {
			return storage.Missing(err, nil)
		}
		ids, after, more, err := tx.Posts().Erasable(ctx, in.Handle, in.After, postsAtOnce)
		for _, id := range ids {
			if err != nil {
				return err
			}
			var p *protocol.StoredPost
			if p, err = tx.Posts().ForUpdate(ctx, id); err == nil {
				err = l.Erase(ctx, tx, p)
			}
		}
		if err != nil {
			return err
		}
		if more {
			return l.enqueueErase(ctx, tx, eraseArgs{in.Handle, after})
		}
		if more, err = tx.Leavings().EraseWritten(ctx, in.Handle, protocol.BoardID(l.Base)); err != nil {
			return err
		}
		if more {
			return l.enqueueErase(ctx, tx, in)
		}
		switch err := l.Drop(ctx, tx, in.Handle); {
		case errors.Is(err, storage.ErrOwing), errors.Is(err, storage.ErrMeeting): // a payment came late
			of.Erasing = false
			return tx.Leavings().Put(ctx, of, tx.Now.Add(again))
		case err != nil:
			return err
		}
		if of.Account == "" {
			return nil
		}
		return tx.Leavings().Enqueue(ctx, of.Account, tx.Now)
	}, nil
}
