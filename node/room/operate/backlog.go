package operate

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"stoa/storage"
)

// Backlog is the collector of what waits: jobs by kind and state, and how far
// each kind of outlet is behind the log. It asks the database at each scrape.
type Backlog struct{ DB *storage.DB }

const scrapeTimeout = 2 * time.Second

var (
	jobsDesc    = prometheus.NewDesc("stoa_jobs", "Jobs by kind and state, up to 10,000 of each; dead ones want the operator.", []string{"kind", "state"}, nil)
	outletsDesc = prometheus.NewDesc("stoa_outlets", "Inboxes that are delivered to, by state, up to 10,000 of each.", []string{"state"}, nil)
	reviewDesc  = prometheus.NewDesc("stoa_review_posts",
		"Posts that wait for an operator's decision: with open reports, visible or hidden by them; up to 10,000.", nil, nil)
	overdueDesc = prometheus.NewDesc("stoa_overdue_complaints", "Complaints whose due date is over, up to 10,000.", nil, nil)
	lagDesc     = prometheus.NewDesc("stoa_outlet_lag_entries", "How many log entries the furthest behind of the outlets has not been told of.", nil, nil)
)

func (b *Backlog) Describe(ch chan<- *prometheus.Desc) {
	ch <- jobsDesc
	ch <- outletsDesc
	ch <- reviewDesc
	ch <- overdueDesc
	ch <- lagDesc
}

func (b *Backlog) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	err := b.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		stats, err := tx.Jobs().Stats(ctx)
		if err != nil {
			return err
		}
		for _, s := range stats {
			ch <- prometheus.MustNewConstMetric(jobsDesc, prometheus.GaugeValue, float64(s.Count), string(s.Kind), string(s.State))
		}
		review, err := tx.Moderation().CountReview(ctx)
		if err != nil {
			return err
		}
		ch <- prometheus.MustNewConstMetric(reviewDesc, prometheus.GaugeValue, float64(review))
		overdue, err := tx.Complaints().Overdue(ctx)
		if err != nil {
			return err
		}
		ch <- prometheus.MustNewConstMetric(overdueDesc, prometheus.GaugeValue, float64(overdue))
		return b.outlets(ctx, tx, ch)
	})
	if err != nil {
		ch <- prometheus.NewInvalidMetric(jobsDesc, err)
	}
}

func (b *Backlog) outlets(ctx context.Context, tx *storage.Tx, ch chan<- prometheus.Metric) error {
	stats, err := tx.Outlets().Stats(ctx)
	if err != nil {
		return err
	}
	counts := map[storage.OutletState]int{}
	var lag int64
	for _, s := range stats {
		counts[s.State] += s.Count
		lag = max(lag, s.Lag)
	}
	for state, n := range counts {
		ch <- prometheus.MustNewConstMetric(outletsDesc, prometheus.GaugeValue, float64(n), string(state))
	}
	ch <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, float64(lag))
	return nil
}
