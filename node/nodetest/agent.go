package nodetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
	"stoa/protocol/pow"
)

// chainStub is a chain that vouches for what a test registers.
type chainStub map[string]key.Pair // by identity

// MessageKey implements identity.Chain.
func (c chainStub) AccountKey(context.Context, string, string, httpsig.Account) (k identity.ChainKey, level protocol.ProofLevel, err error) {
	return k, "", protocol.Errorf(protocol.IdentityUnverified, "this chain knows no accounts")
}

func (c chainStub) MessageKey(_ context.Context, _, erc8004, thumbprint string) (identity.ChainKey, error) {
	pair, ok := c[erc8004]
	if !ok {
		return identity.ChainKey{}, protocol.Errorf(protocol.IdentityUnverified, "the registry has no such agent")
	}
	if pair.Thumbprint() != thumbprint {
		return identity.ChainKey{}, protocol.Errorf(protocol.KeyUnknown, "the chain gives this key no authority for the identity")
	}
	k, err := httpsig.NewKey(pair.Public())
	return identity.ChainKey{Identity: erc8004, Owner: "0x00000000000000000000000000000000000000aa", Key: k, Block: 1}, err
}

func (chainStub) Account(context.Context, string, httpsig.Account) (httpsig.Key, error) {
	return nil, protocol.Errorf(protocol.IdentityUnverified, "no chain")
}

// An Agent is an outside agent with a chain identity.
type Agent struct {
	H    *House
	ID   string // "" for none
	Pair key.Pair
}

// Agents gives n outside agents that the node's chain knows.
func (h *House) Agents(n int) []*Agent {
	h.T.Helper()
	chain := chainStub{}
	var all []*Agent
	for i := range n {
		pair := must.Get(key.GenerateEd25519())(h.T)
		a := &Agent{h, fmt.Sprintf("eip155:31337:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:%d", i+1), pair}
		chain[a.ID] = pair
		all = append(all, a)
	}
	h.Table.Gate.Chain = chain
	return all
}

// RoundTrip implements http.RoundTripper: it signs a request as the agent and
// hands it to the node. Clients of other implementations are given it.
func (a *Agent) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	var err error
	if r.Body != nil {
		body, err = io.ReadAll(r.Body)
	}
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body, r.RequestURI = io.NopCloser(bytes.NewReader(body)), r.URL.RequestURI()
	if a.ID != "" {
		r.Header.Set("Agent-Identity", a.ID)
	}
	target, err := httpsig.ParseTarget(a.H.Base)
	if err != nil {
		return nil, err
	}
	if err := httpsig.SignRequest(r, target, body, httpsig.SignOptions{Key: a.Pair.Signer()}); err != nil {
		return nil, err
	}
	r.RemoteAddr = "192.0.2.1:1234"
	w := httptest.NewRecorder()
	a.H.Handler().ServeHTTP(w, r)
	res := w.Result()
	res.Request = r
	return res, nil
}

// An A2AAnswer is a JSON-RPC answer of the A2A door.
type A2AAnswer struct {
	Status int
	Header http.Header
	Raw    []byte
	ID     json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    a2aData
	}
}

// An A2ADatum is one of the objects of an error's data; the only one in 0.3.
type A2ADatum struct {
	Type       string `json:"@type"`
	Reason     string
	Domain     string
	Metadata   map[string]string
	Violations []a2a.Violation `json:"fieldViolations"`
	Code       protocol.Code
	Advice     string
	Errors     []protocol.Fault
	Challenge  *pow.Challenge
	ConfirmURL string
	ConfirmID  string
	Confirm    string
	Accepts    []protocol.Way
	Instead    []struct{ Door, Operation, Method, URL string }
	Identity   string
}

type a2aData []A2ADatum

func (d *a2aData) UnmarshalJSON(raw []byte) error {
	if raw[0] == '{' {
		raw = append(append([]byte{'['}, raw...), ']')
	}
	return json.Unmarshal(raw, (*[]A2ADatum)(d))
}

// ReadA2A reads a JSON-RPC answer, which may be empty.
func (h *House) ReadA2A(r *http.Response) (a A2AAnswer) {
	h.T.Helper()
	a.Raw = must.Get(io.ReadAll(r.Body))(h.T)
	if len(a.Raw) > 0 {
		require.Equal(h.T, "application/json", r.Header.Get("Content-Type"), "%s", a.Raw)
		require.NoError(h.T, json.Unmarshal(a.Raw, &a), "%s", a.Raw)
		require.Equal(h.T, a.Error == nil, a.Result != nil, "%s", a.Raw)
	}
	a.Status, a.Header = r.StatusCode, r.Header
	return a
}

// Task is the task of an answer that has one: the result, or a member of it.
func (a A2AAnswer) Task(t testing.TB) (task a2a.Task) {
	t.Helper()
	require.Nil(t, a.Error, "%s", a.Raw)
	var r a2a.SendResult
	require.NoError(t, json.Unmarshal(a.Result, &r))
	if r.Task != nil {
		return *r.Task
	}
	require.NoError(t, json.Unmarshal(a.Result, &task))
	require.NotEmpty(t, task.ID, "%s", a.Raw)
	return task
}

// Post sends a body to a path, signed.
func (a *Agent) Post(path, body string, headers ...string) A2AAnswer {
	a.H.T.Helper()
	r := must.Get(http.NewRequestWithContext(a.H.T.Context(), "POST", a.H.Base+path, bytes.NewReader([]byte(body))))(a.H.T)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("A2A-Version", "1.0")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res := must.Get(a.RoundTrip(r))(a.H.T)
	return a.H.ReadA2A(res)
}

// Do calls a method of an agent's endpoint.
func (a *Agent) Do(path, method, params string, headers ...string) A2AAnswer {
	a.H.T.Helper()
	answer := a.Post(path, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params), headers...)
	require.Equal(a.H.T, "7", string(answer.ID), "%s", answer.Raw)
	return answer
}

// Write sends a text; extra are further members of the message.
func (a *Agent) Write(handle, messageID, text, extra string) A2AAnswer {
	a.H.T.Helper()
	return a.Do("/a2a/"+handle, "SendMessage", fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"text":%q}]%s}}`, messageID, text, extra))
}

// GetTask asks for a task at the endpoint of a profile.
func (a *Agent) GetTask(handle, id string) A2AAnswer {
	a.H.T.Helper()
	return a.Do("/a2a/"+handle, "GetTask", fmt.Sprintf(`{"id":%q}`, id))
}

// PutOpen makes a profile that takes letters from outside agents.
func (h *House) PutOpen(handle string, change func(*protocol.ProfileDraft)) {
	h.T.Helper()
	d := protocol.ProfileDraft{
		Handle: handle, Name: "Asha Rao", Kind: protocol.Person, Description: "कागज़ और किताबें",
		ContactPolicy: &protocol.PolicyDraft{OutsideAgentsWithIdentity: true, Anonymous: true, Kinds: []string{"question", "quote_request"}},
		Capabilities:  []protocol.Capability{{ID: "make-paper", Name: "Paper", Description: "Hand-made paper to order."}},
	}
	if change != nil {
		change(&d)
	}
	raw := must.Get(json.Marshal(d))(h.T)
	h.PutProfile(raw)
}

// Hello is a message to an agent as a JSON-RPC request of A2A.
const Hello = `{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}}`
