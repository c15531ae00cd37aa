// Package mcpapi is the MCP door: the Model Context Protocol over streamable HTTP, with one URL
// for both generations of the wire. Revision 2026-07-28 is implemented without sessions; clients
// of 2025-03-26 to 2025-11-25 do their handshake at the same URL, also without sessions. Every
// declared operation that names this door and its audience is a tool, made from the declaration.
// One door serves everybody's operations, another the owners': a client without a token is told there how to get one by
// OAuth, and lists the tools that its token allows.
//
// Reads that have an address are resources too (view.go), and the public door has prompts. It answers each POST with one JSON
// document, or, where a call reports its progress, with a stream of events. It sends no requests of its own.
package mcpapi

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"stoa/identity/cache"
	"stoa/identity/httpsig"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/netx"
)

// MaxBody is the longest body of a request, in bytes (contract §1).
const MaxBody = 64 << 10

// requestIDHeader carries the id of a request; the router sets it.
const requestIDHeader = "Request-Id"

// A Config says what the door serves. Table, Base, Network and Changes are required.
type Config struct {
	Table    *hall.Table
	For      protocol.Audience // whose operations are its tools
	Base     string            // public address of the node, without a slash at the end
	Loopback bool              // the node listens on loopback only, so that loopback names may reach it
	Name     string            // what the operator calls the node; default the host
	Version  string            // of the software
	// Network returns the keyed hash of the client's network.
	Network func(r *http.Request) string
	// Changes returns a number that grows whenever stored data may have changed; results of open
	// reads are kept until it does.
	Changes func() uint64
	// Tools, Resources and Prompts are served beside those of the operations; in place of them with Instructions, which are
	// for the model.
	Tools        []Tool
	Resources    []Resource
	Prompts      []Prompt
	Tasks        Tasks // nil for those of the operations
	Hub          *Hub  // nil where resources are not followed
	Instructions string
}

// An API serves MCP. It is safe for concurrent use.
type API struct {
	c         Config
	target    httpsig.Target
	tools     map[string]*tool
	resources []Resource
	prompts   []Prompt
	tasks     Tasks
	info      []byte                // serverInfo
	discover  []byte                // the modern answer to server/discover
	lists     func() (lists, error) // made on the first request
	scoped    *cache.Cache[lists]   // the same with the tools of some scopes
	cache     *hall.Cache[[]byte]
	loopback  bool // the public address is on loopback
}

// New returns the door.
func New(c Config) (*API, error) {
	base, err := url.Parse(c.Base)
	if err != nil {
		return nil, err
	}
	target, err := httpsig.ParseTarget(c.Base)
	if err != nil {
		return nil, err
	}
	if c.Name == "" {
		c.Name = base.Host
	}
	a := &API{c: c, target: target, tools: map[string]*tool{}, loopback: target.Loopback(), cache: hall.NewCache[[]byte](c.Changes),
		scoped: cache.Of[lists](keepLists)}
	for _, t := range c.Tools {
		a.tools[t.Name] = added(t)
	}
	a.resources, a.prompts, a.tasks = c.Resources, c.Prompts, c.Tasks
	if c.Instructions == "" {
		a.resources = append(a.views(), a.resources...)
		if c.For == protocol.Everybody {
			a.prompts = append(slices.Clone(prompts), a.prompts...)
			if a.tasks == nil {
				a.tasks = drafts{c.Table}
			}
			a.resources = append(a.resources, app())
		}
		for _, op := range protocol.OperationsFor(c.For, protocol.MCP) {
			a.tools[op.Name] = newTool(op)
		}
	}
	a.lists = sync.OnceValues(func() (lists, error) { return a.list(func(*tool) bool { return true }) })
	if err := a.prepare(); err != nil {
		return nil, fmt.Errorf("prepare MCP answers: %w", err)
	}
	return a, nil
}

// ServeHTTP answers one request of either generation. It checks in the order of the conformance
// suite: origin, method, bytes, message, wire, operation.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	if err := a.reachable(r); err != nil {
		a.refuse(w, nil, err)
		return
	}
	if a.c.For == protocol.Everybody { // the owners' door refuses pages of other origins (contract §1)
		allowOrigin(head)
	}
	switch r.Method {
	case http.MethodPost:
	case http.MethodOptions:
		if a.c.For == protocol.Everybody {
			preflight(head)
		}
		w.WriteHeader(http.StatusNoContent)
		return
	default: // there is no session to end here
		if r.Method == http.MethodGet && a.open(w, r) {
			return
		}
		head.Set("Allow", "POST, OPTIONS")
		a.refuse(w, nil, transport(http.StatusMethodNotAllowed, protocol.MethodNotAllowed,
			"send JSON-RPC requests by POST; GET is for the stream of a session of the older wire"))
		return
	}
	body, err := readBody(w, r)
	if err != nil {
		a.refuse(w, nil, err)
		return
	}
	m, err := parse(body)
	if err == nil && m.id == nil { // a notification; none needs an action
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if err == nil {
		err = m.agree(r.Header)
	}
	if err == nil {
		err = a.serve(w, r, m, body)
	}
	if err != nil {
		a.refuse(w, m, err)
	}
}

// follows reports whether streams tell of changes.
func (a *API) follows() bool { return a.c.Hub != nil && a.resources != nil }

// serve executes a message. Errors are *rpcError.
func (a *API) serve(w http.ResponseWriter, r *http.Request, m *message, body []byte) error {
	if m.method == "tools/call" {
		return a.call(w, r, m, body)
	}
	caller, err := a.admit(w, r, body)
	if err != nil {
		return err
	}
	switch {
	case m.method == "tools/list":
		if err := firstPage(m); err != nil {
			return err
		}
		lists, err := a.listFor(caller)
		if err != nil {
			return err
		}
		a.answer(w, m, lists.of(m, sessionOf(r)))
	case m.method == "resources/list" && a.resources != nil:
		return a.listResources(w, r, m, body, caller)
	case m.method == "resources/templates/list" && a.resources != nil:
		return a.listTemplates(a.newCall(w, r, m, body), caller)
	case m.method == "resources/read" && a.resources != nil:
		return a.read(w, r, m, body)
	case m.method == "subscriptions/listen" && m.wire == modern && a.follows():
		return a.subscriptionsListen(a.newCall(w, r, m, body), caller)
	case (m.method == "resources/subscribe" || m.method == "resources/unsubscribe") && m.wire == legacy && a.follows():
		return a.subscribe(a.newCall(w, r, m, body), caller)
	case m.method == "logging/setLevel" && m.wire == legacy && a.follows():
		return a.setLevel(a.newCall(w, r, m, body), caller)
	case m.method == "prompts/list" && a.prompts != nil:
		return a.listPrompts(a.newCall(w, r, m, body))
	case m.method == "prompts/get" && a.prompts != nil:
		return a.prompt(a.newCall(w, r, m, body))
	case m.method == "completion/complete" && a.prompts != nil:
		return a.complete(a.newCall(w, r, m, body))
	case m.wire == modern && a.tasks != nil && slices.Contains([]string{"tasks/get", "tasks/update", "tasks/cancel"}, m.method):
		return a.task(a.newCall(w, r, m, body))
	case m.method == "server/discover" && m.wire == modern:
		a.answer(w, m, a.discover)
	case m.method == "initialize" && m.wire == legacy:
		if a.follows() {
			w.Header().Set(sessionHeader, newSession(m))
		}
		a.answer(w, m, a.initialize(m))
	case m.method == "ping" && m.wire == legacy:
		a.answer(w, m, []byte("{}"))
	default:
		return &rpcError{status: http.StatusNotFound, code: methodNotFound, text: "there is no method " + clip(m.method),
			data: errorData{Code: protocol.NotFound}}
	}
	return nil
}

// Refuse answers a request that the node has refused before it reaches this door.
func (a *API) Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	e := protocol.AsError(err)
	a.refuse(w, nil, &rpcError{status: e.Code.Status(), code: internalError, text: e.Detail, retry: e.RetryAfter,
		data: errorData{Code: e.Code, RetryAfter: netx.Seconds(e.RetryAfter)}})
}

// readBody reads a JSON body within the limit.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, transport(http.StatusUnsupportedMediaType, protocol.UnsupportedMediaType, "send the body as Content-Type: application/json")
	}
	body, err := hall.ReadBody(w, r, MaxBody)
	if err != nil {
		e := protocol.AsError(err)
		return nil, transport(e.Code.Status(), e.Code, e.Detail)
	}
	return body, nil
}
