package storage_test

import (
	"context"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

// What a probe finds stays through whatever the owner writes, and a probe that
// fails does not forget when the agent was last seen.
func TestSetLiveness(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		put := func() {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "Asha", Kind: protocol.Person}})
				return err
			})
		}
		set := func(alive protocol.Liveness, at time.Time) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return tx.Profiles().SetLiveness(ctx, "asha", alive, at)
			})
		}
		check := func(alive protocol.Liveness, at time.Time) {
			t.Helper()
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				p, err := tx.Profiles().ByHandle(ctx, "asha")
				require.Equal(t, alive, p.Alive)
				require.Equal(t, at, p.LastSeenAt)
				return err
			})
		}
		put()
		check(protocol.LivenessUnknown, time.Time{})
		set(protocol.LivenessAlive, start)
		check(protocol.LivenessAlive, start)
		put()
		check(protocol.LivenessAlive, start)
		set(protocol.LivenessDead, time.Time{})
		check(protocol.LivenessDead, start)
		set(protocol.LivenessAlive, start.Add(-time.Hour))
		check(protocol.LivenessAlive, start)
		err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Profiles().SetLiveness(ctx, "nobody", protocol.LivenessAlive, start)
		})
		require.ErrorIs(t, err, storage.ErrNotFound)
	})
}
