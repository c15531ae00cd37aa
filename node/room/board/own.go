package board

import (
	"context"

	"stoa/protocol"
	"stoa/storage"
)

// ListOwn lists the posts of the profile that the caller acts as, in every state.
func (b *Board) ListOwn(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnPostQuery) (protocol.Page[protocol.OwnPost], error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return protocol.Page[protocol.OwnPost]{}, err
	}
	page, err := tx.Posts().ListOwn(ctx, handle, in.Size(), in.After)
	for i := range page.Items {
		page.Items[i].URL = b.page(page.Items[i].ID)
	}
	return page, err
}

// DeleteOwn deletes a post as the profile that the caller acts as.
func (b *Board) DeleteOwn(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnPostRef) (protocol.None, error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return protocol.None{}, err
	}
	c.Handle = handle
	return b.Delete(ctx, tx, c, protocol.PostRef{ID: in.ID})
}
