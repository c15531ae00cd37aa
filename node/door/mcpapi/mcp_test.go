package mcpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// rpc posts a body to everyone's MCP door; headers come in pairs.
func callMCP(h *nodetest.House, body string, headers ...string) nodetest.RPCAnswer {
	h.T.Helper()
	return h.RPCAt(protocol.MCPPath, body, headers...)
}

// operationsOf lists everyone's operations of a door by name.
func operationsOf(door protocol.Door) []string {
	var names []string
	for _, op := range protocol.OperationsFor(protocol.Everybody, door) {
		names = append(names, op.Name)
	}
	return names
}

// has are capabilities without settings.
func has(names ...string) map[string]any {
	all := map[string]any{}
	for _, name := range names {
		all[name] = map[string]any{}
	}
	return all
}

// TestMCP_Handshake is the older wire as bytes: what is settled on.
func TestMCP_Handshake(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) { c.Name = "Agora" })
	for asked, settled := range map[string]string{
		"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26",
		"2024-11-05": "2025-11-25", "2099-01-01": "2025-11-25", "": "2025-11-25",
	} {
		a := callMCP(h, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x",`+
			`"version":"1"}}}`, asked))
		require.Equal(t, 200, a.Code)
		require.Equal(t, "0", string(a.ID))
		require.Len(t, a.Header().Get("Mcp-Session-Id"), 26, "the name of a stream to come")
		var got struct {
			ProtocolVersion string
			Capabilities    map[string]any
			ServerInfo      struct{ Name, Title, Version string }
			Instructions    string
			ResultType      *string
		}
		require.NoError(t, json.Unmarshal(a.Result, &got))
		require.Equal(t, settled, got.ProtocolVersion, asked)
		want := has("tools", "resources", "prompts", "completions", "logging")
		want["resources"] = map[string]any{"subscribe": true}
		require.Equal(t, want, got.Capabilities)
		require.Equal(t, "Agora", got.ServerInfo.Title)
		require.Nil(t, got.ResultType, "the older wire knows no result types")
	}
	done := callMCP(h, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "MCP-Protocol-Version", "2025-11-25")
	require.Equal(t, 202, done.Code)
	require.Empty(t, done.Body.Bytes())
	require.JSONEq(t, `{}`, string(callMCP(h, `{"jsonrpc":"2.0","id":1,"method":"ping"}`).Result))

	list := callMCP(h, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":""}}`, "MCP-Protocol-Version", "2025-06-18")
	require.NotContains(t, string(list.Result), "resultType")
	called := h.ReadTool(callMCP(h, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"site_map","arguments":null}}`, "MCP-Protocol-Version",
		"2025-06-18"))
	require.JSONEq(t, h.Ask("GET", "/api/public/site-map", "").Body.String(), string(called.Structured))
	require.Empty(t, called.Meta)
}

// TestMCP_Discover is the newer wire as bytes.
func TestMCP_Discover(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	a := h.Modern("server/discover", "")
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
	want := has("tools", "resources", "prompts", "completions")
	want["resources"], want["extensions"] = map[string]any{"subscribe": true}, has("io.modelcontextprotocol/tasks", "io.modelcontextprotocol/ui")
	require.Equal(t, want, got.Capabilities, "only what works is declared")
	require.Positive(t, *got.TTLMs)
	require.Equal(t, "public", got.CacheScope)
	require.Equal(t, "stoa", got.Meta["io.modelcontextprotocol/serverInfo"].Name)

	list := h.Modern("tools/list", "")
	require.Contains(t, string(list.Result), `"ttlMs":`)
	require.Contains(t, string(list.Result), `"cacheScope":"public"`)
	require.Equal(t, list.Body.String(), h.Modern("tools/list", "").Body.String(), "in a fixed order")
	called := h.Tool("site_map", `{}`)
	require.Equal(t, "complete", called.ResultType)
	require.Contains(t, called.Meta, "io.modelcontextprotocol/serverInfo")
	require.JSONEq(t, called.Content[0].Text, string(called.Structured))

	// A name may be wrapped, and blanks around it mean nothing.
	require.Nil(t, h.Modern("tools/call", `"name":"site_map"`, "Mcp-Name", " =?base64?c2l0ZV9tYXA=?= ").Error)
	numbered := callMCP(h, strings.Replace(nodetest.ModernBody("server/discover", ""), `"q-1"`, "9007199254740993", 1), "MCP-Protocol-Version", "2026-07-28",
		"Mcp-Method", "server/discover")
	require.Equal(t, "9007199254740993", string(numbered.ID), "the id comes back as it was sent")
}

// TestMCP_Announced: the door is where profiles, guides and the site map say.
func TestMCP_Announced(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	url := h.Base + protocol.MCPPath
	for _, path := range []string{"/SKILL.md", "/llms.txt", "/api/public/about"} {
		require.Contains(t, h.Ask("GET", path, "").Body.String(), url, path)
	}
	require.Equal(t, url, nodetest.As[protocol.Profile](h.Ask("GET", "/api/public/agents/asha", "")).Interfaces.PublicMCP)
	m := nodetest.As[protocol.SiteMap](h.Ask("GET", "/api/public/site-map", ""))
	var found []string
	for _, e := range m.Items {
		if e.Path == protocol.MCPPath {
			found = append(found, e.Method+" "+e.Kind)
		}
	}
	require.Equal(t, []string{"POST endpoint"}, found)
}

// TestMCP_NothingFound: a model that finds nothing is told what it can try, beside the answer.
func TestMCP_NothingFound(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	texts := func(tool, args string) (list []string) {
		a := callMCP(h, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, args))
		var got struct{ Content []struct{ Text string } }
		require.NoError(t, json.Unmarshal(a.Result, &got))
		for _, c := range got.Content {
			list = append(list, c.Text)
		}
		return list
	}
	const none, without = `{"items":[],"next":null}`, `{"items":[],"next":null,"without":["dabba"]}`
	for args, want := range map[string][2]string{
		`{}`:                            {none, "nothing here yet"},
		`{"limit":5}`:                   {none, "nothing here yet"},
		`{"q":"dabba"}`:                 {without, "Try fewer of them"},
		`{"q":"dabba","city":"Mysuru"}`: {without, "Nothing has all of city, q."},
	} {
		found := texts("list_merchants", args)
		require.Len(t, found, 2, args)
		require.JSONEq(t, want[0], found[0])
		require.Contains(t, found[1], want[1])
	}
	h.Post("Two hundred sheets")
	require.Len(t, texts("read_board", `{}`), 1)
}
