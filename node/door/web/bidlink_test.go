package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

var linkInMail = regexp.MustCompile(`http\S*/bid-link\?ticket=(stoa_read_[A-Za-z0-9_-]+)`)

// TestBidLink: the mails about a bid carry a link by which the owner decides without signing in:
// looking does nothing, and it works once, as long as the bid and the address are the same.
func TestBidLink(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, testBidLink)
}

func testBidLink(t *testing.T, change func(*node.Config)) {
	h := nodetest.New(t, change)
	box := &nodetest.Postbox{}
	h.Accounts.Mail = box
	h.Hosted("asha")
	d := &nodetest.Doors{T: t, House: h, Token: h.OwnerToken("asha")}
	h.Work()
	address := func(mail string) {
		d.Good("PUT", "/api/owner/notify", `{"mail":"`+mail+`","events":["bid.claimed","bid.live"]}`, d.Token, nil)
		d.Good("POST", "/api/owner/notify/confirm", `{"code":"`+nodetest.CodeInMail.FindString(box.Next(t, h).Text)+`"}`, d.Token, nil)
	}
	address("asha@example.org")
	d.Reopen(protocol.PayUPI)
	d.Good("PUT", "/api/owner/attention", `{"handle":"asha","floor":500,"slots":9,"autoApprove":false}`, d.Token, nil)
	claim := func() (made protocol.BidReceipt, ticket string) {
		made = d.NewBid()
		secret := made.PaymentURL[strings.LastIndexByte(made.PaymentURL, '/')+1:]
		d.Good("POST", "/api/public/payment/claim", `{"utr":"`+nodetest.NewUTR()+`","payToken":"`+secret+`"}`, "", nil)
		return made, linkInMail.FindStringSubmatch(box.Next(t, h).Text)[1]
	}
	page := "/bid-link?ticket="
	show := func(ticket string, status int) string {
		a := h.Ask("GET", page+ticket, "", "Accept", nodetest.Accept)
		require.Equal(t, status, a.Code, "%s", a.Body)
		shown := nodetest.ParsePage(t, "/bid-link", a.Body.String())
		shown.WellFormed()
		return shown.Text()
	}
	use := func(ticket, do string) nodetest.Answer {
		return h.SendForm("/bid-link", url.Values{"ticket": {ticket}, "do": {do}})
	}
	state := func(id string) protocol.BidState {
		var b protocol.OwnBid
		d.Good("GET", "/api/owner/bids/"+id, "", d.Token, &b)
		return b.State
	}

	made, ticket := claim()
	var l protocol.BidLink
	for range 2 { // looking uses nothing up
		shown := show(ticket, 200)
		require.Contains(t, shown, "Has this payment arrived?")
		require.Contains(t, shown, "Yarn from Panipat.")
		h.Ask("GET", "/api/owner/bid-link", "", "Authorization", "Bearer "+ticket).Into(&l)
	}
	require.Equal(t, []protocol.BidLinkDo{protocol.LinkConfirm, protocol.LinkDeny}, l.Do)
	require.Equal(t, protocol.BidClaimed, state(made.Bid.ID))
	a := h.Ask("GET", page+ticket, "", "Accept", nodetest.Accept)
	require.Equal(t, "no-referrer", a.Header().Get("Referrer-Policy"))
	require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
	require.Contains(t, a.Header().Get("X-Robots-Tag"), "noindex")
	require.Equal(t, 409, use(ticket, "approve").Code, "not what the bid waits for")
	require.Equal(t, 403, h.Ask("POST", "/bid-link", "ticket="+ticket+"&do=confirm", "Content-Type", "application/x-www-form-urlencoded",
		"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").Code)
	done := use(ticket, "confirm")
	require.Equal(t, 200, done.Code, "%s", done.Body)
	require.Contains(t, done.Body.String(), "The payment was confirmed.")
	require.Equal(t, protocol.BidLive, state(made.Bid.ID))
	require.Equal(t, 410, use(ticket, "confirm").Code, "once")
	require.Contains(t, show(ticket, 410), "was used before")

	text := linkInMail.FindStringSubmatch(box.Next(t, h).Text)
	require.NotNil(t, text, "the text of the bid waits for its approval")
	require.Contains(t, show(text[1], 200), "Show this text on your board?")
	require.Equal(t, 200, use(text[1], "approve").Code)
	require.Equal(t, 410, use(text[1], "approve").Code)
	require.Contains(t, h.Ask("GET", "/api/public/agents/asha/attention", "").Body.String(), "Yarn from Panipat.")

	denied, ticket := claim()
	require.Equal(t, 200, h.Ask("POST", "/api/owner/bid-link", `{"do":"deny","ticket":"`+ticket+`"}`).Code, "a program")
	require.Equal(t, protocol.BidUnconfirmed, state(denied.Bid.ID))

	made, ticket = claim()
	other, _ := claim()
	foreign := strings.Replace(ticket, strings.TrimPrefix(made.Bid.ID, "bid_"), strings.TrimPrefix(other.Bid.ID, "bid_"), 1)
	for what, forged := range map[string]string{"another bid": foreign, "cut": ticket[:len(ticket)-1], "short": "stoa_read_x", "no ticket": "nonsense"} {
		require.Equal(t, 410, use(forged, "confirm").Code, what)
	}
	require.Equal(t, 401, h.Ask("GET", "/api/owner/bid-link", "").Code)
	require.Equal(t, 422, h.Ask("GET", "/api/owner/bid-link?ticket="+ticket, "").Code, "in no address of the API")
	address("new@example.org")
	require.Equal(t, 410, use(ticket, "confirm").Code, "who reads the former address decides no more")
	require.Equal(t, protocol.BidClaimed, state(made.Bid.ID))
}

// TestBidLink_Webhook: the notice that a webhook gets about a bid carries the same link. A program
// that follows it decides with the ticket alone; a token that may not decide gets no link by an
// address of its choice.
func TestBidLink_Webhook(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, testBidLinkWebhook)
}

func testBidLinkWebhook(t *testing.T, change func(*node.Config)) {
	h := nodetest.New(t, change)
	h.Hosted("asha")
	d := &nodetest.Doors{T: t, House: h, Token: h.OwnerToken("asha")}
	d.Reopen(protocol.PayUPI)
	got := make(chan protocol.NoticeDocument, 4)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n protocol.NoticeDocument
		if r.Header.Get("Signature") == "" || r.Header.Get(protocol.WebhookID) == "" || json.NewDecoder(r.Body).Decode(&n) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		got <- n
	}))
	t.Cleanup(hook.Close)
	h.Work()
	listen := func(path, token string) (s protocol.NotifySettings) {
		d.Good("PUT", "/api/owner/notify", `{"handle":"asha","webhook":"`+hook.URL+path+`","events":["bid.claimed"]}`, token, &s)
		return s
	}
	claim := func() (protocol.BidReceipt, protocol.NoticeDocument) {
		made := d.NewBid()
		secret := made.PaymentURL[strings.LastIndexByte(made.PaymentURL, '/')+1:]
		d.Good("POST", "/api/public/payment/claim", `{"utr":"`+nodetest.NewUTR()+`","payToken":"`+secret+`"}`, "", nil)
		select {
		case n := <-got:
			require.Equal(t, protocol.BidIsClaimed, n.Event)
			require.Equal(t, made.Bid.ID, n.Subject)
			return made, n
		case <-time.After(time.Minute):
			t.Fatal("the webhook was not called")
			return made, protocol.NoticeDocument{}
		}
	}
	state := func(id string) protocol.BidState {
		var b protocol.OwnBid
		d.Good("GET", "/api/owner/bids/"+id, "", d.Token, &b)
		return b.State
	}
	path := func(address string) string { return strings.TrimPrefix(address, h.Base) }

	require.True(t, listen("/one", d.Token).Links)
	made, n := claim()
	require.NotNil(t, n.Link)
	require.Equal(t, []string{"confirm", "deny"}, n.Link.Do)
	require.Equal(t, h.Base+"/bid-link?ticket="+n.Link.Ticket, n.Link.URL)
	bearer := []string{"Authorization", "Bearer " + n.Link.Ticket}
	for range 2 { // looking uses nothing up
		require.Equal(t, 200, h.Ask("GET", path(n.Link.URL), "", "Accept", nodetest.Accept).Code)
		require.Equal(t, made.Bid.ID, nodetest.As[protocol.BidLink](h.Ask("GET", path(n.Link.API), "", bearer...)).Bid.ID)
	}
	require.Equal(t, protocol.BidClaimed, state(made.Bid.ID))
	require.Equal(t, 200, h.Ask("POST", path(n.Link.API), `{"do":"confirm"}`, bearer...).Code)
	require.Equal(t, protocol.BidLive, state(made.Bid.ID))
	again := h.Ask("POST", path(n.Link.API), `{"do":"confirm"}`, bearer...).Is(410)
	require.Contains(t, again.Body.String(), "this link was used before")

	secret := h.TokenOf("asha", "addresses", protocol.ScopeNotify)
	require.True(t, listen("/one", secret).Links, "the address is the same")
	held, n := claim()
	require.False(t, listen("/two", secret).Links)
	require.Equal(t, 410, h.Ask("POST", path(n.Link.API), `{"do":"confirm"}`, "Authorization", "Bearer "+n.Link.Ticket).Code, "who reads the former address")
	_, n = claim()
	require.Nil(t, n.Link)
	require.Equal(t, protocol.BidClaimed, state(held.Bid.ID))
}
