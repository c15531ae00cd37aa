package web_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestOperatorAccounts: an operator without a shell opens an account, whose owner signs in with the link; finds it by name, mail and handle;
// signs it out; suspends a profile, which its visitors see no longer, and shows it again. In a real browser, on both engines.
func TestOperatorAccounts(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.Served(t, change)
		h.PutOpen("asha", nil)
		h.OpenAccount("Asha Menon", protocol.RoleOwner, "asha@example.org", "asha")
		operator, owner := nodetest.OpenBrowser(t, h.Base), nodetest.OpenBrowser(t, h.Base)
		signedIn(operator, h.SignInOperator())
		const page = "/account/node/accounts"
		press := func(selector string) {
			t.Helper()
			require.Equal(t, 200, operator.Load(chromedp.Click(chromedp.CSS(selector))), operator.Text("main"))
		}
		fold := func() {
			nodetest.Look[bool](operator, `document.querySelectorAll("main details").forEach(d => d.open = true) || true`)
		}

		require.Equal(t, 200, operator.Open(page))
		require.Equal(t, 200, operator.Send("#open", "name", "Meera"))
		require.Contains(t, operator.Text(".done"), "shown only now")
		link := operator.Text("main pre")
		require.NotContains(t, nodetest.Look[string](operator, "location.href"), "ticket")
		require.Equal(t, 200, owner.Load(chromedp.Navigate(link)))
		require.Equal(t, 200, owner.Send("form:has([name=ticket])"))
		require.Equal(t, 200, owner.Open("/account"))

		for q, finds := range map[string]bool{"mee": true, "MEERA": true, "asha@example.org": false, "asha": false, "nobody": false} {
			require.Equal(t, 200, operator.Open(page+"?q="+q))
			require.Equal(t, finds, nodetest.Look[bool](operator, `document.querySelector("main .list").innerText.includes("Meera")`), q)
		}
		require.Equal(t, 200, operator.Open(page+"?q=Meera"))
		fold()
		require.Contains(t, operator.Text("main"), "Check first that it is the owner who asks")
		press(`form:has([name=forget]) button`)
		require.Contains(t, operator.Text(".done"), "signed out")
		require.NotEqual(t, "/account", nodetest.Look[string](owner, `(async () => new URL((await fetch("/account")).url).pathname)()`))

		require.Equal(t, 200, operator.Open(page+"?q=asha"))
		require.Contains(t, operator.Text("main"), "Asha Menon")
		require.Equal(t, 200, h.Ask("GET", "/api/public/agents/asha", "").Code)
		require.Equal(t, 200, operator.Send("#suspend", "reason", "sells what is forbidden"))
		require.Contains(t, operator.Text(".done"), "The profile is suspended.")
		require.Equal(t, 404, h.Ask("GET", "/api/public/agents/asha", "").Code)
		require.Contains(t, h.Ask("GET", "/api/public/moderation-log", "").Body.String(), "sells what is forbidden")
		press(`form:has([value=lift_suspension]) button`)
		require.Equal(t, 200, h.Ask("GET", "/api/public/agents/asha", "").Code)
	})
}
