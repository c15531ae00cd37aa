package federation

import (
	"context"
	"errors"

	"stoa/storage"
)

// forget deletes posts of the node of a followed board that the node does not have any more, since an operator decided
// so after the log contradicted itself. The node is asked for each; what it hides stays.
func (f *Federation) forget(ctx context.Context, j storage.Job) (after, error) {
	var a storage.ForgetArgs
	if err := j.Decode(&a); err != nil {
		return nil, err
	}
	next := a
	var posts []storage.PostToForget
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		posts, err = tx.Subscriptions().PostsToForget(ctx, a, hostOf(a.Board))
		return err
	})
	if err != nil || len(posts) == 0 {
		return nil, err
	}
	next.Tries = 0
	var lost []string
	for i, p := range posts {
		if i > 0 && nearDeadline(ctx) { // of a slow node: the next job looks at the rest
			break
		}
		next.After = p.Seq
		_, _, err := f.fetchNote(ctx, p.URI)
		switch {
		case errors.Is(err, errNotFound), errors.Is(err, errGone):
			lost = append(lost, p.URI)
		case err != nil && unavailable(err):
			a.Tries++
			return func(ctx context.Context, tx *storage.Tx) error { return tx.Subscriptions().EnqueueForget(ctx, a) }, nil
		}
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		for _, uri := range lost {
			if err := f.c.Receiver.DeletePost(ctx, tx, uri); err != nil {
				return err
			}
		}
		if len(lost) > 0 {
			f.log.Info("posts that their node has no longer are deleted", "board", a.Board, "posts", len(lost))
		}
		return tx.Subscriptions().EnqueueForget(ctx, next)
	}, nil
}
