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
	return enqueueHours, err
}

// CountWords counts the words of posts that came since the last time.
func CountWords(ctx context.Context, db *storage.DB) error {
	fresh := false
	err := db.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		fresh, err = tx.Posts().Fresh(ctx)
		return err
	})
	if err != nil || !fresh {
		return err
	}
	return Upkeep{DB: db}.pruneAll(ctx, func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Posts().CountFresh(ctx) })
}
