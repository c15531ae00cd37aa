package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// TestMerchantsPage_Elsewhere: a shop of another node is on the page of shops with its node and a link to its own page, which
// no link of this node hides.
func TestMerchantsPage_Elsewhere(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Business("rao", "")
	require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.RemoteAgents().Put(ctx, storage.RemoteAgent{Actor: "https://n2.example/ap/agents/mehta", Host: "n2.example",
			Summary: protocol.AgentSummary{Profile: protocol.ProfileDraft{Handle: "mehta", Name: "Mehta & Sons", Kind: protocol.Business, Headline: "Spices."},
				Shop: &protocol.ShopSummary{Record: protocol.MerchantDraft{City: "Pune"}}}})
		return err
	}))
	page := h.Ask("GET", "/merchants", "", "Accept", "text/html").Body.String()
	for _, want := range []string{"Mehta &amp; Sons", "n2.example", `href="https://n2.example/@mehta"`, `href="/@rao"`, "On this node"} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, `href="/@mehta"`)
	require.NotContains(t, h.Ask("GET", "/merchants?local=true", "", "Accept", "text/html").Body.String(), "Mehta")
	text := h.Ask("GET", "/merchants", "", "Accept", "text/markdown").Is(200)
	require.Contains(t, text.Body.String(), "https://n2.example/@mehta")
}

// TestDirectory_Elsewhere: a person of a followed node is found by search, in the lists of people and of attention boards, and on
// the pages, with the node where every action is, and no longer when the profile is not listed.
func TestDirectory_Elsewhere(t *testing.T) {
	t.Parallel()
	home, away := nodetest.Start(t), nodetest.Start(t)
	require.NoError(t, away.Admin().Follow(t.Context(), home.Base))
	home.PutProfile([]byte(`{"handle":"ada","name":"Ada Rao","kind":"person","headline":"Weaver of zinnia cloth",
		"regions":["IN-KA"],"tags":["cloth"],"capabilities":[{"id":"weaving","name":"Weaving","description":"Cloth to order."}]}`))
	token := []string{"Authorization", "Bearer " + home.OwnerToken("ada")}
	home.Ask("PUT", "/api/owner/attention", `{"handle":"ada","floor":"200","slots":3,"categories":[{"name":"Yarn","floor":"300"}]}`, token...).Is(200)

	find := func(path string, into any) { away.Ask("GET", path, "").Into(into) }
	var agents protocol.Page[protocol.Profile]
	require.Eventually(t, func() bool {
		find("/api/public/agents?q=zinnia&region=IN&capability=weaving&tag=cloth", &agents)
		return len(agents.Items) == 1 && **agents.Items[0].Interfaces.AttentionBoard != ""
	}, time.Minute, 50*time.Millisecond)
	ada, host := agents.Items[0], strings.TrimPrefix(home.Base, "http://")
	require.Equal(t, host, *ada.Node)
	require.Equal(t, []string{home.Base + "/@ada", home.Base + "/@ada/board"}, []string{ada.Interfaces.Page, **ada.Interfaces.AttentionBoard})
	for path, want := range map[string]int{
		"?kind=business": 0, "?hasIdentity=true": 0, "?hasIdentity=false": 1, "?local=true": 0, "?q=quartz": 0, "?q=-cloth": 0, "": 1,
	} {
		find("/api/public/agents"+path, &agents)
		require.Len(t, agents.Items, want, path)
	}
	var people protocol.Page[protocol.PersonEntry]
	find("/api/public/people?q=ada", &people)
	require.Len(t, people.Items, 1)
	require.True(t, people.Items[0].HasAttentionBoard)
	var boards protocol.Page[protocol.BoardEntry]
	find("/api/public/attention?category=yarn", &boards)
	require.Len(t, boards.Items, 1)
	b := boards.Items[0]
	require.Equal(t, []any{"200.00", 3, (*int)(nil), host}, []any{b.Floor.Amount, b.Slots, b.FreeSlots, *b.Node})
	find("/api/public/attention?category=silk", &boards)
	require.Empty(t, boards.Items)
	for federation, want := range map[string]int{"auto": 1, "referrals": 0, "none": 0} {
		var found protocol.ARDFound
		away.Ask("POST", "/ard/search", `{"query":{"text":"zinnia cloth","filter":{"metadata.kind":"person"}},"federation":"`+federation+`"}`).Into(&found)
		require.Len(t, found.Results, want, federation)
		if want > 0 {
			require.Equal(t, home.Base+"/ard", found.Results[0].Source)
		}
	}
	for _, page := range []string{"/agents", "/people", "/attention"} {
		text := away.Ask("GET", page, "", "Accept", "text/html").Body.String()
		require.Contains(t, text, "Ada Rao", page)
		require.Contains(t, text, home.Base+"/@ada", page)
		require.NotContains(t, text, `href="/@ada`, page)
		require.NotContains(t, away.Ask("GET", page+"?local=true", "", "Accept", "text/html").Body.String(), "Ada Rao", page)
	}
	require.Equal(t, 404, away.Ask("GET", "/api/public/agents/ada", "").Code, "it is not of this node")

	home.PutProfile([]byte(`{"handle":"ada","name":"Ada Rao","kind":"person","listed":false}`))
	require.Eventually(t, func() bool {
		find("/api/public/agents", &agents)
		find("/api/public/attention", &boards)
		return len(agents.Items)+len(boards.Items) == 0
	}, time.Minute, 50*time.Millisecond)
}
