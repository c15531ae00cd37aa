package web_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/node/out/pay/sandbox"
	"stoa/protocol"
)

// TestBrowser_Order: a shop says on a phone how it takes orders; a buyer without an account and without script chooses on its page, orders,
// and pays; the shop confirms, hands over, and sends money back. The rest is TestOrder_… of package order.
func TestBrowser_Order(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t)
	h.Work()
	h.PutProfile([]byte(`{"handle":"rao","name":"Rao Tiffins","kind":"business"}`))
	_, signIn := h.OpenAccount("Rao", protocol.RoleOwner, "", "rao")
	bearer := "Bearer " + h.OwnerToken("rao")
	item := nodetest.As[protocol.OwnItem](h.Ask("PUT", "/api/owner/merchant/items/dal",
		`{"handle":"rao","name":"Toor dal","price":{"currency":"INR","amount":"120"}}`, "Authorization", bearer))
	owner, b := nodetest.OpenBrowser(t, h.Base), nodetest.OpenBrowser(t, h.Base)
	owner.Screen(390, 844)
	b.Screen(390, 844)
	owner.Load(chromedp.Navigate(signIn))
	require.Equal(t, 200, owner.Send("form:has([name=ticket])"))
	require.Equal(t, 200, b.Open("/@rao"))
	require.NotContains(t, b.Text("main"), "Order what is chosen", "it takes no orders yet")

	const terms = "/account/orders/settings"
	require.Equal(t, 200, owner.Open(terms))
	require.Equal(t, 422, owner.Send("#put_till-rao", "open", "true", "delivery", "true", "area", "Bengaluru"))
	require.NotEmpty(t, owner.Text("#n-put_till-rao-area"))
	require.Equal(t, 200, owner.Send("#put_till-rao", "area", "5600 56", "deliveryPrice", "40", "pickup", "true", "note", "Within two days."), owner.Text("main"))
	require.Equal(t, "How you take orders was saved.", owner.Text(".done"))
	require.Contains(t, owner.Text("main"), "You take no orders now.", "nobody can pay yet")
	require.Equal(t, 200, owner.Send("#put_payment_account-rao", "provider", "upi", "vpa", "rao@okbank"), owner.Text("main"))
	require.Equal(t, 200, owner.Send("#put_stock-rao", "variant", item.VariantIDs[0], "pieces", "4"), owner.Text("main"))
	owner.Picture("order-terms")

	require.Equal(t, 200, b.Open("/@rao"))
	nodetest.Look[bool](b, `document.querySelector("[form=basket]").value = "2", true`)
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS("#basket button"))))
	require.Contains(t, b.Text("main"), "₹240")
	require.Equal(t, 200, b.Open("/buy/"+item.VariantIDs[0]+":2"))
	require.Contains(t, nodetest.Look[string](b, "location.pathname"), "/order/new")
	require.Equal(t, 422, b.Send("#order", "name", "Meera", "mail", "meera@example.org", "way", "delivery", "street", "4 Gandhi Bazaar", "pin", "110001"))
	require.Contains(t, b.Text("main"), "does not deliver there")
	b.Picture("order-new")
	b.Fill("#order", "pin", "560004")
	sent := nodetest.Look[string](b, `new URLSearchParams(new FormData(document.querySelector("#order"))).toString()`)
	send := `fetch("/order/new", {method: "POST", body: new URLSearchParams(` + nodetest.Quoted(sent) + `)}).then(r => new URL(r.url).pathname)`
	page := nodetest.Look[string](b, send)
	require.Equal(t, page, nodetest.Look[string](b, send), "a form that is sent again, as when its answer was lost, leads to the same order")
	require.Equal(t, 200, b.Open(page))
	require.Contains(t, b.Text(".amount"), "₹280")
	b.Picture("order")
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS("a.button"))))
	require.Contains(t, b.Text("h1"), "Pay for an order")
	require.Contains(t, nodetest.Look[string](b, `document.querySelector("a[href^='upi:']").href`), "am=280.00")
	require.Equal(t, 200, b.Send("#claim", "utr", "431298765012"), b.Text("main"))

	do := func(step string, fields ...string) {
		t.Helper()
		require.Equal(t, 200, owner.Send(`form:has([name=step][value=`+step+`])`, fields...), owner.Text("main"))
		require.Equal(t, "The order was updated. The buyer is told.", owner.Text(".done"))
	}
	require.Equal(t, 200, owner.Open("/account"))
	require.Contains(t, owner.Text("main"), "1 order to go on with")
	require.Equal(t, 200, owner.Open("/account/orders"))
	require.Contains(t, owner.Text("main"), "431298765012")
	owner.Picture("orders")
	do("confirm")
	do("sent")
	do("delivered")
	do("refund", "amount", "40", "note", "It came late.")
	require.Equal(t, 200, owner.Send(`form:has([name=reference])`, "reference", "431298765777"), owner.Text("main"))
	require.Equal(t, 200, b.Open(page))
	text := b.Text("main")
	// The payment that she reported is known as confirmed by buyer and shop once her mailbox is, by the link of a letter.
	require.Contains(t, text, "Open the link in our letter about this order")
	require.Equal(t, 200, b.Open(page+"?mail=AAAA"))
	require.Equal(t, 410, b.Send("#mailbox-confirm"), "no letter had this link")
	require.Equal(t, 200, b.Open(page))
	for _, want := range []string{"Paid, and handed over.", "sent", "It came late.", "₹40 back", "The receipt"} {
		require.Contains(t, text, want)
	}
	require.Equal(t, 404, b.Open("/order/stoa_read_nonsense"))

	// A second one is canceled by its buyer; the third pays by the sandbox.
	again := func(mail string) string {
		require.Equal(t, 200, b.Open("/buy/"+item.VariantIDs[0]))
		require.Equal(t, 200, b.Send("#order", "name", "Meera", "mail", mail, "way", "pickup"), b.Text("main"))
		return nodetest.Look[string](b, "location.pathname")
	}
	again("m2@example.org")
	require.Equal(t, 200, b.Send("form:has([name=do][value=cancel_order])"), b.Text("main"))
	require.Contains(t, b.Text("main"), "Canceled.")
	require.Equal(t, 200, owner.Open(terms))
	require.Equal(t, 200, owner.Send("form:has([name=do][value=delete_payment_account])"), owner.Text("main"))
	require.Equal(t, 200, owner.Send("#put_payment_account-rao", "provider", "sandbox"), owner.Text("main"))
	third := again("m3@example.org")
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS("a.button"))))
	require.Contains(t, b.Text("main"), "TEST: no money moves")
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`[name=button][value="`+string(sandbox.Pay)+`"]`))))
	require.Eventually(t, func() bool {
		b.Open(third)
		return strings.Contains(b.Text("main"), "Paid. The shop has been told.")
	}, time.Minute, 50*time.Millisecond)
	for _, path := range []string{page, third} {
		a := h.Ask("GET", path, "", "Accept", nodetest.Accept)
		require.Equal(t, "no-referrer", a.Header().Get("Referrer-Policy"), path)
		require.Contains(t, a.Header().Get("X-Robots-Tag"), "noindex", path)
	}

	// Who bought is in no file of the node, and at no address that others read.
	read := func(text string) {
		t.Helper()
		for _, marker := range []string{"Gandhi Bazaar", "meera@example.org", "Meera"} {
			require.NotContains(t, text, marker)
		}
	}
	stored := ""
	require.NoError(t, filepath.WalkDir(h.Config.Data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		read(string(raw))
		stored += string(raw)
		return err
	}))
	require.Contains(t, stored, "Toor dal", "they were looked for where orders are")
	for _, path := range []string{"/metrics", "/api/public/feed", "/api/public/agents/rao", "/api/public/items?q=dal", "/ap/agents/rao", "/ap/agents/rao/outbox"} {
		read(h.Ask("GET", path, "").Body.String())
	}
}

// TestBrowser_Review: who paid reviews on the page of the order, without script. By the sandbox the review is shown as TEST and never
// counted; by a payment provider it counts, is changed, answered, and withdrawn.
func TestBrowser_Review(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t)
	api := h.Razorpay()
	h.Work()
	h.PutProfile([]byte(`{"handle":"rao","name":"Rao Tiffins","kind":"business"}`))
	_, signIn := h.OpenAccount("Rao", protocol.RoleOwner, "", "rao")
	bearer := "Bearer " + h.OwnerToken("rao")
	item := nodetest.As[protocol.OwnItem](h.Ask("PUT", "/api/owner/merchant/items/dal",
		`{"handle":"rao","name":"Toor dal","price":{"currency":"INR","amount":"120"}}`, "Authorization", bearer))
	h.Ask("PUT", "/api/owner/till", `{"handle":"rao","open":true,"pickup":true}`, "Authorization", bearer).Is(200)
	h.Ask("PUT", "/api/owner/payment-account", `{"handle":"rao","provider":"sandbox"}`, "Authorization", bearer).Is(200)
	owner, b := nodetest.OpenBrowser(t, h.Base), nodetest.OpenBrowser(t, h.Base)
	b.Screen(390, 844)
	owner.Load(chromedp.Navigate(signIn))
	require.Equal(t, 200, owner.Send("form:has([name=ticket])"))
	order := func(mail string) (page string) {
		t.Helper()
		require.Equal(t, 200, b.Open("/buy/"+item.VariantIDs[0]))
		require.Equal(t, 200, b.Send("#order", "name", "Meera", "mail", mail), b.Text("main"))
		return nodetest.Look[string](b, "location.pathname")
	}
	paid := func(page string) {
		t.Helper()
		require.Eventually(t, func() bool {
			b.Open(page)
			return strings.Contains(b.Text("main"), "Paid. The shop has been told.")
		}, time.Minute, 50*time.Millisecond)
	}
	reputed := func() *protocol.Reputation {
		return nodetest.As[protocol.Profile](h.Ask("GET", "/api/public/agents/rao", "")).Reputation
	}

	test := order("meera@example.org")
	require.NotContains(t, b.Text("main"), "Your review", "it is not paid")
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS("a.button"))))
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`[name=button][value="`+string(sandbox.Pay)+`"]`))))
	paid(test)
	require.Equal(t, 200, b.Send("#review_order", "stars", "5", "text", "Hot and <b>on</b> time."), b.Text("main"))
	require.Contains(t, b.Text("main"), "TEST: no money moved for its order.")
	require.Equal(t, 200, b.Open("/@rao"))
	require.Nil(t, reputed())
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`a[href="/@rao/reviews"]`))))
	require.NotContains(t, b.Text("main"), "Hot and")
	require.Equal(t, 200, b.Open("/@rao/reviews?uncounted=true"))
	for _, text := range []string{"Hot and <b>on</b> time.", "TEST", "does not count", "here, on the page of the order"} {
		require.Contains(t, b.Text("main"), text)
	}

	pays := h.PaidByRazorpay(api, "rao", bearer)
	real := order("meera@example.org")
	waiting := nodetest.As[protocol.Page[protocol.ShopOrder]](h.Ask("GET", "/api/owner/orders?handle=rao", "", "Authorization", bearer)).Items[0]
	pays(waiting.ID, 120_00)
	paid(real)
	require.Equal(t, 422, b.Send("#review_order", "text", "Hot and on time."), b.Text("main"))
	require.Equal(t, 200, b.Send("#review_order", "stars", "4"), b.Text("main"))
	b.Picture("order-review")
	require.Contains(t, b.Text("main"), "From a paid order: the payment provider reported its payment to the node.")
	require.Equal(t, []protocol.PaidReviews{{Known: protocol.KnownProvider, Reviews: 1, Average: 4}}, reputed().Paid)
	require.Equal(t, 200, owner.Open("/account/orders"))
	require.Equal(t, 200, owner.Send("#update_order-answer-"+waiting.ID, "note", "Thank you, Meera."), owner.Text("main"))
	require.Equal(t, 200, b.Open("/@rao/reviews"))
	for _, text := range []string{"1 from paid orders, as payment providers reported: 4.0 on average", "Hot and on time.", "Thank you, Meera.", "₹120", "counts"} {
		require.Contains(t, b.Text("main"), text)
	}
	b.Picture("reviews")
	require.NotContains(t, h.Ask("GET", "/@rao/reviews", "", "Accept", nodetest.Accept).Body.String(), "meera@example.org")
	require.Equal(t, 200, b.Open(real))
	require.Equal(t, 200, b.Send("form:has([name=withdraw])"), b.Text("main"))
	require.Zero(t, reputed())
}
