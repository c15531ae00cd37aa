package node

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol"
)

// TestGuides_Sizes: what a model reads before it does anything is paid for by the
// byte.
func TestGuides_Sizes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *Config) {
		c.Chain = []string{"1=https://rpc.example,0x8004A169FB4a3325136EB29fA0ceB6D2e539a432", "8453=https://rpc.example,0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}
	})
	for what, c := range map[string]struct{ bytes, most int }{
		"tools/list":                {len(h.modern("tools/list", "").Result), 78_000},                  // with items, receipts and reviews
		"tools/list of owners":      {len(h.modernAt("/mcp/owner", "tools/list", "").Result), 160_000}, // with meetings, calendars, items and receipts
		"SKILL.md":                  {h.ask("GET", "/SKILL.md", "").Body.Len(), 22_000},                // with meeting requests and UCP
		"llms.txt":                  {h.ask("GET", "/llms.txt", "").Body.Len(), 10_000},
		"/openapi.json":             {h.ask("GET", "/openapi.json", "").Body.Len(), 195_000},
		"/openapi.json of everyone": {h.ask("GET", "/openapi.json?for=all", "").Body.Len(), 622_000}, // with signing in, catalogs, receipts and operators' work
	} {
		t.Logf("%s: %d bytes of %d", what, c.bytes, c.most)
		assert.LessOrEqual(t, c.bytes, c.most, what)
		require.Greater(t, c.bytes, 2000, what)
	}
}

// TestOpenAPI_Audiences: the description that everyone reads has everyone's
// operations whole, the other one all of them.
func TestOpenAPI_Audiences(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	type description struct {
		Paths      map[string]map[string]struct{ OperationID string }
		Components struct{ Schemas map[string]any }
		Servers    []struct{ URL string }
	}
	for path, all := range map[string]bool{"/openapi.json": false, "/openapi.json?for=all": true} {
		a := h.ask("GET", path, "")
		require.Equal(t, 200, a.Code)
		require.NotContains(t, a.Body.String(), "\n", "compact")
		require.Equal(t, 304, h.ask("GET", path, "", "If-None-Match", a.Header().Get("ETag")).Code)
		var d description
		a.into(&d)
		require.Equal(t, h.Base, d.Servers[0].URL)
		told := map[string]bool{}
		for _, methods := range d.Paths {
			for _, o := range methods {
				told[o.OperationID] = true
			}
		}
		for _, op := range protocol.Operations() {
			if op.Doors&protocol.HTTP != 0 {
				require.Equal(t, all || op.For == protocol.Everybody, told[op.Name], "%s in %s", op.Name, path)
			}
		}
		for _, ref := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(a.Body.String(), -1) {
			require.Contains(t, d.Components.Schemas, ref[1])
		}
	}
	require.Equal(t, protocol.Validation, h.ask("GET", "/openapi.json?for=nobody", "").problem().Code)
}

// samples are the Python programs of a node's skill description.
func samples(t *testing.T, n *Node) []string {
	t.Helper()
	r, err := http.Get(n.URL + "/SKILL.md")
	require.NoError(t, err)
	defer r.Body.Close()
	var text strings.Builder
	_, err = io.Copy(&text, r.Body)
	require.NoError(t, err)
	var all []string
	for _, m := range regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(text.String(), -1) {
		all = append(all, m[1])
	}
	require.Len(t, all, 3)
	return all
}

// python runs a program in a directory of its own, which holds a private key.
func python(t *testing.T, pair key.Pair, program string) string {
	t.Helper()
	dir := t.TempDir()
	jwk, err := pair.MarshalPrivate()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.jwk"), jwk, 0o600))
	c := exec.CommandContext(t.Context(), "python3", "-c", program)
	c.Dir = dir
	var faults strings.Builder
	c.Stderr = &faults
	out, err := c.Output()
	require.NoError(t, err, "%s", faults.String())
	return string(out)
}

// TestGuide_SamplesRun runs the programs of the skill description as they are
// printed: an anonymous post, a signed one of a profile's key, one under a chain
// identity, and a signed read.
func TestGuide_SamplesRun(t *testing.T) {
	t.Parallel()
	if err := exec.Command("python3", "-c", "import cryptography").Run(); err != nil {
		t.Skipf("no Python with the package cryptography (%v): the samples of SKILL.md were not run (make test installs it)", err)
	}
	h := &house{startNode(t), t}
	pair := hostedAgent(t, h.Node, "asha")
	outside := h.agents(1)[0]
	var proof, sign string
	for _, s := range samples(t, h.Node) {
		switch {
		case strings.Contains(s, "pbkdf2_hmac"):
			proof = s
		case strings.Contains(s, "def signed("):
			sign = s
		}
	}
	post := func(pair key.Pair, program string) (p protocol.Post) {
		out := python(t, pair, program)
		require.NoError(t, json.Unmarshal([]byte(out), &p), "%s", out)
		return p
	}
	require.Equal(t, protocol.ByProof, post(pair, proof).Author.Method)

	p := post(pair, sign)
	require.True(t, p.Author.Verified)
	require.Equal(t, "asha", *p.Author.Handle)

	p = post(outside.pair, strings.Replace(sign, "identity=None)\n", "identity=\""+outside.id+"\")\n", 1))
	require.True(t, p.Author.Verified)
	require.Equal(t, outside.id, *p.Author.ERC8004, "named in Agent-Identity, bare")

	define, _, _ := strings.Cut(sign, "\nbody = ")
	read := define + "\nreq = signed(json.load(open('key.jwk')), 'GET', '" + h.Base +
		"/api/public/since?limit=5')\nprint(urllib.request.urlopen(req).read().decode())\n"
	require.Contains(t, python(t, pair, read), `"next"`)
}
