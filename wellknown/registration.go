package wellknown

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stoa/identity/registration"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

const (
	registrationAge = 5 * time.Minute
	maxRegistered   = registration.MaxDomainEntries // entries of agent-registration.json
	maxExactInteger = 1<<53 - 1                     // the largest integer that every JSON reader represents exactly
)

// A registrationFile is the document that an agent's URI on chain refers to. It has no image: the
// node stores no pictures.
type registrationFile struct {
	Type           string       `json:"type"`
	Name           string       `json:"name"`
	Description    string       `json:"description"`
	Services       []service    `json:"services"`
	X402Support    bool         `json:"x402Support"`
	Active         bool         `json:"active"`
	Registrations  []registered `json:"registrations"`
	SupportedTrust []string     `json:"supportedTrust,omitempty"`
	UpdatedAt      int64        `json:"updatedAt,omitempty"` // seconds since the epoch
}

type service struct {
	Name       string `json:"name"`
	Endpoint   string `json:"endpoint"`
	Version    string `json:"version,omitempty"` // of the protocol
	Thumbprint string `json:"thumbprint,omitempty"`
}

type registered struct {
	AgentID       any    `json:"agentId"` // a number up to 2^53-1, above it a decimal string
	AgentRegistry string `json:"agentRegistry"`
}

// registration is the registration file of the agent that a key belongs to. An agent that is not
// on a chain yet has one too, without registrations: its owner gives its address to the registry.
func (w *WellKnown) registration(r *http.Request) (document, error) {
	k, err := w.agentKey(r)
	if err != nil {
		return document{}, err
	}
	p, err := w.c.Directory.Profile(r.Context(), k.Handle)
	if err != nil {
		return document{}, err
	}
	file := registrationFile{
		Type: registration.Type, Name: p.Name, Description: describe(p), Active: true,
		Services:      w.services(p, k.Public.Thumbprint),
		Registrations: []registered{},
	}
	if p.Identity != nil && p.Identity.ERC8004 != nil {
		if entry, ok := registeredAs(*p.Identity.ERC8004); ok {
			file.Registrations = append(file.Registrations, entry)
		}
	}
	if p.Reputation != nil {
		file.SupportedTrust = []string{"reputation"}
	}
	if p.UpdatedAt != nil {
		file.UpdatedAt = p.UpdatedAt.Unix()
	}
	return jsonDocument("application/json", registrationAge, file)
}

func describe(p protocol.Profile) string {
	if p.Description != "" {
		return p.Description
	}
	return p.Headline
}

// services returns the ways to reach the agent on this node.
func (w *WellKnown) services(p protocol.Profile, thumbprint string) []service {
	list := []service{{Name: "web", Endpoint: p.Interfaces.Page}, {Name: "profile", Endpoint: p.Interfaces.Profile}}
	if w.c.Doors&protocol.A2A != 0 && p.Interfaces.A2A != nil {
		list = append(list, service{Name: "A2A", Endpoint: p.Interfaces.AgentCard, Version: a2a.Version})
	}
	if w.c.Doors&protocol.MCP != 0 {
		s := service{Name: "MCP", Endpoint: p.Interfaces.PublicMCP}
		if len(w.c.MCPVersions) > 0 {
			s.Version = w.c.MCPVersions[0]
		}
		list = append(list, s)
	}
	return append(list, service{
		Name: "keyDirectory", Thumbprint: thumbprint,
		Endpoint: w.base + "/.well-known/service-agents/" + thumbprint + "/jwks.json",
	})
}

// registeredAs splits a chain identity into registry and agent id.
func registeredAs(erc8004 string) (registered, bool) {
	i := strings.LastIndexByte(erc8004, ':')
	if i < 0 {
		return registered{}, false
	}
	entry := registered{AgentID: erc8004[i+1:], AgentRegistry: erc8004[:i]}
	if n, err := strconv.ParseUint(erc8004[i+1:], 10, 64); err == nil && n <= maxExactInteger {
		entry.AgentID = json.Number(erc8004[i+1:])
	}
	return entry, true
}

// domainRegistrations proves to readers of the chain that this host vouches for
// agents whose registration file is elsewhere (ERC-8004 "Endpoint Domain
// Verification").
func (w *WellKnown) domainRegistrations(r *http.Request) (document, error) {
	ids, err := w.c.Directory.Elsewhere(r.Context(), maxRegistered)
	if err != nil {
		return document{}, err
	}
	list := make([]registered, 0, len(ids))
	for _, id := range ids[:min(len(ids), maxRegistered)] {
		if entry, ok := registeredAs(id); ok {
			list = append(list, entry)
		}
	}
	return jsonDocument("application/json", registrationAge, struct {
		Type          string       `json:"type"`
		Registrations []registered `json:"registrations"`
	}{registration.Type, list})
}
