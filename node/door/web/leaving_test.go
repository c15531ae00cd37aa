package web_test

import (
	"os"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestLeaving: in a browser, with script and without, a profile is deleted and brought back, and an account is closed and brought back by signing in.
func TestLeaving(t *testing.T) {
	t.Parallel()
	axe, _ := os.ReadFile(os.Getenv(AxeEnv))
	for name, off := range map[string]bool{"with script": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := nodetest.Served(t)
			h.Work()
			h.Hosted("asha")
			account, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
			b := nodetest.OpenBrowser(t, h.Base)
			do(b, devCall(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off}))
			shown := func(status int) {
				t.Helper()
				require.Equal(t, status, h.Ask("GET", "/api/public/agents/asha", "").Code)
			}
			checked := func() {
				t.Helper()
				if len(axe) > 0 && !off {
					require.Empty(t, see(b, string(axe)).Wrong)
				}
			}
			signIn := func(link string) {
				t.Helper()
				require.Equal(t, 200, b.Load(chromedp.Navigate(link)))
				require.Equal(t, 200, b.Send("form:has([name=ticket])"))
			}
			press := func(do string) {
				t.Helper()
				require.Equal(t, 200, b.Send("form:has([value="+do+"])"))
			}
			signIn(link)
			require.Equal(t, 200, b.Open("/account/leave?handle=asha"))
			require.Contains(t, b.Text("main"), "Download everything first")
			checked()
			press("delete_profile")
			require.Contains(t, b.Text("main"), "Nobody sees it.")
			checked()
			shown(404)
			press("restore_profile")
			require.Contains(t, b.Text("main"), "Everything is back.")
			shown(200)
			require.Equal(t, 200, b.Open("/account/close"))
			checked()
			press("close_account")
			require.Contains(t, b.Text("main"), "Your account is closed.")
			checked()
			shown(404)
			require.NotEqual(t, "Asha", b.Text("h1"))
			signIn(must.Get(h.Admin().SignInLink(t.Context(), account.ID))(t))
			shown(200)
			require.Equal(t, 200, b.Open("/account/close"))
			require.Contains(t, b.Text("main"), "Then close it", "it is no more")
		})
	}
}
