package web_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// shopFile is a file as the program of a shop writes it.
func shopFile(t *testing.T, name string) string {
	return string(must.Get(os.ReadFile("testdata/catalogs/" + name))(t))
}

// TestImportItems_Foreign imports the files of the programs that shops have, as they are.
func TestImportItems_Foreign(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	token := h.Business("shop", "")
	send := func(query, media, file string) nodetest.Answer {
		return h.Ask("POST", "/api/owner/merchant/items/import"+query, file, "Authorization", "Bearer "+token, "Content-Type", media)
	}
	all := func(media, file, format string) map[string]protocol.CatalogEntry {
		t.Helper()
		var r protocol.ItemsImportReport
		send("?dryRun=true", media, file).Is(200).Into(&r)
		require.Empty(t, r.Faults)
		require.Equal(t, format, r.Format)
		send("", media, file).Is(200).Into(&r)
		var page protocol.Page[protocol.CatalogEntry]
		h.Ask("GET", "/api/public/items?handle=shop", "").Is(200).Into(&page)
		require.Len(t, page.Items, r.Items)
		items := map[string]protocol.CatalogEntry{}
		for _, i := range page.Items {
			items[i.SKU] = i
		}
		return items
	}
	media := func(i protocol.CatalogEntry) (links []string) {
		for _, m := range i.Media {
			links = append(links, m.URL)
		}
		return links
	}

	items := all("text/csv", shopFile(t, "shopify.csv"), "shopify")
	require.Len(t, items, 2, "a draft is no item")
	kurta := items["kurta"]
	require.Equal(t, "Soft & light.\nHand wash", kurta.Description)
	require.Equal(t, []string{"cotton", "summer-wear"}, kurta.Tags)
	require.Equal(t, []string{"https://cdn.example/k1.jpg", "https://cdn.example/k3.jpg"}, media(kurta))
	require.Equal(t, []protocol.ItemOption{{Name: "Size", Values: []string{"S", "M"}}, {Name: "Colour", Values: []string{"Blue"}}}, kurta.Options)
	require.Equal(t, "1500.00", kurta.Variants[0].ListPrice.Amount)
	require.Nil(t, kurta.Variants[1].ListPrice, "less than the price")
	require.Equal(t, protocol.OutOfStock, kurta.Variants[1].Availability)
	rice := items["rice-5kg"]
	require.Equal(t, "540.00", rice.Price.Amount)
	require.Empty(t, rice.Options)
	require.Empty(t, rice.Media)
	require.Equal(t, protocol.InStock, rice.Availability, "it sells on without stock")

	var r protocol.ItemsImportReport
	send("?dryRun=true", "text/csv", shopFile(t, "shopify.csv")).Is(200).Into(&r)
	require.Contains(t, r.Columns, protocol.ColumnUse{Column: "body_(html)", Becomes: "description"})
	require.Contains(t, r.Columns, protocol.ColumnUse{Column: "variant_grams", Dropped: true})
	require.Contains(t, strings.Join(r.Notes, "\n"), "1 × not published, and left out")
	require.Equal(t, 2, r.Unchanged, "read again, it changes nothing")

	items = all("text/csv", shopFile(t, "woocommerce.csv"), "woocommerce")
	require.Len(t, items, 2)
	require.Equal(t, "210.00", items["OIL1"].Price.Amount)
	require.Equal(t, "240.00", items["OIL1"].ListPrice.Amount)
	require.Equal(t, []string{"Offers", "Oils"}, items["OIL1"].Categories)
	require.Equal(t, "Cold pressed", items["OIL1"].Description)
	require.Len(t, items["TEE"].Variants, 2)
	require.Equal(t, protocol.OutOfStock, items["TEE"].Variants[1].Availability)

	for form, file := range map[string]string{"text/tab-separated-values": shopFile(t, "google.tsv"), "application/rss+xml": shopFile(t, "google.rss")} {
		items = all(form, file, "google")
		beans := items["SKU-1-A"]
		require.Equal(t, "Kidney Beans 500 g", beans.Name, form)
		require.Equal(t, "Red", beans.Description)
		require.Equal(t, []string{"120.00", "140.00"}, []string{beans.Price.Amount, beans.ListPrice.Amount})
		require.Equal(t, []string{"https://g.example/1.jpg", "https://g.example/2.jpg", "https://g.example/3.jpg"}, media(beans))
		require.Equal(t, "Pulses", *beans.Category)
		require.Equal(t, protocol.OutOfStock, items["B2"].Availability)
		require.Equal(t, "90.00", items["B2"].Price.Amount)
	}
	require.Equal(t, "https://g.example/2", *all("application/atom+xml", shopFile(t, "google.atom"), "google")["B2"].URL)

	items = all("application/json", shopFile(t, "products.json"), "schema.org")
	require.Equal(t, "2499.50", items["CH-1"].Price.Amount)
	require.Equal(t, protocol.Preorder, items["CH-1"].Availability)
	require.Len(t, items["CH-1"].Media, 2)
	require.Equal(t, "999.00", items["Cane-stool"].Price.Amount)
	require.Len(t, all("application/json", "\n[\n{\"sku\":\"a\",\"name\":\"A, ]\\\"\"},\n {\"sku\":\"b\",\"name\":\"B\"}\n]\n", "json"), 2)
}

// TestImportItems_Hostile: what is no feed, or one that is made to cost much, is refused with the reason, by line where it has lines.
func TestImportItems_Hostile(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	token := h.Business("shop", "")
	for name, x := range map[string]struct {
		media, file, says string
		status            int
	}{
		"a page":           {"text/xml", "<html><body>no</body></html>", "no item", 400},
		"half a feed":      {"text/xml", `<rss><channel><item><id>1</id>`, "cannot be read as XML", 400},
		"entities":         {"text/xml", `<!DOCTYPE r [<!ENTITY a "b">]><rss><item><id>&a;</id></item></rss>`, "cannot be read as XML", 400},
		"a long item":      {"text/xml", "<rss><item><id>" + strings.Repeat("x", 1<<20) + "</id></item></rss>", "longer than", 400},
		"deep":             {"application/json", strings.Repeat("[", 1<<20), "ends within", 400},
		"a long element":   {"application/json", `[{"sku":"` + strings.Repeat("x", 1<<20) + `"}]`, "/lines/1", 422},
		"another thing":    {"application/ld+json", `[{"@type":"Person","name":"A"}]`, "must be Product", 422},
		"a nameless thing": {"application/json", "[\n{\"@type\":\"Product\",\"sku\":\"a\"}]", "/lines/2/name", 422},
		"another encoding": {"text/xml", `<?xml version="1.0" encoding="ISO-8859-1"?><rss/>`, "save it as UTF-8", 400},
	} {
		a := h.Ask("POST", "/api/owner/merchant/items/import", x.file, "Authorization", "Bearer "+token, "Content-Type", x.media)
		require.Equal(t, x.status, a.Code, "%s: %s", name, a.Body)
		require.Contains(t, a.Body.String(), x.says, name)
	}
}
