package node_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// restart ends the process of a house and starts another one, which remembers nothing that
// is not in the database.
func restart(h *nodetest.House, change ...func(*node.Config)) {
	h.T.Helper()
	require.NoError(h.T, h.Close())
	h.Node = nodetest.New(h.T, append(change, h.Deployment)...).Node
}

func TestDoor_BadInput(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	long := strings.Repeat("x", 70<<10)
	tests := []struct {
		name, method, path, body string
		headers                  []string
		code                     protocol.Code
		pointers                 []string
	}{
		{name: "not JSON", body: `{"kind":`, code: protocol.InvalidRequest},
		{name: "a list", body: `[]`, code: protocol.InvalidRequest},
		{name: "null", body: `null`, code: protocol.InvalidRequest},
		{name: "member twice", body: `{"kind":"offer","kind":"offer","title":"a","body":"b"}`, code: protocol.InvalidRequest},
		{name: "text behind", body: nodetest.GoodPost + `{}`, code: protocol.InvalidRequest},
		{name: "deep", body: `{"tags":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, code: protocol.InvalidRequest},
		{name: "not UTF-8", body: "{\"kind\":\"offer\",\"title\":\"\xff\",\"body\":\"b\"}", code: protocol.InvalidRequest},
		{name: "a number beyond all", body: `{"title":1e400}`, code: protocol.InvalidRequest},
		{name: "too large", body: `{"body":"` + long + `"}`, code: protocol.TooLarge},
		{name: "media type", body: nodetest.GoodPost, headers: []string{"Content-Type", "text/plain"}, code: protocol.UnsupportedMediaType},
		{name: "encoded", body: nodetest.GoodPost, headers: []string{"Content-Encoding", "gzip"}, code: protocol.UnsupportedMediaType},
		{name: "all faults at once", body: `{"kind":"rumour","title":"","titel":"x","tags":["Bad Tag","ok"],"inReplyTo":"7"}`, code: protocol.Validation,
			pointers: []string{"/body", "/inReplyTo", "/kind", "/tags/0", "/titel", "/title"}},
		{name: "faults of both kinds", body: `{"kind":"rumour","title":"two\nlines","body":7,"tags":["\u263a","Bad Tag"]}`, code: protocol.Validation,
			pointers: []string{"/body", "/kind", "/tags/0", "/tags/1", "/title"}},
		{name: "more than is looked at", body: `{"kind":"offer","title":"` + strings.Repeat("x", 200) + `","body":"b","tags":["\u263a"]}`,
			code: protocol.Validation, pointers: []string{"/title"}},
		{name: "faults of both kinds in a query", path: "/api/public/agents?region=ZZ&kind=robot", code: protocol.Validation,
			pointers: []string{"/kind", "/region"}},
		{name: "wrong case", body: `{"Kind":"offer","title":"a","body":"b"}`, code: protocol.Validation, pointers: []string{"/Kind", "/kind"}},
		{name: "wrong types", body: `{"kind":1,"title":{},"body":[],"tags":"a"}`, code: protocol.Validation,
			pointers: []string{"/body", "/kind", "/tags", "/title"}},
		{name: "objects where tags are", body: `{"kind":"offer","title":"a","body":"b","tags":[{},{}]}`, code: protocol.Validation},
		{name: "repeated tags", body: `{"kind":"offer","title":"a","body":"b","tags":["a","a"]}`, code: protocol.Validation, pointers: []string{"/tags"}},
		{name: "override characters", body: `{"kind":"offer","title":"a\u202eb","body":"b\u0007"}`,
			code: protocol.Validation, pointers: []string{"/body", "/title"}},
		{name: "two lines", body: `{"kind":"offer","title":"a\nb","body":"two\nlines"}`, code: protocol.Validation, pointers: []string{"/title"}},
		{name: "reply to nothing", body: `{"kind":"offer","title":"a","body":"b","inReplyTo":"post_01k9y3v6k8e5w9q2x4z7c1m0ad"}`,
			code: protocol.Validation, pointers: []string{"/inReplyTo"}},
		{name: "unknown parameter", path: "/api/public/board?autor=asha", code: protocol.Validation, pointers: []string{"/autor"}},
		{name: "parameter twice", path: "/api/public/board?tag=a&tag=b", code: protocol.Validation, pointers: []string{"/tag"}},
		{name: "query encoding", path: "/api/public/board?q=%zz", code: protocol.InvalidRequest},
		{name: "purpose", path: "/api/public/pow?purpose=fun", code: protocol.Validation, pointers: []string{"/purpose"}},
		{name: "not a handle", path: "/api/public/agents/No%20body", code: protocol.Validation, pointers: []string{"/handle"}},
		{name: "no such path", path: "/api/public/nothing", code: protocol.NotFound},
		{name: "no such method", method: "DELETE", path: "/api/public/feed", code: protocol.MethodNotAllowed},
		{name: "encoded slash", path: "/api/public/agents/a%2fb", code: protocol.InvalidRequest},
		{name: "delete without a name", method: "DELETE", path: "/api/public/board/post_01k9y3v6k8e5w9q2x4z7c1m0ad", code: protocol.Unauthorized},
		{name: "unknown token", body: nodetest.GoodPost, headers: []string{"Authorization", "Bearer stoa_nothing"}, code: protocol.Unauthorized},
		{name: "idempotency key", body: nodetest.GoodPost, headers: []string{"Idempotency-Key", "two words"}, code: protocol.Validation},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			method, headers := cmp.Or(tt.method, "GET"), tt.headers
			if tt.path == "" {
				method, tt.path, headers = "POST", "/api/public/board", append([]string{"Proof-Of-Work", h.Proof("board")}, headers...)
			}
			p := h.Ask(method, tt.path, tt.body, headers...).Problem()
			require.Equal(t, tt.code, p.Code, "%+v", p)
			require.Equal(t, tt.code.Status(), p.Status)
			if tt.pointers != nil {
				require.ElementsMatch(t, tt.pointers, nodetest.Pointers(p.Errors))
			}
		})
	}
	page := nodetest.As[protocol.Page[protocol.Post]](h.Ask("GET", "/api/public/board", ""))
	require.Empty(t, page.Items, "nothing of this was stored")
}

// A whole number may be written in any of the ways that JSON has for it.
func TestDoor_WholeNumbers(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	tried := 0
	for _, op := range protocol.OperationsFor(protocol.Everybody, protocol.MCP) {
		if _, paged := op.In.FieldByName("Limit"); !paged || !op.ReadOnly || op.Private() || op.Access != protocol.Anonymous {
			continue
		}
		tried++
		args := func(limit string) string {
			return with(string(nodetest.Encoded(op.Example)), "limit", json.RawMessage(limit))
		}
		want := h.Tool(op.Name, args("20"))
		for _, limit := range []string{"20.0", "2e1", "200E-1"} {
			got := h.Tool(op.Name, args(limit))
			require.Equal(t, want.Refused.Code, got.Refused.Code, "%s with limit %s", op.Name, limit)
			require.Equal(t, string(want.Structured), string(got.Structured), "%s with limit %s", op.Name, limit)
		}
		for _, limit := range []string{"20.5", "1001.0", "0.0", "1e17"} {
			require.Contains(t, nodetest.Pointers(h.Tool(op.Name, args(limit)).Refused.Errors), "/limit", "%s with limit %s", op.Name, limit)
		}
		require.Equal(t, protocol.InvalidRequest, h.Tool(op.Name, args("20"+strings.Repeat("0", 400))).Refused.Code, op.Name)
	}
	require.GreaterOrEqual(t, tried, 6)
}

func TestDoor_ProofOfWork(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	p := h.Ask("POST", "/api/public/board", nodetest.GoodPost).Problem()
	require.Equal(t, protocol.PowRequired, p.Code)
	require.NotNil(t, p.Challenge, "a fresh challenge saves a round trip")

	proof := h.Proof("contact")
	bad := h.Ask("POST", "/api/public/board", `{"kind":"offer","title":"","body":"b"}`, "Proof-Of-Work", proof)
	require.Equal(t, protocol.Validation, bad.Problem().Code)
	good := h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", proof)
	require.Equal(t, 201, good.Code, "a typing mistake does not burn the work: %s", good.Body)
	spent := h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", proof).Problem()
	require.Equal(t, protocol.PowSpent, spent.Code)
	require.NotNil(t, spent.Challenge)

	require.Equal(t, protocol.PowInvalid, h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", h.Proof("report")).Problem().Code)
}

func TestDoor_Idempotency(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	key := []string{"Idempotency-Key", "abc-1", "Proof-Of-Work", h.Proof("board")}
	first := h.Ask("POST", "/api/public/board", nodetest.GoodPost, key...).Is(201)
	again := h.Ask("POST", "/api/public/board", nodetest.GoodPost, key...)
	require.Equal(t, 201, again.Code, "the same proof, since nothing is spent twice: %s", again.Body)
	require.Equal(t, first.Body.String(), again.Body.String())
	require.Equal(t, "true", again.Header().Get("Idempotency-Replayed"))
	other := h.Ask("POST", "/api/public/board", `{"kind":"offer","title":"Other","body":"b"}`, "Idempotency-Key", "abc-1", "Proof-Of-Work", h.Proof("board"))
	require.Equal(t, protocol.Conflict, other.Problem().Code)
	page := nodetest.As[protocol.Page[protocol.Post]](h.Ask("GET", "/api/public/board", ""))
	require.Len(t, page.Items, 1)
}

func TestDoor_ConditionalReads(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Post("First")
	first := h.Ask("GET", "/api/public/board", "")
	tag := first.Header().Get("ETag")
	require.True(t, strings.HasPrefix(tag, `"`), "a strong validator: %s", tag)
	require.Equal(t, "public, no-cache", first.Header().Get("Cache-Control"))
	same := h.Ask("GET", "/api/public/board", "", "If-None-Match", tag).Is(304)
	require.Empty(t, same.Body.Bytes())
	h.Post("Second")
	changed := h.Ask("GET", "/api/public/board", "", "If-None-Match", tag)
	require.Equal(t, 200, changed.Code, "a write shows at once")
	require.NotEqual(t, tag, changed.Header().Get("ETag"))
	require.Equal(t, "no-store", h.Ask("GET", "/api/public/pow?purpose=contact", "").Header().Get("Cache-Control"))
	head := h.Ask("HEAD", "/api/public/board", "").Is(200)
	require.Equal(t, changed.Header().Get("ETag"), head.Header().Get("ETag"))
}

// Whatever is compressed says so to caches and can be validated in the form in
// which it was taken (RFC 9110 §8.8.3.3, §12.5.5). Browsers prefer zstd.
func TestDoor_Compressed(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Agent("asha", nodetest.OpenPolicy)
	for range 3 {
		h.Post(strings.Repeat("Paper ", 20))
	}
	for path, other := range map[string]string{
		"/openapi.json": "", "/llms.txt": "", "/api/public/board": "", "/board": "Accept", "/board.atom": "",
		"/a2a/asha/agent-card.json": "A2A-Version", "/ap/agents/asha": "Accept",
	} {
		for _, coding := range []string{"gzip", "zstd"} {
			ask := func(more ...string) nodetest.Answer {
				return h.Ask("GET", path, "", append([]string{"Accept", nodetest.Accept, "Accept-Encoding", coding}, more...)...)
			}
			a := ask()
			require.Equal(t, 200, a.Code, path)
			require.Equal(t, coding, a.Header().Get("Content-Encoding"), path)
			vary := strings.Join(a.Header().Values("Vary"), ", ")
			require.Contains(t, vary, "Accept-Encoding", path)
			require.Contains(t, vary, other, path)
			require.Contains(t, a.Header().Get("ETag"), "-"+coding, "other bytes have another tag")
			same := ask("If-None-Match", a.Header().Get("ETag"))
			require.Equal(t, 304, same.Code, "%s in %s", path, coding)
			require.Empty(t, same.Body.Bytes())
		}
	}
}

// Models read the bytes of an error, so < and > are not escaped as for HTML.
func TestDoor_ErrorsAsTheyCome(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	over := h.Ask("GET", "/api/public/board?limit=101", "").Is(422)
	require.Contains(t, over.Body.String(), "must be <= 100")
	tool := h.Ask("POST", protocol.MCPPath, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_board","arguments":{"limit":101}}}`)
	require.Contains(t, tool.Body.String(), "must be <= 100")
	require.Contains(t, tool.Body.String(), `"isError":true`)
}

// A path with a slash too many is sent to the right one with its method and body.
func TestDoor_Slashes(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for _, tt := range []struct{ method, path, location string }{
		{"POST", "/api/public/board/", "/api/public/board"},
		{"POST", "/mcp/public/", "/mcp/public"},
		{"DELETE", "/api/public/board/post_01k9y3v6k8e5w9q2x4z7c1m0ad/", "/api/public/board/post_01k9y3v6k8e5w9q2x4z7c1m0ad"},
		{"GET", "/board/?kind=offer", "/board?kind=offer"},
		{"GET", "/api//public/board", "/api/public/board"},
	} {
		a := h.Ask(tt.method, tt.path, "")
		require.Equal(t, 308, a.Code, tt.path)
		require.Equal(t, tt.location, a.Header().Get("Location"))
		require.Equal(t, "*", a.Header().Get("Access-Control-Allow-Origin"))
	}
	require.Equal(t, 404, h.Ask("GET", "//evil.example/", "").Code)
	owners := h.Ask("GET", "/api/owner/profile/", "").Is(308)
	require.Empty(t, owners.Header().Get("Access-Control-Allow-Origin"))
}

func TestDoor_CORSAndMethods(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	preflight := h.Ask("OPTIONS", "/api/public/board", "", "Origin", "https://elsewhere.example", "Access-Control-Request-Method", "POST").Is(204)
	require.Equal(t, "*", preflight.Header().Get("Access-Control-Allow-Origin"))
	require.Empty(t, preflight.Header().Get("Access-Control-Allow-Credentials"))
	require.Contains(t, preflight.Header().Get("Access-Control-Allow-Headers"), "Signature-Input")
	refused := h.Ask("PUT", "/api/public/board", nodetest.GoodPost).Is(405)
	require.Equal(t, "GET, HEAD, POST", refused.Header().Get("Allow"))
	owner := h.Ask("OPTIONS", "/api/owner/profile", "", "Origin", "https://elsewhere.example")
	require.Empty(t, owner.Header().Get("Access-Control-Allow-Origin"))
	for _, path := range []string{
		"/api/public/board", "/api/public/agents/nobody", "/api/public/none", "/feed.json?types=gossip", "/openapi.json", "/.well-known/api-catalog",
		"/.well-known/agent-card.json",
	} {
		a := h.Ask("GET", path, "")
		require.Equal(t, "*", a.Header().Get("Access-Control-Allow-Origin"), "%s: errors are for every origin too", path)
		if path != "/api/public/none" {
			require.Contains(t, a.Header().Get("Access-Control-Expose-Headers"), "ETag", path)
		}
	}
	for _, path := range []string{"/api/owner/none", "/api/operator/none", "/api/owner/profile"} {
		require.Empty(t, h.Ask("PATCH", path, "").Header().Get("Access-Control-Allow-Origin"), path)
	}
}

func TestDoor_RateLimit(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) { c.Dev, c.AllowPrivatePeers, c.WriteRate = false, true, 0.5 })
	var last nodetest.Answer
	for range 60 {
		if last = h.Ask("POST", "/api/public/board", nodetest.GoodPost); last.Code == 429 {
			break
		}
		require.Equal(t, 401, last.Code)
	}
	require.Equal(t, protocol.RateLimited, last.Problem().Code)
	require.NotEmpty(t, last.Header().Get("Retry-After"))
	require.NotEmpty(t, last.Header().Get("RateLimit-Policy"))
	require.Equal(t, 200, h.Ask("GET", "/api/public/board", "").Code, "reading still works")
}

func TestDoor_HidesInternals(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := h.Serve(h.Request("GET", "/api/public/board?limit=3", "").WithContext(ctx)).Is(http.StatusInternalServerError)
	require.NotContains(t, strings.ToLower(w.Body.String()), "sql")
	require.NotContains(t, w.Body.String(), "context")
}

// FuzzDoor throws requests at every operation: no 5xx, no panic, and every
// refusal is a problem document.
func FuzzDoor(f *testing.F) {
	for i, op := range protocol.Operations() {
		body := must.Get(json.Marshal(op.Example))(f)
		f.Add(uint8(i), body, "limit=1", "x")
		f.Add(uint8(i), []byte(`{"pow":{"challenge":{}},"kind":[]}`), "after=YQ&limit=1e9", "%")
		f.Add(uint8(i), []byte("{\"a\":1,\"a\":2}"), "q=%22%27-*&tag=a", "post_01k9y3v6k8e5w9q2x4z7c1m0ad")
	}
	h := nodetest.New(f)
	operations := protocol.Operations()
	f.Fuzz(func(t *testing.T, which uint8, body []byte, query, param string) {
		op := operations[int(which)%len(operations)]
		r := httptest.NewRequest(op.HTTP.Method, h.Base+"/x", bytes.NewReader(body))
		path := op.HTTP.Path
		for _, name := range []string{"handle", "id"} {
			path = strings.ReplaceAll(path, "{"+name+"}", strings.Map(printable, param))
		}
		r.URL.Path, r.URL.RawQuery = path, query
		r.RequestURI = r.URL.EscapedPath()
		if query != "" {
			r.RequestURI += "?" + strings.Map(printable, query)
		}
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		require.Less(t, w.Code, 500, "%s %s: %s", op.Name, body, w.Body)
		if w.Code >= 400 {
			require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
			require.True(t, json.Valid(w.Body.Bytes()))
		}
	})
}

func printable(r rune) rune {
	if r <= ' ' || r >= 0x7f {
		return 'x'
	}
	return r
}
