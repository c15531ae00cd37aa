package node_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A database whose master key is missing starts nothing, and no other key is put
// in its place; with the key back, everything is as it was.
func TestMasterKey_Missing(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	storagetest.EachConfig(t, func(t *testing.T, at storage.Config) {
		c := node.Config{Listen: "127.0.0.1:0", BaseURL: "https://n1.example", Data: t.TempDir(), Database: at.URL, Version: "test"}
		file := filepath.Join(c.Data, "master.key")
		start := func() error {
			n, err := node.New(t.Context(), c, log)
			if err != nil {
				return err
			}
			return n.Close()
		}
		require.NoError(t, start(), "the first start makes the key")
		backup := filepath.Join(t.TempDir(), "backup.db")
		if c.Database == "" {
			a := must.Get(node.OpenAdmin(t.Context(), c, log))(t)
			require.NoError(t, a.DB.Backup(t.Context(), backup))
			a.Close()
		}
		saved := must.Get(os.ReadFile(file))(t)
		require.NoError(t, os.Remove(file))

		_, opened := node.OpenAdmin(t.Context(), c, log)
		refused := map[string]error{"serve": start(), "admin": opened}
		if c.Database == "" {
			before := must.Get(os.ReadDir(c.Data))(t)
			_, refused["restore"] = node.Restore(t.Context(), c, node.Source{From: backup}, log)
			after := must.Get(os.ReadDir(c.Data))(t)
			require.Len(t, after, len(before), "nothing was replaced")
		}
		for name, err := range refused {
			require.ErrorIs(t, err, node.ErrConfig, name)
			require.ErrorContains(t, err, file, name)
			require.ErrorContains(t, err, "No new key was made", name)
			require.ErrorContains(t, err, "--master-key", name)
		}
		require.NoFileExists(t, file)

		other := c
		other.Data, other.Database = t.TempDir(), ""
		n := must.Get(node.New(t.Context(), other, log))(t)
		require.NoError(t, n.Close())
		c.MasterKey = filepath.Join(other.Data, "master.key")
		require.ErrorContains(t, start(), "is this the master key that sealed the database?")
		c.MasterKey = ""
		require.NoError(t, os.WriteFile(file, saved, 0o600))
		require.NoError(t, start())
		if c.Database == "" {
			must.Get(node.Restore(t.Context(), c, node.Source{From: backup}, log))(t)
		}
	})
}

// A program that is older than the database refuses it, and so does one that does not know so old a one, as a fault of the
// configuration, in every command that opens it.
func TestNewerDatabase(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	storagetest.EachConfig(t, func(t *testing.T, at storage.Config) {
		c := node.Config{Listen: "127.0.0.1:0", BaseURL: "https://n1.example", Data: t.TempDir(), Database: at.URL, Version: "test"}
		if at.URL != "" {
			c.Database = storagetest.EmptyPostgresURL(t)
		}
		storagetest.Unopened(t, storage.Config{URL: c.Database, Path: c.SQLite()}, func(exec func(string, ...any)) {
			exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)`)
			exec(`UPDATE compatible SET since = 9999`)
		})
		refused := func(version string) {
			t.Helper()
			_, served := node.New(t.Context(), c, log)
			_, opened := node.OpenAdmin(t.Context(), c, log)
			for name, err := range map[string]error{"serve": served, "admin": opened} {
				require.ErrorIs(t, err, node.ErrConfig, name)
				require.ErrorContains(t, err, version, name)
			}
		}
		refused("version 9999")
		storagetest.Unopened(t, storage.Config{URL: c.Database, Path: c.SQLite()}, func(exec func(string, ...any)) {
			exec(`DELETE FROM goose_db_version WHERE version_id > 0`)
			exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (50, TRUE)`)
		})
		refused("version 50")
		require.NoFileExists(t, c.MasterKeyFile(), "nothing was made")
	})
}
