package erc8004

import (
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// give puts an agent of the owner on the chain, with the event of its mint; a wallet of its own has an event too. Holds s.mu.
func (s *stub) give(agent int64, owner, wallet common.Address) {
	s.agents[big.NewInt(agent).String()] = &stubAgent{owner: owner, wallet: wallet}
	s.emit(topicTransfer, common.Hash{}, common.BytesToHash(owner[:]), agentTopic(agent))
	if wallet != (common.Address{}) {
		s.emit(topicMetadataSet, agentTopic(agent), topic("agentWallet"))
		s.logs[len(s.logs)-1]["data"] = hexutil.Encode(wallet[:])
	}
}

func TestHoldings(t *testing.T) {
	t.Parallel()
	mine, other := common.Address{1, 2, 3}, common.Address{4, 5, 6}
	s := newStub(t)
	s.do(func() {
		s.give(0, mine, common.Address{})
		s.give(1, mine, common.Address{})
		s.give(2, mine, common.Address{})
		s.give(3, other, mine)
		s.give(4, other, other)
		s.agents["1"].owner = other // sold: the event that gave it is still there
		s.head = 200_000            // so that most of the blocks are in slices without events
	})
	r := newTestReader(t, nil, s)
	search := func(edit func(*Search)) (Holdings, []string) {
		q := Search{ChainID: stubChain, Registry: stubRegistry, Account: mine}
		edit(&q)
		h := must.Get(r.Holdings(t.Context(), q))(t)
		var agents []string
		for _, id := range h.Agents {
			agents = append(agents, id.AgentID.String())
		}
		return h, agents
	}

	var blocks []uint64
	h, agents := search(func(q *Search) { q.Progress = func(b uint64, _ int) { blocks = append(blocks, b) } })
	require.Equal(t, []string{"2", "0"}, agents)
	require.Equal(t, 2, h.Owned)
	require.True(t, h.Complete)
	require.EqualValues(t, 200_000, blocks[0])
	require.True(t, slices.IsSortedFunc(blocks, func(a, b uint64) int { return cmp.Compare(b, a) }), "backwards: %v", blocks)
	require.GreaterOrEqual(t, len(blocks), 4, "in slices, which a slow endpoint makes smaller")

	h, agents = search(func(q *Search) { q.Wallets = true })
	require.Equal(t, []string{"3", "2", "0"}, agents)
	require.True(t, h.Complete)

	h, agents = search(func(q *Search) { q.From = 103 }) // the block of agent 2
	require.Equal(t, []string{"2"}, agents)
	require.False(t, h.Complete)
	require.Equal(t, uint64(103), h.From)

	h, agents = search(func(q *Search) { q.Max = 1 })
	require.Equal(t, []string{"2"}, agents)
	require.False(t, h.Complete)

	h, agents = search(func(q *Search) { q.Account = common.Address{7} })
	require.Empty(t, agents)
	require.True(t, h.Complete, "who owns none needs no search")
	require.Greater(t, h.From, h.To)

	// A provider that answers 1,000 blocks at most, and says so in its own words.
	s.do(func() {
		s.head = 2_000
		s.methods["eth_getLogs"] = func(p []json.RawMessage) (any, *stubError) {
			var q struct{ FromBlock, ToBlock hexutil.Uint64 }
			json.Unmarshal(p[0], &q)
			if q.ToBlock-q.FromBlock >= 1_000 {
				return nil, &stubError{Code: -32005, Message: "query exceeds max block range 1000"}
			}
			return s.getLogs(p)
		}
	})
	h, agents = search(func(q *Search) { q.Wallets = true })
	require.Equal(t, []string{"3", "2", "0"}, agents)
	require.True(t, h.Complete)
}
