package storage_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage"
)

// TestInspect: a database is read while a process has it open and when none has, and no file is made beside it.
func TestInspect(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		db := must.Get(storage.Open(t.Context(), c))(t)
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.Settings().Secret(ctx, "a", func() ([]byte, error) { return []byte("sealed"), nil })
			if err == nil {
				err = tx.Settings().Put(ctx, "base", "https://stoa.example")
			}
			return err
		}))
		look := func() {
			t.Helper()
			in := must.Get(storage.Inspect(t.Context(), c, "a"))(t)
			require.Equal(t, in.Newest, in.Version)
			require.Equal(t, storage.Inspection{There: true, Version: in.Newest, Newest: in.Newest, Base: "https://stoa.example", Sealed: []byte("sealed")}, in)
		}
		look()
		for setting, want := range map[string]error{"moved": storage.ErrMoved, "moving": storage.ErrMoving} {
			put := func(text string) {
				write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Settings().Put(ctx, setting, text) })
			}
			put("{}")
			require.ErrorIs(t, must.Err(storage.Inspect(t.Context(), c, "a")), want, "as serve refuses it")
			put("")
		}
		require.NoError(t, db.Close())
		files := func() []os.DirEntry { return must.Get(os.ReadDir(filepath.Dir(c.Path)))(t) }
		before := files()
		look()
		require.Equal(t, len(before), len(files()))
	})
}

// TestInspect_NoNode: what is no database of a node is said, and left alone.
func TestInspect_NoNode(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "stoa.db")
	require.False(t, must.Get(storage.Inspect(t.Context(), storage.Config{Path: file}, "a"))(t).There)
	require.NoFileExists(t, file)
	require.NoError(t, os.WriteFile(file, []byte("this is a text and no database, whatever its name says"), 0o600))
	require.Error(t, must.Err(storage.Inspect(t.Context(), storage.Config{Path: file}, "a")))
	require.Error(t, must.Err(storage.Inspect(t.Context(), storage.Config{URL: "postgres://stoa@127.0.0.1:1/none?connect_timeout=2"}, "a")))
}
