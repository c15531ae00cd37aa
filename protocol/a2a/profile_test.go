package a2a

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

var host = Host{Base: "https://node.example", Name: "Example", Chains: []string{"eip155:8453"}, Software: "1"}

func profile() protocol.Profile {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	a2a := "https://node.example/a2a/asha"
	return protocol.Profile{
		Version: 1, Handle: "asha", UpdatedAt: &at,
		ProfileDraft:  protocol.ProfileDraft{Name: "Asha Rao", Kind: protocol.Person, Description: "Product designer in Pune."},
		Interfaces:    protocol.Interfaces{Page: "https://node.example/@asha", Profile: "https://node.example/api/public/agents/asha", A2A: &a2a},
		ContactPolicy: protocol.ContactPolicy{OutsideAgentsWithIdentity: true, Kinds: []string{"question", "quote_request"}, ResponseTime: new("within a day")},
		Capabilities: []protocol.Capability{
			{ID: "schedule-meeting", Name: "Schedule a meeting", Description: "The owner approves first.", Tags: []string{"scheduling"},
				Pricing: &protocol.Pricing{Model: protocol.Free}},
			{ID: "contact", Name: "Letters", Description: "By hand.", Input: "An address", Output: "A letter",
				Pricing: &protocol.Pricing{Model: protocol.Fixed, Currency: "INR", Amount: new(99.5)}},
		},
	}
}

func TestFromProfile(t *testing.T) {
	t.Parallel()
	c := must.Get(FromProfile(profile(), host))(t)
	const at = "https://node.example/a2a/asha"
	require.Equal(t, []Interface{{at, "JSONRPC", "1.0"}, {at, "JSONRPC", "0.3"}, {at, "HTTP+JSON", "1.0"}}, c.SupportedInterfaces)
	require.Equal(t, "1795168800", c.Version)
	require.Equal(t, &Provider{"node.example", "https://node.example"}, c.Provider)
	require.Equal(t, []Skill{
		{"contact", "Write to Asha Rao",
			"A message begins or continues a thread; the agent's owner answers. Kinds: question, quote_request. Usual answer: within a day.",
			[]string{"contact", "question", "quote_request"}},
		{"schedule-meeting", "Schedule a meeting", "The owner approves first.", []string{"scheduling"}},
		{"capability-contact", "Letters", "By hand. Send: An address Gives: A letter", []string{"capability-contact"}},
	}, c.Skills)
	ext := map[string]Extension{}
	for _, e := range c.Capabilities.Extensions {
		ext[e.URI] = e
	}
	require.Len(t, ext, 4)
	require.Equal(t, map[string]any{
		"schedule-meeting":   map[string]any{"model": "free"},
		"capability-contact": map[string]any{"model": "fixed", "currency": "INR", "amount": "99.5"},
	}, ext[ExtProfile].Params["pricing"])
	require.Equal(t, []string{"eip155:8453"}, ext[ExtSignedRequests].Params["chains"])
	require.Contains(t, ext[ExtSignedRequests].Params["components"], "agent-identity")

	p := profile()
	p.Description = ""
	c = must.Get(FromProfile(p, host))(t)
	require.Equal(t, "Agent of Asha Rao on node.example", c.Description)
	p.Headline, p.Interfaces.A2A = "Chairs", nil
	c = must.Get(FromProfile(p, host))(t)
	require.Equal(t, "Chairs", c.Description)
	require.Contains(t, c.Skills[0].Description, "does not accept messages", "the card can still be read")
}

// TestCard_Stable: no empty text, list or object, no null and no false, so that
// readers that drop such members before they check a signature see the same.
func TestCard_Stable(t *testing.T) {
	t.Parallel()
	bare := protocol.Profile{Handle: "bo", ProfileDraft: protocol.ProfileDraft{Name: "Bo", Kind: protocol.Person},
		Interfaces: protocol.Interfaces{Page: "p", Profile: "q"}}
	full, longest := profile(), profile()
	for i := range 20 {
		longest.Capabilities = append(longest.Capabilities[:min(i, len(longest.Capabilities))], protocol.Capability{
			ID: "c" + strconv.Itoa(i), Name: strings.Repeat("न", 60), Description: strings.Repeat("द", 400), Input: strings.Repeat("x", 200),
			Output: strings.Repeat("y", 200),
			Tags:   []string{"one", "two", "three"},
		})
	}
	for _, p := range []protocol.Profile{bare, full, longest} {
		for _, callers := range []Callers{"", ChainCallers, SignedCallers, AnyCallers} {
			c := must.Get(FromProfile(p, Host{Base: "https://node.example", Name: "n", Software: "1", Callers: callers}))(t)
			stable(t, c)
			stable(t, c.Combined())
			require.LessOrEqual(t, len(must.Get(c.Combined().Payload())(t)), MaxCard-signatureRoom)
		}
	}
	any := host
	any.Callers = AnyCallers
	node := FromNode(protocol.OperationsFor(protocol.Everybody, protocol.A2A), any)
	stable(t, node)
	require.LessOrEqual(t, len(must.Get(node.Combined().Payload())(t)), MaxCard-signatureRoom/2, "it has half as many signatures")
	require.Equal(t, "https://node.example/a2a", node.SupportedInterfaces[0].URL)
}

func stable(t *testing.T, c Card) {
	t.Helper()
	raw := must.Get(c.Payload())(t)
	v := must.JSON[any](raw)(t)
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			require.NotEmpty(t, v, at)
			for name, member := range v {
				walk(at+"/"+name, member)
			}
		case []any:
			require.NotEmpty(t, v, at)
			for _, e := range v {
				walk(at+"/-", e)
			}
		case string:
			require.NotEmpty(t, v, at)
		case nil, bool:
			require.Equal(t, true, v, at)
		}
	}
	walk("", v)
}
