package node_test

import (
	"context"
	"encoding/base64"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// signedFields are the headers of a signed request, in pairs.
func signedFields(h *nodetest.House, pair key.Pair, method, path, body string) []string {
	h.T.Helper()
	var fields []string
	for name, values := range h.Sign(h.Request(method, path, body), body, pair, httpsig.SignOptions{TTL: 4 * time.Minute}).Header {
		fields = append(fields, name, values[0])
	}
	return fields
}

// unverifiable is a signature of the same form that does not verify.
func unverifiable(fields []string) []string {
	out := append([]string{}, fields...)
	for i, name := range out {
		if name == "Signature" {
			out[i+1] = "sig1=:" + base64.StdEncoding.EncodeToString(make([]byte, 64)) + ":"
		}
	}
	return out
}

// watch counts the answers that came out of what a door keeps.
func watch(h *nodetest.House) *atomic.Int64 {
	var kept atomic.Int64
	before := h.Table.Observe
	h.Table.Observe = func(o hall.Observation) {
		if o.Kept {
			kept.Add(1)
		}
		before(o)
	}
	return &kept
}

// TestKept: a signed or token read of something public is served from the answers
// kept for everyone, whichever caller made them, once the caller is admitted and not before.
func TestKept(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		kept := watch(h)
		pair := h.Hosted("asha")
		secret, token, err := h.Admin().CreateToken(t.Context(), "asha", "t", 0)
		require.NoError(t, err)
		h.Post("Looms")
		const path = "/api/public/board?limit=5"
		const args = `{"limit":5}`
		call := nodetest.ModernBody("tools/call", `"name":"read_board","arguments":`+args)
		bearer := []string{"Authorization", "Bearer " + secret}
		signed := signedFields(h, pair, "GET", path, "")
		overMCP := func(headers ...string) nodetest.ToolAnswer { return h.Tool("read_board", args, headers...) }
		mcpSigned := signedFields(h, pair, "POST", protocol.MCPPath, call)

		require.Equal(t, 200, h.Ask("GET", "/api/public/about", "", bearer...).Code, "the first use of a token is noted, which is a commit")
		h.Ask("GET", "/api/public/about", "", signedFields(h, pair, "GET", "/api/public/about", "")...).Is(200) // that of a key too
		first := h.Ask("GET", path, "", signed...).Is(200)
		require.Zero(t, kept.Load())
		for name, headers := range map[string][]string{"nobody": nil, "signed": signed, "token": bearer} {
			before := kept.Load()
			a := h.Ask("GET", path, "", headers...)
			require.Equal(t, first.Body.String(), a.Body.String(), name)
			require.EqualValues(t, 1, kept.Load()-before, "%s: out of what the signed read left", name)
			public := a.Header().Get("Cache-Control") == "public, no-cache"
			require.Equal(t, headers == nil, public, "%s: no shared cache keeps what came with a credential", name)
			require.Equal(t, first.Header().Get("ETag"), a.Header().Get("ETag"), name)
			require.Equal(t, 304, h.Ask("GET", path, "", append([]string{"If-None-Match", a.Header().Get("ETag")}, headers...)...).Code, name)
		}
		require.False(t, overMCP(mcpSigned...).IsError)
		for name, headers := range map[string][]string{"signed": mcpSigned, "token": bearer} {
			before := kept.Load()
			require.False(t, overMCP(headers...).IsError, name)
			require.EqualValues(t, 1, kept.Load()-before, "%s over MCP", name)
		}

		refused := func(why string, headers, mcpHeaders []string) {
			before := kept.Load()
			require.Equal(t, 401, h.Ask("GET", path, "", headers...).Code, why)
			if a := overMCP(mcpHeaders...); true {
				require.True(t, a.IsError, why)
				require.Equal(t, 401, a.Code, why)
			}
			require.Equal(t, before, kept.Load(), why)
		}
		require.Equal(t, 200, h.Ask("GET", path, "").Code, "an answer is kept")
		refused("a forged signature", unverifiable(signed), unverifiable(mcpSigned))
		refused("half a signature", []string{"Signature", "sig1=:AAAA:"}, []string{"Signature", "sig1=:AAAA:"})
		refused("a read token", []string{"Authorization", "Bearer " + protocol.ReadTokenPrefix + "x"},
			[]string{"Authorization", "Bearer " + protocol.ReadTokenPrefix + "x"})
		require.NoError(t, h.Admin().RevokeToken(t.Context(), token.ID))
		require.Equal(t, 200, h.Ask("GET", path, "").Code)
		refused("a revoked token", bearer, bearer)
		require.NoError(t, h.Admin().RetireKey(t.Context(), pair.Thumbprint()))
		require.Equal(t, 200, h.Ask("GET", path, "").Code)
		retired := h.Ask("GET", path, "", signed...)
		require.Equal(t, 200, retired.Code, "a retired key is one that nobody here knows")
		require.NotEmpty(t, retired.Header().Get("Accept-Signature"))
		require.False(t, overMCP(mcpSigned...).IsError)
	})
}

// TestKept_Home: the home page is kept in each of its forms.
func TestKept_Home(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	var asked atomic.Int64
	before := h.Table.Observe
	h.Table.Observe = func(o hall.Observation) {
		asked.Add(1)
		before(o)
	}
	for _, accept := range []string{"", "*/*", "text/html", "text/markdown"} {
		first := h.Ask("GET", "/", "", "Accept", accept).Is(200)
		var again nodetest.Answer
		require.Eventually(t, func() bool { // within the second for which it is kept
			n := asked.Load()
			again = h.Ask("GET", "/", "", "Accept", accept)
			return asked.Load() == n
		}, time.Minute, time.Millisecond, "%q: the second time no operation is asked", accept)
		require.Equal(t, first.Body.String(), again.Body.String(), accept)
		for _, name := range []string{"Link", "Etag", "Cache-Control", "Content-Type", "Content-Length", "Vary"} {
			require.Equal(t, first.Header().Values(name), again.Header().Values(name), name)
		}
		require.Equal(t, 304, h.Ask("GET", "/", "", "Accept", accept, "If-None-Match", first.Header().Get("Etag")).Code)
	}
	h.Post("Looms")
	require.Contains(t, h.Ask("GET", "/", "", "Accept", "text/html").Body.String(), "Looms", "a commit ends it")
}

// TestKept_Own: what a caller alone may read is kept for nobody, and what is kept
// for everyone ends with the commit that hides it. Its author reads why it is hidden (contract §4), and deletes it.
func TestKept_Own(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	pair := h.Hosted("asha")
	other := h.Hosted("ravi")
	secret := h.OwnerToken("asha")
	bearer := []string{"Authorization", "Bearer " + secret}
	p := nodetest.As[protocol.Post](h.Signed(pair, nodetest.GoodPost, nil))
	path := "/api/public/board/" + p.ID
	args := `{"id":"` + p.ID + `"}`
	signed, foreign := signedFields(h, pair, "GET", path, ""), signedFields(h, other, "GET", path, "")
	for _, headers := range [][]string{nil, signed, bearer, foreign} {
		require.Equal(t, 200, h.Ask("GET", path, "", headers...).Code)
	}
	require.NoError(t, h.Admin().Operate(t.Context(), protocol.HidePost.Operation, protocol.Decision{ID: p.ID, Reason: "spam"}, nil))
	for range 2 { // and again, out of whatever the first round left
		for _, headers := range [][]string{signed, bearer} {
			a := h.Ask("GET", path, "", headers...).Is(200)
			own := nodetest.As[protocol.PostWithReplies](a)
			require.Equal(t, []any{protocol.Hidden, "operator: spam"}, []any{own.State, *own.Reason})
			require.Equal(t, "private, no-cache", a.Header().Get("Cache-Control"))
		}
		require.Equal(t, protocol.Gone, h.Ask("GET", path, "").Problem().Code)
		require.Equal(t, protocol.Gone, h.Ask("GET", path, "", foreign...).Problem().Code)
		require.False(t, h.Tool("get_board_post", args, bearer...).IsError)
		require.Equal(t, protocol.Gone, h.Tool("get_board_post", args).Refused.Code)
	}
	h.Ask("DELETE", path, "", bearer...).Is(204)
	require.Equal(t, protocol.Gone, h.Ask("GET", path, "", bearer...).Problem().Code)
}

// TestKept_Body: input that is no part of an address changes nothing for others.
func TestKept_Body(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Post("Looms")
	h.Post("Paper")
	for _, path := range []string{"/api/public/board", "/api/public/feed"} {
		require.Equal(t, 200, h.Ask("GET", path, `{"limit":1}`).Code)
		require.Contains(t, h.Ask("GET", path, "").Body.String(), "Looms", path)
	}
}

// TestKept_Everybodys: of every operation whose answers are kept, what is answered
// to nobody is answered to everyone.
func TestKept_Everybodys(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	h.TakeBids("asha")
	h.Post("Looms")
	p := h.Post("Paper")
	callers := map[string]protocol.Caller{
		"owner":    {Standing: protocol.Session, Handle: "asha", Handles: []string{"asha"}, Network: "n"},
		"signed":   {Standing: protocol.Signed, Handle: "asha", KeyID: "k", Network: "n"},
		"chain":    {Standing: protocol.Signed, Agent: "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:1", Owner: "0xa", KeyID: "k", Network: "n"},
		"operator": {Standing: protocol.Operator, Network: "n"},
	}
	inputs := map[string]string{ // which are answered; others are the examples
		"get_board_post": `{"id":"` + p.ID + `"}`, "get_agent_profile": `{"handle":"asha"}`, "get_meeting_info": `{"handle":"asha"}`,
		"read_attention_board": `{"handle":"asha"}`, "check_bid": `{"handle":"asha","amount":700}`,
	}
	n := 0
	for _, op := range protocol.Operations() {
		if !hall.Open(op) {
			continue
		}
		n++
		input, given := inputs[op.Name]
		if !given {
			input = string(nodetest.Encoded(op.Example))
		}
		ask := func(c protocol.Caller) (string, error) {
			res, err := h.Table.Invoke(context.Background(), hall.Request{Op: op.Name, Args: []byte(input), Caller: &c})
			return times.ReplaceAllString(string(res.JSON), "TIME"), err // check_bid says when it was made
		}
		nobody, err := ask(protocol.Caller{Network: "n"})
		if err != nil && (given || protocol.CodeOf(err) != protocol.NotFound) { // an example may name what is not there
			require.NoError(t, err, op.Name)
		}
		for name, c := range callers {
			known, again := ask(c)
			require.Equal(t, nobody, known, "%s for %s", op.Name, name)
			require.Equal(t, protocol.CodeOf(err), protocol.CodeOf(again), "%s for %s", op.Name, name)
		}
	}
	require.Greater(t, n, 8)
}
