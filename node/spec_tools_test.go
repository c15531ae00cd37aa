package node_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// pathRows are spec §4.1: every path and every public page.
func pathRows(s *nodetest.Spec) (rows []specRow) {
	for _, path := range []string{"/api/public/agents/asha", "/api/public/pow?purpose=contact", "/api/public/board?author=asha",
		"/a2a/asha/agent-card.json", "/openapi.json", "/SKILL.md", "/llms.txt", "/schemas/agent-profile.v1.json",
		"/merchants", "/people", "/agents", "/feed", "/board", "/attention", "/site-map", "/@asha", "/@bazaar", "/board/" + s.Post.ID} {
		rows = append(rows, specRow{row: "§4.1 " + path, path: path})
	}
	key := strings.Repeat("A", 43)
	return append(rows,
		specRow{row: "§4.1 the challenge", path: "/api/public/pow?purpose=contact", want: []string{"parameters", "signature"}},
		specRow{row: "§4.1 POST contact", method: "POST", path: "/api/public/agents/asha/contact", as: "pow", body: `{"message":"By the path."}`, status: 201},
		specRow{row: "§4.1 the A2A endpoint wants an identity", method: "POST", path: "/a2a/asha", body: nodetest.Hello, status: 401},
		specRow{row: "§4.1 the MCP endpoint", method: "POST", path: "/mcp/public", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
			want: []string{"result.tools.0.name"}},
		specRow{row: "§4.1 registration of no key", path: "/.well-known/service-agents/" + key + "/registration.json", status: 404},
		specRow{row: "§4.1 key directory of no key", path: "/.well-known/service-agents/" + key + "/jwks.json", status: 404},
		specRow{row: "§9 the profile's schema is that of version 1", path: "/schemas/agent-profile.v1.json",
			want: []string{"properties.version.maximum=1", "properties.version.minimum=1"}},
		specRow{row: "§4.1 nobody", path: "/api/public/agents/nobody", status: 404, want: []string{`code="not-found"`}},
	)
}

// toolRows are spec §4.2: each tool of the rooms that are there, by its HTTP path,
// with every input that it has; and that it is a tool of MCP.
func toolRows(s *nodetest.Spec) (rows []specRow) {
	for _, tool := range []struct {
		name, path string
		want       []string
	}{
		{"service_session", "/api/public/session", []string{"signedIn=false", "name=null", "handles=[]"}},
		{"about_service", "/api/public/about", nil},
		{"get_current_page", "/api/public/page?path=/board", []string{`path="/board"`, "title", "kind", "data"}},
		{"site_map", "/api/public/site-map", []string{"items.0.path", "items.0.kind", "items.0.purpose"}},
		{"list_merchants", "/api/public/merchants?q=bazaar&category=books&city=Bombay&limit=1", []string{"items.#=1", `items.0.handle="bazaar"`, "next=null"}},
		{"get_merchant", "/api/public/merchants/bazaar", []string{`handle="bazaar"`, "items", "hours", "identity", "reputation", "untrusted_content=true"}},
		{"list_people", "/api/public/people?q=asha&limit=1", []string{"items.#=1", `items.0.handle="asha"`, "items.0.hasAttentionBoard=false"}},
		{"search_agents", "/api/public/agents?q=loom&kind=person&capability=weave&tag=loom&region=IN-KA&hasIdentity=true&limit=1",
			[]string{"items.#=1", `items.0.handle="vidya"`, "next=null"}},
		{"get_agent_profile", "/api/public/agents/asha", []string{`handle="asha"`}},
		{"read_feed", "/api/public/feed?types=board_post,merchant_joined&limit=1", []string{"items.#=1", "next"}},
		{"read_board", "/api/public/board?kind=question&tag=books&q=binds&author=asha&verifiedOnly=true&limit=1", []string{"items.#=1"}},
		{"get_board_post", "/api/public/board/" + s.Post.ID, []string{"post.id"}},
	} {
		rows = append(rows, specRow{row: "§4.2 " + tool.name, path: tool.path, want: tool.want},
			specRow{row: "§4.2 " + tool.name + " takes nothing else", path: tool.path +
				map[bool]string{true: "&", false: "?"}[strings.Contains(tool.path, "?")] + "nonsense=1", fault: "/nonsense"})
	}
	for _, name := range []string{"service_session", "about_service", "get_current_page", "site_map", "list_merchants", "get_merchant", "list_people",
		"search_agents", "get_agent_profile", "read_feed", "read_board", "get_board_post",
		"contact_agent", "check_conversation", "post_to_board", "report_post"} {
		op := protocol.Lookup(name)
		if op == nil || op.Doors&protocol.MCP == 0 {
			rows = append(rows, specRow{row: "§4.2 " + name + " is no tool over MCP", path: "/absent"})
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"nonsense":1}}}`, name)
		rows = append(rows, specRow{row: "§4.2 " + name + " over MCP", method: "POST", path: "/mcp/public", body: body, want: []string{"result.isError=true"}})
	}
	return append(rows,
		specRow{row: "§4.2 post_to_board", method: "POST", path: "/api/public/board", as: "pow",
			body: `{"kind":"offer","title":"As a tool","body":"b","tags":["tool"],"name":"Meera"}`, status: 201, want: []string{"author.verified=false"}},
		specRow{row: "§4.2 report_post", method: "POST", path: "/api/public/board/" + s.Post.ID + "/report", as: "pow", body: `{}`, status: 202},
		specRow{row: "§4.2 report_post of nothing", method: "POST", path: "/api/public/board/post_01k9h2v4tqe7dsq1h0y5m8x3zr/report", as: "pow", body: `{}`,
			status: 404},
		specRow{row: "§4.2 get_board_post id", path: "/api/public/board/x", fault: "/id"},
		specRow{row: "§4.2 get_agent_profile", path: "/api/public/agents/@Asha", want: []string{`handle="asha"`}},
	)
}

// listingRows are the rules of every listing: limit of 1 to 100, after, and the
// types of the feed (spec §2.14, §4.2, §8).
func listingRows(s *nodetest.Spec) (rows []specRow) {
	for _, path := range []string{
		"/api/public/merchants", "/api/public/people", "/api/public/agents", "/api/public/feed", "/api/public/board", "/api/public/board/" + s.Post.ID,
	} {
		for query, fault := range map[string]string{
			"?limit=1": "", "?limit=100": "", "?limit=0": "/limit", "?limit=101": "/limit", "?limit=-1": "/limit", "?limit=many": "/limit", "?limit=1.5": "/limit",
		} {
			rows = append(rows, specRow{row: "§8 page size " + query, path: path + query, fault: fault})
		}
		for _, after := range []string{"nonsense", strings.Repeat("A", 500), "%E0%A4%A8", "Ym9hcmQA", "+", *protocol.Cursor("elsewhere", "1")} {
			rows = append(rows, specRow{row: "§4.2 after that was not handed out", path: path + "?after=" + after, status: 400, want: []string{`code="invalid-cursor"`}})
		}
	}
	for _, kind := range []string{"board_post", "merchant_joined", "listing", "review", "attention_bid"} {
		rows = append(rows, specRow{row: "§2.14 type " + kind, path: "/api/public/feed?types=" + kind, want: []string{"items", "next"}})
	}
	return append(rows,
		specRow{row: "§2.14 an unknown type", path: "/api/public/feed?types=rumour", fault: "/types"},
		specRow{row: "§4.2 kind of search_agents", path: "/api/public/agents?kind=robot", fault: "/kind"},
		specRow{row: "§4.2 region of search_agents", path: "/api/public/agents?region=india", fault: "/region"},
		specRow{row: "§4.2 hasIdentity of search_agents", path: "/api/public/agents?hasIdentity=perhaps", fault: "/hasIdentity"},
		specRow{row: "§2.15 not a merchant", path: "/api/public/merchants/asha", status: 404},
	)
}

// filterRows are the filters of the directory: what each finds and leaves out
// (spec §2.15, §4.2), and the operators of q.
func filterRows(*nodetest.Spec) (rows []specRow) {
	for query, found := range map[string]string{
		"agents?kind=business": "bazaar chai", "agents?kind=person": "asha vidya",
		"agents?capability=weave": "vidya", "agents?capability=cloth:fine": "vidya", "agents?capability=calendar": "", "agents?capability=absent": "",
		"agents?tag=loom": "vidya", "agents?tag=absent": "", "agents?region=IN": "vidya", "agents?region=IN-KA": "vidya", "agents?region=IN-MH": "",
		"agents?region=FR":        "",
		"agents?hasIdentity=true": "vidya", "agents?hasIdentity=false": "asha bazaar chai", "agents?kind=business&hasIdentity=true": "",
		"agents?q=hand&tag=loom&kind=person": "vidya",
		"agents?q=loom":                      "vidya", "agents?q=LOOM+hand": "vidya", "agents?q=%22hand+loom%22": "vidya", "agents?q=%22loom+hand%22": "",
		"agents?q=-loom+kind:person": "asha", "agents?q=-%22hand+loom%22+-kind:business": "asha",
		"agents?q=tag:loom": "vidya", "agents?q=-tag:loom+-kind:business": "asha", "agents?q=kind:business+-chai": "bazaar",
		"agents?q=%E0%A4%B9%E0%A4%BF%E0%A4%82%E0%A4%A6%E0%A5%80": "vidya", "agents?q=!!!": "",
		"merchants": "bazaar chai", "merchants?category=books": "bazaar", "merchants?category=shoes": "", "merchants?city=Mumbai": "bazaar",
		"merchants?city=Bombay": "bazaar", "merchants?city=%E0%A4%AE%E0%A5%81%E0%A4%82%E0%A4%AC%E0%A4%88": "bazaar", "merchants?city=Pune": "",
		"merchants?q=zebra": "", "merchants?q=ledger": "bazaar", "merchants?q=ledger&category=books&city=Bombay": "bazaar",
		"merchants?q=ledger&category=shoes": "", "merchants?q=asha": "",
		"people": "asha vidya", "people?q=zebra": "", "people?q=asha": "asha", "people?q=weave": "vidya", "people?q=bazaar": "",
	} {
		want := []string{"next=null", fmt.Sprint("items.#=", len(strings.Fields(found)))}
		rows = append(rows, specRow{row: "§2.15, §4.2 filter " + query, path: "/api/public/" + query, want: want, handles: strings.Fields(found)})
	}
	return rows
}

// nextRows follow the next of each listing once: the second page continues where
// the first ended (spec §4.2).
func nextRows(s *nodetest.Spec) (rows []specRow) {
	for path, name := range map[string]string{"merchants": "handle", "people": "handle", "agents": "handle", "feed": "id", "board": "id"} {
		path = "/api/public/" + path + "?limit=1"
		var whole, first protocol.Page[map[string]any]
		s.Ask("GET", strings.Replace(path, "limit=1", "limit=2", 1), "").Into(&whole)
		s.Ask("GET", path, "").Into(&first)
		require.Len(s.T, whole.Items, 2, path)
		require.NotNil(s.T, first.Next, path)
		rows = append(rows,
			specRow{row: "§4.2 limit", path: path, want: []string{"items.#=1", fmt.Sprintf("items.0.%s=%q", name, whole.Items[0][name]), "next~."}},
			specRow{row: "§4.2 after", path: path + "&after=" + *first.Next, want: []string{"items.#=1", fmt.Sprintf("items.0.%s=%q", name, whole.Items[1][name])}})
	}
	return rows
}

// TestSpecification_Tools compares the tools as a client reads them with the table
// of spec §4.2: inputs, those that are required, and whether a tool only reads.
func TestSpecification_Tools(t *testing.T) {
	t.Parallel()
	tools := map[string]nodetest.ToolDeclaration{}
	for _, tool := range nodetest.ListTools(t, nodetest.New(t)) {
		tools[tool.Name] = tool
	}
	for _, tt := range []struct {
		name, inputs, required string
		reads                  bool
	}{
		{"service_session", "", "", true}, {"about_service", "", "", true}, {"get_current_page", "", "", true}, {"site_map", "", "", true},
		{"list_merchants", "q category city limit after", "", true}, {"get_merchant", "handle", "handle", true}, {"list_people", "q limit after", "", true},
		{"search_agents", "q kind capability tag region hasIdentity limit after", "", true}, {"get_agent_profile", "handle", "handle", true},
		{"read_feed", "types limit after", "", true},
		{"read_board", "kind tag q author verifiedOnly limit after", "", true}, {"get_board_post", "id", "id", true},
		{"contact_agent", "handle message kind name callbackUrl", "handle message", false}, {"check_conversation", "threadId readToken", "threadId", true},
		{"post_to_board", "kind title body tags inReplyTo name", "kind title body", false}, {"report_post", "id", "id", false},
		{"list_attention_boards", "category limit after", "", true}, {"read_attention_board", "handle", "handle", true},
		{"check_bid", "handle amount category", "handle amount", true},
		{"get_meeting_info", "handle", "handle", true},
		{"request_meeting", "handle requester email purpose durationMin startsAt timezone", "handle requester email purpose durationMin startsAt", false},
		{"bid_for_attention", "handle amount message category name url", "handle amount message", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tool, there := tools[tt.name]
			require.True(t, there)
			require.NotEmpty(t, tool.Title)
			require.NotEmpty(t, tool.Description)
			require.Equal(t, tt.reads, tool.Annotations["readOnlyHint"])
			properties, _ := tool.InputSchema["properties"].(map[string]any)
			for _, input := range strings.Fields(tt.inputs) {
				require.Contains(t, properties, input)
			}
			required, _ := tool.InputSchema["required"].([]any)
			names := []string{}
			for _, r := range required {
				names = append(names, r.(string))
			}
			require.ElementsMatch(t, strings.Fields(tt.required), names)
		})
	}
}
