package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/storage"
	"stoa/storage/storagetest"
)

// What waits is done as fast as the work allows, not as often as someone looks:
// the jobs of one lane one after another and in order, those of many lanes alongside
// each other, over two processes.
func TestWorker_Backlog(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		const lanes, each = 20, 10
		total := lanes*each + 60
		require.NoError(t, db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			for n := range each {
				for lane := range lanes {
					if err := tx.Enqueue(ctx, storage.Job{Kind: "count", Lane: fmt.Sprint("host ", lane), Args: []byte{byte(n)}}); err != nil {
						return err
					}
				}
			}
			for n := range 60 {
				if err := tx.Enqueue(ctx, storage.Job{Kind: "count", Lane: "one", Args: []byte{byte(n)}}); err != nil {
					return err
				}
			}
			return nil
		}))
		var mu sync.Mutex
		seen, running := map[string][]byte{}, map[string]bool{}
		began := time.Now()
		for _, owner := range []string{"one", "two"} {
			w := newWorker(t, db)
			w.Owner = owner
			w.Handle("count", func(_ context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
				mu.Lock()
				defer mu.Unlock()
				if running[j.Lane] {
					t.Errorf("two jobs of %s at once", j.Lane)
				}
				running[j.Lane] = true
				return func(context.Context, *storage.Tx) error {
					mu.Lock()
					defer mu.Unlock()
					running[j.Lane] = false
					if !slices.Contains(seen[j.Lane], j.Args[0]) { // a transaction may run twice
						seen[j.Lane] = append(seen[j.Lane], j.Args[0])
					}
					return nil
				}, nil
			})
			run(t, w)
		}
		done := func() (n int) {
			mu.Lock()
			defer mu.Unlock()
			for _, s := range seen {
				n += len(s)
			}
			return n
		}
		require.Eventually(t, func() bool { return done() == total }, time.Minute, 5*time.Millisecond)
		// A look a second would take 60 s for the long lane alone.
		require.Less(t, time.Since(began), 30*time.Second)
		mu.Lock()
		defer mu.Unlock()
		for lane, order := range seen {
			require.True(t, slices.IsSorted(order), "%s: %v", lane, order)
		}
	})
}
