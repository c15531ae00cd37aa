package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
)

const fullPerson = `{"handle":"asha","name":"Asha","kind":"person","headline":"Paper","description":"I make paper.",
 "agent":{"name":"A","by":"stoa","product":"stoa","acceptingMeetingRequests":true},
 "capabilities":[{"id":"schedule-meeting","name":"Meet","description":"Ask.","tags":["scheduling"],"input":"what","output":"invite",
 "pricing":{"model":"fixed","currency":"INR","amount":12.5,"note":"per hour"},"endpoint":"https://asha.example/meet"}],
 "needs":[{"id":"rag","description":"Cotton rag.","tags":["paper"]}],"tags":["paper"],"languages":["en","hi"],"regions":["IN","IN-RJ"],
 "timezone":"Asia/Kolkata",
 "contactPolicy":{"outsideAgentsWithIdentity":true,"anonymous":true,"kinds":["question"],"responseTime":"a day"}}`

const fullBusiness = `{"handle":"rao-tiffins","name":"Rao","kind":"business",
 "returns":{"acceptsReturns":true,"windowDays":7,"covers":"all","goodsMustComeBack":false,"supportAgentApprovesUpTo":"₹500","instructions":null,"note":"n"}}`

// TestProfile walks spec §2.1 to §2.9 over what a node serves: every profile is
// valid by the schema that the node serves, and each field keeps its rules.
func TestProfile(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	ctx := context.Background()
	for _, raw := range []string{fullPerson, fullBusiness, `{"handle":"bare","name":"Bare","kind":"person"}`} {
		_, created, err := h.Admin().PutProfile(ctx, []byte(raw))
		require.NoError(t, err)
		require.True(t, created)
	}
	served := h.Ask("GET", "/schemas/agent-profile.v1.json", "").Is(200)
	var head struct {
		ID       string   `json:"$id"`
		Required []string `json:"required"`
		Title    string   `json:"title"`
	}
	served.Into(&head)
	require.Equal(t, h.Base+"/schemas/agent-profile.v1.json", head.ID)
	require.Equal(t, protocol.ProfileStandard, head.Title)
	require.ElementsMatch(t, []string{"version", "handle", "name", "kind", "capabilities", "needs", "interfaces", "contactPolicy"}, head.Required)
	schema := nodetest.Compile(t, served.Body.Bytes(), "")

	profiles := map[string]map[string]any{}
	for _, handle := range []string{"asha", "rao-tiffins", "bare"} {
		a := h.Ask("GET", "/api/public/agents/"+handle, "").Is(200)
		require.Equal(t, "public, max-age=30", a.Header().Get("Cache-Control"))
		nodetest.Valid(t, schema, a.Body.Bytes())
		p := nodetest.As[map[string]any](a)
		profiles[handle] = p
	}
	asha, rao, bare := profiles["asha"], profiles["rao-tiffins"], profiles["bare"]
	base := h.Base
	for name, p := range profiles {
		require.Equal(t, base+"/schemas/agent-profile.v1.json", p["$schema"], name)
		require.EqualValues(t, 1, p["version"], name)
		require.Equal(t, true, p["untrusted_content"], name)
		require.Contains(t, p, "reputation", name)
		require.Nil(t, p["reputation"], name)
		require.NotEmpty(t, p["updatedAt"], name)
		require.Equal(t, map[string]any{"erc8004": nil, "registration": nil, "keyDirectory": nil, "note": protocol.NoIdentity}, p["identity"], name)
	}
	require.Equal(t, "", bare["headline"], "an empty string when unset (§2.1)")
	require.Equal(t, "", bare["description"])
	require.Equal(t, []any{}, rao["capabilities"])
	require.Equal(t, []any{}, bare["capabilities"], "no room is open (§2.8)")
	require.Equal(t, []string{"schedule-meeting"}, ids(asha["capabilities"]), "what the owner wrote")
	require.Equal(t, "Meet", asha["capabilities"].([]any)[0].(map[string]any)["name"])
	require.Contains(t, asha, "agent")
	require.NotContains(t, rao, "agent", "absent in a business profile (§2.1)")
	require.NotContains(t, asha, "returns")
	require.Contains(t, rao, "returns")

	person := asha["interfaces"].(map[string]any)
	require.ElementsMatch(t, []string{"page", "profile", "a2a", "agentCard", "publicContact", "publicMcp", "board", "meetings", "meetingPage",
		"attentionBoard"}, slices.Collect(maps.Keys(person)))
	require.Equal(t, base+"/@asha", person["page"])
	require.Equal(t, base+"/api/public/agents/asha", person["profile"])
	require.Equal(t, base+"/a2a/asha/agent-card.json", person["agentCard"])
	require.Equal(t, base+"/mcp/public", person["publicMcp"])
	require.Equal(t, base+"/api/public/board?author=asha", person["board"])
	require.Equal(t, base+"/api/public/agents/asha/meetings", person["meetings"], "agent.acceptingMeetingRequests opens the room")
	require.Equal(t, base+"/@asha/meet", person["meetingPage"])
	require.Nil(t, person["attentionBoard"], "null while the room is not open")
	business := rao["interfaces"].(map[string]any)
	require.ElementsMatch(t, []string{"page", "profile", "a2a", "agentCard", "publicContact", "publicMcp", "board", "catalog"},
		slices.Collect(maps.Keys(business)))
	require.Nil(t, business["catalog"])

	policy := asha["contactPolicy"].(map[string]any)
	require.Contains(t, policy["anonymousRequires"], "GET /api/public/pow?purpose=contact")
	require.Equal(t, "a day", policy["responseTime"])
	require.Nil(t, rao["contactPolicy"].(map[string]any)["responseTime"])
	require.Equal(t, 12.5, asha["capabilities"].([]any)[0].(map[string]any)["pricing"].(map[string]any)["amount"], "a JSON number")

	found := nodetest.As[protocol.Page[json.RawMessage]](h.Ask("GET", "/api/public/agents?limit=100", ""))
	require.Len(t, found.Items, 3)
	for _, p := range found.Items {
		nodetest.Valid(t, schema, p)
	}
}

func ids(list any) (out []string) {
	for _, c := range list.([]any) {
		out = append(out, c.(map[string]any)["id"].(string))
	}
	return out
}

// TestProfile_Limits puts each limit of spec §8 at its edge and one past it.
func TestProfile_Limits(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	s := func(n int) string { return strings.Repeat("क", n) } // characters, not bytes
	regions := strings.Fields("IN IN-KA IN-RJ IN-TN IN-MH IN-KL IN-DL IN-GJ IN-PB IN-UP IN-WB DE DE-BE DE-BY US US-CA US-NY GB GB-ENG GB-SCT FR")
	list := func(n int, item string, real ...string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i))
			if real != nil {
				items[i] = `"` + real[i] + `"`
			}
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	capability := func(field string) string {
		return `"capabilities":[{"id":"ab","name":"n","description":"d",` + field + `}]`
	}
	tests := []struct{ name, at, past, pointer string }{
		{"headline", `"headline":"` + s(140) + `"`, `"headline":"` + s(141) + `"`, "/headline"},
		{"description", `"description":"` + s(1000) + `"`, `"description":"` + s(1001) + `"`, "/description"},
		{"capabilities", `"capabilities":` + list(20, `{"id":"c#","name":"n","description":"d"}`), `"capabilities":` +
			list(21, `{"id":"c#","name":"n","description":"d"}`), "/capabilities"},
		{"needs", `"needs":` + list(20, `{"id":"n#","description":"d"}`), `"needs":` + list(21, `{"id":"n#","description":"d"}`), "/needs"},
		{"tags", `"tags":` + list(12, `"t#"`), `"tags":` + list(13, `"t#"`), "/tags"},
		{"languages", `"languages":` + list(10, `"en-x-a#"`), `"languages":` + list(11, `"en-x-a#"`), "/languages"},
		{"regions", `"regions":` + list(20, "", regions...), `"regions":` + list(21, "", regions...), "/regions"},
		{"a region", `"regions":["IN","IN-KA"]`, `"regions":["IN","IN-ZZ"]`, "/regions/1"},
		{"a country", `"regions":["GB-ENG"]`, `"regions":["UK"]`, "/regions/0"},
		{"a language", `"languages":["hi-Deva-IN"]`, `"languages":["en","hi-Dave"]`, "/languages/1"},
		{"agent name", `"agent":{"name":"` + s(80) + `","by":"b","product":"p","acceptingMeetingRequests":false}`, `"agent":{"name":"` + s(81) +
			`","by":"b","product":"p","acceptingMeetingRequests":false}`, "/agent/name"},
		{"kind", `"agent":{"name":"n","by":"b","product":"p","acceptingMeetingRequests":false}`, `"returns":{"acceptsReturns":true}`, "/returns"},
		{"currency", capability(`"pricing":{"model":"quote"}`), capability(`"pricing":{"model":"fixed","amount":3}`), "/capabilities/0/pricing/currency"},
		{"pricing model", capability(`"pricing":{"model":"per_use"}`), capability(`"pricing":{"model":"auction"}`), "/capabilities/0/pricing/model"},
		{"need tags", `"needs":[{"id":"ab","description":"d","tags":` + list(8, `"t#"`) + `}]`, `"needs":[{"id":"ab","description":"d","tags":` +
			list(9, `"t#"`) + `}]`, "/needs/0/tags"},
		{"capability name", `"capabilities":[{"id":"ab","name":"` + s(60) + `","description":"d"}]`, `"capabilities":[{"id":"ab","name":"` + s(61) +
			`","description":"d"}]`, "/capabilities/0/name"},
		{"capability description", `"capabilities":[{"id":"ab","name":"n","description":"` + s(400) + `"}]`,
			`"capabilities":[{"id":"ab","name":"n","description":"` + s(401) + `"}]`, "/capabilities/0/description"},
		{"capability input", capability(`"input":"` + s(200) + `"`), capability(`"input":"` + s(201) + `"`), "/capabilities/0/input"},
		{"capability output", capability(`"output":"` + s(200) + `"`), capability(`"output":"` + s(201) + `"`), "/capabilities/0/output"},
		{"pricing note", capability(`"pricing":{"model":"free","note":"` + s(120) + `"}`), capability(`"pricing":{"model":"free","note":"` + s(121) + `"}`),
			"/capabilities/0/pricing/note"},
		{"pricing amount", capability(`"pricing":{"model":"fixed","currency":"INR","amount":0}`),
			capability(`"pricing":{"model":"fixed","currency":"INR","amount":-0.01}`), "/capabilities/0/pricing/amount"},
		{"capability tags", capability(`"tags":` + list(8, `"t#"`)), capability(`"tags":` + list(9, `"t#"`)), "/capabilities/0/tags"},
		{"capability id", `"capabilities":[{"id":"a` + strings.Repeat("b", 39) + `","name":"n","description":"d"}]`, `"capabilities":[{"id":"a` +
			strings.Repeat("b", 40) + `","name":"n","description":"d"}]`, "/capabilities/0/id"},
		{"capability id short", `"capabilities":[{"id":"ab","name":"n","description":"d"}]`, `"capabilities":[{"id":"a","name":"n","description":"d"}]`,
			"/capabilities/0/id"},
		{"tag", `"tags":["` + strings.Repeat("t", 32) + `"]`, `"tags":["` + strings.Repeat("t", 33) + `"]`, "/tags/0"},
		{"tag characters", `"tags":["a_b.c:d-e"]`, `"tags":["A"]`, "/tags/0"},
		{"need description", `"needs":[{"id":"ab","description":"` + s(400) + `"}]`, `"needs":[{"id":"ab","description":"` + s(401) + `"}]`, "/needs/0/description"},
		{"endpoint", capability(`"endpoint":"https://a.example/x"`), capability(`"endpoint":"http://a.example/x"`), "/capabilities/0/endpoint"},
		{"endpoint of somewhere", capability(`"endpoint":"https://a.example:8443"`), capability(`"endpoint":"https://"`), "/capabilities/0/endpoint"},
		{"endpoint without a password", capability(`"endpoint":"https://a.example"`), capability(`"endpoint":"https://u:p@a.example"`), "/capabilities/0/endpoint"},
		{"currency of ISO 4217", capability(`"pricing":{"model":"fixed","currency":"USD","amount":1}`),
			capability(`"pricing":{"model":"fixed","currency":"XXY","amount":1}`), "/capabilities/0/pricing/currency"},
		{"additional capability member", capability(`"output":"x"`), capability(`"colour":"x"`), "/capabilities/0/colour"},
		{"additional need member", `"needs":[{"id":"ab","description":"d"}]`, `"needs":[{"id":"ab","description":"d","x":1}]`, "/needs/0/x"},
		{"time zone", `"timezone":"Asia/Kolkata"`, `"timezone":"Asia/Atlantis"`, "/timezone"},
		{"contact kinds", `"contactPolicy":{"outsideAgentsWithIdentity":true,"anonymous":true,"kinds":["question","quote_request","support"]}`,
			`"contactPolicy":{"outsideAgentsWithIdentity":true,"anonymous":true,"kinds":["gossip"]}`, "/contactPolicy/kinds/0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			profile := func(field string) []byte {
				return fmt.Appendf(nil, `{"handle":"limits","name":"L","kind":"person",%s}`, field)
			}
			h.PutProfile(profile(tt.at))
			_, _, err := h.Admin().PutProfile(t.Context(), profile(tt.past))
			require.Equal(t, protocol.Validation, protocol.CodeOf(err))
			require.Contains(t, nodetest.Pointers(protocol.AsError(err).Faults), tt.pointer)
		})
	}
}

func FuzzPutProfile(f *testing.F) {
	f.Add([]byte(fullPerson))
	f.Add([]byte(fullBusiness))
	f.Add([]byte(`{"handle":"a","contactPolicy":[],"identity":{"erc8004":7}}`))
	f.Add([]byte(`{"capabilities":[{"pricing":null}],"needs":[[]]}`))
	h := nodetest.New(f)
	admin := h.Admin()
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := admin.Table.Invoke(t.Context(), hall.Request{Op: protocol.PutProfile.Name, Args: raw, Evidence: identity.Evidence{Operator: true}})
		if err != nil {
			require.NotEqual(t, protocol.Internal, protocol.CodeOf(err), "%s", raw)
		}
	})
}

// TestAnswers checks what each operation answers against its own description.
func TestAnswers(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutProfile([]byte(fullPerson))
	parent := h.Post("A question")
	reply := h.Ask("POST", "/api/public/board", `{"kind":"resolution","title":"An answer","body":"b","inReplyTo":"`+parent.ID+`"}`, "Proof-Of-Work",
		h.Proof("board")).Is(201)
	openapi := h.Ask("GET", "/openapi.json", "").Is(200)
	doc := nodetest.As[map[string]any](openapi)
	require.Equal(t, "3.1.0", doc["openapi"])
	require.Equal(t, h.Base, doc["servers"].([]any)[0].(map[string]any)["url"])

	check := func(op protocol.Operation, a nodetest.Answer) {
		t.Helper()
		require.Equal(t, op.HTTP.Status, a.Code, "%s: %s", op.Name, a.Body)
		at := fmt.Sprintf("#/paths/%s/%s/responses/%d/content/application~1json/schema",
			strings.ReplaceAll(op.HTTP.Path, "/", "~1"), strings.ToLower(op.HTTP.Method), op.HTTP.Status)
		nodetest.Valid(t, nodetest.Compile(t, openapi.Body.Bytes(), strings.NewReplacer("{", "%7B", "}", "%7D").Replace(at)), a.Body.Bytes())
	}
	check(*protocol.PostToBoard.Operation, reply)
	check(*protocol.ReadBoard.Operation, h.Ask("GET", "/api/public/board?kind=offer", ""))
	check(*protocol.GetBoardPost.Operation, h.Ask("GET", "/api/public/board/"+parent.ID, ""))
	check(*protocol.GetBoardPost.Operation, h.Ask("GET", "/api/public/board/"+parent.ID+"?thread=true", ""))
	check(*protocol.ReadBoard.Operation, h.Ask("GET", "/api/public/board?resolved=false&root="+parent.ID, ""))
	check(*protocol.ReadFeed.Operation, h.Ask("GET", "/api/public/feed", ""))
	check(*protocol.GetAgentProfile.Operation, h.Ask("GET", "/api/public/agents/asha", ""))
	h.Business("rao-tiffins", "")
	_, err := h.Admin().PutMerchant(context.Background(), "rao-tiffins", []byte(nodetest.GoodMerchant))
	require.NoError(t, err)
	check(*protocol.GetMerchant.Operation, h.Ask("GET", "/api/public/merchants/rao-tiffins", ""))
	check(*protocol.ListMerchants.Operation, h.Ask("GET", "/api/public/merchants?city=Bengaluru", ""))
	check(*protocol.ListPeople.Operation, h.Ask("GET", "/api/public/people", ""))
	check(*protocol.SearchAgents.Operation, h.Ask("GET", "/api/public/agents?kind=person&q=paper", ""))
	check(*protocol.GetSiteMap.Operation, h.Ask("GET", "/api/public/site-map", ""))
	check(*protocol.GetChallenge.Operation, h.Ask("GET", "/api/public/pow?purpose=report", ""))
	check(*protocol.ReportPost.Operation, h.Ask("POST", "/api/public/board/"+parent.ID+"/report", `{}`, "Proof-Of-Work", h.Proof("report")))

	thread := nodetest.As[protocol.PostWithReplies](h.Ask("GET", "/api/public/board/"+parent.ID, ""))
	require.Equal(t, 1, thread.Post.ReplyCount)
	require.Len(t, thread.Replies.Items, 1)
	require.Equal(t, parent.ID, *thread.Replies.Items[0].InReplyTo)
}
