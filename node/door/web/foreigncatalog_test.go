package web_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// Files as the programs of shops write them.
const (
	shopifyFile = `Handle,Title,Body (HTML),Vendor,Product Category,Type,Tags,Published,Option1 Name,Option1 Value,Option2 Name,Option2 Value,Variant SKU,Variant Grams,` +
		`Variant Inventory Qty,Variant Inventory Policy,Variant Price,Variant Compare At Price,Variant Barcode,Image Src,Image Position,Status
kurta,Cotton Kurta,"<p>Soft &amp; light.</p><script>x()</script><ul><li>Hand wash</li></ul>",Rao,Apparel > Clothing > Kurtas,Kurtas,"Cotton, Summer Wear",true,Size,S,Colour,Blue,KU-S,200,5,deny,1200.00,1500.00,8901234567890,https://cdn.example/k1.jpg,1,active
kurta,,,,,,,,,M,,Blue,KU-M,210,0,deny,1250.00,1100.00,,https://cdn.example/k2.jpg,2,
kurta,,,,,,,,,,,,,,,,,,,https://cdn.example/k3.jpg,3,
rice-5kg,Basmati Rice 5kg,Long grain,Rao,,Rice,,TRUE,Title,Default Title,,,,5000,-2,continue,540,,,http://cdn.example/r.jpg,1,active
old,Old thing,,,,,,true,Size,S,,,O-S,,,deny,10,,,,,draft
old,,,,,,,,,M,,,O-M,,,deny,11,,,,,
`
	wooFile = `ID,Type,SKU,Name,Published,Short description,Description,In stock?,Stock,Backorders allowed?,Sale price,Regular price,Categories,Tags,Images,Parent,Attribute 1 name,Attribute 1 value(s)
11,simple,OIL1,"Groundnut Oil, 1 l",1,Cold pressed,,1,12,0,210,240,"Grocery > Oils, Offers",oil,"https://w.example/a.jpg, https://w.example/b.jpg",,,
12,variable,TEE,T-shirt,1,,<b>Cotton</b>,1,,0,,,Clothes,,,,Size,"S, M"
13,variation,TEE-S,T-shirt - S,1,,,1,3,0,,399,,,,TEE,Size,S
14,variation,TEE-M,T-shirt - M,1,,,0,0,0,,399,,,,id:12,Size,M
15,simple,,Hidden,-1,,,1,,0,,1,,,,,,
`
	googleTable = "id\ttitle\tdescription\tlink\timage link\tadditional image link\tavailability\tprice\tsale price\tproduct type\tgtin\tcondition\n" +
		"SKU 1/A\tKidney Beans 500 g\tRed\thttps://g.example/1\thttps://g.example/1.jpg\thttps://g.example/2.jpg,https://g.example/3.jpg\tin stock\t140.00 INR\t120.00 INR\tFood > Pulses\t890123456\tnew\n" +
		"B2\tTea\tAssam\thttps://g.example/2\t\t\tout of stock\tINR 90\t\tFood > Tea\t\tnew\n"
	googleRSS = `<?xml version="1.0" encoding="UTF-8"?>
<rss xmlns:g="http://base.google.com/ns/1.0" version="2.0"><channel><title>Shop</title><link>https://g.example</link>
<item><g:id>SKU 1/A</g:id><g:title>Kidney Beans 500 g</g:title><g:description><![CDATA[<p>Red</p>]]></g:description><link>https://g.example/1</link>
<g:image_link>https://g.example/1.jpg</g:image_link><g:additional_image_link>https://g.example/2.jpg</g:additional_image_link>
<g:additional_image_link>https://g.example/3.jpg</g:additional_image_link><g:availability>in_stock</g:availability><g:price>140.00 INR</g:price>
<g:sale_price>120.00 INR</g:sale_price><g:product_type>Food &gt; Pulses</g:product_type><g:gtin>890123456</g:gtin><g:shipping><g:price>10 INR</g:price></g:shipping></item>
<item><g:id>B2</g:id><title>Tea</title><description>Assam</description><link>https://g.example/2</link><g:availability>out of stock</g:availability><g:price>90 INR</g:price>
<g:product_type>Food &gt; Tea</g:product_type></item></channel></rss>`
	googleAtom = `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:g="http://base.google.com/ns/1.0"><title>Shop</title>
<entry><g:id>B2</g:id><title>Tea</title><summary>Assam</summary><link href="https://g.example/2"/><g:availability>out_of_stock</g:availability><g:price>90 INR</g:price></entry></feed>`
	productFile = `[{"@context":"https://schema.org","@type":"Product","name":"Cane chair","description":"Made by hand","sku":"CH-1","image":["https://s.example/c.jpg",{"@type":"ImageObject","url":"https://s.example/d.jpg"}],
 "category":"Furniture","gtin13":"8901234567890","offers":{"@type":"Offer","price":2499.5,"priceCurrency":"INR","availability":"https://schema.org/PreOrder"}},
 {"@type":["Product"],"name":"Cane stool","offers":[{"price":"999","priceCurrency":"INR"}]}]`
)

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

	items := all("text/csv", shopifyFile, "shopify")
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
	send("?dryRun=true", "text/csv", shopifyFile).Is(200).Into(&r)
	require.Contains(t, r.Columns, protocol.ColumnUse{Column: "body_(html)", Becomes: "description"})
	require.Contains(t, r.Columns, protocol.ColumnUse{Column: "variant_grams", Dropped: true})
	require.Contains(t, strings.Join(r.Notes, "\n"), "not published, and left out: 1 times")
	require.Equal(t, 2, r.Unchanged, "read again, it changes nothing")

	items = all("text/csv", wooFile, "woocommerce")
	require.Len(t, items, 2)
	require.Equal(t, "210.00", items["OIL1"].Price.Amount)
	require.Equal(t, "240.00", items["OIL1"].ListPrice.Amount)
	require.Equal(t, []string{"Offers", "Oils"}, items["OIL1"].Categories)
	require.Equal(t, "Cold pressed", items["OIL1"].Description)
	require.Len(t, items["TEE"].Variants, 2)
	require.Equal(t, protocol.OutOfStock, items["TEE"].Variants[1].Availability)

	for form, file := range map[string]string{"text/tab-separated-values": googleTable, "application/rss+xml": googleRSS} {
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
	require.Equal(t, "https://g.example/2", *all("application/atom+xml", googleAtom, "google")["B2"].URL)

	items = all("application/json", productFile, "schema.org")
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
