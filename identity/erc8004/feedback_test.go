package erc8004

import (
	"encoding/json"
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

var stubReputation = common.HexToAddress("0x8004BAa17C55a88189AE136b182e5fdA19dE9b63")

// review adds feedback of an agent in block n.
func (s *stub) review(t *testing.T, agent int64, n uint64, value int64) {
	t.Helper()
	data := must.Get(feedbackABI.Events["NewFeedback"].Inputs.NonIndexed().Pack(uint64(1), big.NewInt(value), uint8(0), Starred, "", "",
		"https://a.example/f", [32]byte{1}))(t)
	s.do(func() {
		s.logs = append(s.logs, map[string]any{"address": stubReputation, "data": hexutil.Bytes(data), "blockNumber": hexutil.Uint64(n), "blockHash": s.hash(n),
			"blockTimestamp": hexutil.Uint64(1000 + n), "transactionHash": common.BigToHash(big.NewInt(int64(n))), "transactionIndex": hexutil.Uint64(0),
			"logIndex": hexutil.Uint64(len(s.logs)), "topics": []common.Hash{topicFeedback, common.BigToHash(big.NewInt(agent)),
				common.HexToHash("0xc1"), crypto.Keccak256Hash([]byte(Starred))}})
	})
}

// receipts makes the stub answer for transactions with what it has as logs.
func (s *stub) receipts() {
	s.methods["eth_getTransactionReceipt"] = func(params []json.RawMessage) (any, *stubError) {
		var tx common.Hash
		json.Unmarshal(params[0], &tx)
		for _, l := range s.logs {
			if l["transactionHash"] == tx {
				return map[string]any{"status": "0x1", "blockNumber": l["blockNumber"], "blockHash": l["blockHash"], "transactionIndex": "0x0", "logs": []any{l}}, nil
			}
		}
		return nil, nil
	}
}

func feedbackReader(t *testing.T, stubs ...*stub) (*Reader, ID) {
	t.Helper()
	c := Chain{ID: stubChain, Registries: []Registry{{stubRegistry, stubReputation}}}
	for _, s := range stubs {
		s.receipts()
		c.RPC = append(c.RPC, s.URL)
	}
	r := must.Get(NewReader(Config{Chains: []Chain{c}}))(t)
	return r, ID{ChainID: stubChain, Registry: stubRegistry}
}

// TestFeedback_Confirm: what one endpoint makes up, another one does not have.
func TestFeedback_Confirm(t *testing.T) {
	t.Parallel()
	liar, honest := newStub(t), newStub(t)
	r, id := feedbackReader(t, liar, honest)
	for _, s := range []*stub{liar, honest} {
		s.review(t, 7, 10, 90)
	}
	liar.review(t, 7, 11, 100)
	page := must.Get(r.Feedback(t.Context(), id, []*big.Int{big.NewInt(7)}, Mark{}, 0))(t)
	require.Len(t, page.Events, 2)
	require.EqualValues(t, 96, page.Upto.Number, "final blocks only")
	require.EqualValues(t, 1010, page.Events[0].At.Unix())
	seen := must.Get(r.Confirm(t.Context(), id, page.Events))(t)
	require.Equal(t, []bool{true, false}, seen)
	changed := page.Events[0]
	changed.Value = big.NewInt(91)
	seen = must.Get(r.Confirm(t.Context(), id, append(page.Events[:0:0], changed)))(t)
	require.Equal(t, []bool{false}, seen)
	honest.Close()
	require.ErrorIs(t, must.Err(r.Confirm(t.Context(), id, page.Events)), ErrUnavailable, "the endpoint that it came from is not asked instead")

	alone, id := feedbackReader(t, liar)
	seen = must.Get(alone.Confirm(t.Context(), id, page.Events))(t)
	require.Equal(t, []bool{true, true}, seen, "nobody else can be asked")
}

// TestFeedback_Slices: a slice that is refused is halved, an event that was not asked for makes the
// endpoint wrong, and a mark whose block was replaced reads nothing.
func TestFeedback_Slices(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	r, id := feedbackReader(t, s)
	s.do(func() {
		s.methods["eth_getLogs"] = func(params []json.RawMessage) (any, *stubError) {
			var q struct{ FromBlock, ToBlock hexutil.Uint64 }
			json.Unmarshal(params[0], &q)
			if q.ToBlock-q.FromBlock >= 20 {
				return nil, &stubError{Code: -32005, Message: "block range is too wide"}
			}
			return s.getLogs(params)
		}
	})
	s.review(t, 7, 3, 90)
	s.review(t, 7, 60, 80)
	var got []string
	mark := Mark{}
	for range 20 {
		page := must.Get(r.Feedback(t.Context(), id, []*big.Int{big.NewInt(7)}, mark, 0))(t)
		for _, e := range page.Events {
			got = append(got, fmt.Sprint(e.Block, e.Value))
		}
		if page.Upto == mark {
			break
		}
		mark = page.Upto
	}
	require.Equal(t, []string{"3 90", "60 80"}, got)
	require.EqualValues(t, 96, mark.Number)
	s.do(func() { s.branch, s.fork = 1, 90 })
	require.True(t, must.Get(r.Feedback(t.Context(), id, []*big.Int{big.NewInt(7)}, mark, 0))(t).Replaced)
	s.do(func() {
		s.methods["eth_getLogs"] = func([]json.RawMessage) (any, *stubError) { return s.logs, nil }
	})
	_, err := r.Feedback(t.Context(), id, []*big.Int{big.NewInt(8)}, Mark{}, 0)
	require.ErrorIs(t, err, ErrUnavailable, "events of an agent that nobody asked about")
}
