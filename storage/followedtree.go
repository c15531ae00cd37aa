package storage

import "context"

// A FollowedTree is the tree of a followed log, as far as this node accepted it.
type FollowedTree struct {
	Board, Epoch string
	Size         int64
	Proved       int64  // entries up to this number are compared with the tree, or were taken before it was known
	Checkpoint   []byte // the last one that was accepted, with its signatures
}

var followedTreeTable = tableOf[FollowedTree]("followed_tree")

// Tree returns the tree of a followed log; ErrNotFound when none was accepted.
func (ss Subscriptions) Tree(ctx context.Context, board string) (*FollowedTree, error) {
	return orNil(find[FollowedTree](ctx, ss.tx, followedTreeTable.from+`WHERE board = ?`, board))
}

// AcceptTree stores a checkpoint in place of the one of the size from, 0 for none. It is false, and changes nothing, when the last one that was
// accepted has another size: what is signed next must be an extension of it.
func (ss Subscriptions) AcceptTree(ctx context.Context, t FollowedTree, from int64) (bool, error) {
	n, err := ss.tx.write(ctx, `INSERT INTO followed_tree (board, epoch, size, proved, checkpoint) SELECT board, epoch, ?, ?, ? FROM subscription s
		WHERE board = ? AND epoch = ? AND (CAST(? AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM followed_tree f WHERE f.board = s.board))
		ON CONFLICT (board) DO UPDATE SET size = EXCLUDED.size, checkpoint = EXCLUDED.checkpoint
		WHERE followed_tree.epoch = EXCLUDED.epoch AND followed_tree.size = ?`,
		t.Size, t.Proved, t.Checkpoint, t.Board, t.Epoch, from, from)
	return n > 0, err
}

// Another returns one of the accepted subscriptions but that of a board, by chance; ErrNotFound when there is none.
func (ss Subscriptions) Another(ctx context.Context, board string) (*Subscription, error) {
	return orNil(find[Subscription](ctx, ss.tx, subscriptionTable.from+`WHERE state = 'accepted' AND board <> ? ORDER BY random() LIMIT 1`, board))
}

// ProvedTree notes that the entries of a followed log are compared with its tree up to a number.
func (ss Subscriptions) ProvedTree(ctx context.Context, board, epoch string, seq int64) error {
	return ss.tx.exec(ctx, `UPDATE followed_tree SET proved = ? WHERE board = ? AND epoch = ? AND proved < ?`, seq, board, epoch, seq)
}
