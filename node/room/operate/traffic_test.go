package operate

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/storage"
	"stoa/storage/storagetest"
)

// TestMeter_End: the last counts are written at the end, and an end that cannot write them is in order.
func TestMeter_End(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		m := &Meter{DB: db, Log: slog.New(slog.DiscardHandler)}
		ended, end := context.WithCancel(t.Context())
		end()
		m.Delivery(nil)
		require.NoError(t, m.Run(ended))
		require.Empty(t, m.counts)

		m.Delivery(nil)
		require.NoError(t, db.Close())
		require.NoError(t, m.Run(ended))
		require.NotEmpty(t, m.counts)
	})
}
