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

// A trial counts the tries of a letter or notice and stands in the arguments of
// its job. What failed waits as a new job, so that one address whose server says
// "later" holds up nobody else's letters.
type trial struct {
	Try int `json:"try,omitempty"`
}

// Timetables. A server that greylists wants to be asked again after some minutes;
// a letter with a secret is worth nothing when its ticket has run out.
var (
	whileWaiting = []time.Duration{ // somebody sits before the page: half an hour
		15 * time.Second, 45 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	}
	forADay = []time.Duration{
		15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 8 * time.Hour,
	}
)

// again ends a try that failed: for good, or with the same job queued for later.
// args carries t.
func again(j storage.Job, pauses []time.Duration, t *trial, args any, cause error) (func(context.Context, *storage.Tx) error, error) {
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
