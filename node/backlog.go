package node

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"stoa/protocol"
	"stoa/storage"
)

// backlog is the collector of what waits: jobs by kind and state, and how far
// each kind of outlet is behind the log. It asks the database at each scrape.
type backlog struct{ db *storage.DB }

const scrapeTimeout = 2 * time.Second

var (
	jobsDesc    = prometheus.NewDesc("stoa_jobs", "Jobs by kind and state; dead ones want the operator.", []string{"kind", "state"}, nil)
	outletsDesc = prometheus.NewDesc("stoa_outlets", "Inboxes that are delivered to, by state.", []string{"state"}, nil)
	reviewDesc  = prometheus.NewDesc("stoa_review_posts", "Posts that wait for an operator's decision: with open reports, visible or hidden by them.", nil, nil)
	lagDesc     = prometheus.NewDesc("stoa_outlet_lag_entries", "How many log entries the furthest behind of the outlets has not been told of.", nil, nil)
)

func (b *backlog) Describe(ch chan<- *prometheus.Desc) {
	ch <- jobsDesc
	ch <- outletsDesc
	ch <- reviewDesc
	ch <- lagDesc
}

func (b *backlog) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	err := b.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		stats, err := tx.JobStats(ctx)
		if err != nil {
			return err
		}
		for _, s := range stats {
			ch <- prometheus.MustNewConstMetric(jobsDesc, prometheus.GaugeValue, float64(s.Count), s.Kind, string(s.State))
		}
		review, err := tx.CountReview(ctx)
		if err != nil {
			return err
		}
		ch <- prometheus.MustNewConstMetric(reviewDesc, prometheus.GaugeValue, float64(review))
		return b.outlets(ctx, tx, ch)
	})
	if err != nil {
		ch <- prometheus.NewInvalidMetric(jobsDesc, err)
	}
}

func (b *backlog) outlets(ctx context.Context, tx *storage.Tx, ch chan<- prometheus.Metric) error {
	counts, heads := map[storage.OutletState]int{}, map[string]int64{}
	var lag int64
	for after := ""; ; {
		page, err := tx.ListOutlets(ctx, protocol.MaxLimit, after)
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			counts[o.State]++
			head, known := heads[o.Board]
			if !known {
				if _, head, err = tx.LogHead(ctx, o.Board); err != nil {
					return err
				}
				heads[o.Board] = head
			}
			lag = max(lag, head-o.Cursor)
		}
		if page.Next == nil {
			break
		}
		after = *page.Next
	}
	for state, n := range counts {
		ch <- prometheus.MustNewConstMetric(outletsDesc, prometheus.GaugeValue, float64(n), string(state))
	}
	ch <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, float64(lag))
	return nil
}
