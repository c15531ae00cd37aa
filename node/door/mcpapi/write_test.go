package mcpapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/protocol/pow"
)

// TestMCP_ProofOfWork: without a proof the caller gets a challenge and is told
// what to do with it; the same call with the solution succeeds, once.
func TestMCP_ProofOfWork(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	refused := h.Tool("post_to_board", nodetest.GoodPost)
	require.True(t, refused.IsError)
	require.Equal(t, 200, refused.Code, "a refusal is a result, so that the model sees it")
	require.Equal(t, protocol.PowRequired, refused.Refused.Code)
	require.NotNil(t, refused.Refused.Challenge)
	require.Contains(t, refused.Refused.How, "PBKDF2")
	require.Contains(t, refused.Refused.Retry, "pow")
	require.Empty(t, refused.Header().Get("WWW-Authenticate"))

	solution := must.Get(pow.Solve(t.Context(), *refused.Refused.Challenge))(t)
	bad := h.Tool("post_to_board", nodetest.WithProof(t, `{"kind":"offer","title":"","body":"b"}`, solution))
	require.Equal(t, protocol.Validation, bad.Refused.Code)
	require.Equal(t, []string{"/title"}, nodetest.Pointers(bad.Refused.Errors))
	good := h.Tool("post_to_board", nodetest.WithProof(t, nodetest.GoodPost, solution))
	require.False(t, good.IsError, "a typing mistake does not burn the work: %s", good.Body)
	p := must.JSON[protocol.Post](good.Structured)(t)
	require.Equal(t, protocol.ByProof, p.Author.Method)
	require.Equal(t, p, nodetest.As[protocol.PostWithReplies](h.Ask("GET", "/api/public/board/"+p.ID, "")).Post)

	spent := h.Tool("post_to_board", nodetest.WithProof(t, nodetest.GoodPost, solution))
	require.Equal(t, protocol.PowSpent, spent.Refused.Code)
	require.NotNil(t, spent.Refused.Challenge)
	require.False(t, h.Tool("post_to_board", nodetest.WithProof(t, nodetest.GoodPost, h.Proof("contact"))).IsError, "as base64 too")
	require.False(t, h.Tool("post_to_board", nodetest.GoodPost, "Proof-Of-Work", h.Proof("board")).IsError, "and in the header")
	require.Equal(t, protocol.PowInvalid, h.Tool("post_to_board", nodetest.WithProof(t, nodetest.GoodPost, h.Proof("report"))).Refused.Code)
	require.Equal(t, protocol.PowInvalid, h.Tool("post_to_board", nodetest.WithProof(t, nodetest.GoodPost, 7)).Refused.Code)

	challenge := h.Tool("get_challenge", `{"purpose":"board"}`)
	c := must.JSON[pow.Challenge](challenge.Structured)(t)
	again := h.Tool("get_challenge", `{"purpose":"board"}`)
	require.NotEqual(t, string(challenge.Structured), string(again.Structured), "a challenge is never kept")
	solution = must.Get(pow.Solve(t.Context(), c))(t)
	require.False(t, h.ReadTool(callMCP(h, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"post_to_board","arguments":%s}}`,
		nodetest.WithProof(t, nodetest.GoodPost, solution)))).IsError, "on the older wire as well")
}

func TestMCP_Idempotency(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	first := h.Tool("post_to_board", nodetest.WithProof(t, nodetest.GoodPost, h.Proof("board")), "Idempotency-Key", "k-1")
	require.False(t, first.IsError)
	again := h.Tool("post_to_board", nodetest.WithProof(t, nodetest.GoodPost, h.Proof("board")), "Idempotency-Key", "k-1")
	require.Equal(t, "true", again.Header().Get("Idempotency-Replayed"))
	require.JSONEq(t, string(first.Structured), string(again.Structured))
	overHTTP := h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", h.Proof("board"), "Idempotency-Key", "k-1")
	require.JSONEq(t, string(first.Structured), overHTTP.Body.String(), "the doors lead to one hall")
	other := h.Tool("post_to_board", nodetest.WithProof(t, `{"kind":"offer","title":"Other","body":"b"}`, h.Proof("board")), "Idempotency-Key", "k-1")
	require.Equal(t, protocol.Conflict, other.Refused.Code)
	post := nodetest.WithProof(t, nodetest.GoodPost, h.Proof("board"))
	require.Equal(t, protocol.Validation, h.Tool("post_to_board", post, "Idempotency-Key", "two words").Refused.Code)
}

// TestMCP_Signed: the signature of the HTTP request names the writer, and a
// broken one is refused on the transport and never taken as anonymous.
func TestMCP_Signed(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	pair := h.Hosted("asha")
	done := h.ReadTool(h.SignedTool(pair, "post_to_board", nodetest.GoodPost, nil))
	require.False(t, done.IsError, "%s", done.Body)
	p := must.JSON[protocol.Post](done.Structured)(t)
	require.True(t, p.Author.Verified)
	require.Equal(t, protocol.BySignature, p.Author.Method)
	require.Equal(t, "asha", *p.Author.Handle)
	require.Equal(t, pair.Thumbprint(), *p.Author.KeyID)
	require.Equal(t, protocol.ByProfileKey, p.Author.Proof.Level)
	require.False(t, h.ReadTool(h.SignedTool(pair, "read_board", `{}`, nil)).IsError)

	same := func(_ *http.Request, o *httpsig.SignOptions) { o.Nonce = "the-same-nonce-again" }
	require.False(t, h.ReadTool(h.SignedTool(pair, "post_to_board", nodetest.GoodPost, same)).IsError)
	changed, body := h.SignTool(pair, "post_to_board", nodetest.GoodPost, nil)
	body = bytes.Replace(body, []byte("Looms"), []byte("Looks"), 1)
	changed.Body = io.NopCloser(bytes.NewReader(body))
	stranger := must.Get(key.GenerateEd25519())(t)
	proven := nodetest.WithProof(t, nodetest.GoodPost, h.Proof("board"))
	for _, tt := range []struct {
		name string
		code protocol.Code
		got  nodetest.RPCAnswer
	}{
		{"replayed", protocol.SignatureReplayed, h.SignedTool(pair, "post_to_board", nodetest.GoodPost, same)},
		{"body changed", protocol.SignatureInvalid, h.SendSigned(changed)},
		{"unknown key", protocol.KeyUnknown, h.SignedTool(stranger, "post_to_board", nodetest.GoodPost, nil)},
		{"a proof beside it", protocol.KeyUnknown, h.SignedTool(stranger, "post_to_board", proven, nil)},
		{"half a signature", protocol.SignatureInvalid, h.Modern("tools/call", `"name":"post_to_board","arguments":`+proven, "Mcp-Name", "post_to_board",
			"Signature", "sig1=:AAAA:")},
		{"unknown token", protocol.Unauthorized, h.Modern("tools/call", `"name":"post_to_board","arguments":`+proven, "Mcp-Name", "post_to_board",
			"Authorization", "Bearer stoa_nothing")},
	} {
		a := h.ReadTool(tt.got)
		require.True(t, a.IsError, tt.name)
		require.Equal(t, tt.code, a.Refused.Code, "%s: %s", tt.name, a.Body)
		require.Equal(t, 401, a.Code, "%s: a credential that fails is refused on the transport", tt.name)
		if tt.code != protocol.Unauthorized {
			require.NotEmpty(t, a.Header().Get("Signature-Error"), tt.name)
		}
		require.Contains(t, a.Header().Get("Accept-Signature"), "content-digest", tt.name)
		require.NotEmpty(t, a.Header().Get("WWW-Authenticate"), tt.name)
	}
	open := h.SignedTool(stranger, "read_board", `{}`, nil)
	require.False(t, h.ReadTool(open).IsError, "on a read, a key that nobody here knows counts as none")
	require.Contains(t, open.Header().Get("Accept-Signature"), "content-digest")
	forged, _ := h.SignTool(pair, "read_board", `{}`, nil)
	forged.Header.Set("Signature", "sig1=:"+base64.StdEncoding.EncodeToString(make([]byte, 64))+":")
	require.Equal(t, protocol.SignatureInvalid, h.ReadTool(h.SendSigned(forged)).Refused.Code, "a forged one does not")
	require.Len(t, nodetest.As[protocol.Page[protocol.Post]](h.Ask("GET", "/api/public/board", "")).Items, 2, "nothing of this was stored")

	chain := h.ReadTool(h.SignedTool(pair, "post_to_board", nodetest.GoodPost, func(r *http.Request, _ *httpsig.SignOptions) {
		r.Header.Set("Agent-Identity", "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:1")
	}))
	require.Equal(t, protocol.IdentityUnverified, chain.Refused.Code)
	require.Equal(t, 200, chain.Code)
}

// TestMCP_Token: an owner's token writes, and a tool that needs a known author
// says so to everyone else.
func TestMCP_Token(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	secret := h.TokenOf("asha", "test")
	bearer := []string{"Authorization", "Bearer " + secret}
	p := must.JSON[protocol.Post](h.Tool("post_to_board", nodetest.GoodPost, bearer...).Structured)(t)
	require.Equal(t, protocol.BySession, p.Author.Method)
	args := fmt.Sprintf(`{"id":%q}`, p.ID)
	anonymous := h.Tool("delete_post", args)
	require.Equal(t, protocol.Unauthorized, anonymous.Refused.Code)
	require.Equal(t, 200, anonymous.Code, "no credential was sent, so none failed")
	gone := h.Tool("delete_post", args, bearer...)
	require.False(t, gone.IsError, "%s", gone.Body)
	require.JSONEq(t, `{}`, string(gone.Structured))
	require.Equal(t, protocol.Gone, h.Tool("get_board_post", args).Refused.Code, "kept results end with a write")
}

func TestMCP_RateLimit(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) {
		c.Dev, c.AllowPrivatePeers = false, true
		c.ReadRate, c.WriteRate = 5, 1 // so low that a slow machine is faster
	})
	var last nodetest.ToolAnswer
	for range 60 {
		if last = h.Tool("post_to_board", nodetest.GoodPost); last.Refused.Code == protocol.RateLimited {
			break
		}
		require.Equal(t, protocol.PowRequired, last.Refused.Code)
	}
	require.Equal(t, protocol.RateLimited, last.Refused.Code)
	require.Equal(t, 200, last.Code)
	require.Positive(t, last.Refused.RetryAfter)
	require.NotEmpty(t, last.Header().Get("Retry-After"))
	require.NotEmpty(t, last.Header().Get("RateLimit-Policy"))
	require.False(t, h.Tool("site_map", `{}`).IsError, "reading still works")

	var list nodetest.RPCAnswer
	for range 400 {
		if list = h.Modern("tools/list", ""); list.Error != nil {
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
	h := nodetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", h.Base+protocol.MCPPath,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_board"}}`))
	r.Header.Set("Content-Type", "application/json")
	a := h.ReadTool(h.SendSigned(r))
	require.Equal(t, protocol.Internal, a.Refused.Code)
	require.NotContains(t, a.Body.String(), "sql")
	require.NotContains(t, a.Body.String(), "context")
	require.Equal(t, a.Header().Get("Request-Id"), a.Refused.Instance)
}

// TestMCP_OwnerNeedsCredential: a client without one is told by every answer where to get one, and one whose token allows too little, what it lacks.
func TestMCP_OwnerNeedsCredential(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	for _, name := range []string{"get_own_profile", "put_need", "list_tokens"} {
		a := h.Tool(name, `{}`)
		require.True(t, a.IsError, name)
		require.Equal(t, protocol.Unauthorized, a.Refused.Code, name)
		require.Equal(t, 401, a.Code, name)
		metadata := `resource_metadata="` + h.Base + protocol.OAuthOwnerMCPPath + `"`
		require.Contains(t, a.Header().Get("WWW-Authenticate"), metadata, name)
		require.NotContains(t, a.Header().Get("WWW-Authenticate"), "error=", name)
		wrong := h.Tool(name, `{}`, "Authorization", "Bearer stoa_wrong")
		require.Equal(t, 401, wrong.Code, "%s: a token that is wrong is told to the transport", name)
		require.Contains(t, wrong.Header().Get("WWW-Authenticate"), metadata, name)
		require.Contains(t, wrong.Header().Get("WWW-Authenticate"), `error="invalid_token"`, name)
	}
	require.False(t, h.Tool("get_own_profile", `{}`, "Authorization", "Bearer "+h.OwnerToken("asha")).IsError)
	for _, method := range []string{"tools/list", "server/discover"} {
		require.Equal(t, 401, h.ModernAt(protocol.OwnerMCPPath, method, "").Code)
	}
}

// TestMCP_Elicits: a client that shows links by itself gets the link of a write without a proof that way, and the result with the same call when a
// person has pressed. A state that was made up is refused.
func TestMCP_Elicits(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	call := func(more string) nodetest.RPCAnswer {
		body := strings.Replace(nodetest.ModernBody("tools/call", `"name":"post_to_board","arguments":`+nodetest.GoodPost+more), `clientCapabilities":{}`,
			`clientCapabilities":{"elicitation":{"url":{}}}`, 1)
		return h.RPCAt(protocol.MCPPath, body, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "post_to_board")
	}
	var asks struct {
		ResultType, RequestState string
		InputRequests            struct {
			Confirm struct {
				Method string
				Params struct{ Mode, URL string }
			}
		}
	}
	require.NoError(t, json.Unmarshal(call("").Result, &asks))
	require.Equal(t, "input_required", asks.ResultType)
	require.Equal(t, "elicitation/create", asks.InputRequests.Confirm.Method)
	require.Equal(t, "url", asks.InputRequests.Confirm.Params.Mode)
	again := `,"inputResponses":{"confirm":{"action":"accept"}},"requestState":"` + asks.RequestState + `"`
	waits := h.ReadTool(call(again))
	require.True(t, waits.IsError, "that it was opened is no press")
	require.Equal(t, protocol.PowRequired, waits.Refused.Code)
	h.SendForm(strings.TrimPrefix(asks.InputRequests.Confirm.Params.URL, h.Base), url.Values{"do": {"yes"}, "altcha": {h.Proof("board")}}).Is(200)
	require.False(t, h.ReadTool(call(again)).IsError)
	require.Equal(t, protocol.Gone, h.ReadTool(call(`,"requestState":"made up"`)).Refused.Code)
	require.EqualValues(t, -32602, call(`,"requestState":7`).Error.Code)
}
