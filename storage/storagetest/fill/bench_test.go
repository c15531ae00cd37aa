package fill

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/storage"
	"stoa/storage/storagetest"
)

// BenchmarkFeedPage reads the first page of the feed of small and large nodes.
func BenchmarkFeedPage(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			db := storagetest.Open(b)
			require.NoError(b, Fill(b.Context(), db, Config{Base: base, Posts: n, Seed: 1}))
			b.ResetTimer()
			for b.Loop() {
				require.NoError(b, db.Read(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
					_, err := tx.Feed().List(ctx, nil, false, 20, "")
					return err
				}))
			}
		})
	}
}
