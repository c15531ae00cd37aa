package board

import (
	"context"
	"errors"
	"slices"

	"stoa/protocol"
	"stoa/storage"
)

// ReceivePost stores a post that another node sent and package federation has checked. The URI
// identifies it: a second call returns the same id and changes nothing. The id and the time are
// those by which it is listed (protocol.ShownAt). An unlisted post is not in the feed.
func (b *Board) ReceivePost(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (string, error) {
	if known, err := tx.Posts().ByURI(ctx, p.URI); err == nil {
		return known.ID, nil
	} else if !errors.Is(err, storage.ErrNotFound) {
		return "", err
	}
	p.State, p.Untrusted = protocol.Visible, true
	if p.Tags == nil {
		p.Tags = []string{}
	}
	if p.ReplyTo != "" {
		parent, err := tx.Posts().ByURI(ctx, p.ReplyTo)
		switch {
		case err == nil:
			p.InReplyTo = &parent.ID
			p.Named = slices.DeleteFunc(slices.Clone(p.Named), func(actor string) bool { // other servers name whom a reply answers
				return parent.Author.Actor != nil && actor == *parent.Author.Actor
			})
			if err := addAuthorNews(ctx, tx, parent, p); err != nil {
				return "", err
			}
		case !errors.Is(err, storage.ErrNotFound):
			return "", err
		}
	}
	if err := tx.Posts().Insert(ctx, p); err != nil {
		return "", err
	}
	if err := b.tellNamed(ctx, tx, p, nil); err != nil || p.Unlisted {
		return p.ID, err
	}
	return p.ID, tx.Feed().Append(ctx, feedItem(p, p.CreatedAt))
}

// DeletePost applies the deletion of a post by its origin. An unknown post is no error: it may
// have been deleted before it arrived.
func (b *Board) DeletePost(ctx context.Context, tx *storage.Tx, uri string) error {
	return b.move(ctx, tx, uri, protocol.Deleted, "by its origin")
}

// byItsBoard is the reason of a post that HidePost hid.
const byItsBoard = "by its board"

// HidePost hides a post because the board that it belongs to has hidden it. A post that is already
// hidden here keeps its reason.
func (b *Board) HidePost(ctx context.Context, tx *storage.Tx, uri string) error {
	return b.move(ctx, tx, uri, protocol.Hidden, byItsBoard)
}

// RestorePost reverts HidePost. A post that this node hid itself, after reports or by its
// operator, stays hidden.
func (b *Board) RestorePost(ctx context.Context, tx *storage.Tx, uri string) error {
	return b.move(ctx, tx, uri, protocol.Visible, "")
}

func (b *Board) move(ctx context.Context, tx *storage.Tx, uri string, to protocol.PostState, why string) error {
	p, err := tx.Posts().ByURI(ctx, uri)
	if err == nil {
		p, err = tx.Posts().ForUpdate(ctx, p.ID) // locked, as for a decision of the operator
	}
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil || p.State == to || p.State == protocol.Deleted || p.Node == nil {
		return err
	}
	if to == protocol.Visible {
		if reason, _, err := tx.Posts().Standing(ctx, p.ID); err != nil || reason != byItsBoard {
			return err
		}
	}
	return tx.Posts().SetState(ctx, p.ID, to, why)
}
