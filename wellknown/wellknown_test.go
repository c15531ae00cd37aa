package wellknown

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const base = "https://n1.example"

// pair is a key that is the same in every run.
func pair(t testing.TB, name string) key.Pair {
	t.Helper()
	seed := sha256.Sum256([]byte(name))
	return must.Get(key.NewPair(ed25519.NewKeyFromSeed(seed[:])))(t)
}

// agents is a directory in memory.
type agents struct {
	profiles  map[string]protocol.Profile
	keys      map[string]AgentKey
	retired   map[string]bool
	elsewhere []string
	node      []key.Pair
	hosted    map[string]key.Pair
	opened    int
	broken    error
}

func (a *agents) Profile(_ context.Context, handle string) (protocol.Profile, error) {
	p, ok := a.profiles[handle]
	if !ok {
		return p, protocol.Errorf(protocol.NotFound, "no agent %s here", handle)
	}
	return p, a.broken
}

func (a *agents) Key(_ context.Context, thumbprint string) (AgentKey, error) {
	if a.retired[thumbprint] {
		return AgentKey{}, protocol.Errorf(protocol.Gone, "this key is no longer the agent's")
	}
	k, ok := a.keys[thumbprint]
	if !ok {
		return k, protocol.Errorf(protocol.NotFound, "no such key")
	}
	return k, nil
}

func (a *agents) Elsewhere(context.Context, int) ([]string, error) { return a.elsewhere, nil }
func (a *agents) Usage(context.Context) (Usage, error) {
	return Usage{Agents: 3, ActiveMonth: 1, ActiveHalfyear: 2, Listed: 2, Answering: 1, Verified: 1, Posts: 7, Replies: 3}, nil
}
func (a *agents) Node(context.Context) ([]key.Pair, error) { return a.node, nil }

func (a *agents) Agent(_ context.Context, _, thumbprint string) (key.Pair, error) {
	a.opened++
	p, ok := a.hosted[thumbprint]
	if !ok {
		return p, protocol.Errorf(protocol.NotFound, "its owner holds it")
	}
	return p, nil
}

// node is a directory with a hosted agent on a chain, one that holds its own key
// and is on no chain, and what serves their documents.
func node(t testing.TB) (*agents, http.Handler) {
	t.Helper()
	asha, ravi := pair(t, "asha"), pair(t, "ravi")
	updated := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	id := "eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:22"
	a := &agents{
		profiles: map[string]protocol.Profile{
			"asha": {Handle: "asha", ProfileDraft: protocol.ProfileDraft{Name: "Asha <b>", Kind: protocol.Person, Headline: "Scheduling & more"},
				UpdatedAt:  &updated,
				Identity:   &protocol.Identity{ERC8004: &id},
				Interfaces: protocol.Interfaces{Page: base + "/@asha", Profile: base + "/api/public/agents/asha"}},
			"ravi": {Handle: "ravi", ProfileDraft: protocol.ProfileDraft{Name: "Ravi Papers", Kind: protocol.Business, Description: "Hand-made paper."},
				Reputation: &protocol.Reputation{Reviews: 3},
				Interfaces: protocol.Interfaces{Page: base + "/@ravi", Profile: base + "/api/public/agents/ravi"}},
		},
		keys: map[string]AgentKey{
			asha.Thumbprint(): {Handle: "asha", Public: asha.Published()},
			ravi.Thumbprint(): {Handle: "ravi", Public: ravi.Published(), Signed: []byte("{}")},
		},
		retired: map[string]bool{pair(t, "old").Thumbprint(): true},
		node:    []key.Pair{pair(t, "node"), pair(t, "next")},
		hosted:  map[string]key.Pair{asha.Thumbprint(): asha},
		elsewhere: []string{"eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:9007199254740991",
			"eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:9007199254740992"},
	}
	u := must.Get(url.Parse(base))(t)
	w := must.Get(New(Config{Base: u, Directory: a, Keys: a, Site: &site{agents: a, size: 2, posts: 3},
		Registries: []string{"eip155:8453:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"}, Name: "First node", Description: "For tests.", Version: "1.2.3",
		Repository: "https://code.example/stoa", Contact: "mailto:security@n1.example", Policy: "https://n1.example/policy",
		RegistryKey: "ja8L6VAIuWaXJLxDXBFfAAAAAAAAAAAAAAAAAAAAAAA="}))(t)
	mux := http.NewServeMux()
	for _, r := range w.Routes() {
		if r.Method == http.MethodGet { // which is HEAD too, in this router
			mux.Handle("GET "+strings.ReplaceAll(r.Pattern, ":hash", "{hash}"), r.Handler)
		}
	}
	return a, mux
}

func get(h http.Handler, target string, fields ...string) *httptest.ResponseRecorder {
	return ask(h, http.MethodGet, target, fields...)
}

func ask(h http.Handler, method, target string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, base+target, nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	rec := httptest.NewRecorder()
	rec.Header().Set(requestID, "rid1") // as the router does
	h.ServeHTTP(rec, r)
	return rec
}

func jwks(thumbprint string) string {
	return "/.well-known/service-agents/" + thumbprint + "/jwks.json"
}

func registrationPath(thumbprint string) string {
	return "/.well-known/service-agents/" + thumbprint + "/registration.json"
}

// TestGolden compares whole answers. The clock of the bubble starts at midnight
// of 1 January 2000, and Ed25519 signatures are the same each time.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{
		"webfinger-agent":     "/.well-known/webfinger?resource=acct:asha@n1.example",
		"webfinger-board":     "/.well-known/webfinger?resource=acct:board@n1.example",
		"webfinger-node":      "/.well-known/webfinger?resource=acct:n1.example@n1.example",
		"webfinger-host":      "/.well-known/webfinger?resource=https://n1.example/",
		"webfinger-unknown":   "/.well-known/webfinger?resource=acct:nobody@n1.example",
		"webfinger-missing":   "/.well-known/webfinger",
		"host-meta":           "/.well-known/host-meta",
		"nodeinfo":            "/.well-known/nodeinfo",
		"nodeinfo-2.0":        "/nodeinfo/2.0",
		"nodeinfo-2.1":        "/nodeinfo/2.1",
		"node-keys":           "/.well-known/http-message-signatures-directory",
		"agent-keys":          jwks(pair(t, "asha").Thumbprint()),
		"agent-keys-retired":  jwks(pair(t, "old").Thumbprint()),
		"registration":        registrationPath(pair(t, "asha").Thumbprint()),
		"registration-none":   registrationPath(pair(t, "ravi").Thumbprint()),
		"agent-registration":  "/.well-known/agent-registration.json",
		"api-catalog":         "/.well-known/api-catalog",
		"robots":              "/robots.txt",
		"security":            "/.well-known/security.txt",
		"sitemap":             "/sitemap.xml",
		"sitemap-pages":       "/sitemap.xml?part=pages",
		"sitemap-agents":      "/sitemap.xml?agents=1",
		"sitemap-posts":       "/sitemap.xml?posts=1",
		"sitemap-absent":      "/sitemap.xml?posts=2",
		"ai-catalog":          "/.well-known/ai-catalog.json",
		"registration-gone":   registrationPath(pair(t, "old").Thumbprint()),
		"registration-absent": registrationPath("nothing"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, h := node(t)
				got := dump(get(h, target))
				file := filepath.Join("testdata", name+".http")
				if *update {
					require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				}
				require.Equal(t, string(must.Get(os.ReadFile(file))(t)), got)
			})
		})
	}
}

func dump(rec *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\n", rec.Code, http.StatusText(rec.Code))
	for _, name := range slices.Sorted(maps.Keys(rec.Header())) {
		for _, v := range rec.Header()[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	return b.String() + "\n" + strings.TrimSuffix(rec.Body.String(), "\n") + "\n"
}

// Each document can be asked for by HEAD and conditionally, from any origin.
func TestEveryDocument_Conventions(t *testing.T) {
	t.Parallel()
	_, h := node(t)
	targets := []string{
		"/.well-known/webfinger?resource=acct:asha@n1.example", "/.well-known/host-meta", "/.well-known/nodeinfo",
		"/nodeinfo/2.0", "/nodeinfo/2.1", "/.well-known/http-message-signatures-directory",
		jwks(pair(t, "asha").Thumbprint()), registrationPath(pair(t, "asha").Thumbprint()),
		"/.well-known/agent-registration.json", "/.well-known/api-catalog", "/llms.txt", "/SKILL.md", "/robots.txt", "/.well-known/security.txt",
		"/sitemap.xml", "/sitemap.xml?part=pages", "/sitemap.xml?agents=1", "/sitemap.xml?posts=1", "/.well-known/ai-catalog.json",
	}
	for _, target := range targets {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			full := get(h, target)
			require.Equal(t, http.StatusOK, full.Code)
			tag := full.Header().Get("ETag")
			require.Regexp(t, `^"[\w-]{22}"$`, tag)
			require.Contains(t, full.Header().Get("Cache-Control"), "public, max-age=")
			require.Equal(t, "*", full.Header().Get("Access-Control-Allow-Origin"))

			head := ask(h, http.MethodHead, target)
			require.Equal(t, full.Header(), head.Header())
			require.Zero(t, head.Body.Len())

			for _, condition := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
				same := get(h, target, "If-None-Match", condition)
				require.Equal(t, http.StatusNotModified, same.Code, condition)
				require.Zero(t, same.Body.Len())
				require.Equal(t, tag, same.Header().Get("ETag"))
			}
			require.Equal(t, http.StatusOK, get(h, target, "If-None-Match", `"other"`).Code)
		})
	}
}

func TestRoutes_GetAndHeadOfEachPattern(t *testing.T) {
	t.Parallel()
	a := &agents{}
	u := must.Get(url.Parse(base))(t)
	w := must.Get(New(Config{Base: u, Directory: a, Keys: a}))(t)
	methods := map[string][]string{}
	for _, r := range w.Routes() {
		methods[r.Pattern] = append(methods[r.Pattern], r.Method)
	}
	for pattern, m := range methods {
		require.Equal(t, []string{"GET", "HEAD"}, m, pattern)
	}
	require.NotContains(t, methods, "/.well-known/security.txt", "nobody to write to")
	require.Error(t, must.Err(New(Config{Base: u})))
}

func TestInternalErrorsAreNotShown(t *testing.T) {
	t.Parallel()
	a, h := node(t)
	a.broken = fmt.Errorf("table profiles is on fire")
	rec := get(h, "/.well-known/webfinger?resource=acct:asha@n1.example")
	require.Equal(t, http.StatusInternalServerError, rec.Code)
	require.NotContains(t, rec.Body.String(), "fire")
	require.Contains(t, rec.Body.String(), `"instance":"rid1"`)
	require.Equal(t, "no-store", rec.Header().Get("Cache-Control"))
}

// TestSkills: the index names the skill's address and the digest of what is there.
func TestSkills(t *testing.T) {
	_, h := node(t)
	var index struct {
		Skills []struct{ Name, Type, Description, URL, Digest string }
	}
	require.NoError(t, json.Unmarshal(get(h, skillsPath).Body.Bytes(), &index))
	require.Len(t, index.Skills, 1)
	skill := index.Skills[0]
	body := get(h, skill.URL).Body.Bytes()
	require.Equal(t, get(h, "/SKILL.md").Body.Bytes(), body)
	require.Equal(t, fmt.Sprintf("sha256:%x", sha256.Sum256(body)), skill.Digest)
	require.Contains(t, string(body), "---\nname: "+skill.Name+"\ndescription: "+skill.Description+"\n---\n")
	require.Equal(t, "v=MCPv1; k=ed25519; p=ja8L6VAIuWaXJLxDXBFfAAAAAAAAAAAAAAAAAAAAAAA=\n", get(h, protocol.RegistryAuthPath).Body.String())
}
