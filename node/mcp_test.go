package node

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/pow"
)

// rpcAnswer is a JSON-RPC response as a client reads it.
type rpcAnswer struct {
	answer
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
		Data    struct {
			Code       protocol.Code
			Supported  []string
			Requested  string
			RetryAfter int
		}
	} `json:"error"`
}

// toolAnswer is the result of a tool call. Refused is set with IsError.
type toolAnswer struct {
	rpcAnswer
	ResultType string
	Content    []struct{ Type, Text string }
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool
	Meta       map[string]any `json:"_meta"`

	Refused struct {
		Code       protocol.Code
		Detail     string
		Errors     []protocol.Fault
		RetryAfter int
		Challenge  *pow.Challenge
		How, Retry string
		Instance   string
	} `json:"-"`
}

// rpc posts a body to everyone's MCP door; headers come in pairs.
func (h *house) rpc(body string, headers ...string) rpcAnswer {
	h.t.Helper()
	return h.rpcAt(protocol.MCPPath, body, headers...)
}

func (h *house) rpcAt(path, body string, headers ...string) rpcAnswer {
	h.t.Helper()
	r := httptest.NewRequest("POST", h.Base+path, strings.NewReader(body))
	r.RequestURI = path
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	return h.readRPC(w)
}

func (h *house) readRPC(w *httptest.ResponseRecorder) rpcAnswer {
	h.t.Helper()
	a := rpcAnswer{answer: answer{w, h.t}}
	if w.Body.Len() > 0 {
		require.Equal(h.t, "application/json", w.Header().Get("Content-Type"), "%s", w.Body)
		a.into(&a)
	}
	return a
}

// modern makes a request of the newer wire, headers and all.
func (h *house) modern(method, params string, headers ...string) rpcAnswer {
	h.t.Helper()
	return h.modernAt(protocol.MCPPath, method, params, headers...)
}

func (h *house) modernAt(path, method, params string, headers ...string) rpcAnswer {
	h.t.Helper()
	return h.rpcAt(path, modernBody(method, params), append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}, headers...)...)
}

func modernBody(method, params string) string {
	if params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"q-1","method":%q,"params":{%s%s}}`, method, params, modernMeta)
}

// tool calls a tool on the newer wire.
func (h *house) tool(name, args string, headers ...string) toolAnswer {
	h.t.Helper()
	return h.readTool(h.modernAt(doorOf(name), "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, name, args),
		append([]string{"Mcp-Name", name}, headers...)...))
}

// doorOf is the MCP door whose tool an operation is.
func doorOf(name string) string {
	if op := protocol.Lookup(name); op != nil && op.For == protocol.Owners {
		return protocol.OwnerMCPPath
	}
	return protocol.MCPPath
}

func (h *house) readTool(a rpcAnswer) toolAnswer {
	h.t.Helper()
	t := toolAnswer{rpcAnswer: a}
	require.Nil(h.t, a.Error, "%s", a.Body)
	require.NoError(h.t, json.Unmarshal(a.Result, &t))
	require.Len(h.t, t.Content, 1)
	require.Equal(h.t, "text", t.Content[0].Type)
	if t.IsError {
		require.Empty(h.t, t.Structured, "clients check structured content against the output schema, errors too")
		require.NoError(h.t, json.Unmarshal([]byte(t.Content[0].Text), &t.Refused))
		require.NotEmpty(h.t, t.Refused.Instance)
	}
	return t
}

// operationsOf lists everyone's operations of a door by name.
func operationsOf(door protocol.Door) []string {
	var names []string
	for _, op := range protocol.OperationsFor(protocol.Everybody, door) {
		names = append(names, op.Name)
	}
	return names
}

// TestMCP_Handshake is the older wire as bytes: what is settled on, and that no
// session is opened.
func TestMCP_Handshake(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *Config) { c.Name = "Agora" })
	for asked, settled := range map[string]string{
		"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26",
		"2024-11-05": "2025-11-25", "2099-01-01": "2025-11-25", "": "2025-11-25",
	} {
		a := h.rpc(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x",`+
			`"version":"1"}}}`, asked))
		require.Equal(t, 200, a.Code)
		require.Equal(t, "0", string(a.ID))
		require.Empty(t, a.Header().Get("Mcp-Session-Id"))
		var got struct {
			ProtocolVersion string
			Capabilities    map[string]any
			ServerInfo      struct{ Name, Title, Version string }
			Instructions    string
			ResultType      *string
		}
		require.NoError(t, json.Unmarshal(a.Result, &got))
		require.Equal(t, settled, got.ProtocolVersion, asked)
		require.Equal(t, map[string]any{"tools": map[string]any{}}, got.Capabilities)
		require.Equal(t, "Agora", got.ServerInfo.Title)
		require.Nil(t, got.ResultType, "the older wire knows no result types")
	}
	done := h.rpc(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "MCP-Protocol-Version", "2025-11-25")
	require.Equal(t, 202, done.Code)
	require.Empty(t, done.Body.Bytes())
	require.JSONEq(t, `{}`, string(h.rpc(`{"jsonrpc":"2.0","id":1,"method":"ping"}`).Result))

	list := h.rpc(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":""}}`, "MCP-Protocol-Version", "2025-06-18")
	require.NotContains(t, string(list.Result), "resultType")
	called := h.readTool(h.rpc(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"site_map","arguments":null}}`, "MCP-Protocol-Version",
		"2025-06-18"))
	require.JSONEq(t, h.ask("GET", "/api/public/site-map", "").Body.String(), string(called.Structured))
	require.Empty(t, called.Meta)
}

// TestMCP_Discover is the newer wire as bytes.
func TestMCP_Discover(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.modern("server/discover", "")
	require.Equal(t, 200, a.Code)
	require.Equal(t, `"q-1"`, string(a.ID))
	require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
	var got struct {
		ResultType, Instructions, CacheScope string
		SupportedVersions                    []string
		Capabilities                         map[string]any
		TTLMs                                *int                                    `json:"ttlMs"`
		Meta                                 map[string]struct{ Name, Title string } `json:"_meta"`
	}
	require.NoError(t, json.Unmarshal(a.Result, &got))
	require.Equal(t, "complete", got.ResultType)
	require.Equal(t, []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}, got.SupportedVersions)
	require.Equal(t, map[string]any{"tools": map[string]any{}}, got.Capabilities, "only what works is declared")
	require.Positive(t, *got.TTLMs)
	require.Equal(t, "public", got.CacheScope)
	require.Equal(t, "stoa", got.Meta["io.modelcontextprotocol/serverInfo"].Name)

	list := h.modern("tools/list", "")
	require.Contains(t, string(list.Result), `"ttlMs":`)
	require.Contains(t, string(list.Result), `"cacheScope":"public"`)
	require.Equal(t, list.Body.String(), h.modern("tools/list", "").Body.String(), "in a fixed order")
	called := h.tool("site_map", `{}`)
	require.Equal(t, "complete", called.ResultType)
	require.Contains(t, called.Meta, "io.modelcontextprotocol/serverInfo")
	require.JSONEq(t, called.Content[0].Text, string(called.Structured))

	// A name may be wrapped, and blanks around it mean nothing.
	wrapped := h.modern("tools/call", `"name":"site_map"`, "Mcp-Name", " =?base64?c2l0ZV9tYXA=?= ")
	require.Nil(t, wrapped.Error)
	numbered := h.rpc(strings.Replace(modernBody("server/discover", ""), `"q-1"`, "9007199254740993", 1), "MCP-Protocol-Version", "2026-07-28",
		"Mcp-Method", "server/discover")
	require.Equal(t, "9007199254740993", string(numbered.ID), "the id comes back as it was sent")
}

// TestMCP_Announced: the door is where profiles, guides and the site map say.
func TestMCP_Announced(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.hosted("asha")
	url := h.Base + protocol.MCPPath
	for _, path := range []string{"/SKILL.md", "/llms.txt", "/api/public/about"} {
		require.Contains(t, h.ask("GET", path, "").Body.String(), url, path)
	}
	var p protocol.Profile
	h.ask("GET", "/api/public/agents/asha", "").into(&p)
	require.Equal(t, url, p.Interfaces.PublicMCP)
	var m protocol.SiteMap
	h.ask("GET", "/api/public/site-map", "").into(&m)
	var found []string
	for _, e := range m.Items {
		if e.Path == protocol.MCPPath {
			found = append(found, e.Method+" "+e.Kind)
		}
	}
	require.Equal(t, []string{"POST endpoint"}, found)
}
