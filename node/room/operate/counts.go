package operate

import (
	"context"
	"log/slog"
	"time"

	"stoa/storage"
)

// countsEvery is how often it checks whether counts must be computed again.
const countsEvery = 20 * time.Second

// Counts are the counts to renew, by what they are.
type Counts map[string]func(context.Context, *storage.DB) error

// Run keeps what is slow to count from being counted while somebody waits, until
// the context ends.
func (c Counts) Run(ctx context.Context, db *storage.DB, log *slog.Logger) error {
	every := time.NewTicker(countsEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		for what, renew := range c {
			if err := renew(ctx, db); err != nil && ctx.Err() == nil {
				log.Warn("counts were not renewed", "what", what, "err", err)
			}
		}
	}
}
