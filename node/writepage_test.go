package node

import (
	"context"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// runPulse keeps the pages of conversations up to date until the end of the test.
func (h *house) runPulse() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.feed.Pulse.Run(ctx) }()
	h.t.Cleanup(func() { stop(); <-done })
}

// TestVisitorsWrite: a visitor without account writes to an agent, its owner answers on the account's
// pages, and the visitor reads the answer and writes again; posts, replies and reports. In a real browser,
// which solves the proofs of work.
func TestVisitorsWrite(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	h := newHouse(t, func(c *Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })
	server.Config.Handler = h.Handler()
	server.Start()
	t.Cleanup(server.Close)
	box := &postbox{}
	h.accounts.Mail = box
	h.run()
	h.runPulse()
	h.putOpen("asha", nil)
	_, _, err := h.Admin().OpenAccount(t.Context(), "Asha", protocol.RoleOwner, "asha@example.org", []string{"asha"})
	require.NoError(t, err)
	visitor, owner := openBrowser(t, h.Base), openBrowser(t, h.Base)

	visitor.open("/@asha")
	require.Equal(t, 200, visitor.send("#write", "message", "Can you quote for forty chairs?\nOf oak.", "kind", "quote_request", "name", "Meera"))
	thread := look[string](visitor, "location.pathname")
	require.Regexp(t, `^/threads/thr_`, thread)
	require.Contains(t, visitor.text("main"), "Of oak.")
	require.Contains(t, visitor.text("main"), "has not answered yet")
	address := look[string](visitor, `document.querySelector("[data-copy]").textContent`)

	require.Equal(t, 200, owner.open("/sign-in"))
	require.Equal(t, 200, owner.send("form:has(#mail)", "mail", "asha@example.org"))
	require.Equal(t, 200, owner.load(chromedp.Navigate(regexp.MustCompile(`http://\S+ticket=\S+`).FindString(box.next(t, h).Text))))
	require.Equal(t, 200, owner.send("form:has([name=ticket])"))
	owner.open("/account" + thread)
	look[string](visitor, `document.querySelector("#again-message").value = "A draft"`)
	require.Equal(t, 200, owner.send("#answer", "message", "Yes, in May."))
	require.Contains(t, owner.text("[role=status]"), "Your answer is sent.")

	shows := func(b *tab, text string) { // its script changes the page, or opens another
		t.Helper()
		b.shows(`document.querySelector("main")?.innerText.includes(` + quoted(text) + `)`)
	}
	shows(visitor, "Yes, in May.")
	require.NotContains(t, visitor.text("main"), "has not answered yet")
	require.Equal(t, "A draft", visitor.value("#again-message"), "what is typed stays")
	require.Equal(t, 200, visitor.send("#again", "message", "April would be better."))
	require.Contains(t, visitor.text("main"), "April would be better.")
	shows(owner, "April would be better.")

	// Elsewhere the page wants the token, which an address has after its #.
	other := openBrowser(t, h.Base)
	require.Equal(t, 404, other.open(thread))
	require.Contains(t, other.text("h1"), "A conversation")
	for _, to := range []string{"about:blank", address} {
		require.NoError(t, chromedp.Do(other.ctx, chromedp.Navigate(to)))
	}
	shows(other, "Yes, in May.")
	require.NotContains(t, look[string](other, "location.href"), "#")

	owner.open("/account" + thread)
	require.Equal(t, 200, owner.send("#close"))
	require.Contains(t, owner.text("[role=status]"), "The conversation is closed.")
	visitor.open(thread)
	require.Contains(t, visitor.text("main"), "The conversation is closed")

	visitor.open("/board")
	require.Equal(t, 200, visitor.send("#post", "title", "Who sells yarn?", "body", "Ten kilos.", "tags", "yarn, #Cotton", "name", "Meera"))
	post := look[string](visitor, "location.pathname")
	require.Regexp(t, `^/board/post_`, post)
	require.Contains(t, visitor.text("main"), "Who sells yarn?")
	owner.open(post)
	require.Equal(t, 200, owner.send("#reply", "body", "We do."), owner.text("main"))
	require.Contains(t, owner.text("#replies ~ .replies"), "verified by sign-in", "who is signed in writes as their profile")
	visitor.open(post)
	require.Equal(t, 200, visitor.send("#report", "reason", "A try."))
	require.Contains(t, visitor.text("[role=status]"), "Thank you.")
}

// TestVisitorsWrite_Refused: a form that is refused is shown again with what was typed and each fault at its
// field; forms of other sites do nothing.
func TestVisitorsWrite_Refused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.putOpen("asha", nil)
	h.putOpen("shop", func(d *protocol.ProfileDraft) { d.Handle, d.ContactPolicy.Anonymous = "shop", false })
	require.Nil(t, h.open("/@shop", 200).find("form", "id", "write"), "nobody without identity may write")
	require.NotNil(t, h.open("/@asha", 200).find("form", "id", "write"))

	var post protocol.Post
	h.ask("POST", "/api/public/board", `{"kind":"question","title":"Who?","body":"b"}`, "Proof-Of-Work", h.proof("board")).into(&post)
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
			tt.values.Set("altcha", h.proof(purpose))
		}
		a := h.sendForm(tt.path, tt.values)
		require.Equal(t, tt.status, a.Code, "%s %s: %s", tt.path, tt.do, a.Body)
		require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
		p := parsePage(t, tt.path, a.Body.String())
		p.wellFormed()
		require.Contains(t, p.text(), tt.says, tt.path)
		form := p.find("form", "id", tt.form)
		require.NotNil(t, form)
		require.Contains(t, a.Body.String(), strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(tt.typed), "what was typed is kept")
		require.Equal(t, tt.status == 401, has(form, "data-challenge"), "the next puzzle is there")
	}
	cross := h.ask("POST", "/@asha", "do=contact_agent&message=x", "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "cross-site")
	require.Equal(t, 403, cross.Code)
	require.Equal(t, 404, h.sendForm("/@nobody", url.Values{"message": {"x"}, "altcha": {h.proof("contact")}}).Code)
}
