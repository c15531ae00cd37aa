package storage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// TestGeneration: what is made of credentials is good until they change, for this process until the
// change is answered, for another for two seconds; other writes are none of its business.
func TestGeneration(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		one, two := storagetest.OpenConfig(t, c), storagetest.OpenConfig(t, c)
		at := func(db *storage.DB, group int) (n uint64) {
			for valid := false; !valid; { // a look that takes two seconds is not
				n, valid = db.Generation(t.Context(), group)
			}
			return n
		}
		var there [3]uint64
		for group := range there {
			there[group] = at(two, group)
		}
		same := func(group int, change func(ctx context.Context, tx *storage.Tx) error) {
			t.Helper()
			before := at(one, group)
			write(t, one, change)
			require.Equal(t, before, at(one, group))
		}
		other := func(group int, change func(ctx context.Context, tx *storage.Tx) error) {
			t.Helper()
			before := at(one, group)
			write(t, one, change)
			require.Greater(t, at(one, group), before, "at once where it was changed")
		}
		profile := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "Asha", Kind: protocol.Person}}
		key := storage.AgentKey{Handle: "asha", Thumbprint: "t1", PublicJWK: []byte(`{}`)}
		other(storage.GroupKeys, func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Profiles().Put(ctx, profile)) })
		other(storage.GroupKeys, func(ctx context.Context, tx *storage.Tx) error { return tx.Keys().Put(ctx, key) })
		write(t, one, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Accounts().Insert(ctx, storage.Account{ID: "acc_1", Name: "A", Role: protocol.RoleOwner})
		})
		other(storage.GroupAccounts, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Accounts().LinkProfile(ctx, "acc_1", "asha")
		})
		same(storage.GroupKeys, func(ctx context.Context, tx *storage.Tx) error { return tx.Accounts().Rename(ctx, "acc_1", "B") })
		session := storage.Session{ID: "ses_1", Account: "acc_1", ExpiresAt: time.Now().Add(time.Hour)}
		same(storage.GroupAccounts, func(ctx context.Context, tx *storage.Tx) error { return tx.Sessions().Insert(ctx, session) })
		same(storage.GroupAccounts, func(ctx context.Context, tx *storage.Tx) error { return tx.Sessions().Touch(ctx, "ses_1") })
		same(storage.GroupKeys, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Profiles().SetLiveness(ctx, "asha", protocol.LivenessAlive, tx.Now)
		})
		same(storage.GroupKeys, func(ctx context.Context, tx *storage.Tx) error { return tx.Posts().Insert(ctx, samplePost(start, 1)) })
		other(storage.GroupAccounts, func(ctx context.Context, tx *storage.Tx) error { return tx.Sessions().End(ctx, "acc_1", "ses_1") })
		other(storage.GroupKeys, func(ctx context.Context, tx *storage.Tx) error { return tx.Keys().Retire(ctx, "t1") })
		other(storage.GroupRules, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Blocks().Put(ctx, block(protocol.BlockHost, "evil.example", tx.Now, nil))
		})
		other(storage.GroupRules, func(ctx context.Context, tx *storage.Tx) error { return tx.Settings().Put(ctx, "limits", "{}") })
		other(storage.GroupKeys, func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "asha") })
		for group, before := range there {
			require.Eventually(t, func() bool { return at(two, group) > before }, time.Minute, 5*time.Millisecond, "soon at another process")
		}

		before := at(one, storage.GroupKeys)
		refused := errors.New("refused")
		errs := storage.Together(t.Context(), one,
			func(ctx context.Context, tx *storage.Tx) error { return tx.Posts().Insert(ctx, samplePost(start, 2)) },
			func(ctx context.Context, tx *storage.Tx) error {
				_, err := tx.Profiles().Put(ctx, profile)
				return errors.Join(refused, err)
			})
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], refused)
		require.Equal(t, before, at(one, storage.GroupKeys), "what is undone has changed nothing")
	})
}
