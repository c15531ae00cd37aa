package storage

import (
	"context"
	"time"
)

// A job that was begun before and not ended waits that much longer for each time: it may
// be what ends the process.
const leasePause = 5 * time.Second

// leased finds the rows that have an owner, by the indexes job_owner and outlet_owner.
const leased = `owner > ''`

// endLeases ends every lease. The only process that serves the database calls it when it
// starts: an owner of a lease is a process that was killed. A job that was begun once
// is due at once, and none later than the end of its lease.
func (db *DB) endLeases(ctx context.Context) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.write(ctx, `UPDATE job SET owner = NULL, run_at = min(run_at, ? + (attempt - 1) * ?) WHERE `+leased,
			millis(tx.Now), leasePause.Milliseconds())
		if err == nil {
			_, err = tx.write(ctx, `UPDATE outlet SET owner = NULL, lease_until = 0 WHERE `+leased)
		}
		return err
	})
}
