package storage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

const reviewedAgent = "eip155:1:0x1:1"

// skewReviews fills a database with the reviews of a business that is reviewed a lot, and flooded, and of many
// others.
func skewReviews(t *testing.T, db *storage.DB, fill func(full int, insert string, args ...any)) {
	t.Helper()
	const insert = `INSERT INTO feedback (id, agent, client, idx, block, place, at, state, reason, rating, proof, next_at, tries, feed_id, doc)
		WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT)) `
	const rest = `0, '', '{}' FROM series`
	fill(protocol.MaxCountedReviews, insert+`SELECT 'rev_a' || CAST(n AS TEXT), '`+reviewedAgent+`', '0x1', n, n, CAST(n AS BIGINT) * 1048576, 1,
		'counted', 'payment', 9000,
		'payment ' || CAST(n AS TEXT), NULL, `+rest)
	fill(100_000, insert+`SELECT 'rev_b' || CAST(n AS TEXT), 'eip155:1:0x1:9' || CAST(n AS TEXT), '0x1', 1, n, CAST(n AS BIGINT) * 1048576,
		1, 'waiting', 'waiting', 9000, '',
		CAST(? AS BIGINT) + n, `+rest, start.Add(time.Hour).UnixMilli())
	for _, text := range []string{insertOne("rev_c", "uncounted", "NULL"), insertOne("rev_d", "waiting", "1")} {
		if err := storage.Exec(t.Context(), db, text); err != nil {
			t.Fatal(err)
		}
	}
	fill(protocol.MaxCountedReviews, `INSERT INTO feedback_proof (name, feedback)
		WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT))
		SELECT 'payment ' || CAST(n AS TEXT), 'rev_a' || CAST(n AS TEXT) FROM series`)
	fill(protocol.MaxCountedReviews, `INSERT INTO review_buyer (buyer, agent, at, feedback)
		WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT))
		SELECT 'wallet:0x1', '`+reviewedAgent+`', 1, 'rev_a' || CAST(n AS TEXT) FROM series`)
}

func insertOne(id, state, next string) string {
	return `INSERT INTO feedback (id, agent, client, idx, block, place, at, state, reason, rating, proof, next_at, tries, feed_id, doc)
		VALUES ('` + id + `', '` + reviewedAgent + `', '0x2', 1, 7, 7, 1, '` + state + `', 'x', 1, '', ` + next + `, 0, '` + id + `', '{}') ON CONFLICT DO NOTHING`
}

// grownReviews are the statements of reviews.
func grownReviews(ctx context.Context, tx *storage.Tx) []call {
	return []call{
		{"reviews of a business", looks, func() error {
			page, err := tx.Feedbacks().List(ctx, reviewedAgent, "rao", storage.FeedbackCounted, 20, "")
			_, other := tx.Feedbacks().List(ctx, reviewedAgent, "rao", storage.FeedbackUncounted, 20, "")
			return found(len(page.Items), errors.Join(err, other))
		}},
		{"feedback that is due", looks, func() error {
			_, err := tx.Feedbacks().Due(ctx, 24)
			_, last := tx.Feedbacks().LastDue(ctx, "eip155:1:0x1:97")
			return errors.Join(err, last)
		}},
		{"count a review", undone, func() error {
			f := storage.Feedback{ID: "rev_x", Agent: reviewedAgent, Client: "0x3", Index: 1, Block: 9, Place: 9, At: start, State: storage.FeedbackCounted}
			_, err := tx.Feedbacks().Given(ctx, f.Agent, f.Client, f.Index)
			if errors.Is(err, storage.ErrNotFound) {
				err = nil
			}
			_, claim := tx.Feedbacks().Claim(ctx, f.ID, []string{"payment x", "payment 7"})
			_, insert := tx.Feedbacks().Insert(ctx, f)
			return errors.Join(err, claim, insert, tx.Feedbacks().Add(ctx, f.Agent, protocol.ByPayment, 1, 9000),
				tx.Feedbacks().Told(ctx, f), tx.Feedbacks().Put(ctx, f))
		}},
		{"trim what does not count", undone, func() error { return tx.Feedbacks().Trim(ctx, reviewedAgent, protocol.MaxUncountedReviews) }},
		{"what decides of feedback", looks, func() error {
			f := storage.Feedback{ID: "rev_x", At: start, Doc: storage.FeedbackDoc{Buyers: []string{"wallet:0x2", "mail:1"}}}
			_, near := tx.Feedbacks().Near(ctx, reviewedAgent, "rao", f)
			_, used := tx.Feedbacks().Used(ctx, "rev_x", []string{"payment 7", "payment x"})
			_, err := tx.Feedbacks().ByProof(ctx, "payment 7")
			return errors.Join(near, used, err)
		}},
		{"release an order", undone, func() error {
			return tx.Feedbacks().Release(ctx, storage.Feedback{ID: "rev_a7", Proof: "payment 7", At: start}, reviewedAgent, storage.ReviewsOf("rao"))
		}},
	}
}
