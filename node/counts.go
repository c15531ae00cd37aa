package node

import (
	"context"
	"time"

	"stoa/storage"
)

// countsEvery is how often is looked whether counts are to be made anew.
const countsEvery = 20 * time.Second

// renewCounts keeps what is slow to count from being counted while somebody waits.
func (n *Node) renewCounts(ctx context.Context) error {
	every := time.NewTicker(countsEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		for what, renew := range map[string]func(context.Context, *storage.DB) error{
			"usage": n.agents.Counts.Renew, "explored": n.directory.Explored.Renew, "statistics": n.moderation.Numbers.Renew,
		} {
			if err := renew(ctx, n.db); err != nil && ctx.Err() == nil {
				n.log.Warn("counts were not renewed", "what", what, "err", err)
			}
		}
	}
}
