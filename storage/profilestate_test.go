package storage_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

func TestProfiles_State(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		write := func(fn func(ctx context.Context, tx *storage.Tx) error) {
			t.Helper()
			require.NoError(t, db.Write(t.Context(), fn))
		}
		listed := func() (handles []string) {
			require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				found, err := tx.Profiles().List(ctx, protocol.AgentQuery{})
				for _, p := range found.Items {
					handles = append(handles, p.Draft.Handle)
				}
				return err
			}))
			return handles
		}
		for _, handle := range []string{"asha", "ravi"} {
			write(func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{State: protocol.ProfilePending,
					Draft: protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Person}}))
			})
		}
		require.Empty(t, listed(), "what waits for approval is in no list")
		write(func(ctx context.Context, tx *storage.Tx) error {
			require.ErrorIs(t, must.Err(tx.Profiles().ByHandle(ctx, "asha")), storage.ErrNotFound)
			p := must.Get(tx.Profiles().Own(ctx, "asha"))(t)
			require.False(t, p.Unlisted, "that it is hidden does not change what its owner wants")
			p.Draft.Headline = "Edited meanwhile"
			must.Get(tx.Profiles().Put(ctx, p))(t)
			waiting := must.Get(tx.Profiles().Hidden(ctx, protocol.ProfilePending, protocol.Paging{Limit: 1}))(t)
			require.Len(t, waiting.Items, 1)
			require.Len(t, must.Get(tx.Profiles().Hidden(ctx, protocol.ProfilePending, protocol.Paging{After: *waiting.Next}))(t).Items, 1)
			n, err := tx.Profiles().CountHidden(ctx, protocol.ProfilePending)
			require.Equal(t, 2, n)
			return err
		})
		require.Empty(t, listed(), "an edit does not show it")
		write(func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.Profiles().SetState(ctx, "asha", "", ""))
		})
		require.Equal(t, []string{"asha"}, listed())
		write(func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, "sells nothing", must.Get(tx.Profiles().SetState(ctx, "asha", protocol.ProfileSuspended, "sells nothing"))(t).StateReason)
			return nil
		})
		require.Empty(t, listed())
		write(func(ctx context.Context, tx *storage.Tx) error {
			like, err := tx.Handles().Like(ctx, "rav-1")
			require.NoError(t, err)
			require.Equal(t, "ravi", like, "a handle that looks like another one")
			require.NoError(t, tx.Profiles().Delete(ctx, "ravi"))
			like, err = tx.Handles().Like(ctx, "ravi")
			require.Equal(t, "ravi", like, "and one that was a profile's")
			_, err2 := tx.Handles().Like(ctx, "rani")
			require.ErrorIs(t, err2, storage.ErrNotFound)
			return err
		})
		require.NoError(t, db.Check(t.Context()))
	})
}
