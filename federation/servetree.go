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

	"stoa/identity/attest"
	"stoa/identity/tree"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// nameTree adds to a page of our log the address of its tree, and the key of its checkpoints.
func (f *Federation) nameTree(ctx context.Context, tx *storage.Tx, page activity.Object, epoch string) error {
	t, err := tx.Logs().Tree(ctx, f.site.Board())
	if err != nil || t.ID == 0 {
		return err
	}
	pub, err := ed25519Of(f.c.Keys.Ed25519)
	if err != nil {
		return err
	}
	page["stoa:tree"], page["stoa:checkpointKey"] = tree.Prefix(f.site.Board(), epoch), tree.VerifierKey(tree.Origin(f.site.Board(), epoch), pub)
	return nil
}

// signTree is a checkpoint of our log's tree with our signature.
func (f *Federation) signTree(epoch string, size int64, root []byte) ([]byte, error) {
	c := tree.Checkpoint{Origin: tree.Origin(f.site.Board(), epoch), Size: size}
	if copy(c.Root[:], root) != len(c.Root) {
		return nil, storage.ErrNotFound
	}
	return tree.Sign(c, f.c.Keys.Ed25519.Signer())
}

// checkpoint is the checkpoint of our log's tree, with our signature and every cosignature of it.
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

// LogHead returns the head of our log's tree; storage.ErrNotFound while it has none.
func (f *Federation) LogHead(ctx context.Context, tx *storage.Tx) (attest.Head, error) {
	t, err := tx.Logs().Tree(ctx, f.site.Board())
	if err == nil && t.ID == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return attest.Head{}, err
	}
	signed, err := f.checkpoint(ctx, tx, t)
	return attest.Head{Epoch: t.Epoch, Size: t.Size, Checkpoint: string(signed)}, err
}

// Logged proves, at the current checkpoint, that our log's tree has a post as it is now. It is nil for a post of another server, for one whose
// entry no longer has its content (it was hidden since), and until the entry is in the tree.
func (f *Federation) Logged(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (*attest.Inclusion, error) {
	t, err := tx.Logs().Tree(ctx, f.site.Board())
	if err != nil || p.Node != nil {
		return nil, absent(err)
	}
	e, err := tx.Logs().Written(ctx, f.site.Board(), p.ID)
	if err != nil || e.Seq > t.Size {
		return nil, absent(err)
	}
	salts, err := tx.Logs().TreeSalts(ctx, t.ID, e.Seq-1, 1)
	if err != nil || len(salts) == 0 || salts[0].Salt == nil {
		return nil, err
	}
	hashes, err := tlog.ProveRecord(t.Size, e.Seq-1, readTiles(ctx, tx, t.ID))
	if err != nil {
		return nil, err
	}
	signed, err := f.checkpoint(ctx, tx, t)
	if err != nil {
		return nil, err
	}
	return &attest.Inclusion{
		Epoch: t.Epoch, Seq: e.Seq, Published: e.At, Type: typeOf[e.Kind], Content: string(f.contentOf(e, p)), Salt: salts[0].Salt,
		Proof: string(tree.Proof(e.Seq-1, hashes, signed)),
	}, nil
}
