package operate

import (
	"context"
	"time"

	"stoa/storage"
)

const hoursEvery = 5 * time.Minute

func enqueueHours(ctx context.Context, tx *storage.Tx) error {
	return tx.Enqueue(ctx, storage.Job{Kind: storage.HoursJob, Lane: string(storage.HoursJob), Dedupe: string(storage.HoursJob), RunAt: tx.Now.Add(hoursEvery)})
}

// Hours is the handler of HoursJob.
func (u Upkeep) Hours(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
	err := u.pruneAll(ctx, func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Merchants().RefreshHours(ctx) })
	if err == nil {
		err = u.pruneAll(ctx, func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Posts().CountFresh(ctx) })
	}
	return enqueueHours, err
}
