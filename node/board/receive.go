package board

import (
	"context"
	"errors"

	"stoa/protocol"
	"stoa/storage"
)

// ReceivePost stores a post that another node sent and federation has checked.
// It is known by its URI: a second time it gives the same id and changes
// nothing. Its id and time are those it is listed by (protocol.ShownAt).
func (b *Board) ReceivePost(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (string, error) {
	if known, err := tx.PostByURI(ctx, p.URI); err == nil {
		return known.ID, nil
	} else if !errors.Is(err, storage.ErrNotFound) {
		return "", err
	}
	p.State, p.Untrusted = protocol.Visible, true
	if p.Tags == nil {
		p.Tags = []string{}
	}
	if p.ReplyTo != "" {
		parent, err := tx.PostByURI(ctx, p.ReplyTo)
		switch {
		case err == nil:
			p.InReplyTo = &parent.ID
			if err := tellAuthor(ctx, tx, parent, p); err != nil {
				return "", err
			}
		case !errors.Is(err, storage.ErrNotFound):
			return "", err
		}
	}
	if err := tx.InsertPost(ctx, p); err != nil {
		return "", err
	}
	return p.ID, tx.AppendFeed(ctx, feedItem(p, p.CreatedAt))
}

// DeletePost applies the deletion of a post by its origin. An unknown post is
// no error: it may have been deleted before it arrived.
func (b *Board) DeletePost(ctx context.Context, tx *storage.Tx, uri string) error {
	return b.move(ctx, tx, uri, protocol.Deleted, "by its origin")
}

// byItsBoard is the reason of what HidePost hid.
const byItsBoard = "by its board"

// HidePost applies the hiding of a post by the board it belongs to. One that is
// hidden here already keeps the reason it has.
func (b *Board) HidePost(ctx context.Context, tx *storage.Tx, uri string) error {
	return b.move(ctx, tx, uri, protocol.Hidden, byItsBoard)
}

// RestorePost undoes HidePost. A post that this node hid itself, on reports or
// on its operator's word, stays hidden.
func (b *Board) RestorePost(ctx context.Context, tx *storage.Tx, uri string) error {
	return b.move(ctx, tx, uri, protocol.Visible, "")
}

func (b *Board) move(ctx context.Context, tx *storage.Tx, uri string, to protocol.PostState, why string) error {
	p, err := tx.PostByURI(ctx, uri)
	if err == nil {
		p, err = tx.PostToDecide(ctx, p.ID) // as the operator may decide at the same moment
	}
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil || p.State == to || p.State == protocol.Deleted || p.Node == nil {
		return err
	}
	if to == protocol.Visible {
		if reason, _, err := tx.PostStanding(ctx, p.ID); err != nil || reason != byItsBoard {
			return err
		}
	}
	return tx.SetPostState(ctx, p.ID, to, why)
}
