package storage

import (
	"context"
	"slices"

	"stoa/protocol"
)

// A thread is a post that answers no stored post, its root, and every reply below
// it. Posts of other nodes arrive in any order, so threads are joined: a reply
// whose parent is missing begins a thread until the parent arrives.

// Limits of what moves into another thread when a parent arrives after its replies,
// so that the cost of one write is bounded.
const (
	joinAtOnce = 100  // posts per transaction; a job joins the rest
	maxJoined  = 1000 // posts of one thread: a larger one stays a separate thread
)

// findParent sets the parent of a reply, if it is stored, and its root.
func (ps Posts) findParent(ctx context.Context, p *protocol.StoredPost) (err error) {
	var parent *protocol.StoredPost
	switch {
	case p.InReplyTo != nil:
		parent, _, err = ps.byID(ctx, *p.InReplyTo)
	case p.ReplyTo != "":
		parent, _, err = ps.byURI(ctx, p.ReplyTo)
	default:
		return nil
	}
	if err == ErrNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	p.InReplyTo, p.Root = &parent.ID, rootOf(&parent.Post)
	return nil
}

// rootOf is the root of the replies to p.
func rootOf(p *protocol.Post) *string {
	if p.Root != nil {
		return p.Root
	}
	return &p.ID
}

// A numberedPost is a post with its number.
type numberedPost struct {
	protocol.StoredPost
	seq int64
}

func scanNumbered(s scanner) (p numberedPost, err error) {
	p.seq, err = scanStored(s, &p.StoredPost)
	return p, err
}

// where returns the posts that match a condition, locked.
func (ps Posts) where(ctx context.Context, where string, args ...any) ([]numberedPost, error) {
	rows, err := ps.tx.query(ctx, `SELECT `+storedColumns+` FROM post WHERE `+where+ps.tx.db.engine.ForUpdate(), args...)
	return collect(rows, err, scanNumbered)
}

const orphans = `reply_to = ? AND reply_to <> '' AND in_reply_to IS NULL AND id <> ? AND id <> ? ORDER BY seq + 0 LIMIT ?`

// adoptReplies joins replies that arrived before p to it, and their threads to its
// thread, until joinAtOnce posts have moved; a job joins the rest. It returns the
// replies. The root of p is skipped: replies in a circle stay one thread.
func (ps Posts) adoptReplies(ctx context.Context, p *protocol.StoredPost, seq int64) ([]numberedPost, error) {
	root := *rootOf(&p.Post)
	found, err := ps.where(ctx, orphans, p.URI, p.ID, root, joinAtOnce+1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	joined, moved, visible := 0, 0, 0
	for ; joined < len(found) && moved < joinAtOnce; joined++ {
		o := &found[joined]
		n, err := ps.moveThread(ctx, *o, root)
		if err != nil {
			return nil, err
		}
		moved += max(n, 1)
		o.InReplyTo = &p.ID
		if _, err := ps.tx.write(ctx, `UPDATE post SET in_reply_to = ? WHERE seq = ?`, p.ID, o.seq); err != nil {
			return nil, err
		}
		if o.State == protocol.Visible {
			visible++
		}
	}
	if _, err := ps.tx.write(ctx, `UPDATE post SET reply_count = reply_count + ? WHERE seq = ?`, visible, seq); err != nil {
		return nil, err
	}
	if joined < len(found) {
		err = ps.tx.Enqueue(ctx, Job{Kind: AdoptJob, Lane: string(AdoptJob), Dedupe: string(AdoptJob) + " " + p.ID, Args: []byte(p.ID)})
	}
	return found[:joined], err
}

// AdoptReplies joins more of the replies that arrived before a post to it, and
// leaves the rest to another job.
func (ps Posts) AdoptReplies(ctx context.Context, postID string) error {
	if err := ps.tx.settleWords(); err != nil {
		return err
	}
	p, seq, err := ps.lock(ctx, postID)
	if err != nil {
		return orNothing(err)
	}
	replies, err := ps.adoptReplies(ctx, p, seq)
	for i := range replies {
		if err == nil && replies[i].State == protocol.Visible {
			err = ps.resolve(ctx, &replies[i].StoredPost)
		}
	}
	return err
}

// moveThread moves a thread below another root, unless it is larger than maxJoined,
// and returns how many posts moved.
func (ps Posts) moveThread(ctx context.Context, first numberedPost, to string) (int, error) {
	members, err := ps.where(ctx, `root = ? ORDER BY state, seq LIMIT ?`, first.ID, maxJoined)
	if err != nil || len(members) >= maxJoined {
		return 0, err
	}
	below := 0 // visible posts that the thread loses
	for _, m := range members {
		if m.State == protocol.Visible {
			below++
		}
	}
	if err := ps.countThread(ctx, first.ID, -below); err != nil {
		return 0, err
	}
	if first.State == protocol.Visible {
		below++
	}
	if err := ps.countThread(ctx, to, below); err != nil {
		return 0, err
	}
	members = append(members, first)
	for i := range members {
		m := &members[i]
		visible := m.State == protocol.Visible
		if visible {
			if err := postWords.drop(ctx, ps.tx, m.seq, postText(&m.StoredPost)); err != nil {
				return 0, err
			}
		}
		m.Root = &to
		if _, err := ps.tx.write(ctx, `UPDATE post SET root = ? WHERE seq = ?`, to, m.seq); err != nil {
			return 0, err
		}
		if visible {
			if err := ps.tx.hold(heldWords, m.seq, postText(&m.StoredPost)); err != nil {
				return 0, err
			}
		}
	}
	return len(members), nil
}

// ListReplies returns the visible replies to a post, oldest first by id.
func (ps Posts) ListReplies(ctx context.Context, postID string, limit int, after string) (protocol.Page[protocol.Post], error) {
	return ps.listUnder(ctx, listReplies, `in_reply_to`, postID, limit, after)
}

// ListThread returns the visible replies of the thread that a post began, at any
// depth, oldest first by id.
func (ps Posts) ListThread(ctx context.Context, rootID string, limit int, after string) (protocol.Page[protocol.Post], error) {
	return ps.listUnder(ctx, listThread, `root`, rootID, limit, after)
}

// listUnder lists posts by their root or by their parent.
func (ps Posts) listUnder(ctx context.Context, listing, column, id string, limit int, after string) (protocol.Page[protocol.Post], error) {
	limit = bounded(limit)
	from, err := position(listing, after, 0)
	if err != nil {
		return protocol.Page[protocol.Post]{}, err
	}
	seqs, err := list[int64](ctx, ps.tx, underQuery(column), id, from, limit+1)
	if err != nil {
		return protocol.Page[protocol.Post]{}, err
	}
	p, err := ps.page(ctx, listing, seqs, limit)
	slices.Reverse(p.Items)
	return p, err
}

func underQuery(column string) string {
	return `SELECT seq FROM post WHERE ` + column + ` = ? AND state = 'visible' AND seq > ? ORDER BY seq LIMIT ?`
}

const threadAuthor = `SELECT author_actor FROM post WHERE root = ? AND state = 'visible' AND node = ? AND author_handle = ?
	AND author_actor IS NOT NULL LIMIT 1`

// ThreadAuthor is the actor of another server that wrote in the thread of a root
// under a handle and host; "" when there is none.
func (ps Posts) ThreadAuthor(ctx context.Context, rootID, handle, host string) (string, error) {
	root, err := ps.ByID(ctx, rootID)
	if err != nil {
		return "", err
	}
	if a := root.Author; root.Node != nil && *root.Node == host && a.Handle != nil && *a.Handle == handle && a.Actor != nil {
		return *a.Actor, nil
	}
	return orZero(find[string](ctx, ps.tx, threadAuthor, rootID, host, handle))
}

// countThread adds to the number of visible replies in the thread of a root.
func (ps Posts) countThread(ctx context.Context, rootID string, by int) error {
	if by == 0 {
		return nil
	}
	return ps.tx.exec(ctx, `UPDATE post SET thread_count = thread_count + ? WHERE `+byID, append([]any{by}, idRange(rootID)...)...)
}

// CountThread is the number of visible replies in the thread of a root.
func (ps Posts) CountThread(ctx context.Context, rootID string) (int, error) {
	return orZero(find[int](ctx, ps.tx, `SELECT thread_count FROM post WHERE `+byID, idRange(rootID)...))
}
