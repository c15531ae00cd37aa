package mcpapi

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"stoa/identity/httpsig"
	"stoa/identity/session"
	"stoa/netx"
	"stoa/protocol"
)

// reachable refuses what a page elsewhere could send through somebody's
// browser to a node that only that machine should reach (DNS rebinding). The
// Host must be the node's own, or a loopback name where the node listens on
// loopback; and at a node whose address is on loopback an Origin must be there
// too. A public node takes any origin: the session's cookie counts for pages of
// the node alone, so another's page can do nothing here that its visitor's machine
// could not do without it.
func (a *API) reachable(r *http.Request) error {
	own := httpsig.NewTarget(a.target.Scheme, r.Host).Authority == a.target.Authority
	if !own && !(a.c.Loopback && netx.IsLoopback(hostname(r.Host))) {
		return transport(http.StatusForbidden, protocol.Forbidden, "this server answers for "+a.target.Authority+" and not for the host that was asked")
	}
	if a.c.For != protocol.Everybody && !session.SameOrigin(r, a.c.Base) {
		return transport(http.StatusForbidden, protocol.Forbidden, "this door is not for pages of other origins")
	}
	origins := r.Header["Origin"]
	if !a.loopback || len(origins) == 0 {
		return nil
	}
	if u, err := url.Parse(origins[0]); len(origins) > 1 || err != nil || u.Scheme != "http" && u.Scheme != "https" || !netx.IsLoopback(u.Hostname()) {
		return transport(http.StatusForbidden, protocol.Forbidden, "a page of this origin may not reach a server on loopback")
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
	head.Set("Access-Control-Expose-Headers", protocol.ExposedHeaders)
}

func preflight(head http.Header) {
	head.Set("Access-Control-Allow-Methods", "POST")
	head.Set("Access-Control-Allow-Headers", "Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Signature, Signature-Input, Signature-Agent, Agent-Identity, Content-Digest, Idempotency-Key, Proof-Of-Work, Authorization, Act-As")
	head.Set("Access-Control-Max-Age", "86400")
}
