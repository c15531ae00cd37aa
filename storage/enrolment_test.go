package storage_test

import (
	"context"
	"testing"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"

	"github.com/stretchr/testify/require"
)

const (
	token7 = "eip155:1:0xabc:7"
	token8 = "eip155:1:0xabc:8"
)

// An enrolment ends with the keys that came by it and leaves only how
// it ended; the identity is then free for any profile, and so is its key.
func TestEnrolment(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		for _, handle := range []string{"asha", "bina"} {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Person}})
				if err != nil {
					return err
				}
				return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: handle, Webhook: "https://agent.example/notices"})
			})
		}
		enrol := func(handle, erc8004, key, owner, wallet string) error {
			return db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				return tx.Enrolments().Begin(ctx, "operator", storage.Enrolment{Handle: handle, ERC8004: erc8004, KeyID: key, Owner: owner, Wallet: wallet, Block: 9,
					BlockHash: "0x9"}, []byte(`{}`))
			})
		}
		get := func(erc8004 string) storage.Enrolment {
			return reads(t, db, func(ctx context.Context, tx *storage.Tx) (storage.Enrolment, error) {
				return tx.Enrolments().ByIdentity(ctx, erc8004)
			})
		}
		end := func(e storage.Enrolment, why protocol.EnrolmentEnd) error {
			return db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Enrolments().End(ctx, "node", e, why) })
		}
		key := func(thumbprint string) *storage.AgentKey {
			return reads(t, db, func(ctx context.Context, tx *storage.Tx) (*storage.AgentKey, error) {
				return tx.Keys().ByThumbprint(ctx, thumbprint)
			})
		}
		put := func(k storage.AgentKey) {
			k.PublicJWK = []byte(`{}`)
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Keys().Put(ctx, k) })
		}
		put(storage.AgentKey{Handle: "asha", Thumbprint: "own"})

		require.NoError(t, enrol("asha", token7, "k1", "0xa", "0xa"))
		put(storage.AgentKey{Handle: "asha", Thumbprint: "added", Identity: token7})
		e := get(token7)
		require.Equal(t, "asha", e.Handle)
		require.Equal(t, "k1", e.KeyID)
		require.Equal(t, uint64(9), e.Block)
		require.True(t, e.SameControl("0xa", "0xa"))
		require.False(t, e.SameControl("0xa", ""))
		require.False(t, storage.Enrolment{}.SameControl("", ""), "nobody has what nobody was named for")
		require.True(t, key("k1").OnChain)
		require.ErrorIs(t, enrol("bina", token7, "k2", "0xa", "0xa"), storage.ErrExists, "the owner has it with another profile")
		require.ErrorIs(t, enrol("bina", token8, "k1", "0xa", "0xa"), storage.ErrKeyTaken)

		// What was found out about another enrolment ends nothing.
		stale := e
		stale.Owner = "0xold"
		require.ErrorIs(t, end(stale, protocol.EndedByOwner), storage.ErrNotFound)
		require.Equal(t, e, get(token7))

		require.NoError(t, end(e, protocol.EndedByOwner))
		require.ErrorIs(t, end(e, protocol.EndedByOwner), storage.ErrNotFound, "once")
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			p := must.Get(tx.Profiles().ByHandle(ctx, "asha"))(t)
			require.Empty(t, p.ERC8004+p.KeyHash+p.IdentityNote)
			last, why, at, err := tx.Enrolments().Last(ctx, "asha")
			require.NoError(t, err)
			require.Equal(t, token7, last.ERC8004)
			require.Equal(t, protocol.EndedByOwner, why)
			require.Equal(t, tx.Now.IsZero(), at.IsZero())
			require.ErrorIs(t, must.Err(tx.Enrolments().ByIdentity(ctx, token7)), storage.ErrNotFound)
			audit := must.Get(tx.AuditLog().List(ctx, "", "", 1, ""))(t)
			require.Equal(t, "identity end", audit.Items[0].Action)
			require.Contains(t, audit.Items[0].Detail, "a new owner")
			notices := must.Get(tx.Jobs().List(ctx, storage.JobWaiting, storage.NoticeJob, 10, ""))(t)
			require.Len(t, notices.Items, 1)
			require.Contains(t, string(notices.Items[0].Args), `"identity.ended"`)
			return nil
		})
		for _, k := range []string{"k1", "added"} {
			require.NotNil(t, key(k).RetiredAt, k)
		}
		require.Nil(t, key("own").RetiredAt, "a key of the profile's own stays")
		require.ErrorIs(t, enrol("bina", token8, "k1", "0xa", "0xa"), storage.ErrKeyTaken, "it ended with another identity")
		require.ErrorIs(t, enrol("asha", token8, "k1", "0xa", "0xa"), storage.ErrKeyTaken, "also for the same profile")

		// Enrolled again, with the same key, by another profile: only the key that the
		// chain vouches for comes back.
		require.NoError(t, enrol("bina", token7, "k1", "0xa", "0xa"))
		require.Equal(t, "bina", key("k1").Handle)
		require.Nil(t, key("k1").RetiredAt)
		require.NotNil(t, key("added").RetiredAt)

		// Another owner takes it over although nobody saw yet that the first ended.
		require.NoError(t, enrol("asha", token7, "k3", "0xb", ""))
		require.NotNil(t, key("k1").RetiredAt)
		require.Equal(t, "asha", get(token7).Handle)

		// What was found out about an enrolment that ended since ends no newer one, whatever they have in common.
		newer := get(token7)
		for name, change := range map[string]func(*storage.Enrolment){
			"profile": func(e *storage.Enrolment) { e.Handle = "bina" }, "key": func(e *storage.Enrolment) { e.KeyID = "k1" },
			"owner": func(e *storage.Enrolment) { e.Owner = "0xa" }, "wallet": func(e *storage.Enrolment) { e.Wallet = "0xa" },
			"block": func(e *storage.Enrolment) { e.Block-- },
		} {
			older := newer
			change(&older)
			require.ErrorIs(t, end(older, protocol.EndedByOwner), storage.ErrNotFound, name)
			require.Equal(t, newer, get(token7), name)
		}

		// The record names other keys: the first that can be the profile's speaks.
		follow := func(keys ...string) error {
			var named []storage.EnrolledKey
			for _, k := range keys {
				named = append(named, storage.EnrolledKey{Thumbprint: k, JWK: []byte(`{}`)})
			}
			e := get(token7)
			return db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Enrolments().FollowRecord(ctx, e, named) })
		}
		put(storage.AgentKey{Handle: "bina", Thumbprint: "binas"})
		require.NoError(t, follow("binas", "k4", "k3"))
		require.Equal(t, "k4", get(token7).KeyID)
		require.Nil(t, key("k3").RetiredAt)
		require.NoError(t, follow("k4"))
		require.NotNil(t, key("k3").RetiredAt)
		require.NoError(t, follow("k3", "k4"))
		require.Nil(t, key("k3").RetiredAt, "the record names it again")
		require.Equal(t, "k3", get(token7).KeyID)
		require.ErrorIs(t, follow("binas"), storage.ErrKeyTaken)

		// A key that its owner retired is retired for good, and takes the enrolment along.
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Keys().Retire(ctx, "k4") })
		require.Equal(t, "k3", get(token7).KeyID)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Keys().Retire(ctx, "k3") })
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.ErrorIs(t, must.Err(tx.Enrolments().ByIdentity(ctx, token7)), storage.ErrNotFound)
			return nil
		})
		require.ErrorIs(t, enrol("asha", token7, "k3", "0xb", ""), storage.ErrKeyTaken)

		// The key by which a profile is enrolled ends with it, also one that was registered later.
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Enrolments().Begin(ctx, "operator", storage.Enrolment{Handle: "bina", ERC8004: token8, KeyID: "k7", Owner: "0xc"}, nil)
		})
		put(storage.AgentKey{Handle: "bina", Thumbprint: "k7"})
		require.NoError(t, end(get(token8), protocol.EndedByOwner))
		require.NotNil(t, key("k7").RetiredAt)

		// A profile has one identity; another takes its place.
		require.NoError(t, enrol("asha", token7, "k5", "0xb", ""))
		require.NoError(t, enrol("asha", token8, "k6", "0xb", ""))
		require.NotNil(t, key("k5").RetiredAt)
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.ErrorIs(t, must.Err(tx.Enrolments().ByIdentity(ctx, token7)), storage.ErrNotFound)
			some, err := tx.Enrolments().List(ctx, "eip155:1:0xabc", "", 10)
			require.Len(t, some, 1)
			none, err2 := tx.Enrolments().List(ctx, "eip155:1:0xab", "", 10)
			require.Empty(t, none)
			require.NoError(t, err2)
			return err
		})
	})
}
