package mcpapi_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestMCP_Refusals is every way in which a message is refused before it reaches
// an operation, with its status and code on its wire.
func TestMCP_Refusals(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	const version = "2026-07-28"
	modern := func(method string, more ...string) []string {
		return append([]string{"MCP-Protocol-Version", version, "Mcp-Method", method}, more...)
	}
	list, call := nodetest.ModernBody("tools/list", ""), nodetest.ModernBody("tools/call", `"name":"site_map"`)
	old := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params)
	}
	tests := []struct {
		name    string
		body    string
		headers []string
		status  int
		code    int
		id      string // of the answer; "" for none
		about   protocol.Code
	}{
		// Bytes and envelope: the same on both wires.
		{"nothing", "", []string{"Content-Type", "application/json"}, 400, -32700, "", protocol.InvalidRequest},
		{"no JSON", `{"jsonrpc":`, nil, 400, -32700, "", protocol.InvalidRequest},
		{"behind it", `{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, nil, 400, -32700, "", protocol.InvalidRequest},
		{"a member twice", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, nil, 400, -32700, "", protocol.InvalidRequest},
		{"a member twice inside", old("tools/call", `{"name":"read_board","arguments":{"limit":1,"limit":2}}`), nil, 400, -32700, "", protocol.InvalidRequest},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", nil, 400, -32700, "", protocol.InvalidRequest},
		{"too deep", old("tools/call", strings.Repeat(`{"a":`, 30)+"1"+strings.Repeat("}", 30)), nil, 400, -32700, "", protocol.InvalidRequest},
		{"batch", `[` + old("ping", "{}") + `]`, nil, 400, -32600, "", protocol.InvalidRequest},
		{"empty batch", `[]`, nil, 400, -32600, "", protocol.InvalidRequest},
		{"a text", `"ping"`, nil, 400, -32600, "", protocol.InvalidRequest},
		{"null", `null`, nil, 400, -32600, "", protocol.InvalidRequest},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, nil, 400, -32600, "", protocol.InvalidRequest},
		{"id of a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, nil, 400, -32600, "", protocol.InvalidRequest},
		{"id of an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, nil, 400, -32600, "", protocol.InvalidRequest},
		{"no version of JSON-RPC", `{"id":3,"method":"ping"}`, nil, 400, -32600, "3", protocol.InvalidRequest},
		{"other version of JSON-RPC", `{"jsonrpc":"1.0","id":3,"method":"ping"}`, nil, 400, -32600, "3", protocol.InvalidRequest},
		{"other case", `{"jsonrpc":"2.0","id":3,"Method":"ping"}`, nil, 400, -32600, "3", protocol.InvalidRequest},
		{"method of a number", `{"jsonrpc":"2.0","id":3,"method":4}`, nil, 400, -32600, "3", protocol.InvalidRequest},
		{"a response", `{"jsonrpc":"2.0","id":3,"result":{}}`, nil, 400, -32600, "3", protocol.InvalidRequest},
		{"params as a list", `{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}`, nil, 400, -32600, "3", protocol.InvalidRequest},
		{"notification without version of JSON-RPC", `{"method":"notifications/initialized"}`, nil, 400, -32600, "", protocol.InvalidRequest},

		// The newer wire.
		{"no _meta", `{"jsonrpc":"2.0","id":"q-1","method":"tools/list"}`, modern("tools/list"), 400, -32602, `"q-1"`, protocol.InvalidRequest},
		{"_meta as a text", `{"jsonrpc":"2.0","id":"q-1","method":"tools/list","params":{"_meta":"x"}}`, nil, 200, -32602, `"q-1"`, protocol.InvalidRequest},
		{"no capabilities", strings.Replace(list, `,"io.modelcontextprotocol/clientCapabilities":{}`, "", 1), modern("tools/list"), 400, -32602, `"q-1"`,
			protocol.InvalidRequest},
		{"capabilities as a list", strings.Replace(list, `clientCapabilities":{}`, `clientCapabilities":[]`, 1), modern("tools/list"), 400, -32602, `"q-1"`,
			protocol.InvalidRequest},
		{"version as a number", strings.Replace(list, `"2026-07-28"`, `20260728`, 1), modern("tools/list"), 400, -32602, `"q-1"`, protocol.InvalidRequest},
		{"no version header", list, []string{"Mcp-Method", "tools/list"}, 400, -32020, `"q-1"`, protocol.InvalidRequest},
		{"other version header", list, []string{"MCP-Protocol-Version", "2025-11-25", "Mcp-Method", "tools/list"}, 400, -32020, `"q-1"`, protocol.InvalidRequest},
		{"no method header", list, []string{"MCP-Protocol-Version", version}, 400, -32020, `"q-1"`, protocol.InvalidRequest},
		{"other method header", list, modern("tools/call"), 400, -32020, `"q-1"`, protocol.InvalidRequest},
		{"method header in another case", list, modern("Tools/List"), 400, -32020, `"q-1"`, protocol.InvalidRequest},
		{"no name header", call, modern("tools/call"), 400, -32020, `"q-1"`, protocol.InvalidRequest},
		{"other name header", call, modern("tools/call", "Mcp-Name", "post_to_board"), 400, -32020, `"q-1"`, protocol.InvalidRequest},
		{"name header that cannot be unwrapped", call, modern("tools/call", "Mcp-Name", "=?base64?%%?="), 400, -32020, `"q-1"`, protocol.InvalidRequest},
		{"a version to come", strings.Replace(list, version, "2027-01-01", 1), []string{"MCP-Protocol-Version", "2027-01-01", "Mcp-Method", "tools/list"},
			400, -32022, `"q-1"`, ""},
		{"an older version in _meta", strings.Replace(list, version, "2025-11-25", 1),
			[]string{"MCP-Protocol-Version", "2025-11-25", "Mcp-Method", "tools/list"}, 400, -32022, `"q-1"`, ""},
		{"unknown method", nodetest.ModernBody("tools/eat", ""), modern("tools/eat"), 404, -32601, `"q-1"`, protocol.NotFound},
		{"unknown resource", nodetest.ModernBody("resources/read", `"uri":"stoa://about"`), modern("resources/read", "Mcp-Name", "stoa://about"), 400, -32602,
			`"q-1"`, protocol.NotFound},
		{"resource of another name header", nodetest.ModernBody("resources/read", `"uri":"stoa://about"`), modern("resources/read", "Mcp-Name", "x"), 400, -32020,
			`"q-1"`, protocol.InvalidRequest},
		{"no resource", nodetest.ModernBody("resources/read", ""), modern("resources/read", "Mcp-Name", "x"), 400, -32602, `"q-1"`, protocol.InvalidRequest},
		{"cursor of resources", nodetest.ModernBody("resources/list", `"cursor":"9999.x"`), modern("resources/list"), 400, -32602, `"q-1"`, protocol.InvalidCursor},
		{"cursor of profiles", nodetest.ModernBody("resources/list", `"cursor":"0.x"`), modern("resources/list"), 400, -32602, `"q-1"`, protocol.InvalidCursor},
		{"cursor of templates", nodetest.ModernBody("resources/templates/list", `"cursor":"x"`), modern("resources/templates/list"), 400, -32602, `"q-1"`,
			protocol.InvalidCursor},
		{"listening to nothing", nodetest.ModernBody("subscriptions/listen", ""), modern("subscriptions/listen"), 400, -32602, `"q-1"`, protocol.InvalidRequest},
		{"listening to a number", nodetest.ModernBody("subscriptions/listen", `"notifications":{"resourceSubscriptions":[7]}`), modern("subscriptions/listen"),
			400, -32602, `"q-1"`, protocol.InvalidRequest},
		{"listening to too much", nodetest.ModernBody("subscriptions/listen", `"notifications":{"resourceSubscriptions":["x"`+strings.Repeat(`,"x"`, 50)+`]}`),
			modern("subscriptions/listen"), 400, -32602, `"q-1"`, protocol.InvalidRequest},
		{"subscribing", nodetest.ModernBody("resources/subscribe", `"uri":"x"`), modern("resources/subscribe"), 404, -32601, `"q-1"`, protocol.NotFound},
		{"task of a client without tasks", nodetest.ModernBody("tasks/get", `"taskId":"x"`), modern("tasks/get"), 400, -32021, `"q-1"`, ""},
		{"another task", nodetest.ModernBody("tasks/get", `"taskId":"x"`), modern("tasks/get", "Mcp-Name", "y"), 400, -32020, `"q-1"`, protocol.InvalidRequest},
		{"unknown prompt", nodetest.ModernBody("prompts/get", `"name":"eat"`), modern("prompts/get", "Mcp-Name", "eat"), 400, -32602, `"q-1"`, protocol.NotFound},
		{"prompt without a name", nodetest.ModernBody("prompts/get", ""), modern("prompts/get", "Mcp-Name", ""), 400, -32602, `"q-1"`, protocol.InvalidRequest},
		{"prompt without an argument", nodetest.ModernBody("prompts/get", `"name":"ask","arguments":{"handle":"asha"}`), modern("prompts/get", "Mcp-Name", "ask"),
			400, -32602, `"q-1"`, protocol.InvalidRequest},
		{"prompt with a number", nodetest.ModernBody("prompts/get", `"name":"buy","arguments":{"what":7}`), modern("prompts/get", "Mcp-Name", "buy"), 400, -32602,
			`"q-1"`, protocol.InvalidRequest},
		{"prompt with a list", nodetest.ModernBody("prompts/get", `"name":"buy","arguments":[]`), modern("prompts/get", "Mcp-Name", "buy"), 400, -32602,
			`"q-1"`, protocol.InvalidRequest},
		{"completion of nothing", nodetest.ModernBody("completion/complete", ""), modern("completion/complete"), 400, -32602, `"q-1"`, protocol.InvalidRequest},
		{"completion of another thing", nodetest.ModernBody("completion/complete", `"ref":{"type":"ref/tool","name":"x"},"argument":{"name":"a","value":""}`),
			modern("completion/complete"), 400, -32602, `"q-1"`, protocol.InvalidRequest},
		{"completion of an unknown prompt", nodetest.ModernBody("completion/complete", `"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":""}`),
			modern("completion/complete"), 400, -32602, `"q-1"`, protocol.InvalidRequest},
		{"completion of an unknown template",
			nodetest.ModernBody("completion/complete", `"ref":{"type":"ref/resource","uri":"x"},"argument":{"name":"a","value":""}`),
			modern("completion/complete"), 400, -32602, `"q-1"`, protocol.NotFound},
		{"handshake", nodetest.ModernBody("initialize", ""), modern("initialize"), 404, -32601, `"q-1"`, protocol.NotFound},
		{"ping", nodetest.ModernBody("ping", ""), modern("ping"), 404, -32601, `"q-1"`, protocol.NotFound},
		{"cursor", nodetest.ModernBody("tools/list", `"cursor":"bm90"`), modern("tools/list"), 400, -32602, `"q-1"`, protocol.InvalidCursor},
		{"cursor of a number", nodetest.ModernBody("tools/list", `"cursor":7`), modern("tools/list"), 400, -32602, `"q-1"`, protocol.InvalidCursor},
		{"unknown tool", nodetest.ModernBody("tools/call", `"name":"eat"`), modern("tools/call", "Mcp-Name", "eat"), 400, -32602, `"q-1"`, protocol.NotFound},
		{"no tool", nodetest.ModernBody("tools/call", ""), modern("tools/call", "Mcp-Name", ""), 400, -32602, `"q-1"`, protocol.InvalidRequest},
		{"arguments as a list", nodetest.ModernBody("tools/call", `"name":"site_map","arguments":[]`), modern("tools/call", "Mcp-Name", "site_map"), 400, -32602,
			`"q-1"`, protocol.InvalidRequest},

		// The older wire: errors have status 200.
		{"unknown version header", old("ping", "{}"), []string{"MCP-Protocol-Version", "2024-01-01"}, 400, -32022, "7", ""},
		{"no date as version header", old("ping", "{}"), []string{"MCP-Protocol-Version", "two"}, 400, -32022, "7", ""},
		{"unknown method, older wire", old("tools/eat", "{}"), nil, 200, -32601, "7", protocol.NotFound},
		{"discover, older wire", old("server/discover", "{}"), nil, 200, -32601, "7", protocol.NotFound},
		{"no log level, older wire", old("logging/setLevel", "{}"), nil, 200, -32602, "7", protocol.InvalidRequest},
		{"unknown resource, older wire", old("resources/read", `{"uri":"stoa://x"}`), nil, 200, -32002, "7", protocol.NotFound},
		{"subscription without a session", old("resources/subscribe", `{"uri":"stoa://x"}`), nil, 200, -32602, "7", protocol.InvalidRequest},
		{"tasks, older wire", old("tasks/get", `{"taskId":"x"}`), nil, 200, -32601, "7", protocol.NotFound},
		{"listening, older wire", old("subscriptions/listen", `{"notifications":{}}`), nil, 200, -32601, "7", protocol.NotFound},
		{"unknown tool, older wire", old("tools/call", `{"name":"eat"}`), nil, 200, -32602, "7", protocol.NotFound},
		{"no tool, older wire", old("tools/call", `{}`), nil, 200, -32602, "7", protocol.InvalidRequest},
		{"cursor, older wire", old("tools/list", `{"cursor":"bm90"}`), nil, 200, -32602, "7", protocol.InvalidCursor},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := callMCP(h, tt.body, tt.headers...)
			require.Equal(t, tt.status, a.Code, "%s", a.Body)
			require.NotNil(t, a.Error, "%s", a.Body)
			require.Equal(t, tt.code, a.Error.Code, "%s", a.Body)
			require.NotEmpty(t, a.Error.Message)
			require.Equal(t, tt.about, a.Error.Data.Code)
			require.Equal(t, tt.id, string(a.ID))
			if tt.code == -32022 {
				require.Equal(t, []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}, a.Error.Data.Supported)
				require.NotEmpty(t, a.Error.Data.Requested)
			}
		})
	}
}

// TestMCP_Body is what the transport refuses of a body.
func TestMCP_Body(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"%s"}}`
	most := fmt.Sprintf(ping, strings.Repeat("x", 64<<10-len(ping)+2))
	require.Len(t, most, 64<<10)
	require.Equal(t, 200, callMCP(h, most).Code)
	long := callMCP(h, most+" ")
	require.Equal(t, 413, long.Code)
	require.Equal(t, protocol.TooLarge, long.Error.Data.Code)
	// Without a length it is found out while reading.
	r := httptest.NewRequest("POST", h.Base+protocol.MCPPath, struct{ *strings.Reader }{strings.NewReader(most + "  ")})
	r.ContentLength = -1
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	require.Equal(t, 413, w.Code)

	for _, media := range []string{"text/plain", "application/json-rpc", "application/x-www-form-urlencoded", "multipart/form-data", ";"} {
		a := callMCP(h, fmt.Sprintf(ping, ""), "Content-Type", media)
		require.Equal(t, 415, a.Code, media)
		require.Equal(t, protocol.UnsupportedMediaType, a.Error.Data.Code)
	}
	require.Equal(t, 200, callMCP(h, fmt.Sprintf(ping, ""), "Content-Type", "application/json; charset=utf-8").Code)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte(fmt.Sprintf(ping, "")))
	z.Close()
	require.Equal(t, 415, callMCP(h, zipped.String(), "Content-Encoding", "gzip").Code)
	for _, accept := range []string{"", "*/*", "application/json", "text/event-stream, application/json"} {
		require.Equal(t, 200, callMCP(h, fmt.Sprintf(ping, ""), "Accept", accept).Code, "simple clients send what they like")
	}
}

// TestMCP_Methods: there is no stream to open and no session to end.
func TestMCP_Methods(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for _, method := range []string{"GET", "HEAD", "DELETE", "PUT", "PATCH"} {
		for _, version := range []string{"2026-07-28", "2025-06-18"} {
			a := h.Ask(method, protocol.MCPPath, "", "MCP-Protocol-Version", version, "Accept", "text/event-stream", "Mcp-Session-Id", "x")
			require.Equal(t, 405, a.Code, method)
			require.Equal(t, "POST, OPTIONS", a.Header().Get("Allow"))
		}
	}
	preflight := h.Ask("OPTIONS", protocol.MCPPath, "", "Origin", "http://localhost:3000", "Access-Control-Request-Method", "POST").Is(204)
	require.Equal(t, "*", preflight.Header().Get("Access-Control-Allow-Origin"))
	require.Empty(t, preflight.Header().Get("Access-Control-Allow-Credentials"))
	for _, name := range []string{"MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Signature-Input", "Content-Digest", "Authorization"} {
		require.Contains(t, preflight.Header().Get("Access-Control-Allow-Headers"), name)
	}
}

// TestMCP_HostAndOrigin: a page elsewhere reaches no node on loopback through
// its visitor's browser, whatever name it gives it (DNS rebinding).
func TestMCP_HostAndOrigin(t *testing.T) {
	t.Parallel()
	local := nodetest.New(t)
	public := nodetest.New(t, func(c *node.Config) { c.Dev, c.BaseURL = false, "https://n1.example" })
	port := local.Base[strings.LastIndex(local.Base, ":"):]
	tests := []struct {
		name         string
		h            *nodetest.House
		host, origin string
		status       int
	}{
		{"itself", local, "127.0.0.1" + port, "", 200},
		{"by name", local, "localhost" + port, "", 200},
		{"by IPv6", local, "[::1]" + port, "", 200},
		{"through a tunnel", local, "localhost:9", "", 200},
		{"rebound", local, "evil.example" + port, "", 403},
		{"rebound with a loopback name", local, "localhost.evil.example", "", 403},
		{"page on loopback", local, "127.0.0.1" + port, "http://localhost:3000", 200},
		{"page elsewhere", local, "127.0.0.1" + port, "https://evil.example", 403},
		{"page that begins like loopback", local, "127.0.0.1" + port, "http://localhost.evil.example", 403},
		{"page without an origin", local, "127.0.0.1" + port, "null", 403},
		{"page of a file", local, "127.0.0.1" + port, "file://", 403},

		{"public", public, "n1.example", "", 200},
		{"public with its port", public, "n1.example:443", "", 200},
		{"public in capitals", public, "N1.Example", "", 200},
		{"public, any page", public, "n1.example", "https://elsewhere.example", 200},
		{"public, behind a proxy on this machine", public, "127.0.0.1:8080", "", 200},
		{"public, another name", public, "n2.example", "", 403},
		{"public, another port", public, "n1.example:8443", "", 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, method := range []string{"POST", "OPTIONS", "GET"} {
				r := httptest.NewRequest(method, tt.h.Base+protocol.MCPPath, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
				r.Host = tt.host
				r.Header.Set("Content-Type", "application/json")
				if tt.origin != "" {
					r.Header.Set("Origin", tt.origin)
				}
				w := httptest.NewRecorder()
				tt.h.Handler().ServeHTTP(w, r)
				want := map[string]int{"POST": tt.status, "OPTIONS": 204, "GET": 405}[method]
				if tt.status == 403 {
					want = 403
					require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"), "not even the refusal is readable")
				}
				require.Equal(t, want, w.Code, "%s %s", method, w.Body)
			}
		})
	}
	// Another node that listens beyond loopback takes no loopback name.
	open := nodetest.New(t, func(c *node.Config) { c.Dev, c.Listen, c.BaseURL = false, "0.0.0.0:0", "https://n1.example" })
	r := httptest.NewRequest("POST", "http://localhost"+protocol.MCPPath, http.NoBody)
	w := httptest.NewRecorder()
	open.Handler().ServeHTTP(w, r)
	require.Equal(t, 403, w.Code)
}
