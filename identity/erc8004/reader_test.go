package erc8004

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func askKey(t testing.TB, r *testReader) error {
	t.Helper()
	_, err := r.Authority(t.Context(), mustID(t, vectorID), vectorThumb)
	return err
}

func TestAuthority_Cached(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.setAgent(t)
	r := newTestReader(t, nil, s)
	g := must.Get(r.Authority(t.Context(), mustID(t, vectorID), vectorThumb))(t)
	require.Equal(t, uint64(100), g.Block)
	require.Equal(t, s.hash(100), g.BlockHash)
	n := s.count("eth_call")
	require.Equal(t, 5, n, "one batch")
	require.NoError(t, askKey(t, r))
	require.Equal(t, n, s.count("eth_call"))
	r.pass(61 * time.Second)
	require.NoError(t, askKey(t, r))
	require.Equal(t, 2*n, s.count("eth_call"), "a minute without a poller")
}

func TestAuthority_EndpointFaults(t *testing.T) {
	t.Parallel()
	fail := func(f func(w http.ResponseWriter, body []byte)) func(*stub) {
		return func(s *stub) {
			s.answer = func(w http.ResponseWriter, body []byte) bool { f(w, body); return true }
		}
	}
	broken := func(code int, text string) func(*stub) {
		return func(s *stub) {
			s.methods["eth_call"] = func([]json.RawMessage) (any, *stubError) { return nil, &stubError{Code: code, Message: text} }
		}
	}
	for name, fault := range map[string]func(*stub){
		"429":      fail(func(w http.ResponseWriter, _ []byte) { w.WriteHeader(429) }),
		"not JSON": fail(func(w http.ResponseWriter, _ []byte) { fmt.Fprint(w, "<html>") }),
		"one error for the batch": fail(func(w http.ResponseWriter, _ []byte) {
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}`)
		}),
		"redirect": fail(func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(302)
		}),
		"body of 5 MiB": fail(func(w http.ResponseWriter, _ []byte) { w.Write(bytes.Repeat([]byte{' '}, 5<<20)); fmt.Fprint(w, "[]") }),
		"empty batch":   fail(func(w http.ResponseWriter, _ []byte) { fmt.Fprint(w, "[]") }),
		"stuck head":    func(s *stub) { s.headTime = time.Now().Add(-2 * time.Hour) },
		"other chain":   func(s *stub) { s.chain = 1 },
		"no contract":   func(s *stub) { s.methods["eth_call"] = func([]json.RawMessage) (any, *stubError) { return "0x", nil } },
		"short output": func(s *stub) {
			s.methods["eth_call"] = func([]json.RawMessage) (any, *stubError) { return "0x01", nil }
		},
		"pruned state":        broken(-32000, "missing trie node"),
		"revert without data": broken(-32000, "execution reverted"),
		"block never known":   broken(-32001, "Resource not found"),
		"refuses every block": broken(-32602, "invalid argument 1"),
		"foreign revert of ownerOf": func(s *stub) {
			s.methods["eth_call"] = func([]json.RawMessage) (any, *stubError) {
				return nil, &stubError{3, "execution reverted", "0x08c379a0"}
			}
		},
		"no finality": func(s *stub) {
			s.methods["eth_getBlockByNumber"] = func(p []json.RawMessage) (any, *stubError) {
				if strings.Contains(string(p[0]), "finalized") {
					return nil, nil
				}
				return s.block(p)
			}
		},
		"event of a stranger": func(s *stub) {
			s.methods["eth_getLogs"] = func([]json.RawMessage) (any, *stubError) {
				return []any{map[string]any{"address": common.Address{1}, "topics": []common.Hash{topicTransfer}, "blockNumber": "0x1"}}, nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad, good := newStub(t), newStub(t)
			bad.setAgent(t)
			good.setAgent(t)
			bad.do(func() { fault(bad) })
			require.ErrorIs(t, askKey(t, newTestReader(t, nil, bad)), ErrUnavailable)
			require.NoError(t, askKey(t, newTestReader(t, nil, bad, good)), "the second endpoint answers")
		})
	}
}

func TestAuthority_MissingElement(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.setAgent(t)
	r := newTestReader(t, nil, s)
	s.do(func() {
		s.answer = func(w http.ResponseWriter, body []byte) bool {
			if !bytes.Contains(body, []byte("eth_call")) {
				return false
			}
			var reqs []struct{ ID json.RawMessage }
			json.Unmarshal(body, &reqs)
			fmt.Fprintf(w, `[{"jsonrpc":"2.0","id":%s,"result":"0x7a69"}]`, reqs[0].ID)
			return true
		}
	})
	require.ErrorIs(t, askKey(t, r), ErrUnavailable)
}

func TestAuthority_NotRegistered(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	r := newTestReader(t, nil, s)
	require.ErrorIs(t, askKey(t, r), ErrNotRegistered)
	s.do(func() { s.setAgent(t) })
	require.ErrorIs(t, askKey(t, r), ErrNotRegistered)
	r.pass(31 * time.Second)
	require.NoError(t, askKey(t, r), "negative answers last 30 seconds")
}

func TestAuthority_Lists(t *testing.T) {
	t.Parallel()
	r := newTestReader(t, nil, newStub(t))
	_, err := r.Authority(t.Context(), mustID(t, "eip155:1:0x5fbdb2315678afecb367f032d93f642f64180aa3:1"), vectorThumb)
	require.ErrorIs(t, err, ErrChainNotSupported)
	_, err = r.Authority(t.Context(), mustID(t, "eip155:31337:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:1"), vectorThumb)
	require.ErrorIs(t, err, ErrRegistryNotAllowed)
}

func TestAuthority_BlockByNumber(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.setAgent(t)
	s.methods["eth_call"] = func(p []json.RawMessage) (any, *stubError) {
		if p[1][0] == '{' {
			return nil, &stubError{Code: -32602, Message: "invalid block parameter"}
		}
		return s.call(p)
	}
	require.NoError(t, askKey(t, newTestReader(t, nil, s)))
}

func TestAuthority_OrphanedHash(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.setAgent(t)
	r := newTestReader(t, nil, s)
	r.poll(t)
	s.do(func() { s.branch, s.fork, s.head = 1, 98, 101 })
	g := must.Get(r.Authority(t.Context(), mustID(t, vectorID), vectorThumb))(t)
	require.Equal(t, uint64(101), g.Block, "read again at the new head")
}

func TestAuthority_TransferWithoutEvent(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	a := s.setAgent(t)
	r := newTestReader(t, nil, s)
	require.NoError(t, askKey(t, r))
	s.do(func() { a.owner = common.Address{9} })
	require.NoError(t, askKey(t, r), "from the cache, for a minute at most")
	r.pass(61 * time.Second)
	require.ErrorIs(t, askKey(t, r), ErrKeyUnknown)
}

func TestPoll_EventDropsAgent(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	a := s.setAgent(t)
	r := newTestReader(t, nil, s)
	r.poll(t)
	require.NoError(t, askKey(t, r))
	s.do(func() {
		a.owner = common.Address{9}
		s.emit(topicTransfer, common.Hash{}, common.Hash{}, agentTopic(1))
	})
	r.poll(t)
	require.ErrorIs(t, askKey(t, r), ErrKeyUnknown)
	n := s.count("eth_call")
	s.do(func() { s.emit(topicMetadataSet, agentTopic(2), authorityKeys[0]) })
	r.poll(t)
	require.ErrorIs(t, askKey(t, r), ErrKeyUnknown)
	require.Equal(t, n, s.count("eth_call"), "another agent's event")
}

func TestPoll_GrantWaitsForFinality(t *testing.T) {
	t.Parallel()
	for _, polled := range []bool{true, false} {
		s := newStub(t)
		s.setAgent(t)
		s.do(func() {
			s.past(true)
			s.emit(topicMetadataSet, agentTopic(1), authorityKeys[0]) // block 101
		})
		r := newTestReader(t, nil, s)
		look := func() {
			r.pass(5 * time.Second)
			if polled {
				r.poll(t)
			}
		}
		look()
		require.ErrorIs(t, askKey(t, r), ErrPendingFinality)
		s.do(func() { s.head, s.final = 140, 100 })
		look()
		require.ErrorIs(t, askKey(t, r), ErrPendingFinality)
		s.do(func() { s.final = 101 })
		look()
		require.NoError(t, askKey(t, r))
		// Other metadata does not change authority.
		s.do(func() { s.emit(topicMetadataSet, agentTopic(1), topic("other")) })
		r.pass(61 * time.Second)
		look()
		require.NoError(t, askKey(t, r))
	}
}

func TestPoll_RotationKeepsOldKey(t *testing.T) {
	t.Parallel()
	for _, polled := range []bool{true, false} {
		s := newStub(t)
		a := s.setAgent(t)
		r := newTestReader(t, nil, s)
		look := func() {
			r.pass(61 * time.Second)
			if polled {
				r.poll(t)
			}
		}
		look()
		require.NoError(t, askKey(t, r))
		next := seedKey(t, "next")
		rec := must.Get(SignRecord(mustID(t, vectorID), []Key{next, vectorKey(t)}, time.Unix(1763640100, 0), walletKey()))(t)
		s.do(func() {
			s.head, s.final = 200, 190
			s.past(false)
			a.meta[MetadataKeys] = rec.Encode()
			s.emit(topicMetadataSet, agentTopic(1), authorityKeys[0])
		})
		look()
		require.NoError(t, askKey(t, r), "in the final state and in the new one")
		require.ErrorIs(t, must.Err(r.Authority(t.Context(), mustID(t, vectorID), next.Thumbprint)), ErrPendingFinality)
		s.do(func() { s.head, s.final = 240, 230 })
		look()
		must.Get(r.Authority(t.Context(), mustID(t, vectorID), next.Thumbprint))(t)
		// From now on the older record is refused, though it is the signer's own.
		s.do(func() { a.meta[MetadataKeys] = unhex(t, vectorRecord) })
		r.pass(6 * time.Minute)
		look()
		require.ErrorIs(t, askKey(t, r), ErrKeyUnknown)
	}
}

// A reader that has just started asks the final state too: a new wallet of the same owner does not
// interrupt a key that was there before, and gives none that was not.
func TestAuthority_WalletChangedBeforeStart(t *testing.T) {
	t.Parallel()
	change := func(edit func(s *stub, a *stubAgent)) (*testReader, *stub) {
		s := newStub(t)
		a := s.setAgent(t)
		s.do(func() {
			s.past(false)
			edit(s, a)
			s.emit(topicMetadataSet, agentTopic(1), topic("agentWallet"))
		})
		return newTestReader(t, nil, s), s
	}
	wallet := func(_ *stub, a *stubAgent) { a.wallet = common.Address{9} }
	r, s := change(wallet)
	require.NoError(t, askKey(t, r))
	require.Equal(t, 10, s.count("eth_call"), "both states, each in one batch")
	require.NoError(t, askKey(t, r))
	require.Equal(t, 10, s.count("eth_call"), "and they are kept")

	r, _ = change(func(s *stub, a *stubAgent) { wallet(s, a); s.before["1"].meta = nil })
	require.ErrorIs(t, askKey(t, r), ErrPendingFinality, "the key is new")
	r, _ = change(func(s *stub, a *stubAgent) { wallet(s, a); s.before["1"].owner = common.Address{8} })
	require.ErrorIs(t, askKey(t, r), ErrPendingFinality, "of another owner")
	r, _ = change(func(s *stub, a *stubAgent) { wallet(s, a); s.keeps = 2 })
	require.ErrorIs(t, askKey(t, r), ErrPendingFinality, "the endpoint has no state of the final block")
	r, _ = change(func(s *stub, a *stubAgent) { wallet(s, a); a.meta = nil })
	require.ErrorIs(t, askKey(t, r), ErrKeyUnknown, "the final state alone grants nothing")
}

// The kept final state must not survive a revocation that nobody asked about.
func TestPoll_RevokedAndGrantedAgain(t *testing.T) {
	t.Parallel()
	for _, polled := range []bool{true, false} {
		s := newStub(t)
		s.setAgent(t)
		r := newTestReader(t, nil, s)
		look := func() {
			r.pass(61 * time.Second)
			if polled {
				r.poll(t)
			}
		}
		look()
		require.NoError(t, askKey(t, r))                                           // final state at 96
		s.do(func() { s.emit(topicMetadataSet, agentTopic(1), authorityKeys[0]) }) // 101: revoked, becomes final
		look()
		s.do(func() { s.head, s.final = 140, 130 })
		look()
		s.do(func() {
			s.past(true)
			s.emit(topicMetadataSet, agentTopic(1), authorityKeys[0]) // 141: granted again
		})
		look()
		require.ErrorIs(t, askKey(t, r), ErrPendingFinality)
	}
}

func TestPoll_ReorgAndUpgradeVoidTheCache(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	a := s.setAgent(t)
	r := newTestReader(t, nil, s)
	r.poll(t)
	require.NoError(t, askKey(t, r))
	s.do(func() { s.branch, s.fork, s.head = 1, 98, 101; a.owner = common.Address{9} })
	r.poll(t)
	require.ErrorIs(t, askKey(t, r), ErrKeyUnknown)
	s.do(func() { s.setAgent(t); s.emit(topicUpgraded, common.Hash{}) })
	r.poll(t)
	require.NoError(t, askKey(t, r))
}

func TestPoll_SlicesShrink(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.head, s.final = 5000, 100
	s.methods["eth_getLogs"] = func(p []json.RawMessage) (any, *stubError) {
		var q struct{ FromBlock, ToBlock hexutil.Uint64 }
		json.Unmarshal(p[0], &q)
		if q.FromBlock > q.ToBlock {
			return nil, &stubError{Code: -32602, Message: "invalid block range params"}
		}
		if q.ToBlock-q.FromBlock >= 200 {
			return nil, &stubError{Code: -32005, Message: "query exceeds max block range 200"}
		}
		return s.getLogs(p)
	}
	r := newTestReader(t, nil, s)
	r.poll(t)
	r.poll(t) // no new block: no request for events
	require.Equal(t, uint64(125), r.chains[stubChain].logRange.Load())
}

func TestPoll_StopsBeingTrusted(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.setAgent(t)
	r := newTestReader(t, nil, s)
	r.poll(t)
	require.NoError(t, askKey(t, r))
	s.do(func() { s.answer = func(w http.ResponseWriter, _ []byte) bool { w.WriteHeader(500); return true } })
	r.pass(30 * time.Second)
	require.NoError(t, askKey(t, r))
	r.pass(31 * time.Second)
	require.ErrorIs(t, askKey(t, r), ErrUnavailable, "never as before")
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	bad, good := newStub(t), newStub(t)
	good.setAgent(t)
	bad.answer = func(w http.ResponseWriter, _ []byte) bool { w.WriteHeader(500); return true }
	r := newTestReader(t, nil, bad, good)
	for range 10 {
		require.NoError(t, askKey(t, r))
		r.pass(2 * time.Second)
		r.cache.InvalidateAll()
	}
	bad.mu.Lock()
	defer bad.mu.Unlock()
	require.Equal(t, breakAfter, bad.requests)
}

// flood asks for a thousand agents that do not exist, and counts those that
// the chain was asked about.
func flood(t *testing.T, r *testReader, source string, from int64) (read int) {
	t.Helper()
	for n := range int64(1000) {
		id := mustID(t, vectorID)
		id.AgentID = big.NewInt(from + n)
		_, err := r.Snapshot(WithSource(t.Context(), source), id)
		var spent *BudgetError
		if errors.As(err, &spent) {
			require.ErrorIs(t, err, ErrUnavailable)
			require.Positive(t, spent.Wait)
			continue
		}
		require.ErrorIs(t, err, ErrNotRegistered)
		read++
	}
	return read
}

func TestBudget_OfASource(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.setAgent(t)
	r := newTestReader(t, nil, s)
	require.Equal(t, int(limits[stranger].Burst), flood(t, r, "one", 1000))
	require.Equal(t, 5*int(limits[stranger].Burst), s.count("eth_call"))
	require.NoError(t, askKey(t, r), "the node's own work")
	r.cache.InvalidateAll()
	require.NoError(t, must.Err(r.Authority(WithSource(t.Context(), "two"), mustID(t, vectorID), vectorThumb)), "another source's new identity")
	require.NoError(t, must.Err(r.Authority(WithSource(t.Context(), "one"), mustID(t, vectorID), vectorThumb)), "from the cache")
	r.pass(61 * time.Second)
	require.NoError(t, must.Err(r.Authority(WithSource(t.Context(), "one"), mustID(t, vectorID), vectorThumb)), "seen good, though the cache expired")
	require.Equal(t, int(limits[stranger].Burst), flood(t, r, "one", 5000), "whole again after a minute")
	r.pass(limits[stranger].Every)
	require.Equal(t, 1, flood(t, r, "one", 9000))
}

// However many sources ask for new identities, those known good are read.
func TestBudget_ShareOfTheKnown(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.setAgent(t)
	r := newTestReader(t, func(c *Config) {
		c.ReadsPerSec, c.ReadBurst = 0.001, 40
		c.Known = func(_ context.Context, id string) (bool, error) { return id == vectorID, nil }
	}, s)
	read := 0
	for n := range 20 {
		read += flood(t, r, fmt.Sprint("source ", n), int64(n+1)*1000)
	}
	require.Equal(t, 20, read, "half of the burst")
	require.Zero(t, flood(t, r, "", 90_000), "the node's own work for new identities")
	for n := range 20 {
		r.cache.InvalidateAll()
		require.NoError(t, must.Err(r.Authority(WithSource(t.Context(), "source 1"), mustID(t, vectorID), vectorThumb)), n)
	}
	r.cache.InvalidateAll()
	var spent *BudgetError
	require.ErrorAs(t, askKey(t, r), &spent)
	require.False(t, spent.Source)
}

// The names of identities known good are public: a source that uses them has a
// bound too.
func TestBudget_KnownNamesOfASource(t *testing.T) {
	t.Parallel()
	b := newBudget(1e6, 1e6)
	now := time.Now()
	taken := 0
	for b.take(now, asker{"one", known}) == nil {
		taken++
	}
	require.EqualValues(t, limits[known].Burst, taken)
	require.NoError(t, b.take(now, asker{"two", known}))
	require.NoError(t, b.take(now, asker{"one", stranger}))
}

func TestBudget_SourcesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBudget(1e9, 1e9)
	now := time.Now()
	refused := 0
	for n := range 2 * maxSources {
		if b.take(now, asker{source: fmt.Sprint(n)}) != nil {
			refused++
		}
	}
	require.LessOrEqual(t, b.sources.Len(), maxSources+1)
	require.Equal(t, maxSources-int(limits[stranger].Burst), refused, "those without a place share one budget")
	now = now.Add(time.Hour)
	require.NoError(t, b.take(now, asker{source: "late"}))
	require.Equal(t, 1, b.sources.Len())
}

// Of many who ask for one agent at once, one that is refused takes nobody with it.
func TestBudget_RefusedDoesNotRefuseOthers(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.setAgent(t)
	r := newTestReader(t, nil, s)
	flood(t, r, "bad", 1000)
	var wg sync.WaitGroup
	for n := range 100 {
		source := "bad"
		if n%2 == 0 {
			source = "good"
		}
		wg.Go(func() {
			_, err := r.Authority(WithSource(context.Background(), source), mustID(t, vectorID), vectorThumb)
			if err != nil && source == "good" {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A contract that signs is asked once a block, however often it is used.
func TestBudget_ContractSigner(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	a := s.setAgent(t)
	rec := Record{Signer: common.Address{7}, IssuedAt: 1763640000, Keys: []Key{vectorKey(t)}, Signature: make([]byte, 65)}
	a.owner, a.meta[MetadataKeys] = rec.Signer, rec.Encode()
	asked := 0
	s.methods["eth_call"] = func(p []json.RawMessage) (any, *stubError) {
		if bytes.Contains(p[0], []byte("1626ba7e")) {
			asked++
			return "0x1626ba7e" + strings.Repeat("0", 56), nil
		}
		return s.call(p)
	}
	r := newTestReader(t, nil, s)
	r.poll(t)
	for range 500 {
		must.Get(r.Authority(WithSource(t.Context(), "one"), mustID(t, vectorID), vectorThumb))(t)
	}
	require.Equal(t, 1, asked)
	s.do(func() { s.head++ })
	r.poll(t)
	require.NoError(t, askKey(t, r))
	require.Equal(t, 2, asked, "and again in the next block")
}

func TestSingleRead_ForManyCallers(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.setAgent(t)
	r := newTestReader(t, nil, s)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if err := askKey(t, r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 5, s.count("eth_call"))
}

func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer slow.Close()
	defer close(release)
	r := newTestReader(t, func(c *Config) { c.Chains[0].RPC = []string{slow.URL} })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := r.Authority(ctx, mustID(t, vectorID), vectorThumb)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAuthority_HugeValues(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	a := s.setAgent(t)
	a.meta[MetadataKeys] = bytes.Repeat([]byte{1}, 20_000)
	require.ErrorIs(t, askKey(t, newTestReader(t, nil, s)), ErrKeyUnknown)

	// Over the gas limit: the agent's doing, which must not close the endpoint.
	for i, want := range map[string]error{"cb4799f2": ErrIdentityBound, "c87b56dd": nil} {
		s := newStub(t)
		s.setAgent(t)
		s.methods["eth_call"] = func(p []json.RawMessage) (any, *stubError) {
			if bytes.Contains(p[0], []byte(i)) {
				return nil, &stubError{Code: -32000, Message: "out of gas"}
			}
			return s.call(p)
		}
		require.ErrorIs(t, askKey(t, newTestReader(t, nil, s)), want)
	}
}

func TestAuthority_RecordFromTheFuture(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	a := s.setAgent(t)
	rec := must.Get(SignRecord(mustID(t, vectorID), []Key{vectorKey(t)}, time.Now().Add(6*time.Minute), walletKey()))(t)
	a.meta[MetadataKeys] = rec.Encode()
	require.ErrorIs(t, askKey(t, newTestReader(t, nil, s)), ErrKeyUnknown)
}

// A record that names the zero address as its signer is nobody's, also where the
// agent has no wallet, whose place then holds the same zero.
func TestJudge_ZeroSigner(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	owner := s.setAgent(t).owner
	r := newTestReader(t, nil, s)
	id := mustID(t, vectorID)
	rec := must.Get(ParseRecord(unhex(t, vectorRecord)))(t)
	for name, c := range map[string]struct {
		signer common.Address
		counts bool
	}{"owner": {owner, true}, "zero": {common.Address{}, false}, "a stranger": {common.HexToAddress("0x01"), false}} {
		rec.Signer = c.signer
		require.Equal(t, c.counts, must.Get(r.judge(t.Context(), &Snapshot{ID: id, Owner: owner}, rec.Encode()))(t) != nil, name)
	}
}

func TestAuthority_BadSignatureAsksOnce(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	a := s.setAgent(t)
	a.meta[MetadataKeys] = append(unhex(t, vectorRecord)[:64], make([]byte, 65)...)
	r := newTestReader(t, nil, s)
	for range 5 {
		require.ErrorIs(t, askKey(t, r), ErrKeyUnknown)
	}
	require.Equal(t, 6, s.count("eth_call"), "an ordinary account is asked as a contract only once")
}

func TestNewReader_Config(t *testing.T) {
	t.Parallel()
	good := Chain{ID: 1, RPC: []string{"https://rpc.example/"}, Registries: []Registry{MainnetRegistry}}
	for name, edit := range map[string]func(*Chain){
		"no id":     func(c *Chain) { c.ID = 0 },
		"no rpc":    func(c *Chain) { c.RPC = nil },
		"websocket": func(c *Chain) { c.RPC = []string{"wss://rpc.example/"} },
		"ipc":       func(c *Chain) { c.RPC = []string{"/var/run/geth.ipc"} },
		"stdio":     func(c *Chain) { c.RPC = []string{"stdio"} },
		"registry":  func(c *Chain) { c.Registries = nil },
		"zero":      func(c *Chain) { c.Registries = []Registry{{}} },
		"finality":  func(c *Chain) { c.Finality = "soon" },
		"depth":     func(c *Chain) { c.Finality = "depth:-1" },
		"quorum":    func(c *Chain) { c.Quorum = 2 },
		"one endpoint twice for a quorum": func(c *Chain) {
			c.RPC, c.Quorum = []string{c.RPC[0], c.RPC[0]}, 2
		},
	} {
		c := good
		edit(&c)
		require.Error(t, must.Err(NewReader(Config{Chains: []Chain{c}})), name)
	}
	must.Get(NewReader(Config{Chains: []Chain{good}}))(t)
}

// Entries of one chain are one chain with all their registries.
func TestNewReader_MergesEntriesOfAChain(t *testing.T) {
	t.Parallel()
	one := Chain{ID: 1, RPC: []string{"https://a.example/"}, Registries: []Registry{MainnetRegistry}}
	two := Chain{ID: 1, RPC: []string{"https://b.example/", "https://a.example/"}, Registries: []Registry{TestnetRegistry}}
	r := must.Get(NewReader(Config{Chains: []Chain{one, two, one, {ID: 2, RPC: one.RPC, Registries: one.Registries}}}))(t)
	require.Len(t, r.chains, 2)
	require.Equal(t, []Registry{MainnetRegistry, TestnetRegistry}, r.chains[1].Registries)
	require.Len(t, r.chains[1].endpoints, 2)
	require.Equal(t, "a.example", r.chains[1].endpoints[0].name)
	require.True(t, r.chains[1].allowed(TestnetRegistry.Identity))
	require.False(t, r.chains[2].allowed(TestnetRegistry.Identity))
	for name, edit := range map[string]func(*Chain){
		"finality":   func(c *Chain) { c.Finality = "safe" },
		"quorum":     func(c *Chain) { c.Quorum = 2 },
		"reputation": func(c *Chain) { c.Registries = []Registry{{Identity: MainnetRegistry.Identity}} },
	} {
		other := one
		edit(&other)
		require.ErrorContains(t, must.Err(NewReader(Config{Chains: []Chain{one, other}})), "chain 1", name)
	}
}

// A chain that moved further than the endpoint keeps state between two looks is
// looked at again; that is no fault of the endpoint.
func TestAuthority_ChainRanAhead(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]string{
		"geth, paths": "historical state 2fa1 is not available", "geth, hashes": "missing trie node 2fa1 (path ) state 0x2fa1 is not available",
		"geth, tracing": "required historical state unavailable (reexec=0)", "erigon": "state at block 100 is PRUNED",
		"nethermind": "No state available for block 0x64",
	} {
		s := newStub(t)
		s.setAgent(t)
		r := newTestReader(t, nil, s)
		r.poll(t)
		s.do(func() { s.head, s.final, s.keeps = 400, 390, 128 })
		s.methods["eth_call"] = func(p []json.RawMessage) (any, *stubError) {
			out, err := s.call(p)
			if err != nil && err.Code == -32000 {
				err.Message = say
			}
			return out, err
		}
		for n := range int64(10) {
			id := mustID(t, vectorID)
			id.AgentID = big.NewInt(n + 50)
			require.ErrorIs(t, must.Err(r.Snapshot(t.Context(), id)), ErrNotRegistered, name)
		}
		g, err := r.Authority(t.Context(), mustID(t, vectorID), vectorThumb)
		require.NoError(t, err, name)
		require.Equal(t, uint64(400), g.Block)
		require.Zero(t, r.chains[stubChain].endpoints[0].failures, name)
	}
}

func TestCheck_Settings(t *testing.T) {
	t.Parallel()
	other := func(s *stub) { s.chain = 5 }
	for name, c := range map[string]struct {
		break1, break2 func(*stub)
		edit           func(*Registry)
		want           string
	}{
		"right":           {},
		"wrong chain":     {break1: other, break2: other, want: "endpoint 1 serves another chain"},
		"one wrong chain": {break2: other, want: "endpoint 2 serves another chain"},
		"no contract":     {edit: func(r *Registry) { r.Identity = common.Address{1} }, want: "no identity registry"},
		"no ERC-721": {break1: func(s *stub) {
			s.methods["eth_call"] = func([]json.RawMessage) (any, *stubError) { return "0x" + strings.Repeat("0", 64), nil }
		}, want: "no identity registry"},
		"reverts": {break1: func(s *stub) {
			s.methods["eth_call"] = func([]json.RawMessage) (any, *stubError) {
				return nil, &stubError{Code: -32000, Message: "execution reverted"}
			}
		}, want: "no identity registry"},
		"reputation of another": {edit: func(r *Registry) { r.Reputation = stubRegistry }, want: "belongs to the identity registry"},
		"no reputation":         {edit: func(r *Registry) { r.Reputation = common.Address{2} }, want: "no reputation registry"},
	} {
		one, two := newStub(t), newStub(t)
		if c.break1 != nil {
			c.break1(one)
		}
		if c.break2 != nil {
			c.break2(two)
		}
		r := newTestReader(t, func(cfg *Config) {
			if c.edit != nil {
				c.edit(&cfg.Chains[0].Registries[0])
			}
		}, one, two)
		err := r.Check(t.Context())
		if c.want == "" {
			require.NoError(t, err)
			require.Equal(t, []State{{Chain: stubChain, Quorum: 1, Bad: []bool{false, false}}}, r.States())
			continue
		}
		var wrong *SettingError
		require.ErrorAs(t, err, &wrong, name)
		require.ErrorContains(t, wrong, c.want, name)
		require.ErrorAs(t, r.States()[0].Err, &wrong, name)
	}
}

// An endpoint that does not answer says nothing about the setting.
func TestCheck_Unreachable(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.setAgent(t)
	down := func(w http.ResponseWriter, _ []byte) bool { w.WriteHeader(502); return true }
	s.answer = down
	r := newTestReader(t, nil, s)
	require.ErrorIs(t, r.Check(t.Context()), ErrUnavailable)
	require.ErrorIs(t, r.States()[0].Err, ErrUnavailable)
	s.do(func() { s.answer = nil })
	require.NoError(t, askKey(t, r))
	require.NoError(t, r.States()[0].Err, "any answer shows that it is back")
	s.do(func() { s.chain = 5 })
	var wrong *SettingError
	require.ErrorAs(t, r.Check(t.Context()), &wrong)
	s.do(func() { s.answer = down })
	require.Error(t, r.Check(t.Context()))
	require.ErrorAs(t, r.States()[0].Err, &wrong, "until a check that finds it right")
}

func BenchmarkAuthority_Cached(b *testing.B) {
	s := newStub(b)
	s.setAgent(b)
	r := newTestReader(b, nil, s)
	id := mustID(b, vectorID)
	for b.Loop() {
		if _, err := r.Authority(b.Context(), id, vectorThumb); err != nil {
			b.Fatal(err)
		}
	}
}
