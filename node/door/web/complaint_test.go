package web_test

import (
	"net/url"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestComplaints: a visitor complains without an account, an operator acknowledges and answers, and the visitor reads that on the page and,
// after confirming the mailbox, by mail. In a real browser, on both engines.
func TestComplaints(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.Served(t, change)
		box := &nodetest.Postbox{}
		h.Accounts.Mail = box
		h.Work()
		visitor, operator := nodetest.OpenBrowser(t, h.Base), nodetest.OpenBrowser(t, h.Base)

		require.Equal(t, 200, visitor.Open("/contact"))
		require.Equal(t, 200, visitor.Send("#complain", "subject", h.Base+"/@asha", "kind", "privacy", "text", "It shows my number.", "mail", "ravi@example.org"))
		page := nodetest.Look[string](visitor, "location.pathname")
		require.Regexp(t, `^/complaints/cmp_`, page)
		require.Contains(t, visitor.Text("main"), "It shows my number.")
		require.Contains(t, visitor.Text("main"), "Not read yet")

		asked := box.Next(t, h)
		require.Equal(t, "ravi@example.org", asked.To)
		require.NotContains(t, asked.Text, "number")
		reader := nodetest.OpenBrowser(t, h.Base)
		require.Equal(t, 401, reader.Open(page), "somebody else")
		require.Equal(t, 200, reader.Load(chromedp.Navigate(regexp.MustCompile(`http://\S+ticket=\S+`).FindString(asked.Text))))
		require.NotContains(t, reader.Text("main"), "It shows my number.")
		require.Equal(t, 200, reader.Send("#confirm"))
		require.Contains(t, reader.Text("main"), "You are told by mail too.")

		signedIn(operator, h.SignInOperator())
		require.Equal(t, 200, operator.Open("/account/node/complaints"))
		press := func(selector string) {
			t.Helper()
			require.Equal(t, 200, operator.Load(chromedp.Click(chromedp.CSS(selector))), operator.Text("main"))
		}
		require.Contains(t, operator.Text(".card"), "It shows my number.")
		press(`.card button[value=""]`)
		visitor.Open(page)
		require.Contains(t, visitor.Text("main"), "Read, the answer is to come")
		require.Contains(t, box.Next(t, h).Subject, "was read")
		operator.Fill(".card form", "answer", "The number is gone.")
		press(`.card button[value="true"]`)
		require.Contains(t, operator.Text("main"), "There is no such complaint.")
		visitor.Open(page)
		require.Contains(t, visitor.Text("main"), "The number is gone.")
		require.Contains(t, box.Next(t, h).Text, "The number is gone.")
	})
}

// TestComplaints_WithoutScript: what a browser without script sends does the same.
func TestComplaints_WithoutScript(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.PutOpen("asha", nil)
		_, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
		cookie := []string{"Cookie", "stoa_session=" + h.SignIn(link)}
		made := h.SendForm("/contact", url.Values{"do": {"file_complaint"}, "subject": {"other"}, "kind": {"other"}, "text": {"Loud."}}, cookie...).Is(303)
		require.Regexp(t, `^/complaints/cmp_`, made.Header().Get("Location"))
		seen := h.Ask("GET", made.Header().Get("Location"), "", "Cookie", made.Result().Cookies()[0].String(), "Accept", "text/html").Is(200)
		require.Contains(t, seen.Body.String(), "Loud.")
		require.Contains(t, h.Ask("GET", "/account/node/complaints", "",
			"Cookie", "stoa_session="+h.SignInOperator(), "Accept", "text/html").Is(200).Body.String(), "Loud.")
	})
}
