package operate

import (
	"context"
	"time"

	"stoa/storage"
)

// HoursJob is the job that computes again the hours of merchants whose stored
// interval is over, so that "open now" need not.
const HoursJob = "hours"

const hoursEvery = 5 * time.Minute

func enqueueHours(ctx context.Context, tx *storage.Tx) error {
	return tx.Enqueue(ctx, storage.Job{Kind: HoursJob, Lane: HoursJob, Dedupe: HoursJob, RunAt: tx.Now.Add(hoursEvery)})
}

// Hours is the handler of HoursJob.
func (u Upkeep) Hours(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
	err := u.pruneAll(ctx, func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.RefreshHours(ctx) })
	return enqueueHours, err
}
