package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// ChromiumEnv names the browser of the tests, or is "none"; make test sets it.
const ChromiumEnv = "STOA_TEST_CHROMIUM"

// A tab is one of a headless Chromium.
type tab struct {
	ctx   context.Context
	t     *testing.T
	base  string
	forms map[string]bool // every form that a page had, by path and operation
	saved map[string]bool // those that were sent and did what they are for
}

// shared is what many tests of the package use and what ends after the last.
var shared struct {
	sync.Mutex
	ends []func()
}

func atEnd(end func()) {
	shared.Lock()
	defer shared.Unlock()
	shared.ends = append(shared.ends, end)
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range shared.ends {
		end()
	}
	os.Exit(code)
}

// sharedBrowser is the Chromium of all tests.
var sharedBrowser = sync.OnceValues(func() (context.Context, error) {
	ctx, end, err := startBrowser()
	atEnd(end)
	return ctx, err
})

// startBrowser starts a Chromium that reaches this machine and nothing else, nil when there is none.
func startBrowser(more ...chromedp.ExecAllocatorOption) (context.Context, func(), error) {
	program := os.Getenv(ChromiumEnv)
	for _, name := range []string{"chromium-headless-shell", "chromium"} {
		if program == "" {
			program, _ = exec.LookPath(name)
		}
	}
	if program == "" || program == "none" {
		return nil, func() {}, nil
	}
	flags := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(2*time.Minute),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"))
	all, stop := chromedp.NewExecAllocator(context.Background(), append(flags, more...)...)
	ctx, end := chromedp.NewContext(all)
	if err := chromedp.Do(ctx); err != nil {
		err = fmt.Errorf("start %s: %w", program, err)
		end()
		stop()
		return nil, func() {}, err
	}
	return ctx, func() { end(); stop() }, nil // waits for the browser, before its directory is deleted
}

// openBrowser opens a tab with nothing stored, no cookies and none of another test; with options in a
// Chromium of its own.
func openBrowser(t *testing.T, base string, more ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	browser, err := sharedBrowser()
	if err == nil && browser != nil && len(more) > 0 {
		var end func()
		browser, end, err = startBrowser(more...)
		t.Cleanup(end)
	}
	require.NoError(t, err)
	if browser == nil {
		t.Skipf("%s names no browser and there is no chromium: the pages were not tried in one (make test installs it)", ChromiumEnv)
	}
	ctx, end := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	require.NoError(t, chromedp.Do(ctx)) // with a context that lasts: the tab ends with that of its first action
	return &tab{ctx, t, base, map[string]bool{}, map[string]bool{}}
}

// newTab opens another tab of the browser.
func (b *tab) newTab() *tab {
	ctx, end := chromedp.NewContext(b.ctx)
	b.t.Cleanup(end)
	require.NoError(b.t, chromedp.Do(ctx))
	other := *b
	other.ctx = ctx
	return &other
}

// load runs what leads to another page and returns the status of that page.
func (b *tab) load(step chromedp.Action[chromedp.Void]) int {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, time.Minute)
	defer stop()
	res, err := chromedp.RunResponse(ctx, step)
	require.NoError(b.t, err)
	for _, f := range look[[]string](b,
		`[...document.forms].filter(f => f.method == "post").map(f => new URL(f.action).pathname + " " + (f.elements.do?.value ?? f.elements.ticket?.name ?? ""))`,
	) {
		b.forms[f] = true
	}
	return int(res.Status)
}

// look is the value of a JavaScript expression in the page.
func look[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, time.Minute)
	defer stop()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	return value
}

func (b *tab) open(path string) int { return b.load(chromedp.Navigate(b.base + path)) }

// send fills a form in, as a reader does, and presses its button.
func (b *tab) send(form string, fields ...string) int {
	b.t.Helper()
	b.fill(form, fields...)
	return b.load(chromedp.Click(chromedp.CSS(form + " button[type=submit]")))
}

// fill fills a form in.
func (b *tab) fill(form string, fields ...string) {
	b.t.Helper()
	given := map[string]string{}
	for i := 0; i < len(fields); i += 2 {
		given[fields[i]] = fields[i+1]
	}
	args, err := json.Marshal([]any{form, given})
	require.NoError(b.t, err)
	missing := look[[]string](b, `(([form, given]) => {
		const f = document.querySelector(form);
		if (!f) return [form];
		if (f.closest("details")) f.closest("details").open = true;
		for (const [name, value] of Object.entries(given)) {
			const all = [...f.elements].filter(e => e.name == name && e.type != "hidden");
			if (!all.length) return [form, name];
			for (const e of all) e.type == "checkbox" ? e.checked = value.split(",").includes(e.value) : e.value = value;
		}
		return [];
	})(`+string(args)+`)`)
	require.Empty(b.t, missing, "the page has no such form or field:\n%s", b.text("main"))
}

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
func (b *tab) save(do, form string, fields ...string) {
	b.t.Helper()
	if form == "" {
		form = `form:has(input[name="do"][value="` + do + `"])`
	}
	if !look[bool](b, `document.querySelector(`+quoted(form)+`) != null`) {
		require.Equal(b.t, 200, b.open(accountPage[do]))
	}
	require.Equal(b.t, 200, b.send(form, fields...), "%s: %s", do, b.text("main"))
	require.Regexp(b.t, "^"+regexp.QuoteMeta(b.base+accountPage[do]+"?done="+do)+"(&handle=asha)?$", look[string](b, "location.href"), b.text("main"))
	require.NotEmpty(b.t, b.text(".done"))
	b.saved["/account "+do] = true
}

// text is what an element shows, "" where there is none.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return look[string](b, `document.querySelector(`+quoted(selector)+`)?.innerText ?? ""`)
}

// value is what a field holds.
func (b *tab) value(selector string) string {
	b.t.Helper()
	return look[string](b, `document.querySelector(`+quoted(selector)+`)?.value ?? "(no such field)"`)
}

func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// TestBrowser signs in by a mailed link with a real browser and saves every form
// that the account pages have, as its user would.
func TestBrowser(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	h := newHouse(t, func(c *Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })
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
	b := openBrowser(t, h.Base)
	box := &postbox{}
	h.accounts.Mail = box
	h.run()
	h.hosted("asha")
	acc, _, err := h.Admin().OpenAccount(t.Context(), "Asha", protocol.RoleOwner, "asha@example.org", []string{"asha"})
	require.NoError(t, err)
	bearer := "Bearer " + h.ownerToken("asha")
	own := func() (p protocol.OwnProfile) {
		t.Helper()
		h.ask("GET", "/api/owner/profile?handle=asha", "", "Authorization", bearer).into(&p)
		return p
	}
	mailed := func(form *regexp.Regexp) (found string) { // other letters may come before
		for found == "" {
			found = form.FindString(box.next(t, h).Text)
		}
		return found
	}
	link := regexp.MustCompile(`http://\S+ticket=\S+`)
	signIn := func(b *tab) {
		t.Helper()
		require.Equal(t, 200, b.open("/sign-in"))
		require.Equal(t, 200, b.send("form:has(#mail)", "mail", "asha@example.org"))
		require.Contains(t, b.text("h1"), "mail")
		require.Equal(t, 200, b.load(chromedp.Navigate(mailed(link))))
		require.Equal(t, 200, b.send("form:has([name=ticket])"))
		require.Equal(t, "Asha", b.text("h1"))
		b.saved["/sign-in "], b.saved["/sign-in ticket"] = true, true
	}
	signIn(b)

	b.save("put_own_profile", "", "name", "Asha Rao", "headline", "Weaver", "description", "Cloth.\nTo order.", "tags", "#Paper, LOOM",
		"languages", "English, hindi", "regions", "Karnataka, in-tn", "timezone", "Asia/Kolkata", "agents", "true", "anonymous", "true",
		"kinds", "question,support", "responseTime", "a day", "listed", "true")
	p := own()
	require.Equal(t, "Cloth.\nTo order.", p.Description)
	require.Equal(t, []string{"paper", "loom"}, p.Tags)
	require.Equal(t, []string{"IN-KA", "IN-TN"}, p.Regions)
	require.Equal(t, []string{"en", "hi"}, p.Languages)
	require.Equal(t, "Karnataka, Tamil Nadu", b.value("#put_own_profile-asha-regions"))
	require.Equal(t, []string{"question", "support"}, p.ContactPolicy.Kinds)
	b.save("put_capability", "#put_capability-asha", "id", "weave", "name", "Weave", "description", "Cloth to order.", "tags", "Cloth", "pricing-model",
		"fixed", "pricing-amount", "120.5", "pricing-currency", "inr")
	b.save("put_capability", "#put_capability-asha-weave", "name", "Weave cloth")
	require.Equal(t, "Weave cloth", own().Capabilities[0].Name)
	require.Equal(t, "INR", own().Capabilities[0].Pricing.Currency)
	b.save("put_need", "#put_need-asha", "id", "yarn", "description", "Cotton yarn.", "tags", "Yarn")
	b.save("put_need", "#put_need-asha-yarn", "description", "Silk yarn.")
	require.Equal(t, "Silk yarn.", own().Needs[0].Description)

	// What is refused stays as it was typed, and says what is wrong where it is wrong.
	before := own()
	require.Equal(t, 200, b.open("/account/profile"))
	require.Equal(t, 422, b.send("#put_own_profile-asha", "headline", "Hand-loom weaver", "tags", "हिन्दी, loom", "languages", "e!", "listed", ""))
	require.Equal(t, before, own())
	require.Equal(t, "Hand-loom weaver", b.value("#put_own_profile-asha-headline"))
	require.Equal(t, "हिन्दी, loom", b.value("#put_own_profile-asha-tags"))
	require.Equal(t, "“हिन्दी” is not a tag: 1 to 32 letters a to z, digits and _ . : -.", b.text("#n-put_own_profile-asha-tags"))
	require.Equal(t, "“e!” is not a language such as Hindi, or its code such as hi.", b.text("#n-put_own_profile-asha-languages"))
	require.Equal(t, 422, b.send("#put_own_profile-asha", "tags", "loom", "timezone", "Nowhere", "languages", "en"))
	require.Equal(t, "This is not a time zone such as Asia/Kolkata.", b.text("#n-put_own_profile-asha-timezone"))
	require.Empty(t, b.text("#n-put_own_profile-asha-tags"))
	b.save("put_own_profile", "", "timezone", "Asia/Kolkata")
	require.Equal(t, "Hand-loom weaver", own().Headline)
	require.False(t, *own().Listed, "the box stayed without its tick")
	require.Equal(t, 200, b.open("/account/offers"))
	require.Equal(t, 422, b.send("#put_need-asha", "id", "Two words", "description", "Something long."))
	require.Equal(t, "Something long.", b.value("#put_need-asha-description"))
	require.Contains(t, b.text("#n-put_need-asha-id"), "is not a short name")
	require.Equal(t, 200, b.open("/account/tokens"))
	require.Equal(t, 422, b.send("#create_token", "name", "For my program", "handle", "asha", "expiresInDays", "90"))
	require.Equal(t, "Tick at least one.", b.text("#n-create_token-scopes"))
	require.Equal(t, "For my program", b.value("#create_token-name"))
	require.Equal(t, "asha", b.value("#create_token-handle"))

	require.Equal(t, 200, b.send("#create_token", "scopes", "post,inbox"))
	secret := b.text(".done pre")
	require.Equal(t, 200, h.ask("GET", "/api/owner/account", "", "Authorization", "Bearer "+secret).Code)
	b.saved["/account create_token"] = true
	require.Equal(t, 200, b.open("/account/tokens"))
	b.save("revoke_token", "")
	require.Equal(t, 401, h.ask("GET", "/api/owner/account", "", "Authorization", "Bearer "+secret).Code)

	b.save("put_notify", "", "mail", "notices@example.org", "webhook", "https://hook.example/n", "events", "post.hidden")
	b.save("confirm_mail", "", "code", mailed(codeInMail))
	b.save("make_key", "")
	b.save("retire_key", "")
	b.save("put_account_mail", "#put_account_mail", "mail", "new@example.org")
	require.Equal(t, 410, b.send("#confirm_account_mail", "code", strings.Repeat("x", 32)))
	require.Contains(t, b.text(".alert"), "code")
	b.save("confirm_account_mail", "", "code", mailed(codeInMail))
	b.save("put_account_mail", `form:has([value="put_account_mail"]):not([id])`)
	require.NoError(t, h.Admin().SetMail(t.Context(), acc.ID, "asha@example.org"))
	b.save("delete_capability", "")
	b.save("delete_need", "")
	require.Empty(t, own().Capabilities)
	require.Empty(t, own().Needs)
	elsewhere, err := h.Admin().SignInLink(t.Context(), acc.ID)
	require.NoError(t, err)
	h.signIn(elsewhere)
	b.save("end_session", "")
	h.sessionOf(acc.ID, 0)
	require.Equal(t, 200, b.open("/account/security"))
	b.save("end_other_sessions", "")
	require.Equal(t, 200, b.send(`form:has([value="make_recovery_codes"])`))
	require.Len(t, strings.Fields(b.text(".done pre")), protocol.RecoveryCodes)
	b.saved["/account make_recovery_codes"] = true
	require.Equal(t, 200, b.open("/account/profile"))

	// The session ends while its owner types.
	_, err = h.Admin().SignOut(t.Context(), acc.ID)
	require.NoError(t, err)
	require.Equal(t, 401, b.send("#put_own_profile-asha", "headline", "Typed for an hour", "kinds", "support"))
	require.Contains(t, b.text("h1"), "not signed in")
	require.Equal(t, "Typed for an hour", b.value("#put_own_profile-asha-headline"))
	require.Equal(t, 401, b.send("#put_own_profile-asha", "description", "And more."), "still")
	other := b.newTab()
	signIn(other)
	b.save("put_own_profile", "")
	require.Equal(t, "Typed for an hour", own().Headline)
	require.Equal(t, "And more.", own().Description)
	require.Equal(t, []string{"support"}, own().ContactPolicy.Kinds)
	require.False(t, *own().Listed)
	b.save("put_account", "", "name", "Asha of the looms")
	require.Equal(t, 200, b.open("/account"))
	for _, code := range []string{"hi", "en"} {
		require.Equal(t, 200, b.send(`form[action="/language"]`))
		require.Equal(t, code, look[string](b, "document.documentElement.lang"))
		require.Equal(t, "/account", look[string](b, "location.pathname"))
	}
	b.saved["/language "] = true
	require.Equal(t, 200, b.send(`form[action="/sign-out"]`))
	b.saved["/sign-out "] = true
	require.Equal(t, 200, b.open("/account"))
	require.Equal(t, "Sign in", b.text("h1"), "nobody is signed in")

	require.Equal(t, slices.Sorted(maps.Keys(b.forms)), slices.Sorted(maps.Keys(b.saved)), "every form of these pages is saved by this test")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[string]bool{h.Base: true}, origins)
}

// TestAccountPage_Kept is what the account page keeps of a form that is not taken,
// whatever the reason, and from whom it takes none.
func TestAccountPage_Kept(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.hosted("asha")
	_, link, err := h.Admin().OpenAccount(t.Context(), "Asha", protocol.RoleOwner, "", []string{"asha"})
	require.NoError(t, err)
	cookie := "stoa_session=" + h.signIn(link)
	send := func(form url.Values, headers ...string) answer {
		return h.ask("POST", "/account", form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html",
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
		parsePage(t, "/account", a.Body.String()).wellFormed()
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
		parsePage(t, "/account", a.Body.String()).wellFormed()
	}
	a := h.ask("GET", "/sign-in", "", "Accept", "text/html", "Cookie", "stoa_session=ended")
	require.Contains(t, a.Body.String(), "session of this browser has ended")
	require.NotContains(t, h.ask("GET", "/sign-in", "", "Accept", "text/html").Body.String(), "has ended")

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
	h := newHouse(t)
	require.Contains(t, h.ask("GET", "/sign-in", "", "Accept", "text/html").Body.String(), "sends no mail")
	a := h.ask("POST", "/sign-in", "mail=asha@example.org", "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html")
	require.Equal(t, 200, a.Code)
	require.Contains(t, a.Body.String(), "log")
	require.NotContains(t, a.Body.String(), "on its way")
	h.accounts.Mail = &postbox{}
	require.NotContains(t, h.ask("GET", "/sign-in", "", "Accept", "text/html").Body.String(), "sends no mail")
}
