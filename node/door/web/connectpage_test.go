package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestBrowser_Connect: a program sends the browser; its owner signs in, is asked, unticks something, and the browser goes back with a code. Who
// refuses goes back too.
func TestBrowser_Connect(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t)
	h.Hosted("asha")
	_, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
	came := make(chan url.Values, 9)
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" {
			came <- r.URL.Query()
		}
	}))
	t.Cleanup(program.Close)
	c := nodetest.As[protocol.Client](h.Ask("POST", protocol.OAuthRegisterPath, `{"client_name":"Desk","redirect_uris":["http://127.0.0.1/back"]}`).Is(201))
	asks := "/oauth/authorize?" + url.Values{"client_id": {c.ID}, "redirect_uri": {program.URL + "/back"}, "response_type": {"code"}, "scope": {"post inbox"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}, "state": {"a b"}}.Encode()

	b := nodetest.OpenBrowser(t, h.Base)
	do(b, chromedp.EmulateViewport(390, 844))
	require.Equal(t, 200, b.Open(asks))
	require.Equal(t, "/sign-in", nodetest.Look[string](b, "location.pathname"), "who is not signed in signs in first")
	require.Equal(t, 200, b.Load(chromedp.Navigate(link)))
	require.Equal(t, 200, b.Send("form:has([name=ticket])"))
	require.Equal(t, "/oauth/authorize", nodetest.Look[string](b, "location.pathname"), "and comes back, by whatever way")
	require.Contains(t, b.Text("main"), "Desk asks to act for you here")
	sound(b, "connect")
	nodetest.Look[any](b, `document.querySelector("[name=scopes][value=post]").click()`)
	b.Load(chromedp.Click(chromedp.CSS("#connect button[type=submit]")))
	back := <-came
	require.Equal(t, "a b", back.Get("state"))
	token := nodetest.As[protocol.TokenAnswer](h.Ask("POST", protocol.OAuthTokenPath, url.Values{"grant_type": {"authorization_code"}, "client_id": {c.ID},
		"code": {back.Get("code")}, "redirect_uri": {program.URL + "/back"}, "code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}}.Encode(),
		"Content-Type", "application/x-www-form-urlencoded").Is(200))
	require.Equal(t, "inbox", token.Scope)
	require.Equal(t, 200, b.Open("/account/tokens"))
	require.Contains(t, b.Text("main"), "Desk")

	require.Equal(t, 200, b.Open(asks))
	b.Load(chromedp.Click(chromedp.CSS("main a.quiet")))
	require.Equal(t, "access_denied", (<-came).Get("error"))
	require.Equal(t, 404, b.Open("/oauth/authorize?client_id=x&redirect_uri="+url.QueryEscape(program.URL+"/back")+
		"&response_type=code&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256"))
	sound(b, "connect-refused")
}
