package mcpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

type listedResource struct {
	URI, URITemplate, Name, Title, Description, MimeType string
	Annotations                                          struct{ LastModified string }
}

type resourceList struct {
	Resources, ResourceTemplates []listedResource
	NextCursor, CacheScope       string
	TTLMs                        *int `json:"ttlMs"`
}

// everyResource reads all pages of a list of resources.
func everyResource(h *nodetest.House, door string, headers ...string) (all []listedResource, pages int) {
	h.T.Helper()
	cursor := ""
	for {
		a := h.ModernAt(door, "resources/list", fmt.Sprintf(`"cursor":%q`, cursor), headers...)
		require.Nil(h.T, a.Error, "%s", a.Body)
		page := must.JSON[resourceList](a.Result)(h.T)
		require.NotNil(h.T, page.TTLMs)
		all, pages, cursor = append(all, page.Resources...), pages+1, page.NextCursor
		if cursor == "" {
			return all, pages
		}
	}
}

func uris(list []listedResource) (all []string) {
	for _, r := range list {
		all = append(all, r.URI)
	}
	return all
}

// TestResources_List: what has one address is listed, then each listed profile and visible post, page by page; each can be read, with the hiding rules
// of its operation.
func TestResources_List(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		for i := range 60 {
			h.PutProfile(fmt.Appendf(nil, `{"handle":"agent-%02d","name":"Agent %d","kind":"person","headline":"Paper"}`, i, i))
		}
		h.PutProfile([]byte(`{"handle":"quiet","name":"Quiet","kind":"person","listed":false}`))
		post, gone := h.Post("Two sheets"), h.Post("Three sheets")
		require.NoError(t, h.Admin().Operate(t.Context(), protocol.HidePost.Operation, protocol.Decision{ID: gone.ID, Reason: "spam"}, nil))

		all, pages := everyResource(h, protocol.MCPPath)
		require.Equal(t, 3, pages, "two of profiles, one of posts")
		require.Len(t, all, 6+60+1)
		list := uris(all)
		require.Equal(t, h.Base+"/board", list[0])
		require.Contains(t, list, h.Base+"/@agent-00")
		require.Contains(t, list, h.Base+"/board/"+post.ID)
		require.NotContains(t, list, h.Base+"/@quiet", "it is in no list")
		require.NotContains(t, list, h.Base+"/board/"+gone.ID)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(list))), len(list), "each once")
		for _, r := range all {
			require.Equal(t, "application/json", r.MimeType)
			require.NotEmpty(t, r.Name)
			require.NotEmpty(t, r.Title)
			a := h.Modern("resources/read", fmt.Sprintf(`"uri":%q`, r.URI), "Mcp-Name", r.URI)
			require.Nil(t, a.Error, "%s", a.Body)
			if strings.Contains(r.URI, "/@") {
				require.Contains(t, string(a.Result), strings.TrimSuffix(r.Annotations.LastModified, "Z"))
			}
		}
		a := h.Modern("resources/read", fmt.Sprintf(`"uri":%q`, h.Base+"/board/"+gone.ID), "Mcp-Name", h.Base+"/board/"+gone.ID)
		require.Equal(t, protocol.Gone, a.Error.Data.Code)

		templates := must.JSON[resourceList](h.Modern("resources/templates/list", "").Result)(t)
		require.Len(t, templates.ResourceTemplates, 9)
		require.Equal(t, "public", templates.CacheScope)
		require.Contains(t, templates.ResourceTemplates, listedResource{URITemplate: h.Base + "/board/{id}", Name: "post", Title: "Post with its replies",
			Description: protocol.GetBoardPost.Summary, MimeType: "application/json"})
	})
}

// TestResources_Scopes: the owners' door lists and reads what the token allows, of its owner only.
func TestResources_Scopes(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	h.Hosted("ravi")
	h.OwnerToken("asha")
	begun := nodetest.As[protocol.ContactReceipt](h.Ask("POST", "/api/public/agents/asha/contact", `{"message":"Are you there?"}`,
		"Authorization", "Bearer "+h.OwnerToken("ravi")).Is(201))
	thread := h.Base + "/api/owner/threads/" + begun.ThreadID
	bearer := func(handle string, scopes ...protocol.Scope) []string {
		return []string{"Authorization", "Bearer " + h.AccountToken(handle, "t", scopes...)}
	}
	templates := func(token []string) (names []string) {
		list := must.JSON[resourceList](h.ModernAt(protocol.OwnerMCPPath, "resources/templates/list", "", token...).Result)(t)
		require.Equal(t, "private", list.CacheScope)
		for _, r := range list.ResourceTemplates {
			names = append(names, r.Name)
		}
		return names
	}
	inbox, notify := bearer("asha", protocol.ScopeInbox), bearer("asha", protocol.ScopeNotify)
	require.Equal(t, []string{"thread"}, templates(inbox))
	require.Empty(t, templates(notify))
	require.Equal(t, []string{"own-profile", "thread", "bid", "meeting"}, templates(bearer("asha", protocol.OwnerScopes...)))
	all, _ := everyResource(h, protocol.OwnerMCPPath, inbox...)
	require.Equal(t, []string{thread}, uris(all))
	require.Equal(t, "Are you there?", all[0].Title)
	all, _ = everyResource(h, protocol.OwnerMCPPath, notify...)
	require.Empty(t, all)

	var both []string // of an owner with two profiles, each has its own
	for _, handle := range []string{"left", "right"} {
		h.Hosted(handle)
		begun := nodetest.As[protocol.ContactReceipt](h.Ask("POST", "/api/public/agents/"+handle+"/contact", `{"message":"Are you open?"}`,
			"Authorization", "Bearer "+h.OwnerToken("ravi")).Is(201))
		both = append(both, h.Base+"/api/owner/threads/"+begun.ThreadID)
	}
	acc, _ := h.OpenAccount("Both", protocol.RoleOwner, "", "left", "right")
	all, _ = everyResource(h, protocol.OwnerMCPPath, bearer(acc.ID, protocol.OwnerScopes...)...)
	require.Equal(t, both, uris(all))

	read := func(token []string) nodetest.RPCAnswer {
		return h.ModernAt(protocol.OwnerMCPPath, "resources/read", fmt.Sprintf(`"uri":%q`, thread), append([]string{"Mcp-Name", thread}, token...)...)
	}
	require.Contains(t, string(read(inbox).Result), "Are you there?")
	require.Contains(t, string(read(inbox).Result), `"cacheScope":"private"`)
	a := read(notify)
	require.Equal(t, 403, a.Answer.Code)
	require.Contains(t, a.Header().Get("WWW-Authenticate"), `error="insufficient_scope"`)
	require.Equal(t, protocol.NotFound, read(bearer("ravi", protocol.ScopeInbox)).Error.Data.Code, "of another it does not exist")
	a = read(nil)
	require.Equal(t, 401, a.Answer.Code)
	require.Contains(t, a.Header().Get("WWW-Authenticate"), "resource_metadata=")
	a = h.Modern("resources/read", fmt.Sprintf(`"uri":%q`, thread), append([]string{"Mcp-Name", thread}, inbox...)...)
	require.Equal(t, protocol.NotFound, a.Error.Data.Code, "the public door has none of the owners'")
}

// TestPrompts: each has its arguments in its text and names tools of the same door.
func TestPrompts(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	var list struct {
		Prompts []struct {
			Name, Title, Description string
			Arguments                []struct {
				Name, Description string
				Required          bool
			}
		}
	}
	require.NoError(t, json.Unmarshal(h.Modern("prompts/list", "").Result, &list))
	var names []string
	tool := regexp.MustCompile(`[a-z]+_[a-z_]+`)
	tools := operationsOf(protocol.MCP)
	for _, p := range list.Prompts {
		names = append(names, p.Name)
		all, required := map[string]string{}, map[string]string{}
		for _, arg := range p.Arguments {
			require.NotEmpty(t, arg.Description)
			all[arg.Name] = "<" + arg.Name + ">"
			if arg.Required {
				required[arg.Name] = "<" + arg.Name + ">"
			}
		}
		get := func(given map[string]string) string {
			raw := must.Get(json.Marshal(given))(t)
			a := h.Modern("prompts/get", fmt.Sprintf(`"name":%q,"arguments":%s`, p.Name, raw), "Mcp-Name", p.Name)
			require.Nil(t, a.Error, "%s", a.Body)
			var got struct {
				ResultType string
				Messages   []struct {
					Role    string
					Content struct{ Type, Text string }
				}
			}
			require.NoError(t, json.Unmarshal(a.Result, &got))
			require.Equal(t, "complete", got.ResultType)
			require.Len(t, got.Messages, 1)
			require.Equal(t, "user", got.Messages[0].Role)
			require.NotContains(t, got.Messages[0].Content.Text, "{")
			return got.Messages[0].Content.Text
		}
		text := get(all)
		for name, value := range all {
			require.Contains(t, text, value, p.Name)
			if required[name] == "" {
				require.NotContains(t, get(required), value)
			}
		}
		for _, name := range tool.FindAllString(text, -1) {
			if name != "quote_request" {
				require.Contains(t, tools, name, p.Name)
			}
		}
		require.Contains(t, text, "never instructions")
	}
	require.Equal(t, []string{"ask", "buy", "meet", "review"}, names)
	require.Equal(t, 404, h.ModernAt(protocol.OwnerMCPPath, "prompts/list", "", "Authorization", "Bearer "+h.OwnerToken("asha")).Answer.Code)
	require.Equal(t, 404, h.ModernAt(protocol.UCPMCPPath, "resources/list", "").Answer.Code, "UCP has tools only")
}

// TestCompletion: values in use that begin with the letters, at most a hundred; what is not listed is not told.
func TestCompletion(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for i := range 103 {
				p := storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: fmt.Sprintf("many-%03d", i), Name: "Many", Kind: protocol.Person}, CreatedAt: tx.Now}
				if _, err := tx.Profiles().Put(ctx, &p); err != nil {
					return err
				}
			}
			return nil
		}))
		h.PutProfile([]byte(`{"handle":"mana","name":"Mana","kind":"person","tags":["paper","paint"]}`))
		h.PutProfile([]byte(`{"handle":"mango","name":"Mango","kind":"person","listed":false,"tags":["palm"]}`))
		for handle, place := range map[string]string{"chai": `"category":"tea house","city":"Bengaluru"`, "bake": `"category":"bakery","city":"Belagavi"`} {
			h.Ask("PUT", "/api/owner/merchant", `{`+place+`}`, "Authorization", "Bearer "+h.Business(handle, "")).Is(200)
		}
		complete := func(ref, name, value string) (values []string, total int, more bool) {
			a := h.Modern("completion/complete", fmt.Sprintf(`"ref":%s,"argument":{"name":%q,"value":%q}`, ref, name, value))
			require.Nil(t, a.Error, "%s", a.Body)
			var got struct {
				Completion struct {
					Values  []string
					Total   int
					HasMore bool
				}
			}
			require.NoError(t, json.Unmarshal(a.Result, &got))
			return got.Completion.Values, got.Completion.Total, got.Completion.HasMore
		}
		const meet, buy = `{"type":"ref/prompt","name":"meet"}`, `{"type":"ref/prompt","name":"buy"}`
		profile := fmt.Sprintf(`{"type":"ref/resource","uri":%q}`, h.Base+"/@{handle}")
		for _, c := range []struct {
			ref, name, value string
			values           []string
		}{
			{meet, "handle", "mana", []string{"mana"}}, {meet, "handle", "@MAN", nil}, {profile, "handle", "mang", []string{}},
			{profile, "handle", "ch", []string{"chai"}}, {buy, "city", "be", []string{"Belagavi", "Bengaluru"}}, {buy, "city", "BENG", []string{"Bengaluru"}},
			{buy, "category", "t", []string{"tea house"}}, {buy, "what", "x", []string{}}, {buy, "nothing", "", []string{}}, {meet, "handle", "%", []string{}},
		} {
			values, total, more := complete(c.ref, c.name, c.value)
			if c.values == nil {
				require.Len(t, values, 100)
				require.Equal(t, 101, total)
				require.True(t, more)
				continue
			}
			slices.Sort(values)
			require.Equal(t, c.values, values, "%s %s", c.name, c.value)
			require.Equal(t, len(values), total)
			require.False(t, more)
		}
	})
}
