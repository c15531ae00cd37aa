package node

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/pow"
)

// withProof puts a solution among the arguments of a tool.
func withProof(t testing.TB, args string, proof any) string {
	t.Helper()
	var members map[string]any
	require.NoError(t, json.Unmarshal([]byte(args), &members))
	members["pow"] = proof
	raw, err := json.Marshal(members)
	require.NoError(t, err)
	return string(raw)
}

// TestMCP_ProofOfWork: without a proof the caller gets a challenge and is told
// what to do with it; the same call with the solution succeeds, once.
func TestMCP_ProofOfWork(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	refused := h.tool("post_to_board", goodPost)
	require.True(t, refused.IsError)
	require.Equal(t, 200, refused.Code, "a refusal is a result, so that the model sees it")
	require.Equal(t, protocol.PowRequired, refused.Refused.Code)
	require.NotNil(t, refused.Refused.Challenge)
	require.Contains(t, refused.Refused.How, "PBKDF2")
	require.Contains(t, refused.Refused.Retry, "pow")
	require.Empty(t, refused.Header().Get("WWW-Authenticate"))

	solution, err := pow.Solve(t.Context(), *refused.Refused.Challenge)
	require.NoError(t, err)
	bad := h.tool("post_to_board", withProof(t, `{"kind":"offer","title":"","body":"b"}`, solution))
	require.Equal(t, protocol.Validation, bad.Refused.Code)
	require.Equal(t, []string{"/title"}, pointers(bad.Refused.Errors))
	good := h.tool("post_to_board", withProof(t, goodPost, solution))
	require.False(t, good.IsError, "a typing mistake does not burn the work: %s", good.Body)
	var p protocol.Post
	require.NoError(t, json.Unmarshal(good.Structured, &p))
	require.Equal(t, protocol.ByProof, p.Author.Method)
	var read protocol.PostWithReplies
	h.ask("GET", "/api/public/board/"+p.ID, "").into(&read)
	require.Equal(t, p, read.Post)

	spent := h.tool("post_to_board", withProof(t, goodPost, solution))
	require.Equal(t, protocol.PowSpent, spent.Refused.Code)
	require.NotNil(t, spent.Refused.Challenge)
	require.False(t, h.tool("post_to_board", withProof(t, goodPost, h.proof("contact"))).IsError, "as base64 too")
	require.False(t, h.tool("post_to_board", goodPost, "Proof-Of-Work", h.proof("board")).IsError, "and in the header")
	require.Equal(t, protocol.PowInvalid, h.tool("post_to_board", withProof(t, goodPost, h.proof("report"))).Refused.Code)
	require.Equal(t, protocol.PowInvalid, h.tool("post_to_board", withProof(t, goodPost, 7)).Refused.Code)

	challenge := h.tool("get_challenge", `{"purpose":"board"}`)
	var c pow.Challenge
	require.NoError(t, json.Unmarshal(challenge.Structured, &c))
	again := h.tool("get_challenge", `{"purpose":"board"}`)
	require.NotEqual(t, string(challenge.Structured), string(again.Structured), "a challenge is never kept")
	solution, err = pow.Solve(t.Context(), c)
	require.NoError(t, err)
	require.False(t, h.readTool(h.rpc(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"post_to_board","arguments":%s}}`,
		withProof(t, goodPost, solution)))).IsError, "on the older wire as well")
}

func TestMCP_Idempotency(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	first := h.tool("post_to_board", withProof(t, goodPost, h.proof("board")), "Idempotency-Key", "k-1")
	require.False(t, first.IsError)
	again := h.tool("post_to_board", withProof(t, goodPost, h.proof("board")), "Idempotency-Key", "k-1")
	require.Equal(t, "true", again.Header().Get("Idempotency-Replayed"))
	require.JSONEq(t, string(first.Structured), string(again.Structured))
	overHTTP := h.ask("POST", "/api/public/board", goodPost, "Proof-Of-Work", h.proof("board"), "Idempotency-Key", "k-1")
	require.JSONEq(t, string(first.Structured), overHTTP.Body.String(), "the doors lead to one hall")
	other := h.tool("post_to_board", withProof(t, `{"kind":"offer","title":"Other","body":"b"}`, h.proof("board")), "Idempotency-Key", "k-1")
	require.Equal(t, protocol.Conflict, other.Refused.Code)
	require.Equal(t, protocol.Validation, h.tool("post_to_board", withProof(t, goodPost, h.proof("board")), "Idempotency-Key", "two words").Refused.Code)
}

// signedTool calls a tool with a signed HTTP request.
func (h *house) signedTool(pair key.Pair, name, args string, change func(*http.Request, *httpsig.SignOptions)) rpcAnswer {
	h.t.Helper()
	r, _ := h.signTool(pair, name, args, change)
	return h.send(r)
}

func (h *house) send(r *http.Request) rpcAnswer {
	h.t.Helper()
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	return h.readRPC(w)
}

// signTool makes the signed request of a tool call and its body.
func (h *house) signTool(pair key.Pair, name, args string, change func(*http.Request, *httpsig.SignOptions)) (*http.Request, []byte) {
	h.t.Helper()
	body := []byte(modernBody("tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, name, args)))
	r := httptest.NewRequest("POST", h.Base+protocol.MCPPath, bytes.NewReader(body))
	r.RequestURI = protocol.MCPPath
	for field, value := range map[string]string{
		"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name,
	} {
		r.Header.Set(field, value)
	}
	target, err := httpsig.ParseTarget(h.Base)
	require.NoError(h.t, err)
	o := httpsig.SignOptions{Key: pair.Signer()}
	if change != nil {
		change(r, &o)
	}
	require.NoError(h.t, httpsig.SignRequest(r, target, body, o))
	return r, body
}

// TestMCP_Signed: the signature of the HTTP request names the writer, and a
// broken one is refused on the transport and never taken as anonymous.
func TestMCP_Signed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	pair := h.hosted("asha")
	done := h.readTool(h.signedTool(pair, "post_to_board", goodPost, nil))
	require.False(t, done.IsError, "%s", done.Body)
	var p protocol.Post
	require.NoError(t, json.Unmarshal(done.Structured, &p))
	require.True(t, p.Author.Verified)
	require.Equal(t, protocol.BySignature, p.Author.Method)
	require.Equal(t, "asha", *p.Author.Handle)
	require.Equal(t, pair.Thumbprint(), *p.Author.KeyID)
	require.Equal(t, protocol.ByProfileKey, p.Author.Proof.Level)
	require.False(t, h.readTool(h.signedTool(pair, "read_board", `{}`, nil)).IsError)

	same := func(_ *http.Request, o *httpsig.SignOptions) { o.Nonce = "the-same-nonce-again" }
	require.False(t, h.readTool(h.signedTool(pair, "post_to_board", goodPost, same)).IsError)
	changed, body := h.signTool(pair, "post_to_board", goodPost, nil)
	body = bytes.Replace(body, []byte("Looms"), []byte("Looks"), 1)
	changed.Body = io.NopCloser(bytes.NewReader(body))
	stranger, err := key.GenerateEd25519()
	require.NoError(t, err)
	proven := withProof(t, goodPost, h.proof("board"))
	for _, tt := range []struct {
		name string
		code protocol.Code
		got  rpcAnswer
	}{
		{"replayed", protocol.SignatureReplayed, h.signedTool(pair, "post_to_board", goodPost, same)},
		{"body changed", protocol.SignatureInvalid, h.send(changed)},
		{"unknown key", protocol.KeyUnknown, h.signedTool(stranger, "post_to_board", goodPost, nil)},
		{"a proof beside it", protocol.KeyUnknown, h.signedTool(stranger, "post_to_board", proven, nil)},
		{"half a signature", protocol.SignatureInvalid, h.modern("tools/call", `"name":"post_to_board","arguments":`+proven, "Mcp-Name", "post_to_board",
			"Signature", "sig1=:AAAA:")},
		{"unknown token", protocol.Unauthorized, h.modern("tools/call", `"name":"post_to_board","arguments":`+proven, "Mcp-Name", "post_to_board",
			"Authorization", "Bearer stoa_nothing")},
	} {
		a := h.readTool(tt.got)
		require.True(t, a.IsError, tt.name)
		require.Equal(t, tt.code, a.Refused.Code, "%s: %s", tt.name, a.Body)
		require.Equal(t, 401, a.Code, "%s: a credential that fails is refused on the transport", tt.name)
		if tt.code != protocol.Unauthorized {
			require.NotEmpty(t, a.Header().Get("Signature-Error"), tt.name)
		}
		require.Contains(t, a.Header().Get("Accept-Signature"), "content-digest", tt.name)
		require.NotEmpty(t, a.Header().Get("WWW-Authenticate"), tt.name)
	}
	open := h.signedTool(stranger, "read_board", `{}`, nil)
	require.False(t, h.readTool(open).IsError, "on a read, a key that nobody here knows counts as none")
	require.Contains(t, open.Header().Get("Accept-Signature"), "content-digest")
	forged, _ := h.signTool(pair, "read_board", `{}`, nil)
	forged.Header.Set("Signature", "sig1=:"+base64.StdEncoding.EncodeToString(make([]byte, 64))+":")
	require.Equal(t, protocol.SignatureInvalid, h.readTool(h.send(forged)).Refused.Code, "a forged one does not")
	var page protocol.Page[protocol.Post]
	h.ask("GET", "/api/public/board", "").into(&page)
	require.Len(t, page.Items, 2, "nothing of this was stored")

	chain := h.readTool(h.signedTool(pair, "post_to_board", goodPost, func(r *http.Request, _ *httpsig.SignOptions) {
		r.Header.Set("Agent-Identity", "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:1")
	}))
	require.Equal(t, protocol.IdentityUnverified, chain.Refused.Code)
	require.Equal(t, 200, chain.Code)
}

// TestMCP_Token: an owner's token writes, and a tool that needs a known author
// says so to everyone else.
func TestMCP_Token(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.hosted("asha")
	secret, _, err := h.Admin().CreateToken(t.Context(), "asha", "test", 0)
	require.NoError(t, err)
	bearer := []string{"Authorization", "Bearer " + secret}
	var p protocol.Post
	require.NoError(t, json.Unmarshal(h.tool("post_to_board", goodPost, bearer...).Structured, &p))
	require.Equal(t, protocol.BySession, p.Author.Method)
	args := fmt.Sprintf(`{"id":%q}`, p.ID)
	anonymous := h.tool("delete_post", args)
	require.Equal(t, protocol.Unauthorized, anonymous.Refused.Code)
	require.Equal(t, 200, anonymous.Code, "no credential was sent, so none failed")
	gone := h.tool("delete_post", args, bearer...)
	require.False(t, gone.IsError, "%s", gone.Body)
	require.JSONEq(t, `{}`, string(gone.Structured))
	require.Equal(t, protocol.Gone, h.tool("get_board_post", args).Refused.Code, "kept results end with a write")
}

func TestMCP_RateLimit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *Config) {
		c.Dev, c.AllowPrivatePeers = false, true
		c.ReadRate, c.WriteRate = 5, 1 // so low that a slow machine is faster
	})
	var last toolAnswer
	for range 60 {
		if last = h.tool("post_to_board", goodPost); last.Refused.Code == protocol.RateLimited {
			break
		}
		require.Equal(t, protocol.PowRequired, last.Refused.Code)
	}
	require.Equal(t, protocol.RateLimited, last.Refused.Code)
	require.Equal(t, 200, last.Code)
	require.Positive(t, last.Refused.RetryAfter)
	require.NotEmpty(t, last.Header().Get("Retry-After"))
	require.NotEmpty(t, last.Header().Get("RateLimit-Policy"))
	require.False(t, h.tool("site_map", `{}`).IsError, "reading still works")

	var list rpcAnswer
	for range 400 {
		if list = h.modern("tools/list", ""); list.Error != nil {
			break
		}
	}
	require.NotNil(t, list.Error)
	require.Equal(t, 429, list.Code)
	require.Equal(t, protocol.RateLimited, list.Error.Data.Code)
	require.NotEmpty(t, list.Header().Get("Retry-After"))
}

func TestMCP_HidesInternals(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", h.Base+protocol.MCPPath,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_board"}}`))
	r.Header.Set("Content-Type", "application/json")
	a := h.readTool(h.send(r))
	require.Equal(t, protocol.Internal, a.Refused.Code)
	require.NotContains(t, a.Body.String(), "sql")
	require.NotContains(t, a.Body.String(), "context")
	require.Equal(t, a.Header().Get("Request-Id"), a.Refused.Instance)
}

// TestMCP_OwnerNeedsCredential: a client without one may list the tools, and learns from the error of
// a tool, which clients show, that it needs one. They take a 401 for an offer of OAuth and give up.
func TestMCP_OwnerNeedsCredential(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.hosted("asha")
	for _, name := range []string{"get_own_profile", "put_need", "list_tokens"} {
		a := h.tool(name, `{}`)
		require.True(t, a.IsError, name)
		require.Equal(t, protocol.Unauthorized, a.Refused.Code, name)
		require.Equal(t, 200, a.Code, name)
		require.Empty(t, a.Header().Get("WWW-Authenticate"), name)
		wrong := h.tool(name, `{}`, "Authorization", "Bearer stoa_wrong")
		require.Equal(t, 401, wrong.Code, "%s: a token that is wrong is told to the transport", name)
		require.Equal(t, `Bearer realm="stoa"`, wrong.Header().Get("WWW-Authenticate"), name)
	}
	require.False(t, h.tool("get_own_profile", `{}`, "Authorization", "Bearer "+h.ownerToken("asha")).IsError)
	require.Equal(t, 200, h.modernAt(protocol.OwnerMCPPath, "tools/list", "").Code)
}
