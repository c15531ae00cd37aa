package federation

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"stoa/protocol/activity"
	"stoa/protocol/tree"
	"stoa/storage"
)

// treeOrigin is the name of the tree of a board's log in an epoch: its address without scheme (C2SP tlog-checkpoint "origin").
func treeOrigin(board, epoch string) string {
	_, rest, _ := strings.Cut(treePrefix(board, epoch), "://")
	return rest
}

// treePrefix is the address under which the tree is served (C2SP tlog-tiles "prefix").
func treePrefix(board, epoch string) string { return board + "/tree/" + epoch }

// nameTree adds to a page of our log where its tree is, and the key of its checkpoints.
func (f *Federation) nameTree(ctx context.Context, tx *storage.Tx, page activity.Object, epoch string) error {
	t, err := tx.Logs().Tree(ctx, f.site.Board())
	if err != nil || t.ID == 0 {
		return err
	}
	pub, err := ed25519Of(f.c.Keys.Ed25519)
	if err != nil {
		return err
	}
	page["stoa:tree"], page["stoa:checkpointKey"] = treePrefix(f.site.Board(), epoch), tree.VerifierKey(treeOrigin(f.site.Board(), epoch), pub)
	return nil
}

// signTree is a checkpoint of our log's tree with our signature.
func (f *Federation) signTree(epoch string, size int64, root []byte) ([]byte, error) {
	c := tree.Checkpoint{Origin: treeOrigin(f.site.Board(), epoch), Size: size}
	if copy(c.Root[:], root) != len(c.Root) {
		return nil, storage.ErrNotFound
	}
	return tree.Sign(c, f.c.Keys.Ed25519.Signer())
}

// checkpoint is the checkpoint of our log's tree, with our signature and the cosignatures that there are of it.
func (f *Federation) checkpoint(ctx context.Context, tx *storage.Tx, t storage.LogTree) ([]byte, error) {
	cosigned, err := tx.Logs().Cosignatures(ctx, t.Epoch, t.Size)
	if err != nil {
		return nil, err
	}
	return f.withCosignatures(t.Epoch, t.Size, t.Root, cosigned)
}

// cosigned is the largest checkpoint of our log's tree that was cosigned.
func (f *Federation) cosigned(ctx context.Context, tx *storage.Tx, t storage.LogTree) ([]byte, error) {
	cosigned, err := tx.Logs().Cosignatures(ctx, t.Epoch, 0)
	if err != nil || len(cosigned) == 0 {
		return nil, errors.Join(err, storage.ErrNotFound)
	}
	return f.withCosignatures(t.Epoch, cosigned[0].Size, cosigned[0].Root, cosigned)
}

func (f *Federation) withCosignatures(epoch string, size int64, root []byte, cosigned []storage.Cosignature) ([]byte, error) {
	signed, err := f.signTree(epoch, size, root)
	for _, c := range cosigned {
		if c.Size == size && bytes.Equal(c.Root, root) {
			signed = append(signed, c.Line...)
		}
	}
	return signed, err
}

// A treeDocument is what is served of a tree. One that is final never changes.
type treeDocument struct {
	kind  string
	body  []byte
	final bool
}

const (
	textPlain = "text/plain; charset=utf-8"
	octets    = "application/octet-stream"
)

// serveTree serves the tree of our log in its epoch (C2SP tlog-tiles): checkpoint, tile/…, and beside them cosigned, the largest
// checkpoint that a following node cosigned, and salts/N, the salts of the 256
// entries of tile/entries/N, each in base64 or "-" on a line. A tree of another epoch is not there any more.
func (f *Federation) serveTree(w http.ResponseWriter, r *http.Request) {
	var d treeDocument
	err := f.c.DB.Read(r.Context(), func(ctx context.Context, tx *storage.Tx) error {
		t, err := tx.Logs().Tree(ctx, f.site.Board())
		if err == nil && (t.Epoch != r.PathValue("epoch") || t.ID == 0) {
			err = storage.ErrNotFound
		}
		if err == nil {
			d, err = f.treeDocument(ctx, tx, t, r.PathValue("path"))
		}
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		f.problem(w, refuse(http.StatusNotFound, "there is no such part of the tree", nil))
		return
	}
	if err != nil {
		f.problem(w, err)
		return
	}
	head := w.Header()
	head.Set("Content-Type", d.kind)
	head.Set("Cache-Control", "public, no-cache")
	if d.final {
		head.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	head.Set("Access-Control-Allow-Origin", "*")
	_, _ = w.Write(d.body)
}

func (f *Federation) treeDocument(ctx context.Context, tx *storage.Tx, t storage.LogTree, path string) (d treeDocument, err error) {
	if path == "checkpoint" {
		d.kind = textPlain
		d.body, err = f.checkpoint(ctx, tx, t)
		return d, err
	}
	if path == "cosigned" {
		d.kind = textPlain
		d.body, err = f.cosigned(ctx, tx, t)
		return d, err
	}
	if n, ok := strings.CutPrefix(path, "salts/"); ok {
		d.kind = textPlain
		d.body, err = salts(ctx, tx, t, n)
		return d, err
	}
	tile, ok := tree.ParsePath(path)
	if !ok || !tree.Within(tile, t.Size) {
		return d, storage.ErrNotFound
	}
	d = treeDocument{kind: octets, final: true}
	if tile.L != tree.Bundles {
		if d.body, err = tx.Logs().TreeTile(ctx, t.ID, tile.L, tile.N); err == nil {
			d.body = d.body[:tile.W*tlog.HashSize]
		}
		return d, err
	}
	leaves, err := tx.Logs().TreeLeaves(ctx, t.ID, tile.N*tree.Width, tile.W)
	texts := make([][]byte, len(leaves))
	for i, l := range leaves {
		texts[i] = tree.Leaf{Seq: l.Seq, Entry: l.Entry, Content: l.Content}.Bytes()
	}
	d.body = tree.Bundle(texts)
	return d, err
}

func salts(ctx context.Context, tx *storage.Tx, t storage.LogTree, n string) ([]byte, error) {
	at, err := strconv.ParseInt(n, 10, 64)
	if err != nil || at < 0 || at > (t.Size-1)/tree.Width {
		return nil, storage.ErrNotFound
	}
	leaves, err := tx.Logs().TreeSalts(ctx, t.ID, at*tree.Width, tree.Width)
	var b []byte
	for _, l := range leaves {
		if l.Salt == nil {
			b = append(b, "-\n"...)
			continue
		}
		b = append(base64.StdEncoding.AppendEncode(b, l.Salt), '\n')
	}
	return b, err
}

// An Inclusion shows that an entry is in the tree of this node's log.
type Inclusion struct {
	Leaf []byte // see tree.Leaf
	Salt []byte // of its content; nil when there is none, or the content is not shown any more
	// Proof is a tlog-proof (C2SP tlog-proof@v1): the index, the hashes from the leaf to the root, and the checkpoint, signed by this node.
	Proof []byte
}

// Inclusion returns what shows that an entry of this node's log is in its tree at the current checkpoint. It is storage.ErrNotFound
// for an entry that is not in the tree (yet).
func (f *Federation) Inclusion(ctx context.Context, tx *storage.Tx, seq int64) (in Inclusion, err error) {
	t, err := tx.Logs().Tree(ctx, f.site.Board())
	if err != nil {
		return in, err
	}
	if seq < 1 || seq > t.Size {
		return in, storage.ErrNotFound
	}
	leaves, err := tx.Logs().TreeLeaves(ctx, t.ID, seq-1, 1)
	if err != nil || len(leaves) == 0 {
		return in, errors.Join(err, storage.ErrNotFound)
	}
	salts, err := tx.Logs().TreeSalts(ctx, t.ID, seq-1, 1)
	if err != nil {
		return in, err
	}
	hashes, err := tlog.ProveRecord(t.Size, seq-1, readTiles(ctx, tx, t.ID))
	if err != nil {
		return in, err
	}
	signed, err := f.checkpoint(ctx, tx, t)
	if err != nil {
		return in, err
	}
	in.Leaf, in.Salt = tree.Leaf{Seq: seq, Entry: leaves[0].Entry, Content: leaves[0].Content}.Bytes(), salts[0].Salt
	in.Proof = tree.Proof(seq-1, hashes, signed)
	return in, nil
}
