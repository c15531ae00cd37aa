package storage_test

import (
	"context"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"

	"github.com/stretchr/testify/require"
)

// What a probe finds stays through whatever the owner writes, and a probe that
// fails does not forget when the agent was last seen.
func TestSetLiveness(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		put := func() {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "Asha", Kind: protocol.Person}}))
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

// NodeInfo has who was seen within a month and half a year, listed or not, and the replies that were made here and are shown.
func TestCensus_Activity(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for handle, days := range map[string]int{"asha": 29, "ravi": 31, "meera": 179, "old": 181} {
				p := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Person}, Unlisted: handle == "ravi"}
				must.Get(tx.Profiles().Put(ctx, p))(t)
				require.NoError(t, tx.Profiles().SetLiveness(ctx, handle, protocol.LivenessAlive, tx.Now.AddDate(0, 0, -days)))
			}
			return nil
		})
		root := samplePost(start, 1)
		store(t, db, root)
		for n, state := range []protocol.PostState{protocol.Visible, protocol.Visible, protocol.Hidden} {
			reply := samplePost(start.Add(time.Duration(n+1)*time.Second), int64(n+2))
			if n == 1 {
				reply = remotePost(reply.CreatedAt, "reply")
			}
			reply.InReplyTo, reply.ReplyTo, reply.State = &root.ID, root.URI, state
			store(t, db, reply)
		}
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, storage.Census{Listed: 3, Answering: 3, ActiveMonth: 1, ActiveHalfyear: 3, Replies: 1}, must.Get(tx.Site().Census(ctx))(t))
			return nil
		})
	})
}
