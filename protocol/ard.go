package protocol

import (
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Agentic Resource Discovery (ARD) 0.9, draft of 28 May 2026: the directory as entries for
// registries of other makers. Everything that depends on the format is in the files ard*.go, since
// it may change before 1.0.

// Media types of ARD entries. None is registered with IANA yet.
const (
	ARDAgentCard = "application/a2a-agent-card+json"
	ARDMCPCard   = "application/mcp-server-card+json"
	ARDSkill     = "application/ai-skill+md"
	ARDRegistry  = "application/ai-registry+json"
	ARDCatalog   = "application/ai-catalog+json"
)

// Paths of ARD on a node.
const (
	ARDCatalogPath = "/.well-known/ai-catalog.json"
	ARDPath        = "/ard" // the registry; its search is at ARDPath + "/search"
)

// An ARDEntry describes one thing that can be found: an agent, a registry, a tool server, a
// further catalog.
type ARDEntry struct {
	Identifier            string         `json:"identifier" doc:"urn:air:<publisher>:<namespace>:<name>"`
	DisplayName           string         `json:"displayName"`
	Type                  string         `json:"type" doc:"Media type of the document at url."`
	URL                   string         `json:"url,omitempty" format:"uri"`
	Data                  map[string]any `json:"data,omitempty" doc:"The document itself, where there is no url."`
	Description           string         `json:"description,omitempty"`
	Tags                  []string       `json:"tags,omitempty"`
	Capabilities          []string       `json:"capabilities,omitempty"`
	RepresentativeQueries []string       `json:"representativeQueries,omitempty" doc:"None, or 2 to 5."`
	Version               string         `json:"version,omitempty"`
	UpdatedAt             *time.Time     `json:"updatedAt,omitempty"`
	Metadata              map[string]any `json:"metadata,omitempty" doc:"Scalars. Lists are comma-separated; a filter matches any of their members."`
	TrustManifest         *ARDTrust      `json:"trustManifest,omitempty"`
	Untrusted             bool           `json:"untrusted_content,omitempty" doc:"True for agents: their owners wrote the texts."`
}

// An ARDTrust says who vouches for an entry, and what a reader can verify.
type ARDTrust struct {
	Identity     string           `json:"identity"`
	IdentityType string           `json:"identityType,omitempty"`
	TrustSchema  map[string]any   `json:"trustSchema,omitempty"`
	Attestations []ARDAttestation `json:"attestations,omitempty"`
	Provenance   []map[string]any `json:"provenance,omitempty"`
	Signature    string           `json:"signature,omitempty"`
}

// An ARDAttestation is a claim that a reader can verify.
type ARDAttestation struct {
	Type      string `json:"type"`
	URI       string `json:"uri" format:"uri"`
	MediaType string `json:"mediaType,omitempty"`
	Digest    string `json:"digest,omitempty"`
}

// An ARDHost is the publisher of a catalog.
type ARDHost struct {
	DisplayName      string `json:"displayName"`
	Identifier       string `json:"identifier,omitempty"`
	DocumentationURL string `json:"documentationUrl,omitempty"`
}

// An ARDManifest is the document ai-catalog.json.
type ARDManifest struct {
	SpecVersion string     `json:"specVersion"`
	Host        ARDHost    `json:"host"`
	Entries     []ARDEntry `json:"entries"`
}

// ARDPublisher returns the publisher segment of the entries of the node at base: its host name
// without port. A node without a public name, on loopback or a bare address, publishes as
// agent.localhost, as the naming guide defines for local runs.
func ARDPublisher(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ardLocal
	}
	host := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" || !strings.Contains(host, ".") {
		return ardLocal
	}
	return host
}

const ardLocal = "agent.localhost"

// ARDTrustOf returns the trust of the node's own entries: its address, whose key directory
// verifies its signatures. It is nil for a node that publishes under a local name, where others
// could verify nothing.
func ARDTrustOf(base string) *ARDTrust {
	if ARDPublisher(base) == ardLocal {
		return nil
	}
	return &ARDTrust{Identity: base, IdentityType: "https"}
}

const (
	ardDescription = 200 // characters of a profile's description in its entry
	ardQueries     = 5
)

// ARDEntryOf returns a profile of the node at base as an entry.
func ARDEntryOf(base string, p Profile) ARDEntry {
	e := ARDEntry{
		Identifier:  "urn:air:" + ARDPublisher(base) + ":agent:" + p.Handle,
		DisplayName: p.Name, Type: ARDAgentCard, URL: p.Interfaces.AgentCard,
		Description: strings.TrimSpace(p.Headline + " " + firstRunes(p.Description, ardDescription)),
		UpdatedAt:   p.UpdatedAt, TrustManifest: ARDTrustOf(base), Untrusted: true,
		Metadata: map[string]any{"kind": string(p.Kind), "hasIdentity": false, "untrusted_content": true},
	}
	seen := map[string]bool{}
	addTags := func(tags []string) {
		for _, tag := range tags {
			if !seen[tag] {
				seen[tag] = true
				e.Tags = append(e.Tags, tag)
			}
		}
	}
	addTags(p.Tags)
	for _, c := range p.Capabilities {
		addTags(c.Tags)
		e.Capabilities = append(e.Capabilities, c.ID)
		if len(e.RepresentativeQueries) < ardQueries {
			e.RepresentativeQueries = append(e.RepresentativeQueries, "Use "+c.Name+" of "+p.Name)
		}
	}
	if len(e.RepresentativeQueries) == 1 { // the format wants none, or at least two
		e.RepresentativeQueries = append(e.RepresentativeQueries, "Ask "+p.Name+" about "+p.Capabilities[0].Name)
	}
	for name, value := range map[string]string{
		"languages": strings.Join(p.Languages, ","), "regions": strings.Join(p.Regions, ","), "timezone": p.Timezone,
	} {
		if value != "" {
			e.Metadata[name] = value
		}
	}
	if id := p.Identity; id != nil && id.ERC8004 != nil {
		e.Metadata["hasIdentity"], e.Metadata["erc8004"] = true, *id.ERC8004
		if id.Registration != nil && e.TrustManifest != nil {
			e.TrustManifest.Attestations = []ARDAttestation{{Type: "ERC-8004", URI: *id.Registration, MediaType: "application/json"}}
		}
	}
	return e
}

// firstRunes returns the beginning of a text, cut at the end of a word.
func firstRunes(s string, n int) string {
	count := 0
	for i := range s {
		if count++; count > n {
			if space := strings.LastIndexByte(s[:i], ' '); space > 0 {
				i = space
			}
			return s[:i] + "…"
		}
	}
	return s
}
