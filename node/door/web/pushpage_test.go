package web_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/node/out/push/pushtest"
	"stoa/protocol"
)

// TestBrowser_Push presses "Notify me on this device" as an owner and as a visitor. The permission is refused, then granted. The push
// service of the browser is not reached from here, so pushManager.subscribe is replaced by a subscription at one of the test's own.
func TestBrowser_Push(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t)
	h.Work()
	h.Agent("asha", nodetest.OpenPolicy)
	_, link := h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha")
	phone := pushtest.New(t)
	b := nodetest.OpenBrowser(t, h.Base)
	require.Equal(t, 200, b.Load(chromedp.Navigate(link)))
	require.Equal(t, 200, b.Send("form:has([name=ticket])"))
	permit := func(b *nodetest.Tab, setting browser.PermissionSetting) {
		do(b, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			at, err := cdp.Call(ctx, t, target.GetTargetInfo, target.GetTargetInfoParams{})
			if err != nil {
				return err
			}
			_, err = cdp.Call(ctx, t, browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: "notifications"},
				Setting: setting, Origin: h.Base, BrowserContextID: at.TargetInfo.BrowserContextID})
			return err
		}))
	}
	stub := func(b *nodetest.Tab) {
		nodetest.Look[bool](b, `(() => { PushManager.prototype.subscribe = async o => ({ toJSON: () => ({ endpoint: `+nodetest.Quoted(phone.Endpoint)+
			`, keys: { p256dh: `+nodetest.Quoted(phone.P256dh)+`, auth: `+nodetest.Quoted(phone.Auth)+` } }) }); return true })()`)
	}
	const press, shown = `(() => { document.querySelector("form[data-push] button").click(); return true })()`, `!document.querySelector("form[data-push]").hidden`

	permit(b, browser.PermissionSettingDenied)
	require.Equal(t, 200, b.Open("/account/notices"))
	shows(b, shown)
	stub(b)
	nodetest.Look[bool](b, press)
	shows(b, `document.querySelector("form[data-push] [role=status]").textContent.includes("does not allow it")`)
	require.Contains(t, b.Text("main"), "No device is notified yet.")

	permit(b, browser.PermissionSettingGranted)
	require.Equal(t, 200, b.Open("/account/notices"))
	shows(b, shown)
	stub(b)
	nodetest.Look[bool](b, press)
	shows(b, `document.querySelector(".done")?.textContent.includes("This device is notified from now on.")`)
	require.Contains(t, b.Text("main"), "Through ")

	begun := h.Ask("POST", "/api/public/agents/asha/contact", `{"message":"Hello there"}`, "Proof-Of-Work", h.Proof("contact")).Is(201)
	got := phone.Next(t)
	require.Equal(t, "Someone wrote to @asha", got.Title)
	thread := nodetest.As[protocol.ContactReceipt](begun)
	require.Equal(t, "/account/threads/"+thread.ThreadID, got.URL)

	// The worker is registered. The headless browser shows no notices, so its script runs here with the events that it would get.
	shows(b, `(navigator.serviceWorker.getRegistration().then(r => window.worker = r.active?.scriptURL), window.worker == location.origin + "/notices.js")`)
	worker := h.Ask("GET", "/notices.js", "").Is(200)
	require.Equal(t, "no-cache", worker.Header().Get("Cache-Control"))
	fresh := pushtest.New(t)
	nodetest.Look[bool](b, `(() => {
		const on = {}, did = window.did = [], wait = { waitUntil: p => p };
		const self = { addEventListener: (name, f) => on[name] = f, clients: { openWindow: u => did.push("open " + u) },
			registration: { showNotification: (title, o) => did.push(title + ", " + o.body + ", " + o.tag + ", " + o.data) } };
		`+worker.Body.String()+`
		on.push({ ...wait, data: { json: () => ({ title: "Someone wrote", body: "Question", tag: "t", url: "/account/threads/x" }) } });
		on.push({ ...wait, data: null });
		for (const data of ["/account/threads/x", "https://evil.example/"]) on.notificationclick({ ...wait, notification: { data, close() {} } });
		on.pushsubscriptionchange({ ...wait, oldSubscription: { endpoint: `+nodetest.Quoted(phone.Endpoint)+` }, newSubscription: { toJSON: () => ({
			endpoint: `+nodetest.Quoted(fresh.Endpoint)+`, keys: { p256dh: `+nodetest.Quoted(fresh.P256dh)+`, auth: `+nodetest.Quoted(fresh.Auth)+` } }) } });
		return true;
	})()`)
	require.Equal(t, []string{"Someone wrote, Question, t, /account/threads/x", strings.TrimPrefix(h.Base, "http://") + ", , undefined, /account",
		"open " + h.Base + "/account/threads/x"}, nodetest.Look[[]string](b, `window.did`))
	require.Eventually(t, func() bool {
		h.Ask("POST", "/api/public/agents/asha/contact", `{"message":"Hello again"}`, "Proof-Of-Work", h.Proof("contact")).Is(201)
		return len(fresh.Got) > 0
	}, time.Minute, 200*time.Millisecond, "the node sends to the subscription that replaced the former one")

	if axe, err := os.ReadFile(os.Getenv(AxeEnv)); err == nil { // with a device, and the number of what waits
		for _, inDark := range []bool{false, true} {
			dark(b, inDark)
			require.Equal(t, 200, b.Open("/account/notices"))
			shows(b, `document.querySelector(".me .count")?.textContent > 1`)
			shows(b, shown)
			require.Empty(t, see(b, string(axe)).Wrong)
		}
		require.Equal(t, 200, b.Open("/board")) // the same for everyone: a script asks
		shows(b, `document.querySelector(".me .count")?.getAttribute("aria-label").startsWith("Waiting for you: ")`)
		require.Empty(t, see(b, string(axe)).Wrong)
	}

	// A visitor, with the cookie of the page.
	visitor := pushtest.New(t)
	phone = visitor
	other := nodetest.OpenBrowser(t, h.Base)
	permit(other, browser.PermissionSettingGranted)
	require.NoError(t, chromedp.Do(other.Ctx, chromedp.Navigate(h.Base+"/threads/"+thread.ThreadID+"#"+thread.ReadToken)))
	shows(other, `document.querySelector("[data-copy]") && `+shown) // its script has opened it with the token
	stub(other)
	nodetest.Look[bool](other, press)
	shows(other, `document.querySelector(".done")?.textContent.includes("This device is notified when something changes.")`)
	h.Ask("POST", "/api/owner/threads/"+thread.ThreadID+"/messages", `{"message":"Yes"}`, "Authorization", "Bearer "+h.OwnerToken("asha")).Is(201)
	require.Equal(t, "/threads/"+thread.ThreadID, visitor.Next(t).URL)
}
