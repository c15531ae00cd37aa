package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/webmcp"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// recorders stand for the ways that browsers have had: what a page gives them is kept in sessionStorage
// by page, so that it is there after the next navigation.
const recorders = `{
	const note = (way, tools) => {
		const all = JSON.parse(sessionStorage.getItem("given") || "[]");
		all.push({ way, path: location.pathname, names: tools.map(t => t.name) });
		sessionStorage.setItem("given", JSON.stringify(all));
	};
	const fake = { };
	if (WAYS.provide) fake.provideContext = ({ tools }) => { window.given = tools; note("provide", tools); };
	if (WAYS.register) fake.registerTool = tool => { (window.given ||= []).push(tool); note("register", [tool]); };
	if (WAYS.throws) fake.provideContext = () => { throw new Error("not here"); };
	Object.defineProperty(navigator, "modelContext", { value: fake });
}`

// tool calls a tool of the page.
func tool(b *nodetest.Tab, name string, input any) (out map[string]any) {
	b.T.Helper()
	raw := must.Get(json.Marshal(input))(b.T)
	return nodetest.Look[map[string]any](b, fmt.Sprintf(`serviceAgent.call(%q, %s).catch(e => ({ refused: e.problem, message: e.message }))`, name, raw))
}

func problem(t *testing.T, out map[string]any) map[string]any {
	t.Helper()
	p, _ := out["refused"].(map[string]any)
	require.NotNil(t, p, "%v", out)
	return p
}

// TestPageTools uses the tools of the pages as an agent in the browser does (spec §4.2).
func TestPageTools(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	s := nodetest.NewSpec(t, func(c *node.Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })
	server.Config.Handler = s.Handler()
	server.Start()
	t.Cleanup(server.Close)
	b := nodetest.OpenBrowser(t, s.Base, chromedp.Flag("enable-features", "WebMCP"))

	t.Run("each page", func(t *testing.T) { everyPage(withTools(b, t), s) })
	t.Run("reading", func(t *testing.T) { reading(withTools(b, t), s) })
	t.Run("writing", func(t *testing.T) { writing(withTools(b, t), s) })
	t.Run("model contexts", func(t *testing.T) { contexts(withTools(b, t)) })
	t.Run("forms", func(t *testing.T) { formTools(withTools(b, t)) })
}

func withTools(b *nodetest.Tab, t *testing.T) *nodetest.Tab {
	other := *b
	other.T = t
	return &other
}

type offeredTool struct {
	Name, Title, Description string
	InputSchema              map[string]any
	ReadOnly                 bool
	Annotations              map[string]bool
}

func tools(b *nodetest.Tab) (tools map[string]offeredTool) {
	b.T.Helper()
	tools = map[string]offeredTool{}
	for _, tool := range nodetest.Look[[]offeredTool](b, `serviceAgent.tools.map(({ execute, ...tool }) => tool)`) {
		tools[tool.Name] = tool
	}
	return tools
}

// everyPage: every page has all tools with titles, schemas and flags; two are on their pages only.
func everyPage(b *nodetest.Tab, s *nodetest.Spec) {
	t := b.T
	everywhere := []string{"go_to"}
	for _, op := range protocol.OperationsFor(protocol.Everybody, protocol.InPage) {
		if !op.Streams() && !op.GivesFile() {
			everywhere = append(everywhere, op.Name)
		}
	}
	slices.Sort(everywhere)
	for path, more := range map[string]string{
		"/": "", "/agents": "", "/people": "", "/merchants": "", "/attention": "", "/board": "", "/feed": "", "/site-map": "", "/moderation": "",
		"/problems": "", "/board/" + s.Post.ID: "", "/sign-in": "", "/nothing": "", "/@nobody": "",
		"/@asha": "ask_this_agent", "/@bazaar": "ask_this_agent",
	} {
		b.Open(path)
		want := append(slices.Clone(everywhere), strings.Fields(more)...)
		slices.Sort(want)
		got := tools(b)
		names := make([]string, 0, len(got))
		for name, tool := range got {
			names = append(names, name)
			require.NotEmpty(t, tool.Title, name)
			require.NotEmpty(t, tool.Description, name)
			require.Equal(t, "object", tool.InputSchema["type"], name)
			require.Equal(t, tool.ReadOnly, tool.Annotations["readOnlyHint"], name)
			if op := protocol.Lookup(name); op != nil {
				require.Equal(t, op.ReadOnly, tool.ReadOnly, name)
			}
		}
		slices.Sort(names)
		require.Equal(t, want, names, path)
	}
	require.True(t, nodetest.Look[bool](b, `Object.isFrozen(serviceAgent) && Object.isFrozen(serviceAgent.tools)`))
}

// reading: the tools answer as the operations do over HTTP, and return what was wrong.
func reading(b *nodetest.Tab, s *nodetest.Spec) {
	t := b.T
	b.Open("/board?kind=offer")
	for _, tt := range []struct {
		tool, input, path string
	}{
		{"list_merchants", `{"city":"Bombay","limit":1}`, "/api/public/merchants?city=Bombay&limit=1"},
		{"get_merchant", `{"handle":"@bazaar"}`, "/api/public/merchants/bazaar"},
		{"list_people", `{"q":"asha"}`, "/api/public/people?q=asha"},
		{"search_agents", `{"kind":"person","hasIdentity":false}`, "/api/public/agents?kind=person&hasIdentity=false"},
		{"get_agent_profile", `{"handle":"asha"}`, "/api/public/agents/asha"},
		{"read_feed", `{"types":"board_post","limit":2}`, "/api/public/feed?types=board_post&limit=2"},
		{"read_board", `{"kind":"question","verifiedOnly":true}`, "/api/public/board?kind=question&verifiedOnly=true"},
		{"get_board_post", `{"id":"` + s.Post.ID + `"}`, "/api/public/board/" + s.Post.ID},
		{"list_attention_boards", `{}`, "/api/public/attention"},
		{"get_meeting_info", `{"handle":"asha"}`, "/api/public/agents/asha/meetings"},
		{"site_map", `{}`, "/api/public/site-map"},
		{"service_session", `{}`, "/api/public/session"},
		{"get_current_page", `{}`, "/api/public/page?path=/board%3Fkind%3Doffer"},
	} {
		want := nodetest.As[map[string]any](s.Ask("GET", tt.path, ""))
		require.Equal(t, want, tool(b, tt.tool, json.RawMessage(tt.input)), tt.tool)
	}
	require.Contains(t, tool(b, "about_service", map[string]any{})["text"], "A2A")

	require.Equal(t, "not-found", problem(t, tool(b, "get_agent_profile", map[string]any{"handle": "nobody"}))["code"])
	require.Equal(t, "validation", problem(t, tool(b, "get_agent_profile", map[string]any{}))["code"])
	require.Equal(t, "validation", problem(t, tool(b, "read_board", map[string]any{"kind": "rumour"}))["code"])
	require.Equal(t, "validation", problem(t, tool(b, "read_board", map[string]any{"nonsense": 1}))["code"])
	require.Equal(t, "unknown-tool", problem(t, tool(b, "ask_this_agent", map[string]any{"message": "Hello"}))["code"], "not on this page")
	require.Equal(t, "not-found", nodetest.Look[string](b,
		`serviceAgent.tools.find(t => t.name == "get_agent_profile").execute({ handle: "nobody" }).then(r => r.error.code)`),
		"a tool returns what was wrong")

	for _, path := range []any{"//evil.example", "/\\evil.example", "https://evil.example/", "/api/public/board", "/account", "board", "", nil, 7} {
		require.Equal(t, "not-found", problem(t, tool(b, "go_to", map[string]any{"path": path}))["code"], "%v", path)
	}
	require.Equal(t, map[string]any{"ok": true, "url": b.Base + "/@asha"}, tool(b, "go_to", map[string]any{"path": "/@asha"}))
	shows(b, `location.pathname == "/@asha" && document.readyState == "complete"`)
}

// writing: a visitor's browser solves the proof of work, and is known by its cookie afterwards.
func writing(b *nodetest.Tab, s *nodetest.Spec) {
	t := b.T
	b.Open("/@asha")
	shows(b, `!!window.serviceAgent`)
	out := tool(b, "ask_this_agent", map[string]any{"message": "Do you take commissions?", "name": "Meera"})
	thread, _ := out["threadId"].(string)
	require.True(t, protocol.IsID(protocol.ThreadID, thread), "%v", out)
	read := tool(b, "check_conversation", map[string]any{"threadId": thread})
	require.Equal(t, thread, read["threadId"], "by the browser's cookie: %v", read)
	require.Equal(t, thread, tool(b, "check_conversation", map[string]any{"threadId": thread, "readToken": out["readToken"]})["threadId"])

	post := tool(b, "post_to_board", map[string]any{"kind": "question", "title": "Who sells yarn?", "body": "Ten kilos.", "tags": []string{"yarn"}})
	id, _ := post["id"].(string)
	require.True(t, protocol.IsID(protocol.PostID, id), "%v", post)
	author, _ := post["author"].(map[string]any)
	require.Equal(t, false, author["verified"])
	require.NotContains(t, tool(b, "report_post", map[string]any{"id": id, "reason": "A try."}), "refused")
	faults, _ := json.Marshal(problem(t, tool(b, "post_to_board", map[string]any{"kind": "question", "body": "x"}))["errors"])
	require.Contains(t, string(faults), `"/title"`)
	require.Equal(t, "validation", problem(t, tool(b, "request_meeting", map[string]any{"handle": "asha", "email": "nobody"}))["code"])
}

// contexts: the tools are in what the browser has, on each navigation, and after back and forward.
func contexts(b *nodetest.Tab) {
	t := b.T
	names := func(tools map[string]offeredTool) (names []string) {
		for name := range tools {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	b.Open("/board")
	want := names(tools(b))
	require.Eventually(t, func() bool {
		native := nodetest.Look[[]string](b, `document.modelContext.getTools().then(all => all.map(t => t.name))`)
		slices.Sort(native)
		return slices.Equal(want, native)
	}, time.Minute, 20*time.Millisecond)
	called := nodetest.Look[string](b, `document.modelContext.getTools().then(all =>
		document.modelContext.executeTool(all.find(t => t.name == "list_people"), { q: "asha" }))`)
	require.Contains(t, called, `"handle":"asha"`)

	for _, ways := range []string{`{"provide":true}`, `{"register":true}`} {
		tab := withTools(b.NewTab(), t)
		tab.On(strings.ReplaceAll(recorders, "WAYS", ways))
		tab.Open("/board")
		tab.Open("/@asha")
		walk(tab, "back", "/board")
		walk(tab, "forward", "/@asha")
		require.Eventually(t, func() bool {
			var given []struct {
				Path  string
				Names []string
			}
			require.NoError(t, json.Unmarshal([]byte(nodetest.Look[string](tab, `sessionStorage.getItem("given")`)), &given))
			pages := map[string]int{}
			for _, g := range given {
				pages[g.Path] += len(g.Names)
			}
			return pages["/board"] == 2*len(want) && pages["/@asha"] == 2*(len(want)+1)
		}, time.Minute, 20*time.Millisecond, "%s: at first, and after back and forward", ways)
		out := nodetest.Look[map[string]any](tab, `window.given.find(t => t.name == "get_agent_profile").execute({ handle: "asha" })`)
		require.Equal(t, "asha", out["handle"])
	}
	tab := withTools(b.NewTab(), t)
	tab.On(strings.ReplaceAll(recorders, "WAYS", `{"throws":true}`))
	tab.Open("/board")
	require.Equal(t, want, names(tools(tab)))
	require.Equal(t, "asha", tool(tab, "get_agent_profile", map[string]any{"handle": "asha"})["handle"])
}

// formTools searches in a browser that runs no script of the pages, by the forms that it offers to agents itself.
func formTools(b *nodetest.Tab) {
	t := b.T
	tab := withTools(b.NewTab(), t)
	added, answered := chromedp.Events(tab.Ctx, webmcp.ToolsAdded), chromedp.Events(tab.Ctx, webmcp.ToolResponded)
	act := func(do func(ctx context.Context) error) {
		must.Get(chromedp.Run(tab.Ctx, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error { return do(ctx) })))(t)
	}
	act(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
	require.Equal(t, 200, tab.Open("/agents"))
	act(func(ctx context.Context) error { _, err := chromedp.Call(ctx, webmcp.Enable, struct{}{}); return err })
	for event, err := range added {
		require.NoError(t, err)
		require.Len(t, event.Tools, 1)
		found := event.Tools[0]
		require.Equal(t, "search_agents", found.Name)
		require.Equal(t, protocol.SearchAgents.Summary, found.Description)
		require.Contains(t, string(found.InputSchema), `"capability"`)
		act(func(ctx context.Context) error {
			_, err := chromedp.Call(ctx, webmcp.InvokeTool, webmcp.InvokeToolParams{FrameID: found.FrameID, ToolName: found.Name, Input: []byte(`{"q":"asha"}`)})
			return err
		})
		break
	}
	for event, err := range answered {
		require.NoError(t, err)
		require.Equal(t, "Completed", string(event.Status), event.ErrorText)
		require.Contains(t, string(event.Output), b.Base+"/@asha")
		break
	}
}

// walk goes through the history, where a page may come back as it was left, without a load.
func walk(b *nodetest.Tab, way, to string) {
	b.T.Helper()
	nodetest.Look[bool](b, `(setTimeout(() => history.`+way+`()), true)`)
	shows(b, `location.pathname == `+nodetest.Quoted(to)+` && document.readyState == "complete"`)
}
