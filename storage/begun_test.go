package storage_test

import (
	"context"
	"fmt"
	"testing"

	"stoa/protocol"
	"stoa/storage"

	"github.com/stretchr/testify/require"
)

const soldAgent = "eip155:1:0x1:7"

// begins stores a thread that a chain identity began at a block under an owner.
func begins(ctx context.Context, tx *storage.Tx, id, agent, owner string, block int64) error {
	token := protocol.NewReadToken()
	return tx.Threads().Insert(ctx, &storage.StoredThread{ID: id, Handle: "asha", Kind: protocol.Question, State: protocol.ThreadOpen,
		Writer: protocol.AgentName(agent, owner), TokenHash: protocol.SecretHash(token), Callback: "https://agent.example/",
		Author: protocol.Author{Name: "Agent 7", ERC8004: &agent, Verified: true,
			Proof: protocol.AuthorProof{Level: protocol.ByChainKey, Owner: &owner, Block: &block}}})
}

// TestBegun_End: what a sold identity began ends a part at a time; what the view of the chain does not know of yet
// waits, and what the present owner and other identities began stays.
func TestBegun_End(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		const old, fresh = 120, 3
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for n := range old {
				require.NoError(t, begins(ctx, tx, fmt.Sprintf("thr_%03d", n), soldAgent, "0xa", 5))
			}
			for n := range fresh {
				require.NoError(t, begins(ctx, tx, fmt.Sprintf("thr_new%d", n), soldAgent, "0xa", 9))
			}
			require.NoError(t, begins(ctx, tx, "thr_buyer", soldAgent, "0xb", 5))
			return begins(ctx, tx, "thr_other", soldAgent+"7", "0xa", 5)
		})
		end := func(s storage.Sale) (ended, newer int) {
			t.Helper()
			write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				ended, newer, err = tx.Begun().End(ctx, s)
				return err
			})
			return ended, newer
		}
		names := func() []string {
			return reads(t, db, func(ctx context.Context, tx *storage.Tx) ([]string, error) {
				return tx.Begun().List(ctx, "eip155:1:0x1", "", 10)
			})
		}
		has := func(agent string) bool {
			return reads(t, db, func(ctx context.Context, tx *storage.Tx) (bool, error) { return tx.Begun().Has(ctx, agent) })
		}
		get := func(id string) *storage.StoredThread {
			return reads(t, db, func(ctx context.Context, tx *storage.Tx) (*storage.StoredThread, error) {
				return tx.Threads().ByID(ctx, id)
			})
		}
		require.Equal(t, []string{protocol.AgentName(soldAgent+"7", "0xa"), protocol.AgentName(soldAgent, "0xa"), protocol.AgentName(soldAgent, "0xb")}, names())
		before := get("thr_000")

		sale := storage.Sale{Agent: soldAgent, Owner: "0xb", Block: 7}
		all := 0
		for {
			ended, newer := end(sale)
			if ended == 0 {
				require.Equal(t, fresh, newer)
				break
			}
			require.LessOrEqual(t, ended, 100)
			all += ended
		}
		require.Equal(t, old, all)
		after := get("thr_000")
		require.Equal(t, protocol.ThreadClosed, after.State)
		require.Equal(t, "sale", after.ClosedBy)
		require.Empty(t, after.Callback)
		require.NotEqual(t, before.TokenHash, after.TokenHash)
		for _, id := range []string{"thr_new0", "thr_buyer", "thr_other"} {
			require.Equal(t, protocol.ThreadOpen, get(id).State, id)
		}

		sale.Block = 9
		ended, newer := end(sale)
		require.Equal(t, []int{fresh, 0}, []int{ended, newer}, "the next view knows of them")
		require.Equal(t, []string{protocol.AgentName(soldAgent+"7", "0xa"), protocol.AgentName(soldAgent, "0xb")}, names())
		require.True(t, has(soldAgent))
		sale.Owner = ""
		ended, _ = end(sale)
		require.Equal(t, 1, ended, "an identity that is gone has no owner")
		require.False(t, has(soldAgent))
		require.True(t, has(soldAgent+"7"))
	})
}
