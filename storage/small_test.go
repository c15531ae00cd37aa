package storage_test

import (
	"context"
	"math"
	"os"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

func TestReceipts(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		r := storage.Receipt{Caller: "c", Key: "k", Operation: "post_to_board", Digest: [32]byte{9}, Answer: []byte(`{"id":1}`), Expires: start.Add(time.Hour)}
		keep := func() error {
			return db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Requests().KeepReceipt(ctx, r) })
		}
		get := func() *storage.Receipt {
			return reads(t, db, func(ctx context.Context, tx *storage.Tx) (*storage.Receipt, error) {
				return tx.Requests().Receipt(ctx, "c", "k")
			})
		}
		require.Nil(t, get())
		require.NoError(t, keep())
		require.Equal(t, &r, get())
		require.ErrorIs(t, keep(), storage.ErrExists)
		advance(time.Hour)
		require.Nil(t, get(), "expired")
		r.Expires = start.Add(2 * time.Hour)
		require.NoError(t, keep())
		require.Equal(t, &r, get())
		advance(2 * time.Hour)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, 1, must.Get(tx.PruneExpired(ctx))(t))
			return nil
		})
	})
}

func TestSecret_OneForAll(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		values := make(chan string, 16)
		together(16, func(i int) {
			err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				v, err := tx.Settings().Secret(ctx, "pow", func() ([]byte, error) { return []byte{byte(i)}, nil })
				values <- string(v)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		first := <-values
		for range len(values) {
			require.Equal(t, first, <-values)
		}
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.ErrorIs(t, must.Err(tx.Settings().Secret(ctx, "other", nil)), storage.ErrNotFound)
			v, err := tx.Settings().Secret(ctx, "pow", nil)
			require.Equal(t, first, string(v))
			return err
		})
	})
}

func TestKeysAndTokens(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		key := storage.AgentKey{Handle: "asha", Thumbprint: "t1", PublicJWK: []byte("{}"), Sealed: []byte{1}, CreatedAt: start}
		put := func(k storage.AgentKey) error {
			return db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Keys().Put(ctx, k) })
		}
		require.NoError(t, put(key))
		key.Directory = []byte(`{"a":1}`)
		require.NoError(t, put(key))
		stolen := key
		stolen.Handle = "mallory"
		require.ErrorIs(t, put(stolen), storage.ErrExists)
		newer := storage.AgentKey{Handle: "asha", Thumbprint: "t2", PublicJWK: []byte("{}")}
		require.NoError(t, put(newer))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.ErrorIs(t, tx.Keys().Retire(ctx, "t9"), storage.ErrNotFound)
			return tx.Keys().Retire(ctx, "t2")
		})
		require.NoError(t, put(newer), "which does not take it into use again: see below")
		exp := start.Add(time.Hour)
		token := storage.Token{ID: protocol.NewID(protocol.TokenID, start), Hash: [32]byte{7}, Account: "acc", Handle: "asha", Name: "laptop",
			Scopes: []string{"board", "profile"}, CreatedAt: start, ExpiresAt: &exp}
		insert := func() error {
			return db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Tokens().Insert(ctx, token) })
		}
		require.NoError(t, insert())
		require.ErrorIs(t, insert(), storage.ErrExists)
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, &key, must.Get(tx.Keys().ByThumbprint(ctx, "t1"))(t))
			keys := must.Get(tx.Keys().OfProfile(ctx, "asha"))(t)
			require.Len(t, keys, 2)
			require.NotNil(t, keys[0].RetiredAt)
			require.Equal(t, &token, must.Get(tx.Tokens().ByHash(ctx, token.Hash))(t))
			require.ErrorIs(t, must.Err(tx.Tokens().ByHash(ctx, [32]byte{})), storage.ErrNotFound)
			return nil
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.NoError(t, tx.Tokens().Touch(ctx, token.ID))
			require.ErrorIs(t, tx.Tokens().Revoke(ctx, "tok_none"), storage.ErrNotFound)
			return tx.Tokens().Revoke(ctx, token.ID)
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			list, err := tx.Tokens().OfProfile(ctx, "asha")
			require.Len(t, list, 1)
			require.NotNil(t, list[0].RevokedAt)
			require.NotNil(t, list[0].LastUsedAt)
			return err
		})
	})
}

func TestIssuedAndAudit(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		for _, at := range []uint64{5, 9, 7} {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Keys().RaiseIssued(ctx, "id", "signer", at) })
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Error(t, tx.Keys().RaiseIssued(ctx, "id", "signer", math.MaxUint64))
			require.NoError(t, tx.Audit(ctx, "operator", "hide", "post_1", "spam"))
			return tx.Audit(ctx, "operator", "restore", "post_1", "")
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			at, err := tx.Keys().HighestIssued(ctx, "id", "signer")
			require.EqualValues(t, 9, at)
			require.NoError(t, err)
			at, err = tx.Keys().HighestIssued(ctx, "id", "other")
			require.Zero(t, at)
			require.NoError(t, err)
			for id, want := range map[string]bool{"id": true, "i": false, "id2": false} {
				require.Equal(t, want, must.Get(tx.Keys().KnownIdentity(ctx, id))(t), id)
			}
			page, err := tx.AuditLog().List(ctx, "", "", 1, "")
			require.Equal(t, "restore", page.Items[0].Action)
			require.NotNil(t, page.Next)
			return err
		})
	})
}

func TestMigrate_Twice(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		p := samplePost(start, 1)
		for n := range 3 {
			db := must.Get(storage.Open(t.Context(), c))(t)
			if n == 0 {
				store(t, db, p)
			}
			require.Equal(t, []string{p.ID}, walkBoard(t, db, protocol.BoardQuery{}))
			require.NoError(t, db.Close())
		}
	})
}

func TestBackup(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		p := samplePost(start, 1)
		store(t, db, p)
		path := t.TempDir() + "/copy ?#%.db"
		err := db.Backup(t.Context(), path)
		if db.Engine() == "postgres" {
			require.ErrorContains(t, err, "pg_dump")
			return
		}
		require.NoError(t, err)
		info := must.Get(os.Stat(path))(t)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.Error(t, db.Backup(t.Context(), path), "never over a file that is there")
		copied := storagetest.OpenConfig(t, storage.Config{Path: path})
		require.Equal(t, []string{p.ID}, walkBoard(t, copied, protocol.BoardQuery{Q: "rag"}))
		require.NoError(t, copied.Check(t.Context()))
	})
}

func TestCheck_FindsWhatIsWrong(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		p := samplePost(start, 1)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Posts().Insert(ctx, p); err != nil {
				return err
			}
			err := tx.Logs().Append(ctx, boardID, "create", protocol.NewID(protocol.PostID, start), nil)
			return err
		})
		err := db.Check(t.Context())
		require.ErrorContains(t, err, p.ID)
		require.ErrorContains(t, err, "log entry")
	})
}
