package federation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// recheckAfter are the delays after which an author is verified again whose
// signature the chain, as this node reads it, does not confirm. Usually this node
// is a few blocks behind the node where the post was made.
var recheckAfter = []time.Duration{3 * time.Second, 30 * time.Second, 5 * time.Minute, time.Hour, 12 * time.Hour}

// recheckArgs are the arguments of a recheck job.
type recheckArgs struct {
	Post string `json:"post"`
	Try  int    `json:"try"` // index into recheckAfter
}

// recheckable reports whether a later read of the chain, or of the key directory that the author named, may verify the author.
func recheckable(p *protocol.StoredPost) bool {
	return !p.Author.Verified && (p.Author.ERC8004 != nil && (p.Evidence != nil || p.Statement != nil) || bytes.Contains(p.Evidence, []byte(`"signature-agent"`)))
}

// enqueueRecheck queues attempt number try to verify a post's author.
func (f *Federation) enqueueRecheck(ctx context.Context, tx *storage.Tx, post string, try int) error {
	if try >= len(recheckAfter) || f.c.Authority == nil && f.c.Listed == nil {
		return nil
	}
	args, err := json.Marshal(recheckArgs{post, try})
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: storage.RecheckJob, Lane: "recheck:" + post, Args: args, RunAt: tx.Now.Add(recheckAfter[try])})
}

// recheck verifies the author of a post of another node again, with the evidence
// that is stored with the post.
func (f *Federation) recheck(ctx context.Context, j storage.Job) (after, error) {
	var args recheckArgs
	if err := j.Decode(&args); err != nil {
		return nil, err
	}
	var held *protocol.StoredPost
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		held, err = tx.Posts().ByID(ctx, args.Post)
		return absent(err)
	})
	if err != nil || held == nil || held.State == protocol.Deleted || held.Author.Verified || held.Object == nil {
		return nil, err
	}
	var n activity.Note
	if err := fetchLimits.DecodeLoose(held.Object, &n); err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "stored object of %s: %w", held.URI, err)
	}
	seen, err := f.examine(ctx, &n, held.Object)
	if err != nil {
		if isRefused(err) {
			return nil, nil // the post was accepted before; its content has not changed
		}
		return nil, fmt.Errorf("recheck %s: %w", held.URI, err)
	}
	if !seen.Author.Verified {
		return func(ctx context.Context, tx *storage.Tx) error {
			return f.enqueueRecheck(ctx, tx, args.Post, args.Try+1)
		}, nil
	}
	keyid := ""
	if seen.Author.KeyID != nil {
		keyid = *seen.Author.KeyID
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		err := tx.Posts().SetVerdict(ctx, args.Post, seen.Author.Proof, keyid, "")
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		return err
	}, nil
}
