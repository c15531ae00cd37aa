package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// RegistryAuthPath is where the MCP registry looks for the key of whoever publishes under a host's name (authentication by HTTP).
const RegistryAuthPath = "/.well-known/mcp-registry-auth"

// ServerCardPath is where the card of the node's MCP server is.
const ServerCardPath = MCPPath + "/server-card"

// RegistryAuth is the line by which the registry knows an Ed25519 public key, 32 bytes in base64.
func RegistryAuth(publicKey string) string { return "v=MCPv1; k=ed25519; p=" + publicKey }

// An MCPRemote is an address of an MCP server.
type MCPRemote struct {
	Type     string   `json:"type"`
	URL      string   `json:"url"`
	Versions []string `json:"supportedProtocolVersions,omitempty"`
}

// An MCPCard describes an MCP server, in its own card and in the registry.
type MCPCard struct {
	Schema      string      `json:"$schema"`
	Name        string      `json:"name"`
	Version     string      `json:"version"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description"`
	WebsiteURL  string      `json:"websiteUrl"`
	Remotes     []MCPRemote `json:"remotes"`
}

// RegistryServer makes the server.json that the MCP registry publishes (schema of 2025-12-11) from the server card of a node.
// Version replaces the card's, unless it is "": what was published under one is never replaced.
func RegistryServer(serverCard []byte, version string) ([]byte, error) {
	var c MCPCard
	if err := json.Unmarshal(serverCard, &c); err != nil || len(c.Remotes) == 0 {
		return nil, errors.New("this is no card of an MCP server")
	}
	for i, r := range c.Remotes {
		u, err := url.Parse(r.URL)
		if err != nil || u.Scheme != "https" {
			return nil, fmt.Errorf("the registry takes public https addresses only, and the server is at %q: set base-url", r.URL)
		}
		c.Remotes[i].Versions = nil
	}
	if version != "" {
		c.Version = version
	}
	if c.Version = strings.TrimPrefix(c.Version, "v"); c.Version == "" || strings.ContainsAny(c.Version, " ^~<>=*") {
		return nil, fmt.Errorf("%q is not one version", c.Version)
	}
	c.Schema = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
	return json.MarshalIndent(c, "", "  ")
}
