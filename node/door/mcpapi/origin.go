package mcpapi

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"stoa/identity/httpsig"
	"stoa/identity/session"
	"stoa/protocol"
	"stoa/protocol/netx"
)

// reachable refuses requests that a page elsewhere could send through a visitor's browser to a
// node that only the visitor's machine should reach (DNS rebinding). Host must be the node's own,
// or a loopback name when the node listens on loopback. On a node whose address is on loopback, an
// Origin must be on loopback too. A public node accepts any origin: the session cookie counts only
// for pages of the node itself, so another page can do nothing here that its visitor's machine
// could not do anyway.
func (a *API) reachable(r *http.Request) error {
	own := httpsig.NewTarget(a.target.Scheme, r.Host).Authority == a.target.Authority
	if !own && !(a.c.Loopback && netx.IsLoopback(hostname(r.Host))) {
		return transport(http.StatusForbidden, protocol.Forbidden, "this server answers for "+a.target.Authority+", not for the host in the request")
	}
	if a.c.For != protocol.Everybody && !session.SameOrigin(r, a.c.Base) {
		return transport(http.StatusForbidden, protocol.Forbidden, "pages of other origins may not use this endpoint")
	}
	origins := r.Header["Origin"]
	if !a.loopback || len(origins) == 0 {
		return nil
	}
	if u, err := url.Parse(origins[0]); len(origins) > 1 || err != nil || u.Scheme != "http" && u.Scheme != "https" || !netx.IsLoopback(u.Hostname()) {
		return transport(http.StatusForbidden, protocol.Forbidden, "a page of this origin may not use a server on loopback")
	}
	return nil
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// allowOrigin lets any page read the answers, without credentials.
func allowOrigin(head http.Header) {
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Access-Control-Expose-Headers", protocol.ExposedHeaders+", "+sessionHeader)
}

func preflight(head http.Header) {
	head.Set("Access-Control-Allow-Methods", "POST")
	head.Set("Access-Control-Allow-Headers", "Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, "+
		"Signature, Signature-Input, Signature-Agent, Agent-Identity, Content-Digest, Idempotency-Key, Proof-Of-Work, Authorization, Act-As, UCP-Agent, "+
		"Sign-In-With-X, X-SIWA-Receipt")
	head.Set("Access-Control-Max-Age", "86400")
}
