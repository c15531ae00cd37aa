package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	devtools "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/protocol"
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

// on runs a script in every page of the tab before the page's own.
func (b *tab) on(script string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, devtools.AddScriptToEvaluateOnNewDocument, devtools.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
	require.NoError(b.t, err)
}

// tool calls a tool of the page.
func (b *tab) tool(name string, input any) (out map[string]any) {
	b.t.Helper()
	raw, err := json.Marshal(input)
	require.NoError(b.t, err)
	return look[map[string]any](b, fmt.Sprintf(`serviceAgent.call(%q, %s).catch(e => ({ refused: e.problem, message: e.message }))`, name, raw))
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
	s := newSpec(t, func(c *Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })
	server.Config.Handler = s.Handler()
	server.Start()
	t.Cleanup(server.Close)
	b := openBrowser(t, s.Base, chromedp.Flag("enable-features", "WebMCP"))

	t.Run("each page", func(t *testing.T) { b.with(t).everyPage(s) })
	t.Run("reading", func(t *testing.T) { b.with(t).reading(s) })
	t.Run("writing", func(t *testing.T) { b.with(t).writing(s) })
	t.Run("model contexts", func(t *testing.T) { b.with(t).contexts() })
}

func (b *tab) with(t *testing.T) *tab {
	other := *b
	other.t = t
	return &other
}

type offeredTool struct {
	Name, Title, Description string
	InputSchema              map[string]any
	ReadOnly                 bool
	Annotations              map[string]bool
}

func (b *tab) tools() (tools map[string]offeredTool) {
	b.t.Helper()
	tools = map[string]offeredTool{}
	for _, tool := range look[[]offeredTool](b, `serviceAgent.tools.map(({ execute, ...tool }) => tool)`) {
		tools[tool.Name] = tool
	}
	return tools
}

// everyPage: every page has all tools with titles, schemas and flags; two are on their pages only.
func (b *tab) everyPage(s *spec) {
	t := b.t
	everywhere := []string{"go_to"}
	for _, op := range protocol.OperationsFor(protocol.Everybody, protocol.InPage) {
		if !op.Streams() && !op.GivesFile() {
			everywhere = append(everywhere, op.Name)
		}
	}
	slices.Sort(everywhere)
	for path, more := range map[string]string{
		"/": "", "/agents": "", "/people": "", "/merchants": "", "/attention": "", "/board": "", "/feed": "", "/site-map": "", "/moderation": "",
		"/problems": "", "/board/" + s.post.ID: "", "/sign-in": "", "/nothing": "", "/@nobody": "",
		"/@asha": "ask_this_agent", "/@bazaar": "ask_this_agent",
	} {
		b.open(path)
		want := append(slices.Clone(everywhere), strings.Fields(more)...)
		slices.Sort(want)
		got := b.tools()
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
	require.True(t, look[bool](b, `Object.isFrozen(serviceAgent) && Object.isFrozen(serviceAgent.tools)`))
}

// reading: the tools answer as the operations do over HTTP, and return what was wrong.
func (b *tab) reading(s *spec) {
	t := b.t
	b.open("/board?kind=offer")
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
		{"get_board_post", `{"id":"` + s.post.ID + `"}`, "/api/public/board/" + s.post.ID},
		{"list_attention_boards", `{}`, "/api/public/attention"},
		{"get_meeting_info", `{"handle":"asha"}`, "/api/public/agents/asha/meetings"},
		{"site_map", `{}`, "/api/public/site-map"},
		{"service_session", `{}`, "/api/public/session"},
		{"get_current_page", `{}`, "/api/public/page?path=/board%3Fkind%3Doffer"},
	} {
		var want map[string]any
		s.ask("GET", tt.path, "").into(&want)
		require.Equal(t, want, b.tool(tt.tool, json.RawMessage(tt.input)), tt.tool)
	}
	require.Contains(t, b.tool("about_service", map[string]any{})["text"], "A2A")

	require.Equal(t, "not-found", problem(t, b.tool("get_agent_profile", map[string]any{"handle": "nobody"}))["code"])
	require.Equal(t, "validation", problem(t, b.tool("get_agent_profile", map[string]any{}))["code"])
	require.Equal(t, "validation", problem(t, b.tool("read_board", map[string]any{"kind": "rumour"}))["code"])
	require.Equal(t, "validation", problem(t, b.tool("read_board", map[string]any{"nonsense": 1}))["code"])
	require.Equal(t, "unknown-tool", problem(t, b.tool("ask_this_agent", map[string]any{"message": "Hello"}))["code"], "not on this page")
	require.Equal(t, "not-found", look[string](b,
		`serviceAgent.tools.find(t => t.name == "get_agent_profile").execute({ handle: "nobody" }).then(r => r.error.code)`),
		"a tool returns what was wrong")

	for _, path := range []any{"//evil.example", "/\\evil.example", "https://evil.example/", "/api/public/board", "/account", "board", "", nil, 7} {
		require.Equal(t, "not-found", problem(t, b.tool("go_to", map[string]any{"path": path}))["code"], "%v", path)
	}
	out := b.tool("go_to", map[string]any{"path": "/@asha"})
	require.Equal(t, map[string]any{"ok": true, "url": b.base + "/@asha"}, out)
	b.shows(`location.pathname == "/@asha" && document.readyState == "complete"`)
}

// writing: a visitor's browser solves the proof of work, and is known by its cookie afterwards.
func (b *tab) writing(s *spec) {
	t := b.t
	b.open("/@asha")
	b.shows(`!!window.serviceAgent`)
	out := b.tool("ask_this_agent", map[string]any{"message": "Do you take commissions?", "name": "Meera"})
	thread, _ := out["threadId"].(string)
	require.True(t, protocol.IsID(protocol.ThreadID, thread), "%v", out)
	read := b.tool("check_conversation", map[string]any{"threadId": thread})
	require.Equal(t, thread, read["threadId"], "by the browser's cookie: %v", read)
	require.Equal(t, thread, b.tool("check_conversation", map[string]any{"threadId": thread, "readToken": out["readToken"]})["threadId"])

	post := b.tool("post_to_board", map[string]any{"kind": "question", "title": "Who sells yarn?", "body": "Ten kilos.", "tags": []string{"yarn"}})
	id, _ := post["id"].(string)
	require.True(t, protocol.IsID(protocol.PostID, id), "%v", post)
	author, _ := post["author"].(map[string]any)
	require.Equal(t, false, author["verified"])
	require.NotContains(t, b.tool("report_post", map[string]any{"id": id, "reason": "A try."}), "refused")
	faults, _ := json.Marshal(problem(t, b.tool("post_to_board", map[string]any{"kind": "question", "body": "x"}))["errors"])
	require.Contains(t, string(faults), `"/title"`)
	require.Equal(t, "validation", problem(t, b.tool("request_meeting", map[string]any{"handle": "asha", "email": "nobody"}))["code"])
}

// contexts: the tools are in what the browser has, on each navigation, and after back and forward.
func (b *tab) contexts() {
	t := b.t
	names := func(tools map[string]offeredTool) (names []string) {
		for name := range tools {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	b.open("/board")
	want := names(b.tools())
	require.Eventually(t, func() bool {
		native := look[[]string](b, `document.modelContext.getTools().then(all => all.map(t => t.name))`)
		slices.Sort(native)
		return slices.Equal(want, native)
	}, time.Minute, 20*time.Millisecond)
	called := look[string](b, `document.modelContext.getTools().then(all =>
		document.modelContext.executeTool(all.find(t => t.name == "list_people"), { q: "asha" }))`)
	require.Contains(t, called, `"handle":"asha"`)

	for _, ways := range []string{`{"provide":true}`, `{"register":true}`} {
		tab := b.newTab().with(t)
		tab.on(strings.ReplaceAll(recorders, "WAYS", ways))
		tab.open("/board")
		tab.open("/@asha")
		tab.walk("back", "/board")
		tab.walk("forward", "/@asha")
		require.Eventually(t, func() bool {
			var given []struct {
				Path  string
				Names []string
			}
			raw := look[string](tab, `sessionStorage.getItem("given")`)
			require.NoError(t, json.Unmarshal([]byte(raw), &given))
			pages := map[string]int{}
			for _, g := range given {
				pages[g.Path] += len(g.Names)
			}
			return pages["/board"] == 2*len(want) && pages["/@asha"] == 2*(len(want)+1)
		}, time.Minute, 20*time.Millisecond, "%s: at first, and after back and forward", ways)
		out := look[map[string]any](tab, `window.given.find(t => t.name == "get_agent_profile").execute({ handle: "asha" })`)
		require.Equal(t, "asha", out["handle"])
	}
	tab := b.newTab().with(t)
	tab.on(strings.ReplaceAll(recorders, "WAYS", `{"throws":true}`))
	tab.open("/board")
	require.Equal(t, want, names(tab.tools()))
	require.Equal(t, "asha", tab.tool("get_agent_profile", map[string]any{"handle": "asha"})["handle"])
}

// walk goes through the history, where a page may come back as it was left, without a load.
func (b *tab) walk(way, to string) {
	b.t.Helper()
	look[bool](b, `(setTimeout(() => history.`+way+`()), true)`)
	b.shows(`location.pathname == ` + quoted(to) + ` && document.readyState == "complete"`)
}
