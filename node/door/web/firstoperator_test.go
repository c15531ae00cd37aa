package web_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// operatorLink is the part of the address after the node's, of a new link that makes the first operator.
func operatorLink(h *nodetest.House) string {
	h.T.Helper()
	link := must.Get(node.Do(h.T.Context(), h.Node.Admin(), protocol.MakeOperatorLink, protocol.OperatorLinkOrder{}))(h.T)
	require.True(h.T, strings.HasPrefix(link.URL, h.Base+"/operator?ticket="), link.URL)
	return strings.TrimPrefix(link.URL, h.Base)
}

// TestBrowser_FirstOperator: of two browsers that open the link at once one becomes the operator, by its passkey, on a phone and in Hindi; the other
// is told why not.
func TestBrowser_FirstOperator(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		server := httptest.NewUnstartedServer(nil)
		t.Cleanup(server.Close)
		_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
		h := nodetest.New(t, change, func(c *node.Config) { c.BaseURL = "http://localhost:" + port })
		server.Config.Handler = h.Handler()
		server.Start()

		old, link := operatorLink(h), operatorLink(h)
		first, second := nodetest.OpenBrowser(t, h.Base), nodetest.OpenBrowser(t, h.Base)
		require.Equal(t, 410, first.Open(old), "a new link ends the old one")
		require.Contains(t, first.Text("[role=alert]"), "newer one")
		sound(first, "operator-replaced")
		both := []*nodetest.Tab{first, second}
		for i, b := range both {
			do(b, chromedp.EmulateViewport(390, 844))
			inHindi(b, i == 1)
			b.Authenticator()
			require.Equal(t, 200, b.Open(link))
			sound(b, "operator-link")
			shows(b, `!document.querySelector("form[data-by]").hidden`)
			b.Fill("form[data-by]", "name", "Kiran")
		}
		asks := make([]string, len(both)) // what each says until its device answers
		for i, b := range both {
			asks[i] = nodetest.Look[string](b, `(() => {
				const form = document.querySelector("form[data-by]"); form.requestSubmit(); return form.querySelector("[role=status]").textContent })()`)
			require.NotEmpty(t, asks[i])
		}
		won := 0
		for i, b := range both {
			// Who is late is told on the next page, or beside the button, if there is an operator when its device is to be asked.
			shows(b, `location.pathname === "/account/node" || !!document.querySelector("[role=alert]") ||
				!["", undefined, `+nodetest.Quoted(asks[i])+`].includes(document.querySelector("form[data-by] [role=status]")?.textContent)`)
			if nodetest.Look[string](b, "location.pathname") == "/account/node" {
				won++
				first = b
				require.Equal(t, "Kiran", b.Text(".me a:first-child"))
				sound(b, "operator-made")
			} else if i == 0 {
				require.Contains(t, b.Text("main"), "has an operator")
			}
		}
		require.Equal(t, 1, won)
		accounts := must.Get(node.Do(t.Context(), h.Node.Admin(), protocol.ListAccounts, protocol.AccountQuery{}))(t)
		require.Len(t, accounts.Items, 1)
		require.Equal(t, protocol.RoleOperator, accounts.Items[0].Role)
		require.Equal(t, 409, second.Open(link), "a link after there is an operator")
		require.Equal(t, 409, first.Open(old))
		sound(first, "operator-there")

		// The passkey signs in again.
		require.Equal(t, 200, first.Open("/account"))
		require.Equal(t, 200, first.Load(chromedp.Click(chromedp.CSS(`form[action="/sign-out"] button`))))
		require.Equal(t, 200, first.Open("/sign-in"))
		shows(first, `!document.querySelector('form[data-by="passkey"]').hidden`)
		require.Equal(t, 200, first.Load(chromedp.Click(chromedp.CSS(`form[data-by="passkey"] button`))))
		require.Equal(t, 200, first.Open("/account/node/accounts"), first.Text("main"))
	})
}

// TestFirstOperator_NoPasskeys: where the node's address has no passkeys, the session makes recovery codes. Of many at once one becomes the operator.
func TestFirstOperator_NoPasskeys(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change, func(c *node.Config) { c.BaseURL = "http://127.0.0.1:1" })
		link := must.Get(url.Parse(operatorLink(h)))(t)
		ticket := link.Query().Get("ticket")
		h.Ask("GET", link.String(), "", "Accept", "text/html").Is(200)
		h.SendForm("/operator", url.Values{"ticket": {ticket}, "name": {"two\nlines"}}).Is(422)
		h.SendForm("/operator", url.Values{"ticket": {ticket}, "name": {""}}).Is(422)
		h.SendForm("/operator", url.Values{"ticket": {ticket + "x"}, "name": {"Kiran"}}).Is(410)
		h.SendForm("/operator/passkey", url.Values{"ticket": {"x"}}).Is(410)
		_, signIn := h.OpenAccount("Asha", protocol.RoleOwner, "")
		h.SendForm("/operator", url.Values{"ticket": {signIn[strings.Index(signIn, "=")+1:]}, "name": {"Kiran"}}).Is(410)

		codes := make(chan int)
		for range 8 {
			go func() { codes <- h.SendForm("/operator", url.Values{"ticket": {ticket}, "name": {"Kiran"}}).Code }()
		}
		got := map[int]int{}
		for range 8 {
			got[<-codes]++
		}
		require.Equal(t, map[int]int{303: 1, 409: 7}, got)
		require.Contains(t, h.Ask("GET", link.String(), "", "Accept", "text/html").Is(409).Body.String(), "has an operator")
		_, err := node.Do(t.Context(), h.Node.Admin(), protocol.MakeOperatorLink, protocol.OperatorLinkOrder{})
		require.Equal(t, protocol.Conflict, protocol.CodeOf(err))
	})
}

// TestFirstOperator_Processes: of many processes that start at once one prints a link.
func TestFirstOperator_Processes(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		links := make(chan string)
		for range 6 {
			go func() {
				link, err := node.Do(t.Context(), h.Node.Admin(), protocol.MakeOperatorLink, protocol.OperatorLinkOrder{Keep: true})
				if err != nil {
					link.URL = err.Error()
				}
				links <- link.URL
			}()
		}
		var printed []string
		for range 6 {
			if link := <-links; link != "" {
				printed = append(printed, link)
			}
		}
		require.Len(t, printed, 1)
		h.Ask("GET", strings.TrimPrefix(printed[0], h.Base), "", "Accept", "text/html").Is(200)
	})
}
