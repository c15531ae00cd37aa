// Package wellknown serves the documents that a stranger reads first: WebFinger
// (RFC 7033, FEP-d556), NodeInfo 2.0 and 2.1, host-meta (RFC 6415), the key
// directories of the node and of its agents (Web Bot Auth), ERC-8004
// registration files, llms.txt, SKILL.md, robots.txt, the site map for crawlers
// (sitemaps.org 0.9), the API catalog (RFC 9727), the catalog of Agentic Resource
// Discovery (ARD 0.9), the business profile of UCP, the card of the MCP server, the
// index of skills (Agent Skills discovery 0.2.0), the key of the MCP registry and
// security.txt (RFC 9116).
//
// It stores nothing and fetches nothing. What it says about agents it asks of a
// Directory, and what it signs with, of Keys; both are handed in. Actors are
// served by package federation, profiles by the HTTP door.
package wellknown

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stoa/identity/cache"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
)

// A Directory knows the agents of this node. Its methods are called for each
// request, by many goroutines at once. A missing agent or key is a
// *protocol.Error with code not-found; a deleted agent, or a key that lost its
// authority (rotated, transferred), one with code gone.
type Directory interface {
	// Profile returns an agent's public profile by its handle, lower case.
	Profile(ctx context.Context, handle string) (protocol.Profile, error)
	// Key returns a key of an agent by its RFC 7638 thumbprint.
	Key(ctx context.Context, thumbprint string) (AgentKey, error)
	// Elsewhere returns at most limit chain identities of agents hosted here
	// whose agent URI on chain does not lead to this node.
	Elsewhere(ctx context.Context, limit int) ([]string, error)
	// Usage counts for NodeInfo.
	Usage(ctx context.Context) (Usage, error)
}

// An AgentKey is a public key of an agent of this node.
type AgentKey struct {
	Handle string
	Public key.Public
	// Signed is the key directory as the key's owner signed it (JSON of
	// SignedDirectory); nil when the node holds the private key and signs, or
	// when the owner has signed nothing yet.
	Signed []byte
}

// Usage is how much the node is used.
type Usage struct {
	Agents         int // profiles
	ActiveMonth    int // of these, those that answered or showed themselves within 30 days
	ActiveHalfyear int // and within 180 days
	Listed         int // of all, those that lists show
	Answering      int // of the listed, those that answered or showed themselves of late
	Verified       int // of the listed, those with an identity that this node checked on chain
	Posts          int // visible posts made on this node, with the replies
	Replies        int // of these, the replies
}

// A Site lists the pages of the node, in parts of numbers above after and up
// to upTo. Numbers grow and never move; one may be taken by nothing.
type Site interface {
	// Size is the highest number of the profiles and of the posts.
	Size(ctx context.Context) (profiles, posts int64, err error)
	// Pages are the paths that always exist, such as /board.
	Pages() []string
	Agents(ctx context.Context, after, upTo int64) ([]Location, error)
	Posts(ctx context.Context, after, upTo int64) ([]Location, error)
	Profiles(ctx context.Context, after, upTo int64) ([]protocol.Profile, error)
}

// A Location is a page of the node and when it last changed.
type Location struct {
	Path    string
	Changed time.Time
}

// Keys opens private keys.
type Keys interface {
	// Node returns the keys that the node signs its requests with, at least one;
	// all are published. It is asked on each request and should be cheap.
	Node(ctx context.Context) ([]key.Pair, error)
	// Agent returns the private key of a hosted agent; a *protocol.Error with code
	// not-found when only its owner holds it. It is asked about twice a day for
	// each key.
	Agent(ctx context.Context, handle, thumbprint string) (key.Pair, error)
}

// Config of the documents. Base, Directory and Keys are required.
type Config struct {
	Base      *url.URL // public address of the node, without path
	Directory Directory
	Keys      Keys
	Site      Site // nil serves no site map, and a catalog without agents

	Name        string // what the operator calls the node; default the host
	Description string // one paragraph in plain text
	Version     string // of the software
	Repository  string // where its source is, URL; "" leaves it out
	Doors       protocol.Door
	MCPVersions []string // of the protocol, newest first
	Registries  []string // whose identities the node takes, eip155:<chainId>:<address>
	Feeds       []Feed
	Contact     string   // where to report vulnerabilities, mailto: or https: URL; "" serves no security.txt
	Policy      string   // how reports are handled, https: URL; "" leaves it out
	Signal      string   // Content-Signal of robots.txt; "" leaves it out
	RegistryKey string   // that the operator signs in to the MCP registry with, Ed25519, base64; "" serves no mcp-registry-auth
	Open        bool     // everybody may join, at once or after an approval
	Texts       []string // pages on which the operator says something, such as contact

	Log *slog.Logger
}

// A Feed is a document that readers come back to.
type Feed struct{ Path, Media, Title string }

// WellKnown serves the documents. Its handlers are safe for concurrent use.
type WellKnown struct {
	c      Config
	base   string // without trailing slash
	host   string // host[:port], lower case
	target httpsig.Target
	signed *cache.Cache[signedSet]
	parts  parts
	guide  guide
}

// New checks the configuration and prepares what does not change.
func New(c Config) (*WellKnown, error) {
	if c.Base == nil || c.Directory == nil || c.Keys == nil {
		return nil, errors.New("wellknown: base, directory and keys are required")
	}
	base := c.Base.Scheme + "://" + c.Base.Host
	target, err := httpsig.ParseTarget(base)
	if err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Name == "" {
		c.Name = c.Base.Host
	}
	w := &WellKnown{c: c, base: base, host: strings.ToLower(c.Base.Host), target: target, signed: cache.Of[signedSet](signedMost), parts: newParts()}
	w.guide = writeGuide(w)
	return w, nil
}

// A Route is one document. Pattern is a path whose parameters are written
// ":name"; the router hands their values over with http.Request.SetPathValue.
type Route struct {
	Method, Pattern string
	Handler         http.Handler
}

// Routes returns every document twice, for GET and for HEAD.
func (w *WellKnown) Routes() []Route {
	type file struct {
		pattern string
		make    maker
	}
	documents := []file{
		{"/.well-known/webfinger", w.webfinger},
		{"/.well-known/host-meta", w.hostMeta},
		{"/.well-known/nodeinfo", w.nodeInfoLinks},
		{"/nodeinfo/2.0", w.nodeInfo20},
		{"/nodeinfo/2.1", w.nodeInfo21},
		{"/.well-known/http-message-signatures-directory", w.nodeKeys},
		{"/.well-known/service-agents/:hash/jwks.json", w.agentKeys},
		{"/.well-known/service-agents/:hash/registration.json", w.registration},
		{"/.well-known/agent-registration.json", w.domainRegistrations},
		{"/.well-known/api-catalog", w.apiCatalog},
		{"/robots.txt", w.robots},
		{protocol.ARDCatalogPath, w.catalog},
		{skillsPath, w.skills},
		{protocol.OAuthServerPath, w.oauthServer},
		{protocol.OAuthResourcePath, w.oauthResource("")},
		{protocol.OAuthOwnerMCPPath, w.oauthResource(protocol.OwnerMCPPath)},
	}
	for path, text := range w.guide {
		documents = append(documents, file{path, part(path, text)})
	}
	documents = append(documents, file{skillPath, part(skillPath, w.guide["/SKILL.md"])})
	for i, version := range protocol.UCPVersions {
		pattern := protocol.UCPProfilePath
		if i > 0 {
			pattern += "/" + version
		}
		documents = append(documents, file{pattern, w.ucp(version)})
	}
	if w.c.Site != nil {
		documents = append(documents, file{sitemapPath, w.sitemap})
	}
	if w.c.Doors&protocol.MCP != 0 {
		for _, pattern := range serverCardPaths {
			documents = append(documents, file{pattern, w.serverCard})
		}
	}
	if w.c.Contact != "" {
		documents = append(documents, file{"/.well-known/security.txt", w.securityTxt})
	}
	if w.c.RegistryKey != "" {
		documents = append(documents, file{protocol.RegistryAuthPath, part(protocol.RegistryAuthPath, []byte(protocol.RegistryAuth(w.c.RegistryKey)+"\n"))})
	}
	var routes []Route
	for _, d := range documents {
		h := w.serve(d.make)
		routes = append(routes, Route{http.MethodGet, d.pattern, h}, Route{http.MethodHead, d.pattern, h})
	}
	return routes
}
