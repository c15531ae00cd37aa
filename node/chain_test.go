package node_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/door/mcpapi"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
	"stoa/protocol/pow"
	"stoa/storage"
)

const (
	rpcChain    = 31337
	rpcRegistry = "0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"
	rpcWallet   = "9b75eca22cfb6f836ed8c5545a541e8916de83263845b01acfba74c863f2e855"
)

// An rpcStub is a chain endpoint with a registry. All its agents are of one
// wallet, and what is not asked for by a test is as on a chain at rest.
type rpcStub struct {
	*httptest.Server
	t testing.TB

	mu      sync.Mutex
	chain   uint64
	agents  map[string][]byte // records by decimal id
	down    bool
	erc721  bool
	batches int
	read    map[string]bool // agents that were asked about
}

func newRPC(t testing.TB) *rpcStub {
	s := &rpcStub{t: t, chain: rpcChain, agents: map[string][]byte{}, erc721: true, read: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *rpcStub) setting() string { return fmt.Sprintf("%d=%s,%s", rpcChain, s.URL, rpcRegistry) }

// agent registers an agent with a key of its own.
func (s *rpcStub) agent(n int) (id string, pair key.Pair) {
	s.t.Helper()
	pair = must.Get(key.GenerateEd25519())(s.t)
	id = fmt.Sprintf("eip155:%d:%s:%d", rpcChain, rpcRegistry, n)
	parsed := must.Get(erc8004.ParseID(id))(s.t)
	wallet := must.Get(erc8004.ParseWalletKey(rpcWallet))(s.t)
	k := must.Get(erc8004.NewKey(pair.Public()))(s.t)
	rec := must.Get(erc8004.SignRecord(parsed, []erc8004.Key{k}, time.Now().Add(-time.Hour), wallet))(s.t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents[strconv.Itoa(n)] = rec.Encode()
	return id, pair
}

func (s *rpcStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	s.batches++
	var in []struct {
		ID     json.RawMessage
		Method string
		Params []json.RawMessage
	}
	require.NoError(s.t, json.NewDecoder(r.Body).Decode(&in))
	var out []map[string]any
	for _, q := range in {
		m := map[string]any{"jsonrpc": "2.0", "id": q.ID}
		switch q.Method {
		case "eth_chainId":
			m["result"] = fmt.Sprintf("0x%x", s.chain)
		case "eth_getBlockByNumber":
			m["result"] = map[string]any{"number": "0x64", "hash": "0x" + strings.Repeat("ab", 32), "timestamp": fmt.Sprintf("0x%x", time.Now().Unix())}
		case "eth_getLogs":
			m["result"] = []any{}
		case "eth_call":
			var call struct{ Data string }
			require.NoError(s.t, json.Unmarshal(q.Params[0], &call))
			if got, ok := s.call(call.Data[2:]); ok {
				m["result"] = "0x" + got
			} else {
				m["error"] = map[string]any{"code": 3, "message": "execution reverted", "data": "0x7e273289" + call.Data[10:74]}
			}
		}
		out = append(out, m)
	}
	json.NewEncoder(w).Encode(out)
}

// call answers one eth_call; false is ERC721NonexistentToken.
func (s *rpcStub) call(data string) (string, bool) {
	if data[:8] == "01ffc9a7" { // supportsInterface
		return fmt.Sprintf("%064x", map[bool]int{true: 1}[s.erc721]), true
	}
	id := new(big.Int)
	if len(data) >= 72 {
		id.SetString(data[8:72], 16)
	}
	record, ok := s.agents[id.String()]
	switch data[:8] {
	case "bc4d861b": // getIdentityRegistry
		return "", true
	case "6352211e": // ownerOf
		s.read[id.String()] = true
		return strings.Repeat("0", 24) + "f390bdbc27475adfeda463b9ca5b1d879aa277d3", ok
	case "c87b56dd": // tokenURI
		return encodeBytes(nil), ok
	case "00339509": // getAgentWallet
		return strings.Repeat("0", 64), true
	}
	if strings.Contains(data, hex.EncodeToString([]byte("agentKeys"))) {
		return encodeBytes(record), true
	}
	return encodeBytes(nil), true
}

func encodeBytes(b []byte) string {
	return fmt.Sprintf("%064x%064x%s", 32, len(b), hex.EncodeToString(append(b[:len(b):len(b)], make([]byte, (32-len(b)%32)%32)...)))
}

// readAs reads the board from an address, signed under an identity.
func readAs(h *nodetest.House, address, id string, pair key.Pair) nodetest.Answer {
	h.T.Helper()
	return patient(func() nodetest.Answer { return readOnce(h, address, id, pair) })
}

// patient asks again while the chain does not answer within the time that a node gives it: on a busy machine it does not always.
func patient(ask func() nodetest.Answer) (a nodetest.Answer) {
	for end := time.Now().Add(time.Minute); a.ResponseRecorder == nil || a.Code == 503 && time.Now().Before(end); {
		a = ask()
	}
	return a
}

func readOnce(h *nodetest.House, address, id string, pair key.Pair, headers ...string) nodetest.Answer {
	h.T.Helper()
	r := h.Request("GET", "/api/public/board", "", append(headers, "Agent-Identity", id)...)
	r.RemoteAddr = address + ":4711"
	return h.Serve(h.Sign(r, "", pair, httpsig.SignOptions{}))
}

// A source that signs with one new agent id after another causes as many reads
// of the chain as its budget has and no more. Others do not notice: new agents of
// other networks, and agents known good even on the same network.
func TestChain_FloodOfAgentIDs(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		rpc := newRPC(t)
		h := nodetest.New(t, change, func(c *node.Config) { c.Chain = []string{rpc.setting()} })
		h.Chain.Dev = false
		enrolled, enrolledPair := rpc.agent(1)
		h.Hosted("asha")
		require.NoError(t, h.Admin().PutIdentity(t.Context(), "asha", enrolled, enrolledPair.Thumbprint()))
		seen, seenPair := rpc.agent(2)
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Keys().RaiseIssued(ctx, seen, "0xf390bdbc27475adfeda463b9ca5b1d879aa277d3", 1)
		}))
		evil := must.Get(key.GenerateEd25519())(t)

		const bad = "192.0.2.66"
		begin, limited := time.Now(), 0
		for n := range 200 {
			a := readAs(h, bad, fmt.Sprintf("eip155:%d:%s:%d", rpcChain, rpcRegistry, 100_000+n), evil)
			if a.Code == 429 {
				limited++
				require.Equal(t, protocol.RateLimited, a.Problem().Code)
				wait := must.Get(strconv.Atoi(a.Header().Get("Retry-After")))(t)
				require.Positive(t, wait)
				require.LessOrEqual(t, wait, 10)
				continue
			}
			require.Equal(t, protocol.IdentityUnverified, a.Problem().Code)
			if n%40 == 0 { // honest agents nobody knew, each once
				id, pair := rpc.agent(50 + n)
				require.Equal(t, 200, readAs(h, fmt.Sprintf("198.51.100.%d", 1+n/40), id, pair).Code)
			}
		}
		for n := range 5 {
			id, pair := rpc.agent(10 + n)
			a := readAs(h, fmt.Sprintf("203.0.113.%d", n), id, pair)
			require.Equal(t, 200, a.Code, "a new agent of another network: %s", a.Body)
		}
		require.Equal(t, 200, readAs(h, bad, enrolled, enrolledPair).Code, "enrolled here, though on the same network")
		require.Equal(t, 200, readAs(h, bad, seen, seenPair).Code, "verified before, though on the same network")

		budget := 6 + int(time.Since(begin)/(10*time.Second)) + 1
		rpc.mu.Lock()
		defer rpc.mu.Unlock()
		random := 0
		for id := range rpc.read {
			if len(id) == 6 {
				random++
			}
		}
		require.LessOrEqual(t, random, budget)
		require.GreaterOrEqual(t, limited, 200-budget)
		require.Less(t, rpc.batches, 3*(budget+20), "heads and logs included")
	})
}

// While new identities of many networks use up their share of the reads, one that comes with a proof of work is read. Each proof pays for one.
func TestChain_FloodOfNetworks(t *testing.T) {
	t.Parallel()
	rpc := newRPC(t)
	h := nodetest.New(t, func(c *node.Config) { c.Chain = []string{rpc.setting()} })
	h.Chain.Dev = false
	n := 0
	// burst is the answers to new identities, each of another network, all at once; they have one among them that fits.
	burst := func(fits func(nodetest.Answer) bool, headers ...string) (found nodetest.Answer) {
		for end := time.Now().Add(time.Minute); found.ResponseRecorder == nil; {
			require.True(t, time.Now().Before(end), "no such answer")
			answers := make([]nodetest.Answer, 100)
			var wg sync.WaitGroup
			for i := range answers {
				n++
				id, pair := rpc.agent(1000 + n)
				address := fmt.Sprintf("198.18.%d.%d", n/250, 1+n%250)
				wg.Go(func() { answers[i] = readOnce(h, address, id, pair, headers...) })
			}
			wg.Wait()
			if i := slices.IndexFunc(answers, fits); i >= 0 {
				found = answers[i]
			}
		}
		return found
	}
	// An answer 503 without that is the chain's, which on a busy machine may not be read in time.
	refused := func(a nodetest.Answer) bool {
		return a.Code == 503 && strings.Contains(a.Body.String(), "Proof-Of-Work")
	}
	a := burst(refused)
	require.Equal(t, protocol.ChainUnavailable, a.Problem().Code)
	require.NotEmpty(t, a.Header().Get("Retry-After"))
	var paid string
	for _, proof := range []func() string{func() string { return h.Proof("contact") }, func() string {
		return must.Get(pow.Solve(t.Context(), *burst(refused).Problem().Challenge))(t).Encode()
	}} {
		a = patient(func() nodetest.Answer {
			paid = proof()
			burst(refused)
			id, pair := rpc.agent(1_000_000 + n)
			return readOnce(h, fmt.Sprintf("203.0.%d.%d", n/250, 1+n%250), id, pair, "Proof-Of-Work", paid)
		})
		require.Equal(t, 200, a.Code, a.Body)
	}
	a = burst(func(a nodetest.Answer) bool { return a.Code == 401 }, "Proof-Of-Work", paid)
	require.Contains(t, []protocol.Code{protocol.PowInvalid, protocol.PowSpent}, a.Problem().Code, "it was used, here or by one of the others")
	require.NotNil(t, a.Problem().Challenge)
}

// A setting that the chain shows to be wrong refuses the start.
func TestChain_WrongSettingRefusesTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*rpcStub)
		more   string
		want   string
	}{
		"another chain":    {change: func(s *rpcStub) { s.chain = 1 }, want: "serves another chain"},
		"no registry":      {change: func(s *rpcStub) { s.erc721 = false }, want: "no identity registry"},
		"wrong reputation": {more: ",0x8004baa17c55a88189ae136b182e5fda19de9b63", want: "no reputation registry"},
	} {
		rpc := newRPC(t)
		if c.change != nil {
			c.change(rpc)
		}
		_, err := node.New(t.Context(), node.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Dev: true, Chain: []string{rpc.setting() + c.more}},
			slog.New(slog.DiscardHandler))
		require.ErrorIs(t, err, node.ErrConfig, name)
		require.ErrorContains(t, err, c.want, name)
		require.NotContains(t, err.Error(), rpc.URL, "an endpoint's address may hold a secret")
	}
}

// Where endpoints disagree, no key is granted, and the operator sees it.
func TestChain_Quorum(t *testing.T) {
	t.Parallel()
	one, two := newRPC(t), newRPC(t)
	h := nodetest.New(t, func(c *node.Config) {
		c.Chain = []string{fmt.Sprintf("%d=%s|%s,%s,quorum:2", rpcChain, one.URL, two.URL, rpcRegistry)}
	})
	made, pair := one.agent(1)
	a := readOnce(h, "192.0.2.1", made, pair)
	require.Equal(t, 503, a.Code, "only one endpoint has it: %s", a.Body)
	require.Equal(t, protocol.ChainUnavailable, a.Problem().Code)
	require.Contains(t, h.Ask("GET", "/readyz", "").Body.String(), "chain 31337: no 2 endpoints gave the same answer")
	require.Regexp(t, `stoa_chain_disagreements_total\{chain="31337"\} [1-9]`, h.Metrics())
	require.Contains(t, h.Metrics(), `stoa_chain_endpoint_up{chain="31337",endpoint="2"} 1`)

	two.mu.Lock()
	two.agents = one.agents
	two.mu.Unlock()
	a = readAs(h, "192.0.2.1", made, pair)
	require.Equal(t, 200, a.Code, "both have it: %s", a.Body)
}

// Where no endpoint answers at the start, the node serves and says so.
func TestChain_UnreachableIsTold(t *testing.T) {
	t.Parallel()
	rpc := newRPC(t)
	rpc.down = true
	h := nodetest.New(t, func(c *node.Config) { c.Chain = []string{rpc.setting()} })
	var ready struct {
		Status   string
		Degraded []string
	}
	up := func() string {
		_, rest, _ := strings.Cut(h.Metrics(), `stoa_chain_up{chain="31337"} `)
		value, _, _ := strings.Cut(rest, "\n")
		return value
	}
	a := h.Ask("GET", "/readyz", "")
	require.Equal(t, 200, a.Code, "the rest of the node works")
	a.Into(&ready)
	require.Equal(t, "ready", ready.Status)
	require.Len(t, ready.Degraded, 1)
	require.Contains(t, ready.Degraded[0], "chain 31337: no endpoint answered")
	require.NotContains(t, a.Body.String(), "127.0.0.1")
	require.Equal(t, "0", up())

	rpc.mu.Lock()
	rpc.down = false
	rpc.mu.Unlock()
	id, pair := rpc.agent(1)
	require.Equal(t, 200, readAs(h, "192.0.2.1", id, pair).Code)
	require.Equal(t, "{\"status\":\"ready\"}\n", h.Ask("GET", "/readyz", "").Body.String())
	require.Equal(t, "1", up())
}

// A verifier that fetches the value of Signature-Agent as it is finds the keys.
func TestFront_KeyDirectoryByAccept(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	want := h.Ask("GET", "/.well-known/http-message-signatures-directory", "")
	for accept, keys := range map[string]bool{
		"application/http-message-signatures-directory+json":              true,
		"application/jwk-set+json, */*;q=0.1":                             true,
		"text/html, application/jwk-set+json;q=0":                         false,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": false,
		"*/*": false, "": false,
	} {
		a := h.Ask("GET", "/", "", "Accept", accept).Is(200)
		require.Contains(t, strings.Join(a.Header().Values("Vary"), ","), "Accept", accept)
		require.Equal(t, keys, a.Body.String() == want.Body.String(), accept)
		if keys {
			require.Equal(t, want.Header().Get("Content-Type"), a.Header().Get("Content-Type"))
			require.NotEmpty(t, a.Header().Get("Signature"), "signed by the keys themselves")
		}
	}
}

// A signature that would be good for too long is not an expired one: the clock
// that signature-expired speaks of is right.
func TestSignature_TooLongIsInvalid(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	pair := h.Hosted("asha")
	a := h.Signed(pair, nodetest.GoodPost, func(_ *http.Request, o *httpsig.SignOptions) { o.TTL = time.Hour }).Is(401)
	require.Equal(t, protocol.SignatureInvalid, a.Problem().Code)
	require.Contains(t, a.Body.String(), "at most 5m0s after created")
	a = h.Signed(pair, nodetest.GoodPost, func(_ *http.Request, o *httpsig.SignOptions) { o.Created = time.Now().Add(-time.Hour) })
	require.Equal(t, protocol.SignatureExpired, a.Problem().Code)
}

// Explorers of the registry look for the version of each protocol first.
func TestRegistration_ProtocolVersions(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Agent("asha", nodetest.OpenPolicy)
	pair := must.Get(key.GenerateEd25519())(t)
	require.NoError(t, h.Admin().AddKey(t.Context(), "asha", pair, false))
	var file struct {
		Services []struct{ Name, Endpoint, Version string }
	}
	h.Ask("GET", "/.well-known/service-agents/"+pair.Thumbprint()+"/registration.json", "").Into(&file)
	versions := map[string]string{}
	for _, s := range file.Services {
		require.NotEmpty(t, s.Endpoint)
		versions[s.Name] = s.Version
	}
	require.Equal(t, map[string]string{"web": "", "profile": "", "keyDirectory": "", "A2A": a2a.Version, "MCP": mcpapi.Versions()[0]}, versions)
}
