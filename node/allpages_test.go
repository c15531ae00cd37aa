package node

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

	"stoa/node/door/web"
	"stoa/protocol"
)

// What the tests of all pages are told by the environment.
const (
	AxeEnv         = "STOA_TEST_AXE"         // path of axe-core; make test sets it
	AllPagesEnv    = "STOA_TEST_PAGES"       // "all": dark and in Hindi too, and the public pages signed in; make soak sets it
	ScreenshotsEnv = "STOA_TEST_SCREENSHOTS" // directory for a picture of each page; make screenshots sets it
)

// A town is a running node with something on every page.
type town struct {
	*house
	cookie string   // of the account of asha and rao-tiffins
	kiran  string   // of an operator's account
	public []string // pages that anyone may read
	lists  []string // those with a list
}

// newTown fills a node with the agents and posts of a local world.
func newTown(t *testing.T) *town {
	server := httptest.NewUnstartedServer(nil)
	h := newHouse(t, func(c *Config) { c.BaseURL, c.Name = "http://"+server.Listener.Addr().String(), "Stoa of Bengaluru" })
	server.Config.Handler = h.Handler()
	server.Start()
	t.Cleanup(server.Close)
	h.runPulse()
	var agents []struct {
		Profile, Merchant, Meetings, Attention json.RawMessage
	}
	raw, err := os.ReadFile("../cmd/stoa/seed.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &agents))
	tokens := map[string]string{}
	for _, a := range agents {
		p, _, err := h.Admin().PutProfile(t.Context(), a.Profile)
		require.NoError(t, err)
		if a.Merchant != nil {
			_, err = h.Admin().PutMerchant(t.Context(), p.Handle, a.Merchant)
			require.NoError(t, err)
		}
		secret := h.ownerToken(p.Handle)
		tokens[p.Handle] = "Bearer " + secret
		if a.Meetings != nil {
			require.Equal(t, 200, h.ask("PUT", "/api/owner/meeting-settings", string(a.Meetings), "Authorization", "Bearer "+secret).Code)
		}
		if a.Attention != nil {
			h.takeBids(p.Handle)
		}
	}
	post := seedBoard(t, h, tokens)
	_, link, err := h.Admin().OpenAccount(t.Context(), "Asha", protocol.RoleOwner, "asha@example.org", []string{"asha", "rao-tiffins"})
	require.NoError(t, err)
	for i := range 3 {
		body := fmt.Sprintf(`{"message":"Do you bring lunch for %d people to Jayanagar from Monday?","name":"Meera"}`, 3*i+3)
		require.Equal(t, 201, h.ask("POST", "/api/public/agents/rao-tiffins/contact", body, "Proof-Of-Work", h.proof("contact")).Code)
	}
	h.troubled()
	w := &town{house: h, cookie: h.signIn(link), kiran: h.signInOperator(), lists: []string{"/board", "/agents", "/people", "/merchants", "/feed"}}
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
func seedBoard(t *testing.T, h *house, tokens map[string]string) (withReplies string) {
	var posts []struct {
		ID, By, Re, Kind, Title, Body string
		Tags                          []string
	}
	raw, err := os.ReadFile("../cmd/stoa/seedposts.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &posts))
	for i := range 40 {
		h.post(fmt.Sprintf("Office lunch for %d people, brought by half past twelve", i+2))
	}
	ids := map[string]string{}
	for _, p := range posts {
		in := protocol.NewPost{Kind: protocol.PostKind(p.Kind), Title: p.Title, Body: p.Body, Tags: p.Tags, InReplyTo: ids[p.Re]}
		headers := []string{"Authorization", tokens[p.By]}
		if tokens[p.By] == "" {
			in.Name = p.By
			headers = []string{"Proof-Of-Work", h.proof("board")}
		}
		var made protocol.Post
		a := h.ask("POST", "/api/public/board", string(encoded(in)), headers...)
		require.Equal(t, 201, a.Code, "%s", a.Body)
		a.into(&made)
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

func (b *tab) do(step chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, time.Minute)
	defer stop()
	require.NoError(b.t, chromedp.Do(ctx, step))
}

// listen collects exceptions, errors and refused loads; pages that are refused as such may say so.
func (b *tab) listen() *faults {
	b.t.Helper()
	f := &faults{}
	note := func(format string, args ...any) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.said = append(f.said, fmt.Sprintf(format, args...))
	}
	require.NoError(b.t, chromedp.Listen(b.ctx, func(ev any) {
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
	b.do(devCall(log.Enable, cdp.Empty{}))
	return f
}

// dark sets the colours that the reader prefers.
func (b *tab) dark(on bool) {
	scheme := "light"
	if on {
		scheme = "dark"
	}
	b.do(devCall(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
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
func (b *tab) see(axe string) (r report) {
	b.t.Helper()
	r = look[report](b, `(async () => {
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
	found := look[report](b, axe+`;axe.run(document, {
		runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], rules: { "target-size": { enabled: true } }, resultTypes: ["violations"],
	}).then(r => ({ Checked: r.passes.length, Wrong: r.violations.flatMap(v => v.nodes.map(n => v.id + " " + n.target + " " + n.failureSummary)) }))`)
	r.Checked, r.Wrong = found.Checked, found.Wrong
	return r
}

// accountPages visits the pages that are reached from that of the account, with visit where it opens a page,
// and returns their paths.
func (b *tab) accountPages(visit func(path string)) (paths []string) {
	b.t.Helper()
	queue := []string{"/account"}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if slices.Contains(paths, path) {
			continue
		}
		paths = append(paths, path)
		visit(path)
		queue = append(queue, look[[]string](b,
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
	axe, err := os.ReadFile(os.Getenv(AxeEnv))
	require.NoError(t, err)
	w := newTown(t)
	b := openBrowser(t, w.Base)
	said := b.listen()
	all := os.Getenv(AllPagesEnv) == "all"
	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	var wrong []string
	check := func(path string) {
		t.Helper()
		status := map[string]int{"/@nobody": 404, "/agents?region=Nowhere": 422}[path]
		require.Equal(t, cmp.Or(status, 200), b.open(path), path)
		r := b.see(string(axe))
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
		b.inHindi(w, true)
		for _, path := range w.public {
			check(path)
		}
		b.inHindi(w, false)
		b.dark(true)
		for _, path := range w.public {
			check(path)
		}
		b.dark(false)
	}
	b.walkByKeys()
	b.signedIn(w.kiran)
	operators := b.accountPages(func(path string) {
		if strings.HasPrefix(path, "/account/node") {
			check(path)
		} else {
			b.open(path)
		}
	})
	require.Contains(t, operators, "/account/node/audit")
	if all {
		b.dark(true)
		for _, path := range operators {
			if strings.HasPrefix(path, "/account/node") {
				check(path)
			}
		}
		b.dark(false)
	}
	b.signedIn(w.cookie)
	own := b.accountPages(check)
	require.Greater(t, len(own), 5, "%v", own)
	if all {
		for _, path := range w.public {
			check(path)
		}
		b.dark(true)
		for _, path := range append(own, w.public...) {
			check(path)
		}
		b.inHindi(w, true)
		for _, path := range append(own, w.public...) {
			check(path)
		}
		b.inHindi(w, false)
	}

	require.Empty(t, wrong)

	b.do(devCall(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	for path, text := range map[string]string{
		"/": "Find a shop", "/board": "Office lunch", "/merchants": "Rao Tiffins", "/@rao-tiffins": "Opening hours", "/feed": "Office lunch", "/account": "Asha",
	} {
		b.open(path)
		require.Contains(t, b.text("main"), text, "%s without script", path)
	}
}

// walkByKeys does what visitors do most with the keyboard alone: finds a shop, asks it, posts, and reports a post.
func (b *tab) walkByKeys() {
	b.t.Helper()
	to := func(selector string) { // Tab by Tab, as far as the focus goes
		b.t.Helper()
		for range 150 {
			b.do(chromedp.KeyEvent(kb.Tab))
			if look[bool](b, `document.activeElement.matches(`+quoted(selector)+`)`) {
				require.NotEqual(b.t, "none 0px", look[string](b,
					`(s => s.outlineStyle + " " + s.outlineWidth)(getComputedStyle(document.activeElement))`), "%s shows the focus", selector)
				return
			}
		}
		require.Fail(b.t, "the keyboard does not reach "+selector)
	}
	enter := func() { b.t.Helper(); require.Equal(b.t, 200, b.load(chromedp.KeyEvent(kb.Enter))) }
	b.open("/")
	to(`main a[href="/merchants"]`)
	enter()
	to(`h2 a[href="/@rao-tiffins"]`)
	enter()
	to(`a[href="#to-write"]`)
	b.do(chromedp.KeyEvent(kb.Enter))
	to("#write-message")
	b.do(chromedp.KeyEvent("Is there lunch on Friday?"))
	to("#write button[type=submit]")
	enter()
	require.Contains(b.t, b.text("main"), "Is there lunch on Friday?")
	to(`nav a[href="/board"]`)
	enter()
	to(`a[href="#to-post"]`)
	b.do(chromedp.KeyEvent(kb.Enter))
	to("#post-title")
	b.do(chromedp.KeyEvent("Who brings lunch?"))
	to("#post-body")
	b.do(chromedp.KeyEvent("For nine people."))
	to("#post button[type=submit]")
	enter()
	require.Equal(b.t, "Who brings lunch?", b.text("h1"))
	to("#to-report ~ details summary")
	b.do(chromedp.KeyEvent(kb.Enter))
	to("#report-reason")
	b.do(chromedp.KeyEvent("Spam."))
	to("#report button[type=submit]")
	enter()
	require.Equal(b.t, "Reported", b.text("h1"))
}

// signedIn gives the browser the session of the account.
func (b *tab) signedIn(cookie string) {
	b.do(devCall(network.SetCookie, network.SetCookieParams{Name: "stoa_session", Value: cookie, URL: b.base + "/"}))
}

// inHindi gives the browser the cookie of the switch of languages, for Hindi or English.
func (b *tab) inHindi(w *town, on bool) {
	code := "en"
	if on {
		code = "hi"
	}
	b.do(devCall(network.SetCookie, network.SetCookieParams{Name: "stoa_language", Value: code, URL: w.Base + "/"}))
}

// TestScreenshots makes a picture of each page: phone and desk, light and dark, and on a phone in Hindi.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv(ScreenshotsEnv)
	if dir == "" {
		t.Skipf("%s names no directory (make screenshots)", ScreenshotsEnv)
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	w := newTown(t)
	b := openBrowser(t, w.Base)
	take := func(path, name string) {
		for _, s := range []struct {
			name          string
			width, height int64
			dark, hindi   bool
		}{
			{"phone-light", 390, 844, false, false}, {"phone-dark", 390, 844, true, false}, {"phone-hindi", 390, 844, false, true},
			{"desk-light", 1280, 1000, false, false}, {"desk-dark", 1280, 1000, true, false},
		} {
			b.do(chromedp.EmulateViewport(s.width, s.height))
			b.dark(s.dark)
			b.inHindi(w, s.hindi)
			b.open(path)
			ctx, stop := context.WithTimeout(b.ctx, time.Minute)
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
	b.signedIn(w.cookie)
	for _, path := range b.accountPages(func(path string) { b.open(path) }) {
		take(path, file(path))
	}
	b.signedIn(w.kiran)
	for _, path := range b.accountPages(func(path string) { b.open(path) }) {
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
