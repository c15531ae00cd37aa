package federation

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"stoa/identity/integrity"
	"stoa/identity/strictjson"
	"stoa/identity/tree"
	"stoa/protocol/activity"
	"stoa/storage"
)

// The entries that are read of a followed log are compared with the log's tree before they are applied: its checkpoint is signed by the
// board's node and contains the last one that was accepted, and the leaf of each entry is that of the entry. What contradicts that is a conflict.
// The signed checkpoint shows it to everyone: of one size there is one tree.

// maxUnproved is how many entries may have been taken that the tree of their log does not have yet. They are compared with it once it has them.
const maxUnproved = 1000

// followedTree is the tree of a followed log during a walk.
type followedTree struct {
	tree.Checkpoint
	raw    []byte // the signed checkpoint
	prefix string
	f      *Federation
	ctx    context.Context
	tiles  map[string][]byte // those read, by path
	failed error             // why a tile could not be fetched
}

// maxTiles is how many tiles of a tree are in memory.
const maxTiles = 64

func (t *followedTree) Height() int                     { return tree.Height }
func (t *followedTree) SaveTiles([]tlog.Tile, [][]byte) {}

// ReadTiles fetches tiles. They are checked by tlog.TileHashReader.
func (t *followedTree) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	all := make([][]byte, len(tiles))
	for i, tile := range tiles {
		path := tree.Path(tile)
		data, ok := t.tiles[path]
		if !ok {
			if data, t.failed = t.f.fetchAs(t.ctx, t.prefix+"/"+path, "", treeTypes); t.failed != nil {
				return nil, t.failed
			}
			if len(t.tiles) >= maxTiles {
				clear(t.tiles)
			}
			t.tiles[path] = data
		}
		all[i] = data
	}
	return all, nil
}

// hashes reads hashes that the checkpoint vouches for.
func (t *followedTree) hashes() tlog.HashReader {
	return tlog.TileHashReader(tlog.Tree{N: t.Size, Hash: t.Root}, t)
}

// contains reports whether the tree begins with the tree of another checkpoint of its log, which is not larger. An error means that
// it could not be found out.
func (t *followedTree) contains(c tree.Checkpoint) (bool, error) {
	if c.Size == t.Size || c.Size == 0 {
		return c.Size == 0 || c.Root == t.Root, nil
	}
	proof, err := tlog.ProveTree(t.Size, c.Size, t.hashes())
	if err != nil {
		return false, fmt.Errorf("tiles of %s: %w", t.Origin, err)
	}
	return tlog.CheckTree(proof, t.Size, t.Root, c.Size, c.Root) == nil, nil
}

// leaves returns the leaves of up to 256 entries from the index at on, all in one bundle.
func (t *followedTree) leaves(n int64) (leaves []tree.Leaf, err error) {
	width := min(tree.Width, t.Size-n*tree.Width)
	raw, err := t.f.fetchAs(t.ctx, t.prefix+"/"+tree.Path(tree.At(tree.Bundles, n, int(width))), "", treeTypes)
	if err != nil {
		return nil, err
	}
	texts, err := tree.ParseBundle(raw, int(width))
	if err != nil {
		return nil, err
	}
	indexes := make([]int64, width)
	for i := range indexes {
		indexes[i] = tlog.StoredHashIndex(0, n*tree.Width+int64(i))
	}
	hashes, err := t.hashes().ReadHashes(indexes)
	if err != nil {
		return nil, fmt.Errorf("tiles of %s: %w", t.Origin, err)
	}
	for i, text := range texts {
		leaf, err := tree.ParseLeaf(text)
		if err != nil || tlog.RecordHash(text) != hashes[i] || leaf.Seq != n*tree.Width+int64(i)+1 {
			return nil, fmt.Errorf("%w: leaf %d of %s", tree.ErrTree, n*tree.Width+int64(i)+1, t.Origin)
		}
		leaves = append(leaves, leaf)
	}
	return leaves, nil
}

// salts returns the salts of the entries of a bundle, nil for one that has none.
func (t *followedTree) salts(n int64) ([][]byte, error) {
	raw, err := t.f.fetchAs(t.ctx, t.prefix+"/salts/"+strconv.FormatInt(n, 10), "", treeTypes)
	if err != nil {
		return nil, err
	}
	lines := strings.SplitN(string(raw), "\n", tree.Width+2)
	salts := make([][]byte, tree.Width)
	for i := range min(len(lines), tree.Width) {
		if salt, err := base64.StdEncoding.DecodeString(lines[i]); err == nil && len(salt) == tree.SaltSize {
			salts[i] = salt
		}
	}
	return salts, nil
}

// openCheckpoint reads a checkpoint of a followed board that is signed with its node's key.
func (f *Federation) openCheckpoint(ctx context.Context, board, epoch string, raw []byte) (c tree.Checkpoint, err error) {
	err = f.withKey(ctx, activity.ProofKey(board), board, func(pub ed25519.PublicKey) (err error) {
		c, err = tree.Open(raw, tree.Origin(board, epoch), pub)
		return err
	})
	return c, err
}

// readTree reads the checkpoint of a followed log, whose page names a tree, and accepts it when it contains the last one that was accepted. It is nil for a log
// without a tree, as nodes of version 0.1.0 have it.
func (f *Federation) readTree(ctx context.Context, s *followed, named string, from int64) (*followedTree, error) {
	prefix := tree.Prefix(s.Board, s.Epoch)
	switch {
	case named == "" && s.tree == nil:
		return nil, nil
	case named != prefix:
		return nil, fmt.Errorf("log of %s: its page does not name its tree", s.Host)
	}
	raw, err := f.fetchAs(ctx, prefix+"/checkpoint", "", treeTypes)
	if err != nil {
		return nil, err
	}
	t := &followedTree{raw: raw, prefix: prefix, f: f, ctx: ctx, tiles: map[string][]byte{}}
	if t.Checkpoint, err = f.openCheckpoint(ctx, s.Board, s.Epoch, raw); err != nil {
		return nil, err
	}
	return t, f.acceptTree(ctx, s, t, from)
}

// acceptTree stores a checkpoint that contains the last one that was accepted. One that does not is a conflict, which both show. With the first
// one, entries up to the number from are not in question.
func (f *Federation) acceptTree(ctx context.Context, s *followed, t *followedTree, from int64) error {
	next := storage.FollowedTree{Board: s.Board, Epoch: s.Epoch, Size: t.Size, Proved: from, Checkpoint: t.raw}
	size := int64(0)
	if s.tree != nil {
		last, err := tree.Parse(s.tree.Checkpoint) // its signature was checked when it was accepted
		if err != nil {
			return err
		}
		if size = last.Size; t.Size < size {
			return fmt.Errorf("log of %s: an old checkpoint of %d entries; one of %d was accepted", s.Host, t.Size, size)
		}
		same, err := t.contains(last)
		if err != nil {
			return err
		}
		if !same {
			return treeConflict(s, last, s.tree.Checkpoint, t.Checkpoint, t.raw)
		}
		next.Proved = s.tree.Proved
	}
	return f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		accepted, err := tx.Subscriptions().AcceptTree(ctx, next, size)
		if err == nil && !accepted {
			err = errMoved
		}
		return err
	})
}

// treeConflict is that the board signed two trees of which neither contains the other.
func treeConflict(s *followed, ours tree.Checkpoint, oursDoc []byte, theirs tree.Checkpoint, theirsDoc []byte) *conflictError {
	return &conflictError{storage.Conflict{
		Board: s.Board, Kind: storage.ConflictTree, Epoch: s.Epoch, Seq: ours.Size, Ours: rootName(ours), Theirs: rootName(theirs),
		OursDoc: oursDoc, TheirsDoc: theirsDoc,
	}}
}

// rootName is the root of a checkpoint in the form of hashes of entries.
func rootName(c tree.Checkpoint) string { return tree.Name(c.Root[:]) }

// proveEntries compares the entries of a page, which begins after from, with the tree. Those that the tree does not have yet are compared when
// they are read again.
func (f *Federation) proveEntries(ctx context.Context, s *followed, page *logPage, from int64, w *walk) error {
	last := from + int64(len(page.OrderedItems))
	if w.tree == nil || last > w.tree.Size {
		t, err := f.readTree(ctx, s, string(page.Tree), from)
		if err != nil || t == nil {
			return err
		}
		w.tree = t
		if s.tree == nil { // what was taken before it was known, and is not read again, is not in question
			w.proved = from
		}
	}
	if s.LastSeq-w.tree.Size > maxUnproved {
		return fmt.Errorf("log of %s: its tree ends at %d", s.Host, w.tree.Size)
	}
	w.tree.ctx = ctx
	for seq := max(from, w.proved, proved(s)) + 1; seq <= min(last, w.tree.Size); {
		n := (seq - 1) / tree.Width
		end := min(last, w.tree.Size, (n+1)*tree.Width)
		if err := f.proveBundle(s, w.tree, n, seq, page.OrderedItems[seq-from-1:end-from]); err != nil {
			return err
		}
		seq, w.proved = end+1, end
	}
	return nil
}

func proved(s *followed) int64 {
	if s.tree == nil {
		return 0
	}
	return s.tree.Proved
}

// proveBundle compares entries from the number first on, all of one bundle, with their leaves.
func (f *Federation) proveBundle(s *followed, t *followedTree, n, first int64, entries []json.RawMessage) error {
	leaves, err := t.leaves(n)
	if err != nil {
		return err
	}
	salts, err := t.salts(n)
	if err != nil {
		return err
	}
	for i, raw := range entries {
		seq := first + int64(i)
		leaf, salt := leaves[(seq-1)%tree.Width], salts[(seq-1)%tree.Width]
		differs := func(ours, theirs []byte) error {
			if err := f.verifyProof(t.ctx, raw, s.Board); err != nil && !errors.Is(err, integrity.ErrNoProof) { // a Tombstone has none
				return fmt.Errorf("proof of the board: %w", err) // changed in transit
			}
			c := storage.Conflict{Board: s.Board, Kind: storage.ConflictTree, Epoch: s.Epoch, Seq: seq, Theirs: tree.Name(theirs), OursDoc: t.raw, TheirsDoc: raw}
			if ours != nil {
				c.Ours = tree.Name(ours)
			}
			return &conflictError{c}
		}
		hash := hashOf(raw)
		if hash != "" && !slices.Equal(tree.ParseHash(hash), leaf.Entry) {
			return differs(leaf.Entry, tree.ParseHash(hash))
		}
		if shown := contentIn(raw); shown != nil && salt != nil {
			if sum := tree.Salted(salt, shown); !slices.Equal(sum, leaf.Content) {
				return differs(leaf.Content, sum)
			}
		}
	}
	return nil
}

// contentIn is the content of an entry as received; nil for one that has none.
func contentIn(raw json.RawMessage) []byte {
	inner := strictjson.Members(raw)["object"]
	return content(strictjson.Members(inner)["object"])
}
