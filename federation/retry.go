package federation

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// retryPauses is the timetable of a job whose trouble lies elsewhere: a peer
// that is away, a chain that cannot be read. It covers a week, which the
// worker's own few tries do not, and a job that waits for its time holds up no
// other of its lane.
var retryPauses = []time.Duration{
	2 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute, time.Hour, 3 * time.Hour, 8 * time.Hour,
	12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour,
	12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour,
}

// A trial counts the tries of a job; it stands in the job's arguments.
type trial struct {
	Try  int    `json:"try,omitempty"`
	Last string `json:"last,omitempty"` // what went wrong last time, for the operator
}

// again ends a try that failed: for good, or with the same job queued for
// later. args carries t.
func (f *Federation) again(j storage.Job, t *trial, args any, cause error) (after, error) {
	var wait time.Duration
	if e, ok := errors.AsType[*protocol.Error](cause); ok {
		if !e.Code.Temporary() {
			return nil, cause
		}
		wait = e.RetryAfter
	}
	if t.Try >= len(retryPauses) {
		return nil, protocol.Errorf(protocol.Gone, "given up after a week: %w", cause)
	}
	wait = max(wait, netx.Jitter(retryPauses[t.Try]))
	t.Try++
	t.Last = clipError(cause)
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		return tx.Enqueue(ctx, storage.Job{Kind: j.Kind, Lane: j.Lane, Args: raw, RunAt: tx.Now.Add(wait), LastError: t.Last})
	}, nil
}
