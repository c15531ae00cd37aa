package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/storage"
)

// BenchmarkClaim is a claim of eight jobs, and giving them back, among eight that
// are due, and among 100,000 that sleep and 50,000 due ones of one lane. It is
// rolled back: statements alone, no commit.
func BenchmarkClaim(b *testing.B) {
	for _, full := range []bool{false, true} {
		name := "due=8"
		if full {
			name = "due=50000/sleeping=100000"
		}
		b.Run(name, func(b *testing.B) {
			onEach(b, func(b *testing.B, db *storage.DB) {
				exec := func(text string, args ...any) {
					b.Helper()
					require.NoError(b, storage.Exec(b.Context(), db, text, args...))
				}
				job := `INSERT INTO job (kind, lane, args, state, blocked, run_at) WITH RECURSIVE series (n) AS
					(SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT)) SELECT 'x', ` // lane, args, state, blocked, run_at
				now := time.Now().UnixMilli()
				if full {
					exec(job+`NULL, ?, 'waiting', 0, CAST(? AS BIGINT) + n FROM series`, 100_000, []byte("{}"), now+time.Hour.Milliseconds())
					exec(job+`'host:crowd', ?, 'waiting', 0, CAST(? AS BIGINT) - n FROM series`, 50_000, []byte("{}"), now-time.Hour.Milliseconds())
				}
				exec(job+`NULL, ?, 'waiting', 0, CAST(? AS BIGINT) - n FROM series`, 8, []byte("{}"), now-time.Minute.Milliseconds())
				if full { // the first claims find the lane's jobs, and block them once
					for found := 0; found < 8; {
						jobs, _, err := db.ClaimJobs(b.Context(), "bench", 8, time.Hour)
						require.NoError(b, err)
						for _, j := range jobs {
							if j.Lane == "" {
								found++
							}
						}
					}
					exec(`UPDATE job SET owner = NULL, attempt = 0, run_at = ? WHERE lane IS NULL AND owner IS NOT NULL`, now-time.Minute.Milliseconds())
				}
				storage.Analyze(b, db)
				var took time.Duration
				b.ResetTimer()
				for b.Loop() {
					require.ErrorIs(b, db.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
						began := time.Now()
						jobs, err := storage.Claim(ctx, tx, "bench", 8)
						took += time.Since(began)
						if err != nil || len(jobs) != 8 {
							b.Fatal(len(jobs), err)
						}
						return errRollBack
					}), errRollBack)
				}
				b.ReportMetric(float64(took.Microseconds())/float64(b.N), "µs-statements")
			})
		})
	}
}
