package web_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestBrowser_Shop runs a shop in a real browser on a phone: items, hours, a festival, what two tabs
// change at once. What a form writes is what put_merchant writes.
func TestBrowser_Shop(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	h := nodetest.New(t, func(c *node.Config) {
		c.BaseURL = "http://" + server.Listener.Addr().String()
		c.Chain = []string{"1=http://127.0.0.1:1,0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}
	})
	server.Config.Handler = h.Handler()
	server.Start()
	t.Cleanup(server.Close)
	h.Hosted("asha")
	h.PutProfile([]byte(`{"handle":"rao","name":"Rao Tiffins","kind":"business","timezone":"Asia/Kolkata"}`))
	_, link := h.OpenAccount("Rao", protocol.RoleOwner, "", "asha", "rao")
	bearer := "Bearer " + h.OwnerToken("rao")
	record := func() (r protocol.MerchantRecord) {
		t.Helper()
		h.Ask("GET", "/api/owner/merchant?handle=rao", "", "Authorization", bearer).Into(&r)
		return r
	}
	items := func() (all []protocol.ItemDraft) {
		t.Helper()
		page := nodetest.As[protocol.Page[protocol.OwnItem]](h.Ask("GET", "/api/owner/merchant/items?handle=rao", "", "Authorization", bearer))
		for _, i := range page.Items {
			all = append(all, i.Item)
		}
		return all
	}
	skus := func() (all []string) {
		t.Helper()
		for _, i := range items() {
			all = append(all, i.SKU)
		}
		return all
	}
	b := nodetest.OpenBrowser(t, h.Base)
	b.Screen(390, 844)
	b.Load(chromedp.Navigate(link))
	require.Equal(t, 200, b.Send("form:has([name=ticket])"))
	shoot(b, "index")
	press := func(selector string) {
		t.Helper()
		require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(selector))), b.Text("main"))
	}
	press(`.index a[href="/account/items?handle=rao"]`)
	require.Contains(t, b.Text("main"), "no item yet")

	// Items.
	press(`a[href*="new=1"]`)
	require.Equal(t, 422, b.Send("#item", "name", "मसाला डोसा", "amount", "forty", "tags", "Vegan, दक्षिण"))
	require.Equal(t, "मसाला डोसा", value(b, "#item-name"))
	require.Equal(t, "This is not an amount of rupees such as 1500 or 1500.50.", b.Text("#n-item-amount"))
	require.Contains(t, b.Text("#n-item-tags"), "“दक्षिण” is not a tag")
	require.Equal(t, 200, b.Send("#item", "amount", "₹ 1,50,000/-", "unit", "plate", "tags", "#Vegan"))
	require.Contains(t, b.Text(".done"), "saved")
	require.Equal(t, "1,50,000", value(b, "#quick-item-amount"))
	press(`a[href*="new=1"]`)
	require.Equal(t, 200, b.Send("#item", "name", "Filter Coffee", "amount", "25.50", "availability", "out_of_stock", "category", "Drinks"))
	got := items()
	require.Equal(t, []protocol.ItemDraft{
		{SKU: "item", Name: "मसाला डोसा",
			Price: &protocol.MoneyDraft{Currency: "INR", Amount: "150000.00"}, Unit: "plate", Tags: []string{"vegan"}, Availability: "in_stock"},
		{SKU: "filter-coffee", Name: "Filter Coffee",
			Price: &protocol.MoneyDraft{Currency: "INR", Amount: "25.50"}, Category: "Drinks", Availability: "out_of_stock"},
	}, got)
	press(`a[href*="item=item"]`)
	require.Equal(t, "1,50,000", value(b, "#item-amount"))
	shoot(b, "item")
	require.Equal(t, 200, b.Send("#item", "amount", "40"))
	require.Equal(t, protocol.Decimal("40.00"), items()[0].Price.Amount)
	require.Equal(t, 422, b.Send("#quick-filter-coffee", "amount", "thirty"))
	require.Equal(t, "This is not an amount of rupees such as 1500 or 1500.50.", b.Text("#n-quick-filter-coffee-amount"))
	require.Equal(t, 422, b.Send("#quick-filter-coffee", "amount", "1.500"))
	require.Equal(t, "1.500 can be read as two amounts: write 1500 or 1.50.", b.Text("#n-quick-filter-coffee-amount"))
	require.Equal(t, 200, b.Send("#quick-filter-coffee", "amount", "३० रुपये", "availability", "in_stock"))
	require.Equal(t, protocol.Decimal("30.00"), items()[1].Price.Amount)
	require.Equal(t, protocol.InStock, items()[1].Availability)
	shoot(b, "items")
	press(`form.move button`)
	require.Equal(t, []string{"filter-coffee", "item"}, skus())

	// Sizes and colours.
	press(`a[href*="item=filter-coffee"]`)
	require.NoError(t, chromedp.Do(b.Ctx, chromedp.Click(chromedp.CSS(".kinds > summary"))))
	b.Fill("#item", "option0", "Size", "v0-label0", "Small", "v1-label0", "Large", "v1-amount", "₹ 45", "v1-availability", "preorder")
	press(`#item button[name=more]`)
	require.Equal(t, "Large", value(b, "#item-v1-label0"), "nothing was lost")
	require.Equal(t, 422, b.Send("#item", "v12-label0", "Huge", "v12-amount", "much"))
	require.Equal(t, "This is not an amount of rupees such as 1500 or 1500.50.", b.Text("#n-item-v12-amount"))
	require.Equal(t, 200, b.Send("#item", "v12-amount", "60"), b.Text("main"))
	require.Contains(t, b.Text("#item-filter-coffee"), "₹30–₹60")
	coffee := items()[0]
	require.Equal(t, []protocol.ItemOption{{Name: "Size", Values: []string{"Small", "Large", "Huge"}}}, coffee.Options)
	require.Equal(t, []protocol.VariantDraft{
		{Options: []string{"Small"}}, {Options: []string{"Large"}, Price: &protocol.MoneyDraft{Currency: "INR", Amount: "45.00"}, Availability: "preorder"},
		{Options: []string{"Huge"}, Price: &protocol.MoneyDraft{Currency: "INR", Amount: "60.00"}},
	}, coffee.Variants)
	press(`a[href*="item=filter-coffee"]`)
	shoot(b, "kinds")
	press(`form.remove button`)
	require.Equal(t, []string{"item"}, skus())
	require.Contains(t, b.Text(".undo"), "Filter Coffee was removed")
	shoot(b, "undo")
	press(".undo button")
	require.Equal(t, []string{"filter-coffee", "item"}, skus(), "back where it was")
	require.Equal(t, coffee, items()[0])

	// Two tabs, and one item.
	second := b.NewTab()
	for _, x := range []*nodetest.Tab{b, second} {
		require.Equal(t, 200, x.Open("/account/items?handle=rao&item=item"))
	}
	require.Equal(t, 200, b.Send("#item", "amount", "41"))
	require.Equal(t, 412, second.Send("#item", "name", "Dosa"))
	require.Contains(t, second.Text("#item"), "Stored now: 41")
	require.Equal(t, 200, second.Send("#item", "amount", "42"))
	require.Equal(t, "Dosa", items()[1].Name)

	// A file: checked with faults, mended, checked, imported.
	upload := func(selector string) {
		t.Helper()
		nodetest.Look[bool](b, `document.querySelector("main").former = true`)
		require.NoError(t, chromedp.Do(b.Ctx, chromedp.Click(chromedp.CSS(selector))))
		shows(b, `!document.querySelector("main").former`)
	}
	file := filepath.Join(t.TempDir(), "items.csv")
	choose := func(field, path, content string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, chromedp.Do(b.Ctx, chromedp.SetUploadFiles(chromedp.CSS(field), []string{path})))
	}
	press(`a[href^="/account/items/import"]`)
	rows := "sku,name,price,availability\nitem,Dosa,43,\nidli,इडली,ten,\nvada,,12,maybe\n"
	choose("#import_items-file", file, rows)
	upload("#import_items button[formaction]")
	shoot(b, "import-faults")
	require.Contains(t, b.Text("#report"), "The file has 3 faults. Nothing was changed.")
	require.Equal(t, [][]string{{"3", "price", "This is not an amount such as 85.50."}, {"4", "availability",
		"This is not one of in_stock, out_of_stock, preorder, backorder, discontinued."}, {"4", "name", "Fill this in."}},
		nodetest.Look[[][]string](b, `[...document.querySelectorAll(".faults tbody tr")].map(r => [...r.cells].map(c => c.innerText))`))
	slowly := func(bytesPerSecond float64) {
		do(b, devCall(network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{UploadThroughput: bytesPerSecond, DownloadThroughput: -1}}}))
	}
	slowly(5000)
	choose("#import_items-file", file, rows+strings.Repeat(" ", 4<<20))
	do(b, chromedp.Click(chromedp.CSS("#import_items button[formaction]")))
	shows(b, `/ of 4.0 MB sent/.test(document.querySelector("[data-upload]").innerText)`)
	shoot(b, "upload")
	do(b, chromedp.Click(chromedp.CSS("[data-upload] button")))
	shows(b, `document.querySelector("[data-upload]").innerText == "Cancelled. Nothing was changed."`)
	slowly(-1)
	choose("#import_items-file", file, shopFile(t, "shopify.csv"))
	upload("#import_items button[formaction]")
	do(b, chromedp.Click(chromedp.CSS(".done summary")))
	shoot(b, "import-shopify")
	require.Contains(t, b.Text(".done details"), "variant_price")
	require.Contains(t, b.Text(".done details"), "left out")
	require.Contains(t, b.Text(".done .plain"), "not published, and left out")
	choose("#import_items-file", file, strings.NewReplacer("ten", "10", ",,12,maybe", ",Vada,12,").Replace(rows))
	upload("#import_items button[formaction]")
	shoot(b, "import-good")
	require.Contains(t, b.Text(".done"), "Nothing was changed yet")
	require.Contains(t, b.Text(".done dl"), "To add")
	require.Equal(t, []string{"filter-coffee", "item"}, skus())
	require.Equal(t, 1, nodetest.Look[int](b, `document.querySelector("#import_items-file").files.length`), "the file is still chosen")
	upload("#import_items .send button:not([formaction])")
	require.Contains(t, b.Text(".done"), "The items were imported.")
	require.Equal(t, []string{"filter-coffee", "item", "idli", "vada"}, skus())
	require.Equal(t, protocol.Decimal("43.00"), items()[1].Price.Amount)
	shoot(b, "imported")
	require.Equal(t, 200, b.Open("/account/items?handle=rao&item=vada"))
	press(`form.remove button`)
	press(".undo button")
	require.Equal(t, []string{"filter-coffee", "item", "idli", "vada"}, skus())
	require.Equal(t, 200, b.Open("/account/items?handle=rao&q=idli"))
	require.Equal(t, 200, b.Send("#quick-idli", "amount", "11"))
	require.Contains(t, nodetest.Look[string](b, `location.search`), "q=idli", "the list is as it was")
	require.Equal(t, "", b.Text("#item-vada"))

	// Hours, and a festival.
	require.Equal(t, 200, b.Open("/account/hours?handle=rao"))
	require.Equal(t, 422, b.Send("#hours", "hours-monday", "9-13, 16:00 to 21:00", "hours-sunday", "whenever"))
	require.Equal(t, "“whenever” is not hours such as 10:00–18:00.", b.Text("#n-hours-hours-sunday"))
	require.Equal(t, 200, b.Send("#hours", "hours-sunday", "closed"))
	require.Equal(t, []protocol.DayHours{
		{Day: "monday", Opens: "09:00", Closes: "13:00"}, {Day: "monday", Opens: "16:00", Closes: "21:00"},
	}, record().Record.Hours)
	require.Equal(t, 422, b.Send("#hours", "hours-every", "9-6"))
	require.Contains(t, b.Text("#n-hours-hours-every"), "“9-6” can be read in two ways")
	require.Equal(t, 200, b.Send("#hours", "hours-every", "9am-9pm"))
	require.Len(t, record().Record.Hours, 7)
	require.Equal(t, "09:00–21:00", value(b, "#hours-hours-sunday"))
	require.Empty(t, value(b, "#hours-hours-every"))
	require.Equal(t, 200, b.Send("#hours", "hours-monday", "9:30 am to 1 pm, 15–19", "hours-sunday", "बंद", "copy", "monday-saturday"))
	require.Len(t, record().Record.Hours, 12)
	require.Equal(t, protocol.DayHours{Day: "saturday", Opens: "15:00", Closes: "19:00"}, record().Record.Hours[11])
	require.Equal(t, 200, b.Send("#close", "from", "2026-11-07", "to", "2026-11-10", "why", "Diwali"))
	diwali := []protocol.ExceptionHours{{Title: "Diwali", ValidFrom: "2026-11-07", ValidThrough: "2026-11-10"}}
	require.Equal(t, diwali, record().Record.ExceptionHours)
	require.Equal(t, 422, b.Send("#close", "from", "2026-12-25", "to", "2026-12-24", "why", "Christmas"))
	require.Contains(t, b.Text("#n-close-to"), "comes before the first")
	require.Equal(t, "Christmas", value(b, "#close-why"))
	shoot(b, "hours")
	press(`form:has([name=part][value=reopen]) button`)
	require.Empty(t, record().Record.ExceptionHours)
	press(".undo button")
	require.Equal(t, diwali, record().Record.ExceptionHours)

	// A receipt for an order: issued, listed, revoked.
	require.Equal(t, 200, b.Open("/account/orders?handle=rao"))
	require.Contains(t, b.Text("main"), "no receipts here yet")
	require.Equal(t, 422, b.Send("#issue_order_receipt-rao", "order", "R-1", "amount", "nothing", "paidAt", time.Now().UTC().Format(time.DateOnly)))
	require.Equal(t, "This is not an amount of rupees such as 1500 or 1500.50.", b.Text("#n-issue_order_receipt-rao-amount"))
	require.Equal(t, 200, b.Send("#issue_order_receipt-rao", "amount", "₹ 1,180/-", "client", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"))
	require.Contains(t, b.Text("main"), "₹1,180")
	shoot(b, "receipts")
	press(`form:has([name=do][value=revoke_order_receipt]) button`)
	require.Contains(t, b.Text("main"), "revoked")

	// The inbox: what is new, an answer, a block and its undo.
	nodetest.As[protocol.ContactReceipt](h.Ask("POST", "/api/public/agents/rao/contact",
		`{"message":"Do you <b>deliver</b>?\nTo Indiranagar.","name":"Kim"}`, "Proof-Of-Work", h.Proof("contact")))
	require.Equal(t, 200, b.Open("/account"))
	require.Equal(t, "1 new", b.Text(`.index a[href="/account/threads?handle=rao"] .fresh`))
	press(`.index a[href="/account/threads?handle=rao"]`)
	require.Equal(t, "Do you <b>deliver</b>?", b.Text(".card.new h2"))
	shoot(b, "inbox")
	press(`.card.new h2 a`)
	require.Equal(t, 200, b.Send("#answer", "message", "Yes, until 9 pm."))
	require.Equal(t, 200, b.Send("#block", "note", "Too many questions"))
	blocked := nodetest.As[protocol.Page[protocol.BlockedWriter]](h.Ask("GET", "/api/owner/blocked-writers?handle=rao", "", "Authorization", bearer))
	require.Equal(t, "Too many questions", blocked.Items[0].Note)
	press(".undo button")
	require.Contains(t, b.Text(".done"), "may write again")
	h.Ask("GET", "/api/owner/blocked-writers?handle=rao", "", "Authorization", bearer).Into(&blocked)
	require.Empty(t, blocked.Items)
	require.Equal(t, 200, b.Open("/account/threads?handle=rao"))
	require.Equal(t, "Do you <b>deliver</b>?", b.Text(".card h2"))
	require.Equal(t, "Yes, until 9 pm.", b.Text(".card .said p"))
	require.Empty(t, b.Text(".fresh"))

	// A preview saves nothing and keeps what was typed.
	require.Equal(t, 200, b.Open("/account/profile?handle=rao"))
	nodetest.Look[string](b, `document.querySelector("#put_own_profile-rao-headline").value = "Just a look"`)
	press("button[name=preview]")
	require.Contains(t, b.Text(".card h3 + .headline"), "Just a look")
	require.Equal(t, "Just a look", value(b, "#put_own_profile-rao-headline"))
	require.Empty(t, nodetest.As[protocol.OwnProfile](h.Ask("GET", "/api/owner/profile?handle=rao", "", "Authorization", bearer)).Headline)
	shoot(b, "preview")

	// A key, and the way to an identity on the chain.
	require.Equal(t, 200, b.Open("/account/keys?handle=rao"))
	press(`form:has([value=make_key]) button`)
	keyid := b.Text(".rows code")
	press(`.steps a[href="/account/keys/register?handle=rao"]`)
	require.Contains(t, b.Text("main"), "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432")
	document := h.Base + "/.well-known/service-agents/" + keyid + "/registration.json"
	require.Contains(t, b.Text("main pre"), hex.EncodeToString([]byte(document)), "the call names the document")
	shoot(b, "keys")

	// Everything in one file, and back: checked first, then imported.
	require.Equal(t, 200, b.Open("/account/data"))
	archive := nodetest.Look[string](b, `fetch("/account", {method: "POST", body: new URLSearchParams(new FormData(document.querySelector("#export_archive")))})
		.then(r => r.headers.get("content-disposition").startsWith("attachment") ? r.bytes() : new Uint8Array()).then(x => x.toBase64())`)
	raw := must.Get(base64.StdEncoding.DecodeString(archive))(t)
	file = filepath.Join(t.TempDir(), "rao.tgz")
	choose("#import_archive-archive", file, string(raw))
	upload(`#import_archive button[formaction]`)
	require.Contains(t, b.Text("#report"), "Nothing was changed yet")
	shoot(b, "data")
	upload(`#import_archive .send button:not([formaction])`)
	require.Contains(t, b.Text("#report"), "The profile is here: @")
	nodetest.Look[string](b, `document.querySelector("#import_archive-as").value = "rao2"`)
	choose("#import_archive-archive", file, "not an archive")
	upload(`#import_archive button[formaction]`)
	require.NotEmpty(t, b.Text(".alert"))
	require.Equal(t, "rao2", value(b, "#import_archive-as"))

	// Two tabs.
	other := b.NewTab()
	other.Screen(1280, 900)
	for _, x := range []*nodetest.Tab{b, other} {
		require.Equal(t, 200, x.Open("/account/shop?handle=rao"))
	}
	require.Equal(t, 200, b.Send("#shop", "category", "Restaurant", "city", "Bengaluru", "region", "in-ka", "country", "in", "geo", "12.9716, 77.5946",
		"phone", "(080) 5550-1234"))
	require.Equal(t, "+918055501234", record().Record.Phone)
	require.Equal(t, &protocol.Geo{Latitude: 12.9716, Longitude: 77.5946}, record().Record.Geo)
	require.Equal(t, 412, other.Send("#shop", "category", "Tiffin room", "phone", "+91 80 5550 9999"))
	require.Equal(t, "Tiffin room", value(other, "#shop-category"))
	require.Contains(t, other.Text("#shop"), "Stored now: Restaurant")
	require.Contains(t, other.Text("#shop"), "Stored now: +91 80555 01234")
	shoot(other, "conflict")
	require.Equal(t, "Restaurant", record().Record.Category, "nothing was lost")
	require.Equal(t, 200, other.Send("#shop", "city", "Mysuru"), other.Text("main"))
	require.Equal(t, "Tiffin room", record().Record.Category, "the owner chose")
	require.Equal(t, "Mysuru", record().Record.City)
	require.Equal(t, 422, other.Send("#shop", "region", "Nowhere"), "no region")
	require.Contains(t, other.Text("#shop"), "This is not a state such as Karnataka.")
	require.Equal(t, 200, other.Send("#shop", "region", " karnataka", "country", "India"), other.Text("main"))
	require.Equal(t, "IN-KA", record().Record.Address.Region)
	require.Equal(t, "IN", record().Record.Address.Country)
	require.Equal(t, "Karnataka", value(other, "#shop-region"), "it shows the name")
	for _, x := range []*nodetest.Tab{b, other} {
		require.Equal(t, 200, x.Open("/account/profile?handle=rao"))
	}
	require.Equal(t, 200, b.Send("#put_own_profile-rao", "headline", "Tiffins since 1962"))
	require.Equal(t, 412, other.Send("#put_own_profile-rao", "headline", "Best dosa", "anonymous", ""))
	require.Contains(t, other.Text("main form"), "Stored now: Tiffins since 1962")
	require.Equal(t, 200, other.Load(chromedp.Click(chromedp.CSS(`.alert a`))))
	require.Equal(t, "Tiffins since 1962", value(other, "#put_own_profile-rao-headline"), "dropped what was typed")
}

// shoot keeps a picture of the page in the directory that STOA_TEST_PICTURES names.
func shoot(b *nodetest.Tab, name string) {
	b.T.Helper()
	if dir := os.Getenv("STOA_TEST_PICTURES"); dir != "" {
		require.NoError(b.T, os.WriteFile(dir+"/"+name+".png", must.Get(chromedp.Run(b.Ctx, chromedp.FullScreenshot(100)))(b.T), 0o644))
	}
}

// TestOwner_IfMatch: a write with the ETag of an older answer is refused, and changes nothing.
func TestOwner_IfMatch(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	bearer := "Bearer " + h.OwnerToken("asha")
	read := h.Ask("GET", "/api/owner/profile", "", "Authorization", bearer)
	tag := read.Header().Get("ETag")
	require.NotEmpty(t, tag)
	require.Equal(t, "no-store", read.Header().Get("Cache-Control"))
	put := func(name, tag string) nodetest.Answer {
		return h.Ask("PUT", "/api/owner/profile", `{"handle":"asha","name":"`+name+`","kind":"person"}`, "Authorization", bearer, "Content-Type", "application/json",
			"If-Match", tag)
	}
	require.Equal(t, 200, put("One", tag).Code)
	refused := put("Two", tag)
	require.Equal(t, 412, refused.Code)
	require.Contains(t, refused.Body.String(), "precondition-failed")
	now := h.Ask("GET", "/api/owner/profile", "", "Authorization", bearer)
	require.Contains(t, now.Body.String(), `"One"`)
	require.Equal(t, 200, put("Two", now.Header().Get("ETag")).Code)
	require.Equal(t, 200, put("Three", "*").Code)
}
