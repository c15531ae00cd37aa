// Package a2aapi is the A2A door: Agent2Agent 1.0 (1.0.1 of 2026-05-28) and 0.3 over the JSON-RPC binding,
// and 1.0 over HTTP+JSON, with an endpoint and a signed card for each agent of the node and for the node itself. Whom it serves
// the setting a2a-callers says; by default only callers with a verified ERC-8004 identity (spec §2.4, §5).
//
// A message becomes part of a contact thread, which is the context. A task is one exchange of the
// thread: what the caller wrote, up to the agent's answer. A data part {"operation", "input"}
// calls a declared operation instead, and the answer is a message; that of bid_for_attention is a
// task, which is the bid, and that of request_meeting is the request.
package a2aapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// requestIDHeader carries the id of a request; the router sets it.
const requestIDHeader = "Request-Id"

// A Config configures the door. All fields but Chains, Callers, Limits and Wait are required.
type Config struct {
	Table    *hall.Table
	Base     string   // public address of the node, without a slash at the end
	Name     string   // what the operator calls the node
	Software string   // version of the software
	Chains   []string // chains whose identities are verified, eip155:<chainId>
	Callers  a2a.Callers
	Limits   protocol.ThreadLimits
	Wait     time.Duration // how long a message waits for its answer, unless its sender asks otherwise
	// Network returns the keyed hash of the client's network.
	Network func(r *http.Request) string
	// Changes returns a number that grows whenever stored data may have changed; cards are kept
	// until it does.
	Changes func() uint64
	// Keys returns the keys that sign the card of an agent, of the node itself for "".
	Keys func(ctx context.Context, handle string) ([]CardKey, error)
	// Fail renders an error of a card as a problem document.
	Fail func(w http.ResponseWriter, r *http.Request, err error)
}

// An API serves A2A. It is safe for concurrent use.
type API struct {
	Streams hall.Streams

	c     Config
	host  a2a.Host
	cards *hall.Cache[*card]
}

// New returns the door.
func New(c Config) *API {
	c.Callers = cmp.Or(c.Callers, a2a.ChainCallers)
	return &API{
		c: c, host: a2a.Host{Base: c.Base, Name: c.Name, Chains: c.Chains, Software: c.Software, Callers: c.Callers, Limits: c.Limits.OrDefault()},
		cards: hall.NewCache[*card](c.Changes),
	}
}

// A Route is one address of the door. Pattern is a path with parameters as ":name"; the router
// passes their values with SetPathValue.
type Route struct {
	Method, Pattern string
	Handler         http.Handler
}

// Routes returns the addresses. Clients resolve both "/" and the well-known path against an
// endpoint's address, so both forms are served without a redirect.
func (a *API) Routes() []Route {
	call, show := http.HandlerFunc(a.call), http.HandlerFunc(a.card)
	return append(a.restRoutes(), []Route{
		{"POST", "/a2a", call},
		{"POST", "/a2a/:handle", call},
		{"POST", "/a2a/:handle/", call},
		{"GET", "/a2a/:handle/agent-card.json", show},
		{"GET", "/a2a/:handle/.well-known/agent-card.json", show},
		{"GET", "/.well-known/agent-card.json", show},
	}...)
}
