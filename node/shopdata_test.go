package node

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// JSONLDEnv names the program that checks JSON-LD; make test sets it.
const JSONLDEnv = "STOA_TEST_JSONLD"

var linkedData = regexp.MustCompile(`(?s)<script type="application/ld\+json">(.*?)</script>`)

// linked returns the JSON-LD of a page, checked by npm jsonld and the types of schema-dts.
func (h *house) linked(path, kind string) (doc map[string]any) {
	h.t.Helper()
	page := h.ask("GET", path, "", "Accept", "text/html").Body.String()
	found := linkedData.FindAllStringSubmatch(page, -1)
	require.Len(h.t, found, 1, "%s", path)
	require.NoError(h.t, json.Unmarshal([]byte(found[0][1]), &doc), "%s", found[0][1])
	if program := os.Getenv(JSONLDEnv); program != "" {
		check := exec.Command("node", program, kind)
		check.Stdin = strings.NewReader(found[0][1])
		out, err := check.CombinedOutput()
		require.NoError(h.t, err, "%s\n%s", out, found[0][1])
	}
	return doc
}

// TestShop_LinkedData reads a shop's page as a crawler does.
func TestShop_LinkedData(t *testing.T) {
	t.Parallel()
	h := ucpWorld(t, func(*Config) {})
	doc := h.linked("/@rao", "LocalBusiness")
	require.Equal(t, h.Base+"/@rao", doc["@id"])
	require.NotContains(t, doc, "aggregateRating", "there are no reviews")
	require.Equal(t, "KA", doc["address"].(map[string]any)["addressRegion"])
	require.Equal(t, "23:59:59", doc["openingHoursSpecification"].([]any)[0].(map[string]any)["closes"])
	returns := doc["hasMerchantReturnPolicy"].(map[string]any)
	require.EqualValues(t, 7, returns["merchantReturnDays"])
	require.Contains(t, returns["description"], "more goes to the owner")
	offers := map[string]map[string]any{}
	for _, o := range doc["hasOfferCatalog"].(map[string]any)["itemListElement"].([]any) {
		offer := o.(map[string]any)
		offers[offer["itemOffered"].(map[string]any)["name"].(string)] = offer
	}
	require.Len(t, offers, 4)
	require.Equal(t, "40.50", offers["Idli"]["price"])
	require.Equal(t, "https://schema.org/PreOrder", offers["Ghee"]["availability"])
	require.Equal(t, "900.00", offers["Cotton shirt"]["lowPrice"])
	require.NotContains(t, offers["Feast"], "price", "on request")

	// Texts cannot leave the element.
	evil := `</script><script>alert(1)</script><!-- & \u2028`
	token := h.business("evil", fmt.Sprintf(`,"headline":%s`, asJSON(evil)[1:len(asJSON(evil))-1]))
	a := h.ask("PUT", "/api/owner/merchant", `{"city":"Mysuru","items":[{"sku":"x","name":`+asJSON(evil)[1:len(asJSON(evil))-1]+`}]}`,
		"Authorization", "Bearer "+token)
	require.Equal(t, 200, a.Code, "%s", a.Body)
	doc = h.linked("/@evil", "LocalBusiness")
	require.Contains(t, doc["description"], "</script>")
	require.NotContains(t, h.ask("GET", "/@evil", "", "Accept", "text/html").Body.String(), "<script>alert")
}

// TestShop_Pages walks the pages of a large shop: each is bounded and shows its items by category.
func TestShop_Pages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	token := h.business("big", "")
	var items []string
	for i := range 250 {
		items = append(items, fmt.Sprintf(`{"sku":"s%d","name":"Cup %d","price":{"currency":"INR","amount":%d},"category":"Shelf %d"}`, i, i, 100_000+i, i/40))
	}
	a := h.ask("POST", "/api/owner/merchant/items/batch", `{"items":[`+strings.Join(items, ",")+`]}`, "Authorization", "Bearer "+token)
	require.Equal(t, 200, a.Code, "%s", a.Body)
	next := regexp.MustCompile(`<link rel="next" href="([^"]+)"`)
	path, seen, pages := "/@big", map[string]int{}, 0
	for path != "" {
		page := h.ask("GET", path, "", "Accept", "text/html").Body.String()
		require.Less(t, len(page), 250_000)
		for _, m := range regexp.MustCompile(`<h4[^>]*>(Cup \d+)</h4>`).FindAllStringSubmatch(page, -1) {
			seen[m[1]]++
		}
		require.Contains(t, page, "₹1,00,")
		require.Regexp(t, `<h3[^>]*>Shelf \d</h3>`, page)
		doc := h.linked(path, "LocalBusiness")
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
	require.Equal(t, 400, h.ask("GET", "/@big?after=x", "", "Accept", "text/html").Code)
}

// TestReturns: everybody reads how to ask for a return, and the owner sees which threads may be one.
func TestReturns(t *testing.T) {
	t.Parallel()
	h := ucpWorld(t, func(*Config) {})
	var m protocol.Merchant
	h.ask("GET", "/api/public/merchants/rao", "").into(&m)
	require.Equal(t, protocol.Support, m.ReturnRequest.Kind)
	require.Equal(t, "₹500", *m.ReturnRequest.AgentDecides)
	require.Equal(t, h.Base+"/api/public/agents/rao/contact", *m.ReturnRequest.Contact)
	h.ask("GET", "/api/public/merchants/chai", "").into(&m)
	require.Nil(t, m.ReturnRequest)
	page := h.ask("GET", "/@rao", "", "Accept", "text/html").Body.String()
	require.Contains(t, page, "more goes to the owner")
	require.Contains(t, page, "₹900–₹1,000")
	require.Contains(t, page, "Colour: Red, Blue")

	for _, kind := range []string{"support", "question"} {
		a := h.ask("POST", "/api/public/agents/rao/contact", fmt.Sprintf(`{"message":"About the shirt","kind":%q}`, kind), "Proof-Of-Work", h.proof("contact"))
		require.Equal(t, 201, a.Code, "%s", a.Body)
	}
	bearer := "Bearer " + ownerToken(t, h.Node, "rao")
	var threads protocol.Page[protocol.Thread]
	h.ask("GET", "/api/owner/threads", "", "Authorization", bearer).into(&threads)
	require.Len(t, threads.Items, 2)
	for _, thread := range threads.Items {
		require.Equal(t, thread.Kind == protocol.Support, thread.Return != nil)
		var one protocol.Conversation
		h.ask("GET", "/api/owner/threads/"+thread.ThreadID, "", "Authorization", bearer).into(&one)
		require.Equal(t, thread.Return, one.Return)
	}
}
