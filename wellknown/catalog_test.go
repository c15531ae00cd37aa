package wellknown

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// ardFaults are the checks of the ARD repository's conformance tool, mode
// "manifest" (ards-project/ard-spec, 2026-07-15, Apache-2.0): its schema, and what
// the tool looks at beyond that.
func ardFaults(t *testing.T, raw []byte) (faults []string) {
	t.Helper()
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	document := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(raw)))(t)
	if err := ardSchema().Validate(document); err != nil {
		bad("%v", err)
	}
	entries, _ := document.(map[string]any)["entries"].([]any)
	seen := map[any]bool{}
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if seen[entry["identifier"]] {
			bad("%v twice", entry["identifier"])
		}
		seen[entry["identifier"]] = true
		ardEntryFaults(entry, bad)
	}
	return faults
}

var urn = regexp.MustCompile(`^urn:air:([a-zA-Z0-9.-]+)(?::([a-zA-Z0-9._:-]+))?:([a-zA-Z0-9._-]+)$`)

func ardEntryFaults(e map[string]any, bad func(string, ...any)) {
	id, _ := e["identifier"].(string)
	parts := urn.FindStringSubmatch(id)
	if parts == nil || parts[1] == "localhost" {
		bad("identifier %q", id)
		return
	}
	if trust, ok := e["trustManifest"].(map[string]any); ok {
		u, err := url.Parse(fmt.Sprint(trust["identity"]))
		if err != nil || u.Hostname() != parts[1] && !strings.HasSuffix(u.Hostname(), "."+parts[1]) {
			bad("%s: identity %v is of another domain", id, trust["identity"])
		}
	}
}

var ardSchema = sync.OnceValue(func() *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	return c.MustCompile("testdata/ai-catalog-0.9.schema.json")
})

// The checks find what is wrong, so that their silence means something.
func TestARDFaults(t *testing.T) {
	t.Parallel()
	good := `{"identifier":"urn:air:n1.example:agent:asha","displayName":"A","type":"x/y","url":"https://n1.example/a"}`
	with := func(member string) string { return strings.TrimSuffix(good, "}") + "," + member + "}" }
	require.Empty(t, ardFaults(t, []byte(`{"specVersion":"1.0","entries":[`+good+`]}`)))
	for _, entry := range []string{
		`{}`, strings.ReplaceAll(good, "n1.example:agent", "localhost:agent"), strings.ReplaceAll(good, "urn:air", "urn:ai"),
		with(`"data":{}`), strings.ReplaceAll(good, `"url"`, `"uri"`), with(`"representativeQueries":["one"]`), with(`"updatedAt":"today"`),
		with(`"metadata":{"languages":["en"]}`), with(`"trustManifest":{"identity":"https://other.example","identityType":"https"}`),
		with(`"trustManifest":{"identityType":"https"}`), with(`"trustManifest":{"identity":"https://n1.example","identityType":"did","x":1}`),
		with(`"trustManifest":{"identity":"https://n1.example","identityType":"did","attestations":[{"type":"a","uri":"b"}]}`), good + "," + good,
	} {
		require.NotEmpty(t, ardFaults(t, []byte(`{"specVersion":"1.0","entries":[`+entry+`]}`)), entry)
	}
	for _, manifest := range []string{`{"entries":[]}`, `{"specVersion":"1.0"}`, `{"specVersion":"2","entries":[]}`, `{"specVersion":"1.0","entries":[],"x":1}`,
		`{"specVersion":"1.0","entries":[],"host":{"name":"x"}}`} {
		require.NotEmpty(t, ardFaults(t, []byte(manifest)), manifest)
	}
}

func manifest(t *testing.T, h http.Handler, target string) protocol.ARDManifest {
	t.Helper()
	rec := get(h, target)
	require.Equal(t, http.StatusOK, rec.Code, target)
	require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
	require.Empty(t, ardFaults(t, rec.Body.Bytes()))
	m := must.JSON[protocol.ARDManifest](rec.Body.Bytes())(t)
	return m
}

func TestCatalog_SmallNodeListsEverything(t *testing.T) {
	t.Parallel()
	_, h := node(t)
	m := manifest(t, h, "/.well-known/ai-catalog.json")
	var ids []string
	for _, e := range m.Entries {
		ids = append(ids, strings.TrimPrefix(e.Identifier, "urn:air:n1.example:"))
	}
	require.Equal(t, []string{"registry:stoa", "skill:stoa", "ucp:stoa", "agent:asha", "agent:ravi"}, ids, "the MCP door is closed on this node")
	require.Equal(t, base+"/ard", m.Entries[0].URL)
	require.Equal(t, base+"/a2a/asha/agent-card.json", m.Entries[3].URL)
	require.Equal(t, true, m.Entries[3].Metadata["untrusted_content"])
}

func TestCatalog_LargeNodeDivides(t *testing.T) {
	t.Parallel()
	h := large(t, &site{size: 2*catalogPart + 1}, base)
	m := manifest(t, h, "/.well-known/ai-catalog.json")
	agents := 0
	for _, e := range m.Entries {
		if e.Type == protocol.ARDCatalog {
			part := manifest(t, h, strings.TrimPrefix(e.URL, base))
			require.LessOrEqual(t, len(part.Entries), catalogPart)
			agents += len(part.Entries)
		}
	}
	require.Equal(t, 2*catalogPart+1, agents)
	require.Equal(t, http.StatusNotFound, get(h, "/.well-known/ai-catalog.json?agents=4").Code)
}

// A node on loopback has no name that others could check, and claims none.
func TestCatalog_OnLoopback(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"} {
		m := manifest(t, large(t, &site{size: 1}, host), "/.well-known/ai-catalog.json")
		require.Equal(t, "urn:air:agent.localhost:registry:stoa", m.Entries[0].Identifier)
		for _, e := range m.Entries {
			require.Nil(t, e.TrustManifest)
		}
	}
}

// The card of the MCP server: names and lengths of the server-card extension.
func TestServerCard(t *testing.T) {
	t.Parallel()
	h := large(t, &site{}, base)
	for _, path := range serverCardPaths {
		rec := get(h, path)
		require.Equal(t, http.StatusOK, rec.Code, path)
		require.Equal(t, "application/mcp-server-card+json", rec.Header().Get("Content-Type"))
		var card struct {
			Name, Title, Description string
			Remotes                  []struct {
				Type, URL string
				Versions  []string `json:"supportedProtocolVersions"`
			}
		}
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &card))
		require.Equal(t, "example.n1/stoa", card.Name)
		require.LessOrEqual(t, len(card.Description), 100)
		require.Equal(t, base+"/mcp/public", card.Remotes[0].URL)
		require.Equal(t, []string{"2026-07-28"}, card.Remotes[0].Versions)
	}
}
