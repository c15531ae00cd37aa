package node

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
)

// TestMerchantsPage_Elsewhere: a shop of another node is on the page of shops with its node and a link to its own page, which
// no link of this node hides.
func TestMerchantsPage_Elsewhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.business("rao", "")
	require.NoError(t, h.db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.RemoteAgents().Put(ctx, storage.RemoteAgent{Actor: "https://n2.example/ap/agents/mehta", Host: "n2.example",
			Summary: protocol.AgentSummary{Profile: protocol.ProfileDraft{Handle: "mehta", Name: "Mehta & Sons", Kind: protocol.Business, Headline: "Spices."},
				Shop: &protocol.ShopSummary{Record: protocol.MerchantDraft{City: "Pune"}}}})
		return err
	}))
	page := h.ask("GET", "/merchants", "", "Accept", "text/html").Body.String()
	for _, want := range []string{"Mehta &amp; Sons", "n2.example", `href="https://n2.example/@mehta"`, `href="/@rao"`, "On this node"} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, `href="/@mehta"`)
	require.NotContains(t, h.ask("GET", "/merchants?local=true", "", "Accept", "text/html").Body.String(), "Mehta")
	text := h.ask("GET", "/merchants", "", "Accept", "text/markdown")
	require.Equal(t, 200, text.Code)
	require.Contains(t, text.Body.String(), "https://n2.example/@mehta")
}
