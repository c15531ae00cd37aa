package node

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
	"stoa/storage"
)

// chainStub is a chain that vouches for what a test registers.
type chainStub map[string]key.Pair // by identity

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

// agent is an outside agent with a chain identity.
type agent struct {
	h    *house
	id   string
	pair key.Pair
}

// agents gives n outside agents that the node's chain knows.
func (h *house) agents(n int) []*agent {
	h.t.Helper()
	chain := chainStub{}
	var all []*agent
	for i := range n {
		pair, err := key.GenerateEd25519()
		require.NoError(h.t, err)
		a := &agent{h, fmt.Sprintf("eip155:31337:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:%d", i+1), pair}
		chain[a.id] = pair
		all = append(all, a)
	}
	h.table.Gate.Chain = chain
	return all
}

// RoundTrip implements http.RoundTripper: it signs a request as the agent and
// hands it to the node. Clients of other implementations are given it.
func (a *agent) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body, r.RequestURI = io.NopCloser(bytes.NewReader(body)), r.URL.RequestURI()
	if a.id != "" {
		r.Header.Set("Agent-Identity", a.id)
	}
	target, err := httpsig.ParseTarget(a.h.Base)
	if err != nil {
		return nil, err
	}
	if err := httpsig.SignRequest(r, target, body, httpsig.SignOptions{Key: a.pair.Signer()}); err != nil {
		return nil, err
	}
	r.RemoteAddr = "192.0.2.1:1234"
	w := httptest.NewRecorder()
	a.h.Handler().ServeHTTP(w, r)
	return w.Result(), nil
}

// a2aAnswer is a JSON-RPC answer of the A2A door.
type a2aAnswer struct {
	Status int
	Header http.Header
	Raw    []byte
	ID     json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    []struct {
			Type       string `json:"@type"`
			Reason     string
			Domain     string
			Metadata   map[string]string
			Violations []a2a.Violation `json:"fieldViolations"`
			Code       protocol.Code
			Advice     string
			Errors     []protocol.Fault
		}
	}
}

func (h *house) readA2A(r *http.Response) (a a2aAnswer) {
	h.t.Helper()
	var err error
	a.Raw, err = io.ReadAll(r.Body)
	require.NoError(h.t, err)
	if len(a.Raw) > 0 {
		require.Equal(h.t, "application/json", r.Header.Get("Content-Type"), "%s", a.Raw)
		require.NoError(h.t, json.Unmarshal(a.Raw, &a), "%s", a.Raw)
		require.Equal(h.t, a.Error == nil, a.Result != nil, "%s", a.Raw)
	}
	a.Status, a.Header = r.StatusCode, r.Header
	return a
}

// code is the code of JSON-RPC and our own.
func (a a2aAnswer) code() (int, protocol.Code) {
	if a.Error == nil {
		return 0, ""
	}
	return a.Error.Code, a.Error.Data[len(a.Error.Data)-1].Code
}

func (a a2aAnswer) task(t testing.TB) (task a2a.Task) {
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

// post sends a body to a path, signed.
func (a *agent) post(path, body string, headers ...string) a2aAnswer {
	a.h.t.Helper()
	r, err := http.NewRequestWithContext(a.h.t.Context(), "POST", a.h.Base+path, bytes.NewReader([]byte(body)))
	require.NoError(a.h.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("A2A-Version", "1.0")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := a.RoundTrip(r)
	require.NoError(a.h.t, err)
	return a.h.readA2A(res)
}

// do calls a method of an agent's endpoint.
func (a *agent) do(path, method, params string, headers ...string) a2aAnswer {
	a.h.t.Helper()
	answer := a.post(path, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params), headers...)
	require.Equal(a.h.t, "7", string(answer.ID), "%s", answer.Raw)
	return answer
}

// write sends a text; extra are further members of the message.
func (a *agent) write(handle, messageID, text, extra string) a2aAnswer {
	a.h.t.Helper()
	return a.do("/a2a/"+handle, "SendMessage", fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"text":%q}]%s}}`, messageID, text, extra))
}

func (a *agent) getTask(handle, id string) a2aAnswer {
	a.h.t.Helper()
	return a.do("/a2a/"+handle, "GetTask", fmt.Sprintf(`{"id":%q}`, id))
}

// answered makes the agent's owner answer.
func (h *house) answered(threadID, text string) {
	h.t.Helper()
	require.NoError(h.t, h.db.Write(h.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		owner := protocol.Caller{Standing: protocol.Session, Handle: "asha", Name: "Asha Rao", Account: "test"}
		_, err := h.contact.Answer(ctx, tx, owner, protocol.NewAnswer{ThreadRef: protocol.ThreadRef{ThreadID: threadID}, Message: text})
		return err
	}))
}

// change alters a thread.
func (h *house) change(threadID string, alter func(context.Context, *storage.Tx, *storage.StoredThread) error) {
	h.t.Helper()
	require.NoError(h.t, h.db.Write(h.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		s, err := tx.Threads().ByID(ctx, threadID)
		if err != nil {
			return err
		}
		if err := alter(ctx, tx, s); err != nil {
			return err
		}
		return tx.Threads().Save(ctx, s)
	}))
}
