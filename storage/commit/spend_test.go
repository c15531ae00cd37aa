package commit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"stoa/protocol"
	"stoa/storage/commit"

	"github.com/stretchr/testify/require"
)

// atOnce runs n functions at once and waits.
func atOnce(n int, fn func(i int)) {
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { fn(i) })
	}
	running.Wait()
}

func TestSpend_ExactlyOneWins(t *testing.T) {
	each(t, func(t *testing.T, db *commit.DB) {
		for range 10 {
			s := spend()
			ahead := [][]protocol.Spend{nil, {s}}
			var won atomic.Int64
			atOnce(64, func(i int) {
				err := db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error { return tx.Spend(ctx, s) }, ahead[i%2]...)
				if err == nil {
					won.Add(1)
				} else if protocol.CodeOf(err) != protocol.SignatureReplayed {
					t.Error(err)
				}
			})
			require.EqualValues(t, 1, won.Load())
			err := db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error { return tx.Spend(ctx, s) })
			require.Equal(t, protocol.SignatureReplayed, protocol.CodeOf(err))
		}
	})
}

// A failed write gives back what it spent.
func TestSpend_UndoneWithItsWrite(t *testing.T) {
	each(t, func(t *testing.T, db *commit.DB) {
		s := spend()
		for range 3 {
			atOnce(8, func(i int) {
				err := db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error {
					if i > 0 { // neighbours in the same batch
						return tx.Spend(ctx, spend())
					}
					if err := tx.Spend(ctx, s); err != nil {
						return err
					}
					return errRoom
				})
				if i == 0 && !errors.Is(err, errRoom) || i > 0 && err != nil {
					t.Error(i, err)
				}
			})
		}
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error { return tx.Spend(ctx, s) }, s))
	})
}

// In one batch the first write that succeeds has the key, and one that fails leaves it
// to the next.
func TestSpend_InOneBatch(t *testing.T) {
	each(t, func(t *testing.T, db *commit.DB) {
		for _, ahead := range []bool{false, true} {
			s := spend()
			var said []protocol.Spend
			if ahead {
				said = []protocol.Spend{s}
			}
			use := func(ctx context.Context, tx *commit.Tx) error { return tx.Spend(ctx, s) }
			fail := func(ctx context.Context, tx *commit.Tx) error { return errors.Join(tx.Spend(ctx, s), errRoom) }
			errs := spending(t, db, said, fail, use, use)
			require.ErrorIs(t, errs[0], errRoom)
			require.NoError(t, errs[1])
			require.Equal(t, protocol.SignatureReplayed, protocol.CodeOf(errs[2]))
			s = spend()
			require.ErrorIs(t, spending(t, db, []protocol.Spend{s}, fail, fail)[1], errRoom)
			require.NoError(t, db.Write(t.Context(), use), "what nobody spent is given back")
		}
	})
}
