package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestAccountPage_Profile writes a profile, its capabilities and needs by the forms
// of the page alone, as a browser without script sends them.
func TestAccountPage_Profile(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	bearer := "Bearer " + nodetest.OwnerOf(t, h, "asha")
	acc := nodetest.As[protocol.Account](h.Ask("GET", "/api/owner/account", "", "Authorization", bearer))
	link := must.Get(h.Admin().SignInLink(t.Context(), acc.ID))(t)
	cookie := "stoa_session=" + h.SignIn(link)
	send := func(do string, fields ...string) nodetest.Answer {
		form := url.Values{"do": {do}, "handle": {"asha"}}
		for i := 0; i < len(fields); i += 2 {
			form.Add(fields[i], fields[i+1])
		}
		return h.Ask("POST", "/account", form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html",
			"Sec-Fetch-Site", "same-origin", "Origin", h.Base, "Cookie", cookie)
	}
	own := func() (p protocol.OwnProfile) {
		h.Ask("GET", "/api/owner/profile?handle=asha", "", "Authorization", bearer).Into(&p)
		return p
	}

	require.Equal(t, 303, send("put_capability", "id", "weave", "name", "Weave <b>", "description", "Cloth to order.", "tags", "cloth, loom",
		"pricing-model", "fixed", "pricing-amount", "120.5", "pricing-currency", "INR").Code)
	require.Equal(t, 303, send("put_capability", "id", "dye", "name", "Dye", "description", "Indigo.", "pricing-model", "", "pricing-amount", "").Code)
	require.Equal(t, 303, send("put_need", "id", "yarn", "description", "Cotton yarn.", "tags", "").Code)
	a := send("put_own_profile", "name", "Asha", "headline", "Weaver", "description", "", "tags", "loom,, paper ", "languages", "en, hi", "regions", "IN-KA",
		"timezone", "Asia/Kolkata", "anonymous", "true", "kinds", "question", "kinds", "support", "responseTime", "a day", "listed", "true")
	require.Equal(t, 303, a.Code, "%s", a.Body)
	p := own()
	require.Equal(t, []string{"loom", "paper"}, p.Tags)
	require.Equal(t, []string{"en", "hi"}, p.Languages)
	require.Equal(t, []string{"IN-KA"}, p.Regions)
	require.Equal(t, "Asia/Kolkata", p.Timezone)
	when := "a day"
	require.Equal(t, &protocol.PolicyDraft{Anonymous: true, Kinds: []string{"question", "support"}, ResponseTime: &when}, p.ContactPolicy)
	require.True(t, *p.Listed)
	require.Len(t, p.Capabilities, 2, "what has forms of its own stays")
	require.Equal(t, 120.5, *p.Capabilities[0].Pricing.Amount)
	require.Equal(t, []string{"cloth", "loom"}, p.Capabilities[0].Tags)
	require.Nil(t, p.Capabilities[1].Pricing)
	require.Equal(t, []protocol.Need{{ID: "yarn", Description: "Cotton yarn."}}, p.Needs)

	page := h.Ask("GET", "/account/offers", "", "Cookie", cookie, "Accept", "text/html").Is(200)
	nodetest.ParsePage(t, "/account/offers", page.Body.String()).WellFormed()
	require.Contains(t, page.Body.String(), `value="120.5"`)
	require.Contains(t, page.Body.String(), "Weave &lt;b&gt;")

	for name, refused := range map[string]nodetest.Answer{
		"an amount in words": send("put_capability", "id", "weave", "name", "W", "description", "d", "pricing-model", "fixed", "pricing-amount", "much"),
		"NaN": send("put_capability", "id", "weave", "name", "W", "description", "d", "pricing-model", "fixed", "pricing-currency",
			"INR", "pricing-amount", "NaN"),
		"infinity": send("put_capability", "id", "weave", "name", "W", "description", "d", "pricing-model", "fixed", "pricing-currency",
			"INR", "pricing-amount", "Inf"),
		"an unknown zone":   send("put_own_profile", "name", "Asha", "timezone", "Nowhere/At-all"),
		"an id with spaces": send("put_need", "id", "Not an id", "description", "d"),
		"no such need":      send("delete_need", "id", "silk"),
	} {
		require.GreaterOrEqual(t, refused.Code, 400, name)
		require.Less(t, refused.Code, 500, name)
		require.Contains(t, refused.Body.String(), `role="alert"`, name)
	}
	require.Equal(t, p, own(), "what is refused changes nothing")
	require.Equal(t, 303, send("delete_capability", "id", "dye").Code)
	require.Equal(t, 303, send("delete_need", "id", "yarn").Code)
	p = own()
	require.Len(t, p.Capabilities, 1)
	require.Empty(t, p.Needs)
}

// TestAccountPage_Mail changes the address of the account by the page's forms.
func TestAccountPage_Mail(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	box := &nodetest.Postbox{}
	h.Accounts.Mail = box
	h.Work()
	_, link := h.OpenAccount("Asha", protocol.RoleOwner, "old@example.org")
	cookie := "stoa_session=" + h.SignIn(link)
	send := func(form url.Values) nodetest.Answer {
		return h.Ask("POST", "/account", form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html",
			"Sec-Fetch-Site", "same-origin", "Origin", h.Base, "Cookie", cookie)
	}
	page := func() string {
		a := h.Ask("GET", "/account/settings", "", "Cookie", cookie, "Accept", "text/html").Is(200)
		nodetest.ParsePage(t, "/account/settings", a.Body.String()).WellFormed()
		return a.Body.String()
	}
	require.Contains(t, page(), "old@example.org")
	require.NotContains(t, page(), "confirm_account_mail")
	require.Equal(t, 422, send(url.Values{"do": {"put_account_mail"}, "mail": {"<b>"}}).Code)
	require.Equal(t, 303, send(url.Values{"do": {"put_account_mail"}, "mail": {"new@example.org"}}).Code)
	require.Contains(t, page(), "confirm_account_mail")
	code := nodetest.CodeInMail.FindString(box.Next(t, h).Text)
	require.Equal(t, 410, send(url.Values{"do": {"confirm_account_mail"}, "code": {"q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6"}}).Code)
	require.Equal(t, 303, send(url.Values{"do": {"confirm_account_mail"}, "code": {code}}).Code)
	require.Contains(t, page(), "Sign-in links go to <strong translate=\"no\">new@example.org</strong>")
	require.NotContains(t, page(), "old@example.org")
	require.Equal(t, 303, send(url.Values{"do": {"put_account_mail"}}).Code)
	require.Contains(t, page(), "no mail address")
}

// TestAccountPage_Inbox reads what others wrote: escaped, by the account's owner
// alone, a page at a time.
func TestAccountPage_Inbox(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for _, handle := range []string{"asha", "ravi", "mira"} {
		h.Hosted(handle)
		h.PutOpen(handle, func(d *protocol.ProfileDraft) { d.Handle = handle })
	}
	_, link := h.OpenAccount("Both", protocol.RoleOwner, "", "asha", "ravi")
	cookie := "stoa_session=" + h.SignIn(link)
	page := func(path string, headers ...string) nodetest.Answer {
		return h.Ask("GET", path, "", append([]string{"Accept", "text/html", "Cookie", cookie}, headers...)...)
	}
	read := func(path string) string {
		a := page(path)
		require.Equal(t, 200, a.Code, "%s", a.Body)
		require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
		nodetest.ParsePage(t, path, a.Body.String()).WellFormed()
		return a.Body.String()
	}
	begin := func(handle string) string {
		var begun protocol.ContactReceipt
		a := h.Ask("POST", "/api/public/agents/"+handle+"/contact", `{"message":"Do you <b>deliver</b>?","name":"<i>Kim"}`, "Proof-Of-Work", h.Proof("contact"))
		require.Equal(t, 201, a.Code, "%s", a.Body)
		a.Into(&begun)
		return begun.ThreadID
	}
	require.Contains(t, read("/account/threads"), "Nothing here")
	ashas, ravis, miras := begin("asha"), begin("ravi"), begin("mira")

	list := read("/account/threads?handle=asha&state=open")
	require.Contains(t, list, "/account/threads/"+ashas)
	require.NotContains(t, list, ravis)
	require.Contains(t, read("/account/threads?handle=ravi"), ravis)
	require.NotContains(t, read("/account/threads?handle=asha&state=closed"), ashas)
	require.Contains(t, read("/account"), "/account/threads?handle=asha")
	one := read("/account/threads/" + ashas)
	require.Contains(t, one, "Do you &lt;b&gt;deliver&lt;/b&gt;?")
	require.Contains(t, one, "&lt;i&gt;Kim")
	require.Contains(t, one, "unverified")
	require.Equal(t, 200, page("/account/threads/"+ashas, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest",
		"document").Code, "the link in a mail")

	for path, want := range map[string]int{
		"/account/threads/" + miras:                   404,
		"/account/threads/thr_nothing":                404,
		"/account/threads/" + ashas + "?after=x":      400,
		"/account/threads/" + ashas + "?threadId=x":   422,
		"/account/threads?handle=mira":                403,
		"/account/threads?state=lost":                 422,
		"/account/threads?colour=red":                 422,
		"/account/threads?handle=asha&after=nonsense": 400,
	} {
		require.Equal(t, want, page(path).Code, path)
	}
	for _, path := range []string{"/account/threads", "/account/threads/" + ashas} {
		for _, headers := range [][]string{{"Cookie", "x=y"}, {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}} {
			a := page(path, headers...)
			require.Equal(t, 303, a.Code, path)
			require.Equal(t, "/sign-in?to="+url.QueryEscape(path), a.Header().Get("Location"), "and back")
		}
	}

	for i := range 21 {
		h.Ask("POST", "/api/owner/threads/"+ashas+"/messages", fmt.Sprintf(`{"message":"More %d"}`, i), "Cookie", cookie).Is(201)
	}
	doc := nodetest.ParsePage(t, "/account/threads/"+ashas, read("/account/threads/"+ashas))
	require.NotContains(t, doc.Raw, "More 20")
	require.Contains(t, read(nodetest.Attr(doc.Find("a", "rel", "next"), "href")), "More 20")
}

// TestAccountPage_Tokens: tokens that are good are on the page, however many others
// there were since.
func TestAccountPage_Tokens(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	acc, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
	_, good, err := h.Admin().CreateAccountToken(t.Context(), acc.ID, "the good one", 0, protocol.ScopePost)
	require.NoError(t, err)
	_, out, err := h.Admin().CreateAccountToken(t.Context(), acc.ID, "has run out", time.Nanosecond, protocol.ScopePost)
	require.NoError(t, err)
	for range protocol.MaxLimit {
		_, x, err := h.Admin().CreateAccountToken(t.Context(), acc.ID, "gone", 0, protocol.ScopePost)
		require.NoError(t, err)
		require.NoError(t, h.Admin().RevokeToken(t.Context(), x.ID))
	}
	page := h.Ask("GET", "/account/tokens", "", "Accept", "text/html", "Cookie", "stoa_session="+h.SignIn(link)).Body.String()
	require.Contains(t, page, good.ID)
	require.NotContains(t, page, out.ID)
}

// TestAccountPage_Waits: the index begins with what waits for the owner, what has a deadline first, and with the hours of today.
func TestAccountPage_Waits(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, testAccountWaits)
}

func testAccountWaits(t *testing.T, change func(*node.Config)) {
	h := nodetest.New(t, change)
	h.Meeting.Mail = nodetest.NoMeetingMail
	h.Hosted("asha")
	h.PutOpen("asha", func(d *protocol.ProfileDraft) { d.Handle = "asha" })
	h.Business("rao", "")
	d := &nodetest.Doors{T: t, House: h, Token: h.OwnerToken("asha")}
	_, link := h.OpenAccount("Both", protocol.RoleOwner, "", "asha", "rao")
	d.Token = h.AccountToken("asha", "both", protocol.OwnerScopes...)
	cookie := "stoa_session=" + h.SignIn(link)
	lists := func() (waits, today []string) {
		p := nodetest.ParsePage(t, "/account", h.Ask("GET", "/account", "", "Accept", "text/html", "Cookie", cookie).Is(200).Body.String())
		p.WellFormed()
		for id, into := range map[string]*[]string{"waits": &waits, "today": &today} {
			if part := p.Find("section", "aria-labelledby", id); part != nil {
				for _, n := range (&nodetest.Page{T: t, Root: part}).All("li") {
					*into = append(*into, strings.Join(strings.Fields(nodetest.TextOf(n)), " "))
				}
			}
		}
		return waits, today
	}
	waits, today := lists()
	require.Empty(t, waits)
	require.Equal(t, []string{"Rao Tiffins no hours yet"}, today)

	h.Ask("POST", "/api/public/agents/asha/contact", `{"message":"Paper?","name":"Kim"}`, "Proof-Of-Work", h.Proof("contact")).Is(201)
	d.Good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"timezone":"Asia/Kolkata","durations":[30]`+
		everyHour()+`}`, d.Token, nil)
	d.Asked("kim@example.org", time.Now().Add(72*time.Hour).Truncate(time.Hour))
	d.Reopen(protocol.PayUPI)
	bid := d.NewBid()
	secret := bid.PaymentURL[strings.LastIndexByte(bid.PaymentURL, '/')+1:]
	d.Good("POST", "/api/public/payment/claim", `{"utr":"`+nodetest.NewUTR()+`","payToken":"`+secret+`"}`, "", nil)
	waits, _ = lists()
	require.Len(t, waits, 3)
	require.Regexp(t, `^1 payment to confirm @asha Before \d+ \w+ \d{4}, \d\d:\d\d IST`, waits[0])
	require.Regexp(t, `^1 meeting request to answer @asha Before \d+ \w+ \d{4}, \d\d:\d\d IST`, waits[1])
	require.Equal(t, "1 conversation with new messages @asha", waits[2])
	for _, path := range []string{"/account", "/account/notices", "/account/threads"} { // the header of every page of the account
		p := nodetest.ParsePage(t, path, h.Ask("GET", path, "", "Accept", "text/html", "Cookie", cookie).Is(200).Body.String())
		require.Equal(t, "3", nodetest.TextOf(p.Find("a", "class", "count")), path)
	}
	require.NotContains(t, h.Ask("GET", "/board", "", "Accept", "text/html", "Cookie", cookie).Is(200).Body.String(), `class="count"`, "the same for everyone")
	all := nodetest.As[protocol.OwnerWaits](h.Ask("GET", "/api/owner/waiting", "", "Cookie", cookie).Is(200))
	require.Equal(t, 3, all.Count)
	require.Equal(t, []protocol.WaitKind{protocol.PaymentsWait, protocol.MeetingsWait, protocol.MessagesWait},
		[]protocol.WaitKind{all.Items[0].What, all.Items[1].What, all.Items[2].What})

	date := time.Now().In(protocol.India).Format(time.DateOnly)
	_, err := h.Admin().PutMerchant(t.Context(), "rao", []byte(`{"timezone":"Asia/Kolkata","hours":[{"day":"monday","opens":"07:30","closes":"11:00"}],
		"exceptionHours":[{"validFrom":"`+date+`","validThrough":"`+date+`","opens":"08:00","closes":"09:00","title":"Fair"}]}`))
	require.NoError(t, err)
	_, today = lists()
	require.Len(t, today, 1)
	require.Regexp(t, `^Rao Tiffins 08:00–09:00 · Fair (open|closed) now`, today[0])
}
