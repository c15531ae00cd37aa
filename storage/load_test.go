package storage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

// A load leaves the indexes as they were, when it fails and when the process
// dies in the middle too.
func TestLoad(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		db, err := storage.Open(t.Context(), c)
		require.NoError(t, err)
		before := storage.Indexes(t.Context(), t, db)
		n := 0
		fill := func() error {
			n++
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return publish(ctx, tx, samplePost(start.Add(time.Duration(n)*time.Second), int64(n)))
			})
			return nil
		}
		require.NoError(t, db.Load(t.Context(), fill))
		require.Equal(t, before, storage.Indexes(t.Context(), t, db))
		broken := errors.New("broken")
		require.ErrorIs(t, db.Load(t.Context(), func() error { return broken }), broken)
		require.Equal(t, before, storage.Indexes(t.Context(), t, db))

		require.Panics(t, func() { _ = db.Load(t.Context(), func() error { panic("the power went out") }) })
		if c.URL != "" {
			require.NotEqual(t, before, storage.Indexes(t.Context(), t, db))
		}
		require.NoError(t, db.Close())
		db, err = storage.Open(t.Context(), c)
		require.NoError(t, err)
		defer db.Close()
		require.Equal(t, before, storage.Indexes(t.Context(), t, db))
		require.NoError(t, db.Check(t.Context()))
	})
}
