package web_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestShop_Pages walks the pages of a large shop: each is bounded and shows its items by category.
func TestShop_Pages(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	token := h.Business("big", "")
	var items []string
	for i := range 250 {
		items = append(items, fmt.Sprintf(`{"sku":"s%d","name":"Cup %d","price":{"currency":"INR","amount":%d},"category":"Shelf %d"}`, i, i, 100_000+i, i/40))
	}
	h.Ask("POST", "/api/owner/merchant/items/batch", `{"items":[`+strings.Join(items, ",")+`]}`, "Authorization", "Bearer "+token).Is(200)
	next := regexp.MustCompile(`<link rel="next" href="([^"]+)"`)
	path, seen, pages := "/@big", map[string]int{}, 0
	for path != "" {
		page := h.Ask("GET", path, "", "Accept", "text/html").Body.String()
		require.Less(t, len(page), 250_000)
		for _, m := range regexp.MustCompile(`<h4[^>]*>(Cup \d+)</h4>`).FindAllStringSubmatch(page, -1) {
			seen[m[1]]++
		}
		require.Contains(t, page, "₹1,00,")
		require.Regexp(t, `<h3[^>]*>Shelf \d</h3>`, page)
		doc := linked(h, new(linkedDocs), path, "LocalBusiness")
		require.LessOrEqual(t, len(doc["hasOfferCatalog"].(map[string]any)["itemListElement"].([]any)), protocol.MaxRecordItems)
		path = ""
		if m := next.FindStringSubmatch(page); m != nil {
			path, _, _ = strings.Cut(strings.ReplaceAll(m[1], "&amp;", "&"), "#")
		}
		pages++
		require.Less(t, pages, 10)
	}
	require.Equal(t, 3, pages)
	require.Len(t, seen, 250)
	for name, n := range seen {
		require.Equal(t, 1, n, name)
	}
	require.Equal(t, 400, h.Ask("GET", "/@big?after=x", "", "Accept", "text/html").Code)
}

// TestReturns: everybody reads how to ask for a return, and the owner sees which threads may be one.
func TestReturns(t *testing.T) {
	t.Parallel()
	h := nodetest.UCPWorld(t, func(*node.Config) {})
	m := nodetest.As[protocol.Merchant](h.Ask("GET", "/api/public/merchants/rao", ""))
	require.Equal(t, protocol.Support, m.ReturnRequest.Kind)
	require.Equal(t, "₹500", *m.ReturnRequest.AgentDecides)
	require.Equal(t, h.Base+"/api/public/agents/rao/contact", *m.ReturnRequest.Contact)
	h.Ask("GET", "/api/public/merchants/chai", "").Into(&m)
	require.Nil(t, m.ReturnRequest)
	page := h.Ask("GET", "/@rao", "", "Accept", "text/html").Body.String()
	require.Contains(t, page, "more goes to the owner")
	require.Contains(t, page, "₹900–₹1,000")
	require.Contains(t, page, "Colour: Red, Blue")

	for _, kind := range []string{"support", "question"} {
		h.Ask("POST", "/api/public/agents/rao/contact", fmt.Sprintf(`{"message":"About the shirt","kind":%q}`, kind), "Proof-Of-Work", h.Proof("contact")).Is(201)
	}
	bearer := "Bearer " + h.OwnerToken("rao")
	threads := nodetest.As[protocol.Page[protocol.Thread]](h.Ask("GET", "/api/owner/threads", "", "Authorization", bearer))
	require.Len(t, threads.Items, 2)
	for _, thread := range threads.Items {
		require.Equal(t, thread.Kind == protocol.Support, thread.Return != nil)
		one := nodetest.As[protocol.Conversation](h.Ask("GET", "/api/owner/threads/"+thread.ThreadID, "", "Authorization", bearer))
		require.Equal(t, thread.Return, one.Return)
	}
}
