package web_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// JSONLDEnv names the program that checks JSON-LD; make test sets it.
const JSONLDEnv = "STOA_TEST_JSONLD"

var linkedData = regexp.MustCompile(`(?s)<script type="application/ld\+json">(.*?)</script>`)

// linkedDocs are documents of pages, to be checked together.
type linkedDocs struct{ kinds, docs []string }

// linked returns the JSON-LD of a page, which has the type kind, and adds it to docs.
func linked(h *nodetest.House, docs *linkedDocs, path, kind string) (doc map[string]any) {
	h.T.Helper()
	page := h.Ask("GET", path, "", "Accept", "text/html").Body.String()
	found := linkedData.FindAllStringSubmatch(page, -1)
	require.Len(h.T, found, 1, "%s", path)
	require.NoError(h.T, json.Unmarshal([]byte(found[0][1]), &doc), "%s", found[0][1])
	require.Equal(h.T, kind, doc["@type"])
	docs.kinds, docs.docs = append(docs.kinds, kind), append(docs.docs, strings.TrimSpace(found[0][1]))
	return doc
}

// check expands the documents by npm jsonld and compares them with the types of schema-dts.
func (d linkedDocs) check(t *testing.T) {
	t.Helper()
	program := os.Getenv(JSONLDEnv)
	if program == "" {
		return
	}
	check := exec.Command("node", append([]string{program}, d.kinds...)...)
	check.Stdin = strings.NewReader(strings.Join(d.docs, "\n"))
	out, err := check.CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, d.docs)
}

// member follows a path of members into a document.
func member(doc any, path ...any) any {
	for _, at := range path {
		switch at := at.(type) {
		case int:
			doc = doc.([]any)[at]
		case string:
			doc = doc.(map[string]any)[at]
		}
	}
	return doc
}

// TestLinkedData reads pages as a crawler does.
func TestLinkedData(t *testing.T) {
	t.Parallel()
	h := nodetest.UCPWorld(t, func(*node.Config) {})
	var docs linkedDocs
	doc := linked(h, &docs, "/@rao", "LocalBusiness")
	require.Equal(t, h.Base+"/@rao", doc["@id"])
	require.Equal(t, "ProfilePage", member(doc, "mainEntityOfPage", "@type"))
	require.NotContains(t, doc, "aggregateRating", "there are no reviews")
	require.Equal(t, "KA", member(doc, "address", "addressRegion"))
	require.Equal(t, "23:59:59", member(doc, "openingHoursSpecification", 0, "closes"))
	returns := doc["hasMerchantReturnPolicy"].(map[string]any)
	require.EqualValues(t, 7, returns["merchantReturnDays"])
	require.Contains(t, returns["description"], "more goes to the owner")
	offers := map[string]map[string]any{}
	for _, o := range member(doc, "hasOfferCatalog", "itemListElement").([]any) {
		offers[member(o, "itemOffered", "name").(string)] = o.(map[string]any)
	}
	require.Len(t, offers, 4)
	require.Equal(t, "40.50", offers["Idli"]["price"])
	require.Equal(t, "https://schema.org/PreOrder", offers["Ghee"]["availability"])
	require.Equal(t, "900.00", offers["Cotton shirt"]["lowPrice"])
	require.NotContains(t, offers["Feast"], "price", "on request")

	// Texts cannot leave the element.
	evil := `</script><script>alert(1)</script><!-- & \u2028`
	token := h.Business("evil", fmt.Sprintf(`,"headline":%s`, jsonText(evil)))
	h.Ask("PUT", "/api/owner/merchant", `{"city":"Mysuru","items":[{"sku":"x","name":`+jsonText(evil)+`}]}`, "Authorization", "Bearer "+token).Is(200)
	write := func(title, more string, headers ...string) (p protocol.Post) {
		if headers == nil {
			headers = []string{"Proof-Of-Work", h.Proof("board")}
		}
		a := h.Ask("POST", "/api/public/board", `{"kind":"question","title":`+jsonText(title)+`,"body":`+jsonText("About "+title)+more+`}`, headers...).Is(201)
		a.Into(&p)
		return p
	}
	meera := h.Agent("meera", nodetest.OpenPolicy)
	question := write(evil, `,"name":`+jsonText(evil)+`,"tags":["paper","loom"]`)
	reply := write("Paper", `,"inReplyTo":"`+question.ID+`"`, "Authorization", meera)
	write("Thanks", `,"inReplyTo":"`+reply.ID+`"`)

	doc = linked(h, &docs, "/@evil", "LocalBusiness")
	require.Contains(t, doc["description"], "</script>")
	doc = linked(h, &docs, "/board/"+question.ID, "DiscussionForumPosting")
	require.Equal(t, evil, doc["headline"])
	require.Equal(t, "About "+evil, doc["text"])
	require.Equal(t, evil, member(doc, "author", "name"))
	require.Equal(t, question.URL, doc["url"])
	require.Equal(t, h.Base+"/board", member(doc, "isPartOf", "url"))
	require.EqualValues(t, 1, member(doc, "interactionStatistic", "userInteractionCount"))
	require.Equal(t, h.Base+"/@meera", member(doc, "comment", 0, "author", "url"))
	require.Equal(t, "About Thanks", member(doc, "comment", 0, "comment", 0, "text"))
	doc = linked(h, &docs, "/board/"+reply.ID, "DiscussionForumPosting")
	require.Equal(t, question.URL, member(doc, "isPartOf", "url"))
	doc = linked(h, &docs, "/board", "CollectionPage")
	require.Equal(t, question.URL, member(doc, "hasPart", 0, "url"))
	require.NotContains(t, member(doc, "hasPart", 0), "text")
	for path, entry := range map[string]string{"/agents": "/@evil", "/merchants": "/@evil", "/people": "/@meera", "/feed": ""} {
		doc = linked(h, &docs, path, "CollectionPage")
		parts, _ := doc["hasPart"].([]any)
		require.NotEmpty(t, parts, path)
		there := slices.ContainsFunc(parts, func(p any) bool { return member(p.(map[string]any), "url") == h.Base+entry })
		require.True(t, entry == "" || there, "%s: %v", path, parts)
	}
	doc = linked(h, &docs, "/@meera", "ProfilePage")
	require.Equal(t, "Person", member(doc, "mainEntity", "@type"))
	require.Equal(t, reply.URL, member(doc, "hasPart", 0, "url"))
	for _, path := range []string{"/@evil", "/board", "/board/" + question.ID, "/board/" + reply.ID, "/agents", "/merchants", "/people", "/feed"} {
		require.NotContains(t, h.Ask("GET", path, "", "Accept", "text/html").Body.String(), "<script>alert", path)
	}
	docs.check(t)
}

// jsonText is a text as JSON.
func jsonText(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}
