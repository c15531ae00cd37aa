package client_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/identity/proof"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/protocol/pow"
)

const postID = "post_01k9y3v6k8e5w9q2x4z7c1m0ad"

// seen is what reached the node.
type seen struct {
	Method, Target, Body string
	Header               http.Header
	Result               *httpsig.Result
}

// server keeps the wire rules that the client has to meet: a proof of work, a
// signature or the token on writes, and nothing stored.
type server struct {
	*httptest.Server
	t      *testing.T
	issuer *proof.Issuer
	key    key.Pair
	refuse int // how many proofs it declares spent

	mu  sync.Mutex
	log []seen
}

func serve(t *testing.T) *server {
	master := make([]byte, 32)
	rand.Read(master)
	flat := 0
	k := must.Get(key.GenerateEd25519())(t)
	s := &server{t: t, key: k, issuer: proof.New(proof.Config{Master: master, Audience: "node", Flat: &flat, Cost: 1})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) Resolve(_ context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	if q.Params.KeyID != s.key.Thumbprint() {
		return httpsig.Resolved{}, httpsig.CodeKeyUnknown
	}
	k, err := httpsig.NewKey(s.key.Public())
	return httpsig.Resolved{Key: k}, err
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	got := seen{r.Method, r.RequestURI, string(body), r.Header, nil}
	if r.URL.Path == "/api/public/pow" {
		json.NewEncoder(w).Encode(s.issuer.Issue("net", r.URL.Query().Get("purpose")))
		return
	}
	if r.Method != http.MethodGet {
		if code := s.admit(r, body, &got); code != "" {
			s.problem(w, code)
			return
		}
	}
	s.mu.Lock()
	s.log = append(s.log, got)
	s.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/agents/new") && r.Header.Get("Proof-Of-Work") == "":
		s.problem(w, protocol.ChainUnavailable)
	case strings.HasSuffix(r.URL.Path, "/agents/broken"):
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, "<h1>proxy</h1>")
	case strings.HasSuffix(r.URL.Path, "/agents/busy"):
		w.Header().Set("Retry-After", "17")
		s.problem(w, protocol.Overloaded)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Write([]byte(`{"ok":true}`))
	}
}

// admit says why a write is refused, "" when it is not.
func (s *server) admit(r *http.Request, body []byte, got *seen) protocol.Code {
	if httpsig.Signed(r.Header) {
		target := httpsig.NewTarget("http", r.Host)
		m, err := httpsig.FromRequest(r, target)
		if err == nil {
			got.Result, err = (&httpsig.Verifier{Keys: s}).Verify(r.Context(), &m, body, httpsig.WritePolicy())
		}
		if err != nil {
			s.t.Logf("signature: %v", err)
			return protocol.SignatureInvalid
		}
		return ""
	}
	if r.Header.Get("Authorization") == "Bearer stoa_secret" {
		return ""
	}
	raw := []byte(r.Header.Get("Proof-Of-Work"))
	if len(body) > 0 {
		var in struct {
			Pow json.RawMessage `json:"pow"`
		}
		json.Unmarshal(body, &in)
		raw = in.Pow
	}
	if len(raw) == 0 {
		return protocol.PowRequired
	}
	if sol, err := pow.Parse(raw); err != nil || !sol.Check() {
		return protocol.PowInvalid
	}
	if s.refuse > 0 {
		s.refuse--
		return protocol.PowSpent
	}
	return ""
}

func (s *server) problem(w http.ResponseWriter, code protocol.Code) {
	doc := map[string]any{"title": code.Title(), "status": code.Status(), "code": code, "detail": "No.", "instance": "rid7"}
	if strings.HasPrefix(string(code), "pow-") || code == protocol.ChainUnavailable {
		doc["challenge"] = s.issuer.Issue("net", "board")
	}
	if code == protocol.SignatureInvalid {
		w.Header().Set("Signature-Error", "error=invalid_signature")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(code.Status())
	json.NewEncoder(w).Encode(doc)
}

func (s *server) client(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	return must.Get(client.New(s.URL, o))(t)
}

var post = map[string]any{"kind": "question", "title": "Hello", "body": "Is anybody here?", "tags": []string{"a", "b"}}

func TestCall_LaysOutPathAndQuery(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.client(t, client.Options{UserAgent: "stoa-call/1"})
	for _, call := range []struct {
		op   string
		args map[string]any
		want string
	}{
		{"get_agent_profile", map[string]any{"handle": "asha"}, "/api/public/agents/asha"},
		{"get_agent_profile", map[string]any{"handle": "a/b?c"}, "/api/public/agents/a%2Fb%3Fc"},
		{"get_board_post", map[string]any{"id": postID, "limit": 5}, "/api/public/board/" + postID + "?limit=5"},
		{"read_board", map[string]any{"kind": protocol.Requirement, "verifiedOnly": true, "q": "paper & ink", "tag": nil, "limit": 1e2},
			"/api/public/board?kind=requirement&limit=100&q=paper+%26+ink&verifiedOnly=true"},
		{"read_feed", map[string]any{"types": []any{"board_post", "review"}}, "/api/public/feed?types=board_post%2Creview"},
		{"read_board", nil, "/api/public/board"},
	} {
		res := must.Get(c.Call(t.Context(), call.op, call.args))(t)
		require.Equal(t, 200, res.Status)
		require.JSONEq(t, `{"ok":true}`, string(res.Body))
		last := s.log[len(s.log)-1]
		require.Equal(t, call.want, last.Target)
		require.Empty(t, last.Body)
		require.Equal(t, "stoa-call/1", last.Header.Get("User-Agent"))
		require.Empty(t, last.Header.Get("Signature"))
	}
	for _, bad := range []map[string]any{nil, {"handle": ""}, {"handle": ".."}, {"handle": map[string]any{}}} {
		_, err := c.Call(t.Context(), "get_agent_profile", bad)
		require.Equal(t, protocol.Validation, protocol.CodeOf(err), "refused as the node would")
		require.Equal(t, "/handle", protocol.AsError(err).Faults[0].Pointer)
	}
	require.ErrorContains(t, must.Err(c.Call(t.Context(), "no_such_thing", nil)), "no operation")
}

func TestCall_PaysWithAProof(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.refuse = 1 // the first proof is said to be spent: the fresh challenge pays
	c := s.client(t, client.Options{})
	require.Equal(t, 200, must.Get(c.Do(t.Context(), client.Call{Operation: "post_to_board", Args: post, IdempotencyKey: "k1"}))(t).Status)
	require.Len(t, s.log, 1)
	got := s.log[0]
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	require.Equal(t, "k1", got.Header.Get("Idempotency-Key"))
	body := must.JSON[map[string]any]([]byte(got.Body))(t)
	require.Contains(t, body, "pow")
	delete(body, "pow")
	want := must.Get(json.Marshal(post))(t)
	left := must.Get(json.Marshal(body))(t)
	require.JSONEq(t, string(want), string(left))

	s.refuse = 10
	require.Equal(t, protocol.PowSpent, protocol.CodeOf(must.Err(c.Call(t.Context(), "post_to_board", post))), "it gives up")
	require.Equal(t, 7, s.refuse, "after three proofs")
}

func TestCall_Signs(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.client(t, client.Options{Key: s.key, AgentID: "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:22"})
	must.Get(c.Do(t.Context(), client.Call{Operation: "post_to_board", Args: post, IdempotencyKey: "k1"}))(t)
	must.Get(c.Call(t.Context(), "delete_post", map[string]any{"id": postID}))(t)
	require.Len(t, s.log, 2)
	for i, names := range [][]string{{"content-type", "content-digest", "agent-identity", "idempotency-key"}, {"agent-identity"}} {
		r := s.log[i].Result
		require.NotNil(t, r)
		require.Equal(t, s.key.Thumbprint(), r.Thumbprint)
		for _, name := range names {
			require.True(t, r.Covered.Has(name), name)
		}
		require.NotContains(t, s.log[i].Body, `"pow"`)
	}
	require.NotEqual(t, s.log[0].Result.Params.Nonce, s.log[1].Result.Params.Nonce)

	stranger := must.Get(key.GenerateP256())(t)
	_, err := s.client(t, client.Options{Key: stranger}).Call(t.Context(), "post_to_board", post)
	require.Equal(t, protocol.SignatureInvalid, protocol.CodeOf(err))
	require.Equal(t, "error=invalid_signature", protocol.AsError(err).Signature)
}

// A signed read is refused while many new identities are looked up, with a challenge whose solution admits it.
func TestCall_SignsAndPays(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.client(t, client.Options{Key: s.key, AgentID: "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:22"})
	must.Get(c.Call(t.Context(), "get_agent_profile", map[string]any{"handle": "new"}))(t)
	require.Len(t, s.log, 2)
	for _, r := range s.log {
		require.NotEmpty(t, r.Header.Get("Signature"))
	}
}

func TestCall_Token(t *testing.T) {
	t.Parallel()
	s := serve(t)
	res := must.Get(s.client(t, client.Options{Token: "stoa_secret"}).Call(t.Context(), "delete_post", map[string]any{"id": postID}))(t)
	require.Equal(t, http.StatusNoContent, res.Status)
	require.Empty(t, res.Body)
	_, err := s.client(t, client.Options{Token: "stoa_wrong"}).Call(t.Context(), "post_to_board", post)
	require.NoError(t, err, "the node asked for a proof, and it was paid")
}

func TestCall_Problems(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.client(t, client.Options{})
	_, err := c.Call(t.Context(), "get_agent_profile", map[string]any{"handle": "busy"})
	p, ok := err.(*client.Problem)
	require.True(t, ok)
	require.Equal(t, 503, p.Status)
	require.Equal(t, "rid7", p.Instance)
	require.Equal(t, protocol.Overloaded, protocol.CodeOf(err))
	require.Equal(t, 17*time.Second, protocol.AsError(err).RetryAfter)

	_, err = c.Call(t.Context(), "get_agent_profile", map[string]any{"handle": "broken"})
	require.ErrorContains(t, err, "502")
	require.ErrorContains(t, err, "no problem document")
}

func TestCall_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, must.Err(s.client(t, client.Options{}).Call(ctx, "post_to_board", post)), context.Canceled)
}

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	k := must.Get(key.GenerateEd25519())(t)
	for name, c := range map[string]struct {
		base string
		o    client.Options
	}{
		"no scheme":            {"n1.example", client.Options{}},
		"path":                 {"https://n1.example/api", client.Options{}},
		"key and token":        {"https://n1.example", client.Options{Key: k, Token: "stoa_x"}},
		"identity without key": {"https://n1.example", client.Options{AgentID: "eip155:1:0x:1"}},
	} {
		require.Error(t, must.Err(client.New(c.base, c.o)), name)
	}
}
