package storage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// BenchmarkImportItems imports a catalog of 20,000 items into an empty shop, and reports the
// longest wait of another writer meanwhile.
func BenchmarkImportItems(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			db := storagetest.Open(b)
			if engine == "postgres" {
				c := storage.Config{URL: storagetest.PostgresURL(b)}
				db = must.Get(storage.Open(b.Context(), c))(b)
				defer db.Close()
			}
			drafts := make([]protocol.ItemDraft, protocol.MaxItems)
			for n := range drafts {
				drafts[n] = protocol.ItemDraft{SKU: fmt.Sprint("s", n), Name: fmt.Sprint("Thing of number ", n), Category: fmt.Sprint("Section ", n%40),
					Description: strings.Repeat(fmt.Sprint("words ", n%977, " about it "), 8), Price: rupees(fmt.Sprint(10 + n))}
			}
			var worst, longest time.Duration
			for shop := 0; b.Loop(); shop++ {
				handle := fmt.Sprint("shop-", shop)
				require.NoError(b, db.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
					return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: "Shop", Kind: protocol.Business}}))
				}))
				done := make(chan error)
				begin := time.Now()
				go func() {
					_, err := db.ImportItems(b.Context(), imported(handle, drafts, nil))
					done <- err
				}()
				for running := true; running; {
					select {
					case err := <-done:
						require.NoError(b, err)
						running = false
					default:
						asked := time.Now()
						require.NoError(b, db.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Settings().Put(ctx, "other", handle) }))
						worst = max(worst, time.Since(asked))
					}
				}
				longest = max(longest, time.Since(begin))
			}
			b.ReportMetric(longest.Seconds(), "s/import")
			b.ReportMetric(float64(worst.Microseconds())/1000, "longest-wait-ms")
		})
	}
}
