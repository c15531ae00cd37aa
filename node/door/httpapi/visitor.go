package httpapi

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"stoa/protocol"
)

// VisitorCookie returns the name of the cookie that recognises a browser that began something here
// without an account (spec §2.11: the session that started a thread needs no token). Its value is
// random and only its hash is stored. Under https its prefix prevents others from setting it (RFC
// 6265bis §4.1.3.2): they could then read what the browser begins.
func VisitorCookie(base string) string {
	if strings.HasPrefix(base, "https://") {
		return "__Host-stoa_visitor"
	}
	return "stoa_visitor"
}

const (
	visitorAge   = 60 * 24 * time.Hour // twice as long as a silent thread stays open
	visitorChars = 43                  // 256 bits in base64url
)

// visitor returns the hash of the cookie's value for an operation that uses it, when the request
// is from a page of this node; for a write without the cookie it makes a new value. Pages of other
// origins get neither: their responses are without credentials, and their writes must not count as
// the visitor's.
func (a *API) visitor(r *http.Request, op *protocol.Operation) string {
	if !op.Visitor || !a.sameOrigin(r, op) {
		return ""
	}
	if c, err := r.Cookie(VisitorCookie(a.Base)); err == nil && len(c.Value) == visitorChars {
		return c.Value
	}
	if op.ReadOnly {
		return ""
	}
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// sameOrigin decides by Sec-Fetch-Site, which every current browser sends, otherwise by Origin. A
// write with neither is not from a page; a read may be.
func (a *API) sameOrigin(r *http.Request, op *protocol.Operation) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	switch {
	case origin != "" && origin != a.Base:
		return false
	case site != "":
		return site == "same-origin" || site == "none" && op.ReadOnly
	}
	return origin != "" || op.ReadOnly
}

// remember sets the browser's cookie after a write.
func (a *API) remember(head http.Header, op *protocol.Operation, visitor string) {
	if visitor == "" || op.ReadOnly {
		return
	}
	c := http.Cookie{
		Name: VisitorCookie(a.Base), Value: visitor, Path: "/", MaxAge: int(visitorAge / time.Second),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: strings.HasPrefix(a.Base, "https://"),
	}
	head.Add("Set-Cookie", c.String())
}
