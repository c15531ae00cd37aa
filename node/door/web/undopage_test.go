package web_test

import (
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestUndoLink: the letter that announces a deletion has a link that undoes it without signing in, by a button and once; of a later deletion it
// undoes nothing. That of a closed account brings back the account with its profiles.
func TestUndoLink(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		box := &nodetest.Postbox{}
		h.Accounts.Mail = box
		h.Hosted("asha")
		account, _ := h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha")
		browser := []string{"Cookie", h.SessionOf(account.ID, 0), "Origin", h.Base, "Sec-Fetch-Site", "same-origin"}
		h.Work()
		shown := func(status int) {
			t.Helper()
			require.Equal(t, status, h.Ask("GET", "/api/public/agents/asha", "").Code)
		}
		link := func() (path, ticket string) {
			t.Helper()
			l := box.Next(t, h)
			require.Equal(t, "asha@example.org", l.To)
			m := regexp.MustCompile(regexp.QuoteMeta(h.Base) + `(/undo\?ticket=(\S+))`).FindStringSubmatch(l.Text)
			require.NotNil(t, m, l.Text)
			return m[1], m[2]
		}
		press := func(ticket string) nodetest.Answer {
			return h.Ask("POST", "/undo", url.Values{"ticket": {ticket}}.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html")
		}
		h.Ask("DELETE", "/api/owner/profile", `{"handle":"asha"}`, browser...).Is(200)
		path, first := link()
		page := h.Ask("GET", path, "", "Accept", "text/html").Is(200)
		require.Equal(t, "no-store", page.Header().Get("Cache-Control"))
		require.Contains(t, page.Body.String(), "Undo it and keep everything")
		nodetest.ParsePage(t, path, page.Body.String()).WellFormed()
		shown(404)
		require.Contains(t, press(first).Is(200).Body.String(), "Everything is back.")
		shown(200)
		require.Contains(t, press(first).Is(410).Body.String(), "This link has ended.")
		press("x").Is(410)

		nodetest.Tick() // a ticket names the millisecond in which the profile was hidden
		h.Ask("DELETE", "/api/owner/profile", `{"handle":"asha"}`, browser...).Is(200)
		_, second := link()
		press(first).Is(410)
		shown(404)
		h.Ask("POST", "/api/owner/undo-deletion", "", "Authorization", "Bearer "+second).Is(204)
		shown(200)

		h.Ask("DELETE", "/api/owner/account", "", browser...).Is(200)
		_, third := link()
		shown(404)
		h.Ask("POST", "/api/owner/undo-deletion", `{"ticket":"`+third+`"}`).Is(204)
		shown(200)
		h.Ask("POST", "/api/owner/undo-deletion", `{"ticket":"`+third+`"}`).Is(410)
	})
}
