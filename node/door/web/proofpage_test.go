package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/door/web"
	"stoa/node/nodetest"
	"stoa/protocol/must"
	"stoa/protocol/pow"
)

// tryPage is a page with a form that needs a proof of work, as the templates make them.
const tryPage = `<!DOCTYPE html><html lang="en"><head><title>Try</title><script src="SCRIPT" data-worker="WORKER" defer></script></head><body>
<form action="/try" method="post" data-proof="PURPOSE" CHALLENGE><input name="message"><input type="hidden" name="altcha">
<div class="proof" hidden><p role="status">Solving.</p><progress max="1"></progress><button type="button">Cancel</button></div>
<button type="submit" name="do" value="send">Send</button><button type="submit" name="do" value="look" data-free>Look</button></form></body></html>`

// TestProofScript solves a proof of work in a browser, under the policy of the pages, and sends the
// form as the browser sends any other.
func TestProofScript(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	h := nodetest.New(t, func(c *node.Config) { c.BaseURL, c.ProofCost = "http://"+server.Listener.Addr().String(), 0 })
	asset := func(name string) string {
		for _, r := range h.Web.Routes() {
			if strings.HasPrefix(r.Pattern, "/static/"+name+".") {
				return r.Pattern
			}
		}
		t.Fatal(name)
		return ""
	}
	sent := make(chan http.Request, 1)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/try":
			h.Handler().ServeHTTP(w, r)
		case r.Method == http.MethodPost:
			r.ParseForm()
			sent <- *r
		default:
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Security-Policy", web.Policy)
			strings.NewReplacer("SCRIPT", asset("page"), "WORKER", asset("solve"), "PURPOSE", r.FormValue("purpose"), "CHALLENGE",
				r.FormValue("challenge")).WriteString(w, tryPage)
		}
	})
	server.Start()
	t.Cleanup(server.Close)
	b := nodetest.OpenBrowser(t, h.Base)

	b.Open("/try?purpose=board")
	b.Send("form", "message", "Looms")
	r := <-sent
	require.Equal(t, "Looms", r.PostForm.Get("message"))
	require.Equal(t, []string{"send"}, r.PostForm["do"], "the button is named once")
	s := must.Get(pow.Parse([]byte(r.PostForm.Get("altcha"))))(t)
	require.True(t, s.Check())
	post := func() int {
		return h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", r.PostForm.Get("altcha")).Code
	}
	require.Equal(t, 201, post())
	require.Equal(t, 401, post(), "a proof is good once")

	b.Open("/try?purpose=board")
	b.Load(chromedp.Click(chromedp.CSS("[data-free]")))
	r = <-sent
	require.Equal(t, []string{"look"}, r.PostForm["do"])
	require.Empty(t, r.PostForm.Get("altcha"), "not every button needs a proof")

	// A puzzle that nobody solves is cancelled, and what was typed stays.
	hard := h.Table.Gate.Proofs.Issue("board", "n")
	hard.Parameters.KeyPrefix = strings.Repeat("0", 16)
	raw := must.Get(json.Marshal(hard))(t)
	b.Open("/try?purpose=board&challenge=data-challenge='" + string(raw) + "'")
	nodetest.Look[bool](b, `document.querySelector("[name=message]").value = "Typed", document.querySelector("[value=send]").click(), true`)
	require.Equal(t, "Solving.", b.Text("[role=status]"))
	require.True(t, nodetest.Look[bool](b, `document.querySelector("[value=send]").disabled`))
	nodetest.Look[bool](b, `document.querySelector(".proof button").click(), true`)
	require.Eventually(t, func() bool { return strings.HasPrefix(b.Text("[role=status]"), "Cancelled.") }, time.Minute, 50*time.Millisecond)
	require.Equal(t, "Typed", value(b, "[name=message]"))
	require.False(t, nodetest.Look[bool](b, `document.querySelector("[value=send]").disabled`))

	b.Open("/try?purpose=none")
	nodetest.Look[bool](b, `document.querySelector("[value=send]").click(), true`)
	require.Eventually(t, func() bool { return strings.Contains(b.Text("[role=status]"), "gave no puzzle") }, time.Minute, 50*time.Millisecond)
	require.Empty(t, sent)
}
