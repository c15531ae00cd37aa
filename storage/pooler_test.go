package storage_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// TestPooler: what may only be done while no process of the node is connected is refused behind PgBouncer, which keeps connections for
// others and shows its own. Backups and their trials are transactions, and work.
func TestPooler(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	storagetest.SkipPooled(t) // it starts one
	for _, mode := range []string{"transaction", "session"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := storage.Config{URL: storagetest.PostgresURL(t)}
			address, end := storagetest.Pooler(t, c.URL, mode)
			t.Cleanup(end)
			c.URL = storagetest.Through(t, c.URL, address)
			node := storagetest.OpenConfig(t, c) // lives on
			sums, raw := dump(t, node)
			found := must.Get(storage.TryPostgres(t.Context(), bytes.NewReader(raw), c.URL, nil))(t)
			require.Equal(t, sums.Rows(), found.Sums.Rows())

			lite := storage.Config{Path: filepath.Join(t.TempDir(), "stoa.db")}
			filled(t, lite, 100)
			for name, do := range map[string]func() error{
				"restore": func() error {
					return must.Err(storage.LoadPostgres(t.Context(), bytes.NewReader(raw), c.URL, "stoa_old", nil))
				},
				"restore of a profile": func() error {
					return must.Err(storage.LoadSchema(t.Context(), bytes.NewReader(raw), c.URL, "stoa_restore", nil))
				},
				"move to it":                 func() error { return must.Err(storage.Move(t.Context(), lite, c, func(storage.MoveStep) {})) },
				"rotation of the master key": func() error { return storage.Alone(t.Context(), c, func(*storage.DB) error { return nil }) },
				"dry run of a migration":     func() error { return must.Err(storage.TryMigration(t.Context(), c)) },
			} {
				require.ErrorIs(t, do(), storage.ErrPooler, name)
			}
			require.NoError(t, node.Check(t.Context()))
			require.NoError(t, storage.Alone(t.Context(), lite, func(*storage.DB) error { return nil }), "nothing was marked as moved")
		})
	}
}
