package operate

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"stoa/storage"
)

// Backlog counts what waits: jobs by kind and state, and how far
// each kind of outlet is behind the log. It asks the database at each scrape.
type Backlog struct{ DB *storage.DB }

const scrapeTimeout = 2 * time.Second

// Write appends the counts in the text format of Prometheus, up to 10,000 of each.
func (b *Backlog) Write(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	return b.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		stats, err := tx.Jobs().Stats(ctx)
		if err != nil {
			return err
		}
		metrics.WriteMetadataIfNeeded(w, "stoa_jobs", "gauge")
		for _, s := range stats {
			fmt.Fprintf(w, "stoa_jobs{kind=%q,state=%q} %d\n", s.Kind, s.State, s.Count)
		}
		review, err := tx.Moderation().CountReview(ctx)
		if err != nil {
			return err
		}
		metrics.WriteGaugeUint64(w, "stoa_review_posts", uint64(review))
		overdue, err := tx.Complaints().Overdue(ctx)
		if err != nil {
			return err
		}
		metrics.WriteGaugeUint64(w, "stoa_overdue_complaints", uint64(overdue))
		outlets, err := tx.Outlets().Stats(ctx)
		if err != nil {
			return err
		}
		counts, lag := map[storage.OutletState]int{}, int64(0)
		for _, s := range outlets {
			counts[s.State] += s.Count
			lag = max(lag, s.Lag)
		}
		metrics.WriteMetadataIfNeeded(w, "stoa_outlets", "gauge")
		for state, n := range counts {
			fmt.Fprintf(w, "stoa_outlets{state=%q} %d\n", state, n)
		}
		metrics.WriteGaugeUint64(w, "stoa_outlet_lag_entries", uint64(lag))
		return writeBackups(ctx, tx, w)
	})
}

// writeBackups appends how old the last backup is and the last that was restored on trial, none before the first.
func writeBackups(ctx context.Context, tx *storage.Tx, w io.Writer) error {
	s, err := tx.Settings().Backup(ctx)
	if err != nil {
		return err
	}
	if !s.MadeAt.IsZero() {
		metrics.WriteGaugeFloat64(w, "stoa_backup_age_seconds", tx.Now.Sub(s.MadeAt).Seconds())
	}
	if !s.CheckedAt.IsZero() {
		metrics.WriteGaugeFloat64(w, "stoa_backup_checked_age_seconds", tx.Now.Sub(s.CheckedAt).Seconds())
	}
	metrics.WriteCounterUint64(w, "stoa_backup_failures_total", uint64(s.Failed))
	return nil
}
