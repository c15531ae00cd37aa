package storage_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// dump makes a dump of a database.
func dump(t *testing.T, db *storage.DB) (storage.DumpSums, []byte) {
	t.Helper()
	var b bytes.Buffer
	sums := must.Get(db.Dump(t.Context(), &b, storage.DumpHead{Program: "test", Base: "https://a.example"}, filepath.Join(t.TempDir(), "copy.db"), nil))(t)
	return sums, b.Bytes()
}

// try restores a dump on trial.
func try(t *testing.T, c storage.Config, raw []byte) (storage.Loaded, error) {
	if c.URL != "" {
		return storage.TryPostgres(t.Context(), bytes.NewReader(raw), c.URL, nil)
	}
	return storage.TryFile(t.Context(), bytes.NewReader(raw), filepath.Join(t.TempDir(), "try.db"), nil)
}

func TestDump(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		ctx := t.Context()
		db := storagetest.OpenConfig(t, c)
		odd := "tab\t, line\n, back\\slash, \\., é, \\N, 'quote'"
		require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			for i := range 2000 {
				if err := tx.Settings().Put(ctx, fmt.Sprintf("odd %d", i), odd+fmt.Sprint(i)); err != nil {
					return err
				}
			}
			return tx.Audit(ctx, "operator", odd, "x", "")
		}))
		sums, raw := dump(t, db)
		require.GreaterOrEqual(t, sums.Tables["secret"].Rows, int64(2000))
		found := must.Get(try(t, c, raw))(t)
		require.Equal(t, sums, found.Sums)
		require.Equal(t, "https://a.example", found.Head.Base)
		require.Equal(t, sums, must.Get(storage.ReadDump(ctx, bytes.NewReader(raw), nil))(t).Sums)

		t.Run("damaged", func(t *testing.T) { damagedDumps(t, c, raw) })
		t.Run("restored", func(t *testing.T) { restoredDump(t, c, db, sums, raw, odd) })
	})
}

func damagedDumps(t *testing.T, c storage.Config, raw []byte) {
	for _, part := range []int{0, 1, 300, 512, len(raw) / 3, len(raw) / 2, len(raw) - 3000} {
		require.ErrorIs(t, must.Err(try(t, c, raw[:part])), storage.ErrDump, "cut at %d", part)
		require.ErrorIs(t, must.Err(storage.ReadDump(t.Context(), bytes.NewReader(raw[:part]), nil)), storage.ErrDump, "cut at %d", part)
	}
	changed := bytes.Replace(raw, []byte("'quote'"), []byte("'quofe'"), 1)
	require.False(t, bytes.Equal(raw, changed), "the text is in the file")
	require.ErrorIs(t, must.Err(try(t, c, changed)), storage.ErrDump)
	require.ErrorIs(t, must.Err(storage.ReadDump(t.Context(), bytes.NewReader(changed), nil)), storage.ErrDump)
	_, err := try(t, c, edited(t, raw, "tables/secret/00009.copy", []byte("x")))
	require.ErrorIs(t, err, storage.ErrDump, "a member that does not belong there")
	_, err = try(t, c, edited(t, raw, "tables/pg_class/00001.copy", []byte("x")))
	require.ErrorIs(t, err, storage.ErrDump)
	require.NotContains(t, err.Error(), "SQLSTATE", "refused before the database is asked")
}

// edited adds a member before the sums.
func edited(t *testing.T, raw []byte, name string, content []byte) []byte {
	var b bytes.Buffer
	r, w := tar.NewReader(bytes.NewReader(raw)), tar.NewWriter(&b)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if h.Name == "sums.json" {
			require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(content))}))
			must.Get(w.Write(content))(t)
		}
		require.NoError(t, w.WriteHeader(h))
		must.Get(io.Copy(w, r))(t)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// restoredDump restores for real, over another database, and compares every row.
func restoredDump(t *testing.T, c storage.Config, db *storage.DB, sums storage.DumpSums, raw []byte, odd string) {
	storagetest.SkipPooled(t) // it is refused there, see TestPooler
	ctx := t.Context()
	set := func(db *storage.DB, value string) {
		require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Settings().Put(ctx, "after", value) }))
	}
	set(db, "x")
	if c.URL != "" {
		_, err := storage.LoadPostgres(ctx, bytes.NewReader(raw), c.URL, "stoa_old", nil)
		require.ErrorIs(t, err, storage.ErrInUse, "a live database is not replaced")
	}
	require.NoError(t, db.Close())
	if c.URL != "" {
		require.Eventually(t, func() bool { // the server ends sessions a moment after their connections
			_, err := storage.LoadPostgres(ctx, bytes.NewReader(raw), c.URL, "stoa_old", nil)
			return err == nil
		}, 5*time.Minute, 50*time.Millisecond)
		old := must.Get(storage.InSchema(c.URL, "stoa_old"))(t)
		was := storagetest.OpenConfig(t, storage.Config{URL: old})
		require.Equal(t, "x", setting(t, was, "after"), "what was there is kept")
		require.NoError(t, was.Close())
	} else {
		c.Path = filepath.Join(t.TempDir(), "restored.db")
		must.Get(storage.LoadFile(ctx, bytes.NewReader(raw), c.Path, nil))(t)
		require.Error(t, must.Err(storage.LoadFile(ctx, bytes.NewReader(raw), c.Path, nil)), "never over a file that is there")
	}
	back := storagetest.OpenConfig(t, c)
	require.Equal(t, odd+"7", setting(t, back, "odd 7"))
	require.Equal(t, "", setting(t, back, "after"))
	require.NoError(t, back.Check(ctx))
	again, _ := dump(t, back)
	require.Equal(t, sums.Tables["secret"], again.Tables["secret"])
	require.Equal(t, sums.Rows(), again.Rows())
	set(back, "y") // it is written to as before
}

func setting(t *testing.T, db *storage.DB, name string) (value string) {
	require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
		value, err = tx.Settings().Get(ctx, name)
		return err
	}))
	return value
}
