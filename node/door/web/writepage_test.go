package web_test

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// runPulse keeps the pages of conversations up to date until the end of the test.
func runPulse(h *nodetest.House) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Feed.Pulse.Run(ctx) }()
	h.T.Cleanup(func() { stop(); <-done })
}

// TestVisitorsWrite: a visitor without account writes to an agent, its owner answers on the account's
// pages, and the visitor reads the answer and writes again; posts, replies and reports. In a real browser,
// which solves the proofs of work.
func TestVisitorsWrite(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t)
	box := &nodetest.Postbox{}
	h.Accounts.Mail = box
	h.Work()
	runPulse(h)
	h.PutOpen("asha", nil)
	h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha")
	visitor, owner := nodetest.OpenBrowser(t, h.Base), nodetest.OpenBrowser(t, h.Base)

	visitor.Open("/@asha")
	require.Equal(t, 200, visitor.Send("#write", "message", "Can you quote for forty chairs?\nOf oak.", "kind", "quote_request", "name", "Meera"))
	thread := nodetest.Look[string](visitor, "location.pathname")
	require.Regexp(t, `^/threads/thr_`, thread)
	require.Contains(t, visitor.Text("main"), "Of oak.")
	require.Contains(t, visitor.Text("main"), "has not answered yet")
	address := nodetest.Look[string](visitor, `document.querySelector("[data-copy]").textContent`)

	require.Equal(t, 200, owner.Open("/sign-in"))
	require.Equal(t, 200, owner.Send("form:has(#mail)", "mail", "asha@example.org"))
	require.Equal(t, 200, owner.Load(chromedp.Navigate(regexp.MustCompile(`http://\S+ticket=\S+`).FindString(box.Next(t, h).Text))))
	require.Equal(t, 200, owner.Send("form:has([name=ticket])"))
	owner.Open("/account" + thread)
	nodetest.Look[string](visitor, `document.querySelector("#again-message").value = "A draft"`)
	require.Equal(t, 200, owner.Send("#answer", "message", "Yes, in May."))
	require.Contains(t, owner.Text("[role=status]"), "Your answer is sent.")

	shows := func(b *nodetest.Tab, text string) { // its script changes the page, or opens another
		t.Helper()
		shows(b, `document.querySelector("main")?.innerText.includes(`+nodetest.Quoted(text)+`)`)
	}
	shows(visitor, "Yes, in May.")
	require.NotContains(t, visitor.Text("main"), "has not answered yet")
	require.Equal(t, "A draft", value(visitor, "#again-message"), "what is typed stays")
	require.Equal(t, 200, visitor.Send("#again", "message", "April would be better."))
	require.Contains(t, visitor.Text("main"), "April would be better.")
	shows(owner, "April would be better.")

	// Elsewhere the page wants the token, which an address has after its #.
	other := nodetest.OpenBrowser(t, h.Base)
	require.Equal(t, 404, other.Open(thread))
	require.Contains(t, other.Text("h1"), "A conversation")
	for _, to := range []string{"about:blank", address} {
		require.NoError(t, chromedp.Do(other.Ctx, chromedp.Navigate(to)))
	}
	shows(other, "Yes, in May.")
	require.NotContains(t, nodetest.Look[string](other, "location.href"), "#")

	owner.Open("/account" + thread)
	require.Equal(t, 200, owner.Send("#close"))
	require.Contains(t, owner.Text("[role=status]"), "The conversation is closed.")
	visitor.Open(thread)
	require.Contains(t, visitor.Text("main"), "The conversation is closed")

	visitor.Open("/board")
	require.Equal(t, 200, visitor.Send("#post", "title", "Who sells yarn?", "body", "Ten kilos.", "tags", "yarn, #Cotton", "name", "Meera"))
	post := nodetest.Look[string](visitor, "location.pathname")
	require.Regexp(t, `^/board/post_`, post)
	require.Contains(t, visitor.Text("main"), "Who sells yarn?")
	owner.Open(post)
	require.Equal(t, 200, owner.Send("#reply", "body", "We do."), owner.Text("main"))
	require.Contains(t, owner.Text("#replies ~ .replies"), "verified by sign-in", "who is signed in writes as their profile")
	visitor.Open(post)
	require.Equal(t, 200, visitor.Send("#report", "reason", "A try."))
	require.Contains(t, visitor.Text("[role=status]"), "Thank you.")
}

// TestVisitorsWrite_Refused: a form that is refused is shown again with what was typed and each fault at its
// field; forms of other sites do nothing.
func TestVisitorsWrite_Refused(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutOpen("asha", nil)
	h.PutOpen("shop", func(d *protocol.ProfileDraft) { d.Handle, d.ContactPolicy.Anonymous = "shop", false })
	require.Nil(t, open(h, "/@shop", 200).Find("form", "id", "write"), "nobody without identity may write")
	require.NotNil(t, open(h, "/@asha", 200).Find("form", "id", "write"))

	post := nodetest.As[protocol.Post](h.Ask("POST", "/api/public/board", `{"kind":"question","title":"Who?","body":"b"}`, "Proof-Of-Work", h.Proof("board")))
	for _, tt := range []struct {
		path, form, do, field, typed string
		values                       url.Values
		status                       int
		says                         string
	}{
		{"/@asha", "write", "contact_agent", "message", "A <b>chair</b>", url.Values{}, 401, "did not solve the puzzle"},
		{"/@asha", "write", "contact_agent", "name", "Me", url.Values{"message": {" "}, "altcha": {"new contact"}}, 422, "correct the marked fields"},
		{"/board", "post", "post_to_board", "title", "Who?", url.Values{"kind": {"question"}, "altcha": {"new board"}}, 422, "Fill this in."},
		{"/board/" + post.ID, "reply", "post_to_board", "title", "Re: Who?", url.Values{"kind": {"resolution"}, "altcha": {"new board"}}, 422, "Fill this in."},
		{"/board/" + post.ID, "report", "report_post", "reason", "Rude.", url.Values{}, 401, "did not solve the puzzle"},
	} {
		tt.values.Set("do", tt.do)
		tt.values.Set(tt.field, tt.typed)
		if purpose, ok := strings.CutPrefix(tt.values.Get("altcha"), "new "); ok {
			tt.values.Set("altcha", h.Proof(purpose))
		}
		a := h.SendForm(tt.path, tt.values)
		require.Equal(t, tt.status, a.Code, "%s %s: %s", tt.path, tt.do, a.Body)
		require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
		p := nodetest.ParsePage(t, tt.path, a.Body.String())
		p.WellFormed()
		require.Contains(t, p.Text(), tt.says, tt.path)
		form := p.Find("form", "id", tt.form)
		require.NotNil(t, form)
		require.Contains(t, a.Body.String(), strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(tt.typed), "what was typed is kept")
		require.Equal(t, tt.status == 401, nodetest.Has(form, "data-challenge"), "the next puzzle is there")
	}
	h.Ask("POST", "/@asha", "do=contact_agent&message=x", "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "cross-site").Is(403)
	require.Equal(t, 404, h.SendForm("/@nobody", url.Values{"message": {"x"}, "altcha": {h.Proof("contact")}}).Code)
}
