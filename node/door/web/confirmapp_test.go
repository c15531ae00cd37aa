package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// appHost is the window of a client that shows an app, as MCP Apps 2026-01-26 says: it answers what the app asks, and keeps it.
const appHost = `<!doctype html><iframe sandbox="allow-scripts" style="width:380px;height:480px;border:0"></iframe><script>
const frame = document.querySelector("iframe"), log = [], given = GIVEN;
let shown = "", opened = "", told = null;
const to = m => frame.contentWindow.postMessage(m, "*");
addEventListener("message", async ({ source, data: m }) => {
	if (source !== frame.contentWindow) return;
	if (m.shown !== undefined) { shown = m.shown; return; }
	log.push(m);
	const reply = result => to({ jsonrpc: "2.0", id: m.id, result });
	switch (m.method) {
	case "ui/initialize":
		return reply({ protocolVersion: "2026-01-26", hostInfo: { name: "host", version: "1" },
			hostCapabilities: { openLinks: {}, serverTools: {}, updateModelContext: { text: {} } },
			hostContext: { theme: "light", locale: given.locale, toolInfo: { tool: { name: given.name, inputSchema: { type: "object" } } } } });
	case "ui/notifications/initialized":
		to({ jsonrpc: "2.0", method: "ui/notifications/tool-input", params: { arguments: given.args } });
		return to({ jsonrpc: "2.0", method: "ui/notifications/tool-result", params: given.result });
	case "ui/open-link": opened = m.params.url; return reply({});
	case "ui/update-model-context": told = m.params; return reply({});
	case "tools/call": return reply(await (await fetch("/call", { method: "POST", body: JSON.stringify(m.params) })).json());
	}
});
frame.srcdoc = given.page + "<script>addEventListener('message', ({ data }) => {" +
	" if (data === 'show') parent.postMessage({ shown: document.body.innerText }, '*');" +
	" if (data === 'press') document.getElementById('open').click(); })</" + "script>";
</script>`

// TestBrowser_ConfirmApp: a client of either wire that declares io.modelcontextprotocol/ui is told of the app, and shows it in a frame without an
// origin; the person opens the page from it and presses there; the app sees that by itself and tells the model.
func TestBrowser_ConfirmApp(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t, func(c *node.Config) { c.Dev = true })
	const name, args = "post_to_board", `{"kind":"question","title":"Who makes paper?","body":"Two hundred <b>sheets</b>."}`
	modern := func(method, params string, headers ...string) json.RawMessage {
		body := strings.Replace(nodetest.ModernBody(method, params), `clientCapabilities":{}`,
			`clientCapabilities":{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`, 1)
		return h.RPCAt(protocol.MCPPath, body, append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}, headers...)...).Result
	}

	// Which tools name the app, for whom.
	type listed struct {
		Tools []struct {
			Name string
			Meta struct{ UI json.RawMessage } `json:"_meta"`
		}
	}
	apps := func(raw json.RawMessage) (names []string) {
		for _, tool := range read[listed](t, raw).Tools {
			if tool.Meta.UI != nil {
				valid(t, "McpUiToolMeta", tool.Meta.UI)
				names = append(names, tool.Name)
			}
		}
		return names
	}
	want := []string{"bid_for_attention", "contact_agent", "continue_conversation", "post_to_board", "report_post", "request_meeting"}
	require.Equal(t, want, apps(modern("tools/list", "")))
	require.Empty(t, apps(h.Modern("tools/list", "").Result), "of a client that does not declare it")
	for capabilities, want := range map[string][]string{`{"extensions":{"io.modelcontextprotocol/ui":{}}}`: want, `{}`: nil} {
		begun := h.RPCAt(protocol.MCPPath, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
			`"clientInfo":{"name":"c","version":"1"},"capabilities":`+capabilities+`}}`)
		list := h.RPCAt(protocol.MCPPath, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
			"MCP-Protocol-Version", "2025-11-25", "Mcp-Session-Id", begun.Header().Get("Mcp-Session-Id"))
		require.Equal(t, want, apps(list.Result), capabilities)
	}
	app := read[struct {
		Contents []struct {
			MimeType, Text string
			Meta           struct{ UI json.RawMessage } `json:"_meta"`
		}
	}](t, modern("resources/read", `"uri":"ui://stoa/confirm"`, "Mcp-Name", "ui://stoa/confirm"))
	require.Equal(t, "text/html;profile=mcp-app", app.Contents[0].MimeType)
	valid(t, "McpUiResourceMeta", app.Contents[0].Meta.UI)

	call := func(args string) json.RawMessage {
		return modern("tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, name, args), "Mcp-Name", name)
	}
	result := call(args)
	const policy = `default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'`
	page := `<meta http-equiv="Content-Security-Policy" content="` + policy + `">` + app.Contents[0].Text
	given := must.Get(json.Marshal(map[string]any{"page": page, "name": name, "args": json.RawMessage(args), "result": result, "locale": "en-IN"}))(t)
	window := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, strings.Replace(appHost, "GIVEN", string(given), 1))
			return
		}
		var in struct{ Arguments json.RawMessage }
		if json.NewDecoder(r.Body).Decode(&in) == nil {
			w.Write(call(string(in.Arguments)))
		}
	}))
	t.Cleanup(window.Close)
	b := nodetest.OpenBrowser(t, h.Base)
	do(b, chromedp.EmulateViewport(390, 520))
	require.Equal(t, 200, b.Load(chromedp.Navigate(window.URL)))
	shows := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool {
			return strings.Contains(nodetest.Look[string](b, `(to("show"), shown)`), text)
		}, time.Minute, 20*time.Millisecond, text)
	}
	shows("Nothing is sent yet")
	shows("Two hundred <b>sheets</b>.")
	b.Picture("confirm-app")
	nodetest.Look[any](b, `to("press")`)
	var link string
	require.Eventually(t, func() bool { link = nodetest.Look[string](b, `opened`); return link != "" }, time.Minute, 20*time.Millisecond)
	other := b.NewTab()
	require.Equal(t, 200, other.Load(chromedp.Navigate(link)))
	require.Equal(t, 200, other.Send("#confirm"))
	shows("Done: it is sent.")
	require.Eventually(t, func() bool {
		return strings.Contains(nodetest.Look[string](b, `JSON.stringify(told)`), "Who makes paper?")
	}, time.Minute, 20*time.Millisecond,
		"the model has the result")
	seen := map[string]bool{}
	for _, m := range nodetest.Look[[]map[string]any](b, `log`) {
		method := m["method"].(string)
		seen[method] = true
		if def := appMessages[method]; def != "" {
			delete(m, "jsonrpc")
			delete(m, "id")
			raw := must.Get(json.Marshal(m))(t)
			valid(t, def, raw)
		}
	}
	for method := range appMessages {
		require.True(t, seen[method], method)
	}
}

func read[T any](t *testing.T, raw []byte) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(raw, &v))
	return v
}

// appMessages are the definitions of what an app sends; tools/call is MCP's own.
var appMessages = map[string]string{
	"ui/initialize": "McpUiInitializeRequest", "ui/notifications/initialized": "McpUiInitializedNotification", "ui/open-link": "McpUiOpenLinkRequest",
	"ui/notifications/size-changed": "McpUiSizeChangedNotification", "ui/update-model-context": "McpUiUpdateModelContextRequest",
}

// valid checks a value against a definition of the schema of MCP Apps.
func valid(t *testing.T, definition string, raw []byte) {
	t.Helper()
	file := must.Get(os.ReadFile("testdata/mcp-apps.schema.json"))(t)
	doc := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(file)))(t)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("apps.json", doc))
	s := must.Get(c.Compile("apps.json#/$defs/" + definition))(t)
	require.NoError(t, s.Validate(must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(raw)))(t)), "%s: %s", definition, raw)
}
