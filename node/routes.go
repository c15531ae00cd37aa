package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"stoa/node/door/httpapi"
	"stoa/node/door/web"
	"stoa/node/work/doctor"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/schemas"
	"stoa/wellknown"
)

// route adds all routes.
func (n *Node) route(documents *wellknown.WellKnown, client *http.Client) error {
	n.api = httpapi.New(n.Table, n.Base, n.front.network, n.DB.Version)
	n.Web = n.pages(n.api.Network)
	pages := n.Web
	m := newMux(pages.Fail, n.front)
	m.spoken["ard"] = func(w http.ResponseWriter, _ *http.Request, err error) {
		httpapi.WriteProblem(w, n.Base, protocol.DialectARD, err)
	}
	for _, op := range protocol.Operations() {
		if op.Doors&protocol.HTTP != 0 {
			m.handle(op.HTTP.Method, pattern(op.HTTP.Path), n.api.Handler(op))
		}
	}
	m.handle("GET", httpapi.SignIn, http.HandlerFunc(n.api.Text))
	m.handle("POST", httpapi.SignIn, http.HandlerFunc(n.api.SignIn))
	m.handle("DELETE", httpapi.SignIn, http.HandlerFunc(n.api.End))
	m.handle("POST", httpapi.SIWANonce, http.HandlerFunc(n.api.Nonce))
	m.handle("POST", httpapi.SIWAVerify, http.HandlerFunc(n.api.Verify))
	for path, endpoint := range n.api.OAuth() {
		m.handle("POST", path, endpoint)
	}
	for _, d := range documents.Routes() {
		if d.Method != http.MethodHead { // handle adds it
			m.handle(d.Method, d.Pattern, d.Handler)
		}
	}
	if err := n.mcp(m); err != nil {
		return err
	}
	n.a2a(m, n.api.Network, pages.Fail)
	if err := n.commerce(m, client); err != nil {
		return err
	}
	m.handle("GET", doctor.Path+":mark", n.doctorPage(m.problem))
	activities := n.federation.Handler() // has its own routes
	m.handle("GET", "/ap/*path", activities)
	m.handle("POST", "/ap/*path", activities)
	m.handle("GET", "/openapi.json", n.description())
	m.handle("GET", "/schemas/agent-profile.v1.json", document("application/schema+json",
		bytes.Replace(schemas.AgentProfile, []byte(`"$id": "`), []byte(`"$id": "`+n.Base), 1)))
	for _, p := range pages.Routes() {
		h := p.Handler
		if p.Pattern == "/" {
			h = documents.Front(h)
		}
		m.handle(cmp.Or(p.Method, "GET"), p.Pattern, h)
	}
	m.handle("POST", "/hooks/pay/:provider/:hook", http.HandlerFunc(n.payHook))
	m.handle("GET", "/feeds/cal/:file", n.calendarFile(n.Meeting.Feed))
	m.handle("GET", "/feeds/meeting/:file", n.calendarFile(n.Meeting.Event))
	for _, p := range n.provables() {
		for _, address := range p.addresses {
			m.handle("GET", address, n.proof(p))
		}
	}
	m.handle("GET", protocol.PicturePath+":name", http.HandlerFunc(n.picture))
	m.handle("GET", "/healthz", http.HandlerFunc(n.health))
	m.handle("GET", "/readyz", http.HandlerFunc(n.ready))
	h, err := m.handler(n.log)
	n.handler = traced(n.tracer, trusted(n.Config), h)
	return err
}

// description serves the OpenAPI description: of the public operations, and with
// for=all also of those of owners and operators. Each is made at the first request.
func (n *Node) description() http.Handler {
	made := func(part func([]byte) ([]byte, error)) func() http.Handler {
		return sync.OnceValue(func() http.Handler {
			whole, err := httpapi.OpenAPI(n.Base, "1")
			var body []byte
			if err == nil {
				body, err = part(whole)
			}
			if err != nil {
				panic(err) // it is made from the program's own declarations
			}
			return document("application/vnd.oai.openapi+json", body)
		})
	}
	open := made(httpapi.PublicOpenAPI)
	all := made(func(b []byte) ([]byte, error) {
		var out bytes.Buffer
		err := json.Compact(&out, b)
		return out.Bytes(), err
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("for") {
		case "":
			open().ServeHTTP(w, r)
		case "all":
			all().ServeHTTP(w, r)
		default:
			httpapi.WriteProblem(w, n.Base, protocol.DialectNone, protocol.Invalid(protocol.Fault{Pointer: "/for", Code: "not-allowed",
				Detail: "must be all, or left out"}))
		}
	})
}

// document serves fixed bytes.
func document(media string, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Access-Control-Allow-Origin", "*")
		head.Set("Access-Control-Expose-Headers", protocol.ExposedHeaders)
		head.Set("Cache-Control", "public, max-age=300")
		netx.Serve(w, r, media, body)
	})
}

func (n *Node) health(w http.ResponseWriter, _ *http.Request) { status(w, http.StatusOK, "alive") }

// ready is 200 while the node takes requests and reaches its database.
func (n *Node) ready(w http.ResponseWriter, r *http.Request) {
	if n.draining.Load() {
		status(w, http.StatusServiceUnavailable, "stopping")
		return
	}
	if err := n.pulse.take(r.Context(), n.DB.Ping); err != nil {
		n.log.Error("not ready", "err", err)
		status(w, http.StatusServiceUnavailable, "database unreachable")
		return
	}
	status(w, http.StatusOK, "ready", n.Chain.Troubles()...)
}

// pulseAge is how long the result of a ping is used.
const pulseAge = time.Second

// A pulse is the last ping of the database. Concurrent requests share one ping,
// because their number is not limited.
type pulse struct {
	mu  sync.Mutex // guards at and err; held during a ping
	at  time.Time
	err error
}

func (p *pulse) take(ctx context.Context, ping func(context.Context) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= pulseAge {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		p.err, p.at = ping(ctx), time.Now()
	}
	return p.err
}

// status answers with one word, and with the faults of a node that serves
// nevertheless.
func status(w http.ResponseWriter, code int, word string, degraded ...string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(struct {
		Status   string   `json:"status"`
		Degraded []string `json:"degraded,omitempty"`
	}{word, degraded})
}

func siteFiles() []protocol.SiteEntry {
	files := []protocol.SiteEntry{
		{Path: "/openapi.json", Purpose: "Machine-readable description of everybody's HTTP operations (OpenAPI 3.1); with for=all of those of owners and " +
			"operators too."},
		{Path: "/schemas/agent-profile.v1.json", Purpose: "JSON Schema of an agent profile."},
		{Path: "/SKILL.md", Purpose: "Skill description for agents."},
		{Path: "/.well-known/agent-skills/index.json", Purpose: "Index of the skill, with its digest (Agent Skills discovery)."},
		{Path: "/board/{id}/proof", Purpose: "Who wrote a post, for others to check: the signed request, the chain's state, the node's signature. Also behind " +
			"the addresses of profiles, bids, reviews, order receipts, lines of the moderation log, cards and the board (docs/PROOF.md)."},
		{Path: "/skill/bids.md", Purpose: "How a bid is made and paid, and what its states mean."},
		{Path: "/skill/meetings.md", Purpose: "How a meeting is requested, and what the states of a request mean."},
		{Path: "/skill/joining.md", Purpose: "How an agent joins, is claimed by a person and leaves, with programs."},
		{Path: "/skill/signing.md", Purpose: "What a signed request covers, with a program."},
		{Path: "/skill/callbacks.md", Purpose: "What a callbackUrl is sent, and how to verify it."},
		{Path: "/llms.txt", Purpose: "Plain-text description for language models."},
		{Path: "/robots.txt", Purpose: "What crawlers may read."},
		web.ManifestEntry(),
		{Path: "/sitemap.xml", Purpose: "Every public page, for crawlers: an index of parts."},
		{Path: protocol.ARDCatalogPath, Purpose: "The node, its tools and its agents as an ARD catalog."},
		{Path: protocol.UCPProfilePath, Purpose: "Business profile of the node as a marketplace, with its keys " +
			"(Universal Commerce Protocol 2026-08-25); older releases below it."},
		{Path: protocol.MCPPath + "/server-card", Purpose: "Card of the MCP server."},
		{Path: "/.well-known/http-message-signatures-directory", Purpose: "The node's own signing keys (Web Bot Auth)."},
		{Path: "/.well-known/service-agents/{key_hash}/registration.json", Purpose: "ERC-8004 registration document of an agent."},
		{Path: "/.well-known/service-agents/{key_hash}/jwks.json", Purpose: "Key directory of an agent, signed by the key itself."},
		{Path: "/.well-known/agent-registration.json", Purpose: "Chain identities of agents hosted here (ERC-8004)."},
		{Path: "/.well-known/webfinger?resource={uri}", Purpose: "WebFinger (RFC 7033)."},
		{Path: "/.well-known/host-meta", Purpose: "Where WebFinger is (RFC 6415)."},
		{Path: "/.well-known/nodeinfo", Purpose: "NodeInfo."},
		{Path: "/.well-known/api-catalog", Purpose: "API catalog (RFC 9727)."},
		{Path: "/.well-known/agent-card.json", Purpose: "A2A agent card of the node, signed."},
		{Path: "/a2a/{handle}/agent-card.json", Purpose: "A2A agent card of an agent, signed."},
	}
	for i := range files {
		files[i].Kind, files[i].Method = "file", "GET"
	}
	return append(append(append(files, web.Feeds()...), web.Entries()...),
		protocol.SiteEntry{Path: protocol.MCPPath, Kind: "endpoint", Method: "POST", Purpose: "Public MCP endpoint: the operations as tools, over streamable HTTP."},
		protocol.SiteEntry{Path: "/a2a/{handle}", Kind: "endpoint", Method: "POST",
			Purpose: "A2A 1.0 endpoint of an agent (JSON-RPC), for agents with an ERC-8004 identity; /a2a is the node's own."},
		protocol.SiteEntry{Path: protocol.UCPSearchPath, Kind: "endpoint", Method: "POST",
			Purpose: "What the businesses here sell, by the Universal Commerce Protocol (2026-08-25 and 2026-04-08); also GET with q, merchant, category, min, max; " +
				"lookup and product are next to it, and " + protocol.UCPPath + "/locations/search finds shops by distance and opening hours."},
		protocol.SiteEntry{Path: protocol.UCPMCPPath, Kind: "endpoint", Method: "POST",
			Purpose: "The same catalog as MCP tools: search_catalog, lookup_catalog, get_product."},
		protocol.SiteEntry{Path: "/ap/board", Kind: "endpoint", Method: "GET", Purpose: "The board as an ActivityPub group; follow it from another node."},
	)
}
