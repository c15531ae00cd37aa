package storage

import (
	"context"

	"stoa/protocol"
)

// A requirement, challenge or question names the first visible resolution by its
// own author (protocol.Resolves). The name is updated by every change of one of the
// two: insert, hide, restore, delete, verdict, and a parent that arrives late.

// resolve marks the parent of a visible post as resolved by it, if it is and no
// earlier resolution exists.
func (ps Posts) resolve(ctx context.Context, p *protocol.StoredPost) error {
	parent, seq, err := ps.resolvable(ctx, p)
	if err != nil || parent == nil || !protocol.Resolves(&p.Post, &parent.Post) {
		return err
	}
	if parent.ResolvedBy != nil && *parent.ResolvedBy <= p.ID {
		return nil
	}
	return ps.setResolved(ctx, parent, seq, &p.ID)
}

// unresolve clears the parent's resolution if p no longer resolves it; the next
// resolution replaces it.
func (ps Posts) unresolve(ctx context.Context, p *protocol.StoredPost) error {
	parent, seq, err := ps.resolvable(ctx, p)
	if err != nil || parent == nil || parent.ResolvedBy == nil || *parent.ResolvedBy != p.ID {
		return err
	}
	next, err := ps.resolutionOf(ctx, &parent.Post)
	if err != nil {
		return err
	}
	return ps.setResolved(ctx, parent, seq, next)
}

// resolvable is the post that p could resolve, nil if there is none.
func (ps Posts) resolvable(ctx context.Context, p *protocol.StoredPost) (*protocol.StoredPost, int64, error) {
	if p.Kind != protocol.Resolution || p.InReplyTo == nil {
		return nil, 0, nil
	}
	parent, seq, err := ps.byID(ctx, *p.InReplyTo)
	if err == ErrNotFound || err == nil && parent.State == protocol.Deleted {
		return nil, 0, nil
	}
	return parent, seq, err
}

// findResolution finds the resolution of p; the caller updates the index.
func (ps Posts) findResolution(ctx context.Context, p *protocol.StoredPost, seq int64) error {
	if p.State == protocol.Deleted {
		return nil
	}
	next, err := ps.resolutionOf(ctx, &p.Post)
	if err != nil {
		return err
	}
	p.ResolvedBy, p.Resolved = next, next != nil
	return ps.tx.exec(ctx, `UPDATE post SET resolved_by = ? WHERE seq = ?`, orNull(next), seq)
}

// resolutionOf is the first visible resolution of p by its own author:
// protocol.Resolves in SQL, so that resolutions of others are not read.
func (ps Posts) resolutionOf(ctx context.Context, p *protocol.Post) (*string, error) {
	a := p.Author
	if !p.Kind.Resolvable() || !a.Verified {
		return nil, nil
	}
	var handle, owned, old, key any // by which of them protocol.Author.Is recognises the author
	if a.Node == nil {              // otherwise it is claimed by another node
		handle = orNull(a.Handle)
	}
	switch {
	case a.ERC8004 != nil && a.Proof.Owner != nil:
		owned = *a.ERC8004
	case a.ERC8004 != nil:
		old = *a.ERC8004
	default:
		key = orNull(a.KeyID)
	}
	var id string
	err := ps.tx.row(ctx, resolutionQuery, p.ID, owned, orNull(a.Proof.Owner), old, orNull(a.KeyID), key, handle).Scan(&id)
	if err == ErrNotFound {
		return nil, nil
	}
	return &id, err
}

const resolutionQuery = `SELECT id FROM post WHERE in_reply_to = ? AND state = 'visible' AND kind = 'resolution' AND verified
	AND (author_erc8004 = ? AND proof_owner = ? OR author_erc8004 = ? AND author_keyid = ? OR author_keyid = ?
		OR author_local AND author_handle = ?) ORDER BY seq LIMIT 1`

// setResolved stores the resolution of a post and updates its words in the index.
func (ps Posts) setResolved(ctx context.Context, p *protocol.StoredPost, seq int64, by *string) error {
	if _, err := ps.tx.write(ctx, `UPDATE post SET resolved_by = ? WHERE seq = ?`, orNull(by), seq); err != nil {
		return err
	}
	if p.State != protocol.Visible || p.Resolved == (by != nil) {
		return nil
	}
	if err := postWords.drop(ctx, ps.tx, seq, postText(p)); err != nil {
		return err
	}
	p.ResolvedBy, p.Resolved = by, by != nil
	return ps.tx.hold(heldWords, seq, postText(p))
}
