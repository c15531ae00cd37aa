package erc8004

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
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

// A stub is a JSON-RPC endpoint with one agent on a scripted chain. A test
// changes its fields under mu, or takes over single methods and whole answers.
type stub struct {
	*httptest.Server
	mu       sync.Mutex
	chain    uint64
	head     uint64
	final    uint64
	headTime time.Time
	branch   byte // blocks above fork differ between branches
	fork     uint64
	keeps    uint64                // blocks whose state is there; 0 for all
	agents   map[string]*stubAgent // by decimal id
	before   map[string]*stubAgent // likewise, in the blocks up to until
	until    uint64
	logs     []map[string]any
	methods  map[string]func(params []json.RawMessage) (any, *stubError)
	answer   func(w http.ResponseWriter, body []byte) bool // true: it answered
	requests int
	calls    map[string]int
}

type stubAgent struct {
	owner, wallet common.Address
	uri           string
	meta          map[string][]byte
}

type stubError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

var stubRegistry = common.HexToAddress("0x5fbdb2315678afecb367f032d93f642f64180aa3")

const stubChain = 31337

func newStub(t testing.TB) *stub {
	s := &stub{chain: stubChain, head: 100, final: 96, headTime: time.Now(), agents: map[string]*stubAgent{}, calls: map[string]int{},
		methods: map[string]func([]json.RawMessage) (any, *stubError){}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *stub) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	var body json.RawMessage
	json.NewDecoder(q.Body).Decode(&body)
	if s.answer != nil && s.answer(w, body) {
		return
	}
	type request struct {
		ID     json.RawMessage   `json:"id"`
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	var reqs []request
	if err := json.Unmarshal(body, &reqs); err != nil {
		http.Error(w, "want a batch", http.StatusBadRequest)
		return
	}
	var out []map[string]any
	for _, r := range reqs {
		s.calls[r.Method]++
		f := s.methods[r.Method]
		if f == nil {
			f = map[string]func([]json.RawMessage) (any, *stubError){
				"eth_chainId":          func([]json.RawMessage) (any, *stubError) { return hexutil.Uint64(s.chain), nil },
				"eth_getBlockByNumber": s.block,
				"eth_call":             s.call,
				"eth_getLogs":          s.getLogs,
			}[r.Method]
		}
		m := map[string]any{"jsonrpc": "2.0", "id": r.ID}
		if res, err := f(r.Params); err != nil {
			m["error"] = err
		} else {
			m["result"] = res
		}
		out = append(out, m)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(out)
}

func (s *stub) hash(n uint64) common.Hash {
	h := common.BigToHash(new(big.Int).SetUint64(n + 1))
	if n > s.fork {
		h[0] = s.branch
	}
	return h
}

func (s *stub) block(params []json.RawMessage) (any, *stubError) {
	var tag string
	json.Unmarshal(params[0], &tag)
	n := s.head
	switch tag {
	case "latest":
	case "finalized", "safe":
		n = s.final
	default:
		v, _ := hexutil.DecodeUint64(tag)
		if n = v; n > s.head {
			return nil, nil
		}
	}
	return map[string]any{"number": hexutil.Uint64(n), "hash": s.hash(n), "timestamp": hexutil.Uint64(s.headTime.Unix())}, nil
}

func (s *stub) call(params []json.RawMessage) (any, *stubError) {
	var msg struct {
		To   common.Address
		Data hexutil.Bytes
	}
	var at struct {
		BlockHash        common.Hash
		RequireCanonical bool
	}
	json.Unmarshal(params[0], &msg)
	if json.Unmarshal(params[1], &at) == nil {
		known := false
		for n := range s.head + 1 {
			known = known || s.hash(n) == at.BlockHash
		}
		if !known || !at.RequireCanonical {
			return nil, &stubError{Code: -32000, Message: "header for hash not found"}
		}
	}
	if !stubState(s, at.BlockHash) {
		return nil, &stubError{Code: -32000, Message: "historical state 0x2fa1 is not available"}
	}
	if msg.To != stubRegistry {
		return "0x", nil
	}
	m, err := registryABI.MethodById(msg.Data[:4])
	if err != nil {
		return nil, &stubError{Code: 3, Message: "execution reverted", Data: "0x"}
	}
	args, _ := m.Inputs.Unpack(msg.Data[4:])
	switch m.Name {
	case "supportsInterface":
		return pack(m.Name, true)
	case "getIdentityRegistry":
		return pack(m.Name, common.Address{9})
	}
	if m.Name == "balanceOf" {
		n := int64(0)
		for _, a := range s.agents {
			if a.owner == args[0].(common.Address) {
				n++
			}
		}
		return pack(m.Name, big.NewInt(n))
	}
	agents := s.agents
	for n := range s.until + 1 {
		if s.until > 0 && s.hash(n) == at.BlockHash {
			agents = s.before
		}
	}
	agent := agents[args[0].(*big.Int).String()]
	switch {
	case agent == nil && (m.Name == "ownerOf" || m.Name == "tokenURI"):
		return nil, &stubError{Code: 3, Message: "execution reverted", Data: "0x7e273289" + fmt.Sprintf("%064x", args[0])}
	case agent == nil:
		agent = &stubAgent{}
	}
	switch m.Name {
	case "ownerOf":
		return pack(m.Name, agent.owner)
	case "tokenURI":
		return pack(m.Name, agent.uri)
	case "getAgentWallet":
		return pack(m.Name, agent.wallet)
	}
	return pack(m.Name, agent.meta[args[1].(string)])
}

func stubState(s *stub, hash common.Hash) bool {
	for n := s.head; s.keeps > 0 && n+s.keeps > s.head; n-- {
		if s.hash(n) == hash {
			return true
		}
	}
	return s.keeps == 0
}

func pack(method string, v any) (any, *stubError) {
	b, err := registryABI.Methods[method].Outputs.Pack(v)
	if err != nil {
		panic(err)
	}
	return hexutil.Bytes(b), nil
}

func (s *stub) getLogs(params []json.RawMessage) (any, *stubError) {
	var q struct {
		FromBlock, ToBlock hexutil.Uint64
		Topics             []json.RawMessage
	}
	json.Unmarshal(params[0], &q)
	out := []any{}
	for _, l := range s.logs {
		n := uint64(l["blockNumber"].(hexutil.Uint64))
		if n < uint64(q.FromBlock) || n > uint64(q.ToBlock) || !matchTopics(q.Topics, l["topics"].([]common.Hash)) {
			continue
		}
		out = append(out, l)
	}
	return out, nil
}

func matchTopics(want []json.RawMessage, have []common.Hash) bool {
	for i, w := range want {
		if string(w) == "null" {
			continue
		}
		if i >= len(have) || !strings.Contains(string(w), have[i].Hex()) {
			return false
		}
	}
	return true
}

// emit adds an event of the agent in a new block. Holds s.mu.
func (s *stub) emit(topics ...common.Hash) {
	s.head++
	s.logs = append(s.logs, map[string]any{"address": stubRegistry, "topics": topics, "data": "0x", "blockNumber": hexutil.Uint64(s.head)})
}

func (s *stub) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *stub) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// setAgent puts agent 1 of the vectors on the chain, owned by its wallet.
func (s *stub) setAgent(t testing.TB) *stubAgent {
	a := &stubAgent{owner: common.HexToAddress("0xF390bdBc27475ADFeda463b9Ca5B1d879AA277D3"), uri: "https://node.example/",
		meta: map[string][]byte{MetadataKeys: unhex(t, vectorRecord)}}
	s.agents["1"] = a
	return a
}

// past makes what the agents are now, without their keys if bare, the state of all blocks so far.
// Holds s.mu.
func (s *stub) past(bare bool) {
	s.before, s.until = map[string]*stubAgent{}, s.head
	for id, a := range s.agents {
		was := *a
		if was.meta = maps.Clone(a.meta); bare {
			was.meta = nil
		}
		s.before[id] = &was
	}
}

func agentTopic(n int64) common.Hash { return common.BigToHash(big.NewInt(n)) }

// testReader is a Reader whose clock the test moves.
type testReader struct {
	*Reader
	mu  sync.Mutex
	off time.Duration
}

func newTestReader(t testing.TB, edit func(*Config), stubs ...*stub) *testReader {
	t.Helper()
	cfg := Config{Log: slog.New(slog.DiscardHandler), Chains: []Chain{{ID: stubChain, Poll: time.Second, MaxHeadAge: time.Hour,
		Registries: []Registry{{Identity: stubRegistry}}}}}
	for _, s := range stubs {
		cfg.Chains[0].RPC = append(cfg.Chains[0].RPC, s.URL)
	}
	if edit != nil {
		edit(&cfg)
	}
	r := must.Get(NewReader(cfg))(t)
	tr := &testReader{Reader: r}
	r.now = tr.clock
	for _, c := range r.chains {
		c.now = tr.clock
	}
	return tr
}

func (r *testReader) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Add(r.off)
}

func (r *testReader) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off += d
}

func (r *testReader) poll(t testing.TB) {
	t.Helper()
	require.NoError(t, r.chains[stubChain].poll(t.Context()))
}
