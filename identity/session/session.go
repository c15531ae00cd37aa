// Package session makes the secrets of owners: API tokens, the cookies of browsers' sessions,
// one-time tickets, recovery codes and challenges, and decides which cookie of a request counts. A secret has 192 random bits, so
// its hash needs neither salt nor a slow function; only the hash is stored, and each kind is
// hashed differently, so that a secret of one kind is never valid as another.
package session

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

// A Kind is what a secret is for.
type Kind string

const (
	Token  Kind = "token"  // an API token, sent as Authorization: Bearer
	Cookie Kind = "cookie" // a browser's session
	Ticket Kind = "ticket" // used once: a sign-in link, the proof of an address
)

// A Browser is what is known of a browser that signs in.
type Browser struct {
	Program  string // what it calls itself
	Former   string // secret of the session that it has so far, "" for none
	Bound    string // secret of its sign-in cookie, "" for none
	Network  string // keyed hash of its network
	Language string // code of the language of the page where it signs in
}

// TokenPrefix begins every API token, so that a leaked one is recognised.
const TokenPrefix = "stoa_"

// Lifetimes.
const (
	Lifetime       = 30 * 24 * time.Hour // of a session
	TicketLifetime = 30 * time.Minute    // of a ticket
	Recent         = 15 * time.Minute    // after a sign-in, during which its session may change how the account signs in
)

const (
	secretBytes = 24
	maxSecret   = 100 // characters
)

// New returns a secret and the hash to store.
func New(k Kind) (secret string, hash [32]byte) {
	var raw [secretBytes]byte
	rand.Read(raw[:])
	secret = base64.RawURLEncoding.EncodeToString(raw[:])
	if k == Token {
		secret = TokenPrefix + secret
	}
	hash, _ = Hash(k, secret)
	return secret, hash
}

// Hash returns the stored form of a secret. ok is false for a text that cannot be a secret.
func Hash(k Kind, secret string) (hash [32]byte, ok bool) {
	if len(secret) > maxSecret || len(secret) < secretBytes {
		return hash, false
	}
	if k == Token {
		return sha256.Sum256([]byte(secret)), strings.HasPrefix(secret, TokenPrefix)
	}
	return sha256.Sum256([]byte(string(k) + "\x00" + secret)), true
}

// CookieName returns the name of the session's cookie. Under https it has the prefix with which
// browsers refuse it from a subdomain, over http or with a path (RFC 6265bis §4.1.3.2).
func CookieName(base string) string { return prefixed(base, "stoa_session") }

func prefixed(base, name string) string {
	if strings.HasPrefix(base, "https://") {
		return "__Host-" + name
	}
	return name
}

// SetCookie returns the cookie that begins a session at the node at base or, with an empty secret,
// ends it.
func SetCookie(base, secret string) *http.Cookie {
	c := &http.Cookie{
		Name: CookieName(base), Value: secret, Path: "/", HttpOnly: true,
		Secure: strings.HasPrefix(base, "https://"), SameSite: http.SameSiteLaxMode,
		MaxAge: int(Lifetime / time.Second),
	}
	if secret == "" {
		c.MaxAge = -1
	}
	return c
}

// codeLetters are the digits of recovery codes: Crockford's base32, which has no letters that look
// like others.
const codeLetters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// codeSize is the length of a recovery code without its hyphens: 100 random bits.
const codeSize = 20

// NewCode returns a recovery code, four groups of five letters, and the hash to store.
func NewCode() (code string, hash [32]byte) {
	var raw [codeSize]byte
	rand.Read(raw[:])
	var b strings.Builder
	for i, r := range raw {
		if i > 0 && i%5 == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(codeLetters[r&31])
	}
	hash, _ = HashCode(b.String())
	return b.String(), hash
}

// HashCode returns the stored form of a recovery code as somebody typed it: case, spaces, hyphens,
// and o for 0, i and l for 1 do not matter. ok is false for a text that cannot be a code.
func HashCode(typed string) (hash [32]byte, ok bool) {
	if len(typed) > maxSecret {
		return hash, false
	}
	clean := strings.NewReplacer(" ", "", "-", "", "\t", "", "\r", "", "\n", "", "O", "0", "I", "1", "L", "1").Replace(strings.ToUpper(typed))
	if len(clean) != codeSize || strings.Trim(clean, codeLetters) != "" {
		return hash, false
	}
	return sha256.Sum256([]byte("code\x00" + clean)), true
}

// Of returns the secret in the session's cookie of a request, "" when there is none or when the
// request was not made by a page of this node: browsers send a cookie with requests of other pages
// too, so a cookie alone is no evidence.
func Of(r *http.Request, base string) string {
	if r == nil || r.Header["Cookie"] == nil || !SameOrigin(r, base) {
		return ""
	}
	return value(r, base)
}

// OfReader is Of for a page that is only read: a link from elsewhere may lead to it (a mail, a
// bookmark), since reading changes nothing and the other page sees nothing of it.
func OfReader(r *http.Request, base string) string {
	if secret := Of(r, base); secret != "" || r == nil {
		return secret
	}
	looking := (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	if !looking {
		return ""
	}
	return value(r, base)
}

// MarkerName is the name of the cookie of [SetMarker].
const MarkerName = "stoa_signed_in"

// SetMarker returns the cookie that tells the script of a page that this browser is signed in, or
// ends it. It opens nothing: pages that are the same for everyone can so show who reads them.
func SetMarker(base string, signedIn bool) *http.Cookie {
	c := SetCookie(base, "1")
	c.Name, c.HttpOnly = MarkerName, false
	if !signedIn {
		c.Value, c.MaxAge = "", -1
	}
	return c
}

// SetBound returns the cookie that binds the challenges of a sign-in to a browser.
func SetBound(base, secret string) *http.Cookie {
	return &http.Cookie{
		Name: prefixed(base, "stoa_sign_in"), Value: secret, Path: "/", HttpOnly: true, Secure: strings.HasPrefix(base, "https://"),
		SameSite: http.SameSiteStrictMode, MaxAge: int(ChallengeLifetime / time.Second),
	}
}

// BoundOf returns the secret in that cookie of a request by a page of this node, "" for none.
func BoundOf(r *http.Request, base string) string {
	if !SameOrigin(r, base) {
		return ""
	}
	return named(r, prefixed(base, "stoa_sign_in"))
}

func value(r *http.Request, base string) string { return named(r, CookieName(base)) }

func named(r *http.Request, name string) string {
	found := ""
	for _, c := range r.Cookies() {
		if c.Name == name {
			if found != "" { // another site has set one in addition
				return ""
			}
			found = c.Value
		}
	}
	return found
}

// SameOrigin reports whether a request was made by a page of the node at base, from the address
// bar, or by a program that is not a browser. Browsers say so in Sec-Fetch-Site; those without it
// send Origin when it matters.
func SameOrigin(r *http.Request, base string) bool {
	origins := r.Header["Origin"]
	if len(origins) > 1 || len(origins) == 1 && origins[0] != base {
		return false
	}
	switch sites := r.Header["Sec-Fetch-Site"]; len(sites) {
	case 0:
		return true
	case 1:
		return sites[0] == "same-origin" || sites[0] == "none"
	}
	return false
}
