package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/storage"
	"stoa/storage/storagetest"
)

// TestQuiet: while two processes write, a reader for whom something is new is never told that nothing is, and one for whom
// nothing is new learns it, from a tail that forgets nearly all readers again and again. On SQLite nobody is told.
func TestQuiet(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		const readers, rounds = 40, 60
		var dbs [2]*storage.DB
		for i := range dbs {
			db := storagetest.OpenConfig(t, c)
			dbs[i] = db
		}
		dbs[1].ShrinkTail(8)
		name := func(i int) []string { return []string{fmt.Sprint("handle:", i), fmt.Sprint("key:", i)} }
		var after [readers]int64
		news := func(i int) (items []storage.NewsItem, upTo int64) {
			read(t, dbs[1], func(ctx context.Context, tx *storage.Tx) (err error) {
				items, upTo, _, err = tx.News().After(ctx, name(i), after[i], 100)
				return err
			})
			return items, upTo
		}
		told, quiet := 0, 0
		for round := range rounds {
			var writers sync.WaitGroup
			for w := range dbs {
				writers.Go(func() {
					_ = dbs[w].Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
						for range 3 {
							if err := tx.News().Append(ctx, storage.NewsReply, fmt.Sprint(round), name(rand.IntN(readers))...); err != nil {
								return err
							}
						}
						return nil
					})
				})
			}
			if round%3 == 0 { // otherwise readers look while it happens
				writers.Wait()
				require.NoError(t, dbs[1].Numbered(t.Context()))
			}
			for range 6 {
				i := rand.IntN(readers)
				items, upTo := news(i)
				said := dbs[1].Quiet(t.Context(), name(i), after[i])
				require.False(t, said && len(items) > 0, "%d: %v", i, items)
				if said {
					quiet++
				}
				told += len(items)
				after[i] = upTo
			}
			writers.Wait()
		}
		require.NoError(t, dbs[1].Numbered(t.Context()))
		require.Positive(t, told)
		_, after[0] = news(0)
		if c.URL != "" {
			require.True(t, dbs[1].Quiet(t.Context(), name(0), after[0]))
			require.False(t, dbs[1].Quiet(t.Context(), name(0), after[0]+1), "a number that was not yet given")
		} else {
			require.Zero(t, quiet)
		}
	})
}
