package storage_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/storage"
	"stoa/storage/storagetest"
)

// eachEmpty runs fn with an empty database of each engine.
func eachEmpty(t *testing.T, fn func(t *testing.T, c storage.Config)) {
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		if c.URL != "" {
			c.URL = storagetest.EmptyPostgresURL(t)
		} else {
			c.Path = filepath.Join(t.TempDir(), "old.db")
		}
		fn(t, c)
	})
}

// A database that a later program has migrated is refused, and not changed.
func TestMigrate_Newer(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, c storage.Config) {
		setVersion := func(to int) {
			storagetest.Old(t, c, func(exec func(string, ...any)) {
				exec(`DELETE FROM goose_db_version WHERE version_id > 1`)
				exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, TRUE)`, to)
			})
		}
		setVersion(9999)
		for range 2 {
			_, err := storage.Open(t.Context(), c)
			require.ErrorIs(t, err, storage.ErrNewer)
			require.ErrorContains(t, err, "version 9999")
			require.ErrorContains(t, err, "knows versions up to ")
			require.ErrorContains(t, err, "restore a backup")
		}
		if c.Path != "" {
			target := filepath.Join(t.TempDir(), "stoa.db")
			err := storage.Replace(t.Context(), target, c.Path)
			require.ErrorIs(t, err, storage.ErrNewer)
			require.NotContains(t, err.Error(), "is not a backup")
			require.NoFileExists(t, target)
		}
	})
}

// An upgrade says from which version it goes to which, and how long it took; a start without one says nothing.
func TestMigrate_Log(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, c storage.Config) {
		storagetest.Old(t, c, func(func(string, ...any)) {})
		var log bytes.Buffer
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		for range 2 {
			db, err := storage.Open(t.Context(), c)
			require.NoError(t, err)
			require.NoError(t, db.Close())
		}
		require.Regexp(t, `^time=\S+ level=INFO msg="migrating the database" from=1 to=\d+\n.* msg="database migrated" from=1 to=\d+ dur=\S+\n$`, log.String())
	})
}
