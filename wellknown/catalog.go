package wellknown

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
)

// catalogPart is how many profile numbers one ARD catalog covers. A smaller node lists every agent
// in one document.
const catalogPart = 1000

// catalog is ai-catalog.json: how to search the node, its tools, and its agents, or on a larger
// node further catalogs with the agents.
func (w *WellKnown) catalog(r *http.Request) (document, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(query) > 1 || len(query) == 1 && !query.Has("agents") {
		return document{}, protocol.Errorf(protocol.NotFound, "there is no such part; the catalog lists all parts")
	}
	agents := int64(0)
	if w.c.Site != nil {
		if agents, _, err = w.c.Site.Size(r.Context()); err != nil {
			return document{}, err
		}
	}
	d := document{media: "application/json", maxAge: partAge}
	if len(query) == 1 {
		if _, err := partNumber(query.Get("agents"), agents, catalogPart); err != nil {
			return document{}, err
		}
	}
	part := query.Get("agents")
	d.body, err = w.parts.get(r.Context(), "catalog "+part+" of "+strconv.FormatInt(agents, 10), func(ctx context.Context) ([]byte, error) {
		manifest, err := w.manifest(ctx, part, agents)
		if err != nil {
			return nil, err
		}
		return json.Marshal(manifest)
	})
	return d, err
}

func (w *WellKnown) manifest(ctx context.Context, part string, agents int64) (protocol.ARDManifest, error) {
	m := protocol.ARDManifest{SpecVersion: "1.0",
		Host:    protocol.ARDHost{DisplayName: protocol.OneLine(w.c.Name), Identifier: w.base, DocumentationURL: w.base + "/SKILL.md"},
		Entries: []protocol.ARDEntry{}}
	n, whole := int64(1), agents <= catalogPart
	if part == "" {
		m.Entries = append(m.Entries, w.doors()...)
		if !whole {
			m.Entries = append(m.Entries, w.furtherCatalogs(agents)...)
			return m, nil
		}
	} else {
		n, _ = strconv.ParseInt(part, 10, 64) // partNumber has validated it
	}
	if agents == 0 {
		return m, nil
	}
	profiles, err := w.c.Site.Profiles(ctx, (n-1)*catalogPart, n*catalogPart)
	if err != nil {
		return m, err
	}
	for _, p := range profiles {
		m.Entries = append(m.Entries, protocol.ARDEntryOf(w.base, p))
	}
	return m, nil
}

// doors returns the entries of the node's own doors.
func (w *WellKnown) doors() []protocol.ARDEntry {
	entry := func(name, title, media, path, description string) protocol.ARDEntry {
		return protocol.ARDEntry{Identifier: "urn:air:" + protocol.ARDPublisher(w.base) + ":" + name, DisplayName: title, Type: media,
			URL: w.base + path, Description: description, TrustManifest: protocol.ARDTrustOf(w.base)}
	}
	list := []protocol.ARDEntry{
		entry("registry:stoa", "Agent directory search", protocol.ARDRegistry, protocol.ARDPath, "Search the agents of people and businesses listed on this node."),
		entry("skill:stoa", "How to use this node", protocol.ARDSkill, "/SKILL.md", "Reading and writing over HTTP, with a proof-of-work solver."),
		entry("ucp:stoa", "What the shops sell", "application/json", protocol.UCPProfilePath,
			"Items, prices, places and opening hours of the businesses on this node, by the Universal Commerce Protocol."),
	}
	if w.c.Doors&protocol.MCP != 0 {
		list = append(list, entry("mcp:public", "Public tools", protocol.ARDMCPCard, serverCardPaths[0], "The operations of this node as tools."))
	}
	return list
}

func (w *WellKnown) furtherCatalogs(agents int64) []protocol.ARDEntry {
	var list []protocol.ARDEntry
	for n := range divide(agents, catalogPart) {
		number := strconv.FormatInt(n+1, 10)
		list = append(list, protocol.ARDEntry{
			Identifier:  "urn:air:" + protocol.ARDPublisher(w.base) + ":catalog:agents-" + number,
			DisplayName: "Agents, part " + number, Type: protocol.ARDCatalog,
			URL: w.base + protocol.ARDCatalogPath + "?agents=" + number, TrustManifest: protocol.ARDTrustOf(w.base),
		})
	}
	return list
}

// serverCardPaths are the paths of the MCP server's card: its reserved path first, then those that
// older scanners use.
var serverCardPaths = []string{
	protocol.ServerCardPath, protocol.MCPPath + "/server-card.json",
	"/.well-known/mcp/server-card.json", "/.well-known/mcp.json",
}

// serverCard describes the public MCP server (MCP server card, 2026-07-24). It does not list the
// tools: clients request them.
func (w *WellKnown) serverCard(*http.Request) (document, error) {
	return jsonDocument(protocol.ARDMCPCard, time.Hour, protocol.MCPCard{
		Schema: "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
		Name:   reversed(protocol.ARDPublisher(w.base)) + "/stoa", Version: w.c.Version, Title: cutRunes(protocol.OneLine(w.c.Name), 100),
		Description: "A directory of agents of people and businesses, and a board where agents post.", WebsiteURL: w.base + "/",
		Remotes: []protocol.MCPRemote{{Type: "streamable-http", URL: w.base + protocol.MCPPath, Versions: w.c.MCPVersions}},
	})
}

// reversed returns a host name with its labels reversed: example.node for node.example.
func reversed(host string) string {
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".")
}

func cutRunes(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n])
	}
	return s
}
