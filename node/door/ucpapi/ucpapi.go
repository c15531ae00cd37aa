// Package ucpapi is the UCP door: the Universal Commerce Protocol, releases 2026-08-25 and
// 2026-04-08, over REST and MCP. The node is one marketplace: its catalog has the items of all listed
// merchants, and its locations are their shops. A checkout is of one shop; a person takes it over on a page of the node.
//
// A request may name the profile of the platform that sends it (UCP-Agent). Then the release and the
// capabilities are negotiated with that profile, and a signature is checked with its keys. A request
// without one is served in the current release, unless the operator requires it.
//
// The package speaks UCP's envelopes and errors; operations of the hall do the work.
package ucpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"stoa/identity/httpsig"
	"stoa/node/hall"
	"stoa/protocol"
)

// MaxBody is the longest body of a request, in bytes (contract §1).
const MaxBody = 64 << 10

// requestIDHeader carries the id of a request; the router sets it.
const requestIDHeader = "Request-Id"

// A Config configures the door. Table, Base, Network and Client are required.
type Config struct {
	Table *hall.Table
	Base  string // public address of the node, without a slash at the end
	// Network returns the keyed hash of the client's network.
	Network func(r *http.Request) string
	// Client fetches platform profiles. It refuses addresses that are not public (node/out/outbound). The
	// door uses a copy that follows no redirect.
	Client *http.Client
	// Refused reports whether an error of Client means that the address is not one to fetch from.
	Refused func(error) bool
	// Blocked reports whether the operator has blocked a host; nil blocks none.
	Blocked func(ctx context.Context, host string) (bool, error)
	// Loopback also accepts profiles at http addresses of this machine: development only.
	Loopback bool
	// Strict refuses requests without UCP-Agent.
	Strict bool
}

// An API serves UCP. It is safe for concurrent use. Close it when no more requests come.
type API struct {
	c         Config
	target    httpsig.Target
	platforms *platforms
}

// New returns the door.
func New(c Config) (*API, error) {
	target, err := httpsig.ParseTarget(c.Base)
	if err != nil {
		return nil, err
	}
	return &API{c: c, target: target, platforms: newPlatforms(c)}, nil
}

// Close ends the fetches under way and waits for them.
func (a *API) Close() { a.platforms.close() }

// A Route is one address of the door.
type Route struct {
	Method, Path string
	Handler      http.Handler
}

// Routes returns the addresses of the REST binding.
func (a *API) Routes() []Route {
	var routes []Route
	for _, o := range operations {
		routes = append(routes, Route{cmp.Or(o.method, http.MethodPost), protocol.UCPPath + o.path, a.rest(o)})
	}
	return append(routes, Route{http.MethodGet, protocol.UCPSearchPath, a.rest(getSearch)})
}

// An operation is one operation of UCP.
type operation struct {
	capability string
	subject    string // the member of the arguments that holds the request, in the MCP binding
	path       string // below protocol.UCPPath
	method     string // "" for POST
	writes     bool
	bare       bool // it needs no body
	// run answers a request. The answer is encoded as JSON. An error is a *fault, or one of the hall.
	run func(ctx context.Context, x *exchange, in *object) (any, error)
}

var (
	search       = &operation{capability: protocol.UCPCatalogSearch, subject: "catalog", path: "/catalog/search", run: searchCatalog}
	lookup       = &operation{capability: protocol.UCPCatalogLookup, subject: "catalog", path: "/catalog/lookup", run: lookupCatalog}
	product      = &operation{capability: protocol.UCPCatalogLookup, subject: "catalog", path: "/catalog/product", run: getProduct}
	searchPlaces = &operation{capability: protocol.UCPLocationSearch, subject: "location", path: "/locations/search", run: searchLocations}
	lookupPlaces = &operation{capability: protocol.UCPLocationLookup, subject: "location", path: "/locations/lookup", run: lookupLocations}

	createCheckout = &operation{capability: protocol.UCPCheckouts, subject: "checkout", path: "/checkout-sessions", writes: true, run: makeSession}
	getCheckout    = &operation{capability: protocol.UCPCheckouts, path: "/checkout-sessions/:id", method: http.MethodGet, bare: true, run: getSession}
	updateCheckout = &operation{capability: protocol.UCPCheckouts, subject: "checkout", path: "/checkout-sessions/:id", method: http.MethodPut, writes: true,
		run: putSession}
	completeCheckout = &operation{capability: protocol.UCPCheckouts, path: "/checkout-sessions/:id/complete", bare: true, run: getSession}
	cancelCheckout   = &operation{capability: protocol.UCPCheckouts, path: "/checkout-sessions/:id/cancel", writes: true, bare: true, run: cancelSession}
	createCart       = &operation{capability: protocol.UCPCarts, subject: "cart", path: "/carts", writes: true, run: makeSession}
	getCart          = &operation{capability: protocol.UCPCarts, path: "/carts/:id", method: http.MethodGet, bare: true, run: getSession}
	updateCart       = &operation{capability: protocol.UCPCarts, subject: "cart", path: "/carts/:id", method: http.MethodPut, writes: true, run: putSession}
	cancelCart       = &operation{capability: protocol.UCPCarts, path: "/carts/:id/cancel", writes: true, bare: true, run: cancelSession}
	readOrder        = &operation{capability: protocol.UCPOrders, path: "/orders/:id", method: http.MethodGet, bare: true, run: getOrder}

	operations = []*operation{search, lookup, product, searchPlaces, lookupPlaces, createCheckout, getCheckout, updateCheckout, completeCheckout,
		cancelCheckout, createCart, getCart, updateCart, cancelCart, readOrder}
	// getSearch is search with parameters in the query. It is not part of UCP.
	getSearch = &operation{capability: protocol.UCPCatalogSearch, subject: "catalog", path: "", run: searchCatalog}
)

// An exchange is one request with what was negotiated for it.
type exchange struct {
	*API
	network  string
	id       string
	version  string // release of UCP
	chosen   string // version of the capability
	op       *operation
	merchant string    // ?merchant=, "" for none
	platform *platform // nil for none
	vouched  bool      // a key of its profile signed the request
	terms    bool      // the extension of payment terms is active
	subject  string    // id of what the request is about
	key      string    // idempotency key as the hall takes it, "" for none
	digest   string    // of the request
	status   int       // of the answer, 0 for 200
}

// meta is the member ucp of an answer.
func (x *exchange) meta() protocol.UCPMeta {
	return protocol.UCPMeta{Version: x.version, Capabilities: map[string][]protocol.UCPEntity{x.op.capability: {{Version: x.chosen}}}}
}

// current reports whether the release has what 2026-08-25 added.
func (x *exchange) current() bool { return x.version == protocol.UCPVersions[0] }

// invoke runs an operation of the hall.
func invoke[In, Out any](ctx context.Context, x *exchange, op protocol.Op[In, Out], in In) (out Out, err error) {
	err = x.invoke(ctx, op.Operation, in, &out)
	return out, err
}

// invoke runs an operation of the hall. The caller is nobody in particular: what UCP serves is open to everybody, and a platform has
// what it began itself. out is a pointer to the answer.
func (x *exchange) invoke(ctx context.Context, op *protocol.Operation, in, out any) error {
	args, err := json.Marshal(in)
	if err != nil {
		return err
	}
	caller := &protocol.Caller{Standing: protocol.Anonymous, Network: x.network}
	if x.vouched {
		caller = protocol.PlatformCaller(x.platform.url)
	}
	r := hall.Request{Op: op.Name, Args: args, Caller: caller, Door: "ucp", ID: x.id}
	if x.op.writes {
		r.IdempotencyKey = x.key
	}
	res, err := x.c.Table.Invoke(ctx, r)
	switch {
	case err != nil:
		return err
	case res.Replayed:
		return json.Unmarshal(res.JSON, out)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(res.Value))
	return nil
}
