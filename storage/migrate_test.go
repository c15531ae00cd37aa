package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// eachEmpty runs fn with an empty database of each engine.
func eachEmpty(t *testing.T, fn func(t *testing.T, c storage.Config)) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
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
	eachEmpty(t, func(t *testing.T, c storage.Config) {
		setVersion := func(to int) {
			storagetest.Unopened(t, c, func(exec func(string, ...any)) {
				exec(`UPDATE compatible SET since = ?`, to)
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
			require.ErrorIs(t, must.Err(storage.Inspect(t.Context(), c, "a")), storage.ErrNewer)
		}
		if c.Path != "" {
			target := filepath.Join(t.TempDir(), "stoa.db")
			err := replaceBy(t.Context(), target, c.Path)
			require.ErrorIs(t, err, storage.ErrNewer)
			require.NotContains(t, err.Error(), "is not a backup")
			require.NoFileExists(t, target)
		}
	})
}

// unreleased are the versions of databases of the last program before 0.1.0.
func unreleased(c storage.Config) int {
	if c.URL != "" {
		return 98
	}
	return 101
}

// before makes a database as a program before 0.1.0 left it, with a version of then.
func before(t *testing.T, c storage.Config, version int) {
	t.Helper()
	storagetest.UnopenedAt(t, c, 110, func(exec func(string, ...any)) {
		exec(`DELETE FROM goose_db_version WHERE version_id > 0`)
		exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, TRUE)`, version)
	})
}

// A database of the last program before 0.1.0 is taken over once, by one of several processes or by all, and the log says so.
func TestMigrate_TakenOver(t *testing.T) {
	eachEmpty(t, func(t *testing.T, c storage.Config) {
		before(t, c, unreleased(c))
		var log bytes.Buffer
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		for range 2 {
			db := must.Get(storage.Open(t.Context(), c))(t)
			require.NoError(t, db.Close())
		}
		require.Regexp(t, `^(time=.* msg="copying the database before it is migrated" .*\n)?`+
			`time=\S+ level=INFO msg="the database is from before the first release and is taken over" from=\d+ to=110\n`+
			`(time=.* level=INFO msg=.*migrat.*\n){2}$`, log.String())
	})
}

// An older one is refused, named, with the way out, and not changed.
func TestMigrate_Older(t *testing.T) {
	eachEmpty(t, func(t *testing.T, c storage.Config) {
		before(t, c, unreleased(c)-1)
		for range 2 {
			_, err := storage.Open(t.Context(), c)
			require.ErrorIs(t, err, storage.ErrOlder)
			require.ErrorContains(t, err, fmt.Sprintf("have version %d, and this program takes over version %d", unreleased(c)-1, unreleased(c)))
			require.ErrorContains(t, err, "stoa admin export")
		}
		if c.Path != "" {
			target := filepath.Join(t.TempDir(), "stoa.db")
			err := replaceBy(t.Context(), target, c.Path)
			require.ErrorIs(t, err, storage.ErrOlder)
			require.NotContains(t, err.Error(), "is not a backup")
			require.NoFileExists(t, target)
		}
	})
}

// A database that the last program before 0.1.0 made is read and written on.
func TestMigrate_Kept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "stoa.db")
	require.NoError(t, os.WriteFile(path, unpacked(t, "testdata/unreleased.db.gz"), 0o600))
	db := storagetest.OpenConfig(t, storage.Config{Path: path})
	require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		require.Equal(t, "Paper from rags", must.Get(tx.Profiles().ByHandle(ctx, "asha"))(t).Draft.Headline)
		page := must.Get(tx.Posts().List(ctx, protocol.BoardQuery{Q: "rag paper"}))(t)
		require.Len(t, page.Items, 1)
		require.Equal(t, "Ravi", page.Items[0].Author.Name)
		return nil
	}))
	require.NoError(t, db.Check(t.Context()))
	write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "asha") })
}
