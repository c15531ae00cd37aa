package web_test

import (
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestImportItems imports CSV and JSON Lines as the owner does, over HTTP.
func TestImportItems(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	token := h.Business("shop", "")
	send := func(query, media, file string) nodetest.Answer {
		return h.Ask("POST", "/api/owner/merchant/items/import"+query, file, "Authorization", "Bearer "+token, "Content-Type", media)
	}
	items := func(query string) (all []protocol.CatalogEntry) {
		var page protocol.Page[protocol.CatalogEntry]
		a := h.Ask("GET", "/api/public/items?"+query, "").Is(200)
		a.Into(&page)
		return page.Items
	}
	var r protocol.ItemsImportReport
	a := send("?dryRun=true", "text/csv", nodetest.CatalogCSV)
	require.Equal(t, 200, a.Code, "%s", a.Body)
	a.Into(&r)
	require.Equal(t, protocol.ItemsImportReport{DryRun: true, Format: "csv", Items: 3, Added: 3, Faults: []protocol.LineFault{}}, r)
	require.Empty(t, items("handle=shop"))
	send("", "text/csv; charset=utf-8", nodetest.CatalogCSV).Into(&r)
	require.Equal(t, [3]int{3, 3, 0}, [3]int{r.Items, r.Added, r.FaultCount})
	got := items("handle=shop")
	require.Len(t, got, 3)
	require.Equal(t, "With sambar, and\nchutney", got[0].Description)
	require.Equal(t, []string{"vegan", "hot"}, got[0].Tags)
	require.Equal(t, "1250.50", got[1].Price.Amount)
	require.Equal(t, "1400.00", got[1].ListPrice.Amount)
	require.Equal(t, "166.73", got[1].UnitPrice.Amount)
	require.Equal(t, []string{"Grocery", "Hair care"}, got[1].Categories)
	require.Len(t, got[2].Variants, 2)
	require.Equal(t, []string{"S", "M"}, got[2].Options[0].Values)
	require.Equal(t, []string{"kurta-s", "kurta"}, []string{got[2].Variants[0].SKU, got[2].Variants[1].SKU})
	require.Equal(t, protocol.OutOfStock, got[2].Variants[1].Availability)
	require.Equal(t, "1200.00", got[2].PriceRange.Min.Amount)
	require.Len(t, h.Told("listing"), 3)
	require.Len(t, items("q=kurt&minPrice=1250&category=कपड़े"), 1)

	// The export is what was imported, and its import changes nothing.
	out := h.Ask("GET", "/api/owner/merchant/items.csv?handle=shop", "", "Authorization", "Bearer "+token).Is(200)
	require.Equal(t, "text/csv; charset=utf-8", out.Header().Get("Content-Type"))
	require.Contains(t, out.Header().Get("Content-Disposition"), "shop-items.csv")
	require.Contains(t, out.Body.String(), "\r\nkurta,Kurta,,1200.00,")
	send("", "text/csv", out.Body.String()).Into(&r)
	require.Equal(t, [5]int{3, 0, 0, 3, 0}, [5]int{r.Items, r.Added, r.Changed, r.Unchanged, r.Removed})

	// Every fault, by line; nothing of it is imported.
	bad := "sku;name;price;option1_name;option1_value\na;A;ten;;\n;B;1;;\na;C;2;;\nd;D;1;Size;S\nd;;1;;S\n\"e\" x;E;;;\nf;F;1;;;;;\n"
	send("?dryRun=true", "text/csv", bad).Into(&r)
	require.Equal(t, []string{"2 /price/amount", "3 /sku", "4 /sku", "5 /variants/1/options", "7 ", "8 "}, faultLines(r.Faults))
	require.Equal(t, 6, r.FaultCount)
	a = send("", "text/csv", bad)
	require.Equal(t, 422, a.Code)
	require.Contains(t, a.Body.String(), "/lines/2/price/amount")
	require.Contains(t, a.Body.String(), "Nothing was imported")
	require.Len(t, items("handle=shop"), 3)
	bad = `{"sku":"a","name":"A","colour":"x"}` + "\n\n[1]\n" + `{"sku":"b"}` + "\n" + strings.Repeat("x", 70_000) + "\n" + `{"sku":"c","name":"C","sku":"d"}`
	send("?dryRun=true", "application/jsonl", bad).Into(&r)
	require.Equal(t, []string{"1 /colour", "3 ", "4 /name", "5 ", "6 "}, faultLines(r.Faults))
	require.Equal(t, "jsonl", r.Format)
	for file, says := range map[string]string{"": "empty", "a,b\n1,2\n": "no column", "\xff\xfea\x00": "UTF-16", "sku,name\n": "no item"} {
		a := send("", "text/csv", file)
		require.Equal(t, 400, a.Code, "%q %s", file, a.Body)
		require.Contains(t, a.Body.String(), says)
	}
	manual := must.Get(os.ReadFile(nodetest.Source("docs/OWNERS.md")))(t)
	_, example, _ := strings.Cut(string(manual), "```csv\n")
	example, _, _ = strings.Cut(example, "```")
	sample := h.Ask("GET", "/account/items/sample.csv", "").Body.String()
	for name, x := range map[string]struct {
		file   string
		items  int
		faults []string
	}{
		"the manual's example":               {example, 3, nil},
		"the page's sample":                  {sample, 3, nil},
		"byte order mark, CRLF, empty lines": {"\ufeffsku,name\r\n\r\na,A\r\n\r\n\r\nb,B", 2, nil},
		"quoted newlines":                    {"sku,name,description\na,A,\"one\r\n,\"\"two\"\"\"\nb,,\n", 2, []string{"4 /name"}},
		"an open quote":                      {"sku,name\na,A\nb,\"B\n" + strings.Repeat("c,C\n", 1000), 1, []string{"3 "}},
		"another encoding":                   {"sku,name\na,Caf\xe9\nb,B\n", 1, []string{"2 "}},
		"a formula as text":                  {"sku,name\na,'=1+2\n", 1, nil},
		"JSON beside columns":                {"sku,name,price,json\na,A,5,\"{\"\"sku\"\":\"\"a\"\",\"\"name\"\":\"\"A\"\"}\"\n", 1, []string{"2 /price"}},
		"one item too many":                  {"sku,name\n" + numbered(20_001), 20_000, []string{"20002 "}},
	} {
		a := send("?dryRun=true", "text/csv", x.file)
		require.Equal(t, 200, a.Code, "%s: %s", name, a.Body)
		a.Into(&r)
		require.Equal(t, x.items, r.Items, name)
		require.Equal(t, x.faults, faultLines(r.Faults), name)
	}
	require.Equal(t, http.StatusUnsupportedMediaType, send("", "application/zip", "PK").Code)
	require.Equal(t, 401, h.Ask("POST", "/api/owner/merchant/items/import", nodetest.CatalogCSV, "Content-Type", "text/csv").Code)

	// A large one, as JSON Lines; then one item is left out, one changes and the price falls.
	var file strings.Builder
	for n := range 3000 {
		fmt.Fprintf(&file, `{"sku":"s%d","name":"Thing %d","description":"%s","price":{"currency":"INR","amount":%d}}`+"\n",
			n, n, strings.Repeat("words ", 20), 100+n)
	}
	send("", "application/x-ndjson", file.String()).Into(&r)
	require.Equal(t, [4]int{3000, 0, 0, 3}, [4]int{r.Added, r.Changed, r.Unchanged, r.Removed})
	require.Len(t, h.Told("listing&limit=100"), 23, "a catalog does not fill the feed")
	send("", "application/jsonl", strings.Replace(file.String()[strings.Index(file.String(), "\n"):], `"amount":1000`, `"amount":900`, 1)).Into(&r)
	require.Equal(t, [4]int{0, 1, 2998, 1}, [4]int{r.Added, r.Changed, r.Unchanged, r.Removed})
	require.Equal(t, "listing Thing 900", h.Told("listing")[0])
	m := nodetest.As[protocol.Merchant](h.Ask("GET", "/api/public/merchants/shop?limit=100", ""))
	require.Len(t, m.Items, 100)
	require.Equal(t, 2999, m.ItemCount)
	require.Equal(t, "s101", items("handle=shop&limit=1&after=" + *m.ItemsNext)[0].SKU)

	// The record does not delete it, and a batch may be large.
	require.Equal(t, 409, h.Ask("PUT", "/api/owner/merchant", `{"items":[{"sku":"x","name":"X"}]}`, "Authorization", "Bearer "+token).Code)
	require.Equal(t, 200, h.Ask("PUT", "/api/owner/merchant", `{"city":"Pune"}`, "Authorization", "Bearer "+token).Code)
	var batch []string
	for n := range 1000 {
		batch = append(batch, fmt.Sprintf(`{"sku":"s%d","name":"Changed","description":"%s"}`, n+1, strings.Repeat("x", 900)))
	}
	body := `{"items":[` + strings.Join(batch, ",") + `],"remove":["s2999","gone"]}`
	a = h.Ask("POST", "/api/owner/merchant/items/batch", body, "Authorization", "Bearer "+token)
	require.Equal(t, 200, a.Code, "%s", a.Body)
	require.Equal(t, protocol.ItemsReport{Changed: 1000, Removed: 1, ItemCount: 2998}, nodetest.As[protocol.ItemsReport](a))
	require.Equal(t, 413, h.Ask("POST", "/api/owner/merchant/items/batch", body).Code, "without credentials")
	require.Equal(t, 413, h.Ask("PUT", "/api/owner/merchant", `{"city":"`+strings.Repeat("x", 70_000)+`"}`, "Authorization", "Bearer "+token).Code)

	// One item, with the version that was read.
	one := h.Ask("GET", "/api/owner/merchant/items/s1", "", "Authorization", "Bearer "+token)
	tag := one.Header().Get("ETag")
	put := func(tag string) int {
		return h.Ask("PUT", "/api/owner/merchant/items/s1", `{"name":"Again"}`, "Authorization", "Bearer "+token, "If-Match", tag).Code
	}
	require.Equal(t, 200, put(tag))
	require.Equal(t, 412, put(tag))
	require.Equal(t, 204, h.Ask("DELETE", "/api/owner/merchant/items/s1", "", "Authorization", "Bearer "+token).Code)
	require.Equal(t, 404, h.Ask("DELETE", "/api/owner/merchant/items/s1", "", "Authorization", "Bearer "+token).Code)
}

func numbered(n int) string {
	var file strings.Builder
	for i := range n {
		fmt.Fprintf(&file, "s%d,N\n", i)
	}
	return file.String()
}

func faultLines(faults []protocol.LineFault) (all []string) {
	for _, f := range faults {
		all = append(all, fmt.Sprintf("%d %s", f.Line, f.Pointer))
	}
	return all
}

// TestImportItems_Page: the page works without script, in Hindi, and refuses what is no file of the owner's shop.
func TestImportItems_Page(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Business("shop", "")
	h.Business("other", "")
	_, link := h.OpenAccount("Rao", protocol.RoleOwner, "", "shop")
	cookie := h.SignIn(link)
	send := func(query, handle, mode, file string, headers ...string) nodetest.Answer {
		var body strings.Builder
		form := multipart.NewWriter(&body)
		require.NoError(t, form.WriteField("handle", handle))
		require.NoError(t, form.WriteField("mode", mode))
		part := must.Get(form.CreateFormFile("file", "items.csv"))(t)
		must.Get(io.WriteString(part, file))(t)
		require.NoError(t, form.Close())
		return h.Ask("POST", "/account/items/import?handle="+handle+query, body.String(), append([]string{"Content-Type", form.FormDataContentType(),
			"Accept", nodetest.Accept, "Cookie", "stoa_session=" + cookie, "Origin", h.Base}, headers...)...)
	}
	page := func(a nodetest.Answer) string {
		return nodetest.TextOf(nodetest.ParsePage(t, "/account/items/import", a.Body.String()).Find("main", "id", "main"))
	}
	const good = "sku,name,price,list_price\na,A,100,150\nb,B,1,\n"
	for name, x := range map[string]struct {
		query, handle, file string
		code                int
		says                string
	}{
		"checked":           {"&check=1", "shop", good, 200, "Nothing was changed yet"},
		"faults":            {"&check=1", "shop", "sku,name\nx y,A\n", 200, "This is not a number or name of your own"},
		"faults, unchecked": {"", "shop", "sku,name\nx y,A\n", 200, "The file has 1 fault. Nothing was changed."},
		"no catalog":        {"&check=1", "shop", "a,b\n", 400, `There is no column "a"`},
		"no file":           {"&check=1", "shop", "", 422, "Choose a file."},
		"another's shop":    {"", "other", good, 403, ""},
		"too large":         {"", "shop", strings.Repeat(" ", protocol.MaxItemsUpload+70_000), 413, "64 MB"},
	} {
		a := send(x.query, x.handle, "merge", x.file)
		require.Equal(t, x.code, a.Code, "%s: %s", name, page(a))
		require.Contains(t, page(a), x.says, name)
	}
	require.Equal(t, 403, send("", "shop", "merge", good, "Sec-Fetch-Site", "cross-site").Code)
	require.Contains(t, page(send("&check=1", "shop", "merge", "sku,name,price\na,A,ten\n", "Accept-Language", "hi")), "यह 85.50 जैसी रकम नहीं है")
	require.Empty(t, items(h, "shop"), "none of these changed anything")
	require.Contains(t, page(send("", "shop", "merge", good)), "The items were imported.")
	require.Contains(t, page(send("", "shop", "replace", "sku,name\nb,B\n")), "Removed1")
	require.Len(t, items(h, "shop"), 1)

	// What a quick change may not do is said, though the list does not show it.
	send("", "shop", "replace", good)
	shown := nodetest.ParsePage(t, "/account/items", h.Ask("GET", "/account/items", "", "Accept", nodetest.Accept, "Cookie", "stoa_session="+cookie).Body.String())
	form := formValues(shown, "quick-a")
	form.Set("amount", "200")
	a := h.SendForm("/account", form, "Cookie", "stoa_session="+cookie).Is(422)
	require.Contains(t, nodetest.ParsePage(t, "/account", a.Body.String()).Alerts(), "Must be more than the price")
	file := h.Ask("GET", "/account/items.csv?handle=shop", "", "Cookie", "stoa_session="+cookie)
	require.Contains(t, file.Body.String(), "\r\na,A,,100.00,150.00,")
}
