package nodetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	devtools "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// ChromiumEnv names the browser of the tests, or is "none"; make test sets it.
const ChromiumEnv = "STOA_TEST_CHROMIUM"

// A Tab is one of a headless Chromium.
type Tab struct {
	Ctx   context.Context
	T     *testing.T
	Base  string
	Forms map[string]bool // every form that a page had, by path and operation
	Saved map[string]bool // those that were sent and did what they are for
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

// OpenBrowser opens a tab with nothing stored, no cookies and none of another test; with options in a
// Chromium of its own.
func OpenBrowser(t *testing.T, base string, more ...chromedp.ExecAllocatorOption) *Tab {
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
	return &Tab{ctx, t, base, map[string]bool{}, map[string]bool{}}
}

// NewTab opens another tab of the browser.
func (b *Tab) NewTab() *Tab {
	ctx, end := chromedp.NewContext(b.Ctx)
	b.T.Cleanup(end)
	require.NoError(b.T, chromedp.Do(ctx))
	other := *b
	other.Ctx = ctx
	return &other
}

// Load runs what leads to another page and returns the status of that page.
func (b *Tab) Load(step chromedp.Action[chromedp.Void]) int {
	b.T.Helper()
	ctx, stop := context.WithTimeout(b.Ctx, time.Minute)
	defer stop()
	res, err := chromedp.RunResponse(ctx, step)
	require.NoError(b.T, err)
	status := 0
	if res != nil {
		status = int(res.Status)
	} else { // the page before was still leading on by itself
		status = Look[int](b, `performance.getEntriesByType("navigation")[0].responseStatus`)
	}
	for _, f := range Look[[]string](b,
		`[...document.forms].filter(f => f.method == "post").map(f => new URL(f.action).pathname + " " + (f.elements.do?.value ?? f.elements.ticket?.name ?? ""))`,
	) {
		b.Forms[f] = true
	}
	return status
}

// movedOn is what Chromium answers about a page that has led on by itself.
var movedOn = regexp.MustCompile(`navigated or closed|context was destroyed|Cannot find context`)

// Look is the value of a JavaScript expression in the page, once all of it has arrived; in the next one, where a script of the page leads there
// meanwhile.
func Look[T any](b *Tab, expression string) T {
	b.T.Helper()
	expression = `(async () => {
		if (document.readyState === "loading") await new Promise(done => document.addEventListener("DOMContentLoaded", done));
		return (` + expression + `
		);
	})()`
	ctx, stop := context.WithTimeout(b.Ctx, time.Minute)
	defer stop()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	for err != nil && movedOn.MatchString(err.Error()) && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		value, err = chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	}
	require.NoError(b.T, err)
	return value
}

// Open opens a page of the node and returns its status.
func (b *Tab) Open(path string) int {
	status := b.Load(chromedp.Navigate(b.Base + path))
	if Look[string](b, "location.origin") != b.Base { // where the page before led by itself, meanwhile
		status = b.Load(chromedp.Navigate(b.Base + path))
	}
	return status
}

// Send fills a form in, as a reader does, and presses its button.
func (b *Tab) Send(form string, fields ...string) int {
	b.T.Helper()
	b.Fill(form, fields...)
	return b.Load(chromedp.Click(chromedp.CSS(form + " button[type=submit]")))
}

// Fill fills a form in.
func (b *Tab) Fill(form string, fields ...string) {
	b.T.Helper()
	given := map[string]string{}
	for i := 0; i < len(fields); i += 2 {
		given[fields[i]] = fields[i+1]
	}
	args, err := json.Marshal([]any{form, given})
	require.NoError(b.T, err)
	missing := Look[[]string](b, `(([form, given]) => {
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
	require.Empty(b.T, missing, "the page has no such form or field:\n%s", b.Text("main"))
}

// Text is what an element shows, "" where there is none.
func (b *Tab) Text(selector string) string {
	b.T.Helper()
	return Look[string](b, `document.querySelector(`+Quoted(selector)+`)?.innerText ?? ""`)
}

// Quoted is a text as a literal of JavaScript.
func Quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// On runs a script in every page of the tab before the page's own.
func (b *Tab) On(script string) {
	b.T.Helper()
	_, err := chromedp.Run(b.Ctx, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, devtools.AddScriptToEvaluateOnNewDocument, devtools.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
	require.NoError(b.T, err)
}

// Authenticator gives the tab a device that makes passkeys, and verifies a person who is always there.
func (b *Tab) Authenticator() webauthn.AddVirtualAuthenticatorResult {
	b.T.Helper()
	_, err := chromedp.Call(b.Ctx, webauthn.Enable, webauthn.EnableParams{})
	require.NoError(b.T, err)
	device, err := chromedp.Call(b.Ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true, HasUserVerification: true,
		IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
	require.NoError(b.T, err)
	return device
}
