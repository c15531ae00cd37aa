package storage_test

import (
	"context"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"

	"github.com/stretchr/testify/require"
)

func TestMemo(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		made, during, failing := 0, func() {}, error(nil)
		m := storage.Memo[int]{Age: time.Minute}
		m.Count = func(_ context.Context, _ *storage.Tx, last *int) (int, error) {
			if during(); failing != nil {
				return 0, failing
			}
			if made++; made > 1 {
				require.Equal(t, made-1, *last)
			}
			return made, nil
		}
		get := func() (n int, err error) {
			err = db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				n, err = m.Get(ctx, tx)
				return err
			})
			return n, err
		}
		is := func(want int) {
			t.Helper()
			require.Equal(t, want, must.Get(get())(t))
		}
		renew := func() { require.NoError(t, m.Renew(t.Context(), db)) }

		renew()
		require.Zero(t, made, "nobody has asked")
		during = func() { // someone asks while it is counted for the first time
			require.Equal(t, protocol.Overloaded, protocol.CodeOf(must.Err(get())))
		}
		is(1)
		is(1)
		renew()
		require.Equal(t, 1, made, "it is young")
		advance(61 * time.Second)
		is(1)
		during = func() { is(1) } // what there was before
		renew()
		during = func() {}
		require.Equal(t, 2, made)
		is(2)
		advance(2 * time.Minute)
		is(3) // nobody has renewed it
		advance(61 * time.Second)
		renew()
		require.Equal(t, 3, made, "nobody has asked since")
		failing = errRoom
		is(3)
		require.ErrorIs(t, m.Renew(t.Context(), db), errRoom)
		is(3)
		advance(time.Minute)
		require.ErrorIs(t, must.Err(get()), errRoom, "too old")
		failing = nil
		is(4)
	})
}
