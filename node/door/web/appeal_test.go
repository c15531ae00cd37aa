package web_test

import (
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestBrowser_Appeal: the browser that wrote an anonymous post and the owner of a suspended profile appeal, an operator decides with one
// press, and both read the answer. In a real browser, on both engines.
func TestBrowser_Appeal(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.Served(t, change)
		h.Work()
		h.PutOpen("asha", nil)
		account, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
		writer, owner, operator := nodetest.OpenBrowser(t, h.Base), nodetest.OpenBrowser(t, h.Base), nodetest.OpenBrowser(t, h.Base)
		press := func(b *nodetest.Tab, selector string) {
			t.Helper()
			require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(selector))), b.Text("main"))
		}

		writer.Open("/board")
		require.Equal(t, 200, writer.Send("#post", "title", "Looms", "body", "Two looms to give away."))
		post := nodetest.Look[string](writer, "location.pathname")
		operates := h.Operator()
		operates.Do(200, "POST", "/api/operator/posts/"+post[len("/board/"):]+"/hide", map[string]any{"reason": "spam"}, nil)
		require.Equal(t, 410, writer.Open(post))
		require.Contains(t, writer.Text("main"), "This post is hidden: spam")
		press(writer, `a[href$="/appeal"]`)
		require.Contains(t, writer.Text("main"), "spam")
		sound(writer, "appeal")
		require.Equal(t, 200, writer.Send("#appeal", "text", "They are real looms."))
		asked := nodetest.Look[string](writer, "location.pathname")
		require.Regexp(t, `^/complaints/cmp_`, asked)
		sound(writer, "appeal-sent")
		stranger := nodetest.OpenBrowser(t, h.Base)
		stranger.Open(post + "/appeal")
		require.Equal(t, 403, stranger.Send("#appeal", "text", "I wrote it."))

		operates.Do(204, "POST", "/api/operator/profiles/asha/suspend", map[string]any{"reason": "Sells what is forbidden"}, nil)
		signedIn(owner, h.SignIn(link))
		require.Equal(t, 200, owner.Open("/account/start?handle=asha"))
		require.Contains(t, owner.Text("main"), "Sells what is forbidden")
		scripts(owner, false)
		press(owner, `a[href="/@asha/appeal"]`)
		bare(owner, "appeal-profile")
		require.Equal(t, 200, owner.Send("#appeal", "text", "It is paper."))
		answered := nodetest.Look[string](owner, "location.pathname")

		signedIn(operator, h.SignInOperator())
		operator.Open("/account/node/complaints")
		require.Contains(t, operator.Text("main"), "hidden for: spam")
		sound(operator, "appeals")
		for _, at := range []string{asked, answered} {
			card := "#" + at[len("/complaints/"):]
			operator.Fill(card+" form", "answer", "You are right.")
			press(operator, card+` button[name="grant"]`)
		}
		require.Contains(t, operator.Text("main"), "There is no such complaint.")
		require.Equal(t, 200, writer.Open(post))
		writer.Open(asked)
		require.Contains(t, writer.Text("main"), "You are right.")
		require.Equal(t, 200, owner.Open("/@asha"))
		elsewhere := nodetest.OpenBrowser(t, h.Base)
		again := must.Get(h.Admin().SignInLink(t.Context(), account.ID))(t)
		signedIn(elsewhere, h.SignIn(again))
		require.Equal(t, 200, elsewhere.Open(answered), "in another browser of the owner")
		require.Contains(t, elsewhere.Text("main"), "You are right.")
	})
}

// TestArchiveLinkPage: an operator makes the link on the page of accounts, and its page downloads the archive.
func TestArchiveLinkPage(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t)
	h.PutOpen("asha", nil)
	operator := nodetest.OpenBrowser(t, h.Base)
	signedIn(operator, h.SignInOperator())
	operator.Open("/account/node/accounts?q=asha")
	require.Equal(t, 200, operator.Send("form:has([value=make_archive_link])"))
	require.Contains(t, operator.Text("main"), "Give this link to the owner of the profile")
	at := must.Get(url.Parse(nodetest.Look[string](operator, `document.querySelector("main [data-copy]").textContent`)))(t)
	reader := nodetest.OpenBrowser(t, h.Base)
	require.Equal(t, 200, reader.Open(at.RequestURI()))
	sound(reader, "archive-link")
	got := h.SendForm(at.Path, url.Values{"ticket": {at.Query().Get("ticket")}}).Is(200)
	require.Equal(t, "application/gzip", got.Header().Get("Content-Type"))
	require.Equal(t, 410, h.SendForm(at.Path, url.Values{"ticket": {at.Query().Get("ticket") + "x"}}).Code)
}
