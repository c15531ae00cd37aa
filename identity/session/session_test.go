package session_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/session"
)

const (
	secure = "https://n1.example"
	local  = "http://127.0.0.1:8080"
)

// request is what a browser sends with a cookie of the node at base. Lines are
// "Name: value".
func request(method, base, secret string, lines ...string) *http.Request {
	r := httptest.NewRequest(method, base+"/account", nil)
	if secret != "" {
		r.AddCookie(&http.Cookie{Name: session.CookieName(base), Value: secret})
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	seen := map[[32]byte]session.Kind{}
	for _, k := range []session.Kind{session.Token, session.Cookie, session.Ticket} {
		secret, hash := session.New(k)
		require.GreaterOrEqual(t, len(secret), 32, "192 bits in base64url")
		require.Equal(t, k == session.Token, strings.HasPrefix(secret, session.TokenPrefix))
		again, ok := session.Hash(k, secret)
		require.True(t, ok)
		require.Equal(t, hash, again)
		for _, other := range []session.Kind{session.Token, session.Cookie, session.Ticket} {
			if got, ok := session.Hash(other, secret); ok && other != k {
				require.NotEqual(t, hash, got, "a %s is not good as a %s", k, other)
			}
		}
		another, _ := session.New(k)
		require.NotEqual(t, secret, another)
		require.NotContains(t, seen, hash)
		seen[hash] = k
	}
}

func TestHash_WhatWasNeverASecret(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind   session.Kind
		secret string
		ok     bool
	}{
		{session.Token, "", false},
		{session.Token, session.TokenPrefix, false},
		{session.Token, strings.Repeat("a", 32), false}, // no prefix
		{session.Token, session.TokenPrefix + strings.Repeat("a", 32), true},
		{session.Token, session.TokenPrefix + strings.Repeat("a", 100), false},
		{session.Cookie, strings.Repeat("a", 23), false},
		{session.Cookie, strings.Repeat("a", 32), true},
		{session.Cookie, strings.Repeat("a", 100), true},
		{session.Cookie, strings.Repeat("a", 101), false},
		{session.Ticket, "", false},
	} {
		_, ok := session.Hash(tt.kind, tt.secret)
		require.Equal(t, tt.ok, ok, "%s %q", tt.kind, tt.secret)
	}
}

func TestSetCookie(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, base, secret string
		want               string
	}{
		{"begins", secure, "s", "__Host-stoa_session=s; Path=/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax"},
		{"ends", secure, "", "__Host-stoa_session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"},
		{"on loopback", local, "s", "stoa_session=s; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax"},
	} {
		require.Equal(t, tt.want, session.SetCookie(tt.base, tt.secret).String(), tt.name)
	}
}

// TestSameOrigin is the defence against forms of other sites.
func TestSameOrigin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		lines []string
		want  bool
	}{
		{"no browser", nil, true},
		{"our page", []string{"Origin: https://n1.example", "Sec-Fetch-Site: same-origin"}, true},
		{"our page, an old browser", []string{"Origin: https://n1.example"}, true},
		{"the address bar", []string{"Sec-Fetch-Site: none"}, true},
		{"another site", []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"}, false},
		{"another site, an old browser", []string{"Origin: https://evil.example"}, false},
		{"a subdomain", []string{"Origin: https://x.n1.example", "Sec-Fetch-Site: same-site"}, false},
		{"another port", []string{"Origin: https://n1.example:8443"}, false},
		{"another scheme", []string{"Origin: http://n1.example"}, false},
		{"a link from elsewhere", []string{"Sec-Fetch-Site: cross-site"}, false},
		{"an empty origin", []string{"Origin: "}, false},
		{"two origins", []string{"Origin: https://n1.example", "Origin: https://evil.example"}, false},
		{"two origins, ours last", []string{"Origin: https://evil.example", "Origin: https://n1.example"}, false},
		{"our origin twice", []string{"Origin: https://n1.example", "Origin: https://n1.example"}, false},
		{"two sites", []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"}, false},
		{"an unknown site", []string{"Sec-Fetch-Site: x"}, false},
	} {
		require.Equal(t, tt.want, session.SameOrigin(request("POST", secure, "", tt.lines...), secure), tt.name)
	}
}

// TestOf is which cookie counts, for what changes something (Of) and for a page
// that is only looked at (OfReader).
func TestOf(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef0123456789abcdef"
	link := []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}
	for _, tt := range []struct {
		name        string
		method      string
		lines       []string
		acts, looks bool
	}{
		{"our page", "POST", []string{"Origin: https://n1.example", "Sec-Fetch-Site: same-origin"}, true, true},
		{"a link from a mail", "GET", link, false, true},
		{"a link, asked for with HEAD", "HEAD", link, false, true},
		{"a form of another site", "POST", link, false, false},
		{"an image of another site", "GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"}, false, false},
		{"a frame of another site", "GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, false, false},
		{"a script of another site", "GET", []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors",
			"Sec-Fetch-Dest: empty"}, false, false},
	} {
		r := request(tt.method, secure, secret, tt.lines...)
		require.Equal(t, tt.acts, session.Of(r, secure) == secret, tt.name)
		require.Equal(t, tt.looks, session.OfReader(r, secure) == secret, tt.name)
	}
	require.Empty(t, session.Of(nil, secure))
	require.Empty(t, session.OfReader(nil, secure))
	require.Empty(t, session.Of(request("GET", secure, ""), secure), "no cookie")

	twice := request("GET", secure, secret)
	twice.AddCookie(&http.Cookie{Name: session.CookieName(secure), Value: "another"})
	require.Empty(t, session.Of(twice, secure), "another site of the domain set one alongside ours")

	other := request("GET", local, secret) // the name without the prefix
	require.Empty(t, session.Of(other, secure))
}
