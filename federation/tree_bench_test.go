package federation

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage"
)

// The log of a database that is older than the tree is put into it: 100,000 entries, in steps of 512.
func BenchmarkTree(b *testing.B) {
	const entries = 100_000
	f := filled(b, entries)
	var used, longest time.Duration
	for range b.N {
		b.StopTimer()
		require.NoError(b, f.c.DB.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.Logs().NewEpoch(ctx, f.site.Board()))
		}))
		b.StartTimer()
		before := cpuTime()
		for behind := int64(2); behind > 1; { // the deletion of the tree before is not counted
			begin := time.Now()
			behind = must.Get(f.growTree(b.Context()))(b)
			longest = max(longest, time.Since(begin))
		}
		used += cpuTime() - before
		b.StopTimer()
		for behind := int64(1); behind > 0; {
			behind = must.Get(f.growTree(b.Context()))(b)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(used.Microseconds())/float64(entries*b.N), "cpu-µs/entry")
	b.ReportMetric(float64(entries*b.N)/b.Elapsed().Seconds(), "entries/s")
	b.ReportMetric(float64(longest.Milliseconds()), "longest-step-ms")
}
