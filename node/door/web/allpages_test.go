package web_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/door/web"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// What the tests of all pages are told by the environment.
const (
	AxeEnv         = "STOA_TEST_AXE"         // path of axe-core; make test sets it
	AllPagesEnv    = "STOA_TEST_PAGES"       // "all": dark and in Hindi too, and the public pages signed in; make soak sets it
	ScreenshotsEnv = "STOA_TEST_SCREENSHOTS" // directory for a picture of each page; make screenshots sets it
)

// A town is a running node with something on every page.
type town struct {
	*nodetest.House
	cookie string   // of the account of asha and rao-tiffins
	kiran  string   // of an operator's account
	public []string // pages that anyone may read
	lists  []string // those with a list
}

// newTown fills a node with the agents and posts of a local world.
func newTown(t *testing.T) *town {
	server := httptest.NewUnstartedServer(nil)
	h := nodetest.New(t, func(c *node.Config) {
		c.BaseURL, c.Name = "http://"+server.Listener.Addr().String(), "Stoa of Bengaluru"
		c.OwnerInvitations = 5
	})
	server.Config.Handler = h.Handler()
	server.Start()
	t.Cleanup(server.Close)
	runPulse(h)
	var agents []struct {
		Profile, Merchant, Meetings, Attention json.RawMessage
	}
	require.NoError(t, json.Unmarshal(must.Get(os.ReadFile(nodetest.Source("cmd/stoa/seed.json")))(t), &agents))
	tokens := map[string]string{}
	for _, a := range agents {
		p, _, err := h.Admin().PutProfile(t.Context(), a.Profile)
		require.NoError(t, err)
		if a.Merchant != nil {
			must.Get(h.Admin().PutMerchant(t.Context(), p.Handle, a.Merchant))(t)
		}
		secret := h.OwnerToken(p.Handle)
		tokens[p.Handle] = "Bearer " + secret
		if a.Meetings != nil {
			require.Equal(t, 200, h.Ask("PUT", "/api/owner/meeting-settings", string(a.Meetings), "Authorization", "Bearer "+secret).Code)
		}
		if a.Attention != nil {
			h.TakeBids(p.Handle)
		}
	}
	post := seedBoard(t, h, tokens)
	_, link := h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha", "rao-tiffins")
	for i := range 3 {
		body := fmt.Sprintf(`{"message":"Do you bring lunch for %d people to Jayanagar from Monday?","name":"Meera"}`, 3*i+3)
		require.Equal(t, 201, h.Ask("POST", "/api/public/agents/rao-tiffins/contact", body, "Proof-Of-Work", h.Proof("contact")).Code)
	}
	for _, note := range []string{"For Ravi, who repairs looms", ""} {
		h.Ask("POST", "/api/owner/invitations", fmt.Sprintf(`{"note":%q}`, note), "Authorization", tokens["asha"]).Is(201)
	}
	troubled(h)
	w := &town{House: h, cookie: h.SignIn(link), kiran: h.SignInOperator(), lists: []string{"/board", "/agents", "/people", "/merchants", "/feed"}}
	for _, e := range web.Entries() {
		for _, handle := range []string{"asha", "rao-tiffins"} {
			path := strings.NewReplacer("{handle}", handle, "{id}", post, "{code}", "pow-required").Replace(e.Path)
			ofShop := e.Path == "/@{handle}/reviews"
			meant := e.Path == "/@{handle}" || ofShop == (handle != "asha") // shops take no meetings and bids
			if meant && !slices.Contains(w.public, path) {
				w.public = append(w.public, path)
			}
		}
	}
	w.public = append(w.public, "/sign-in", "/board?kind=offer&q=nothing", "/@nobody", "/agents?region=Nowhere")
	return w
}

// seedBoard writes the posts of a local world, and some pages of others; it returns one with replies.
func seedBoard(t *testing.T, h *nodetest.House, tokens map[string]string) (withReplies string) {
	var posts []struct {
		ID, By, Re, Kind, Title, Body string
		Tags                          []string
	}
	require.NoError(t, json.Unmarshal(must.Get(os.ReadFile(nodetest.Source("cmd/stoa/seedposts.json")))(t), &posts))
	for i := range 40 {
		h.Post(fmt.Sprintf("Office lunch for %d people, brought by half past twelve", i+2))
	}
	ids := map[string]string{}
	for _, p := range posts {
		in := protocol.NewPost{Kind: protocol.PostKind(p.Kind), Title: p.Title, Body: p.Body, Tags: p.Tags, InReplyTo: ids[p.Re]}
		headers := []string{"Authorization", tokens[p.By]}
		if tokens[p.By] == "" {
			in.Name = p.By
			headers = []string{"Proof-Of-Work", h.Proof("board")}
		}
		var made protocol.Post
		a := h.Ask("POST", "/api/public/board", string(nodetest.Encoded(in)), headers...).Is(201)
		a.Into(&made)
		ids[p.ID] = made.ID
		if ids[p.Re] != "" && withReplies == "" {
			withReplies = ids[p.Re]
		}
	}
	return withReplies
}

// faults collects what a tab complains about in its console.
type faults struct {
	mu   sync.Mutex
	said []string
}

func (f *faults) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	said := f.said
	f.said = nil
	return said
}

func do(b *nodetest.Tab, step chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	ctx, stop := context.WithTimeout(b.Ctx, time.Minute)
	defer stop()
	require.NoError(b.T, chromedp.Do(ctx, step))
}

// listen collects exceptions, errors and refused loads; pages that are refused as such may say so.
func listen(b *nodetest.Tab) *faults {
	b.T.Helper()
	f := &faults{}
	note := func(format string, args ...any) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.said = append(f.said, fmt.Sprintf(format, args...))
	}
	require.NoError(b.T, chromedp.Listen(b.Ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			note("exception: %s", e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" || e.Type == "warning" {
				note("console: %s", e.Type)
			}
		case *log.EventEntryAdded:
			if page := strings.Contains(e.Entry.Text, "the server responded with a status of 4"); e.Entry.Level == log.EntryLevelError && !page {
				note("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
			}
		}
	}))
	do(b, devCall(log.Enable, cdp.Empty{}))
	return f
}

// dark sets the colours that the reader prefers.
func dark(b *nodetest.Tab, on bool) {
	scheme := "light"
	if on {
		scheme = "dark"
	}
	do(b, devCall(emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
}

// A report is what holds for every page, as seen in it.
type report struct {
	Width   int      // of the window
	Scroll  int      // of the page
	Shift   float64  // cumulative layout shift
	Bytes   int      // of the page and what it loads, as they come over the wire
	First   float64  // bottom of the first item of a list
	Checked int      // rules that axe found to hold
	Wrong   []string // and those that it did not
}

// see looks at the page that is open. axe is the source of axe-core, "" to leave it out.
func see(b *nodetest.Tab, axe string) (r report) {
	b.T.Helper()
	r = nodetest.Look[report](b, `(async () => {
		const entries = kind => performance.getEntriesByType(kind);
		let shift = 0;
		const observer = new PerformanceObserver(list => { for (const e of list.getEntries()) shift += e.value; });
		observer.observe({ type: "layout-shift", buffered: true });
		await document.fonts.ready;
		await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
		for (const e of observer.takeRecords()) shift += e.value;
		const first = document.querySelector("main .row, main .list .card");
		return {
			Width: innerWidth, Scroll: document.documentElement.scrollWidth, Shift: shift,
			Bytes: [...entries("navigation"), ...entries("resource")].reduce((sum, e) => sum + e.encodedBodySize, 0),
			First: first ? first.getBoundingClientRect().bottom + scrollY : 0,
		};
	})()`)
	if axe == "" {
		return r
	}
	found := nodetest.Look[report](b, `(async () => { `+axe+`
		const r = await axe.run(document, {
			runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], rules: { "target-size": { enabled: true } }, resultTypes: ["violations"],
		});
		return { Checked: r.passes.length, Wrong: r.violations.flatMap(v => v.nodes.map(n => v.id + " " + n.target + " " + n.failureSummary)) };
	})()`)
	r.Checked, r.Wrong = found.Checked, found.Wrong
	return r
}

// accountPages visits the pages that are reached from that of the account, with visit where it opens a page,
// and returns their paths.
func accountPages(b *nodetest.Tab, visit func(path string)) (paths []string) {
	b.T.Helper()
	queue := []string{"/account"}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if slices.Contains(paths, path) {
			continue
		}
		paths = append(paths, path)
		visit(path)
		queue = append(queue, nodetest.Look[[]string](b,
			`[...document.querySelectorAll('main a[href^="/account"]')].map(a => a.pathname).filter(p => !/export|archive|\.csv/.test(p))`)...)
	}
	return paths
}

// TestAllPages walks every page of a filled node in one browser, as a phone has it: nothing that axe finds at
// WCAG 2.2 AA, nothing in the console, nothing that moves or is wider than the window, little to load, and
// everything to read without script.
func TestAllPages(t *testing.T) {
	t.Parallel()
	if os.Getenv(AxeEnv) == "" {
		t.Skipf("%s does not name axe-core: the pages were not checked (make test installs it)", AxeEnv)
	}
	axe := must.Get(os.ReadFile(os.Getenv(AxeEnv)))(t)
	w := newTown(t)
	b := nodetest.OpenBrowser(t, w.Base)
	said := listen(b)
	all := os.Getenv(AllPagesEnv) == "all"
	do(b, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	var wrong []string
	check := func(path string) {
		t.Helper()
		status := map[string]int{"/@nobody": 404, "/agents?region=Nowhere": 422}[path]
		require.Equal(t, cmp.Or(status, 200), b.Open(path), path)
		r := see(b, string(axe))
		require.Greater(t, r.Checked, 5, path)
		for _, fault := range append(r.Wrong, said.take()...) {
			wrong = append(wrong, path+": "+fault)
		}
		expect := func(holds bool, format string, args ...any) {
			if !holds {
				wrong = append(wrong, path+": "+fmt.Sprintf(format, args...))
			}
		}
		expect(r.Scroll <= 390, "%d pixels wide", r.Scroll)
		expect(r.Shift == 0, "layout shift of %g", r.Shift)
		if slices.Contains(w.lists, path) {
			expect(r.Bytes <= 60_000, "%d bytes of a first visit", r.Bytes)
			expect(r.First > 0 && r.First <= 844, "the first result ends at %g, below the first screen", r.First)
		}
	}
	for _, path := range w.public {
		check(path)
	}
	if all {
		inHindi(b, true)
		for _, path := range w.public {
			check(path)
		}
		inHindi(b, false)
		dark(b, true)
		for _, path := range w.public {
			check(path)
		}
		dark(b, false)
	}
	walkByKeys(b)
	signedIn(b, w.kiran)
	operators := accountPages(b, func(path string) {
		if strings.HasPrefix(path, "/account/node") {
			check(path)
		} else {
			b.Open(path)
		}
	})
	require.Contains(t, operators, "/account/node/audit")
	if all {
		dark(b, true)
		for _, path := range operators {
			if strings.HasPrefix(path, "/account/node") {
				check(path)
			}
		}
		dark(b, false)
	}
	signedIn(b, w.cookie)
	own := accountPages(b, check)
	require.Greater(t, len(own), 5, "%v", own)
	if all {
		for _, path := range w.public {
			check(path)
		}
		dark(b, true)
		for _, path := range append(own, w.public...) {
			check(path)
		}
		inHindi(b, true)
		for _, path := range append(own, w.public...) {
			check(path)
		}
		inHindi(b, false)
	}

	require.Empty(t, wrong)

	scripts(b, false)
	for path, text := range map[string]string{
		"/": "Find a shop", "/board": "Office lunch", "/merchants": "Rao Tiffins", "/@rao-tiffins": "Opening hours", "/feed": "Office lunch", "/account": "Asha",
	} {
		b.Open(path)
		require.Contains(t, b.Text("main"), text, "%s without script", path)
	}
}

// walkByKeys does what visitors do most with the keyboard alone: finds a shop, asks it, posts, and reports a post.
func walkByKeys(b *nodetest.Tab) {
	b.T.Helper()
	to := func(selector string) { // Tab by Tab, as far as the focus goes
		b.T.Helper()
		for range 150 {
			do(b, chromedp.KeyEvent(kb.Tab))
			if nodetest.Look[bool](b, `document.activeElement.matches(`+nodetest.Quoted(selector)+`)`) {
				require.NotEqual(b.T, "none 0px", nodetest.Look[string](b,
					`(s => s.outlineStyle + " " + s.outlineWidth)(getComputedStyle(document.activeElement))`), "%s shows the focus", selector)
				return
			}
		}
		require.Fail(b.T, "the keyboard does not reach "+selector)
	}
	enter := func() { b.T.Helper(); require.Equal(b.T, 200, b.Load(chromedp.KeyEvent(kb.Enter))) }
	b.Open("/")
	to(`main a[href="/merchants"]`)
	enter()
	to(`h2 a[href="/@rao-tiffins"]`)
	enter()
	to(`a[href="#to-write"]`)
	do(b, chromedp.KeyEvent(kb.Enter))
	to("#write-message")
	do(b, chromedp.KeyEvent("Is there lunch on Friday?"))
	to("#write button[type=submit]")
	enter()
	require.Contains(b.T, b.Text("main"), "Is there lunch on Friday?")
	to(`nav a[href="/board"]`)
	enter()
	to(`a[href="#to-post"]`)
	do(b, chromedp.KeyEvent(kb.Enter))
	to("#post-title")
	do(b, chromedp.KeyEvent("Who brings lunch?"))
	to("#post-body")
	do(b, chromedp.KeyEvent("For nine people."))
	to("#post button[type=submit]")
	enter()
	require.Equal(b.T, "Who brings lunch?", b.Text("h1"))
	to("#to-report ~ details summary")
	do(b, chromedp.KeyEvent(kb.Enter))
	to("#report-reason")
	do(b, chromedp.KeyEvent("Spam."))
	to("#report button[type=submit]")
	enter()
	require.Equal(b.T, "Reported", b.Text("h1"))
}

// signedIn gives the browser the session of the account.
func signedIn(b *nodetest.Tab, cookie string) {
	do(b, devCall(network.SetCookie, network.SetCookieParams{Name: "stoa_session", Value: cookie, URL: b.Base + "/"}))
}

// inHindi gives the browser the cookie of the switch of languages, for Hindi or English.
func inHindi(b *nodetest.Tab, on bool) {
	code := "en"
	if on {
		code = "hi"
	}
	do(b, devCall(network.SetCookie, network.SetCookieParams{Name: "stoa_language", Value: code, URL: b.Base + "/"}))
}

// TestScreenshots makes a picture of each page: phone and desk, light and dark, and on a phone in Hindi.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv(ScreenshotsEnv)
	if dir == "" {
		t.Skipf("%s names no directory (make screenshots)", ScreenshotsEnv)
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	w := newTown(t)
	b := nodetest.OpenBrowser(t, w.Base)
	take := func(path, name string) {
		for _, s := range []struct {
			name          string
			width, height int64
			dark, hindi   bool
		}{
			{"phone-light", 390, 844, false, false}, {"phone-dark", 390, 844, true, false}, {"phone-hindi", 390, 844, false, true},
			{"desk-light", 1280, 1000, false, false}, {"desk-dark", 1280, 1000, true, false},
		} {
			do(b, chromedp.EmulateViewport(s.width, s.height))
			dark(b, s.dark)
			inHindi(b, s.hindi)
			b.Open(path)
			ctx, stop := context.WithTimeout(b.Ctx, time.Minute)
			picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
			stop()
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name+"."+s.name+".png"), picture, 0o644))
		}
	}
	file := func(path string) string {
		return strings.Trim(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
				return r
			}
			return '_'
		}, strings.TrimPrefix(path, "/")), "_")
	}
	for _, path := range w.public {
		take(path, "public-"+file(path))
	}
	signedIn(b, w.cookie)
	for _, path := range accountPages(b, func(path string) { b.Open(path) }) {
		take(path, file(path))
	}
	signedIn(b, w.kiran)
	for _, path := range accountPages(b, func(path string) { b.Open(path) }) {
		if strings.HasPrefix(path, "/account/node") {
			take(path, file(path))
		}
	}
}

// devCall is a command of the browser's protocol as a step.
func devCall[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}
