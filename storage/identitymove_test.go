package storage_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

func TestMoves(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		const agent, other = "eip155:1:0xaa:1", "eip155:10:0xaa:1"
		note := func(agent, owner string, block int64, exact bool) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return tx.Moves().Note(ctx, storage.IdentityMove{Agent: agent, Owner: owner, Former: "0xf", Block: block, Exact: exact})
			})
		}
		last := func(agent string) storage.IdentityMove {
			return reads(t, db, func(ctx context.Context, tx *storage.Tx) (storage.IdentityMove, error) {
				return tx.Moves().Last(ctx, agent)
			})
		}
		require.Zero(t, last(agent))
		for _, c := range []struct {
			owner string
			block int64
			exact bool
			want  string // owner after it
			at    int64
		}{
			{"0xb", 20, false, "0xb", 20},
			{"0xb", 30, false, "0xb", 20}, // still
			{"0xb", 18, true, "0xb", 18},  // by this transfer
			{"0xb", 40, false, "0xb", 18},
			{"0xa", 17, true, "0xb", 18},  // read late
			{"0xa", 17, false, "0xb", 18}, // seen late
			{"0xc", 50, true, "0xc", 50},
			{"0xd", 50, true, "0xd", 50}, // in the same block
			{"0xd", 50, true, "0xd", 50},
			{"0xc", 50, false, "0xd", 50},
			{"", 60, false, "", 60},
		} {
			note(agent, c.owner, c.block, c.exact)
			m := last(agent)
			require.Equal(t, c.want, m.Owner, c)
			require.Equal(t, c.at, m.Block, c)
			require.False(t, m.At.IsZero())
		}
		note(other, "0xb", 70, true)
		forget := func(after uint64) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Moves().Forget(ctx, 1, after) })
		}
		forget(60)
		require.NotZero(t, last(agent))
		forget(59)
		require.Zero(t, last(agent))
		require.NotZero(t, last(other), "of another chain, whose number begins alike")
	})
}

// TestEvict_Moves keeps the changes of identities that profiles have longest.
func TestEvict_Moves(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		agents := []string{"eip155:1:0xaa:1", "eip155:1:0xaa:2", "eip155:1:0xaa:3", "eip155:1:0xaa:4"}
		for i, agent := range agents {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				if i == 0 {
					must.Get(tx.Profiles().Put(ctx, &storage.StoredProfile{
						Draft: protocol.ProfileDraft{Handle: "asha", Name: "Asha", Kind: protocol.Person}, ERC8004: agent}))(t)
				}
				return tx.Moves().Note(ctx, storage.IdentityMove{Agent: agent, Owner: "0xb", Block: 1})
			})
		}
		require.Positive(t, evict(t, db, storage.StockMoves, storage.Cap{Rows: 1, Bytes: 1 << 20}))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i, agent := range agents {
				require.Equal(t, i == 0, must.Get(tx.Moves().Last(ctx, agent))(t).Agent != "", agent)
			}
			return nil
		})
	})
}
