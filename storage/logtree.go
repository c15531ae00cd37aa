package storage

import (
	"context"
	"strings"
)

// A LogTree is the Merkle tree over the entries of a board's log in its epoch: those up to the number Size are in it.
type LogTree struct {
	ID     int64 // 0 while it has no entries
	Stream int64
	Epoch  string
	Head   int64 // number of the last entry of the log
	Size   int64
	Root   []byte // 32 bytes; nil while it has no entries
	Old    int64  // a tree of an earlier epoch that is still stored; 0 for none
}

// A TreeLeaf is what is stored of a leaf. Entry and Content are hashes of 32 bytes; Content is nil for an entry without content that is hashed.
type TreeLeaf struct {
	Seq            int64
	Entry, Content []byte
	Salt           []byte // nil: there is none, or it was deleted with the content
	Hides          string // id of an object whose earlier leaves lose their salts, because this entry hides it; not stored
}

// A TreeTile is up to 256 hashes of a tree, of 32 bytes each.
type TreeTile struct {
	Level  int
	N      int64
	Hashes []byte
}

const logTree = `SELECT s.id, s.epoch, s.head, COALESCE(t.id, 0), COALESCE(t.size, 0), t.root,
	COALESCE((SELECT min(o.id) FROM log_tree o WHERE o.stream = s.id AND o.epoch <> s.epoch), 0)
	FROM stream s LEFT JOIN log_tree t ON t.stream = s.id AND t.epoch = s.epoch WHERE s.board = ?`

// Tree returns the tree of a board's log; ErrNotFound when the board has no log.
func (ls Logs) Tree(ctx context.Context, board string) (t LogTree, err error) {
	err = ls.tx.row(ctx, logTree, board).Scan(&t.Stream, &t.Epoch, &t.Head, &t.ID, &t.Size, &t.Root, &t.Old)
	return t, err
}

const (
	treeTile   = `SELECT hashes FROM log_tile WHERE tree = ? AND level = ? AND n = ?`
	treeLeaves = `SELECT seq, entry, content FROM log_leaf WHERE tree = ? AND seq > ? ORDER BY seq LIMIT ?`
	treeSalts  = `SELECT seq, salt FROM log_leaf WHERE tree = ? AND seq > ? ORDER BY seq LIMIT ?`
)

// TreeTile returns the hashes of a tile; ErrNotFound when there is none.
func (ls Logs) TreeTile(ctx context.Context, tree int64, level int, n int64) ([]byte, error) {
	return find[[]byte](ctx, ls.tx, treeTile, tree, level, n)
}

// TreeLeaves returns up to limit leaves after a number, in order, without salts.
func (ls Logs) TreeLeaves(ctx context.Context, tree, after int64, limit int) ([]TreeLeaf, error) {
	rows, err := ls.tx.query(ctx, treeLeaves, tree, after, limit)
	return collect(rows, err, func(s scanner) (l TreeLeaf, err error) { return l, s.Scan(&l.Seq, &l.Entry, &l.Content) })
}

// TreeSalts returns the salts of up to limit leaves after a number, in order.
func (ls Logs) TreeSalts(ctx context.Context, tree, after int64, limit int) ([]TreeLeaf, error) {
	rows, err := ls.tx.query(ctx, treeSalts, tree, after, limit)
	return collect(rows, err, func(s scanner) (l TreeLeaf, err error) { return l, s.Scan(&l.Seq, &l.Salt) })
}

const (
	growTree = `INSERT INTO log_tree (stream, epoch, size, root) VALUES (?, ?, ?, ?)
		ON CONFLICT (stream, epoch) DO UPDATE SET size = EXCLUDED.size, root = EXCLUDED.root WHERE log_tree.size = ? RETURNING id`
	treeRedacted = `SELECT seq, redacted FROM log WHERE stream = ? AND seq > ? AND seq <= ? ORDER BY seq`
	unsaltBefore = `tree = ? AND seq IN (SELECT seq FROM log WHERE object_id = ? AND stream = ? AND seq < ?)`
	unsalt       = `UPDATE log_leaf SET salt = NULL WHERE `
	unsaltBoard  = unsalt + `tree IN (SELECT t.id FROM log_tree t JOIN stream s ON s.id = t.stream WHERE s.board = ?)
		AND seq IN (SELECT seq FROM log WHERE object_id = ? AND kind <> 'delete' AND stream = (SELECT id FROM stream WHERE board = ?))`
)

// GrowTree adds the next leaves to a tree, with the tiles that they change and the root. It is false, and changes nothing, when the tree has
// not, or no longer, the size of t: then another process has added them. A leaf whose object was deleted since it was made gets no salt: the
// entries are locked, so that a deletion either is seen here or sees the leaf.
func (ls Logs) GrowTree(ctx context.Context, t LogTree, leaves []TreeLeaf, tiles []TreeTile, root []byte) (bool, error) {
	if err := ls.tx.dirty(); err != nil {
		return false, err
	}
	var id int64
	size := t.Size + int64(len(leaves))
	err := ls.tx.row(ctx, growTree, t.Stream, t.Epoch, size, root, t.Size).Scan(&id)
	if err != nil {
		return false, orNothing(err)
	}
	rows, err := ls.tx.query(ctx, treeRedacted+ls.tx.db.engine.ForUpdate(), t.Stream, t.Size, size)
	gone, err := collect(rows, err, func(s scanner) (gone bool, err error) {
		var seq int64
		return gone, s.Scan(&seq, &gone)
	})
	if err != nil || len(gone) != len(leaves) {
		return false, err
	}
	args := make([]any, 0, 5*len(leaves))
	for i, l := range leaves {
		if gone[i] {
			l.Salt = nil
		}
		args = append(args, id, l.Seq, blob(l.Entry), blob(l.Content), blob(l.Salt))
	}
	text := `INSERT INTO log_leaf (tree, seq, entry, content, salt) VALUES (?, ?, ?, ?, ?)` + strings.Repeat(`, (?, ?, ?, ?, ?)`, len(leaves)-1)
	if err := ls.tx.exec(ctx, text, args...); err != nil {
		return false, err
	}
	for _, l := range leaves {
		if l.Hides == "" {
			continue
		}
		if err := ls.tx.exec(ctx, unsalt+unsaltBefore, id, l.Hides, t.Stream, l.Seq); err != nil {
			return false, err
		}
	}
	for _, tile := range tiles {
		err := ls.tx.exec(ctx, `INSERT INTO log_tile (tree, level, n, hashes) VALUES (?, ?, ?, ?)
			ON CONFLICT (tree, level, n) DO UPDATE SET hashes = EXCLUDED.hashes`, id, tile.Level, tile.N, tile.Hashes)
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// DropTree deletes up to 1000 leaves and 100 tiles of a tree of an earlier epoch, and at the end the tree.
func (ls Logs) DropTree(ctx context.Context, tree int64) error {
	leaves, err := ls.tx.deleteSome(ctx, "log_leaf", "tree, seq", `tree = ? ORDER BY seq LIMIT 1000`, tree)
	if err != nil {
		return err
	}
	tiles, err := ls.tx.deleteSome(ctx, "log_tile", "tree, level, n", `tree = ? ORDER BY level, n LIMIT 100`, tree)
	if err != nil || leaves+tiles > 0 {
		return err
	}
	return ls.tx.exec(ctx, `DELETE FROM log_tree WHERE id = ?`, tree)
}
