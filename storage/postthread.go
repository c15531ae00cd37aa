package storage

import (
	"context"
	"slices"

	"stoa/protocol"
)

// A thread is a post that answers none held here, its root, and every reply
// below it. Posts of other nodes arrive in any order, so threads grow together:
// a reply whose parent is missing begins a thread until the parent comes.

// maxJoined is how many posts move into another thread at once, when a parent
// comes after its replies. What is more stays a thread of its own, so that nobody
// makes one insert cost any number of writes.
const maxJoined = 1000

// findParent fills in what a reply answers, where that is held, and its root.
func (tx *Tx) findParent(ctx context.Context, p *protocol.StoredPost) (err error) {
	var parent *protocol.StoredPost
	switch {
	case p.InReplyTo != nil:
		parent, _, err = tx.postByID(ctx, *p.InReplyTo)
	case p.ReplyTo != "":
		parent, _, err = tx.postByURI(ctx, p.ReplyTo)
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

// adoptReplies joins replies that came before p to it, and their threads to its
// own. The root of p is passed over: replies in a circle stay one thread.
func (tx *Tx) adoptReplies(ctx context.Context, p *protocol.StoredPost, seq int64) error {
	const where = `reply_to = ? AND reply_to <> '' AND in_reply_to IS NULL AND id <> ? AND id <> ?`
	args := []any{p.URI, p.ID, *rootOf(&p.Post)}
	rows, err := tx.query(ctx, `SELECT id FROM post WHERE `+where+` ORDER BY seq LIMIT ?`, append(args, maxJoined)...)
	orphans, err := collect(rows, err, func(s scanner) (id string, err error) { return id, s.Scan(&id) })
	if err != nil || len(orphans) == 0 {
		return err
	}
	if err := tx.settleWords(); err != nil {
		return err
	}
	if _, err := tx.write(ctx, `UPDATE post SET in_reply_to = ? WHERE `+where, append([]any{p.ID}, args...)...); err != nil {
		return err
	}
	room := maxJoined
	for _, id := range orphans {
		moved, err := tx.moveThread(ctx, id, *rootOf(&p.Post), room)
		if err != nil {
			return err
		}
		room -= moved
	}
	if _, err := tx.write(ctx, `UPDATE post SET reply_count = (SELECT count(*) FROM post r WHERE r.in_reply_to = ? AND r.state = 'visible')
		WHERE seq = ?`, p.ID, seq); err != nil {
		return err
	}
	return tx.findResolution(ctx, p, seq)
}

// moveThread puts a thread below another root, unless it is larger than room,
// and returns how many posts moved.
func (tx *Tx) moveThread(ctx context.Context, from, to string, room int) (int, error) {
	type member struct {
		protocol.StoredPost
		seq int64
	}
	load := func(where string, args ...any) ([]member, error) {
		rows, err := tx.query(ctx, `SELECT `+storedColumns+` FROM post WHERE `+where+tx.db.engine.forUpdate(), args...)
		return collect(rows, err, func(s scanner) (m member, err error) {
			m.seq, err = scanStored(s, &m.StoredPost)
			return m, err
		})
	}
	members, err := load(`root = ? ORDER BY seq LIMIT ?`, from, room)
	if err != nil || len(members) >= room {
		return 0, err
	}
	first, err := load(byID, idRange(from)...)
	if err != nil {
		return 0, err
	}
	below := 0 // visible posts that the thread loses
	for _, m := range members {
		if m.State == protocol.Visible {
			below++
		}
	}
	if err := tx.countThread(ctx, from, -below); err != nil {
		return 0, err
	}
	for _, m := range first {
		if m.State == protocol.Visible {
			below++
		}
	}
	if err := tx.countThread(ctx, to, below); err != nil {
		return 0, err
	}
	members = append(members, first...)
	for i := range members {
		m := &members[i]
		visible := m.State == protocol.Visible
		if visible {
			if err := postWords.drop(ctx, tx, m.seq, postText(&m.StoredPost)); err != nil {
				return 0, err
			}
		}
		m.Root = &to
		if _, err := tx.write(ctx, `UPDATE post SET root = ? WHERE seq = ?`, to, m.seq); err != nil {
			return 0, err
		}
		if visible {
			tx.batch.words.add(m.seq, postText(&m.StoredPost))
		}
	}
	return len(members), nil
}

// ListReplies returns the visible replies to a post, oldest first by id.
func (tx *Tx) ListReplies(ctx context.Context, postID string, limit int, after string) (protocol.Page[protocol.Post], error) {
	return tx.listUnder(ctx, listReplies, `in_reply_to`, postID, limit, after)
}

// ListThread returns the visible replies of the thread that a post began, at any
// depth, oldest first by id.
func (tx *Tx) ListThread(ctx context.Context, rootID string, limit int, after string) (protocol.Page[protocol.Post], error) {
	return tx.listUnder(ctx, listThread, `root`, rootID, limit, after)
}

// listUnder lists posts by one of the two columns that say what they hang on.
func (tx *Tx) listUnder(ctx context.Context, listing, column, id string, limit int, after string) (protocol.Page[protocol.Post], error) {
	limit = bounded(limit)
	from, err := position(listing, after, 0)
	if err != nil {
		return protocol.Page[protocol.Post]{}, err
	}
	if err := tx.settle(); err != nil {
		return protocol.Page[protocol.Post]{}, err
	}
	rows, err := tx.query(ctx, underQuery(column), id, from, limit+1)
	seqs, err := collect(rows, err, scanInt)
	if err != nil {
		return protocol.Page[protocol.Post]{}, err
	}
	p, err := tx.postPage(ctx, listing, seqs, limit)
	slices.Reverse(p.Items)
	return p, err
}

func underQuery(column string) string {
	return `SELECT seq FROM post WHERE ` + column + ` = ? AND state = 'visible' AND seq > ? ORDER BY seq LIMIT ?`
}

const threadAuthor = `SELECT author_actor FROM post WHERE root = ? AND state = 'visible' AND node = ? AND author_handle = ? AND author_actor IS NOT NULL LIMIT 1`

// ThreadAuthor is the actor of another server that wrote in the thread of a root
// under a handle and host; "" when there is none.
func (tx *Tx) ThreadAuthor(ctx context.Context, rootID, handle, host string) (actor string, err error) {
	root, err := tx.PostByID(ctx, rootID)
	if err != nil {
		return "", err
	}
	if a := root.Author; root.Node != nil && *root.Node == host && a.Handle != nil && *a.Handle == handle && a.Actor != nil {
		return *a.Actor, nil
	}
	err = tx.row(ctx, threadAuthor, rootID, host, handle).Scan(&actor)
	if err == ErrNotFound {
		return "", nil
	}
	return actor, err
}

// countThread keeps the number of visible replies in the thread of a root.
func (tx *Tx) countThread(ctx context.Context, rootID string, by int) error {
	if by == 0 {
		return nil
	}
	_, err := tx.write(ctx, `UPDATE post SET thread_count = thread_count + ? WHERE `+byID, append([]any{by}, idRange(rootID)...)...)
	return err
}

// CountThread is how many visible replies the thread of a root has.
func (tx *Tx) CountThread(ctx context.Context, rootID string) (n int, err error) {
	if err := tx.settle(); err != nil {
		return 0, err
	}
	err = tx.row(ctx, `SELECT thread_count FROM post WHERE `+byID, idRange(rootID)...).Scan(&n)
	if err == ErrNotFound {
		return 0, nil
	}
	return n, err
}
