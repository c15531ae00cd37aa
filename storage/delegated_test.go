package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestDelegatedKeys: the newest keys of an identity stay, a key is one identity's beside another's, and all of one end together.
func TestDelegatedKeys(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		const mine, other = "eip155:1:0xaa:1", "eip155:1:0xaa:10"
		put := func(identity string, n int) {
			k := storage.DelegatedKey{Identity: identity, Thumbprint: fmt.Sprintf("key-%02d", n), Account: "eip155:1:0xbb", PublicJWK: "{}",
				EndsAt: start.Add(time.Hour)}
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return tx.DelegatedKeys().Put(ctx, k, protocol.MaxDelegatedKeys)
			})
		}
		has := func(identity string, n int) (ok bool) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				_, err := tx.DelegatedKeys().Find(ctx, identity, fmt.Sprintf("key-%02d", n))
				ok = err == nil
				return storage.IfMissing(err, nil)
			})
			return ok
		}
		put(other, 1)
		for n := range protocol.MaxDelegatedKeys + 2 {
			put(mine, n)
		}
		put(mine, 11) // again
		for n := range protocol.MaxDelegatedKeys + 2 {
			require.Equal(t, n > 1, has(mine, n), n)
		}
		require.True(t, has(other, 1))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, protocol.MaxDelegatedKeys, must.Get(tx.DelegatedKeys().Delete(ctx, mine))(t))
			return nil
		})
		require.False(t, has(mine, 5))
		require.True(t, has(other, 1))
	})
}
