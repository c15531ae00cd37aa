package account_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/passkey"
	"stoa/identity/passkey/passkeytest"
	"stoa/identity/session"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// cookies returns the cookies that an answer sets, by name.
func cookies(a nodetest.Answer) map[string]*http.Cookie {
	all := map[string]*http.Cookie{}
	for _, c := range a.Result().Cookies() {
		all[c.Name] = c
	}
	return all
}

// challenge begins a sign-in: it returns what is to be signed and the cookie that goes with it.
func challenge(h *nodetest.House, form url.Values) (said struct{ Challenge, Domain, Message string }, cookie string) {
	h.T.Helper()
	a := h.SendForm("/sign-in/challenge", form).Is(200)
	require.Equal(h.T, "no-store", a.Header().Get("Cache-Control"))
	a.Into(&said)
	c := cookies(a)["stoa_sign_in"]
	require.True(h.T, c.HttpOnly && c.SameSite == http.SameSiteStrictMode)
	return said, "stoa_sign_in=" + c.Value
}

func byPasskey(a passkey.Assertion) url.Values {
	return url.Values{"passkey": {a.ID}, "clientData": {a.ClientData}, "authenticatorData": {a.AuthenticatorData}, "signature": {a.Signature}, "user": {a.User}}
}

// session returns the cookie of the session that an answer began, "" for none.
func sessionIn(a nodetest.Answer) string {
	if c := cookies(a)["stoa_session"]; c != nil && c.Value != "" {
		return "stoa_session=" + c.Value
	}
	return ""
}

// TestSignIn_Passkey adds a passkey, signs in with it, and tries what must not sign in.
func TestSignIn_Passkey(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change, nodetest.AtLocalhost)
		box := &nodetest.Postbox{}
		h.Accounts.Mail = box
		h.Work()
		h.Hosted("asha")
		acc, link := h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha")
		asha := []string{"Cookie", "stoa_session=" + h.SignIn(link)}
		options := func(who ...string) (o protocol.PasskeyOptions) {
			a := h.Ask("GET", "/api/owner/passkeys/options", "", who...).Is(200)
			a.Into(&o)
			return o
		}
		add := func(r passkey.Registration, who ...string) nodetest.Answer {
			return h.Ask("POST", "/api/owner/passkeys", fmt.Sprintf(
				`{"name":"My phone","credential":%q,"clientData":%q,"attestation":%q,"transports":["internal","hybrid"]}`, r.ID, r.ClientData, r.Attestation), who...)
		}
		o := options(asha...)
		require.Equal(t, "localhost", o.Domain)
		require.Equal(t, acc.ID, o.User)
		require.Equal(t, "asha@example.org", o.Name)
		require.Empty(t, o.Exclude)
		phone := passkeytest.New(h.Base, "localhost", acc.ID)
		made := phone.Register(o.Challenge)
		other := []string{"Cookie", h.SessionOf(acc.ID, 0)}
		require.Equal(t, 410, add(made, other...).Code, "a challenge is for one session")
		a := add(made, asha...)
		require.Equal(t, 201, a.Code, "%s", a.Body)
		stored := nodetest.As[protocol.Passkey](a)
		require.Equal(t, "My phone", stored.Name)
		require.Equal(t, 410, add(made, asha...).Code, "once")
		require.Equal(t, 409, add(phone.Register(options(asha...).Challenge), asha...).Code, "the same passkey again")
		require.Equal(t, []string{phone.ID()}, options(asha...).Exclude)
		unsure := passkeytest.New(h.Base, "localhost", acc.ID)
		unsure.Unverified = true
		require.Equal(t, 400, add(unsure.Register(options(asha...).Challenge), asha...).Code, "the device did not ask who it is")
		letter := box.Next(t, h)
		require.Equal(t, "asha@example.org", letter.To)
		require.Contains(t, letter.Subject, "A passkey was added")
		require.Contains(t, letter.Text, "My phone")

		try := func(d *passkeytest.Device, cookie, challenge string, more ...string) nodetest.Answer {
			return h.SendForm("/sign-in", byPasskey(d.Sign(challenge)), append([]string{"Cookie", cookie, "User-Agent", "Mozilla/5.0 (iPhone) Safari/604"}, more...)...)
		}
		said, cookie := challenge(h, nil)
		require.Equal(t, "localhost", said.Domain)
		signedIn := try(phone, cookie, said.Challenge)
		require.Equal(t, 303, signedIn.Code, "%s", signedIn.Body)
		require.Equal(t, "/account", signedIn.Header().Get("Location"))
		marker := cookies(signedIn)[session.MarkerName]
		require.False(t, marker.HttpOnly)
		require.Equal(t, "1", marker.Value)
		began := sessionIn(signedIn)
		require.Equal(t, 200, h.Ask("GET", "/api/owner/account", "", "Cookie", began).Code)
		replayed := try(phone, cookie, said.Challenge)
		require.Equal(t, 410, replayed.Code, "a challenge is answered once")
		require.Empty(t, sessionIn(replayed))

		// Who signs in again in the same browser has one session.
		said, cookie = challenge(h, nil)
		require.Equal(t, 303, try(phone, began+"; "+cookie, said.Challenge).Code)
		require.Equal(t, 401, h.Ask("GET", "/api/owner/account", "", "Cookie", began).Code)

		said, cookie = challenge(h, nil)
		_, elsewhere := challenge(h, nil)
		require.Equal(t, 410, try(phone, elsewhere, said.Challenge).Code, "another browser")
		require.Equal(t, 410, try(phone, "x=y", said.Challenge).Code, "no cookie")
		require.Equal(t, 410, try(phone, cookie, options(asha...).Challenge).Code, "a challenge for adding one")
		require.Equal(t, 403, h.SendForm("/sign-in", byPasskey(phone.Sign(said.Challenge)), "Cookie", cookie, "Origin", "https://evil.example",
			"Sec-Fetch-Site", "cross-site").Code, "a form elsewhere")
		stranger := passkeytest.New(h.Base, "localhost", acc.ID)
		unknown := try(stranger, cookie, said.Challenge)
		require.Equal(t, 403, unknown.Code)
		evil := *phone
		evil.Origin = "https://evil.example"
		forged := try(&evil, cookie, said.Challenge)
		require.Equal(t, 403, forged.Code, "signed for another site")
		require.Equal(t, alertOf(t, unknown), alertOf(t, forged), "an error does not say whether a passkey is known")

		// A counter that goes back shows a copy: nobody signs in with this passkey again.
		phone.Count = 1
		copied := try(phone, cookie, said.Challenge)
		require.Equal(t, 403, copied.Code)
		require.Contains(t, alertOf(t, copied), "counter")
		require.Empty(t, sessionIn(copied))
		require.Contains(t, box.Next(t, h).Subject, "copied")
		phone.Count = 100
		said, cookie = challenge(h, nil)
		require.Equal(t, 403, try(phone, cookie, said.Challenge).Code)
		ways := nodetest.As[protocol.SignInMethods](h.Ask("GET", "/api/owner/sign-in", "", asha...))
		require.True(t, ways.Passkeys[0].Suspect)
		require.NotNil(t, ways.Passkeys[0].LastUsedAt)

		require.Equal(t, 404, h.Ask("DELETE", "/api/owner/passkeys/psk_01k9y3v6k8e5w9q2x4z7c1m0ad", "", asha...).Code)
		mira := []string{"Cookie", h.SessionOf(accountOf(h, "mira"), 0)}
		require.Equal(t, 404, h.Ask("DELETE", "/api/owner/passkeys/"+stored.ID, "", mira...).Code, "another account's")
		require.Equal(t, 204, h.Ask("DELETE", "/api/owner/passkeys/"+stored.ID, "", asha...).Code)
		require.Contains(t, box.Next(t, h).Subject, "removed")
		said, cookie = challenge(h, nil)
		removed := try(phone, cookie, said.Challenge)
		require.Equal(t, alertOf(t, unknown), alertOf(t, removed))

		// The account is deleted with what signs in to it.
		tablet := passkeytest.New(h.Base, "localhost", acc.ID)
		require.Equal(t, 201, add(tablet.Register(options(asha...).Challenge), asha...).Code)
		require.Equal(t, 201, h.Ask("POST", "/api/owner/recovery-codes", "{}", asha...).Code)
		must.Get(node.Do(t.Context(), h.Node.Admin(), protocol.CloseAccountFor, protocol.AccountRef{Account: acc.ID}))(t)
		require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			require.Empty(t, must.Get(tx.Passkeys().OfAccount(ctx, acc.ID, 10))(t))
			n, _, err := tx.RecoveryCodes().Left(ctx, acc.ID)
			require.Zero(t, n)
			return err
		}))
	})
}

// accountOf opens an account with a profile.
func accountOf(h *nodetest.House, handle string) string {
	h.T.Helper()
	acc, _ := h.OpenAccount(handle, protocol.RoleOwner, "")
	return acc.ID
}

// alertOf is what the page says is wrong.
func alertOf(t *testing.T, a nodetest.Answer) string {
	t.Helper()
	found := regexp.MustCompile(`(?s)<div class="alert" role="alert">(.*?)</div>`).FindStringSubmatch(a.Body.String())
	require.NotNil(t, found, "%s", a.Body)
	return found[1]
}

// TestSignIn_Codes: recovery codes sign in once each, new ones end the old ones, and what changes how
// an account signs in takes a browser that signed in lately.
func TestSignIn_Codes(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change, nodetest.AtLocalhost)
		box := &nodetest.Postbox{}
		h.Accounts.Mail = box
		h.Work()
		acc := accountOf(h, "Asha")
		require.NoError(t, h.Admin().SetMail(t.Context(), acc, "asha@example.org"))
		lately, long := h.SessionOf(acc, 14*time.Minute), h.SessionOf(acc, 16*time.Minute)
		make := func(cookie string) (codes []string, a nodetest.Answer) {
			var made protocol.MadeCodes
			a = h.Ask("POST", "/api/owner/recovery-codes", "{}", "Cookie", cookie)
			if a.Code == 201 {
				a.Into(&made)
			}
			return made.Codes, a
		}
		_, a := make(long)
		require.Equal(t, 403, a.Code)
		require.Equal(t, protocol.SignInAgain, a.Problem().Code)
		for _, refused := range []nodetest.Answer{
			h.Ask("GET", "/api/owner/passkeys/options", "", "Cookie", long),
			h.Ask("DELETE", "/api/owner/passkeys/psk_01k9y3v6k8e5w9q2x4z7c1m0ad", "", "Cookie", long),
			h.Ask("PUT", "/api/owner/account/mail", `{"mail":"evil@example.org"}`, "Cookie", long),
			h.Ask("PUT", "/api/owner/account/mail", `{}`, "Cookie", long),
			h.Ask("POST", "/api/owner/tokens", `{"name":"x","scopes":["account"]}`, "Cookie", long),
		} {
			require.Equal(t, protocol.SignInAgain, refused.Problem().Code, "%s", refused.Body)
		}
		require.Equal(t, 201, h.Ask("POST", "/api/owner/tokens", `{"name":"x","scopes":["post"]}`, "Cookie", long).Code)
		var whole protocol.MadeToken
		h.Ask("POST", "/api/owner/tokens", `{"name":"x","scopes":["post","profile","keys","inbox","notify","archive","attention","meetings","account"]}`,
			"Cookie", lately).Into(&whole)
		require.Equal(t, 403, h.Ask("POST", "/api/owner/recovery-codes", "{}", "Authorization", "Bearer "+whole.Secret).Code, "no token can")
		kept := h.SendForm("/account", url.Values{"do": {"put_account_mail"}, "mail": {"typed@example.org"}}, "Cookie", long).Is(403)
		require.Contains(t, kept.Body.String(), `value="typed@example.org"`)
		require.Contains(t, kept.Body.String(), `href="/sign-in?again=1`)

		first, a := make(lately)
		require.Len(t, first, protocol.RecoveryCodes, "%s", a.Body)
		require.Contains(t, box.Next(t, h).Subject, "Recovery codes were made")
		use := func(code string) nodetest.Answer {
			return h.SendForm("/sign-in", url.Values{"code": {code}, "to": {"/account/security"}})
		}
		in := use(" " + strings.ToLower(strings.ReplaceAll(first[0], "-", " ")))
		require.Equal(t, 303, in.Code, "%s", in.Body)
		require.Equal(t, "/account/security", in.Header().Get("Location"))
		require.Equal(t, 200, h.Ask("GET", "/api/owner/account", "", "Cookie", sessionIn(in)).Code)
		require.Contains(t, box.Next(t, h).Subject, "was used")
		spent := use(first[0])
		require.Equal(t, 410, spent.Code, "once")
		ways := nodetest.As[protocol.SignInMethods](h.Ask("GET", "/api/owner/sign-in", "", "Cookie", sessionIn(in)))
		require.Equal(t, 9, ways.RecoveryCodes)
		require.True(t, ways.Recent)
		second, _ := make(sessionIn(in))
		require.Equal(t, 410, use(first[1]).Code, "renewed")
		mistyped := use("AAAAA-BBBBB-CCCCC-DDDDD")
		require.Equal(t, 410, mistyped.Code)
		require.Equal(t, alertOf(t, spent), alertOf(t, mistyped))
		require.Contains(t, mistyped.Body.String(), `value="AAAAA-BBBBB-CCCCC-DDDDD"`, "what was typed is kept")
		for _, to := range []string{"https://evil.example/", "//evil.example", "/account//evil", "/board", "/account/\\evil"} {
			in := h.SendForm("/sign-in", url.Values{"code": {second[0]}, "to": {to}}).Is(303)
			require.Equal(t, "/account", in.Header().Get("Location"), to)
			second = second[1:]
		}

		// Other browsers are signed out together, and the operator ends everything.
		require.Equal(t, 200, h.Ask("DELETE", "/api/owner/sessions", "", "Cookie", sessionIn(in)).Code)
		require.Equal(t, 401, h.Ask("GET", "/api/owner/account", "", "Cookie", lately).Code)
		require.Equal(t, 200, h.Ask("GET", "/api/owner/account", "", "Cookie", sessionIn(in)).Code)
		out, err := node.Do(t.Context(), h.Node.Admin(), protocol.SignOut, protocol.SignOutDraft{AccountRef: protocol.AccountRef{Account: acc}, Forget: true})
		require.NoError(t, err)
		require.Equal(t, 1, out.Ended)
		require.Equal(t, 410, use(second[0]).Code)
	})
}

// TestSignIn_Pages: the state of the sign-in is in the header of every page, those that are the same
// for everyone stay the same, and an address without a domain name says that passkeys do not work.
func TestSignIn_Pages(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	acc := accountOf(h, "Asha <b>")
	cookie := h.SessionOf(acc, 0)
	page := h.Ask("GET", "/sign-in", "", "Accept", nodetest.Accept)
	require.Contains(t, page.Body.String(), "they need a domain name")
	nodetest.ParsePage(t, "/sign-in", page.Body.String()).WellFormed()
	board := h.Ask("GET", "/board", "", "Accept", nodetest.Accept)
	require.Contains(t, board.Body.String(), `<a href="/sign-in" data-me="Your account"`)
	mine := h.Ask("GET", "/board", "", "Accept", nodetest.Accept, "Cookie", cookie, "If-None-Match", board.Header().Get("ETag"))
	require.Equal(t, 304, mine.Code, "the same answer for everybody")
	account := h.Ask("GET", "/account", "", "Accept", nodetest.Accept, "Cookie", cookie)
	require.Contains(t, account.Body.String(), `aria-current="page">Asha &lt;b&gt;</a>`)
	require.Equal(t, "1", cookies(account)[session.MarkerName].Value, "a session of an older version")
	require.Empty(t, cookies(h.Ask("GET", "/account", "", "Accept", nodetest.Accept, "Cookie", cookie+"; stoa_signed_in=1")))
	security := h.Ask("GET", "/account/security", "", "Accept", nodetest.Accept, "Cookie", cookie)
	require.Contains(t, security.Body.String(), "Passkeys do not work at this address")
	require.Contains(t, security.Body.String(), "Chrome on Linux")
	nodetest.ParsePage(t, "/account/security", security.Body.String()).WellFormed()
	require.Equal(t, 303, h.Ask("GET", "/sign-in", "", "Accept", nodetest.Accept, "Cookie", cookie).Code)
	require.Equal(t, 200, h.Ask("GET", "/sign-in?again=1", "", "Accept", nodetest.Accept, "Cookie", cookie).Code)
	gone := h.Ask("GET", "/sign-in", "", "Accept", nodetest.Accept, "Cookie", "stoa_session=ended")
	require.Negative(t, cookies(gone)[session.MarkerName].MaxAge, "nobody is signed in any more")
	require.Equal(t, 403, h.SendForm("/sign-in", url.Values{"passkey": {"AAAA"}}).Code)
	require.Equal(t, 409, h.SendForm("/sign-in", url.Values{"message": {"x"}}).Code, "no chain")
	require.Equal(t, 400, h.SendForm("/sign-in/challenge", url.Values{"account": {"0x"}}).Code)
	require.Equal(t, 409, h.Ask("GET", "/api/owner/passkeys/options", "", "Cookie", cookie).Code)

	kept := h.SendForm("/account", url.Values{"do": {"add_passkey"}, "name": {"My old phone"}}, "Cookie", "stoa_session=ended").Is(401)
	require.Contains(t, kept.Body.String(), `value="My old phone"`, "what was typed is kept")
	require.Negative(t, cookies(h.SendForm("/sign-out", nil, "Cookie", cookie))[session.MarkerName].MaxAge)
}
