package node_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestRotateMaster: everything that a node has sealed is sealed with another master key. A rotation that ended in the middle leaves a node
// that opens what either key has sealed, and is continued; the former key then opens nothing, and is kept for old backups.
func TestRotateMaster(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change, func(c *node.Config) { c.Data = t.TempDir() })
		c := h.Config
		h.PutOpen("asha", nil)
		hosted := must.Get(key.GenerateEd25519())(t)
		h.PutProfile([]byte(`{"handle":"ravi","name":"Ravi","kind":"person"}`))
		require.NoError(t, h.Admin().AddKey(t.Context(), "ravi", hosted, true))
		file := filepath.Join(c.Data, "master.key")
		was := must.Get(os.ReadFile(file))(t)
		_, err := node.RotateMaster(t.Context(), c, log)
		require.ErrorIs(t, err, node.ErrConfig)
		require.ErrorContains(t, err, "Stop the node")
		require.NoError(t, h.Close())

		opens := func() {
			t.Helper()
			n := must.Get(node.New(t.Context(), c, log))(t)
			defer func() { require.NoError(t, n.Close()) }()
			require.Equal(t, h.Keys.Ed.Thumbprint(), n.Keys.Ed.Thumbprint())
			require.Equal(t, h.Keys.RSA.Thumbprint(), n.Keys.RSA.Thumbprint())
			pair := must.Get(n.Keys.Agent(t.Context(), "ravi", hosted.Thumbprint()))(t)
			require.Equal(t, hosted.Thumbprint(), pair.Thumbprint())
		}
		at := storage.Config{URL: c.Database, Log: log}
		if at.URL == "" {
			at.Path = filepath.Join(c.Data, "stoa.db")
		}
		spoil := func(to string) { // agent_key comes after the secrets of the node
			require.NoError(t, storage.Alone(t.Context(), at, func(db *storage.DB) error {
				return db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
					return tx.Settings().PutSecret(ctx, "zzz", []byte(to))
				})
			}))
		}
		spoil("no seal")
		_, err = node.RotateMaster(t.Context(), c, log)
		require.ErrorContains(t, err, "secret zzz")
		require.Equal(t, was, must.Get(os.ReadFile(file))(t))
		require.FileExists(t, file+".next")
		opens()
		spoil("")
		out := must.Get(node.RotateMaster(t.Context(), c, log))(t)
		require.Greater(t, out.Of, 5)
		require.NotEqual(t, was, must.Get(os.ReadFile(file))(t))
		require.Equal(t, was, must.Get(os.ReadFile(out.Former))(t))
		require.NoFileExists(t, file+".next")
		opens()
		require.NoError(t, os.WriteFile(file, was, 0o600))
		_, err = node.New(t.Context(), c, log)
		require.ErrorContains(t, err, "is this the master key that sealed the database?")
	})
}
