package federation

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"stoa/identity/tree"
	"stoa/protocol/activity"
	"stoa/storage"
)

// When a node that follows our board has read its log, a moment later it is asked to cosign the checkpoint: by then it has accepted about the same.

// askWitness asks the node of an actor that follows our board to cosign the checkpoint of our tree. What fails is asked again after
// the next reading.
func (f *Federation) askWitness(ctx context.Context, j storage.Job) (after, error) {
	var actor string
	if err := j.Decode(&actor); err != nil {
		return nil, err
	}
	base, _, ok := strings.Cut(actor, "/ap/")
	if !ok {
		return nil, nil
	}
	host := hostOf(actor)
	line, c, err := f.cosignature(ctx, actor, base)
	f.observe("cosign", host, err)
	if err != nil {
		f.log.Warn("a following node did not cosign the tree of the log", "host", host, "err", err)
		return nil, nil
	}
	_, epoch, _ := strings.Cut(c.Origin, "/tree/")
	return func(ctx context.Context, tx *storage.Tx) error {
		return tx.Logs().Cosigned(ctx, storage.Cosignature{Host: host, Epoch: epoch, Size: c.Size, Root: c.Root[:], Line: line})
	}, nil
}

// cosignature asks for a cosignature, first of a witness that has accepted the same tree, then from the size on that it names.
func (f *Federation) cosignature(ctx context.Context, actor, base string) (line string, c tree.Checkpoint, err error) {
	old := int64(-1)
	for range 2 {
		var o offer
		if o, c, err = f.offerFrom(ctx, old); err != nil {
			return "", c, err
		}
		status, body, err := f.postOffer(ctx, base, o)
		if err != nil {
			return "", c, err
		}
		if status == http.StatusOK {
			err = f.withKey(ctx, activity.ProofKey(actor), actor, func(pub ed25519.PublicKey) (err error) {
				line, err = tree.ReadCosignature(o.raw, body, witnessName(base), pub)
				return err
			})
			return line, c, err
		}
		size, err := strconv.ParseInt(strings.TrimSuffix(string(body), "\n"), 10, 64)
		if status != http.StatusConflict || err != nil || size < 0 || size > c.Size {
			return "", c, fmt.Errorf("status %d: %.200q", status, body)
		}
		old = size
	}
	return "", c, errors.New("the size of its last checkpoint changes")
}

// offerFrom is the checkpoint of our tree, with the proof that it contains the tree of a size, of -1 the same.
func (f *Federation) offerFrom(ctx context.Context, old int64) (o offer, c tree.Checkpoint, err error) {
	err = f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		t, err := tx.Logs().Tree(ctx, f.site.Board())
		if err != nil {
			return err
		}
		if o.old = old; old < 0 {
			o.old = t.Size
		}
		if o.old > t.Size {
			return fmt.Errorf("it cosigned %d entries, the tree has %d", old, t.Size)
		}
		if o.raw, err = f.signTree(t.Epoch, t.Size, t.Root); err != nil {
			return err
		}
		if c, err = tree.Parse(o.raw); err != nil || o.old == 0 || o.old == t.Size {
			return err
		}
		o.proof, err = tlog.ProveTree(t.Size, o.old, readTiles(ctx, tx, t.ID))
		return err
	})
	return o, c, err
}
