package directory_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestItems_Near: what is sold near a place that has a name, with its distance, over HTTP and as a tool; a place that nobody knows is named.
func TestItems_Near(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for n, handle := range []string{"rao-tiffins", "far-tiffins"} {
		h.Ask("PUT", "/api/owner/merchant", fmt.Sprintf(`{"city":"Bengaluru","address":{"street":"5th Block, %s","postalCode":"56003%d"},
			"geo":{"latitude":%v,"longitude":77.612},"items":[{"sku":"dosa","name":"Masala dosa","price":{"amount":"85","currency":"INR"}}]}`,
			[]string{"Koramangala", "Hebbal"}[n], 4+n, 12.934+0.1*float64(n)), "Authorization", "Bearer "+h.Business(handle, "")).Is(200)
	}
	ask := func(query string) (found []string) {
		t.Helper()
		var page protocol.ItemList
		h.Ask("GET", "/api/public/items?"+query, "").Is(200).Into(&page)
		for _, i := range page.Items {
			found = append(found, fmt.Sprintf("%s %.0f km", i.Merchant.Handle, float64(*i.Merchant.Distance)/1000))
		}
		return found
	}
	require.Equal(t, []string{"rao-tiffins 0 km"}, ask("near=Koramangala"))
	require.Equal(t, []string{"rao-tiffins 0 km"}, ask("near=560034&q=dosa"))
	require.Equal(t, []string{"far-tiffins 1 km", "rao-tiffins 12 km"}, ask("near=13.042,77.612&radius=20000"))
	require.Equal(t, []string{"far-tiffins 1 km", "rao-tiffins 12 km"}, ask("near=13.042,77.612&radius=20000&q=dosas&sort=near"))
	same := h.Ask("GET", "/api/public/items?near=Koramangala&q=dosa", "").Is(200).Body.String()
	require.JSONEq(t, same, string(h.Tool("list_items", `{"near":"Koramangala","q":"dosa"}`).Structured))
	require.NotContains(t, h.Ask("GET", "/api/public/items?q=dosa", "").Is(200).Body.String(), "distance")

	for query, fault := range map[string]string{"near=Atlantis": "unknown-place", "near=91,0": "wrong-shape", "sort=near": "required", "radius=5": "required"} {
		p := h.Ask("GET", "/api/public/items?"+query, "").Is(422).Problem()
		require.Equal(t, []any{"/near", fault}, []any{p.Errors[0].Pointer, p.Errors[0].Code}, query)
	}
	empty := h.Ask("GET", "/api/public/items?near=48.1,11.5&q=dosa", "").Is(200).Body.String()
	require.Contains(t, empty, `"without":["near"]`, "what to leave out")
}
