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

// retryPauses are the pauses between the attempts of a job that failed for an
// outside reason: a peer that does not answer, a chain that cannot be read. They
// cover a week, which the worker's few attempts do not, and a waiting job delays no
// other job of its lane.
var retryPauses = []time.Duration{
	2 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute, time.Hour, 3 * time.Hour, 8 * time.Hour,
	12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour,
	12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour,
}

// A retryState counts the attempts of a job. It is part of the job's arguments.
type retryState struct {
	Try  int    `json:"try,omitempty"`
	Last string `json:"last,omitempty"` // error of the last attempt, for the operator
}

// retry handles a failed attempt: it returns a final error, or queues the same job
// for later. args contains t.
func (f *Federation) retry(j storage.Job, t *retryState, args any, cause error) (after, error) {
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
