package web_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

func TestMain(m *testing.M) { nodetest.Main(m) }

// accountPage is where the account has the form of an operation.
var accountPage = map[string]string{
	"put_own_profile": "/account/profile", "put_capability": "/account/offers", "delete_capability": "/account/offers",
	"put_need": "/account/offers", "delete_need": "/account/offers", "create_token": "/account/tokens", "revoke_token": "/account/tokens",
	"put_notify": "/account/notices", "confirm_mail": "/account/notices", "make_key": "/account/keys", "retire_key": "/account/keys",
	"put_account": "/account/settings", "put_account_mail": "/account/settings", "confirm_account_mail": "/account/settings",
	"end_session": "/account/security", "end_other_sessions": "/account/security", "make_recovery_codes": "/account/security",
}

// save opens the page of the account that has a form, sends the form, and checks that the node says it
// was done. A form that is on the page already, as one that was refused is, is sent as it is.
func save(b *nodetest.Tab, do, form string, fields ...string) {
	b.T.Helper()
	if form == "" {
		form = `form:has(input[name="do"][value="` + do + `"])`
	}
	if !nodetest.Look[bool](b, `document.querySelector(`+nodetest.Quoted(form)+`) != null`) {
		require.Equal(b.T, 200, b.Open(accountPage[do]))
	}
	require.Equal(b.T, 200, b.Send(form, fields...), "%s: %s", do, b.Text("main"))
	require.Regexp(b.T, "^"+regexp.QuoteMeta(b.Base+accountPage[do]+"?done="+do)+"(&handle=asha)?$", nodetest.Look[string](b, "location.href"), b.Text("main"))
	require.NotEmpty(b.T, b.Text(".done"))
	b.Saved["/account "+do] = true
}

// value is what a field holds.
func value(b *nodetest.Tab, selector string) string {
	b.T.Helper()
	return nodetest.Look[string](b, `document.querySelector(`+nodetest.Quoted(selector)+`)?.value ?? "(no such field)"`)
}

// TestBrowser signs in by a mailed link with a real browser and saves every form
// that the account pages have, as its user would.
func TestBrowser(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	h := nodetest.New(t, func(c *node.Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })
	var mu sync.Mutex // guards origins
	origins := map[string]bool{}
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			mu.Lock()
			origins[r.Header.Get("Origin")] = true
			mu.Unlock()
		}
		h.Handler().ServeHTTP(w, r)
	})
	server.Start()
	t.Cleanup(server.Close)
	b := nodetest.OpenBrowser(t, h.Base)
	box := &nodetest.Postbox{}
	h.Accounts.Mail = box
	h.Work()
	h.Hosted("asha")
	acc, _ := h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha")
	bearer := "Bearer " + h.OwnerToken("asha")
	own := func() (p protocol.OwnProfile) {
		t.Helper()
		h.Ask("GET", "/api/owner/profile?handle=asha", "", "Authorization", bearer).Into(&p)
		return p
	}
	mailed := func(form *regexp.Regexp) (found string) { // other letters may come before
		for found == "" {
			found = form.FindString(box.Next(t, h).Text)
		}
		return found
	}
	link := regexp.MustCompile(`http://\S+ticket=\S+`)
	signIn := func(b *nodetest.Tab) {
		t.Helper()
		require.Equal(t, 200, b.Open("/sign-in"))
		require.Equal(t, 200, b.Send("form:has(#mail)", "mail", "asha@example.org"))
		require.Contains(t, b.Text("h1"), "mail")
		require.Equal(t, 200, b.Load(chromedp.Navigate(mailed(link))))
		require.Equal(t, 200, b.Send("form:has([name=ticket])"))
		require.Equal(t, "Asha", b.Text("h1"))
		b.Saved["/sign-in "], b.Saved["/sign-in ticket"] = true, true
	}
	signIn(b)

	save(b, "put_own_profile", "", "name", "Asha Rao", "headline", "Weaver", "description", "Cloth.\nTo order.", "tags", "#Paper, LOOM",
		"languages", "English, hindi", "regions", "Karnataka, in-tn", "timezone", "Asia/Kolkata", "agents", "true", "anonymous", "true",
		"kinds", "question,support", "responseTime", "a day", "listed", "true")
	p := own()
	require.Equal(t, "Cloth.\nTo order.", p.Description)
	require.Equal(t, []string{"paper", "loom"}, p.Tags)
	require.Equal(t, []string{"IN-KA", "IN-TN"}, p.Regions)
	require.Equal(t, []string{"en", "hi"}, p.Languages)
	require.Equal(t, "Karnataka, Tamil Nadu", value(b, "#put_own_profile-asha-regions"))
	require.Equal(t, []string{"question", "support"}, p.ContactPolicy.Kinds)
	save(b, "put_capability", "#put_capability-asha", "id", "weave", "name", "Weave", "description", "Cloth to order.", "tags", "Cloth", "pricing-model",
		"fixed", "pricing-amount", "120.5", "pricing-currency", "inr")
	save(b, "put_capability", "#put_capability-asha-weave", "name", "Weave cloth")
	require.Equal(t, "Weave cloth", own().Capabilities[0].Name)
	require.Equal(t, "INR", own().Capabilities[0].Pricing.Currency)
	save(b, "put_need", "#put_need-asha", "id", "yarn", "description", "Cotton yarn.", "tags", "Yarn")
	save(b, "put_need", "#put_need-asha-yarn", "description", "Silk yarn.")
	require.Equal(t, "Silk yarn.", own().Needs[0].Description)

	// What is refused stays as it was typed, and says what is wrong where it is wrong.
	before := own()
	require.Equal(t, 200, b.Open("/account/profile"))
	require.Equal(t, 422, b.Send("#put_own_profile-asha", "headline", "Hand-loom weaver", "tags", "हिन्दी, loom", "languages", "e!", "listed", ""))
	require.Equal(t, before, own())
	require.Equal(t, "Hand-loom weaver", value(b, "#put_own_profile-asha-headline"))
	require.Equal(t, "हिन्दी, loom", value(b, "#put_own_profile-asha-tags"))
	require.Equal(t, "“हिन्दी” is not a tag: 1 to 32 letters a to z, digits and _ . : -.", b.Text("#n-put_own_profile-asha-tags"))
	require.Equal(t, "“e!” is not a language such as Hindi, or its code such as hi.", b.Text("#n-put_own_profile-asha-languages"))
	require.Equal(t, 422, b.Send("#put_own_profile-asha", "tags", "loom", "timezone", "Nowhere", "languages", "en"))
	require.Equal(t, "This is not a time zone such as Asia/Kolkata.", b.Text("#n-put_own_profile-asha-timezone"))
	require.Empty(t, b.Text("#n-put_own_profile-asha-tags"))
	save(b, "put_own_profile", "", "timezone", "Asia/Kolkata")
	require.Equal(t, "Hand-loom weaver", own().Headline)
	require.False(t, *own().Listed, "the box stayed without its tick")
	require.Equal(t, 200, b.Open("/account/offers"))
	require.Equal(t, 422, b.Send("#put_need-asha", "id", "Two words", "description", "Something long."))
	require.Equal(t, "Something long.", value(b, "#put_need-asha-description"))
	require.Contains(t, b.Text("#n-put_need-asha-id"), "is not a short name")
	require.Equal(t, 200, b.Open("/account/tokens"))
	require.Equal(t, 422, b.Send("#create_token", "name", "For my program", "handle", "asha", "expiresInDays", "90"))
	require.Equal(t, "Tick at least one.", b.Text("#n-create_token-scopes"))
	require.Equal(t, "For my program", value(b, "#create_token-name"))
	require.Equal(t, "asha", value(b, "#create_token-handle"))

	require.Equal(t, 200, b.Send("#create_token", "scopes", "post,inbox"))
	secret := b.Text(".done pre")
	require.Equal(t, 200, h.Ask("GET", "/api/owner/account", "", "Authorization", "Bearer "+secret).Code)
	b.Saved["/account create_token"] = true
	require.Equal(t, 200, b.Open("/account/tokens"))
	save(b, "revoke_token", "")
	require.Equal(t, 401, h.Ask("GET", "/api/owner/account", "", "Authorization", "Bearer "+secret).Code)

	save(b, "put_notify", "", "mail", "notices@example.org", "webhook", "https://hook.example/n", "events", "post.hidden")
	save(b, "confirm_mail", "", "code", mailed(nodetest.CodeInMail))
	save(b, "make_key", "")
	save(b, "retire_key", "")
	save(b, "put_account_mail", "#put_account_mail", "mail", "new@example.org")
	require.Equal(t, 410, b.Send("#confirm_account_mail", "code", strings.Repeat("x", 32)))
	require.Contains(t, b.Text(".alert"), "code")
	save(b, "confirm_account_mail", "", "code", mailed(nodetest.CodeInMail))
	save(b, "put_account_mail", `form:has([value="put_account_mail"]):not([id])`)
	require.NoError(t, h.Admin().SetMail(t.Context(), acc.ID, "asha@example.org"))
	save(b, "delete_capability", "")
	save(b, "delete_need", "")
	require.Empty(t, own().Capabilities)
	require.Empty(t, own().Needs)
	elsewhere := must.Get(h.Admin().SignInLink(t.Context(), acc.ID))(t)
	h.SignIn(elsewhere)
	save(b, "end_session", "")
	h.SessionOf(acc.ID, 0)
	require.Equal(t, 200, b.Open("/account/security"))
	save(b, "end_other_sessions", "")
	require.Equal(t, 200, b.Send(`form:has([value="make_recovery_codes"])`))
	require.Len(t, strings.Fields(b.Text(".done pre")), protocol.RecoveryCodes)
	b.Saved["/account make_recovery_codes"] = true
	require.Equal(t, 200, b.Open("/account/profile"))

	// The session ends while its owner types.
	must.Get(h.Admin().SignOut(t.Context(), acc.ID))(t)
	require.Equal(t, 401, b.Send("#put_own_profile-asha", "headline", "Typed for an hour", "kinds", "support"))
	require.Contains(t, b.Text("h1"), "not signed in")
	require.Equal(t, "Typed for an hour", value(b, "#put_own_profile-asha-headline"))
	require.Equal(t, 401, b.Send("#put_own_profile-asha", "description", "And more."), "still")
	other := b.NewTab()
	signIn(other)
	save(b, "put_own_profile", "")
	require.Equal(t, "Typed for an hour", own().Headline)
	require.Equal(t, "And more.", own().Description)
	require.Equal(t, []string{"support"}, own().ContactPolicy.Kinds)
	require.False(t, *own().Listed)
	save(b, "put_account", "", "name", "Asha of the looms")
	require.Equal(t, 200, b.Open("/account"))
	for _, code := range []string{"hi", "en"} {
		require.Equal(t, 200, b.Send(`form[action="/language"]`))
		require.Equal(t, code, nodetest.Look[string](b, "document.documentElement.lang"))
		require.Equal(t, "/account", nodetest.Look[string](b, "location.pathname"))
	}
	b.Saved["/language "] = true
	require.Equal(t, 200, b.Send(`form[action="/sign-out"]`))
	b.Saved["/sign-out "] = true
	b.Saved["/account add_device"] = true // TestBrowser_Push
	require.Equal(t, 200, b.Open("/account"))
	require.Equal(t, "Sign in", b.Text("h1"), "nobody is signed in")

	require.Equal(t, slices.Sorted(maps.Keys(b.Forms)), slices.Sorted(maps.Keys(b.Saved)), "every form of these pages is saved by this test")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[string]bool{h.Base: true}, origins)
}

// TestAccountPage_Kept is what the account page keeps of a form that is not taken,
// whatever the reason, and from whom it takes none.
func TestAccountPage_Kept(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	_, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
	cookie := "stoa_session=" + h.SignIn(link)
	send := func(form url.Values, headers ...string) nodetest.Answer {
		return h.Ask("POST", "/account", form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html",
			"Cookie", cookie}, headers...)...)
	}
	ours := []string{"Sec-Fetch-Site", "same-origin", "Origin", h.Base}
	typed := url.Values{"do": {"put_account"}, "name": {"Typed <b>"}}

	for name, headers := range map[string][]string{
		"no origin told, as under no-referrer": {"Sec-Fetch-Site", "same-origin", "Origin", "null"},
		"two origins":                          {"Sec-Fetch-Site", "same-origin", "Origin", h.Base + ", " + h.Base},
	} {
		a := send(typed, headers...)
		require.Equal(t, 401, a.Code, name)
		require.NotEmpty(t, a.Header().Get("WWW-Authenticate"))
		require.Contains(t, a.Body.String(), "Your browser did not say", name)
		require.Contains(t, a.Body.String(), `value="Typed &lt;b&gt;"`, name)
		nodetest.ParsePage(t, "/account", a.Body.String()).WellFormed()
	}
	for name, headers := range map[string][]string{
		"a page elsewhere":                 {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
		"an old browser, a page elsewhere": {"Origin", "https://evil.example"},
		"an old browser, a sandboxed page": {"Origin", "null"},
	} {
		a := send(typed, headers...)
		require.Equal(t, 403, a.Code, name)
		require.Contains(t, a.Body.String(), "not sent by a page of this node", name)
		require.NotContains(t, a.Body.String(), "Typed", "a stranger's text is not offered to be saved")
	}
	for do, form := range map[string]url.Values{
		"put_account":          {"name": {"Typed"}},
		"put_own_profile":      {"handle": {"asha"}, "headline": {"Typed"}},
		"put_capability":       {"handle": {"asha"}, "id": {"weave"}, "description": {"Typed"}},
		"put_need":             {"handle": {"asha"}, "id": {"yarn"}, "description": {"Typed"}},
		"put_notify":           {"handle": {"asha"}, "webhook": {"Typed"}},
		"create_token":         {"name": {"Typed"}, "scopes": {"post"}},
		"put_account_mail":     {"mail": {"Typed"}},
		"confirm_mail":         {"handle": {"asha"}, "code": {"Typed"}},
		"confirm_account_mail": {"code": {"Typed"}},
		"delete_need":          {"handle": {"asha"}, "id": {"Typed"}},
		"retire_key":           {"handle": {"asha"}, "keyid": {"Typed"}},
	} {
		form.Set("do", do)
		a := send(form, append(ours, "Cookie", "stoa_session=ended")...)
		require.Equal(t, 401, a.Code, do)
		require.Contains(t, a.Body.String(), "has ended", do)
		require.Contains(t, a.Body.String(), "Typed", do)
		require.Contains(t, a.Body.String(), `name="do" value="`+do+`"`, do)
		nodetest.ParsePage(t, "/account", a.Body.String()).WellFormed()
	}
	a := h.Ask("GET", "/sign-in", "", "Accept", "text/html", "Cookie", "stoa_session=ended")
	require.Contains(t, a.Body.String(), "session of this browser has ended")
	require.NotContains(t, h.Ask("GET", "/sign-in", "", "Accept", "text/html").Body.String(), "has ended")

	require.NoError(t, h.Admin().UnlinkProfile(t.Context(), "asha"))
	a = send(url.Values{"do": {"put_own_profile"}, "handle": {"asha"}, "headline": {"Typed before it was given away"}}, ours...)
	require.Equal(t, 403, a.Code)
	require.Contains(t, a.Body.String(), "Typed before it was given away")

	long := url.Values{"do": {"put_account"}, "name": {strings.Repeat("ह", 5000)}}
	require.Equal(t, 422, send(long, ours...).Code, "within the bound of a form")
	require.Equal(t, 400, send(url.Values{"do": {"put_account"}, "name": {strings.Repeat("ह", 50_000)}}, ours...).Code)
}

// TestSignIn_Development: a node that sends no mail does not say that it did.
func TestSignIn_Development(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	require.Contains(t, h.Ask("GET", "/sign-in", "", "Accept", "text/html").Body.String(), "sends no mail")
	a := h.Ask("POST", "/sign-in", "mail=asha@example.org", "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html").Is(200)
	require.Contains(t, a.Body.String(), "log")
	require.NotContains(t, a.Body.String(), "on its way")
	h.Accounts.Mail = &nodetest.Postbox{}
	require.NotContains(t, h.Ask("GET", "/sign-in", "", "Accept", "text/html").Body.String(), "sends no mail")
}
