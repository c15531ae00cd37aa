package web_test

import (
	"bytes"
	"context"
	"image"
	_ "image/png" // a screenshot
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/node/out/pay/sandbox"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// bidLink returns the address that a notice to the owner has.
func bidLink(h *nodetest.House, handle, bid string) (address string) {
	h.T.Helper()
	require.NoError(h.T, h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		to := storage.NotifySettings{Handle: handle, Webhook: "https://agent.example/notices", Links: true}
		if err := tx.Profiles().PutNotifySettings(ctx, to); err != nil {
			return err
		}
		link, err := h.Attention.LinkFor(ctx, tx, bid, handle, to.Webhook)
		if err == nil {
			address = link.URL
		}
		return err
	}))
	return address
}

// TestAttentionPages: the list of boards, and a board with its form, which checks a bid without a
// proof of work and keeps what was typed.
func TestAttentionPages(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	require.Contains(t, open(h, "/attention", 200).Text(), "Nobody has opened an attention board here yet.")
	open(h, "/@asha/board", 404)
	h.OpenBoard("asha", `,"rules":"Yarn <b>only</b>. https://rules.example/a","floor":"1500","slots":2,
		"categories":[{"name":"Yarn","floor":"150000"}],"maxBid":"200000"`)
	h.OpenBoard("ravi", ``)

	d := open(h, "/attention", 200)
	require.Contains(t, d.Text(), "from ₹1,500")
	require.Contains(t, d.Text(), "2 of 2 slots free")
	require.Contains(t, hrefs(d), "/@asha/board")
	require.Contains(t, open(h, "/attention?category=silk", 200).Text(), "No board has this category.")
	require.NotContains(t, open(h, "/attention?category=yarn", 200).Text(), "@ravi")
	require.Contains(t, open(h, "/attention?limit=1", 200).Text(), "More boards")
	require.Contains(t, hrefs(open(h, "/@asha", 200)), "/@asha/board")
	require.Contains(t, h.Ask("GET", "/api/public/site-map", "").Body.String(), `"/@{handle}/board"`)

	a := h.Ask("GET", "/@asha/board", "", "Accept", nodetest.Accept).Is(200)
	require.Contains(t, a.Header().Get("Content-Security-Policy"), "; script-src 'self'; worker-src 'self'; manifest-src 'self'; connect-src 'self';")
	d = nodetest.ParsePage(t, "/@asha/board", a.Body.String())
	d.WellFormed()
	require.Contains(t, d.Text(), "Yarn <b>only</b>.")
	require.Contains(t, d.Text(), "₹1,50,000", "lakh digits")
	require.Len(t, d.All("script"), 2, "the node's own")
	require.Equal(t, "bid", nodetest.Attr(d.Find("form", "id", "bid"), "data-proof"))
	require.Equal(t, http.StatusPermanentRedirect, h.Ask("GET", "/@Asha/board", "", "Accept", nodetest.Accept).Code)
	require.Contains(t, h.Ask("GET", "/@asha/board", "", "Accept", "application/json").Header().Get("Location"), "/api/public/agents/asha/attention")

	check := func(status int, amount, category string) *nodetest.Page {
		t.Helper()
		a := h.SendForm("/@asha/board", url.Values{"do": {"check_bid"}, "amount": {amount}, "category": {category}, "message": {"Typed <i>"}, "name": {"Kim"}})
		require.Equal(t, status, a.Code, "%s", a.Body)
		require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
		d := nodetest.ParsePage(t, "/@asha/board", a.Body.String())
		d.WellFormed()
		require.Equal(t, "Typed <i>", nodetest.TextOf(d.Find("textarea", "name", "message")))
		require.Equal(t, "Kim", nodetest.Attr(d.Find("input", "id", "bid-name"), "value"))
		require.Equal(t, amount, nodetest.Attr(d.Find("input", "id", "bid-amount"), "value"))
		return d
	}
	require.Contains(t, check(200, "₹ 1,500", "").Text(), "₹1,500 would get a slot now, at place 1 of 2.")
	require.Contains(t, check(200, "1500.50", "Yarn").Text(), "would get no slot now")
	require.Contains(t, check(422, "much", "").Text(), "This is not an amount of rupees such as 1500 or 1500.50.")
	require.Contains(t, check(422, "", "").Text(), "Fill this in.")
	require.Equal(t, 403, h.Ask("POST", "/@asha/board", "do=check_bid&amount=1", "Content-Type", "application/x-www-form-urlencoded",
		"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").Code)
}

// TestBrowser_Attention: a visitor bids on a phone with a proof that the page solves, pays through the
// UPI page, whose code another decoder reads from the screen, and reports the payment; the owner
// confirms it and the bid is live.
func TestBrowser_Attention(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t)
	h.Work()
	h.Hosted("asha")
	_, signIn := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
	h.OpenBoard("ravi", `,"slots":1`)
	b, owner := nodetest.OpenBrowser(t, h.Base), nodetest.OpenBrowser(t, h.Base)
	b.Screen(390, 844)
	owner.Screen(390, 844)

	owner.Load(chromedp.Navigate(signIn))
	require.Equal(t, 200, owner.Send("form:has([name=ticket])"))
	require.Equal(t, 200, owner.Open("/account/attention"))
	require.Equal(t, 422, owner.Send("#put_payment_account-asha", "provider", "upi", "vpa", "asha", "payeeName", "Asha Rao"))
	require.Contains(t, owner.Text("#n-put_payment_account-asha-vpa"), "is not a UPI address such as asha@okbank")
	require.Equal(t, 200, owner.Send("#put_payment_account-asha", "vpa", "asha@okbank"), owner.Text("main"))
	require.Equal(t, 422, owner.Send("#put_attention_board-asha", "floor", "little", "slots", "3"))
	require.Contains(t, owner.Text("#n-put_attention_board-asha-floor"), "is not an amount of rupees")
	owner.Picture("own-fault")
	require.Equal(t, 200, owner.Send("#put_attention_board-asha", "rules",
		"Offers of yarn and looms. I answer in three days.\nNo loans.", "floor", "1,500", "step", "75",
		"maxBid", "5,00,000", "respondWithinDays", "3", "categories", "Yarn: 1,50,000\nLooms", "refundIfNoReply", "true"), owner.Text("main"))
	require.Equal(t, "The board was saved.", owner.Text(".done"))
	owner.Picture("own-new")

	require.Equal(t, 200, b.Open("/attention"))
	b.Picture("attention")
	require.Equal(t, 200, b.Open("/@asha/board"))
	b.Picture("board")
	fill := func(fields ...string) {
		t.Helper()
		for i := 0; i < len(fields); i += 2 {
			nodetest.Look[bool](b, `document.querySelector("#bid [name=`+fields[i]+`]").value = `+nodetest.Quoted(fields[i+1])+`, true`)
		}
	}
	fill("amount", "2000", "message", "Yarn from Panipat.", "category", "Yarn")
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS("[value=check_bid]"))))
	require.Contains(t, b.Text("#outlook"), "₹2,000 would get no slot now.")
	require.Equal(t, "Yarn from Panipat.", value(b, "#bid-message"), "what was typed stays")
	b.Picture("board-no-slot")
	require.Equal(t, 422, b.Send("#bid", "amount", "2000", "category", "", "url", "http://yarn.example"), b.Text("main"))
	require.Contains(t, b.Text("#n-bid-url"), "This is not an address that begins with https://")
	b.Picture("board-fault")
	fill("url", "https://yarn.example/offer", "name", "Meera")
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS("[value=check_bid]"))))
	require.Contains(t, b.Text("#outlook"), "₹2,000 would get a slot now, at place 1 of 3.")
	require.Equal(t, 200, b.Send("#bid"), b.Text("main"))
	payAt := nodetest.Look[string](b, "location.pathname")
	require.Regexp(t, `^/pay/[A-Za-z0-9_-]{20,}$`, payAt)
	require.Contains(t, b.Text(".amount"), "₹2,000")
	require.Regexp(t, `\(1?[0-9]:[0-9]{2} left\)|\(20:00 left\)`, b.Text(".until"))
	link := nodetest.Look[string](b, `document.querySelector("a[href^='upi:']").href`)
	shown := must.Get(chromedp.Run(b.Ctx, chromedp.FullScreenshot(100)))(t)
	screen, _, err := image.Decode(bytes.NewReader(shown))
	require.NoError(t, err)
	bits := must.Get(gozxing.NewBinaryBitmapFromImage(screen))(t)
	code := must.Get(qrcode.NewQRCodeReader().Decode(bits, nil))(t)
	require.Equal(t, link, code.GetText())
	require.Contains(t, link, "upi://pay?pa=asha@okbank&pn=Asha%20Rao&am=2000.00&cu=INR&tr=")
	b.Picture("pay")

	require.Equal(t, 422, b.Send("#claim", "utr", "12345"))
	require.NotEmpty(t, b.Text("#n-claim-utr"))
	require.Equal(t, 422, b.Send("#claim", "utr", "UPI Ref 431298765012, RRN 531298765013"))
	require.Contains(t, b.Text("#n-claim-utr"), "There are 2 numbers of 12 digits in it.")
	require.Equal(t, 200, b.Send("#claim", "utr", "Rs.2000.00 debited from A/c XX1234 to asha@okbank"+
		" (UPI Ref No 4312 9876 5012). Not you? SMS BLOCK to 919951860002"),
		b.Text("main"))
	require.Contains(t, b.Text("main"), "has been asked to confirm")
	b.Picture("pay-claimed")
	bid := nodetest.Look[string](b, `document.querySelector("a[href^='/bids/']").getAttribute("href")`)
	require.Equal(t, 200, b.Open(bid))
	require.Contains(t, b.Text("h1"), "Your bid of ₹2,000")
	b.Picture("bid-claimed")
	address := b.Text("#keep ~ pre code")
	require.Contains(t, address, h.Base+bid+"#")

	id := strings.TrimPrefix(bid, "/bids/")
	require.Equal(t, 200, owner.Open("/account/attention"))
	require.Contains(t, owner.Text("#todo ~ .list"), "431298765012")
	owner.Picture("own-claimed")
	link = bidLink(h, "asha", id)
	require.Equal(t, 200, b.Open(strings.TrimPrefix(link, h.Base)))
	require.Contains(t, b.Text("h1"), "Has this payment arrived?")
	b.Picture("link")
	require.Equal(t, 200, owner.Send(`#todo ~ .list form:has([value=confirm_bid_payment])`))
	require.Equal(t, "The payment was confirmed.", owner.Text(".done"))
	require.Eventually(t, func() bool {
		b.Open("/@asha/board")
		return strings.Contains(b.Text("main"), "Yarn from Panipat.")
	}, time.Minute, 200*time.Millisecond)
	require.Equal(t, "nofollow noopener noreferrer ugc", nodetest.Look[string](b, `document.querySelector("#`+id+` .said a").rel`))
	require.Contains(t, b.Text("#"+id), "unverified")
	b.Picture("board-live")
	require.Equal(t, 410, b.Open(strings.TrimPrefix(link, h.Base)))
	b.Picture("link-used")
	require.Equal(t, 200, b.Open(payAt))
	require.Contains(t, b.Text("h1"), "the bid is live")
	b.Picture("pay-live")
	require.Equal(t, 200, b.Open(bid))
	require.Contains(t, b.Text(".receipt"), "Received by")
	b.Picture("bid-live")
	require.Equal(t, 200, owner.Send(`#`+id+` form:has([value=answer_bid])`, "answer", "Send two samples."))
	owner.Picture("own-live")
	require.Contains(t, owner.Text("main"), "Receipt 20")
	require.Equal(t, 200, owner.Send(`#`+id+` form:has([value=remove_bid])`, "reason", "Not yarn after all."))
	require.Contains(t, owner.Text("#todo ~ .list"), "₹2,000")
	require.Contains(t, owner.Text("#todo ~ .list"), "Send it back by hand, then enter the reference below.", "at once: UPI makes no refunds")
	require.Contains(t, owner.Text("#money ~ .rows"), "UPI 431298765012; ₹2,000 back, to be sent by you")
	require.NotContains(t, owner.Text("main"), "UTC")
	owner.Picture("own-refund")
	require.Equal(t, 200, b.Open(bid))
	require.Contains(t, b.Text("main"), "Send two samples.")
	require.Contains(t, b.Text("main"), "Not yarn after all.")
	require.Contains(t, b.Text("main"), "The owner of the board has to send the money back. Write to @asha if it does not come.")
	require.Regexp(t, `^Bid made – \d+ [A-Z][a-z]+ \d{4}, \d\d:\d\d IST$`, b.Text("#when ~ .rows li"))
	require.Equal(t, 1, strings.Count(b.Text(".receipt"), "431298765012"), "one bank reference")
	b.Picture("bid-removed")
	require.Equal(t, 200, owner.Send(`form:has([value=mark_refunded])`, "reference", "431298765013"))
	require.Equal(t, 200, b.Open(bid))
	require.Contains(t, b.Text("main"), "The money was refunded.")
	require.Contains(t, b.Text("main"), "431298765013")

	// Another browser opens the bid by the fragment only, which the node does not see.
	other := nodetest.OpenBrowser(t, h.Base)
	require.Equal(t, 404, other.Open(bid))
	require.NotContains(t, other.Text("main"), "Panipat")
	require.NoError(t, chromedp.Do(other.Ctx, chromedp.Navigate("about:blank")))
	require.NoError(t, chromedp.Do(other.Ctx, chromedp.Navigate(address)))
	shows(other, `document.querySelector("h1")?.innerText.includes("Your bid")`)
	require.Empty(t, nodetest.Look[string](other, "location.hash"))
	for _, path := range []string{payAt, bid, payAt + "/qr.svg"} {
		a := h.Ask("GET", path, "", "Accept", nodetest.Accept)
		require.Equal(t, "no-referrer", a.Header().Get("Referrer-Policy"), path)
		require.Contains(t, a.Header().Get("X-Robots-Tag"), "noindex", path)
		require.Equal(t, "no-store", a.Header().Get("Cache-Control"), path)
	}
}

// TestBrowser_Sandbox presses each button of the payment page of a board for tests.
func TestBrowser_Sandbox(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t)
	h.Work()
	h.Hosted("asha")
	d := &nodetest.Doors{T: t, House: h, Token: h.OwnerToken("asha")}
	d.Reopen(protocol.PaySandbox)
	b := nodetest.OpenBrowser(t, h.Base)
	b.Screen(390, 844)
	for button, want := range map[sandbox.Button]struct {
		state      protocol.BidState
		pay, after string // what the payment page says then; what the page of the bid says
	}{
		sandbox.Pay:       {protocol.BidLive, "Paid: the bid is live", "Received by"},
		sandbox.Fail:      {protocol.BidHeld, "The bank refused the payment.", "Not paid yet."},
		sandbox.PayLate:   {protocol.BidHeld, "three minutes after the time to pay is over", "Not paid yet."},
		sandbox.PayTwice:  {protocol.BidLive, "Paid: the bid is live", "was paid more than once"},
		sandbox.PayPartly: {protocol.BidHeld, "That goes back; the bid can still be paid.", "Less was paid than was due"},
	} {
		made := d.NewBid()
		require.Equal(t, 200, b.Open(strings.TrimPrefix(made.PaymentURL, h.Base)))
		require.Contains(t, b.Text("main"), "TEST: no money moves")
		require.Equal(t, len(sandbox.Buttons), nodetest.Look[int](b, `document.querySelectorAll("button[name=button]").length`))
		if button == sandbox.Pay {
			b.Picture("pay-test")
		}
		require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`[name=button][value="`+string(button)+`"]`))))
		b.Picture("pay-test-" + string(button))
		shown := address(b)
		require.Eventually(t, func() bool {
			b.Open(shown)
			return strings.Contains(b.Text("main"), want.pay)
		}, time.Minute, 50*time.Millisecond, "%s: %s", button, want.pay)
		b.Load(chromedp.Navigate(h.Base + "/bids/" + made.Bid.ID + "#" + made.StatusToken))
		shows(b, `document.querySelector("h1")?.innerText.includes("Your bid")`)
		require.Eventually(t, func() bool {
			b.Open("/bids/" + made.Bid.ID)
			return strings.Contains(b.Text("main"), want.after)
		}, time.Minute, 50*time.Millisecond, "%s: %s", button, want.after)
		var bid protocol.Bid
		d.Good("GET", "/api/public/bids/"+made.Bid.ID, "", made.StatusToken, &bid)
		require.Equal(t, want.state, bid.State, button)
		if bid.State == protocol.BidLive { // frees its slot for the next
			d.Good("POST", "/api/owner/bids/"+bid.ID+"/remove", `{"reason":"Tried out."}`, d.Token, nil)
		} else {
			d.Good("POST", "/api/public/bids/"+bid.ID+"/withdraw", `{"statusToken":"`+made.StatusToken+`"}`, "", nil)
		}
	}
}

// address returns path and query of the page.
func address(b *nodetest.Tab) string {
	return nodetest.Look[string](b, "location.pathname + location.search")
}

// print writes what the tab prints, as picture does.
func printed(b *nodetest.Tab, name string) {
	b.T.Helper()
	if dir := os.Getenv("STOA_TEST_PICTURES"); dir != "" {
		pdf := must.Get(chromedp.Run(b.Ctx, chromedp.PrintToPDF()))(b.T)
		require.NoError(b.T, os.WriteFile(filepath.Join(dir, name+".pdf"), pdf, 0o600))
	}
}
