package storage_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// inOneBatch holds the writer of the database, calls each function in a
// goroutine, in order, and lets the writer go.
func inOneBatch(t *testing.T, db *storage.DB, fns ...func()) {
	t.Helper()
	hold, running := make(chan struct{}), make(chan struct{}, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := db.Write(t.Context(), func(context.Context, *storage.Tx) error { running <- struct{}{}; <-hold; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-running
	for i, fn := range fns {
		wg.Go(fn)
		require.Eventually(t, func() bool { return db.QueueLen() == i+1 }, time.Minute, time.Millisecond)
	}
	close(hold)
	wg.Wait()
}

// What writes of one batch declare to spend is inserted together. The write at
// fault is refused, and no other.
func TestSpend_Declared(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		before, twice, failing, unused := spend(), spend(), spend(), spend()
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Requests().Spend(ctx, before) }, before))
		var errs [7]error
		try := func(i int, s protocol.Spend, after error) func() {
			return func() {
				errs[i] = db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
					if err := tx.Requests().Spend(ctx, s); err != nil {
						return err
					}
					if err := publish(ctx, tx, samplePost(time.Now(), int64(i))); err != nil {
						return err
					}
					return after
				}, s)
			}
		}
		inOneBatch(t, db,
			try(0, before, nil), try(1, spend(), nil), try(2, twice, nil), try(3, twice, nil), try(4, failing, errRoom), try(5, spend(), nil),
			func() {
				errs[6] = db.Write(t.Context(), func(context.Context, *storage.Tx) error { return nil }, unused)
			})
		require.Equal(t, protocol.SignatureReplayed, protocol.CodeOf(errs[0]))
		require.NoError(t, errs[1])
		require.True(t, (errs[2] == nil) != (errs[3] == nil), "one of two: %v, %v", errs[2], errs[3])
		require.Equal(t, protocol.SignatureReplayed, protocol.CodeOf(errors.Join(errs[2], errs[3])))
		require.ErrorIs(t, errs[4], errRoom)
		require.NoError(t, errs[5])
		require.NoError(t, errs[6])
		require.Len(t, walkBoard(t, db, protocol.BoardQuery{Paging: protocol.Paging{Limit: 100}}), 3)
		for name, s := range map[string]protocol.Spend{"of a write that failed": failing, "declared and not spent": unused} {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Requests().Spend(ctx, s) })
			err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Requests().Spend(ctx, s) }, s)
			require.Equal(t, protocol.SignatureReplayed, protocol.CodeOf(err), name)
		}
	})
}

// After a write that failed the next one of the batch may spend the same.
func TestSpend_FreeAgainInTheBatch(t *testing.T) {
	t.Parallel()
	db := storagetest.Open(t)
	for _, look := range []bool{false, true} {
		s := spend()
		var first, second error
		inOneBatch(t, db, func() {
			first = db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				if look { // with a savepoint
					if err := tx.Audit(ctx, "a", "b", "c", "d"); err != nil {
						return err
					}
				}
				return errors.Join(tx.Requests().Spend(ctx, s), errRoom)
			}, s)
		}, func() {
			second = db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Requests().Spend(ctx, s) }, s)
		})
		require.ErrorIs(t, first, errRoom)
		require.NoError(t, second)
	}
}

// Writes of every sort over few keys, from two processes: each key is spent by
// exactly as many writes as say so, one at most, and by none of those that failed.
func TestSpend_LikeAModel(t *testing.T) {
	t.Parallel()
	seed, rounds := storagetest.Seed(t), storagetest.Rounds(t, 30)
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		c.Log = slog.New(slog.DiscardHandler) // the panics are meant
		var dbs [2]*storage.DB
		for i := range dbs {
			db := storagetest.OpenConfig(t, c)
			dbs[i] = db
		}
		taken := samplePost(start, 0)
		store(t, dbs[0], taken)
		keys := make([]protocol.Spend, 200)
		for i := range keys {
			keys[i] = spend()
		}
		var mu sync.Mutex
		won := map[[16]byte]int{}
		posts := 1
		together(32, func(worker int) {
			random := rand.New(rand.NewPCG(uint64(worker), seed))
			for n := range rounds {
				s, sort := keys[random.IntN(len(keys))], random.IntN(8)
				var declared []protocol.Spend
				if random.IntN(4) > 0 {
					declared = []protocol.Spend{s, keys[random.IntN(len(keys))]} // the other one stays unspent
				}
				err := dbs[worker%2].Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
					if sort == 1 {
						if err := tx.Audit(ctx, "a", "b", "c", ""); err != nil {
							return err
						}
					}
					if err := tx.Requests().Spend(ctx, s); err != nil {
						return err
					}
					p := samplePost(time.Now(), int64(n))
					switch sort {
					case 2:
						return errRoom
					case 3:
						panic("a room that panics")
					case 4:
						again := *taken // Insert writes its number into it
						p = &again      // refused by the database
					case 5:
						if _, err := tx.Posts().Count(ctx); err != nil {
							return err
						}
					}
					return publish(ctx, tx, p)
				}, declared...)
				mu.Lock()
				if err == nil {
					won[s.Key]++
					posts++
				}
				mu.Unlock()
				if sort == 0 && err != nil && protocol.CodeOf(err) != protocol.SignatureReplayed {
					t.Error(err)
				}
			}
		})
		require.Len(t, walkBoard(t, dbs[0], protocol.BoardQuery{Paging: protocol.Paging{Limit: 100}}), posts)
		for i, s := range keys {
			require.LessOrEqual(t, won[s.Key], 1)
			err := dbs[i%2].Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Requests().Spend(ctx, s) }, s)
			if won[s.Key] == 1 {
				require.Equal(t, protocol.SignatureReplayed, protocol.CodeOf(err))
			} else {
				require.NoError(t, err, "a key that no write spent")
			}
		}
		require.NoError(t, dbs[0].Check(t.Context()))
	})
}
