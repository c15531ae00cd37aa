package board

import (
	"context"
	"slices"

	"stoa/protocol"
	"stoa/storage"
)

// Edit changes the text of a post of this node, also of a hidden one. Only its verified author may. The same text again changes
// nothing.
func (b *Board) Edit(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PostEdit) (protocol.Post, error) {
	if in.Handle != "" {
		handle, err := c.ActsAs(in.Handle)
		if err != nil {
			return protocol.Post{}, err
		}
		c.Handle = handle
	}
	p, err := readable(ctx, tx, c, in.ID)
	if err == nil {
		err = mayEdit(c, p, in)
	}
	if err != nil {
		return protocol.Post{}, err
	}
	p.URL = b.page(p.ID)
	if in.Tags == nil {
		in.Tags = []string{}
	}
	if in.Title == p.Title && in.Body == p.Body && slices.Equal(in.Tags, p.Tags) {
		return p.Post, nil
	}
	before := b.named(p)
	p.Title, p.Body, p.Tags, p.Language, p.EditedAt = in.Title, in.Body, in.Tags, c.Language, new(tx.Now)
	p.Evidence, p.Statement, p.Mentions = c.Evidence, nil, nil
	writer := c.Author(b.Base, "", tx.Now)
	p.Author.Method, p.Author.KeyID, p.Author.Proof = writer.Method, writer.KeyID, writer.Proof
	if p.InReplyTo != nil {
		parent, err := tx.Posts().ByID(ctx, *p.InReplyTo)
		if err != nil {
			return protocol.Post{}, err
		}
		if p.Mentions, err = mentioned(ctx, tx, parent, p.Body); err != nil {
			return protocol.Post{}, err
		}
	}
	if err := b.sign(ctx, tx, c, p); err != nil {
		return protocol.Post{}, err
	}
	if err := tx.Posts().Revise(ctx, p.ID, p); err != nil {
		return protocol.Post{}, err
	}
	p.Revisions++
	if err := b.tellNamed(ctx, tx, p, before); err != nil {
		return protocol.Post{}, err
	}
	return p.Post, b.Distribute(ctx, tx, p, storage.LogUpdate)
}

// mayEdit returns why a caller cannot change a post as it asks, nil otherwise.
func mayEdit(c protocol.Caller, p *protocol.StoredPost, in protocol.PostEdit) error {
	switch {
	case p.Node != nil:
		return protocol.Errorf(protocol.Forbidden, "this post was made on %s; change it there (%s)", *p.Node, p.URI)
	case !c.Wrote(p.Author):
		return protocol.Errorf(protocol.Forbidden, "only the verified author can change this post")
	case in.Kind != p.Kind:
		return protocol.Invalid(protocol.Fault{Pointer: "/kind", Code: "fixed",
			Detail: "this post is a " + string(p.Kind) + ", which cannot change; delete it and write a new one"})
	case in.InReplyTo != "" && (p.InReplyTo == nil || *p.InReplyTo != in.InReplyTo):
		return protocol.Invalid(protocol.Fault{Pointer: "/inReplyTo", Code: "fixed", Detail: "what a post replies to cannot change; leave it out"})
	}
	return nil
}

// Revisions returns the earlier texts of a post to those who may read the post.
func (b *Board) Revisions(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PostRef) (protocol.Revisions, error) {
	if _, err := readable(ctx, tx, c, in.ID); err != nil {
		return protocol.Revisions{}, err
	}
	items, err := tx.Posts().Revisions(ctx, in.ID)
	if items == nil {
		items = []protocol.Revision{}
	}
	return protocol.Revisions{Items: items, Untrusted: true}, err
}
