package account_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/out/mail"
	"stoa/node/out/mail/mailtest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestSignIn_Browser signs in as people do: by a link that a mail server delivered, by a passkey of a
// device that Chromium simulates, by a wallet, and by a recovery code.
func TestSignIn_Browser(t *testing.T) {
	t.Parallel()
	mailServer := mailtest.Start(t)
	server := httptest.NewUnstartedServer(nil)
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	s := nodetest.NewStage(t, "", func(c *node.Config) {
		c.BaseURL, c.SMTP, c.SMTPSecurity, c.MailFrom = "http://localhost:"+port, mailServer.Addr, mail.Plain, "stoa@node.example"
	})
	chosen, old := 0, "" // the account that the wallet has chosen; a session that began long ago
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/test-wallet":
		case "/test-old-session":
			name, secret, _ := strings.Cut(old, "=")
			http.SetCookie(w, &http.Cookie{Name: name, Value: secret, Path: "/", HttpOnly: true})
			return
		default:
			s.Handler().ServeHTTP(w, r)
			return
		}
		var asked struct { // EIP-1193
			Method string
			Params []string
		}
		if json.NewDecoder(r.Body).Decode(&asked) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var said any
		switch asked.Method {
		case "eth_requestAccounts":
			said = []string{strings.ToLower(s.Chain.Accounts[chosen].Address)}
		case "eth_chainId":
			said = fmt.Sprintf("%#x", s.Chain.ChainID)
		case "personal_sign":
			text, err := hex.DecodeString(strings.TrimPrefix(asked.Params[0], "0x"))
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			said = personal(t, wallet(s.Chain, chosen), string(text))
		}
		json.NewEncoder(w).Encode(said)
	})
	server.Start()
	t.Cleanup(server.Close)
	s.Work()
	pair := s.Hosted("asha")
	id, _, err := s.Chain.Registrar(0).Register(t.Context(), "https://agent.example/asha")
	require.NoError(t, err)
	s.Chain.Publish(0, 0, id, pair)
	s.Chain.Do("final")
	require.NoError(t, s.Admin().EnrolIdentity(t.Context(), "asha", id.String(), pair.Thumbprint()))
	acc, _ := s.OpenAccount("Asha", protocol.RoleOwner, "asha@mail.example", "asha")

	b := nodetest.OpenBrowser(t, s.Base)
	b.On(`window.ethereum = { request: asked => fetch("/test-wallet", { method: "POST", body: JSON.stringify(asked) }).then(said => said.json()) };`)
	device := b.Authenticator()
	letter := func() string {
		return strings.NewReplacer("=\r\n", "", "=\n", "", "=3D", "=").Replace(string(mailServer.Next(t)))
	}

	// A mail link; the header says so on a page that is the same for everyone.
	require.Equal(t, 200, b.Open("/board"))
	require.Equal(t, "Join\nSign in", b.Text(".me"))
	require.Equal(t, 200, b.Open("/sign-in"))
	b.Picture("sign-in")
	require.Equal(t, 200, b.Send("form:has(#mail)", "mail", "asha@mail.example"))
	require.Equal(t, 200, b.Load(chromedp.Navigate(regexp.MustCompile(`http://\S+/sign-in\?ticket=[A-Za-z0-9_-]{32}`).FindString(letter()))))
	require.Equal(t, 200, b.Send("form:has([name=ticket])"))
	require.Equal(t, 200, b.Open("/board"))
	require.Equal(t, "Your account", b.Text(".me"))
	require.Equal(t, "/account", nodetest.Look[string](b, `new URL(document.querySelector(".me a").href).pathname`))

	// A passkey, by the device that the browser has.
	require.Equal(t, 200, b.Open("/account/security"))
	require.Equal(t, "Asha", b.Text(".me"))
	require.Equal(t, 200, b.Send("#add_passkey", "name", "My laptop"))
	require.Contains(t, b.Text(".done"), "passkey was added", b.Text("main"))
	require.Contains(t, b.Text("main"), "My laptop")
	require.Contains(t, letter(), "A passkey was added")
	credentials := func() []*webauthn.Credential {
		found := must.Get(chromedp.Call(b.Ctx, webauthn.GetCredentials, webauthn.GetCredentialsParams(device)))(t)
		return found.Credentials
	}
	require.Len(t, credentials(), 1)
	require.Equal(t, acc.ID, string(credentials()[0].UserHandle))
	byKey := func() int {
		t.Helper()
		require.Equal(t, 200, b.Open("/account"))
		require.Equal(t, 200, b.Send(`form[action="/sign-out"]`))
		require.Equal(t, "Sign in", b.Text("h1"))
		return b.Send(`form[data-by="passkey"]`)
	}
	require.Equal(t, 200, byKey())
	require.Equal(t, "Asha", b.Text("h1"))
	require.Equal(t, 200, b.Open("/account/security"))
	require.Contains(t, b.Text("main"), "Chrome on Linux")
	require.Contains(t, b.Text("main"), "last used")
	b.Picture("security")

	// Recovery codes, of which one signs in.
	require.Equal(t, 200, b.Send(`form:has([value="make_recovery_codes"])`))
	codes := strings.Fields(b.Text(".done pre"))
	require.Len(t, codes, protocol.RecoveryCodes)
	b.Picture("recovery-codes")
	require.Contains(t, letter(), "Recovery codes")
	require.Equal(t, 200, b.Open("/account"))
	require.Equal(t, 200, b.Send(`form[action="/sign-out"]`))
	require.Equal(t, 200, b.Send("form:has(#code)", "code", strings.ToLower(codes[3])))
	require.Equal(t, "Asha", b.Text("h1"))
	require.Contains(t, letter(), "recovery code")

	// A browser that signed in long ago signs in again, and comes back; what was typed stays in the other tab.
	old = s.SessionOf(acc.ID, time.Hour)
	require.Equal(t, 200, b.Open("/test-old-session"))
	require.Equal(t, 200, b.Open("/account/security"))
	require.Contains(t, b.Text("main"), "sign in again")
	b.Picture("sign-in-again")
	other := b.NewTab()
	require.Equal(t, 200, other.Load(chromedp.Navigate(s.Base+"/sign-in?again=1&to=/account/security")))
	require.Equal(t, 200, other.Send("form:has(#code)", "code", codes[4]))
	require.Equal(t, "/account/security", nodetest.Look[string](other, "location.pathname"))
	require.Contains(t, letter(), "recovery code")

	// A copy of the passkey: the device's counter is behind.
	key := credentials()[0]
	at := device.AuthenticatorID
	must.Get(chromedp.Call(b.Ctx, webauthn.RemoveCredential, webauthn.RemoveCredentialParams{AuthenticatorID: at, CredentialID: key.CredentialID}))(t)
	addCredential := cdp.Command[map[string]any, cdp.Empty]{Method: webauthn.CommandAddCredential} // that of webauthn always names CMTG, which is refused
	must.Get(chromedp.Call(b.Ctx, addCredential, map[string]any{"authenticatorId": at, "credential": map[string]any{
		"credentialId": key.CredentialID, "isResidentCredential": true, "rpId": "localhost", "privateKey": key.PrivateKey,
		"userHandle": key.UserHandle, "signCount": 0,
	}}))(t)
	require.Equal(t, 403, byKey())
	require.Contains(t, b.Text(".alert"), "counter")
	require.Contains(t, letter(), "copied")

	// A wallet.
	require.Equal(t, 200, b.Open("/sign-in"))
	require.Equal(t, 200, b.Send(`form[data-by="ethereum"]`), "%s", b.Text("main"))
	require.Equal(t, "Asha", b.Text("h1"), b.Text("main"))

	// A passkey that its owner removed signs in no more.
	require.Equal(t, 200, b.Open("/account/security"))
	require.Equal(t, 200, b.Send(`form:has([value="delete_passkey"])`))
	require.Contains(t, letter(), "removed")
	require.Equal(t, 403, byKey())
	require.Contains(t, b.Text(".alert"), "removed")

	// Another wallet joins, comes back with nothing else, and is removed.
	chosen = 1
	fresh := func() *nodetest.Tab {
		tab := nodetest.OpenBrowser(t, s.Base)
		tab.On(`window.ethereum = { request: asked => fetch("/test-wallet", { method: "POST", body: JSON.stringify(asked) }).then(said => said.json()) };`)
		return tab
	}
	newcomer := fresh()
	require.Equal(t, 200, newcomer.Open("/join"))
	newcomer.Fill("#join", "name", "Ravi", "handle", "ravi")
	require.Equal(t, 200, newcomer.Load(chromedp.Click(chromedp.CSS(`#join button[value="ethereum"]`))), newcomer.Text("main"))
	require.Equal(t, "/account/start", nodetest.Look[string](newcomer, "location.pathname"), newcomer.Text("main"))
	require.Contains(t, newcomer.Text("h1"), "Ravi")
	again := fresh()
	require.Equal(t, 200, again.Open("/sign-in"))
	require.Equal(t, 200, again.Send(`form[data-by="ethereum"]`), "%s", again.Text("main"))
	require.Equal(t, 200, again.Open("/account/security"))
	require.Contains(t, again.Text("main"), strings.ToLower(s.Chain.Accounts[1].Address))
	require.Equal(t, 200, again.Send(`form:has([value="remove_wallet"])`))
	require.NotContains(t, again.Text("main"), strings.ToLower(s.Chain.Accounts[1].Address))
	last := fresh()
	require.Equal(t, 200, last.Open("/sign-in"))
	require.Equal(t, 403, last.Send(`form[data-by="ethereum"]`), "%s", last.Text("main"))
}
