package account

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// A trial counts the attempts to send a letter or notice. It is part of its job's
// arguments. A failed one waits as a new job, so that an address whose server is
// temporarily unavailable does not delay other letters.
type trial struct {
	Try int `json:"try,omitempty"`
}

// Pauses between attempts. A server that greylists accepts a repeat after some
// minutes; a letter with a secret is useless when its ticket has expired.
var (
	whileWaiting = []time.Duration{ // a person waits for the letter: half an hour
		15 * time.Second, 45 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	}
	forADay = []time.Duration{
		15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 8 * time.Hour,
	}
)

// retry handles a failed attempt: it returns a final error, or queues the same job
// for later. args contains t.
func retry(j storage.Job, pauses []time.Duration, t *trial, args any, cause error) (func(context.Context, *storage.Tx) error, error) {
	var wait time.Duration
	if e, ok := errors.AsType[*protocol.Error](cause); ok {
		if !e.Code.Temporary() {
			return nil, cause
		}
		wait = e.RetryAfter
	}
	if t.Try >= len(pauses) {
		return nil, protocol.Errorf(protocol.Gone, "given up after %d tries: %w", t.Try+1, cause)
	}
	wait = max(wait, netx.Jitter(pauses[t.Try]))
	t.Try++
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		return tx.Enqueue(ctx, storage.Job{Kind: j.Kind, Lane: j.Lane, Args: raw, RunAt: tx.Now.Add(wait), Dedupe: j.Dedupe, LastError: plain(cause.Error(), 300)})
	}, nil
}
