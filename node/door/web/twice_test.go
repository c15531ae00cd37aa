package web_test

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// newServed is a node that a browser reaches, with the agent asha, the shop rao, and the session of their account.
func newServed(t *testing.T) (h *nodetest.House, cookie string) {
	t.Helper()
	h = nodetest.Served(t)
	h.OpenBoard("asha", "")
	h.PutProfile([]byte(`{"handle":"rao","name":"Rao","kind":"business","contactPolicy":` + nodetest.OpenPolicy + `}`))
	_, link := h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha", "rao")
	cookie = h.SignIn(link)
	h.Ask("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"durations":[30]}`,
		"Authorization", "Bearer "+h.OwnerToken("asha")).Is(200)
	return h, cookie
}

// TestBrowser_DoubleClick: a form that makes something makes one when its button is clicked twice, and when the reader
// goes back and sends the same again. Another text from the same page is another thing.
func TestBrowser_DoubleClick(t *testing.T) {
	t.Parallel()
	h, cookie := newServed(t)
	runPulse(h)
	b := nodetest.OpenBrowser(t, h.Base)
	said := listen(b)
	twice := func(form string, fields ...string) {
		t.Helper()
		b.Fill(form, fields...)
		doubleClick(b, form+" button[type=submit]")
	}
	titles := func() (all []string) {
		t.Helper()
		p := nodetest.As[protocol.Page[protocol.Post]](h.Ask("GET", "/api/public/board?limit=100", ""))
		for _, x := range p.Items {
			all = append(all, x.Title)
		}
		return all
	}

	// A visitor without account: the browser solves a proof between the clicks and the form.
	b.Open("/board")
	twice("#post", "title", "Who brings lunch?", "body", "For nine people.")
	require.Equal(t, []string{"Who brings lunch?"}, titles())
	post := nodetest.Look[string](b, "location.pathname")
	walk(b, "back", "/board")
	twice("#post", "title", "Who brings lunch?", "body", "For nine people.")
	require.Equal(t, post, nodetest.Look[string](b, "location.pathname"), "the same post")
	walk(b, "back", "/board")
	twice("#post", "title", "Who brings dinner?", "body", "For nine people.")
	require.ElementsMatch(t, []string{"Who brings lunch?", "Who brings dinner?"}, titles())
	twice("#reply", "title", "I do", "body", "From noon on.")
	require.Len(t, titles(), 3)
	b.Open("/@asha")
	twice("#write", "message", "Can you quote for forty chairs?")
	twice("#again", "message", "Of oak.")
	require.Equal(t, 1, strings.Count(b.Text("main"), "Of oak."))

	// The owner.
	signedIn(b, cookie)
	b.Open("/account" + nodetest.Look[string](b, "location.pathname"))
	twice("#answer", "message", "Yes, in May.")
	require.Equal(t, 1, strings.Count(b.Text("main"), "Yes, in May."))
	require.Equal(t, 200, b.Load(chromedp.Reload()))
	require.Equal(t, 1, strings.Count(b.Text("main"), "Yes, in May."), "its answer is loaded again")
	b.Open("/account/items?handle=rao&new=1")
	twice("#item", "name", "Filter Coffee", "amount", "25")
	require.Len(t, items(h, "rao"), 1)
	b.Open("/account/tokens")
	b.Fill("#create_token", "name", "Phone", "scopes", "post")
	doubleClick(b, "#create_token button[type=submit]")
	require.Contains(t, b.Text("main"), "stoa_", "the secret is shown")
	b.Open("/account/tokens")
	require.Equal(t, 1, strings.Count(b.Text("main"), "Phone"))
	b.Open("/account/offers?handle=asha")
	b.Fill("#put_need-asha", "id", "wool", "description", "Wool for looms.")
	doubleClick(b, "#put_need-asha button[type=submit]")
	require.Contains(t, b.Text("main"), "The need was saved.")
	require.Equal(t, 1, strings.Count(h.Ask("GET", "/api/public/agents/asha", "").Body.String(), "Wool for looms."))
	require.Empty(t, said.take())
}

// doubleClick clicks twice, and waits for the page to which that leads.
func doubleClick(b *nodetest.Tab, button string) {
	b.T.Helper()
	at := nodetest.Look[[]float64](b, `(b => {
		window.former = true;
		b.scrollIntoView({ block: "center", behavior: "instant" });
		const r = b.getBoundingClientRect();
		return [r.x + r.width / 2, r.y + r.height / 2];
	})(document.querySelector(`+nodetest.Quoted(button)+`))`)
	do(b, chromedp.MouseClickXY(at[0], at[1]))
	do(b, chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2)))
	shows(b, `!window.former && document.readyState == "complete"`)
}

// shows waits until an expression holds in the tab, whose page may change meanwhile.
func shows(b *nodetest.Tab, expression string) {
	b.T.Helper()
	require.Eventually(b.T, func() bool {
		ctx, stop := context.WithTimeout(b.Ctx, time.Minute)
		defer stop()
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		return err == nil && holds
	}, time.Minute, 20*time.Millisecond, expression)
}

// items are those of a shop.
func items(h *nodetest.House, handle string) []protocol.Item {
	h.T.Helper()
	m := nodetest.As[protocol.Merchant](h.Ask("GET", "/api/public/merchants/"+handle, ""))
	return m.Items
}

// TestForms_Twice: every form that makes something, sent twice at the same time as two clicks without script do, each
// with its own proof, makes one thing and leads both to it.
func TestForms_Twice(t *testing.T) {
	t.Parallel()
	h, cookie := newServed(t)
	p := h.Post("Looms")
	for name, x := range map[string]struct {
		path, purpose string
		text          string // field of which another value is another thing; "" where there may be only one
		fields        url.Values
	}{
		"post":    {"/board", "board", "body", url.Values{"kind": {"offer"}, "title": {"Chairs"}, "body": {"Of oak."}}},
		"reply":   {"/board/" + p.ID, "board", "body", url.Values{"kind": {"question"}, "title": {"Re: Looms"}, "body": {"How many?"}}},
		"contact": {"/@asha", "contact", "message", url.Values{"message": {"Do you weave?"}}},
		"bid":     {"/@asha/board", "bid", "", url.Values{"do": {"bid_for_attention"}, "amount": {"1500"}, "message": {"Yarn"}}},
		"meeting": {"/@asha/meet", "meeting", "", url.Values{"requester": {"Kim"}, "email": {"kim@example.org"}, "purpose": {"Yarn"}, "durationMin": {"30"},
			"startsAt": {"2026-12-01T11:00:00+05:30"}, "timezone": {"Asia/Kolkata"}}},
	} {
		for _, as := range []string{"a page with script", "signed in, without script"} {
			t.Run(name+", "+as, func(t *testing.T) {
				if as != "a page with script" && name != "post" && name != "reply" {
					t.Skip("an owner does not write to, bid for, or meet itself")
				}
				var mu sync.Mutex
				led := map[string]int{}
				send := func(change string) {
					form := maps.Clone(x.fields)
					headers := []string{}
					if as == "a page with script" {
						form.Set("once", "visit-of-"+name)
						form.Set("altcha", h.Proof(x.purpose))
					} else {
						form.Set("as", "asha")
						headers = []string{"Cookie", "stoa_session=" + cookie}
					}
					if change != "" {
						form.Set(x.text, change)
					}
					a := h.SendForm(x.path, form, headers...)
					mu.Lock()
					defer mu.Unlock()
					if a.Code != http.StatusSeeOther {
						t.Errorf("%d %s", a.Code, nodetest.ParsePage(t, x.path, a.Body.String()).Alerts())
					}
					led[a.Header().Get("Location")]++
				}
				var wait sync.WaitGroup
				for range 3 {
					wait.Go(func() { send("") })
				}
				wait.Wait()
				require.Len(t, led, 1, "%v", led)
				if x.text == "" {
					return
				}
				send("Another")
				require.Len(t, led, 2, "%v", led)
			})
		}
	}
}
