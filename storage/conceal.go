package storage

import (
	"context"
	"encoding/json"

	"stoa/protocol"
)

// What a profile has is shown while the profile is: when it is hidden, a job hides its posts, with a reason that tells them from those
// that were hidden before, and when it is shown again, shows them.

// Concealed is the reason of posts that are hidden since the profile of their author is.
const Concealed = "the profile of its author is not shown"

// A ConcealArgs is the argument of a job that shows or hides the posts of a profile, whatever the profile's state is when it runs.
type ConcealArgs struct {
	Handle string `json:"handle"`
	Hide   bool   `json:"hide"`  // what the job before did, with After
	After  int64  `json:"after"` // of the posts that came with archives, those up to this number are done
}

// EnqueueConceal has the posts of a profile hidden or shown, as its state says then.
func (ps Profiles) EnqueueConceal(ctx context.Context, a ConcealArgs) error {
	args, err := json.Marshal(a)
	if err != nil {
		return err
	}
	name := string(ConcealJob) + " " + a.Handle
	return ps.tx.Enqueue(ctx, Job{Kind: ConcealJob, Lane: name, Dedupe: name, Args: args})
}

const (
	ownVisible   = `SELECT id FROM post WHERE author_handle = ? AND author_local AND state = 'visible' AND author_handle IS NOT NULL LIMIT ?`
	ownHidden    = `SELECT id FROM post WHERE author_handle = ? AND author_local AND author_handle IS NOT NULL AND state = 'hidden' LIMIT ?`
	ownConcealed = `SELECT id FROM post WHERE author_handle = ? AND author_local AND author_handle IS NOT NULL AND state = 'hidden' AND reason = ?
		ORDER BY seq LIMIT ?`
	movedHere = `SELECT a.seq, p.id, p.state, p.reason FROM archive_post a JOIN post p ON p.seq = a.seq WHERE a.handle = ? AND a.seq > ? ORDER BY a.seq LIMIT ?`
)

// Concealable returns ids of posts of a profile that are to be hidden, or shown again: at most limit of those that it made here, then of those that
// came with archives after the number after. next is the number after which to continue, if there are more.
func (ps Posts) Concealable(ctx context.Context, handle string, hide bool, after int64, limit int) (ids []string, next int64, more bool, err error) {
	if err := ps.tx.dirty(); err != nil {
		return nil, 0, false, err
	}
	if hide {
		ids, err = list[string](ctx, ps.tx, ownVisible, handle, limit)
	} else {
		ids, err = list[string](ctx, ps.tx, ownConcealed, handle, Concealed, limit)
	}
	if err != nil || len(ids) > 0 {
		return ids, after, true, err
	}
	return ps.moved(ctx, handle, after, limit, func(state protocol.PostState, reason string) bool {
		return hide && state == protocol.Visible || !hide && state == protocol.Hidden && reason == Concealed
	})
}

// Erasable is Concealable for posts that are to be deleted.
func (ps Posts) Erasable(ctx context.Context, handle string, after int64, limit int) (ids []string, next int64, more bool, err error) {
	if err := ps.tx.dirty(); err != nil {
		return nil, 0, false, err
	}
	for _, query := range []string{ownVisible, ownHidden} {
		if ids, err = list[string](ctx, ps.tx, query, handle, limit); err != nil || len(ids) > 0 {
			return ids, after, true, err
		}
	}
	return ps.moved(ctx, handle, after, limit, func(state protocol.PostState, _ string) bool { return state != protocol.Deleted })
}

// moved returns those of the next posts that came with archives of a profile whose state is one of some.
func (ps Posts) moved(
	ctx context.Context, handle string, after int64, limit int, of func(protocol.PostState, string) bool,
) (ids []string, next int64, more bool, err error) {
	type post struct {
		Seq        int64
		ID, Reason string
		State      protocol.PostState
	}
	posts, err := list[post](ctx, ps.tx, movedHere, handle, after, limit)
	for _, p := range posts {
		if next = p.Seq; of(p.State, p.Reason) {
			ids = append(ids, p.ID)
		}
	}
	return ids, next, len(posts) == limit, err
}

// Conceal hides a visible post since the profile of its author is, or shows a post again that was hidden by that, and returns it as it was; nil when
// it is in another state. Reports, the review queue and reactions stay as they are.
func (ps Posts) Conceal(ctx context.Context, id string, hide bool) (*protocol.StoredPost, error) {
	if err := ps.tx.settleWords(); err != nil {
		return nil, err
	}
	p, seq, err := ps.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	text, args := `UPDATE post SET state = 'hidden', reason = ? WHERE seq = ? AND state = 'visible'`, []any{Concealed, seq}
	if !hide {
		text, args = `UPDATE post SET state = 'visible', reason = '' WHERE seq = ? AND state = 'hidden' AND reason = ?`, []any{seq, Concealed}
	}
	if n, err := ps.tx.write(ctx, text, args...); err != nil || n == 0 {
		return nil, err
	}
	if hide {
		if err = ps.unshow(ctx, p, seq); err == nil {
			err = ps.unresolve(ctx, p)
		}
	} else {
		err = ps.show(ctx, p, seq)
	}
	if err != nil {
		return nil, err
	}
	return p, ps.tx.Feed().SetVisible(ctx, id, !hide)
}

// ByHidden reports whether a post of this node is by a profile that is not shown.
func (ps Posts) ByHidden(ctx context.Context, p *protocol.StoredPost) (bool, error) {
	if p.Node != nil || p.Author.Handle == nil || p.Author.Method == protocol.ByProof {
		return false, nil
	}
	return ps.tx.exists(ctx, `SELECT 1 FROM profile WHERE handle = ? AND state <> ''`, *p.Author.Handle)
}
