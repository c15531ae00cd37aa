package storage_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	target, backup := filepath.Join(dir, "stoa.db"), filepath.Join(dir, "copy.db")
	set := func(db *storage.DB, value string) {
		require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Settings().Put(ctx, "x", value) }))
	}
	db := must.Get(storage.Open(ctx, storage.Config{Path: target}))(t)
	set(db, "before")
	require.NoError(t, db.Backup(ctx, backup))
	set(db, "after")

	replace := func(backup string) error { return replaceBy(ctx, target, backup) }
	require.ErrorContains(t, replace(backup), "stop the node first", "an open database is not replaced")
	require.NoError(t, db.Close())
	require.Error(t, replace(filepath.Join(dir, "nothing.db")))
	nonsense := filepath.Join(dir, "nonsense.db")
	require.NoError(t, os.WriteFile(nonsense, []byte("not a database, but long enough to look at"), 0o600))
	require.Error(t, replace(nonsense))

	require.NoError(t, replace(backup))
	db = storagetest.OpenConfig(t, storage.Config{Path: target})
	require.NoError(t, db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		require.Equal(t, "before", must.Get(tx.Settings().Get(ctx, "x"))(t))
		return nil
	}))
	require.NotEmpty(t, must.Get(filepath.Glob(target+".*.old"))(t), "what was there is kept")
}

// replaceBy replaces a database by a file.
func replaceBy(ctx context.Context, target, backup string) error {
	_, err := storage.Replace(ctx, target, func(fresh string) error {
		f, err := os.Open(backup)
		if err != nil {
			return err
		}
		defer f.Close()
		return storage.CopyFile(fresh, f)
	}, func(*storage.DB) error { return nil })
	return err
}
