package account_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// A program is a client of OAuth that a test drives, and the cookie of the owner's browser.
type program struct {
	h                    *nodetest.House
	id, redirect, cookie string
}

const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk-and-more"

// asks are the members of its request, with changes: names and values, "" for none.
func (p program) asks(change ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{"client_id": {p.id}, "redirect_uri": {p.redirect}, "response_type": {"code"}, "scope": {"post inbox other"}, "state": {"s t&x"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {p.h.Base + protocol.OwnerMCPPath}}
	for i := 0; i < len(change); i += 2 {
		if q.Set(change[i], change[i+1]); change[i+1] == "" {
			q.Del(change[i])
		}
	}
	return q
}

// page is what the owner's browser is shown.
func (p program) page(q url.Values) nodetest.Answer {
	return p.h.Ask("GET", protocol.OAuthAuthorizePath+"?"+q.Encode(), "", "Accept", nodetest.Accept, "Cookie", p.cookie,
		"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
}

var onward = regexp.MustCompile(`http-equiv="refresh" content="0; url=([^"]*)"`)

// press is the owner's press; the answer is what the browser brings back to the program.
func (p program) press(q url.Values, form ...string) url.Values {
	p.h.T.Helper()
	for i := 0; i < len(form); i += 2 {
		q.Add(form[i], form[i+1])
	}
	q.Set("do", "grant_client")
	a := p.h.SendForm(protocol.OAuthAuthorizePath, q, "Cookie", p.cookie).Is(200)
	to := onward.FindStringSubmatch(a.Body.String())
	require.NotNil(p.h.T, to, "%s", a.Body)
	u := must.Get(url.Parse(strings.ReplaceAll(to[1], "&amp;", "&")))(p.h.T)
	require.True(p.h.T, strings.HasPrefix(u.String(), p.redirect), u)
	return u.Query()
}

// token asks the token endpoint.
func (p program) token(change ...string) nodetest.Answer {
	q := url.Values{"client_id": {p.id}, "redirect_uri": {p.redirect}, "grant_type": {"authorization_code"}, "code_verifier": {verifier}}
	for i := 0; i < len(change); i += 2 {
		q.Set(change[i], change[i+1])
	}
	return p.h.Ask("POST", protocol.OAuthTokenPath, q.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

func (p program) refused(a nodetest.Answer, status int, name string) {
	p.h.T.Helper()
	var e struct{ Error, Description string }
	a.Is(status).Into(&e)
	require.Equal(p.h.T, name, e.Error, "%s", a.Body)
	require.Equal(p.h.T, "no-store", a.Header().Get("Cache-Control"))
}

// lists is what the owners' MCP door answers to tools/list.
func (p program) lists(secret string) nodetest.RPCAnswer {
	if secret == "" {
		return p.h.ModernAt(protocol.OwnerMCPPath, "tools/list", "")
	}
	return p.h.ModernAt(protocol.OwnerMCPPath, "tools/list", "", "Authorization", "Bearer "+secret)
}

// registered is a program that registers, of an owner who is signed in.
func registered(h *nodetest.House) program {
	h.Hosted("asha")
	_, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
	p := program{h: h, redirect: "http://127.0.0.1:4711/callback?of=x", cookie: "stoa_session=" + h.SignIn(link)}
	var c protocol.Client
	h.Ask("POST", protocol.OAuthRegisterPath, `{"client_name":"Desk","redirect_uris":["http://127.0.0.1:1/callback?of=x","https://desk.example/cb"],
		"token_endpoint_auth_method":"client_secret_post","logo_uri":"https://x.example/"}`, "Content-Type", "application/json").Is(201).Into(&c)
	require.Equal(h.T, "none", c.Auth)
	p.id = c.ID
	return p
}

// TestOAuth goes from no token to an owner's tools, and tries what a thief would: each is refused, and a second use of a code or refresh token
// ends what it gave.
func TestOAuth(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		p := registered(h)

		first := p.lists("")
		require.Equal(t, 401, first.Code, "%s", first.Body)
		require.Equal(t, `Bearer realm="stoa", resource_metadata="`+h.Base+`/.well-known/oauth-protected-resource/mcp/owner", `+
			`scope="post profile inbox notify attention meetings orders"`, first.Header().Get("WWW-Authenticate"))
		require.Equal(t, 401, h.RPCAt(protocol.OwnerMCPPath, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`).Code)
		var resource struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
		}
		h.Ask("GET", "/.well-known/oauth-protected-resource/mcp/owner", "").Is(200).Into(&resource)
		require.Equal(t, h.Base+"/mcp/owner", resource.Resource)
		require.Equal(t, []string{h.Base}, resource.Servers)
		var server map[string]any
		h.Ask("GET", "/.well-known/oauth-authorization-server", "").Is(200).Into(&server)
		require.Equal(t, h.Base, server["issuer"])
		require.Equal(t, h.Base+protocol.OAuthAuthorizePath, server["authorization_endpoint"])

		shown := p.page(p.asks()).Is(200)
		require.Contains(t, shown.Body.String(), "Desk")
		require.Contains(t, shown.Body.String(), "a program on this computer")
		require.NotContains(t, shown.Body.String(), `value="keys"`, "only what it asks for")
		require.Equal(t, "no-store", shown.Header().Get("Cache-Control"))
		require.Contains(t, shown.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'")

		answer := p.press(p.asks(), "scopes", "inbox", "expiresInDays", "7", "handle", "asha")
		require.Equal(t, "s t&x", answer.Get("state"))
		require.Equal(t, h.Base, answer.Get("iss"))
		require.Equal(t, "x", answer.Get("of"))
		code := answer.Get("code")
		other := p
		other.id = "https://thief.example/client"
		p.refused(p.token("code", code, "code_verifier", verifier+"x"), 400, "invalid_grant")
		p.refused(p.token("code", code, "redirect_uri", "http://127.0.0.1:9/callback?of=x"), 400, "invalid_grant")
		p.refused(p.token("code", code, "resource", h.Base), 400, "invalid_target")
		p.refused(p.token("code", code[:len(code)-2]+"AA"), 400, "invalid_grant")
		p.refused(p.token("grant_type", "password"), 400, "unsupported_grant_type")
		p.refused(other.token("code", code), 401, "invalid_client")

		var got, next protocol.TokenAnswer
		p.token("code", code).Is(200).Into(&got)
		require.Equal(t, "inbox", got.Scope)
		require.InDelta(t, 3600, got.ExpiresIn, 5)

		listed := p.lists(got.AccessToken)
		require.Equal(t, 200, listed.Code)
		require.Contains(t, string(listed.Result), `"name":"list_threads"`)
		require.NotContains(t, string(listed.Result), `"name":"put_own_profile"`)
		require.Contains(t, string(listed.Result), `"cacheScope":"private"`)
		bearer := []string{"Authorization", "Bearer " + got.AccessToken}
		require.False(t, h.Tool("list_threads", `{"handle":"asha"}`, bearer...).IsError)
		more := h.ModernAt(protocol.OwnerMCPPath, "tools/call", `"name":"list_keys","arguments":{}`, append(bearer, "Mcp-Name", "list_keys")...)
		require.Equal(t, 403, more.Code)
		require.Contains(t, more.Header().Get("WWW-Authenticate"), `scope="keys", error="insufficient_scope"`)
		account := h.ModernAt(protocol.OwnerMCPPath, "tools/call", `"name":"list_tokens","arguments":{}`, append(bearer, "Mcp-Name", "list_tokens")...)
		require.Equal(t, 200, account.Code, "no sign-in gives what only a token does")
		require.Equal(t, 401, h.Ask("GET", "/api/owner/threads", "", bearer...).Code, "it is good at the MCP door")

		var tokens protocol.Page[protocol.Token]
		h.Ask("GET", "/api/owner/tokens", "", "Cookie", p.cookie, "Sec-Fetch-Site", "same-origin").Is(200).Into(&tokens)
		require.Len(t, tokens.Items, 1)
		require.Equal(t, "Desk", tokens.Items[0].Name)

		refresh := func(with string, change ...string) nodetest.Answer {
			return p.token(append([]string{"grant_type", "refresh_token", "refresh_token", with}, change...)...)
		}
		p.refused(other.token("grant_type", "refresh_token", "refresh_token", got.RefreshToken), 401, "invalid_client")
		p.refused(refresh(got.RefreshToken, "resource", h.Base+"/other"), 400, "invalid_target")
		p.refused(refresh("stoa_refresh_x"), 400, "invalid_grant")
		refresh(got.RefreshToken).Is(200).Into(&next)
		require.Equal(t, 401, p.lists(got.AccessToken).Code, "the one before has ended")
		require.Equal(t, 200, p.lists(next.AccessToken).Code)
		p.refused(refresh(got.RefreshToken), 400, "invalid_grant")
		require.Equal(t, 401, p.lists(next.AccessToken).Code, "a stolen refresh token ends the sign-in")
		p.refused(refresh(next.RefreshToken), 400, "invalid_grant")

		code = p.press(p.asks("resource", ""), "scopes", "post", "expiresInDays", "7").Get("code")
		p.token("code", code).Is(200).Into(&got)
		require.Equal(t, 200, h.Ask("GET", "/api/owner/account", "", "Authorization", "Bearer "+got.AccessToken).Code, "without resource it is good at the node")
		p.refused(p.token("code", code), 400, "invalid_grant")
		require.Equal(t, 401, h.Ask("GET", "/api/owner/account", "", "Authorization", "Bearer "+got.AccessToken).Code, "a code that is used twice ends its token")

		p.token("code", p.press(p.asks(), "scopes", "post", "expiresInDays", "7").Get("code")).Is(200).Into(&got)
		for _, token := range []string{"unknown", "stoa_refresh_x", got.RefreshToken} {
			h.Ask("POST", protocol.OAuthRevokePath, url.Values{"token": {token}}.Encode(), "Content-Type", "application/x-www-form-urlencoded").Is(200)
		}
		require.Equal(t, 401, p.lists(got.AccessToken).Code)
		p.refused(refresh(got.RefreshToken), 400, "invalid_grant")
	})
}

// TestOAuth_Asks: what a program may not ask is said to the person, and nothing is sent anywhere.
func TestOAuth_Asks(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	p := registered(h)
	for why, change := range map[string][]string{
		"another address":   {"redirect_uri", "http://127.0.0.1:4711/other"},
		"another host":      {"redirect_uri", "https://thief.example/cb"},
		"a longer address":  {"redirect_uri", "https://desk.example/cb/more"},
		"another port":      {"redirect_uri", "https://desk.example:444/cb"},
		"script":            {"redirect_uri", "javascript:alert(1)"},
		"no challenge":      {"code_challenge", ""},
		"a plain challenge": {"code_challenge_method", "plain"},
		"a token at once":   {"response_type", "token"},
		"another place":     {"resource", "https://other.example/mcp/owner"},
		"an unknown id":     {"client_id", "stoa_client_AAAA"},
		"a private address": {"client_id", "https://10.0.0.1/client.json"},
	} {
		a := p.page(p.asks(change...))
		require.Contains(t, []int{404, 409, 422}, a.Code, why)
		require.Contains(t, a.Body.String(), "The program cannot be connected", why)
		q := p.asks(change...)
		q.Set("do", "grant_client")
		q.Add("scopes", "post")
		require.Contains(t, []int{404, 409, 422}, h.SendForm(protocol.OAuthAuthorizePath, q, "Cookie", p.cookie).Code, why)
	}
	require.Equal(t, 400, p.page(url.Values{"client_id": {p.id, p.id}}).Code)
	q := p.asks("do", "grant_client", "scopes", "keys")
	require.Equal(t, 422, h.SendForm(protocol.OAuthAuthorizePath, q, "Cookie", p.cookie).Code, "more than it asks for")
	q.Set("scopes", "post")
	require.Equal(t, 403, h.Ask("POST", protocol.OAuthAuthorizePath, q.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Cookie", p.cookie,
		"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").Code, "another site presses for the person")
	q.Set("handle", "ravi")
	h.Hosted("ravi")
	require.Equal(t, 403, h.SendForm(protocol.OAuthAuthorizePath, q, "Cookie", p.cookie).Code)

	for _, uri := range []string{"", "http://desk.example/cb", "javascript:x", "data:text/html,x", "https://a.example/#x", "https://u:p@a.example/"} {
		require.Equal(t, 400, h.Ask("POST", protocol.OAuthRegisterPath, `{"redirect_uris":["`+uri+`"]}`).Code, uri)
	}
	h.Ask("POST", protocol.OAuthRegisterPath, `{"redirect_uris":["cursor://anysphere.cursor-retrieval/oauth/callback"]}`).Is(201)

	a := p.h.Ask("GET", protocol.OAuthAuthorizePath+"?"+p.asks().Encode(), "", "Accept", nodetest.Accept).Is(303)
	require.Equal(t, "/sign-in", a.Header().Get("Location"))
	asked := a.Result().Cookies()[0]
	_, link := h.OpenAccount("Ravi", protocol.RoleOwner, "", "ravi")
	signed := h.SendForm("/sign-in", url.Values{"ticket": {link[strings.Index(link, "=")+1:]}}, "Cookie", asked.Name+"="+asked.Value).Is(303)
	require.Equal(t, protocol.OAuthAuthorizePath+"?"+p.asks().Encode(), signed.Header().Get("Location"), "and comes back after the sign-in")
}

// TestOAuth_Document: a program is known by the document at its address, which vouches for its name.
func TestOAuth_Document(t *testing.T) {
	t.Parallel()
	var doc func(w http.ResponseWriter)
	reads := 0
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reads++; doc(w) }))
	t.Cleanup(site.Close)
	h := nodetest.New(t, func(c *node.Config) { c.Dev = true })
	p := registered(h)
	says := func(id, more string) {
		doc = func(w http.ResponseWriter) {
			fmt.Fprintf(w, `{"client_id":%q,"client_name":"Assistant","redirect_uris":["http://localhost/cb"]%s}`, id, more)
		}
	}
	p.redirect = "http://localhost:5555/cb"
	try := func(path string) nodetest.Answer {
		p.id = site.URL + path
		return p.page(p.asks())
	}
	says(site.URL+"/other", "")
	require.Contains(t, try("/a").Is(409).Body.String(), "names another program")
	says(site.URL+"/b", `,"token_endpoint_auth_method":"private_key_jwt"`)
	require.Contains(t, try("/b").Is(409).Body.String(), "kind of client authentication")
	says(site.URL+"/c", `,"redirect_uris":["javascript:x"]`)
	try("/c").Is(409)
	says(site.URL+"/d", `,"more":"`+strings.Repeat("x", 11<<10)+`"`)
	require.Contains(t, try("/d").Is(409).Body.String(), "longer than 10 KiB")
	doc = func(w http.ResponseWriter) { w.Header().Set("Location", "/f"); w.WriteHeader(302) }
	try("/e").Is(409)
	says(site.URL+"/f", "")
	before := reads
	require.Contains(t, try("/f").Is(200).Body.String(), "which vouches for this name")
	try("/f").Is(200)
	require.Equal(t, before+1, reads, "it is kept for some minutes")
	var got protocol.TokenAnswer
	p.token("code", p.press(p.asks(), "scopes", "inbox", "expiresInDays", "1").Get("code")).Is(200).Into(&got)
	require.Equal(t, 200, p.lists(got.AccessToken).Code)

	p.cookie = ""
	before = reads
	require.Equal(t, 303, try("/g").Code)
	require.Equal(t, before, reads, "nobody who is not signed in makes the node fetch")
}

// TestOAuth_Ends: what was allowed ends with its time, and with the account's right to the profile.
func TestOAuth_Ends(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		p := registered(h)
		var got protocol.TokenAnswer
		p.token("code", p.press(p.asks(), "scopes", "inbox", "expiresInDays", "1", "handle", "asha").Get("code")).Is(200).Into(&got)
		late := p.press(p.asks(), "scopes", "inbox", "expiresInDays", "1", "handle", "asha").Get("code")
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Accounts().UnlinkProfile(ctx, "asha") }))
		require.Equal(t, 401, p.lists(got.AccessToken).Code)
		p.refused(p.token("grant_type", "refresh_token", "refresh_token", got.RefreshToken), 400, "invalid_grant")
		p.refused(p.token("code", late), 400, "invalid_grant")
	})
}
