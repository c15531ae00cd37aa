package erc8004

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// twin is an endpoint of a chain whose agent 1 got its key in block 101 of 110.
func twin(t *testing.T, at time.Time, change func(*stub)) *stub {
	t.Helper()
	s := newStub(t)
	s.setAgent(t)
	s.past(true)
	s.emit(topicMetadataSet, agentTopic(1), authorityKeys[0])
	s.head, s.final, s.headTime = 110, 105, at
	change(s)
	return s
}

// What one endpoint can say so that a key is granted that the chain does not grant.
var lies = map[string]struct {
	honest, liar func(*stub)
	two          error // of a quorum of two of two
}{
	"a key":               {func(s *stub) { s.agents["1"].meta = nil }, func(*stub) {}, ErrUnavailable},
	"an agent":            {func(s *stub) { delete(s.agents, "1") }, func(*stub) {}, ErrUnavailable},
	"an owner":            {func(s *stub) { s.agents["1"].owner = common.Address{9} }, func(*stub) {}, ErrUnavailable},
	"a later finality":    {func(s *stub) { s.final = 100 }, func(*stub) {}, ErrPendingFinality},
	"no event":            {func(s *stub) { s.final = 100 }, func(s *stub) { s.final, s.logs = 100, nil }, ErrUnavailable},
	"another final state": {func(s *stub) { s.final = 100 }, func(s *stub) { s.final, s.until = 100, 0 }, ErrPendingFinality},
	"another block":       {func(s *stub) { s.agents["1"].meta = nil }, func(s *stub) { s.branch, s.fork = 1, 109 }, ErrUnavailable},
	"a later head":        {func(s *stub) { s.agents["1"].meta = nil }, func(s *stub) { s.head, s.final = 200, 190 }, ErrUnavailable},
}

func TestQuorum_Lies(t *testing.T) {
	t.Parallel()
	for name, c := range lies {
		for _, polled := range []bool{false, true} {
			at := time.Now()
			look := func(quorum int, changes ...func(*stub)) (*testReader, string, error) {
				var all []*stub
				for _, change := range changes {
					all = append(all, twin(t, at, change))
				}
				var log bytes.Buffer
				r := newTestReader(t, func(cfg *Config) {
					cfg.Chains[0].Quorum, cfg.Log = quorum, slog.New(slog.NewTextHandler(&log, nil))
				}, all...)
				if polled {
					_ = r.chains[stubChain].poll(t.Context())
				}
				err := askKey(t, r)
				return r, log.String(), err
			}
			t.Run(name, func(t *testing.T) {
				_, _, err := look(1, c.liar)
				require.NoError(t, err, "the lie works where one endpoint is believed")
				_, _, honest := look(1, c.honest)
				require.Error(t, honest)
				for _, pair := range [][]func(*stub){{c.liar, c.honest}, {c.honest, c.liar}} {
					r, log, err := look(2, pair...)
					require.ErrorIs(t, err, c.two)
					if c.two == ErrUnavailable {
						require.Positive(t, r.States()[0].Differed)
						require.ErrorIs(t, r.States()[0].Err, ErrUnavailable)
						require.Contains(t, log, "chain endpoints disagree")
						for _, e := range r.chains[stubChain].endpoints {
							require.Contains(t, log, e.name)
						}
					}
				}
				for place := range 3 {
					all := []func(*stub){c.honest, c.honest, c.honest}
					all[place] = c.liar
					_, _, err := look(2, all...)
					require.Equal(t, kind(honest), kind(err), "a liar in place %d of three", place)
				}
			})
		}
	}
}

// kind is the public error that an error wraps.
func kind(err error) error {
	for _, is := range []error{ErrNotRegistered, ErrKeyUnknown, ErrPendingFinality, ErrUnavailable} {
		if err == is {
			return is
		}
	}
	return err
}

// A contract that signs is asked at a quorum too. Its code may answer one endpoint otherwise than another, which says nothing about them.
func TestQuorum_ContractSigner(t *testing.T) {
	t.Parallel()
	at := time.Now()
	signs := func(yes bool) func(*stub) {
		return func(s *stub) {
			rec := Record{Signer: common.Address{7}, IssuedAt: 1763640000, Keys: []Key{vectorKey(t)}, Signature: make([]byte, 65)}
			a := s.agents["1"]
			a.owner, a.meta[MetadataKeys] = rec.Signer, rec.Encode()
			s.methods["eth_call"] = func(p []json.RawMessage) (any, *stubError) {
				if bytes.Contains(p[0], []byte("1626ba7e")) && yes {
					return "0x1626ba7e" + strings.Repeat("0", 56), nil
				}
				return s.call(p)
			}
		}
	}
	look := func(change ...func(*stub)) (*testReader, error) {
		var all []*stub
		for _, c := range change {
			all = append(all, twin(t, at, c))
		}
		r := newTestReader(t, func(cfg *Config) { cfg.Chains[0].Quorum = len(all) }, all...)
		return r, askKey(t, r)
	}
	must.Get(look(signs(true), signs(true)))(t)
	r, err := look(signs(true), signs(false))
	require.ErrorIs(t, err, ErrUnavailable)
	require.Zero(t, r.States()[0].Differed)
}

func TestQuorum_FewerEndpoints(t *testing.T) {
	t.Parallel()
	at := time.Now()
	down := func(s *stub) {
		s.answer = func(w http.ResponseWriter, _ []byte) bool { w.WriteHeader(500); return true }
	}
	behind := func(s *stub) { s.head, s.final = 108, 104 }
	right := func(*stub) {}
	for name, c := range map[string]struct {
		all   []func(*stub)
		block uint64 // 0 for none
	}{
		"one of two is down":                  {[]func(*stub){right, down}, 0},
		"one of three is down":                {[]func(*stub){down, right, right}, 110},
		"two of three are":                    {[]func(*stub){down, right, down}, 0},
		"one is behind":                       {[]func(*stub){right, behind}, 108},
		"one of three is, which is not asked": {[]func(*stub){right, right, behind}, 110},
	} {
		var all []*stub
		for _, change := range c.all {
			all = append(all, twin(t, at, change))
		}
		r := newTestReader(t, func(cfg *Config) { cfg.Chains[0].Quorum = 2 }, all...)
		g, err := r.Authority(t.Context(), mustID(t, vectorID), vectorThumb)
		if c.block == 0 {
			require.ErrorIs(t, err, ErrUnavailable, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.block, g.Block, name)
		require.Zero(t, r.States()[0].Differed, name)
	}
}

// A look does not go back, and takes the events of endpoints that have its head only.
func TestQuorum_Poll(t *testing.T) {
	t.Parallel()
	at := time.Now()
	a, b, c := twin(t, at, func(*stub) {}), twin(t, at, func(*stub) {}), twin(t, at, func(s *stub) { s.head = 105 })
	r := newTestReader(t, func(cfg *Config) { cfg.Chains[0].Quorum = 2 }, a, b, c)
	r.poll(t)
	b.do(func() { b.answer = func(w http.ResponseWriter, _ []byte) bool { w.WriteHeader(500); return true } })
	require.ErrorIs(t, r.chains[stubChain].poll(t.Context()), ErrUnavailable, "the third has not seen the last head")
	move := func(s *stub) {
		s.head, s.final = 110, 105
		s.agents["1"].owner = common.Address{9}
		s.emit(topicTransfer, common.Hash{}, common.Hash{}, agentTopic(1))
	}
	require.NoError(t, askKey(t, r))
	a.do(func() { move(a) })
	c.do(func() { move(c) })
	r.poll(t)
	require.ErrorIs(t, askKey(t, r), ErrKeyUnknown)
}

// An endpoint that does not answer delays a lookup by less than its timeout, and is avoided after some.
func TestHedge(t *testing.T) {
	t.Parallel()
	good := newStub(t)
	good.setAgent(t)
	slow := newStub(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	asked := 0
	slow.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		slow.do(func() { asked++ })
		<-release
	})
	r := newTestReader(t, nil, slow, good)
	fastest := time.Hour // the machine may be busy
	for range breakAfter {
		begin := time.Now()
		require.NoError(t, askKey(t, r))
		took := time.Since(begin)
		require.GreaterOrEqual(t, took, hedgeAfter)
		fastest = min(fastest, took)
		r.cache.InvalidateAll()
	}
	require.Less(t, fastest, attemptTimeout)
	require.Equal(t, []bool{true, false}, r.States()[0].Bad)
	require.NoError(t, askKey(t, r))
	slow.do(func() {
		require.Equal(t, breakAfter, asked, "once in a lookup, though it has several steps, and not while its breaker is open")
	})
}

// The address of an endpoint is in no error: its path often holds a secret.
func TestEndpoint_AddressIsNotLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := newTestReader(t, func(cfg *Config) {
		cfg.Chains[0].RPC, cfg.Log = []string{"http://127.0.0.1:1/v2/SECRET"}, slog.New(slog.NewTextHandler(&log, nil))
	})
	err := askKey(t, r)
	require.ErrorIs(t, err, ErrUnavailable)
	require.NotErrorAs(t, err, new(*url.Error))
	require.NotContains(t, err.Error()+log.String(), "SECRET")
	require.Contains(t, log.String(), "127.0.0.1:1")
}
