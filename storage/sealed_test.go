package storage_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// TestReseal_EveryColumn: a column that holds what is sealed is in the list of those that a rotation of the master key seals anew.
func TestReseal_EveryColumn(t *testing.T) {
	t.Parallel()
	listed := storage.SealedColumns()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		all := must.Get(storage.Columns(t.Context(), db))(t)
		for _, c := range all {
			if strings.Contains(c, "sealed") {
				require.Contains(t, listed, c)
			}
		}
		for _, c := range listed {
			require.Contains(t, all, c)
		}
	})
}

// TestReseal: everything is sealed anew for its purpose; what an interrupted run has done is left.
func TestReseal(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		const secrets = 450 // more than one transaction
		want := map[string]bool{}
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			put := func(name, purpose string) error {
				want[purpose] = true
				return tx.Settings().PutSecret(ctx, name, []byte("old "+purpose))
			}
			for n := range secrets {
				name := string(rune('a'+n%26)) + strings.Repeat("x", n/26)
				if err := put(name, storage.PurposeSecret(name)); err != nil {
					return err
				}
			}
			key := storage.PushKey{ThreadID: "thr_1", First: 3, ID: "p"}
			want[storage.PurposeRoom+storage.PurposePush(key)] = true
			certificate := storage.PurposeRoom + storage.PurposeCertificate("a.example")
			want[certificate] = true
			return errors.Join(tx.Settings().Put(ctx, "not sealed", "plain"),
				tx.Certificates().Put(ctx, storage.Certificate{Name: "a.example", Sealed: []byte("old " + certificate)}),
				tx.Certificates().Put(ctx, storage.Certificate{Name: "none.example", Sealed: []byte{}}),
				tx.Pushes().Put(ctx, &storage.StoredPush{PushKey: key, Lane: "l", PushDoc: storage.PushDoc{URL: "https://a.example/",
					Sealed: []byte("old " + storage.PurposeRoom + storage.PurposePush(key))}}))
		}))
		calls, stop := 0, 300
		again := func(purpose string, sealed []byte) ([]byte, error) {
			if calls++; calls == stop {
				return nil, errors.New("killed")
			}
			kind, of, _ := strings.Cut(string(sealed), " ")
			require.Equal(t, purpose, of)
			require.True(t, want[purpose], purpose)
			if kind == "new" {
				return nil, nil
			}
			return []byte("new " + purpose), nil
		}
		_, _, err := db.Reseal(t.Context(), again)
		require.ErrorContains(t, err, "secret: killed")
		stop = 0
		changed, _, err := db.Reseal(t.Context(), again)
		require.NoError(t, err)
		require.Less(t, changed, len(want), "the first transaction was done")
		changed, _, err = db.Reseal(t.Context(), again)
		require.NoError(t, err)
		require.Zero(t, changed)
		require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, "plain", must.Get(tx.Settings().Get(ctx, "not sealed"))(t))
			return nil
		}))
	})
}
