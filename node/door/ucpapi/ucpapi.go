// Package ucpapi is the UCP door: the Universal Commerce Protocol, releases 2026-08-25 and
// 2026-04-08, over REST and MCP. The node is one marketplace: its catalog has the items of all listed
// merchants, and its locations are their shops. There is no checkout.
//
// A request may name the profile of the platform that sends it (UCP-Agent). Then the release and the
// capabilities are negotiated with that profile, and a signature is checked with its keys. A request
// without one is served in the current release, unless the operator requires it.
//
// The package speaks UCP's envelopes and errors; operations of the hall do the work.
package ucpapi

import (
	"context"
	"encoding/json"
	"net/http"

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
		routes = append(routes, Route{http.MethodPost, protocol.UCPPath + o.path, a.rest(o)})
	}
	return append(routes, Route{http.MethodGet, protocol.UCPSearchPath, a.rest(getSearch)})
}

// An operation is one operation of UCP.
type operation struct {
	capability string
	subject    string // the member of the arguments that holds the request, in the MCP binding
	path       string // below protocol.UCPPath
	// run answers a request. The answer is encoded as JSON. An error is a *fault, or one of the hall.
	run func(ctx context.Context, x *exchange, in *object) (any, error)
}

var (
	search       = operation{protocol.UCPCatalogSearch, "catalog", "/catalog/search", searchCatalog}
	lookup       = operation{protocol.UCPCatalogLookup, "catalog", "/catalog/lookup", lookupCatalog}
	product      = operation{protocol.UCPCatalogLookup, "catalog", "/catalog/product", getProduct}
	searchPlaces = operation{protocol.UCPLocationSearch, "location", "/locations/search", searchLocations}
	lookupPlaces = operation{protocol.UCPLocationLookup, "location", "/locations/lookup", lookupLocations}

	operations = []operation{search, lookup, product, searchPlaces, lookupPlaces}
	// getSearch is search with parameters in the query. It is not part of UCP.
	getSearch = operation{protocol.UCPCatalogSearch, "catalog", "", searchCatalog}
)

// An exchange is one request with what was negotiated for it.
type exchange struct {
	*API
	network  string
	id       string
	version  string // release of UCP
	chosen   string // version of the capability
	op       operation
	merchant string // ?merchant=, "" for none
}

// meta is the member ucp of an answer.
func (x *exchange) meta() protocol.UCPMeta {
	return protocol.UCPMeta{Version: x.version, Capabilities: map[string][]protocol.UCPEntity{x.op.capability: {{Version: x.chosen}}}}
}

// current reports whether the release has what 2026-08-25 added.
func (x *exchange) current() bool { return x.version == protocol.UCPVersions[0] }

// invoke runs an operation of the hall for an unknown caller: what UCP serves is open to everybody.
func invoke[In, Out any](ctx context.Context, x *exchange, op protocol.Op[In, Out], in In) (out Out, err error) {
	args, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	res, err := x.c.Table.Invoke(ctx, hall.Request{
		Op: op.Name, Args: args, Caller: &protocol.Caller{Standing: protocol.Anonymous, Network: x.network}, Door: "ucp", ID: x.id,
	})
	if err != nil {
		return out, err
	}
	return res.Value.(Out), nil
}
