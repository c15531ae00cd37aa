package node

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// newServed is a node that a browser reaches, with the agent asha, the shop rao, and the session of their account.
func newServed(t *testing.T) (h *house, cookie string) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	h = newHouse(t, func(c *Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })
	server.Config.Handler = h.Handler()
	server.Start()
	t.Cleanup(server.Close)
	h.openBoard("asha", "")
	_, _, err := h.Admin().PutProfile(t.Context(), []byte(`{"handle":"rao","name":"Rao","kind":"business","contactPolicy":`+openPolicy+`}`))
	require.NoError(t, err)
	_, link, err := h.Admin().OpenAccount(t.Context(), "Asha", protocol.RoleOwner, "asha@example.org", []string{"asha", "rao"})
	require.NoError(t, err)
	cookie = h.signIn(link)
	a := h.ask("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"durations":[30]}`,
		"Authorization", "Bearer "+h.ownerToken("asha"))
	require.Equal(t, 200, a.Code, "%s", a.Body)
	return h, cookie
}

// TestBrowser_DoubleClick: a form that makes something makes one when its button is clicked twice, and when the reader
// goes back and sends the same again. Another text from the same page is another thing.
func TestBrowser_DoubleClick(t *testing.T) {
	t.Parallel()
	h, cookie := newServed(t)
	h.runPulse()
	b := openBrowser(t, h.Base)
	said := b.listen()
	twice := func(form string, fields ...string) {
		t.Helper()
		b.fill(form, fields...)
		b.doubleClick(form + " button[type=submit]")
	}
	titles := func() (all []string) {
		t.Helper()
		var p protocol.Page[protocol.Post]
		h.ask("GET", "/api/public/board?limit=100", "").into(&p)
		for _, x := range p.Items {
			all = append(all, x.Title)
		}
		return all
	}

	// A visitor without account: the browser solves a proof between the clicks and the form.
	b.open("/board")
	twice("#post", "title", "Who brings lunch?", "body", "For nine people.")
	require.Equal(t, []string{"Who brings lunch?"}, titles())
	post := look[string](b, "location.pathname")
	b.walk("back", "/board")
	twice("#post", "title", "Who brings lunch?", "body", "For nine people.")
	require.Equal(t, post, look[string](b, "location.pathname"), "the same post")
	b.walk("back", "/board")
	twice("#post", "title", "Who brings dinner?", "body", "For nine people.")
	require.ElementsMatch(t, []string{"Who brings lunch?", "Who brings dinner?"}, titles())
	twice("#reply", "title", "I do", "body", "From noon on.")
	require.Len(t, titles(), 3)
	b.open("/@asha")
	twice("#write", "message", "Can you quote for forty chairs?")
	twice("#again", "message", "Of oak.")
	require.Equal(t, 1, strings.Count(b.text("main"), "Of oak."))

	// The owner.
	b.signedIn(cookie)
	b.open("/account" + look[string](b, "location.pathname"))
	twice("#answer", "message", "Yes, in May.")
	require.Equal(t, 1, strings.Count(b.text("main"), "Yes, in May."))
	require.Equal(t, 200, b.load(chromedp.Reload()))
	require.Equal(t, 1, strings.Count(b.text("main"), "Yes, in May."), "its answer is loaded again")
	b.open("/account/items?handle=rao&new=1")
	twice("#item", "name", "Filter Coffee", "amount", "25")
	require.Len(t, h.items("rao"), 1)
	b.open("/account/tokens")
	b.fill("#create_token", "name", "Phone", "scopes", "post")
	b.doubleClick("#create_token button[type=submit]")
	require.Contains(t, b.text("main"), "stoa_", "the secret is shown")
	b.open("/account/tokens")
	require.Equal(t, 1, strings.Count(b.text("main"), "Phone"))
	b.open("/account/offers?handle=asha")
	b.fill("#put_need-asha", "id", "wool", "description", "Wool for looms.")
	b.doubleClick("#put_need-asha button[type=submit]")
	require.Contains(t, b.text("main"), "The need was saved.")
	require.Equal(t, 1, strings.Count(h.ask("GET", "/api/public/agents/asha", "").Body.String(), "Wool for looms."))
	require.Empty(t, said.take())
}

func (d *pageDoc) alerts() (text string) {
	for _, class := range []string{"alert", "wrong"} {
		for _, name := range []string{"div", "p"} {
			if n := d.find(name, "class", class); n != nil {
				text += textOf(n) + " "
			}
		}
	}
	return text
}

// doubleClick clicks twice, and waits for the page to which that leads.
func (b *tab) doubleClick(button string) {
	b.t.Helper()
	at := look[[]float64](b, `(b => {
		window.former = true;
		b.scrollIntoView({ block: "center", behavior: "instant" });
		const r = b.getBoundingClientRect();
		return [r.x + r.width / 2, r.y + r.height / 2];
	})(document.querySelector(`+quoted(button)+`))`)
	b.do(chromedp.MouseClickXY(at[0], at[1]))
	b.do(chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2)))
	b.shows(`!window.former && document.readyState == "complete"`)
}

// shows waits until an expression holds in the tab, whose page may change meanwhile.
func (b *tab) shows(expression string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		ctx, stop := context.WithTimeout(b.ctx, time.Minute)
		defer stop()
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		return err == nil && holds
	}, time.Minute, 20*time.Millisecond, expression)
}

// items are those of a shop.
func (h *house) items(handle string) []protocol.Item {
	h.t.Helper()
	var m protocol.Merchant
	h.ask("GET", "/api/public/merchants/"+handle, "").into(&m)
	return m.Items
}

// TestForms_Twice: every form that makes something, sent twice at the same time as two clicks without script do, each
// with its own proof, makes one thing and leads both to it.
func TestForms_Twice(t *testing.T) {
	t.Parallel()
	h, cookie := newServed(t)
	p := h.post("Looms")
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
						form.Set("altcha", h.proof(x.purpose))
					} else {
						form.Set("as", "asha")
						headers = []string{"Cookie", "stoa_session=" + cookie}
					}
					if change != "" {
						form.Set(x.text, change)
					}
					a := h.sendForm(x.path, form, headers...)
					mu.Lock()
					defer mu.Unlock()
					if a.Code != http.StatusSeeOther {
						t.Errorf("%d %s", a.Code, parsePage(t, x.path, a.Body.String()).alerts())
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
