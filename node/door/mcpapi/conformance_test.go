package mcpapi_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/door/mcpapi"
	"stoa/node/nodetest"
	"stoa/protocol/must"
)

// TestConformance runs the conformance kit of MCP against the dispatcher, to which the things that the kit calls by name are added, on the newest
// revision and the one before.
func TestConformance(t *testing.T) {
	t.Parallel()
	runtime, program := os.Getenv("STOA_TEST_FEDIFY"), os.Getenv("STOA_TEST_MCP")
	suite := filepath.Join(filepath.Dir(program), "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	if runtime == "" || program == "" {
		t.Skip("the conformance kit is not here; make test installs it")
	}
	require.FileExists(t, suite, "the clients of MCP were installed without the kit: .ci/mcp does")
	h := nodetest.New(t)
	k := &kit{tasks: map[string]*kitTask{}}
	hub := mcpapi.NewHub(h.DB.Version)
	t.Cleanup(hub.Close)
	url := served(t, h, func(c *mcpapi.Config) {
		c.Hub, c.Tools, c.Resources, c.Prompts, c.Tasks = hub, k.tools(), k.resources(), k.prompts(), k
	})
	for _, c := range []struct {
		revision string
		least    int
		fails    []string
	}{
		// No tool has x-mcp-header: a client that does not repeat an argument as a header must then be refused, and this server refuses nobody for that.
		{"2026-07-28", 185, []string{"sep-2243-server-decode-base64", "sep-2243-server-no-xmcp-tool", "sep-2243-server-reject-invalid-param-chars",
			"sep-2243-server-reject-param-mismatch", "sep-2243-server-validate-param-match"}},
		// The server sends no requests: a client that takes none is served by the same tools.
		{"2025-11-25", 66, []string{"elicitation-sep1034-general", "elicitation-sep1330-general", "tools-call-elicitation", "tools-call-sampling"}},
	} {
		var passed int
		var failed []string
		for range 3 { // the kit gives a stream a second to say something, which a busy machine may not keep
			if passed, failed = conformance(t, runtime, suite, url, c.revision); slices.Equal(failed, c.fails) {
				break
			}
		}
		require.Equal(t, c.fails, failed, c.revision)
		require.GreaterOrEqual(t, passed, c.least, c.revision)
	}
}

// conformance runs the kit once, with all scenarios of a revision and of its extensions.
func conformance(t *testing.T, runtime, suite, url, revision string) (passed int, failed []string) {
	out := t.TempDir()
	said, _ := exec.CommandContext(t.Context(), runtime, suite, "server", "--url", url, "--requirements", revision, "-o", out).CombinedOutput()
	files := must.Get(filepath.Glob(filepath.Join(out, "*", "checks.json")))(t)
	require.NotEmpty(t, files, "%s", said)
	for _, file := range files {
		raw := must.Get(os.ReadFile(file))(t)
		var checks []struct{ ID, Status, ErrorMessage string }
		require.NoError(t, json.Unmarshal(raw, &checks))
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				passed++
			case "FAILURE", "WARNING":
				failed = append(failed, c.ID)
				t.Logf("%s: %s: %s", c.Status, c.ID, c.ErrorMessage)
			}
		}
	}
	slices.Sort(failed)
	t.Logf("%s: %d passed, %d failed", revision, passed, len(failed))
	return passed, failed
}
