package node

import (
	"bytes"
	"context"
	"image"
	_ "image/png" // a screenshot
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
	"github.com/stretchr/testify/require"

	"stoa/node/out/pay/sandbox"
	"stoa/protocol"
	"stoa/storage"
)

// openBoard opens the attention board of a new profile, paid by UPI, and returns the owner's Authorization.
func (h *house) openBoard(handle, board string) (token string) {
	h.t.Helper()
	token = h.agent(handle, openPolicy)
	for path, body := range map[string]string{
		"/api/owner/payment-account": `{"handle":"` + handle + `","provider":"upi","vpa":"` + handle + `@okbank","payeeName":"Asha Rao"}`,
		"/api/owner/attention":       `{"handle":"` + handle + `"` + board + `}`,
	} {
		a := h.ask("PUT", path, body, "Authorization", token)
		require.Equal(h.t, 200, a.Code, "%s", a.Body)
	}
	return token
}

// bidLink returns the address that a notice to the owner has.
func (h *house) bidLink(handle, bid string) (address string) {
	h.t.Helper()
	require.NoError(h.t, h.db.Write(h.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		to := storage.NotifySettings{Handle: handle, Webhook: "https://agent.example/notices", Links: true}
		if err := tx.Profiles().PutNotifySettings(ctx, to); err != nil {
			return err
		}
		link, err := h.attention.LinkFor(ctx, tx, bid, handle, to.Webhook)
		if err == nil {
			address = link.URL
		}
		return err
	}))
	return address
}

// sendForm posts a form of a page as a browser does.
func (h *house) sendForm(path string, form url.Values, headers ...string) answer {
	h.t.Helper()
	return h.ask("POST", path, form.Encode(), append([]string{
		"Content-Type", "application/x-www-form-urlencoded", "Accept", browser, "Origin", h.Base, "Sec-Fetch-Site", "same-origin",
	}, headers...)...)
}

// TestAttentionPages: the list of boards, and a board with its form, which checks a bid without a
// proof of work and keeps what was typed.
func TestAttentionPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	require.Contains(t, h.open("/attention", 200).text(), "Nobody has opened an attention board here yet.")
	h.open("/@asha/board", 404)
	h.openBoard("asha", `,"rules":"Yarn <b>only</b>. https://rules.example/a","floor":"1500","slots":2,
		"categories":[{"name":"Yarn","floor":"150000"}],"maxBid":"200000"`)
	h.openBoard("ravi", ``)

	d := h.open("/attention", 200)
	require.Contains(t, d.text(), "from ₹1,500")
	require.Contains(t, d.text(), "2 of 2 slots free")
	require.Contains(t, d.hrefs(), "/@asha/board")
	require.Contains(t, h.open("/attention?category=silk", 200).text(), "No board has this category.")
	require.NotContains(t, h.open("/attention?category=yarn", 200).text(), "@ravi")
	require.Contains(t, h.open("/attention?limit=1", 200).text(), "More boards")
	require.Contains(t, h.open("/@asha", 200).hrefs(), "/@asha/board")
	require.Contains(t, h.ask("GET", "/api/public/site-map", "").Body.String(), `"/@{handle}/board"`)

	a := h.ask("GET", "/@asha/board", "", "Accept", browser)
	require.Equal(t, 200, a.Code)
	require.Contains(t, a.Header().Get("Content-Security-Policy"), "; script-src 'self'; worker-src 'self'; connect-src 'self';")
	d = parsePage(t, "/@asha/board", a.Body.String())
	d.wellFormed()
	require.Contains(t, d.text(), "Yarn <b>only</b>.")
	require.Contains(t, d.text(), "₹1,50,000", "lakh digits")
	require.Len(t, d.all("script"), 2, "the node's own")
	require.Equal(t, "bid", attr(d.find("form", "id", "bid"), "data-proof"))
	require.Equal(t, http.StatusPermanentRedirect, h.ask("GET", "/@Asha/board", "", "Accept", browser).Code)
	require.Contains(t, h.ask("GET", "/@asha/board", "", "Accept", "application/json").Header().Get("Location"), "/api/public/agents/asha/attention")

	check := func(status int, amount, category string) *pageDoc {
		t.Helper()
		a := h.sendForm("/@asha/board", url.Values{"do": {"check_bid"}, "amount": {amount}, "category": {category}, "message": {"Typed <i>"}, "name": {"Kim"}})
		require.Equal(t, status, a.Code, "%s", a.Body)
		require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
		d := parsePage(t, "/@asha/board", a.Body.String())
		d.wellFormed()
		require.Equal(t, "Typed <i>", textOf(d.find("textarea", "name", "message")))
		require.Equal(t, "Kim", attr(d.find("input", "id", "bid-name"), "value"))
		require.Equal(t, amount, attr(d.find("input", "id", "bid-amount"), "value"))
		return d
	}
	require.Contains(t, check(200, "₹ 1,500", "").text(), "₹1,500 would get a slot now, at place 1 of 2.")
	require.Contains(t, check(200, "1500.50", "Yarn").text(), "would get no slot now")
	require.Contains(t, check(422, "much", "").text(), "This is not an amount of rupees such as 1500 or 1500.50.")
	require.Contains(t, check(422, "", "").text(), "Fill this in.")
	require.Equal(t, 403, h.ask("POST", "/@asha/board", "do=check_bid&amount=1", "Content-Type", "application/x-www-form-urlencoded",
		"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").Code)
}

// TestBrowser_Attention: a visitor bids on a phone with a proof that the page solves, pays through the
// UPI page, whose code another decoder reads from the screen, and reports the payment; the owner
// confirms it and the bid is live.
func TestBrowser_Attention(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	h := newHouse(t, func(c *Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })
	server.Config.Handler = h.Handler()
	server.Start()
	t.Cleanup(server.Close)
	h.run()
	h.hosted("asha")
	_, signIn, err := h.Admin().OpenAccount(t.Context(), "Asha", protocol.RoleOwner, "", []string{"asha"})
	require.NoError(t, err)
	h.openBoard("ravi", `,"slots":1`)
	b, owner := openBrowser(t, h.Base), openBrowser(t, h.Base)
	b.screen(390, 844)
	owner.screen(390, 844)

	owner.load(chromedp.Navigate(signIn))
	require.Equal(t, 200, owner.send("form:has([name=ticket])"))
	require.Equal(t, 200, owner.open("/account/attention"))
	require.Equal(t, 422, owner.send("#put_payment_account-asha", "provider", "upi", "vpa", "asha", "payeeName", "Asha Rao"))
	require.Contains(t, owner.text("#n-put_payment_account-asha-vpa"), "is not a UPI address such as asha@okbank")
	require.Equal(t, 200, owner.send("#put_payment_account-asha", "vpa", "asha@okbank"), owner.text("main"))
	require.Equal(t, 422, owner.send("#put_attention_board-asha", "floor", "little", "slots", "3"))
	require.Contains(t, owner.text("#n-put_attention_board-asha-floor"), "is not an amount of rupees")
	owner.picture("own-fault")
	require.Equal(t, 200, owner.send("#put_attention_board-asha", "rules",
		"Offers of yarn and looms. I answer in three days.\nNo loans.", "floor", "1,500", "step", "75",
		"maxBid", "5,00,000", "respondWithinDays", "3", "categories", "Yarn: 1,50,000\nLooms", "refundIfNoReply", "true"), owner.text("main"))
	require.Equal(t, "The board was saved.", owner.text(".done"))
	owner.picture("own-new")

	require.Equal(t, 200, b.open("/attention"))
	b.picture("attention")
	require.Equal(t, 200, b.open("/@asha/board"))
	b.picture("board")
	fill := func(fields ...string) {
		t.Helper()
		for i := 0; i < len(fields); i += 2 {
			look[bool](b, `document.querySelector("#bid [name=`+fields[i]+`]").value = `+quoted(fields[i+1])+`, true`)
		}
	}
	fill("amount", "2000", "message", "Yarn from Panipat.", "category", "Yarn")
	require.Equal(t, 200, b.load(chromedp.Click(chromedp.CSS("[value=check_bid]"))))
	require.Contains(t, b.text("#outlook"), "₹2,000 would get no slot now.")
	require.Equal(t, "Yarn from Panipat.", b.value("#bid-message"), "what was typed stays")
	b.picture("board-no-slot")
	require.Equal(t, 422, b.send("#bid", "amount", "2000", "category", "", "url", "http://yarn.example"), b.text("main"))
	require.Contains(t, b.text("#n-bid-url"), "This is not an address that begins with https://")
	b.picture("board-fault")
	fill("url", "https://yarn.example/offer", "name", "Meera")
	require.Equal(t, 200, b.load(chromedp.Click(chromedp.CSS("[value=check_bid]"))))
	require.Contains(t, b.text("#outlook"), "₹2,000 would get a slot now, at place 1 of 3.")
	require.Equal(t, 200, b.send("#bid"), b.text("main"))
	payAt := look[string](b, "location.pathname")
	require.Regexp(t, `^/pay/[A-Za-z0-9_-]{20,}$`, payAt)
	require.Contains(t, b.text(".amount"), "₹2,000")
	require.Regexp(t, `\(1?[0-9]:[0-9]{2} left\)|\(20:00 left\)`, b.text(".until"))
	link := look[string](b, `document.querySelector("a[href^='upi:']").href`)
	shown, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	screen, _, err := image.Decode(bytes.NewReader(shown))
	require.NoError(t, err)
	bits, err := gozxing.NewBinaryBitmapFromImage(screen)
	require.NoError(t, err)
	code, err := qrcode.NewQRCodeReader().Decode(bits, nil)
	require.NoError(t, err)
	require.Equal(t, link, code.GetText())
	require.Contains(t, link, "upi://pay?pa=asha@okbank&pn=Asha%20Rao&am=2000.00&cu=INR&tr=")
	b.picture("pay")

	require.Equal(t, 422, b.send("#claim", "utr", "12345"))
	require.NotEmpty(t, b.text("#n-claim-utr"))
	require.Equal(t, 200, b.send("#claim", "utr", "4312 9876 5012"), b.text("main"))
	require.Contains(t, b.text("main"), "has been asked to confirm")
	b.picture("pay-claimed")
	bid := look[string](b, `document.querySelector("a[href^='/bids/']").getAttribute("href")`)
	require.Equal(t, 200, b.open(bid))
	require.Contains(t, b.text("h1"), "Your bid of ₹2,000")
	b.picture("bid-claimed")
	address := b.text("#keep ~ pre code")
	require.Contains(t, address, h.Base+bid+"#")

	id := strings.TrimPrefix(bid, "/bids/")
	require.Equal(t, 200, owner.open("/account/attention"))
	require.Contains(t, owner.text("#todo ~ .list"), "431298765012")
	owner.picture("own-claimed")
	link = h.bidLink("asha", id)
	require.Equal(t, 200, b.open(strings.TrimPrefix(link, h.Base)))
	require.Contains(t, b.text("h1"), "Has this payment arrived?")
	b.picture("link")
	require.Equal(t, 200, owner.send(`#todo ~ .list form:has([value=confirm_bid_payment])`))
	require.Equal(t, "The payment was confirmed.", owner.text(".done"))
	require.Eventually(t, func() bool {
		b.open("/@asha/board")
		return strings.Contains(b.text("main"), "Yarn from Panipat.")
	}, time.Minute, 200*time.Millisecond)
	require.Equal(t, "nofollow noopener noreferrer ugc", look[string](b, `document.querySelector("#`+id+` .said a").rel`))
	require.Contains(t, b.text("#"+id), "unverified")
	b.picture("board-live")
	require.Equal(t, 410, b.open(strings.TrimPrefix(link, h.Base)))
	b.picture("link-used")
	require.Equal(t, 200, b.open(payAt))
	require.Contains(t, b.text("h1"), "the bid is live")
	b.picture("pay-live")
	require.Equal(t, 200, b.open(bid))
	require.Contains(t, b.text(".receipt"), "Received by")
	b.picture("bid-live")
	require.Equal(t, 200, owner.send(`#`+id+` form:has([value=answer_bid])`, "answer", "Send two samples."))
	owner.picture("own-live")
	require.Contains(t, owner.text("main"), "Receipt 20")
	require.Equal(t, 200, owner.send(`#`+id+` form:has([value=remove_bid])`, "reason", "Not yarn after all."))
	require.Contains(t, owner.text("#todo ~ .list"), "₹2,000")
	require.Contains(t, owner.text("#todo ~ .list"), "Send it back by hand, then enter the reference below.", "at once: UPI makes no refunds")
	require.Contains(t, owner.text("#money ~ .rows"), "UPI 431298765012; ₹2,000 back, to be sent by you")
	require.NotContains(t, owner.text("main"), "UTC")
	owner.picture("own-refund")
	require.Equal(t, 200, b.open(bid))
	require.Contains(t, b.text("main"), "Send two samples.")
	require.Contains(t, b.text("main"), "Not yarn after all.")
	require.Contains(t, b.text("main"), "The owner of the board has to send the money back. Write to @asha if it does not come.")
	require.Regexp(t, `^Bid made – \d+ [A-Z][a-z]+ \d{4}, \d\d:\d\d IST$`, b.text("#when ~ .rows li"))
	require.Equal(t, 1, strings.Count(b.text(".receipt"), "431298765012"), "one bank reference")
	b.picture("bid-removed")
	require.Equal(t, 200, owner.send(`form:has([value=mark_refunded])`, "reference", "431298765013"))
	require.Equal(t, 200, b.open(bid))
	require.Contains(t, b.text("main"), "The money was refunded.")
	require.Contains(t, b.text("main"), "431298765013")

	// Another browser opens the bid by the fragment only, which the node does not see.
	other := openBrowser(t, h.Base)
	require.Equal(t, 404, other.open(bid))
	require.NotContains(t, other.text("main"), "Panipat")
	require.NoError(t, chromedp.Do(other.ctx, chromedp.Navigate("about:blank")))
	require.NoError(t, chromedp.Do(other.ctx, chromedp.Navigate(address)))
	other.shows(`document.querySelector("h1")?.innerText.includes("Your bid")`)
	require.Empty(t, look[string](other, "location.hash"))
	for _, path := range []string{payAt, bid, payAt + "/qr.svg"} {
		a := h.ask("GET", path, "", "Accept", browser)
		require.Equal(t, "no-referrer", a.Header().Get("Referrer-Policy"), path)
		require.Contains(t, a.Header().Get("X-Robots-Tag"), "noindex", path)
		require.Equal(t, "no-store", a.Header().Get("Cache-Control"), path)
	}
}

// TestBrowser_Sandbox presses each button of the payment page of a board for tests.
func TestBrowser_Sandbox(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	h := newHouse(t, func(c *Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })
	server.Config.Handler = h.Handler()
	server.Start()
	t.Cleanup(server.Close)
	h.run()
	h.hosted("asha")
	d := &doors{t: t, house: h, token: h.ownerToken("asha")}
	d.reopen(protocol.PaySandbox)
	b := openBrowser(t, h.Base)
	b.screen(390, 844)
	for button, want := range map[sandbox.Button]struct {
		state      protocol.BidState
		pay, after string // what the payment page says then; what the page of the bid says
	}{
		sandbox.Pay:       {protocol.BidLive, "Paid: the bid is live", "Received by"},
		sandbox.Fail:      {protocol.BidHeld, "The bank refused the payment.", "Not paid yet."},
		sandbox.PayLate:   {protocol.BidHeld, "three minutes after the time to pay is over", "Not paid yet."},
		sandbox.PayTwice:  {protocol.BidLive, "Paid: the bid is live", "was paid more than once"},
		sandbox.PayPartly: {protocol.BidHeld, "That goes back; the bid can still be paid.", "Less was paid than the bid"},
	} {
		made := d.newBid()
		require.Equal(t, 200, b.open(strings.TrimPrefix(made.PaymentURL, h.Base)))
		require.Contains(t, b.text("main"), "TEST: no money moves")
		require.Equal(t, len(sandbox.Buttons), look[int](b, `document.querySelectorAll("button[name=button]").length`))
		if button == sandbox.Pay {
			b.picture("pay-test")
		}
		require.Equal(t, 200, b.load(chromedp.Click(chromedp.CSS(`[name=button][value="`+string(button)+`"]`))))
		b.picture("pay-test-" + string(button))
		shown := b.address()
		require.Eventually(t, func() bool {
			b.open(shown)
			return strings.Contains(b.text("main"), want.pay)
		}, time.Minute, 50*time.Millisecond, "%s: %s", button, want.pay)
		b.load(chromedp.Navigate(h.Base + "/bids/" + made.Bid.ID + "#" + made.StatusToken))
		b.shows(`document.querySelector("h1")?.innerText.includes("Your bid")`)
		require.Eventually(t, func() bool {
			b.open("/bids/" + made.Bid.ID)
			return strings.Contains(b.text("main"), want.after)
		}, time.Minute, 50*time.Millisecond, "%s: %s", button, want.after)
		var bid protocol.Bid
		d.good("GET", "/api/public/bids/"+made.Bid.ID, "", made.StatusToken, &bid)
		require.Equal(t, want.state, bid.State, button)
		if bid.State == protocol.BidLive { // frees its slot for the next
			d.good("POST", "/api/owner/bids/"+bid.ID+"/remove", `{"reason":"Tried out."}`, d.token, nil)
		} else {
			d.good("POST", "/api/public/bids/"+bid.ID+"/withdraw", `{"statusToken":"`+made.StatusToken+`"}`, "", nil)
		}
	}
}

// address returns path and query of the page.
func (b *tab) address() string { return look[string](b, "location.pathname + location.search") }

// picture writes what the tab shows to the directory STOA_TEST_PICTURES, on a phone and on a desk, dark and light;
// without that variable it does nothing.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("STOA_TEST_PICTURES")
	if dir == "" {
		return
	}
	for suffix, size := range map[string][2]int64{"phone": {390, 844}, "desk": {1280, 900}} {
		b.screen(size[0], size[1])
		for _, scheme := range []string{"dark", "light"} {
			_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia,
				emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			require.NoError(b.t, err)
			png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			require.NoError(b.t, err)
			require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+"-"+suffix+"-"+scheme+".png"), png, 0o600))
		}
	}
	b.screen(390, 844)
}

// print writes what the tab prints, as picture does.
func (b *tab) print(name string) {
	b.t.Helper()
	if dir := os.Getenv("STOA_TEST_PICTURES"); dir != "" {
		pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
		require.NoError(b.t, err)
		require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".pdf"), pdf, 0o600))
	}
}

// screen sets the size of the tab.
func (b *tab) screen(width, height int64) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.EmulateViewport(width, height)))
}
