package mcpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/door/mcpapi"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// A listened is one message of a stream.
type listened struct {
	ID     json.RawMessage
	Method string
	Params struct {
		URI           string
		Level, Logger string
		Data          map[string]string
		Notifications map[string][]string
		Meta          map[string]any `json:"_meta"`
	}
	Result *struct {
		ResultType string
		IsError    bool
	}
}

// A hearing is a stream that a test reads.
type hearing struct {
	t     *testing.T
	lines *bufio.Scanner
	stop  func()
}

// hear opens a stream at a running node; status is its own.
func hear(t *testing.T, method, url, body string, headers ...string) (h hearing, status int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	r := must.Get(http.NewRequestWithContext(ctx, method, url, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res := must.Get(http.DefaultClient.Do(r))(t)
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode == 200 {
		require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	}
	return hearing{t, bufio.NewScanner(res.Body), stop}, res.StatusCode
}

// listen opens a stream of the newer wire, and returns what it follows.
func listen(t *testing.T, url string, uris []string, headers ...string) (hearing, []string) {
	t.Helper()
	raw, _ := json.Marshal(uris)
	params := `"notifications":{"toolsListChanged":true,"resourceSubscriptions":` + string(raw) + `}`
	h, status := hear(t, "POST", url, nodetest.ModernBody("subscriptions/listen", params),
		append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"}, headers...)...)
	require.Equal(t, 200, status)
	first := h.next()
	require.Equal(t, "notifications/subscriptions/acknowledged", first.Method)
	require.Equal(t, "q-1", first.Params.Meta["io.modelcontextprotocol/subscriptionId"])
	require.Empty(t, first.Params.Notifications["toolsListChanged"], "the lists are fixed")
	return h, first.Params.Notifications["resourceSubscriptions"]
}

// next is the next message.
func (h hearing) next() (m listened) {
	h.t.Helper()
	for h.lines.Scan() {
		if data, ok := strings.CutPrefix(h.lines.Text(), "data: "); ok {
			require.NoError(h.t, json.Unmarshal([]byte(data), &m), data)
			return m
		}
	}
	require.Fail(h.t, "the stream has ended")
	return m
}

// updated are the addresses of the next n changes, sorted.
func (h hearing) updated(n int) (uris []string) {
	h.t.Helper()
	for range n {
		m := h.next()
		require.Equal(h.t, "notifications/resources/updated", m.Method)
		uris = append(uris, m.Params.URI)
	}
	slices.Sort(uris)
	return uris
}

// TestFollow: a stream of the newer wire tells of each change of what it follows, once, and of nothing else.
func TestFollow(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.Start(t, change)
		h.Hosted("asha")
		h.Hosted("ravi")
		post := h.Post("Two sheets")
		board, page, asha, ravi := h.Base+"/board", h.Base+"/board/"+post.ID, h.Base+"/@asha", h.Base+"/@ravi"
		all := []string{board, page, asha, ravi}
		s, followed := listen(t, h.URL+protocol.MCPPath, append(all, "stoa://nothing", h.Base+"/@nobody", h.Base+"/api/public/threads/thr_1"))
		require.Equal(t, all, followed, "what cannot be read is left out")
		other, followed := listen(t, h.URL+protocol.MCPPath, []string{asha})
		require.Equal(t, []string{asha}, followed)

		reply := fmt.Sprintf(`{"kind":"offer","title":"One sheet","body":"Here","inReplyTo":%q}`, post.ID)
		h.Ask("POST", "/api/public/board", reply, "Proof-Of-Work", h.Proof("board")).Is(201)
		require.Equal(t, []string{board, page}, s.updated(2))
		for i := range 3 { // the next message is of the next change: nothing came twice, or of what did not change
			h.PutProfile(fmt.Appendf(nil, `{"handle":"asha","name":"Asha %d","kind":"person"}`, i))
			require.Equal(t, []string{asha}, s.updated(1))
			require.Equal(t, []string{asha}, other.updated(1))
		}
		h.PutProfile([]byte(`{"handle":"ravi","name":"Ravi K","kind":"person"}`))
		require.Equal(t, []string{ravi}, s.updated(1))
		require.NoError(t, h.Admin().Operate(t.Context(), protocol.HidePost.Operation, protocol.Decision{ID: post.ID, Reason: "spam"}, nil))
		require.Equal(t, []string{board, page}, s.updated(2), "what is hidden has changed too")
	})
}

// TestFollow_Owners: a token follows what it may read, no longer than it is good.
func TestFollow_Owners(t *testing.T) {
	t.Parallel()
	h := nodetest.Start(t)
	h.Hosted("asha")
	h.Hosted("ravi")
	ravi := h.OwnerToken("ravi")
	begun := nodetest.As[protocol.ContactReceipt](h.Ask("POST", "/api/public/agents/asha/contact", `{"message":"Are you there?"}`,
		"Authorization", "Bearer "+ravi).Is(201))
	h.OwnerToken("asha")
	inbox := h.AccountToken("asha", "t", protocol.ScopeInbox)
	thread := h.Base + "/api/owner/threads/" + begun.ThreadID
	_, followed := listen(t, h.URL+protocol.OwnerMCPPath, []string{thread}, "Authorization", "Bearer "+ravi)
	require.Empty(t, followed, "it is not ravi's")
	_, status := hear(t, "POST", h.URL+protocol.OwnerMCPPath, nodetest.ModernBody("subscriptions/listen", `"notifications":{}`),
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	require.Equal(t, 401, status)
	s, followed := listen(t, h.URL+protocol.OwnerMCPPath, []string{thread}, "Authorization", "Bearer "+inbox)
	require.Equal(t, []string{thread}, followed)
	say := func() {
		h.Ask("POST", "/api/public/threads/"+begun.ThreadID+"/messages", `{"message":"Hello?"}`, "Authorization", "Bearer "+ravi).Is(201)
	}
	say()
	require.Equal(t, []string{thread}, s.updated(1))
}

// TestFollow_Guest: a guest reads and follows a conversation by its read token, sent as Authorization. At the end of the process a stream is answered.
func TestFollow_Guest(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	begun := nodetest.As[protocol.ContactReceipt](h.Ask("POST", "/api/public/agents/asha/contact", `{"message":"Are you there?"}`,
		"Proof-Of-Work", h.Proof("contact")).Is(201))
	hub := mcpapi.NewHub(h.DB.Version)
	base := served(t, h, func(c *mcpapi.Config) { c.Hub = hub })
	thread := base + "/api/public/threads/" + begun.ThreadID
	_, followed := listen(t, base, []string{thread})
	require.Empty(t, followed)
	s, followed := listen(t, base, []string{thread}, "Authorization", "Bearer "+begun.ReadToken)
	require.Equal(t, []string{thread}, followed)
	h.Ask("POST", "/api/owner/threads/"+begun.ThreadID+"/messages", `{"message":"Yes"}`, "Authorization", "Bearer "+h.OwnerToken("asha")).Is(201)
	require.Equal(t, []string{thread}, s.updated(1))
	require.Equal(t, 2, hub.Streams())
	require.Equal(t, 1, hub.Watched())
	hub.Close()
	last := s.next()
	require.Equal(t, `"q-1"`, string(last.ID))
	require.Equal(t, "complete", last.Result.ResultType)
	hub.Wait(t.Context())
	require.Zero(t, hub.Streams())
	require.Zero(t, hub.Watched())
}

// served serves the public door of a node's operations by itself.
func served(t *testing.T, h *nodetest.House, change func(c *mcpapi.Config)) (base string) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	base = "http://" + s.Listener.Addr().String()
	c := mcpapi.Config{Table: h.Table, For: protocol.Everybody, Base: base, Loopback: true, Version: "test", Changes: h.DB.Version,
		Network: func(*http.Request) string { return "net" }}
	change(&c)
	door := must.Get(mcpapi.New(c))(t)
	s.Config.Handler = door
	s.Start()
	t.Cleanup(s.Close)
	return base
}

// TestFollow_Full: a network has eight streams; one that ends makes room.
func TestFollow_Full(t *testing.T) {
	t.Parallel()
	h := nodetest.Start(t)
	var open []hearing
	for range 8 {
		s, _ := listen(t, h.URL+protocol.MCPPath, nil)
		open = append(open, s)
	}
	try := func() int {
		s, status := hear(t, "POST", h.URL+protocol.MCPPath, nodetest.ModernBody("subscriptions/listen", `"notifications":{}`),
			"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
		s.stop()
		return status
	}
	require.Equal(t, 503, try())
	_, status := hear(t, "GET", h.URL+protocol.MCPPath, "", "Mcp-Session-Id", strings.Repeat("s", 26))
	require.Equal(t, 405, status, "as a server without streams")
	open[0].stop()
	require.Eventually(t, func() bool { return try() == 200 }, time.Minute, 20*time.Millisecond)
}

// TestFollow_Counts: each resource that is followed counts as a read.
func TestFollow_Counts(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) { c.Dev, c.AllowPrivatePeers, c.ReadRate = false, true, 1 })
	base := served(t, h, func(c *mcpapi.Config) { c.Hub = mcpapi.NewHub(h.DB.Version) })
	raw, _ := json.Marshal(slices.Repeat([]string{base + "/board"}, 50))
	_, status := hear(t, "POST", base, nodetest.ModernBody("subscriptions/listen", `"notifications":{"resourceSubscriptions":`+string(raw)+`}`),
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	require.Equal(t, 429, status)
	_, followed := listen(t, base, []string{base + "/board"})
	require.Len(t, followed, 1)
}

// TestFollow_Sessions is the older wire: the stream of a session, what it follows, and its log messages. What changes while the stream is away is told
// when it is back.
func TestFollow_Sessions(t *testing.T) {
	t.Parallel()
	h := nodetest.Start(t)
	h.Hosted("asha")
	url, asha := h.URL+protocol.MCPPath, h.Base+"/@asha"
	begun := h.RPCAt(protocol.MCPPath, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},`+
		`"clientInfo":{"name":"x","version":"1"}}}`)
	session := begun.Header().Get("Mcp-Session-Id")
	ask := func(method, params string) nodetest.RPCAnswer {
		t.Helper()
		return h.RPCAt(protocol.MCPPath, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params), "Mcp-Session-Id", session,
			"MCP-Protocol-Version", "2025-11-25")
	}
	changed := 0
	touch := func() {
		changed++
		h.PutProfile(fmt.Appendf(nil, `{"handle":"asha","name":"Asha %d","kind":"person"}`, changed))
	}
	require.JSONEq(t, `{}`, string(ask("resources/subscribe", fmt.Sprintf(`{"uri":%q}`, asha)).Result), "before its stream")
	require.Equal(t, -32002, ask("resources/subscribe", fmt.Sprintf(`{"uri":%q}`, h.Base+"/@nobody")).Error.Code)
	touch()
	s, status := hear(t, "GET", url, "", "Mcp-Session-Id", session)
	require.Equal(t, 200, status)
	require.Equal(t, []string{asha}, s.updated(1))
	again, status := hear(t, "GET", url, "", "Mcp-Session-Id", session)
	require.Equal(t, 200, status)
	for s.lines.Scan() { // the first one ends
	}
	touch()
	require.Equal(t, []string{asha}, again.updated(1))

	refused := func() {
		require.True(t, h.ReadTool(ask("tools/call", `{"name":"get_agent_profile","arguments":{"handle":"nobody"}}`)).IsError)
	}
	refused() // before a level is set, nothing is logged
	require.JSONEq(t, `{}`, string(ask("logging/setLevel", `{"level":"error"}`).Result))
	refused() // a warning is less
	require.JSONEq(t, `{}`, string(ask("logging/setLevel", `{"level":"info"}`).Result))
	refused()
	m := again.next()
	require.Equal(t, "notifications/message", m.Method)
	require.Equal(t, "warning", m.Params.Level)
	require.Equal(t, "get_agent_profile", m.Params.Data["tool"])
	require.Equal(t, "not-found", m.Params.Data["code"])
	require.JSONEq(t, `{}`, string(ask("resources/unsubscribe", fmt.Sprintf(`{"uri":%q}`, asha)).Result))
	touch()
	refused()
	require.Equal(t, "notifications/message", again.next().Method, "it follows nothing any more")
}
