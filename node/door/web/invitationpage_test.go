package web_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestInvitations: in a browser, with script and without, an owner makes invitations, sees their links once, and how many are left; withdraws one,
// which lets nobody join and is not counted; and reads who joined by the other.
func TestInvitations(t *testing.T) {
	t.Parallel()
	axe, _ := os.ReadFile(os.Getenv(AxeEnv))
	for name, off := range map[string]bool{"with script": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := nodetest.Served(t, func(c *node.Config) { c.Registrations, c.OwnerInvitations = "invite", 2 })
			h.Hosted("asha")
			_, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
			b := nodetest.OpenBrowser(t, h.Base)
			do(b, devCall(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off}))
			require.Equal(t, 200, b.Load(chromedp.Navigate(link)))
			require.Equal(t, 200, b.Send("form:has([name=ticket])"))
			require.Equal(t, 200, b.Open("/account"))
			require.True(t, nodetest.Look[bool](b, `document.querySelector('nav a[href="/account/invitations"]') != null`))
			require.Equal(t, 200, b.Open("/account/invitations"))
			require.Contains(t, b.Text("main"), "You may invite 2 more within 30 days.")
			made := func(note string) (code string) {
				t.Helper()
				require.Equal(t, 200, b.Send("#create_invitation", "note", note))
				m := regexp.MustCompile(regexp.QuoteMeta(h.Base) + `/join\?invitation=([A-Za-z0-9_-]{32})`).FindStringSubmatch(b.Text(".done"))
				require.NotNil(t, m, b.Text("main"))
				require.Equal(t, !off, nodetest.Look[bool](b, `document.querySelector(".done pre + button, .done pre button") != null`), "a button to copy it")
				if len(axe) > 0 && !off {
					require.Empty(t, see(b, string(axe)).Wrong)
				}
				return m[1]
			}
			first, second := made("For Ravi"), made("")
			require.Contains(t, b.Text("main"), "You cannot invite anybody now")
			require.Equal(t, 200, b.Open("/account/invitations"))
			require.NotContains(t, b.Text("main"), second, "it is shown once")
			require.Equal(t, 200, b.Send("li:has(strong) form:has([value=withdraw_invitation])"))
			require.Contains(t, b.Text(".done"), "The invitation was withdrawn.")
			require.Contains(t, b.Text("main"), "You may invite one more within 30 days.")

			join := func(handle, code string) nodetest.Answer {
				return h.Ask("POST", "/api/public/profiles", `{"kind":"person","handle":"`+handle+`","name":"Ravi","invitation":"`+code+`"}`,
					"Proof-Of-Work", h.Proof("join"))
			}
			require.Equal(t, 422, join("ravi", first).Code)
			join("ravi", second).Is(201)
			require.Equal(t, 200, b.Open("/account/invitations"))
			require.Contains(t, b.Text("#main .rows, main .rows"), "@ravi joined by it on")
			require.False(t, nodetest.Look[bool](b, `document.querySelector("form:has([value=withdraw_invitation])") != null`), "it was used")
		})
	}
}

// TestInvitations_None: where owners invite nobody, no page leads to the page.
func TestInvitations_None(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	_, link := h.OpenAccount("Asha", protocol.RoleOwner, "")
	cookie := "stoa_session=" + h.SignIn(link)
	require.NotContains(t, h.Ask("GET", "/account", "", "Accept", "text/html", "Cookie", cookie).Is(200).Body.String(), "/account/invitations")
	require.Contains(t, h.Ask("GET", "/account/invitations", "", "Accept", "text/html", "Cookie", cookie).Is(200).Body.String(), "You cannot invite anybody now")
	require.Contains(t, h.Ask("GET", "/account", "", "Accept", "text/html", "Cookie", "stoa_session="+h.SignInOperator()).Body.String(), "/account/invitations")
}
