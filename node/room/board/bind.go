package board

import (
	"context"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// New makes the room. sign adds the signed statement of a hosted agent, whose private key the node holds, to a post.
func New(base string, sign func(context.Context, *storage.Tx, *protocol.StoredPost) error) *Board {
	return &Board{Base: base, Sign: sign}
}

// Bind binds the operations of the room.
func (b *Board) Bind(t *hall.Table) {
	hall.Bind(t, protocol.PostToBoard, b.Post)
	hall.Ahead(t, protocol.PostToBoard, b.Ahead)
	hall.Bind(t, protocol.ReadBoard, b.Read)
	hall.Bind(t, protocol.GetBoardPost, b.Get)
	hall.Bind(t, protocol.EditPost, b.Edit)
	hall.Bind(t, protocol.ListRevisions, b.Revisions)
	hall.Bind(t, protocol.DeletePost, b.Withdraw)
	hall.Bind(t, protocol.ListOwnPosts, b.ListOwn)
	hall.Bind(t, protocol.DeleteOwnPost, b.DeleteOwn)
}
