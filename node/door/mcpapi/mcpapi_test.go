package mcpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/identity/httpsig"
	"stoa/identity/proof"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

const base = "https://n1.example"

// nobody is a directory without profiles, tokens and sessions.
type nobody struct{}

func (nobody) KeyUsed(context.Context, string, string) {}

func (nobody) DelegatedKey(context.Context, string, string) (k httpsig.Key, by httpsig.Account, ok bool, err error) {
	return k, by, false, nil
}

func (nobody) KeyByThumbprint(context.Context, string) (identity.Hosted, bool, error) {
	return identity.Hosted{}, false, nil
}
func (nobody) DirectoryAgent(context.Context, string) (identity.Hosted, bool, error) {
	return identity.Hosted{}, false, nil
}

func (nobody) HostedAgent(context.Context, identity.ChainKey, string) (identity.Hosted, bool, error) {
	return identity.Hosted{}, false, nil
}
func (nobody) TokenBySecret(_ context.Context, secret string) (identity.Credential, bool, error) {
	return identity.Credential{}, secret == "known", nil
}
func (nobody) SessionBySecret(context.Context, string) (identity.Credential, bool, error) {
	return identity.Credential{}, false, nil
}

// door is an API over a hall of four operations: one that reads, one that writes
// and needs something to be shown, one that needs to know the caller, and one whose
// answer is plain text.
func door(t *testing.T, change func(*Config)) (*API, *int) {
	t.Helper()
	flat, reads := 0, new(int)
	target := must.Get(httpsig.ParseTarget(base))(t)
	gate := &identity.Gate{Target: target, Directory: nobody{},
		Proofs: proof.New(proof.Config{Master: []byte("0123456789abcdef"), Audience: "n1.example", Flat: &flat, Cost: 1})}
	table := hall.New(storagetest.Open(t), gate, hall.NewLimits(hall.WideRates()))
	hall.Bind(table, protocol.ReadBoard, func(_ context.Context, _ *storage.Tx, _ protocol.Caller,
		in protocol.BoardQuery) (protocol.List[protocol.Post], error) {
		*reads++
		return protocol.List[protocol.Post]{Page: protocol.Page[protocol.Post]{Items: []protocol.Post{{Title: in.Q + " \"quoted\"\n\x01"}}}}, nil
	})
	hall.Bind(table, protocol.PostToBoard, func(_ context.Context, _ *storage.Tx, _ protocol.Caller, in protocol.NewPost) (protocol.MadePost, error) {
		return protocol.MadePost{Post: protocol.Post{Title: in.Title}}, nil
	})
	hall.Bind(table, protocol.AboutService, func(context.Context, *storage.Tx, protocol.Caller, protocol.None) (string, error) {
		return "about", nil
	})
	hall.Bind(table, protocol.EditPost, func(context.Context, *storage.Tx, protocol.Caller, protocol.PostEdit) (protocol.Post, error) {
		return protocol.Post{}, nil
	})
	c := Config{Table: table, Base: base, Version: "1", Network: func(*http.Request) string { return "net" }, Changes: func() uint64 { return 7 }}
	if change != nil {
		change(&c)
	}
	a := must.Get(New(c))(t)
	return a, reads
}

// send makes a request of a body; head has lines "Name: value".
func send(a *API, method, body string, head ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, base+"/mcp/public", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, line := range head {
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

type reply struct {
	ID     json.RawMessage
	Result map[string]any
	Error  *struct {
		Code    int
		Message string
		Data    map[string]any
	}
}

func read(t *testing.T, w *httptest.ResponseRecorder) (r reply) {
	t.Helper()
	raw := must.Get(io.ReadAll(w.Body))(t)
	require.NoError(t, json.Unmarshal(raw, &r), "%s", raw)
	return r
}

const (
	known     = "Authorization: Bearer known"
	versionOf = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	newest    = "MCP-Protocol-Version: 2026-07-28"
)

// TestWire is which requests are served, and how each fault is told: the status, the
// code of JSON-RPC and ours.
func TestWire(t *testing.T) {
	t.Parallel()
	a, _ := door(t, nil)
	request := func(members string) string { return `{"jsonrpc":"2.0","id":1,` + members + `}` }
	ping, list := request(`"method":"ping"`), request(`"method":"tools/list"`)
	modernList := request(`"method":"tools/list","params":{` + versionOf + `}`)
	for _, tt := range []struct {
		name   string
		method string
		body   string
		head   []string
		status int
		rpc    int // 0 is a result
		code   protocol.Code
	}{
		{"ping", "POST", ping, nil, 200, 0, ""},
		{"a list", "POST", list, nil, 200, 0, ""},
		{"a list of each older revision", "POST", list, []string{"MCP-Protocol-Version: 2025-03-26"}, 200, 0, ""},
		{"an unknown revision", "POST", list, []string{"MCP-Protocol-Version: 2024-11-05"}, 400, versionUnsupported, ""},
		{"a revision to come", "POST", list, []string{"MCP-Protocol-Version: 2027-01-01"}, 400, badParams, protocol.InvalidRequest},
		{"a string for an id", "POST", `{"jsonrpc":"2.0","id":"a","method":"ping"}`, nil, 200, 0, ""},
		{"a fraction for an id", "POST", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, nil, 400, invalidRequest, protocol.InvalidRequest},
		{"null for an id", "POST", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, nil, 400, invalidRequest, protocol.InvalidRequest},
		{"a batch", "POST", "[" + ping + "]", nil, 400, invalidRequest, protocol.InvalidRequest},
		{"no JSON-RPC", "POST", `{"id":1,"method":"ping"}`, nil, 400, invalidRequest, protocol.InvalidRequest},
		{"no method", "POST", `{"jsonrpc":"2.0","id":1}`, nil, 400, invalidRequest, protocol.InvalidRequest},
		{"params that are a list", "POST", request(`"method":"ping","params":[]`), nil, 400, invalidRequest, protocol.InvalidRequest},
		{"a member twice", "POST", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, nil, 400, parseError, protocol.InvalidRequest},
		{"another case", "POST", `{"jsonrpc":"2.0","id":1,"Method":"ping"}`, nil, 400, invalidRequest, protocol.InvalidRequest},
		{"broken JSON", "POST", `{"jsonrpc"`, nil, 400, parseError, protocol.InvalidRequest},
		{"an unknown method", "POST", request(`"method":"resources/eat"`), nil, 200, methodNotFound, protocol.NotFound},
		{"too large", "POST", request(`"method":"` + strings.Repeat("a", MaxBody) + `"`), nil, 413, invalidRequest, protocol.TooLarge},
		{"another media type", "POST", ping, []string{"Content-Type: ", "Content-Type: text/plain"}, 415, invalidRequest, protocol.UnsupportedMediaType},
		{"compressed", "POST", ping, []string{"Content-Encoding: gzip"}, 415, invalidRequest, protocol.UnsupportedMediaType},
		{"a stream", "GET", "", nil, 405, invalidRequest, protocol.MethodNotAllowed},
		{"the end of a session", "DELETE", "", nil, 405, invalidRequest, protocol.MethodNotAllowed},
		{"another host", "POST", ping, []string{"Host: evil.example"}, 403, invalidRequest, protocol.Forbidden},
		{"a loopback name at a public node", "POST", ping, []string{"Host: localhost"}, 403, invalidRequest, protocol.Forbidden},
		{"a page elsewhere", "POST", ping, []string{"Origin: https://evil.example"}, 200, 0, ""},

		{"modern", "POST", modernList, []string{newest, "Mcp-Method: tools/list"}, 200, 0, ""},
		{"modern without its header", "POST", modernList, []string{"Mcp-Method: tools/list"}, 400, headerMismatch, protocol.InvalidRequest},
		{"modern with its header twice", "POST", modernList, []string{newest, newest, "Mcp-Method: tools/list"}, 400, headerMismatch, protocol.InvalidRequest},
		{"modern without the method's header", "POST", modernList, []string{newest}, 400, headerMismatch, protocol.InvalidRequest},
		{"modern with another method's header", "POST", modernList, []string{newest, "Mcp-Method: tools/call"}, 400, headerMismatch, protocol.InvalidRequest},
		{"modern without capabilities", "POST",
			request(`"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`),
			[]string{newest, "Mcp-Method: tools/list"}, 400, badParams, protocol.InvalidRequest},
		{"the newest header alone", "POST", list, []string{newest}, 400, badParams, protocol.InvalidRequest},
		{"modern ping, which is gone", "POST", request(`"method":"ping","params":{` + versionOf + `}`), []string{newest, "Mcp-Method: ping"}, 404,
			methodNotFound, protocol.NotFound},
		{"modern call without the tool's header", "POST", request(`"method":"tools/call","params":{"name":"read_board",` + versionOf + `}`),
			[]string{newest, "Mcp-Method: tools/call"}, 400, headerMismatch, protocol.InvalidRequest},
		{"modern call with another tool's header", "POST", request(`"method":"tools/call","params":{"name":"read_board",` + versionOf + `}`),
			[]string{newest, "Mcp-Method: tools/call", "Mcp-Name: post_to_board"}, 400, headerMismatch, protocol.InvalidRequest},
		{"modern call", "POST", request(`"method":"tools/call","params":{"name":"read_board",` + versionOf + `}`),
			[]string{newest, "Mcp-Method: tools/call", "Mcp-Name: read_board"}, 200, 0, ""},
		{"modern call, wrapped", "POST", request(`"method":"tools/call","params":{"name":"read_board",` + versionOf + `}`),
			[]string{newest, "Mcp-Method: tools/call", "Mcp-Name: =?base64?cmVhZF9ib2FyZA==?="}, 200, 0, ""},
	} {
		w := send(a, tt.method, tt.body, tt.head...)
		require.Equal(t, tt.status, w.Code, "%s: %s", tt.name, w.Body)
		r := read(t, w)
		if tt.rpc == 0 {
			require.Nil(t, r.Error, tt.name)
			continue
		}
		require.NotNil(t, r.Error, tt.name)
		require.Equal(t, tt.rpc, r.Error.Code, "%s: %s", tt.name, r.Error.Message)
		if tt.code != "" {
			require.Equal(t, string(tt.code), r.Error.Data["code"], tt.name)
		}
	}
	w := send(a, "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	require.Equal(t, http.StatusAccepted, w.Code, "a notification has no answer")
	require.Empty(t, w.Body.String())
	require.Equal(t, []any{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"},
		read(t, send(a, "POST", ping, "MCP-Protocol-Version: 1999-01-01")).Error.Data["supported"])
}

// TestInitialize: a handshake settles on the revision that was asked for, else on
// the newest that has handshakes.
func TestInitialize(t *testing.T) {
	t.Parallel()
	a, _ := door(t, nil)
	for asked, want := range map[string]string{"2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "1999-01-01": latestLegacy} {
		r := read(t, send(a, "POST",
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+asked+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
		require.Equal(t, want, r.Result["protocolVersion"], asked)
		none := map[string]any{}
		require.Equal(t, map[string]any{"tools": none, "resources": none, "prompts": none, "completions": none}, r.Result["capabilities"])
	}
}

// TestCall is what a tool answers: text and the same structured; a refusal as a
// result that says so; and what is no call at all.
func TestCall(t *testing.T) {
	t.Parallel()
	a, reads := door(t, nil)
	call := func(params string, head ...string) (reply, *httptest.ResponseRecorder) {
		w := send(a, "POST", `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":`+params+`}`, head...)
		return read(t, w), w
	}
	r, w := call(`{"name":"read_board","arguments":{"q":"paper"}}`)
	require.Equal(t, `"x"`, string(r.ID))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.NotContains(t, r.Result, "isError")
	text := r.Result["content"].([]any)[0].(map[string]any)["text"].(string)
	require.JSONEq(t, string(must.Get(json.Marshal(r.Result["structuredContent"]))(t)), text, "both are the same")
	require.Contains(t, text, `paper \"quoted\"\n\u0001`)
	call(`{"name":"read_board","arguments":{"q":"paper"}}`)
	require.Equal(t, 1, *reads, "an open read is kept while nothing changes")
	call(`{"name":"read_board","arguments":{"q":"ink"}}`)
	require.Equal(t, 2, *reads)
	call(`{"name":"read_board","arguments":{"q":"ink"}}`, "MCP-Protocol-Version: 2025-06-18")
	require.Equal(t, 2, *reads)

	r, _ = call(`{"name":"about_service","arguments":null}`)
	require.NotContains(t, r.Result, "structuredContent", "plain text has no structure")

	r, w = call(`{"name":"post_to_board","arguments":{"kind":"offer","title":"t","body":"b"}}`)
	require.Equal(t, 200, w.Code, "what only needs a proof is told to the model")
	require.Equal(t, true, r.Result["isError"])
	refusal := r.Result["content"].([]any)[0].(map[string]any)["text"].(string)
	for _, part := range []string{`"pow-required"`, `"challenge"`, `"how"`, `"retry"`} {
		require.Contains(t, refusal, part)
	}
	r, _ = call(`{"name":"read_board","arguments":{"limit":0,"kind":"rumour"}}`)
	require.Equal(t, true, r.Result["isError"])
	require.Contains(t, r.Result["content"].([]any)[0].(map[string]any)["text"], "/kind")

	r, w = call(`{"name":"edit_post","arguments":{"id":"post_01k9y3v6k8e5w9q2x4z7c1m0ad","kind":"offer","title":"t","body":"b"}}`)
	require.Equal(t, 200, w.Code, "who showed nothing has nothing to renew")
	require.Equal(t, true, r.Result["isError"])
	_, w = call(`{"name":"read_board"}`, "Authorization: Bearer stoa_wrong")
	require.Equal(t, 401, w.Code, "a credential that failed is told to the transport")
	_, w = call(`{"name":"post_to_board"}`, "Authorization: Bearer stoa_wrong")
	require.NotEmpty(t, w.Header().Get("WWW-Authenticate"))
	_, w = call(`{"name":"post_to_board"}`, "Signature: sig1=:AAAA:")
	require.Equal(t, 401, w.Code)
	require.NotEmpty(t, w.Header().Get("Signature-Error"))
	require.NotEmpty(t, w.Header().Get("Accept-Signature"))

	for _, params := range []string{
		`{}`, `{"name":7}`, `{"name":"read_bord"}`, `{"name":"list_threads"}`, `{"name":"read_board","arguments":[]}`, `{"name":"read_board","arguments":"x"}`,
	} {
		r, _ := call(params)
		require.NotNil(t, r.Error, params)
		require.Equal(t, badParams, r.Error.Code, params)
	}
}

// TestReachable: a page elsewhere reaches a node on loopback through nobody's
// browser, and the owners' door from nowhere.
func TestReachable(t *testing.T) {
	t.Parallel()
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	local := func(c *Config) { c.Base, c.Loopback = "http://127.0.0.1:8080", true }
	owners := func(c *Config) { c.For = protocol.Owners }
	for _, tt := range []struct {
		name   string
		change func(*Config)
		head   []string
		status int
	}{
		{"loopback", local, []string{"Host: 127.0.0.1:8080"}, 200},
		{"loopback by its name", local, []string{"Host: localhost:8080"}, 200},
		{"loopback, IPv6", local, []string{"Host: [::1]:8080"}, 200},
		{"a name that was rebound", local, []string{"Host: evil.example:8080"}, 403},
		{"a name that looks like it", local, []string{"Host: localhost.evil.example:8080"}, 403},
		{"a page on loopback", local, []string{"Host: localhost:8080", "Origin: http://localhost:3000"}, 200},
		{"a page elsewhere", local, []string{"Host: localhost:8080", "Origin: https://evil.example"}, 403},
		{"a page without origin", local, []string{"Host: localhost:8080", "Origin: null"}, 403},
		{"two origins", local, []string{"Host: localhost:8080", "Origin: http://localhost:3000", "Origin: https://evil.example"}, 403},
		{"owners, a program", owners, []string{known}, 200},
		{"owners, a program without a token", owners, nil, 401},
		{"owners, our page", owners, []string{known, "Origin: " + base, "Sec-Fetch-Site: same-origin"}, 200},
		{"owners, a page elsewhere", owners, []string{known, "Origin: https://evil.example"}, 403},
	} {
		a, _ := door(t, tt.change)
		w := send(a, "POST", ping, tt.head...)
		require.Equal(t, tt.status, w.Code, "%s: %s", tt.name, w.Body)
	}
	everybody, _ := door(t, nil)
	require.Equal(t, "*", send(everybody, "POST", ping).Header().Get("Access-Control-Allow-Origin"))
	require.Equal(t, "POST", send(everybody, "OPTIONS", "").Header().Get("Access-Control-Allow-Methods"))
	theirs, _ := door(t, owners)
	require.Empty(t, send(theirs, "POST", ping).Header().Get("Access-Control-Allow-Origin"))
	require.Empty(t, send(theirs, "OPTIONS", "").Header().Get("Access-Control-Allow-Methods"))
}

// TestTools: every operation of the audience that names this door is a tool, and no
// other.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, audience := range []protocol.Audience{protocol.Everybody, protocol.Owners} {
		a, _ := door(t, func(c *Config) { c.For = audience })
		var names, want []string
		for _, tool := range read(t, send(a, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, known)).Result["tools"].([]any) {
			tool := tool.(map[string]any)
			names = append(names, tool["name"].(string))
			op := protocol.Lookup(tool["name"].(string))
			require.Equal(t, op.ReadOnly, tool["annotations"].(map[string]any)["readOnlyHint"], op.Name)
			require.NotEmpty(t, tool["description"])
			require.Equal(t, "object", tool["inputSchema"].(map[string]any)["type"])
		}
		for _, op := range protocol.OperationsFor(audience, protocol.MCP) {
			want = append(want, op.Name)
		}
		require.ElementsMatch(t, want, names)
	}
}
