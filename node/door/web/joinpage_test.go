package web_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/room/account"
	"stoa/protocol"
	"stoa/protocol/must"
)

// sound looks at the open page: nothing that axe finds, nothing wider than the window. With STOA_TEST_SCREENSHOTS it makes a picture.
func sound(b *nodetest.Tab, name string) {
	b.T.Helper()
	axe := ""
	if at := os.Getenv(AxeEnv); at != "" {
		raw := must.Get(os.ReadFile(at))(b.T)
		axe = string(raw)
	}
	r := see(b, axe)
	require.Empty(b.T, r.Wrong, name)
	require.LessOrEqual(b.T, r.Scroll, r.Width, name)
	if dir := os.Getenv(ScreenshotsEnv); dir != "" {
		picture := must.Get(chromedp.Run(b.Ctx, chromedp.FullScreenshot(100)))(b.T)
		require.NoError(b.T, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644))
	}
}

// scripts lets the pages of a tab run scripts, or not.
func scripts(b *nodetest.Tab, on bool) {
	do(b, devCall(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on}))
}

// bare is sound for a tab without scripts.
func bare(b *nodetest.Tab, name string) {
	b.T.Helper()
	scripts(b, true)
	sound(b, name)
	scripts(b, false)
}

// joinHouse is a served node that sends mail, with an operator.
func joinHouse(t *testing.T, change ...func(*node.Config)) (*nodetest.House, *nodetest.Postbox) {
	h := nodetest.Served(t, change...)
	box := &nodetest.Postbox{}
	h.Accounts.Mail = box
	h.Work()
	return h, box
}

var joinDigits = regexp.MustCompile(`\b[0-9]{6}\b`)

// TestBrowser_JoinShop: a shop joins on a phone, from nothing to a listed page with hours and one item, with script and without.
func TestBrowser_JoinShop(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h, box := joinHouse(t, change)
		b := nodetest.OpenBrowser(t, h.Base)
		do(b, chromedp.EmulateViewport(390, 844))
		require.Equal(t, 200, b.Open("/"))
		require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS("header a.join"))))
		sound(b, "join")
		b.Fill("#join", "kind", "business", "name", "Rao Tiffins")
		nodetest.Look[bool](b, `(() => { document.querySelector("#join [name=name]").dispatchEvent(new Event("input", { bubbles: true })); return true })()`)
		shows(b, `document.querySelector("#join [name=handle]").value === "rao-tiffins" && document.querySelector("#handle-says").textContent.includes("✓")`)
		require.Equal(t, 200, b.Send("#join", "headline", "Office lunch", "mail", "rao@example.org"))
		sound(b, "join-code")
		require.Equal(t, 422, b.Send("form:has(#code)", "code", "000000"))
		require.Equal(t, 200, b.Send("form:has(#code)", "code", joinDigits.FindString(box.Next(t, h).Subject)), b.Text("main"))
		require.Contains(t, b.Text("h1"), "Welcome")
		sound(b, "join-start")
		require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`ol.steps a[href^="/account/hours"]`))))
		require.Equal(t, 200, b.Send(`form:has([name="hours-monday"])`, "hours-monday", "9am-9pm"))
		require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`p.acts a[href="/account/start"]`))), b.Text("main"))
		require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`ol.steps a[href^="/account/items?"]`))))
		require.Equal(t, 200, b.Send(`form:has([name="listAmount"])`, "name", "Thali", "amount", "120"), b.Text("main"))
		require.Contains(t, h.Ask("GET", "/api/public/merchants?q=thali", "").Body.String(), "rao-tiffins")
		require.Equal(t, 200, b.Open("/@rao-tiffins"))
		require.Contains(t, b.Text("main"), "Thali")

		require.Equal(t, 200, b.Open("/join"), "one more profile, of the same account")
		sound(b, "join-again")
		require.Equal(t, 422, b.Send("#join", "kind", "person", "name", "Asha Rao", "handle", "rao-t1ffins"))
		require.Contains(t, b.Text("#join"), "looks like @rao-tiffins")
		sound(b, "join-taken")
		require.Equal(t, 200, b.Send("#join", "handle", "asha-rao"))
		require.Contains(t, b.Text("h1"), "Welcome")
		h.Ask("GET", "/api/public/agents/asha-rao", "").Is(200)
	})
}

// TestBrowser_JoinPerson: a person joins without script, by the link of the mail, in Hindi; an operator approves it and refuses another.
func TestBrowser_JoinPerson(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h, box := joinHouse(t, change, func(c *node.Config) { c.Registrations = "approval" })
		b := nodetest.OpenBrowser(t, h.Base)
		do(b, chromedp.EmulateViewport(390, 844))
		scripts(b, false)
		inHindi(b, true)
		ask := func(b *nodetest.Tab, name, handle, mail string) account.Letter {
			require.Equal(t, 200, b.Open("/join?kind=person"))
			require.Equal(t, 200, b.Send("#join", "name", name, "handle", handle, "mail", mail))
			return box.Next(t, h)
		}
		l := ask(b, "आशा राव", "asha-rao", "asha@example.org")
		require.Contains(t, l.Text, "कोड")
		require.Equal(t, 200, b.Load(chromedp.Navigate(regexp.MustCompile(`http\S+/join/confirm\S+`).FindString(l.Text))))
		bare(b, "join-link")
		require.Equal(t, 200, b.Send("form:has([name=ticket])"), b.Text("main"))
		require.Contains(t, b.Text("main"), "ऑपरेटर")
		bare(b, "join-pending")
		h.Ask("GET", "/api/public/agents/asha-rao", "").Is(404)
		require.Equal(t, 404, b.Open("/@asha-rao"))
		b = nodetest.OpenBrowser(t, h.Base)
		scripts(b, false)
		l = ask(b, "Ravi", "ravi", "ravi@example.org")
		require.Equal(t, 200, b.Send("form:has(#code)", "code", joinDigits.FindString(l.Subject)), b.Text("main"))

		operator := nodetest.OpenBrowser(t, h.Base)
		do(operator, chromedp.EmulateViewport(390, 844))
		signedIn(operator, h.SignInOperator())
		require.Equal(t, 200, operator.Open("/account/node/joining"))
		require.Contains(t, operator.Text("main"), "asha@example.org")
		sound(operator, "join-queue")
		require.Equal(t, 200, operator.Load(chromedp.Click(chromedp.CSS(`form:has([value="asha-rao"]):has([name="decision"][value="approve"]) button`))))
		require.NotEmpty(t, operator.Text(".done"))
		require.Equal(t, 422, operator.Send(`form:has([value="ravi"]):has([name="reason"])`, "reason", ""))
		require.Equal(t, 200, operator.Send(`form:has([value="ravi"]):has([name="reason"])`, "reason", "We know no Ravi."))
		require.Contains(t, operator.Text("main"), "Nobody waits")
		h.Ask("GET", "/api/public/agents/asha-rao", "").Is(200)
		h.Ask("GET", "/api/public/agents/ravi", "").Is(404)
		require.Equal(t, 200, b.Open("/account/start"))
		require.Contains(t, b.Text("main"), "We know no Ravi.")
		bare(b, "join-refused")
		told := map[string]string{}
		for range 2 {
			l := box.Next(t, h)
			told[l.To] = l.Text
		}
		require.Contains(t, told["ravi@example.org"], "We know no Ravi.")
		require.Contains(t, told["asha@example.org"], "approved")
	})
}

// TestBrowser_JoinAgent: the person behind an agent opens its claim link, joins no further, and both act as the profile.
func TestBrowser_JoinAgent(t *testing.T) {
	t.Parallel()
	h, box := joinHouse(t)
	made := nodetest.As[protocol.Member](h.Ask("POST", "/api/public/profiles", `{"kind":"person","handle":"helper","name":"Helper"}`,
		"Proof-Of-Work", h.Proof("join")).Is(201))
	h.OpenAccount("Meera", protocol.RoleOwner, "meera@example.org")
	b := nodetest.OpenBrowser(t, h.Base)
	do(b, chromedp.EmulateViewport(390, 844))
	claim := strings.TrimPrefix(*made.ClaimURL, h.Base)
	require.Equal(t, 200, b.Open(claim))
	require.Equal(t, "/sign-in", nodetest.Look[string](b, "location.pathname"), "who is not signed in signs in first")
	require.Equal(t, 200, b.Send("form:has(#mail)", "mail", "meera@example.org"))
	require.Equal(t, 200, b.Load(chromedp.Navigate(regexp.MustCompile(`http://\S+ticket=\S+`).FindString(box.Next(t, h).Text))))
	require.Equal(t, 200, b.Send("form:has([name=ticket])"))
	require.Equal(t, 200, b.Open(claim))
	require.Contains(t, b.Text("main"), "Helper (@helper)")
	sound(b, "claim")
	require.Equal(t, 200, b.Send("form:has([value=claim_profile])"))
	require.Contains(t, b.Text("main"), "helper")
	sound(b, "claimed")
	h.Ask("GET", "/api/owner/profile", "", "Authorization", "Bearer "+*made.Token).Is(200)
	require.Equal(t, 200, b.Open(claim))
	require.Contains(t, b.Text("main"), "was used")
}
