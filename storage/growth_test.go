package storage_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/storage"
	"stoa/storage/storagetest"
)

// skew fills a database with what lies in the tables of a node that is old, busy
// and badly treated, in thousandths of the full size. What is asked for stays as
// it is at any scale: eight jobs that are due, three outlets that are behind.
func skew(t *testing.T, db *storage.DB, scale int) {
	t.Helper()
	series := `WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT)) `
	fill := func(full int, insert string, args ...any) {
		t.Helper()
		require.NoError(t, storage.Exec(t.Context(), db, insert, append([]any{full * scale / 1000}, args...)...))
	}
	now, day := start.UnixMilli(), (24 * time.Hour).Milliseconds()

	job := `INSERT INTO job (kind, lane, args, state, blocked, run_at, attempt, done_at) ` + series + `SELECT `
	fill(100_000, job+`'silence', NULL, ?, 'waiting', 0, CAST(? AS BIGINT) + n, 0, NULL FROM series`, []byte(`{}`), now+day)
	fill(300_000, job+`'process', 'host:a', ?, 'done', NULL, CAST(? AS BIGINT) - n, 1, CAST(? AS BIGINT) - n FROM series`, []byte(`{}`), now, now)
	fill(50_000, job+`'process', 'host:crowd', ?, 'waiting', 1, CAST(? AS BIGINT) - n, 0, NULL FROM series`, []byte(`{}`), now)
	require.NoError(t, storage.Exec(t.Context(), db, `INSERT INTO lane (name, job) SELECT 'host:crowd', max(id) FROM job WHERE state = 'done'`))

	require.NoError(t, storage.Exec(t.Context(), db, `INSERT INTO stream (board, epoch, head) VALUES (?, 'e', 1000)`, boardID))
	outlet := `INSERT INTO outlet (board, inbox, host, stoa, cursor, failures, next_at, state) ` + series +
		`SELECT ?, 'https://h' || CAST(n AS TEXT) || '.example/' || ?, 'h' || CAST(n AS TEXT) || '.example', FALSE, `
	fill(6667, outlet+`1000, 0, 0, 'active' FROM series`, boardID, "active")
	fill(3333, outlet+`1, 20, CAST(? AS BIGINT) + n, 'dead' FROM series`, boardID, "dead", now+day)
	require.NoError(t, storage.Exec(t.Context(), db, `UPDATE outlet SET cursor = 999 WHERE host IN ('h1.example', 'h2.example', 'h3.example') AND state = 'active'`))

	fill(500, `INSERT INTO subscription (board, host, node_actor, log_url, epoch, last_seq, state, follow_id, checked_at, next_at, failures, last_error) `+series+
		`SELECT 'https://p' || CAST(n AS TEXT) || '.example/ap/board', 'p.example', '', '', '', 0, 'pending', '', 0, 1, 0, '' FROM series`)
	fill(20_000, `INSERT INTO ticket (hash, purpose, account, handle, mail, expires_at) `+series+
		`SELECT CAST('hash' || CAST(n AS TEXT) AS `+map[bool]string{true: "BYTEA", false: "BLOB"}[storage.OnPostgres(db)]+`), 'sign-in', 'acc_1', '', 'a@example.org', CAST(? AS BIGINT) - n FROM series`, now)
	fill(100_000, `INSERT INTO news (reader, n, kind, ref) `+series+`SELECT 'handle:asha', n, 'reply', 'x' FROM series`)
	fill(100_000, `INSERT INTO host_scheme (host, scheme, at) `+series+`SELECT 'h' || CAST(n AS TEXT), 'rfc9421', CAST(? AS BIGINT) FROM series`, now)
	if storage.OnPostgres(db) {
		require.NoError(t, storage.Exec(t.Context(), db, `ANALYZE`))
	} else {
		require.NoError(t, storage.Exec(t.Context(), db, `PRAGMA optimize`))
	}
}

// grown are the statements that run again and again. Each leaves the database as
// it found it, or nearly.
var grown = []struct {
	name string
	run  func(ctx context.Context, db *storage.DB) error
}{
	{"claim jobs", func(ctx context.Context, db *storage.DB) error {
		jobs, _, err := db.ClaimJobs(ctx, "growth", 8, time.Minute)
		if err == nil && len(jobs) != 8 {
			err = fmt.Errorf("%d jobs", len(jobs))
		}
		if err != nil {
			return err
		}
		return db.ReleaseJobs(ctx, "growth")
	}},
	{"claim outlets", func(ctx context.Context, db *storage.DB) error {
		due, err := db.ClaimOutlets(ctx, "growth", 128, time.Minute)
		if err == nil && len(due) != 3 {
			err = fmt.Errorf("%d outlets", len(due))
		}
		if err != nil {
			return err
		}
		return db.ReleaseOutlets(ctx, "growth")
	}},
	{"due subscriptions", reading(func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.DueSubscriptions(ctx, start)
		return err
	})},
	{"tickets sent to an address", reading(func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.CountTicketsTo(ctx, storage.TicketSignIn, "a@example.org", start)
		return err
	})},
	{"tickets of an account", reading(func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.CountTicketsOf(ctx, storage.TicketSignIn, "acc_1")
		return err
	})},
	{"news", reading(func(ctx context.Context, tx *storage.Tx) error {
		_, _, _, err := tx.News(ctx, []string{"handle:asha"}, 0, 20)
		return err
	})},
	{"list dead jobs", reading(func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.ListJobs(ctx, storage.JobDead, 20, "")
		return err
	})},
}

func reading(fn func(ctx context.Context, tx *storage.Tx) error) func(ctx context.Context, db *storage.DB) error {
	return func(ctx context.Context, db *storage.DB) error { return db.Read(ctx, fn) }
}

// TestGrowth compares what each statement costs on ten times as much: the rows
// that PostgreSQL looks at, the time that SQLite takes. STOA_GROWTH is the larger
// scale in thousandths, 100 by default.
func TestGrowth(t *testing.T) {
	large := 100
	if text := os.Getenv("STOA_GROWTH"); text != "" {
		var err error
		large, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		c.Now = func() time.Time { return start }
		costs := map[string][2]float64{}
		for i, scale := range []int{large / 10, large} {
			own := c
			if i == 1 { // beside the smaller one
				if c.URL != "" {
					own.URL = storagetest.PostgresURL(t)
				} else {
					own.Path += ".large"
				}
			}
			db, err := storage.Open(t.Context(), own)
			require.NoError(t, err)
			skew(t, db, scale)
			enqueue(t, db, slices.Repeat([]storage.Job{{Kind: "due", RunAt: start.Add(-time.Second)}}, 8)...)
			for _, g := range grown {
				cost := costs[g.name]
				cost[i], err = costOf(t, db, g.run)
				require.NoError(t, err, g.name)
				costs[g.name] = cost
			}
			require.NoError(t, db.Close())
		}
		for name, cost := range costs {
			t.Logf("%-30s %8.0f %8.0f", name, cost[0], cost[1])
			// Where little is looked at, a page more or a slow disk is no growth.
			floor := 1500.0 // microseconds
			if c.URL != "" {
				floor = 150 // rows
			}
			require.Less(t, cost[1], 2*max(cost[0], floor), "%s: ten times as much costs %.0f instead of %.0f", name, cost[1], cost[0])
		}
	})
}

// costOf is the number of rows looked at, or the least time of some runs in
// microseconds.
func costOf(t *testing.T, db *storage.DB, run func(ctx context.Context, db *storage.DB) error) (cost float64, err error) {
	if storage.OnPostgres(db) {
		storage.CountVisits(db, &cost)
		defer storage.CountVisits(db, new(float64))
		return cost, run(t.Context(), db)
	}
	var times []time.Duration
	for range 15 {
		began := time.Now()
		if err := run(t.Context(), db); err != nil {
			return 0, err
		}
		times = append(times, time.Since(began))
	}
	return float64(slices.Min(times).Microseconds()), nil
}
