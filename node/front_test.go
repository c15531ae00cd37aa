package node_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestFront: no door answers a network without end, and each says so in its own
// words; what is refused costs another network nothing.
func TestFront(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) { c.Dev, c.ReadRate, c.WriteRate = false, 1, 1000 })
	h.Hosted("asha")
	const rpc = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	doors := []struct{ name, method, path, body, media string }{
		{"inbox", "POST", "/ap/inbox", `{}`, "application/problem+json"},
		{"inbox of an actor", "POST", "/ap/board/inbox", `{}`, "application/problem+json"},
		{"actor", "GET", "/ap/board", "", "application/problem+json"},
		{"log", "GET", "/ap/board/log?after=0", "", "application/problem+json"},
		{"webfinger", "GET", "/.well-known/webfinger?resource=acct:asha@example.org", "", "application/problem+json"},
		{"key directory", "GET", "/.well-known/http-message-signatures-directory", "", "application/problem+json"},
		{"document", "GET", "/openapi.json", "", "application/problem+json"},
		{"guide", "GET", "/SKILL.md", "", "application/problem+json"},
		{"sitemap", "GET", "/sitemap.xml", "", "application/problem+json"},
		{"robots", "GET", "/robots.txt", "", "application/problem+json"},
		{"page", "GET", "/board", "", "text/html; charset=utf-8"},
		{"style", "GET", "/style.css", "", "text/html; charset=utf-8"},
		{"nothing there", "GET", "/nothing", "", "application/problem+json"},
		{"wrong method", "PATCH", "/board", "", "application/problem+json"},
		{"unreadable path", "GET", "/api/public/agents/a%2fb", "", "application/problem+json"},
		{"preflight", "OPTIONS", "/api/public/board", "", "application/problem+json"},
		{"kept read", "GET", "/api/public/board", "", "application/problem+json"},
		{"read", "GET", "/api/public/pow?purpose=board", "", "application/problem+json"},
		{"write", "POST", "/api/public/board", nodetest.GoodPost, "application/problem+json"},
		{"owner", "GET", "/api/owner/profile", "", "application/problem+json"},
		{"operator", "GET", "/api/operator/limits", "", "application/problem+json"},
		{"ARD", "POST", "/ard/search", `{"query":{"text":"x"}}`, "application/problem+json"},
		{"MCP", "POST", "/mcp/public", rpc, "application/json"},
		{"MCP of owners", "POST", "/mcp/owner", rpc, "application/json"},
		{"A2A", "POST", "/a2a/asha", rpc, "application/json"},
		{"A2A card", "GET", "/a2a/asha/agent-card.json", "", "application/problem+json"},
		{"sign-in page", "GET", "/sign-in", "", "text/html; charset=utf-8"},
		{"sign-in", "POST", "/sign-in", "ticket=x", "text/html; charset=utf-8"},
	}
	for i, d := range doors {
		address := "203.0.113." + strconv.Itoa(i+1)
		var headers []string
		if strings.HasPrefix(d.media, "text/html") {
			headers = []string{"Accept", nodetest.Accept}
		}
		if d.name == "sign-in" {
			headers = append(headers, "Content-Type", "application/x-www-form-urlencoded")
		}
		var last nodetest.Answer
		n := 0
		for ; n < 40; n++ {
			if last = h.From(address, d.method, d.path, d.body, headers...); last.Code == http.StatusTooManyRequests {
				break
			}
			require.Equal(t, "nosniff", last.Header().Get("X-Content-Type-Options"), d.name)
		}
		require.Equal(t, http.StatusTooManyRequests, last.Code, "%s: 40 requests in a row", d.name)
		require.GreaterOrEqual(t, n, 4, "%s: one request is counted once", d.name)
		head := last.Header()
		require.Regexp(t, `^[1-9]\d*$`, head.Get("Retry-After"), d.name)
		require.Equal(t, `"network";q=4`, head.Get("RateLimit-Policy"), d.name)
		require.Regexp(t, `^"network";r=0;t=[1-9]\d*$`, head.Get("RateLimit"), d.name)
		require.Equal(t, d.media, head.Get("Content-Type"), d.name)
		require.Equal(t, "no-store", head.Get("Cache-Control"), d.name)
		require.Equal(t, "nosniff", head.Get("X-Content-Type-Options"), d.name)
		require.NotEmpty(t, head.Get("Request-Id"), d.name)
		if strings.HasPrefix(d.path, "/api/public/") {
			require.Equal(t, "*", head.Get("Access-Control-Allow-Origin"), d.name)
			require.Contains(t, head.Get("Access-Control-Expose-Headers"), "Retry-After", d.name)
		}
		if strings.HasPrefix(d.path, "/api/owner/") {
			require.Empty(t, head.Get("Access-Control-Allow-Origin"), d.name)
		}
		if !strings.HasPrefix(d.media, "text/html") {
			require.Contains(t, last.Body.String(), string(protocol.RateLimited), d.name)
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			a := h.From(address, "GET", path, "")
			require.Equal(t, 200, a.Code, "%s: a watcher of the node is let through", d.name)
			require.Equal(t, "nosniff", a.Header().Get("X-Content-Type-Options"))
		}
	}
	require.Contains(t, h.Metrics(), "\nstoa_limited_requests_total "+strconv.Itoa(len(doors))+"\n")
	require.Equal(t, 200, h.From("203.0.113.99", "GET", "/api/public/board", "").Code, "another network")
}

// TestFront_Once: one request takes one of a network's bound, however many
// operations its answer is made of, and a write one of the narrower bound besides.
func TestFront_Once(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	rare := func(burst int) hall.Rate { return hall.Rate{PerSecond: 0.001, Burst: burst} } // the next in a quarter of an hour
	h.Table.Limits.Set(hall.Rates{NetworkRead: rare(40), NetworkWrite: rare(1), IdentityWrite: rare(1)})
	left := func(address string) string {
		head := http.Header{}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = address + ":1"
		h.Table.Limits.Fields(head, h.Network(r), true)
		return head.Get("RateLimit")
	}
	for i, path := range []string{
		"/", "/board", "/api/public/page?path=/", "/api/public/board", "/.well-known/webfinger?resource=acct:board@" + strings.TrimPrefix(h.Base, "http://"),
	} {
		address := "203.0.113." + strconv.Itoa(i+1)
		require.Equal(t, 200, h.From(address, "GET", path, "", "Accept", nodetest.Accept).Code, path)
		require.Contains(t, left(address), `r=39;`, path)
	}
	const address = "203.0.113.60"
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"post_to_board","arguments":` + nodetest.GoodPost + `}}`
	require.Equal(t, 401, h.From(address, "POST", "/api/public/board", nodetest.GoodPost).Code)
	require.Contains(t, left(address), `r=39;`)
	over := h.From(address, "POST", "/mcp/public", call)
	require.Contains(t, over.Body.String(), protocol.RateLimited, "what MCP changes counts with what HTTP changes")
	require.Contains(t, over.Body.String(), "isError")
	require.Contains(t, over.Header().Get("RateLimit-Policy"), `q=1`)
	require.Contains(t, left(address), `r=38;`)
	require.Equal(t, 429, h.From(address, "POST", "/sign-in", "ticket=x", "Content-Type", "application/x-www-form-urlencoded").Code, "a try to sign in is a write")
	require.Equal(t, 200, h.From(address, "GET", "/api/public/board", "").Code, "reading continues")
	require.Contains(t, left(address), `r=36;`)

	r := httptest.NewRequest("POST", "/ap/inbox", nil)
	r.RemoteAddr = address + ":1"
	h.HandBack(r)
	require.Contains(t, left(address), `r=37;`, "of a request that has a bound of another kind")
}
