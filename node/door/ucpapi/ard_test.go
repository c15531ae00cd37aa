package ucpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

var airURN = regexp.MustCompile(`^urn:air:([a-zA-Z0-9.-]+)(?::([a-zA-Z0-9._:-]+))?:([a-zA-Z0-9._-]+)$`)

// ardAgents puts agents that differ in what ARD filters by.
func ardAgents(t *testing.T, h *nodetest.House) {
	t.Helper()
	put := func(d protocol.ProfileDraft, erc8004 string) {
		require.NoError(t, h.DB.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			_, err := h.Directory.Put(ctx, tx, &storage.StoredProfile{Draft: d, ERC8004: erc8004})
			return err
		}))
	}
	off := false
	put(protocol.ProfileDraft{Handle: "asha", Name: "Asha Legal", Kind: protocol.Business, Headline: "Reviews a lease in Hindi", Tags: []string{"legal"},
		Languages: []string{"hi", "en"}, Regions: []string{"IN-KA"},
		Capabilities: []protocol.Capability{{ID: "review-lease", Name: "Review a lease", Description: "Reads it.", Tags: []string{"contracts"}}}},
		"eip155:1337:0x5fbdb2315678afecb367f032d93f642f64180aa3:7")
	put(protocol.ProfileDraft{Handle: "ravi", Name: "Ravi Papers", Kind: protocol.Business, Headline: "Hand-made paper",
		Description: "Also leases looms.", Tags: []string{"paper"}, Languages: []string{"hi"}, Regions: []string{"IN"}}, "")
	put(protocol.ProfileDraft{Handle: "meera", Name: "Meera", Kind: protocol.Person, Headline: "Paper artist"}, "")
	put(protocol.ProfileDraft{Handle: "hidden", Name: "Hidden Papers", Kind: protocol.Business, Headline: "paper", Listed: &off}, "")
}

func TestARDSearch(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		ardAgents(t, h)
		for _, c := range []struct {
			name, text, filter string
			want               []string
		}{
			{"a word in the best place first", "paper", `{}`, []string{"ravi", "meera"}},
			{"all words", "hand-made paper", `{}`, []string{"ravi"}},
			{"plain words", "someone who can review a lease in Hindi", `{}`, []string{"asha"}},
			{"where none has all: most", "lease of an aeroplane in Hindi", `{}`, []string{"asha"}},
			{"nothing", "aeroplane", `{}`, []string{}},
			{"kind", "paper", `{"metadata.kind":"person"}`, []string{"meera"}},
			{"any of a list", "paper", `{"metadata.kind":["person","business"]}`, []string{"ravi", "meera"}},
			{"all paths", "paper", `{"metadata.kind":["business"],"tags":["legal"]}`, []string{}},
			{"tags of the profile", "lease", `{"tags":["legal"]}`, []string{"asha"}},
			{"tags of a capability", "lease", `{"tags":"contracts"}`, []string{"asha"}},
			{"a capability is no tag", "lease", `{"tags":"review-lease"}`, []string{}},
			{"capability", "lease", `{"capabilities":["review-lease"]}`, []string{"asha"}},
			{"a tag is no capability", "lease", `{"capabilities":["contracts"]}`, []string{}},
			{"language", "paper", `{"metadata.languages":"hi"}`, []string{"ravi"}},
			{"region, as it stands", "lease", `{"metadata.regions":"IN"}`, []string{}},
			{"region", "lease", `{"metadata.regions":["IN-KA"]}`, []string{"asha"}},
			{"with identity", "lease", `{"metadata.hasIdentity":true}`, []string{"asha"}},
			{"without", "paper", `{"metadata.hasIdentity":false}`, []string{"ravi", "meera"}},
			{"type", "paper", `{"type":["application/a2a-agent-card+json"]}`, []string{"ravi", "meera"}},
			{"type without +json", "paper", `{"type":"application/a2a-agent-card"}`, []string{"ravi", "meera"}},
			{"another type", "paper", `{"type":["application/mcp-server-card+json"]}`, []string{}},
			{"publisher", "paper", `{"publisher":"agent.localhost"}`, []string{"ravi", "meera"}},
			{"another publisher", "paper", `{"publisher":"other.example"}`, []string{}},
		} {
			t.Run(c.name, func(t *testing.T) {
				found := h.ARDSearch(fmt.Sprintf(`{"query":{"text":%q,"filter":%s},"federation":"none"}`, c.text, c.filter))
				require.ElementsMatch(t, c.want, nodetest.Handles(found))
				require.Empty(t, found.PageToken)
				require.Empty(t, found.Referrals)
			})
		}
		scores := h.ARDSearch(`{"query":{"text":"lease of an aeroplane in Hindi"}}`).Results
		require.Equal(t, "asha", scores[0].Identifier[len("urn:air:agent.localhost:agent:"):])
		require.Less(t, scores[0].Score, 85)
		require.Equal(t, 85, h.ARDSearch(`{"query":{"text":"artist"}}`).Results[0].Score)
	})
}

// Pages of either kind of search show each entry once.
func TestARDSearch_Pages(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		for i := range 25 {
			require.NoError(t, h.DB.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
				_, err := h.Directory.Put(ctx, tx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: fmt.Sprintf("agent-%d", i), Name: "Agent",
					Kind: protocol.Business, Headline: "paper"}})
				return err
			}))
		}
		for _, text := range []string{"paper", "paper aeroplane"} {
			seen, token := map[string]bool{}, ""
			for range 10 {
				found := h.ARDSearch(fmt.Sprintf(`{"query":{"text":%q},"pageSize":7,"pageToken":%q}`, text, token))
				require.LessOrEqual(t, len(found.Results), 7)
				for _, name := range nodetest.Handles(found) {
					require.False(t, seen[name])
					seen[name] = true
				}
				if token = found.PageToken; token == "" {
					break
				}
			}
			require.Len(t, seen, 25, text)
		}
		require.Len(t, h.ARDSearch(`{"query":{"text":"paper"}}`).Results, 10, "ten where nothing is said")
	})
}

// The checks of the ARD repository's conformance tool, mode "registry"
// (ards-project/ard-spec, 2026-07-15, Apache-2.0), with its own requests.
func TestARD_Registry(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	ardAgents(t, h)
	for _, body := range []string{
		`{"query":{"text":"weather forecast tools","filter":{"type":["application/mcp-server-card+json"]}},"federation":"none","pageSize":2}`,
		`{"query":{"text":"paper lease"},"federation":"none","pageSize":2}`,
	} {
		a := h.Ask("POST", "/ard/search", body).Is(200)
		require.Equal(t, "application/json", a.Header().Get("Content-Type"))
		require.Equal(t, "*", a.Header().Get("Access-Control-Allow-Origin"))
		require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
		answer := nodetest.As[map[string]any](a)
		results, ok := answer["results"].([]any)
		require.True(t, ok, "results is a list, empty or not")
		require.LessOrEqual(t, len(results), 2)
		for _, r := range results {
			entry := r.(map[string]any)
			require.Regexp(t, airURN, entry["identifier"])
			for _, member := range []string{"displayName", "type", "url", "source"} {
				require.NotEmpty(t, entry[member], member)
			}
			require.NotContains(t, entry, "data")
			score := entry["score"].(float64)
			require.True(t, score >= 0 && score <= 100 && score == float64(int(score)))
			require.Equal(t, h.Base+"/ard", entry["source"])
			require.Equal(t, true, entry["metadata"].(map[string]any)["untrusted_content"])
		}
	}
	explored := nodetest.As[map[string]any](h.Ask("POST", "/ard/explore", `{"resultType":{"facets":[{"field":"type","limit":20,"minCount":1}]}}`))
	require.Equal(t, map[string]any{"resultType": "facets", "facets": map[string]any{
		"type": map[string]any{"buckets": []any{map[string]any{"value": "application/a2a-agent-card+json", "count": 3.0}}, "otherCount": 0.0}}}, explored)
	require.Equal(t, 404, h.Ask("GET", "/ard/agents", "").Code, "optional")
}

func TestARDExplore(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		ardAgents(t, h)
		explore := func(query, facet string) protocol.ARDBuckets {
			e := nodetest.As[protocol.ARDExplored](h.Ask("POST", "/ard/explore", fmt.Sprintf(`{%s"resultType":{"facets":[%s]}}`, query, facet)).Is(200))
			require.Len(t, e.Facets, 1)
			for _, b := range e.Facets {
				return b
			}
			return protocol.ARDBuckets{}
		}
		buckets := func(other int, pairs ...any) protocol.ARDBuckets {
			b := protocol.ARDBuckets{Buckets: []protocol.ARDBucket{}, OtherCount: other}
			for i := 0; i < len(pairs); i += 2 {
				b.Buckets = append(b.Buckets, protocol.ARDBucket{Value: pairs[i].(string), Count: pairs[i+1].(int)})
			}
			return b
		}
		require.Equal(t, buckets(0, "business", 2, "person", 1), explore("", `{"field":"metadata.kind"}`), "who is not listed is not counted")
		require.Equal(t, buckets(0, "hi", 2, "en", 1), explore("", `{"field":"metadata.languages"}`))
		require.Equal(t, buckets(1, "hi", 2), explore("", `{"field":"metadata.languages","limit":1}`))
		require.Equal(t, buckets(1, "hi", 2), explore("", `{"field":"metadata.languages","minCount":2}`))
		require.Equal(t, buckets(0, "business", 1, "person", 1), explore(`"query":{"text":"paper"},`, `{"field":"metadata.kind"}`))
		require.Equal(t, buckets(0, "business", 1), explore(`"query":{"text":"paper","filter":{"metadata.languages":["hi"]}},`, `{"field":"metadata.kind"}`))
		require.Equal(t, buckets(0, "false", 2, "true", 1), explore("", `{"field":"metadata.hasIdentity"}`))
		require.Equal(t, buckets(0), explore(`"query":{"text":"aeroplane"},`, `{"field":"tags"}`))

		put := func(d protocol.ProfileDraft) {
			require.NoError(t, h.DB.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
				p := must.Get(tx.Profiles().ByHandle(ctx, d.Handle))(t)
				p.Draft = d
				_, err := h.Directory.Put(ctx, tx, p)
				return err
			}))
		}
		put(protocol.ProfileDraft{Handle: "ravi", Name: "Ravi Aeroplanes", Kind: protocol.Business, Tags: []string{"wings"}})
		require.Equal(t, buckets(0, "business", 1, "person", 1), explore(`"query":{"text":"paper"},`, `{"field":"metadata.kind"}`),
			"all of it is of the time when it was counted")
		require.Equal(t, buckets(0), explore(`"query":{"text":"aeroplanes"},`, `{"field":"tags"}`))
		h.Directory.Explored.Age = 0 // each is counted again, from what was counted before
		require.Equal(t, buckets(0, "wings", 1), explore(`"query":{"text":"aeroplanes"},`, `{"field":"tags"}`))
		require.Equal(t, buckets(0, "person", 1), explore(`"query":{"text":"paper"},`, `{"field":"metadata.kind"}`))
		require.NoError(t, h.Admin().DeleteProfile(t.Context(), "meera"))
		require.Equal(t, buckets(0, "business", 2), explore("", `{"field":"metadata.kind"}`))
		require.Equal(t, buckets(0), explore(`"query":{"text":"paper"},`, `{"field":"metadata.kind"}`))
	})
}

// What is wrong with a request is 400 in ARD's words, next to ours.
func TestARD_Errors(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	filter := func(f string) string { return `{"query":{"text":"x","filter":` + f + `}}` }
	many := strings.TrimSuffix(strings.Repeat(`"a",`, 21), ",")
	for _, c := range []struct {
		path, body string
		status     int
		code       string
	}{
		{"search", `{}`, 400, "INVALID_ARGUMENT"},
		{"search", `{"query":{}}`, 400, "INVALID_ARGUMENT"},
		{"search", `{"query":{"text":""}}`, 400, "INVALID_ARGUMENT"},
		{"search", `{"query":{"text":"` + strings.Repeat("x", 501) + `"}}`, 400, "INVALID_ARGUMENT"},
		{"search", `{"query":{"text":"x"},"pageSize":101}`, 400, "INVALID_ARGUMENT"},
		{"search", `{"query":{"text":"x"},"pageSize":0}`, 400, "INVALID_ARGUMENT"},
		{"search", `{"query":{"text":"x"},"pageToken":"x"}`, 400, "INVALID_ARGUMENT"},
		{"search", `{"query":{"text":"x"},"federation":"all"}`, 400, "INVALID_ARGUMENT"},
		{"search", `{"query":{"text":"x"},"nonsense":1}`, 400, "INVALID_ARGUMENT"},
		{"search", `{"query":{"text":"x","text":"y"}}`, 400, "INVALID_ARGUMENT"},
		{"search", `not json`, 400, "INVALID_ARGUMENT"},
		{"search", filter(`{"colour":"red"}`), 400, "INVALID_ARGUMENT"},
		{"search", filter(`{"tags":{"a":1}}`), 400, "INVALID_ARGUMENT"},
		{"search", filter(`{"tags":[]}`), 400, "INVALID_ARGUMENT"},
		{"search", filter(`{"tags":[` + many + `]}`), 400, "INVALID_ARGUMENT"},
		{"search", filter(`{"tags":[null]}`), 400, "INVALID_ARGUMENT"},
		{"search", filter(`{"tags":"` + strings.Repeat("x", 101) + `"}`), 400, "INVALID_ARGUMENT"},
		{"search", `{"query":{"text":"` + strings.Repeat("x", 70_000) + `"}}`, 413, "INVALID_ARGUMENT"},
		{"explore", `{}`, 400, "INVALID_ARGUMENT"},
		{"explore", `{"resultType":{"facets":[]}}`, 400, "INVALID_ARGUMENT"},
		{"explore", `{"resultType":{"facets":[{"field":"colour"}]}}`, 400, "INVALID_ARGUMENT"},
		{"explore", `{"resultType":{"facets":[{"field":"tags","limit":101}]}}`, 400, "INVALID_ARGUMENT"},
		{"explore", `{"query":{"filter":{"x":1}},"resultType":{"facets":[{"field":"tags"}]}}`, 400, "INVALID_ARGUMENT"},
	} {
		a := h.Ask("POST", "/ard/"+c.path, c.body)
		require.NotContains(t, a.Body.String(), "after is not", "ARD's word is pageToken")
		require.Equal(t, c.status, a.Code, "%s %s", c.body[:min(len(c.body), 80)], a.Body)
		var e struct{ ErrorCode, Message string }
		require.NoError(t, json.Unmarshal(a.Body.Bytes(), &e))
		require.Equal(t, c.code, e.ErrorCode)
		require.NotEmpty(t, e.Message)
		require.Equal(t, "*", a.Header().Get("Access-Control-Allow-Origin"))
		require.NotEmpty(t, a.Problem().Code)
	}
	require.Equal(t, 405, h.Ask("GET", "/ard/search", "").Code)
	require.Equal(t, 415, h.Ask("POST", "/ard/search", `{"query":{"text":"x"}}`, "Content-Type", "text/plain").Code)

	narrow := nodetest.New(t, func(c *node.Config) { c.Dev, c.ReadRate = false, 1 })
	var last nodetest.Answer
	for range 20 {
		if last = narrow.Ask("POST", "/ard/search", `{"query":{"text":"x"}}`); last.Code != 200 {
			break
		}
	}
	require.Equal(t, 429, last.Code)
	require.Contains(t, last.Body.String(), `"errorCode":"RATE_LIMIT_EXCEEDED"`)
}

// Nodes that are followed are named as further registries.
func TestARD_Referrals(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	ctx := context.Background()
	require.NoError(t, h.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		for _, s := range []storage.Subscription{
			{Board: "https://n2.example/ap/board", Host: "n2.example", LogURL: "https://n2.example/ap/board/log", State: storage.SubscriptionAccepted},
			{Board: "https://n3.example/ap/board", Host: "n3.example", LogURL: "https://n3.example/ap/board/log", State: storage.SubscriptionPending},
			{Board: "https://social.example/group", Host: "social.example", State: storage.SubscriptionAccepted},
		} {
			if err := tx.Subscriptions().Put(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}))
	want := []protocol.ARDReferral{{Identifier: "urn:air:n2.example:registry:stoa", DisplayName: "n2.example", Type: "application/ai-registry+json",
		URL: "https://n2.example/ard/search"}}
	require.Equal(t, want, h.ARDSearch(`{"query":{"text":"paper"},"federation":"referrals"}`).Referrals)
	require.Equal(t, want, h.ARDSearch(`{"query":{"text":"paper"}}`).Referrals)
	require.Empty(t, h.ARDSearch(`{"query":{"text":"paper"},"federation":"none"}`).Referrals)
}
