package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
)

const registryKey = "ja8L6VAIuWaXJLxDXBFfAAAAAAAAAAAAAAAAAAAAAAA="

// TestRegistryJSON: what is printed about a node on the public web is what the MCP registry takes (schema of 2025-12-11), and about
// another node the reason why it would not.
func TestRegistryJSON(t *testing.T) {
	t.Parallel()
	published := func(change ...func(*node.Config)) string { // a node behind a proxy, at the address of which is asked
		h := nodetest.New(t, append(change, func(c *node.Config) { c.BaseURL, c.Version, c.Dev = "https://node.example", "v0.4.1", false })...)
		s := httptest.NewServer(h.Handler())
		t.Cleanup(s.Close)
		return s.URL
	}
	ask := func(code int, args ...string) (string, string) {
		var out, errs bytes.Buffer
		require.Equal(t, code, run(t.Context(), append([]string{"registry-json"}, args...), strings.NewReader(""), &out, &errs), "%v: %s", args, errs.String())
		return out.String(), errs.String()
	}
	with := published(func(c *node.Config) { c.RegistryKey = registryKey })
	text, told := ask(exitDone, with)
	require.Empty(t, told)
	var server struct {
		Schema, Name, Version, Title, Description, WebsiteURL string
		Remotes                                               []map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(strings.Replace(text, "$schema", "schema", 1)), &server))
	require.Equal(t, "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json", server.Schema)
	require.Regexp(t, regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`), server.Name)
	require.Equal(t, "example.node/stoa", server.Name)
	require.Equal(t, "0.4.1", server.Version)
	require.Equal(t, "https://node.example/", server.WebsiteURL)
	require.NotEmpty(t, server.Title)
	require.LessOrEqual(t, len(server.Description), 100)
	require.Equal(t, []map[string]string{{"type": "streamable-http", "url": "https://node.example/mcp/public"}}, server.Remotes)

	text, told = ask(exitDone, published(), "--as", "0.4.2")
	require.Contains(t, text, `"version": "0.4.2"`)
	require.Contains(t, told, "mcp-registry-auth is not served")
	_, told = ask(exitFailed, with, "--as", ">=1")
	require.Contains(t, told, "is not one version")
	_, told = ask(exitFailed, nodetest.Start(t).Base)
	require.Contains(t, told, "public https addresses only")
}
