package ucpapi_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// A ucpMaker makes requests of UCP at random: mostly right, sometimes with a wrong value.
type ucpMaker struct {
	r   *rand.Rand
	ids []string
}

func (m ucpMaker) one(list ...any) any { return list[m.r.IntN(len(list))] }

func (m ucpMaker) maybe(o map[string]any, name string, value func() any) {
	switch m.r.IntN(12) {
	case 0: // a value of another type
		o[name] = m.one(nil, true, 1.5, -1, "x", []any{1, "x"}, map[string]any{"a": []any{}}, strings.Repeat("é", 500))
	case 1, 2, 3, 4, 5:
		o[name] = value()
	}
}

func (m ucpMaker) id() any { return m.ids[m.r.IntN(len(m.ids))] }

func (m ucpMaker) some(n int, value func() any) any {
	list := make([]any, m.r.IntN(n+1))
	for i := range list {
		list[i] = value()
	}
	return list
}

func (m ucpMaker) filters() any {
	f := map[string]any{}
	m.maybe(f, "categories", func() any { return m.some(3, func() any { return m.one("Clothes", "Drinks", "breakfast", "", "x") }) })
	m.maybe(f, "price", func() any {
		p := map[string]any{}
		m.maybe(p, "min", func() any { return m.r.IntN(100_000) })
		m.maybe(p, "max", func() any { return m.r.Int64N(1 << 53) })
		return p
	})
	m.maybe(f, "stoa.merchant", func() any { return m.some(3, func() any { return m.one("rao", "@Chai", "secret", "nobody", "../x") }) })
	m.maybe(f, "stoa.availability", func() any { return m.some(2, func() any { return m.one("in_stock", "out_of_stock", "preorder") }) })
	m.maybe(f, "com.example.x", func() any { return "y" })
	return f
}

func (m ucpMaker) request(path string) map[string]any {
	o := map[string]any{}
	m.maybe(o, "context", func() any {
		return map[string]any{"currency": m.one("INR", "USD", "XXX1", ""), "address_country": "IN", "intent": "a gift"}
	})
	m.maybe(o, "signals", func() any { return map[string]any{"dev.ucp.buyer_ip": "192.0.2.1"} })
	page := func() any {
		p := map[string]any{}
		m.maybe(p, "limit", func() any { return m.one(1, 2, 100, 1000) })
		m.maybe(p, "cursor", func() any { return m.one("", "x", "aXRlbXMAdTI") })
		return p
	}
	switch path {
	case "/catalog/search":
		m.maybe(o, "query", func() any { return m.one("shirt", "masala tea", "idli -dosa", `"x`, "चाय", "tag:vegan", "a") })
		m.maybe(o, "filters", m.filters)
		m.maybe(o, "pagination", page)
	case "/catalog/lookup":
		o["ids"] = m.some(12, m.id)
		m.maybe(o, "filters", m.filters)
	case "/catalog/product":
		o["id"] = m.id()
		m.maybe(o, "filters", m.filters)
		choice := func() any {
			return map[string]any{"name": m.one("Size", "Colour", "Age"), "label": m.one("S", "M", "Red", "Blue")}
		}
		m.maybe(o, "selected", func() any { return m.some(3, choice) })
		m.maybe(o, "preferences", func() any { return m.some(3, func() any { return m.one("Size", "Colour", "x") }) })
	default:
		if path == "/locations/lookup" {
			o["ids"] = m.some(5, func() any { return m.one("rao", "@chai", "secret", "none", "é") })
		} else {
			m.maybe(o, "query", func() any { return m.one("restaurant", "near me: tea", `-"`, "Mysuru") })
			m.maybe(o, "pagination", page)
		}
		m.maybe(o, "distance", func() any {
			return map[string]any{"center": map[string]any{"latitude": m.r.Float64()*200 - 100, "longitude": m.r.Float64()*360 - 180}, "max": m.r.Float64() * 3e7}
		})
		m.maybe(o, "filters", func() any {
			f := map[string]any{}
			m.maybe(f, "hours", func() any {
				return map[string]any{"open_at": m.one("2026-11-16T10:00:00+05:30", "2026-11-16", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")}
			})
			m.maybe(f, "inventory", func() any { return m.some(3, func() any { return map[string]any{"id": m.id()} }) })
			m.maybe(f, "amenities", func() any { return []any{"dev.ucp.amenity.wi_fi"} })
			return f
		})
	}
	return o
}

// TestUCP_Random sends requests at random in both releases. Every answer and error fits the schemas,
// and no request is an internal error.
func TestUCP_Random(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.UCPWorld(t, change)
		m := ucpMaker{r: rand.New(rand.NewPCG(7, 11)), ids: []string{"", "x", "item_", "var_01kd0c5z6eegrsm6nav3rqxywh"}}
		for _, shop := range []string{"rao", "chai", "secret"} {
			for _, p := range ucp(h, "/catalog/search?merchant="+shop, `{}`).Products {
				m.ids = append(m.ids, p.ID)
				for _, v := range p.Variants {
					m.ids = append(m.ids, v.ID)
				}
			}
		}
		agents := []string{""}
		for _, release := range protocol.UCPVersions {
			agents = append(agents, newPlatform(t, platformProfile(release, catalogOf(release)+
				`,"dev.ucp.common.location.search":[{"version":"2026-08-25"}],"dev.ucp.common.location.lookup":[{"version":"2026-08-25"}]`, "")).agent("/"))
		}
		good := map[string]int{}
		for i := range 1500 {
			path := []string{"/catalog/search", "/catalog/lookup", "/catalog/product", "/locations/search", "/locations/lookup"}[i%5]
			body := must.Get(json.Marshal(m.request(path)))(t)
			var headers []string
			if agent := agents[m.r.IntN(len(agents))]; agent != "" {
				headers = []string{"UCP-Agent", agent}
			}
			a := ucp(h, path, string(body), headers...)
			require.Less(t, a.answer.Code, 500, "%s %s: %s", path, body, a.answer.Body)
			if a.answer.Code == 200 && a.UCP.Status == "" {
				good[path+" "+a.UCP.Version]++
			}
		}
		for path := range ucpAnswers {
			require.Positive(t, good[path+" 2026-08-25"], path)
			require.Equal(t, strings.HasPrefix(path, "/catalog"), good[path+" 2026-04-08"] > 0, path)
		}
	})
}

// TestUCP_Examples checks the examples of the fact sheets' protocol and of the texts of this project.
func TestUCP_Examples(t *testing.T) {
	t.Parallel()
	raw := must.Get(os.ReadFile("testdata/examples.json"))(t)
	var examples []struct {
		Schema   string
		Releases []string
		Valid    bool
		Example  json.RawMessage
	}
	require.NoError(t, json.Unmarshal(raw, &examples))
	require.NotEmpty(t, examples)
	for _, e := range examples {
		for _, release := range e.Releases {
			s := must.Get(ucpSchemas()(release, e.Schema))(t)
			v := must.JSON[any](e.Example)(t)
			require.Equal(t, e.Valid, s.Validate(v) == nil, "%s %s %s", release, e.Schema, e.Example)
		}
	}
	h := nodetest.UCPWorld(t, func(*node.Config) {})
	found := regexp.MustCompile("`POST (/api/ucp/catalog/search)` with `([^`]*)`").FindAllStringSubmatch(h.Ask("GET", "/SKILL.md", "").Body.String(), -1)
	require.NotEmpty(t, found)
	for _, f := range found {
		for release := range ucpFiles {
			ucpValid(t, release, "shopping/catalog_search.json#/$defs/search_request", []byte(f[2]))
		}
		require.Equal(t, 200, ucp(h, "/catalog/search", f[2]).answer.Code, f[2])
	}
	// The arguments of the tools are requests too: what the schemas of the tools name is in UCP's.
	for _, release := range slices.Sorted(slices.Values(protocol.UCPVersions)) {
		ucpValid(t, release, "shopping/catalog_search.json#/$defs/search_request", []byte(`{"query":"x","filters":{"stoa.merchant":["rao"]}}`))
	}
}
