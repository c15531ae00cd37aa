// Package registration reads registration documents of ERC-8004 ("Agent URI and Agent Registration File", "Endpoint Domain Verification"):
// the file that the agentURI of an identity leads to, and the one by which a domain names identities. It fetches nothing.
package registration

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"

	"stoa/identity/erc8004"
	"stoa/identity/strictjson"
)

// Type is the type of a registration document (ERC-8004 "Agent URI and Agent Registration File").
const Type = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"

// DomainPath is where a domain names the identities that it vouches for (ERC-8004 "Endpoint Domain Verification").
const DomainPath = "/.well-known/agent-registration.json"

// Limits of a registration document.
const (
	MaxAgentURI       = 2048      // bytes of an agentURI that is an address
	MaxInline         = 64 << 10  // of one that contains the document
	MaxDocument       = 256 << 10 // bytes of a document that an agentURI leads to
	MaxEntries        = 64        // that it has
	MaxDomainDocument = 2 << 20   // bytes of agent-registration.json, which names every identity of a domain
	MaxDomainEntries  = 10_000    // that it has

	maxServices = 64
	maxHosts    = 3 // of services
)

// A Document is what is read of a registration document. Everything in it is the claim of its author.
type Document struct {
	Registrations []erc8004.ID // identities that it names, each once. Entries of other namespaces and malformed ones are left out
	Hosts         []string     // host[:port] of its services named "web", each once, at most 3
}

// Names reports whether the document names an identity.
func (d Document) Names(id erc8004.ID) bool {
	return slices.ContainsFunc(d.Registrations, func(o erc8004.ID) bool { return o.String() == id.String() })
}

// A file is a registration document, as far as it is read. Before January 2026 services were endpoints.
type file struct {
	Type          string    `json:"type"`
	Services      []service `json:"services"`
	Endpoints     []service `json:"endpoints"`
	Registrations []struct {
		AgentID       json.RawMessage `json:"agentId"` // a number, or above 2^53-1 a decimal string
		AgentRegistry string          `json:"agentRegistry"`
	} `json:"registrations"`
}

type service struct{ Name, Endpoint, Type, Value string }

// Parse parses the registration document of an agent.
func Parse(raw []byte) (Document, error) { return parse(raw, MaxDocument, MaxEntries) }

// ParseDomain parses agent-registration.json of a domain, which may name as many identities as a domain has.
func ParseDomain(raw []byte) (Document, error) {
	return parse(raw, MaxDomainDocument, MaxDomainEntries)
}

func parse(raw []byte, most, entries int) (d Document, err error) {
	if err := strictjson.Check(raw, strictjson.Limits{MaxBytes: most, MaxDepth: 16, MaxTokens: 100_000}); err != nil {
		return d, errors.New("the document is not acceptable JSON")
	}
	var f file
	if err := json.Unmarshal(raw, &f); err != nil {
		return d, errors.New("the document has another shape")
	}
	switch {
	case f.Type != "" && f.Type != Type:
		return d, errors.New("type is not " + Type)
	case len(f.Registrations) > entries:
		return d, fmt.Errorf("it has %d registrations, at most %d are read", len(f.Registrations), entries)
	}
	seen := map[string]bool{}
	for _, r := range f.Registrations {
		id, err := erc8004.ParseID(r.AgentRegistry + ":" + strings.Trim(string(r.AgentID), `"`))
		if err == nil && !seen[id.String()] {
			seen[id.String()] = true
			d.Registrations = append(d.Registrations, id)
		}
	}
	services := f.Services
	if services == nil {
		services = f.Endpoints
	}
	for _, s := range services[:min(len(services), maxServices)] {
		u, err := url.Parse(s.Endpoint + s.Value)
		if err != nil || !strings.EqualFold(s.Name+s.Type, "web") || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
			continue
		}
		if host := strings.ToLower(u.Host); !slices.Contains(d.Hosts, host) && len(d.Hosts) < maxHosts {
			d.Hosts = append(d.Hosts, host)
		}
	}
	return d, nil
}

// Inline returns the document that an agentURI contains, which is application/json as a data: URL (RFC 2397). ok is false for one
// that leads elsewhere.
func Inline(uri string) (raw []byte, ok bool, err error) {
	const scheme = "data:"
	if len(uri) < len(scheme) || !strings.EqualFold(uri[:len(scheme)], scheme) {
		return nil, false, nil
	}
	if len(uri) > MaxInline {
		return nil, true, fmt.Errorf("the data: address has more than %d bytes", MaxInline)
	}
	head, data, found := strings.Cut(uri[len(scheme):], ",")
	head, based := strings.CutSuffix(head, ";base64")
	media, _, _ := mime.ParseMediaType(head)
	if !found || media != "application/json" {
		return nil, true, errors.New("the data: address is not of application/json")
	}
	text, err := url.PathUnescape(data)
	if err == nil && based {
		raw, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
		return raw, true, err
	}
	return []byte(text), true, err
}
