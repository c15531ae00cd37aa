package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage"
)

// What a process tells the others read for a while, and then it is gone.
func TestUsage(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		tell := func(process string, n int64, doc string) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return tx.Requests().PutUsage(ctx, storage.Usage{Process: process, N: n, Doc: []byte(doc)})
			})
		}
		others := func(process string) (docs []string) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				all, err := tx.Requests().UsageOfOthers(ctx, process, 20*time.Second)
				for _, u := range all {
					docs = append(docs, u.Process+string(u.Doc))
				}
				return err
			})
			return docs
		}
		tell("a", 1, "x")
		advance(time.Second)
		tell("b", 1, "y")
		advance(time.Second)
		tell("a", 2, "z")
		require.Equal(t, []string{"by"}, others("a"))
		require.Equal(t, []string{"ax", "az"}, others("b"))
		require.Equal(t, []string{"ax", "by", "az"}, others("c"))
		advance(19 * time.Second)
		require.Equal(t, []string{"az"}, others("b"))
		advance(time.Minute)
		tell("c", 1, "")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Zero(t, must.Get(tx.Requests().PruneUsage(ctx))(t), "each report deletes the old ones")
			return nil
		})
		require.Equal(t, []string{"c"}, others("a"))
	})
}
