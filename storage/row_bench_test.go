package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"

	"github.com/stretchr/testify/require"
)

// BenchmarkRows is what the mapping of rows (row.go) costs where it runs with every request, and in a page.
func BenchmarkRows(b *testing.B) {
	onEach(b, func(b *testing.B, db *storage.DB) {
		var hash [32]byte
		require.NoError(b, db.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
			if _, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "Asha", Kind: protocol.Person}}); err != nil {
				return err
			}
			if err := tx.Keys().Put(ctx, storage.AgentKey{Handle: "asha", Thumbprint: "thumb", PublicJWK: []byte(`{"kty":"OKP"}`)}); err != nil {
				return err
			}
			if err := tx.Sessions().Insert(ctx, storage.Session{ID: "ses_1", Hash: hash, Account: "acc_1", ExpiresAt: tx.Now.Add(time.Hour)}); err != nil {
				return err
			}
			for i := range 100 {
				if err := tx.Enqueue(ctx, storage.Job{Kind: storage.MailJob, Args: fmt.Appendf(nil, "mail %d", i), RunAt: tx.Now.Add(time.Hour)}); err != nil {
					return err
				}
			}
			return nil
		}))
		for name, read := range map[string]func(ctx context.Context, tx *storage.Tx) error{
			"key":     func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Keys().ByThumbprint(ctx, "thumb")) },
			"session": func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Sessions().ByHash(ctx, hash)) },
			"profile": func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Profiles().ByHandle(ctx, "asha")) },
			"jobs": func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(tx.Jobs().List(ctx, storage.JobWaiting, "", 100, ""))
			},
		} {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				require.NoError(b, db.Read(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
					for b.Loop() {
						if err := read(ctx, tx); err != nil {
							return err
						}
					}
					return nil
				}))
			})
		}
	})
}
