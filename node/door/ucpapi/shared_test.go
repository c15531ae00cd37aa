package ucpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// ucpFiles are the schemas of the releases of UCP.
var ucpFiles = map[string]string{"2026-08-25": "schemas-2026-08-25-precut.json", "2026-04-08": "schemas-2026-04-08.json"}

// ucpSchemas compiles the stored schemas once; a schema is named by release and by its address below
// https://ucp.dev/schemas/.
var ucpSchemas = sync.OnceValue(func() func(release, at string) (*jsonschema.Schema, error) {
	compilers, compiled := map[string]*jsonschema.Compiler{}, map[string]*jsonschema.Schema{}
	for release, file := range ucpFiles {
		raw, err := os.ReadFile("testdata/" + file)
		if err != nil {
			panic(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			panic(err)
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		for id, s := range doc.(map[string]any)["schemas"].(map[string]any) {
			if err := c.AddResource(id, s); err != nil {
				panic(err)
			}
		}
		compilers[release] = c
	}
	var mu sync.Mutex
	return func(release, at string) (*jsonschema.Schema, error) {
		mu.Lock()
		defer mu.Unlock()
		if s := compiled[release+at]; s != nil {
			return s, nil
		}
		s, err := compilers[release].Compile("https://ucp.dev/schemas/" + at)
		compiled[release+at] = s
		return s, err
	}
})

// ucpValid checks a document against a schema of one release.
func ucpValid(t testing.TB, release, at string, raw []byte) {
	t.Helper()
	s := must.Get(ucpSchemas()(release, at))(t)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err, "%s", raw)
	require.NoError(t, s.Validate(v), "%s\n%s", release+" "+at, raw)
}

// Schemas of the answers and requests of UCP's paths.
var ucpAnswers = map[string]string{
	"/catalog/search":   "shopping/catalog_search.json#/$defs/search_response",
	"/catalog/lookup":   "shopping/catalog_lookup.json#/$defs/lookup_response",
	"/catalog/product":  "shopping/catalog_lookup.json#/$defs/get_product_response",
	"/locations/search": "common/location_search.json#/$defs/search_response",
	"/locations/lookup": "common/location_lookup.json#/$defs/lookup_response",
}

// ucpErrors is the schema of the business error of a release.
var ucpErrors = map[string]string{"2026-08-25": "common/types/error_response.json", "2026-04-08": "shopping/types/error_response.json"}

// A ucpAnswer is an answer of UCP.
type ucpAnswer struct {
	Code      string // of a transport error
	Content   string
	UCP       protocol.UCPMeta
	Products  []ucpProduct
	Product   ucpProduct
	Locations []struct {
		ID     string
		Inputs []struct{ ID string }
		Hours  []map[string]string
	}
	Pagination *struct {
		Cursor string
		More   bool `json:"has_next_page"`
	}
	Messages  []struct{ Type, Code, Path, Content string }
	Policies  []map[string]any
	Untrusted bool `json:"untrusted_content"`

	answer nodetest.Answer
}

type ucpPrice struct {
	Amount   int64
	Currency string
}

type ucpProduct struct {
	ID, Title  string
	URL        string
	PriceRange struct{ Min, Max ucpPrice } `json:"price_range"`
	Selected   []protocol.SelectedOption
	Options    []struct {
		Name   string
		Values []struct {
			Label             string
			Available, Exists *bool
		}
	}
	Variants []struct {
		ID, SKU string
		Price   ucpPrice
		Options []protocol.SelectedOption
		Inputs  []struct{ ID, Match string }
		Seller  struct {
			Name  string
			Links []struct{ Type, URL string }
		}
	}
}

func (a ucpAnswer) titles() []string {
	list := []string{}
	for _, p := range a.Products {
		list = append(list, p.Title)
	}
	return list
}

// judge checks an answer of a path by the schemas of its release, a catalog answer also by those of the
// other.
func judge(h *nodetest.House, path string, a nodetest.Answer) (got ucpAnswer) {
	h.T.Helper()
	require.Equal(h.T, "application/json", a.Header().Get("Content-Type"), "%s", a.Body)
	a.Into(&got)
	got.answer = a
	if a.Code != 200 {
		require.Regexp(h.T, `^[a-z_]+$`, got.Code, "%s", a.Body)
		require.NotEmpty(h.T, got.Content)
		return got
	}
	path, _, _ = strings.Cut(path, "?")
	if got.UCP.Status == "error" {
		ucpValid(h.T, got.UCP.Version, ucpErrors[got.UCP.Version], a.Body.Bytes())
		return got
	}
	require.True(h.T, got.Untrusted)
	for release := range ucpFiles {
		if release == got.UCP.Version || strings.HasPrefix(path, "/catalog") && got.UCP.Version == "2026-08-25" {
			ucpValid(h.T, release, ucpAnswers[path], a.Body.Bytes())
		}
	}
	return got
}

// ucp sends a request to a path below /api/ucp.
func ucp(h *nodetest.House, path, body string, headers ...string) ucpAnswer {
	h.T.Helper()
	return judge(h, path, h.Ask("POST", protocol.UCPPath+path, body, headers...))
}

// platformProfile is the profile of a platform in a release, with these capabilities and keys.
func platformProfile(version, capabilities, keys string) string {
	return fmt.Sprintf(`{"ucp":{"version":%q,"services":{},"payment_handlers":{},"capabilities":{%s}},"keys":[%s]}`, version, capabilities, keys)
}

// catalogOf are the catalog capabilities in a version.
func catalogOf(version string) string {
	return fmt.Sprintf(`"dev.ucp.shopping.catalog.search":[{"version":%[1]q}],"dev.ucp.shopping.catalog.lookup":[{"version":%[1]q}]`, version)
}

// A platformSite serves a platform's profile.
type platformSite struct {
	*httptest.Server
	mu      sync.Mutex
	profile string
	handle  http.HandlerFunc // in place of the profile
	asked   int
}

func newPlatform(t testing.TB, profile string) *platformSite {
	p := &platformSite{profile: profile}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked++
		handle, profile := p.handle, p.profile
		p.mu.Unlock()
		if handle != nil {
			handle(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(profile))
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *platformSite) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// agent is the value of UCP-Agent for a path of the platform.
func (p *platformSite) agent(path string) string { return `profile="` + p.URL + path + `"` }

// idOf is the id of an item by its name.
func idOf(h *nodetest.House, name string) string {
	h.T.Helper()
	for _, m := range []string{"rao", "chai", "secret"} {
		for _, p := range ucp(h, "/catalog/search?merchant="+m, `{}`).Products {
			if p.Title == name {
				return p.ID
			}
		}
	}
	require.Fail(h.T, "there is no "+name)
	return ""
}

func asJSON(list ...string) string {
	raw, _ := json.Marshal(list)
	return string(raw)
}
