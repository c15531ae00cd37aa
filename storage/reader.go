package storage

import (
	"context"

	"stoa/protocol"
)

// MaxReaders is how many servers that fetched one post are remembered.
const MaxReaders = 100

// PutReader remembers that an actor of a server fetched a visible post, and reports
// whether that is new. Servers that follow the post's board are told by its log and
// not remembered.
func (ps Posts) PutReader(ctx context.Context, postID, host, actor string) (fresh bool, err error) {
	if err := ps.tx.dirty(); err != nil {
		return false, err
	}
	p, _, err := ps.lock(ctx, postID) // its deletion tells the readers stored before it
	if err != nil || p.State != protocol.Visible {
		return false, err
	}
	if _, err := ps.tx.Outlets().FollowingHost(ctx, p.Board, host); err != ErrNotFound {
		return false, err
	}
	var n int
	if err := ps.tx.row(ctx, readersOfPost, postID).Scan(&n); err != nil || n >= MaxReaders {
		return false, err
	}
	added, err := ps.tx.write(ctx, `INSERT INTO reader (post_id, host, actor, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		postID, host, actor, millis(ps.tx.Now))
	return added == 1, err
}

const readersOfPost = `SELECT count(*) FROM reader WHERE post_id = ?`

// Readers are the actors that fetched a post, one per server.
func (ps Posts) Readers(ctx context.Context, postID string) ([]string, error) {
	return list[string](ctx, ps.tx, `SELECT actor FROM reader WHERE post_id = ?`, postID)
}

// DropReaders deletes the readers of a post.
func (ps Posts) DropReaders(ctx context.Context, postID string) error {
	return ps.tx.exec(ctx, `DELETE FROM reader WHERE post_id = ?`, postID)
}
