package ucpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestUCP_Profile reads the business profiles as a platform does (UCP 2026-08-25, Hosting).
func TestUCP_Profile(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for release, path := range map[string]string{"2026-08-25": protocol.UCPProfilePath, "2026-04-08": protocol.UCPProfilePath + "/2026-04-08"} {
		a := h.Ask("GET", path, "").Is(200)
		require.Equal(t, "application/json", a.Header().Get("Content-Type"))
		require.Equal(t, "public, max-age=300", a.Header().Get("Cache-Control"))
		require.Equal(t, "*", a.Header().Get("Access-Control-Allow-Origin"))
		require.Equal(t, 304, h.Ask("GET", path, "", "If-None-Match", a.Header().Get("ETag")).Code)
		var p struct {
			UCP     protocol.UCPMeta
			Keys    []json.RawMessage
			Signing []json.RawMessage `json:"signing_keys"`
		}
		a.Into(&p)
		require.Equal(t, release, p.UCP.Version)
		whole := nodetest.As[map[string]json.RawMessage](a)
		ucpValid(t, release, "ucp.json#/$defs/business_schema", whole["ucp"])
		if release != "2026-08-25" {
			require.Empty(t, p.UCP.Supported, "an older profile stands by itself")
			require.NotEmpty(t, p.Signing)
			require.Empty(t, p.Keys)
			continue
		}
		ucpValid(t, release, "profile.json#/$defs/business_schema", a.Body.Bytes())
		require.Equal(t, h.Base+protocol.UCPProfilePath+"/2026-04-08", p.UCP.Supported["2026-04-08"])
		set, err := key.ParseSet(a.Body.Bytes())
		require.NoError(t, err, "the profile is a JWK Set")
		require.Zero(t, set.Ignored)
		own := must.Get(key.ParseSet(h.Ask("GET", "/.well-known/http-message-signatures-directory", "").Body.Bytes()))(t)
		require.Equal(t, own.Keys, set.Keys, "of the same keys as the key directory")
	}
	for _, at := range []string{"/.well-known/api-catalog", "/llms.txt", "/SKILL.md", "/api/public/site-map"} {
		require.Contains(t, h.Ask("GET", at, "").Body.String(), protocol.UCPProfilePath, at)
	}
}

func TestUCP_Search(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.UCPWorld(t, change)
		for _, c := range []struct {
			name, query, body string
			want              []string
			message           string
		}{
			{"words", "", `{"query":"masala"}`, []string{"Masala tea"}, ""},
			{"misspelled", "", `{"query":"masla tee"}`, []string{"Masala tea"}, "$.query"},
			{"nothing", "", `{"query":"aeroplane"}`, []string{}, "$.query"},
			{"an unlisted shop is not found", "", `{"query":"hidden"}`, []string{}, ""},
			{"a price on request is no product", "", `{"query":"feast"}`, []string{}, ""},
			{"category", "", `{"filters":{"categories":["Breakfast","Drinks"]}}`, []string{"Masala tea", "Idli"}, ""},
			{"price", "", `{"context":{"currency":"INR"},"filters":{"price":{"min":2000,"max":4050}}}`, []string{"Masala tea", "Idli"}, ""},
			{"price of a variant", "", `{"context":{"currency":"INR"},"filters":{"price":{"min":95000}}}`, []string{"Cotton shirt"}, ""},
			{"other currency", "", `{"context":{"currency":"USD"},"filters":{"price":{"min":1}}}`, []string{"Kettle"}, ""},
			{"price without currency", "", `{"query":"idli","filters":{"price":{"max":1}}}`, []string{"Idli"}, "$.filters.price"},
			{"unknown filter", "", `{"query":"idli","filters":{"com.example.colour":["red"]}}`, []string{"Idli"}, "$.filters"},
			{"availability", "", `{"filters":{"stoa.availability":["preorder"]}}`, []string{"Ghee"}, ""},
			{"merchant", "", `{"filters":{"stoa.merchant":["@Chai"]}}`, []string{"Masala tea", "Kettle"}, ""},
			{"merchant and words", "", `{"query":"tea","filters":{"stoa.merchant":["chai","rao"]}}`, []string{"Masala tea"}, ""},
			{"merchant in the address", "?merchant=chai", `{}`, []string{"Masala tea", "Kettle"}, ""},
			{"both merchants", "?merchant=chai", `{"filters":{"stoa.merchant":["rao"]}}`, []string{}, ""},
			{"unknown merchant", "?merchant=nobody", `{}`, []string{}, ""},
			{"unlisted merchant by name", "?merchant=secret", `{}`, []string{"Hidden tea"}, ""},
			{"unknown members are ignored", "", `{"query":"idli","signals":{"dev.ucp.buyer_ip":"192.0.2.1"},"attribution":{"x":1},"q":1}`, []string{"Idli"}, ""},
		} {
			a := ucp(h, "/catalog/search"+c.query, c.body)
			require.Equal(t, 200, a.answer.Code, "%s: %s", c.name, a.answer.Body)
			got := a.titles()
			slices.Sort(got)
			slices.Sort(c.want)
			require.Equal(t, c.want, got, c.name)
			if c.message == "" {
				require.True(t, len(c.want) == 0 || len(a.Messages) == 0, c.name)
			} else {
				require.Equal(t, c.message, a.Messages[0].Path, c.name)
			}
		}
		shirt := ucp(h, "/catalog/search", `{"query":"shirt"}`)
		p := shirt.Products[0]
		require.Equal(t, ucpPrice{90000, "INR"}, p.PriceRange.Min)
		require.Equal(t, ucpPrice{100000, "INR"}, p.PriceRange.Max)
		require.True(t, strings.HasPrefix(p.URL, h.Base+"/@rao#item_"), p.URL)
		require.Len(t, p.Variants, 3)
		require.Equal(t, "Rao Tiffins", p.Variants[0].Seller.Name)
		require.Equal(t, "dev.ucp.shopping.policy.return", shirt.Policies[0]["type"])
		require.Equal(t, []any{"$.products[0]"}, shirt.Policies[0]["applies_to"])
		says := shirt.Policies[0]["description"].(map[string]any)["plain"]
		require.Contains(t, says, "within 7 days")
		require.Contains(t, says, "message of the kind support")
		require.Contains(t, says, "up to ₹500; more goes to the owner")

		// The form of the catalog link of a business profile.
		a := judge(h, "/catalog/search", h.Ask("GET", protocol.UCPSearchPath+"?merchant=rao&category=Clothes&min=1&max=100000", ""))
		require.Equal(t, []string{"Cotton shirt"}, a.titles())
		require.Len(t, judge(h, "/catalog/search", h.Ask("GET", protocol.UCPSearchPath, "")).Products, 5)

		old := newPlatform(t, platformProfile("2026-04-08", catalogOf("2026-04-08"), ""))
		a = ucp(h, "/catalog/search", `{"query":"shirt"}`, "UCP-Agent", old.agent("/"))
		require.Equal(t, "2026-04-08", a.UCP.Version)
		require.Empty(t, a.Policies, "they came later")
		require.Contains(t, a.answer.Body.String(), `"refund_policy"`)
	})
}

// A walk by the cursor neither skips nor repeats a product that stays, while others are added.
func TestUCP_CursorUnderInserts(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		token := h.Business("shop", "")
		put := func(from, to int) {
			var items []string
			for i := from; i < to; i++ {
				items = append(items, fmt.Sprintf(`{"sku":"s%d","name":"Cup %d","price":{"currency":"INR","amount":%d},"category":"Cups"}`, i, i, 1+i))
			}
			h.Ask("PUT", "/api/owner/merchant", `{"items":[`+strings.Join(items, ",")+`]}`, "Authorization", "Bearer "+token).Is(200)
		}
		for _, ask := range []string{`"query":"cup"`, `"filters":{"categories":["cups"]}`, `"filters":{"stoa.merchant":["shop"]}`} {
			put(0, 30)
			seen := map[string]int{}
			cursor, pages := "", 0
			for {
				a := ucp(h, "/catalog/search", fmt.Sprintf(`{%s,"pagination":{"limit":7%s}}`, ask, cursor))
				for _, p := range a.Products {
					seen[p.Title]++
				}
				put(0, 31+2*pages)
				if pages++; !a.Pagination.More {
					break
				}
				require.Less(t, pages, 20)
				cursor = `,"cursor":"` + a.Pagination.Cursor + `"`
			}
			for i := range 30 {
				require.Equal(t, 1, seen[fmt.Sprintf("Cup %d", i)], "%s: Cup %d", ask, i)
			}
		}
	})
}

func TestUCP_Lookup(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.UCPWorld(t, change)
		shirt := ucp(h, "/catalog/search", `{"query":"shirt"}`).Products[0]
		tea := idOf(h, "Masala tea")
		second := shirt.Variants[1].ID
		a := ucp(h, "/catalog/lookup", `{"ids":`+asJSON(shirt.ID, second, shirt.ID, tea, "item_01kd0c5z6eegrsm6nav3rqxywh", "nonsense")+`}`)
		require.ElementsMatch(t, []string{"Cotton shirt", "Masala tea"}, a.titles(), "each product once")
		for _, p := range a.Products {
			if p.ID != shirt.ID {
				continue
			}
			require.Len(t, p.Variants, 2)
			require.Equal(t, []struct{ ID, Match string }{{shirt.ID, "featured"}}, p.Variants[0].Inputs)
			require.Equal(t, []struct{ ID, Match string }{{second, "exact"}}, p.Variants[1].Inputs)
			require.Equal(t, ucpPrice{100000, "INR"}, p.PriceRange.Max, "of the product")
		}
		require.Len(t, a.Messages, 2)
		require.Equal(t, "not_found", a.Messages[0].Code)

		a = ucp(h, "/catalog/lookup", `{"ids":`+asJSON(shirt.ID, tea)+`,"context":{"currency":"INR"},"filters":{"price":{"min":95000}}}`)
		require.Equal(t, []string{"Cotton shirt"}, a.titles())
		require.Equal(t, "m-blue", a.Products[0].Variants[0].SKU, "filters narrow the variants")
		require.Empty(t, ucp(h, "/catalog/lookup", `{"ids":["none"]}`).Products)

		many := make([]string, 101)
		for i := range many {
			many[i] = fmt.Sprint("id-", i)
		}
		a = ucp(h, "/catalog/lookup", `{"ids":`+asJSON(many...)+`}`)
		require.Equal(t, 400, a.answer.Code)
		require.Equal(t, "request_too_large", a.Code)
		require.Equal(t, 400, ucp(h, "/catalog/lookup", `{"ids":[]}`).answer.Code)
	})
}

func TestUCP_Product(t *testing.T) {
	t.Parallel()
	h := nodetest.UCPWorld(t, func(*node.Config) {})
	shirt := ucp(h, "/catalog/search", `{"query":"shirt"}`).Products[0]
	chosen := func(labels ...string) (list []protocol.SelectedOption) {
		for i := 0; i < len(labels); i += 2 {
			list = append(list, protocol.SelectedOption{Name: labels[i], Label: labels[i+1]})
		}
		return list
	}
	for _, c := range []struct {
		name, body string
		selected   []protocol.SelectedOption
		skus       []string
	}{
		{"default", fmt.Sprintf(`{"id":%q}`, shirt.ID), chosen("Size", "S", "Colour", "Red"), []string{"s-red"}},
		{"partial", fmt.Sprintf(`{"id":%q,"selected":[{"name":"Colour","label":"Red"}]}`, shirt.ID), chosen("Colour", "Red"), []string{"s-red", "m-red"}},
		{"none has both: the last preference goes first", fmt.Sprintf(`{"id":%q,"selected":[{"name":"Size","label":"S"},{"name":"Colour","label":"Blue"}],
			"preferences":["Colour","Size"]}`, shirt.ID), chosen("Colour", "Blue"), []string{"m-blue"}},
		{"the other order", fmt.Sprintf(`{"id":%q,"selected":[{"name":"Size","label":"S"},{"name":"Colour","label":"Blue"}],
			"preferences":["Size","Colour"]}`, shirt.ID), chosen("Size", "S"), []string{"s-red"}},
		{"no preferences", fmt.Sprintf(`{"id":%q,"selected":[{"name":"Size","label":"S"},{"name":"Colour","label":"Blue"}]}`, shirt.ID),
			chosen("Size", "S"), []string{"s-red"}},
		{"an unknown label", fmt.Sprintf(`{"id":%q,"selected":[{"name":"Size","label":"XL"}]}`, shirt.ID), nil, []string{"s-red", "m-red", "m-blue"}},
		{"a variant decides", fmt.Sprintf(`{"id":%q,"selected":[{"name":"Size","label":"S"}]}`, shirt.Variants[2].ID),
			chosen("Size", "M", "Colour", "Blue"), []string{"m-blue"}},
	} {
		a := ucp(h, "/catalog/product", c.body)
		require.Equal(t, 200, a.answer.Code, "%s: %s", c.name, a.answer.Body)
		require.ElementsMatch(t, c.selected, a.Product.Selected, c.name)
		var skus []string
		for _, v := range a.Product.Variants {
			skus = append(skus, v.SKU)
		}
		require.Equal(t, c.skus, skus, c.name)
	}
	a := ucp(h, "/catalog/product", fmt.Sprintf(`{"id":%q,"selected":[{"name":"Size","label":"M"}]}`, shirt.ID))
	signals := map[string][2]bool{}
	for _, o := range a.Product.Options {
		for _, v := range o.Values {
			signals[v.Label] = [2]bool{*v.Exists, *v.Available}
		}
	}
	require.Equal(t, map[string][2]bool{"S": {true, true}, "M": {true, true}, "Red": {true, false}, "Blue": {true, true}}, signals)
	require.Equal(t, []any{"$.product"}, a.Policies[0]["applies_to"])

	for _, id := range []string{"item_01kd0c5z6eegrsm6nav3rqxywh", "x", "var_01kd0c5z6eegrsm6nav3rqxywh"} {
		a := ucp(h, "/catalog/product", fmt.Sprintf(`{"id":%q}`, id))
		require.Equal(t, 200, a.answer.Code)
		require.Equal(t, "error", a.UCP.Status)
		require.Equal(t, "not_found", a.Messages[0].Code)
	}
	require.Equal(t, 400, ucp(h, "/catalog/product",
		fmt.Sprintf(`{"id":%q,"selected":[{"name":"Size","label":"S"},{"name":"Size","label":"M"}]}`, shirt.ID)).answer.Code)
}

// Requests that cannot be served are refused with UCP's body, and nothing breaks.
func TestUCP_Refusals(t *testing.T) {
	t.Parallel()
	h := nodetest.UCPWorld(t, func(*node.Config) {})
	for _, c := range []struct {
		path, body string
		status     int
		code       string
	}{
		{"/catalog/search", `{}`, 400, "invalid_request"},
		{"/catalog/search", `{"query":"  "}`, 400, "invalid_request"},
		{"/catalog/search", `{"query":1}`, 400, "invalid_request"},
		{"/catalog/search", `{"query":"a","query":"b"}`, 400, "invalid_request"},
		{"/catalog/search", `{"query":"a"`, 400, "invalid_request"},
		{"/catalog/search", `[]`, 400, "invalid_request"},
		{"/catalog/search", strings.Repeat(`{"filters":`, 40) + `1` + strings.Repeat(`}`, 40), 400, "invalid_request"},
		{"/catalog/search", `{"context":{"currency":"INR"},"filters":{"price":{"min":1.5}}}`, 400, "invalid_request"},
		{"/catalog/search", `{"context":{"currency":"INR"},"filters":{"price":{"min":5e3}}}`, 400, "invalid_request"},
		{"/catalog/search", `{"context":{"currency":"INR"},"filters":{"price":{"max":100.0}}}`, 400, "invalid_request"},
		{"/catalog/search", `{"context":{"currency":"INR"},"filters":{"price":{"max":-1}}}`, 400, "invalid_request"},
		{"/catalog/search", `{"context":{"currency":"INR"},"filters":{"price":{"max":"100"}}}`, 400, "invalid_request"},
		{"/catalog/search", `{"query":"a","pagination":{"limit":0}}`, 400, "invalid_request"},
		{"/catalog/search", `{"query":"a","pagination":{"cursor":"x"}}`, 400, "invalid_cursor"},
		{"/catalog/search", `{"query":"a","filters":[]}`, 400, "invalid_request"},
		{"/catalog/search", `{"filters":{"stoa.availability":["soon"]}}`, 400, "invalid_request"},
		{"/catalog/search?shop=rao", `{"query":"a"}`, 400, "invalid_request"},
		{"/catalog/search", `{"query":"` + strings.Repeat("a", 70_000) + `"}`, 413, "request_too_large"},
		{"/catalog/lookup", `{}`, 400, "invalid_request"},
		{"/catalog/lookup", `{"ids":"x"}`, 400, "invalid_request"},
		{"/catalog/product", `{}`, 400, "invalid_request"},
		{"/locations/search", `{"serves":{"point":{"latitude":1,"longitude":2}}}`, 400, "invalid_request"},
		{"/locations/search", `{"distance":{"max":10}}`, 400, "invalid_request"},
		{"/locations/search", `{"distance":{"center":{"latitude":91,"longitude":2},"max":10}}`, 400, "invalid_request"},
		{"/locations/search", `{"filters":{"hours":{"open_at":"today"}}}`, 400, "invalid_request"},
		{"/locations/lookup", `{"ids":[]}`, 400, "invalid_request"},
	} {
		a := ucp(h, c.path, c.body)
		require.Equal(t, c.status, a.answer.Code, "%s %.80s: %s", c.path, c.body, a.answer.Body)
		require.Equal(t, c.code, a.Code, "%s %.80s", c.path, c.body)
	}
	require.Equal(t, 415, judge(h, "", h.Ask("POST", protocol.UCPSearchPath, `{"query":"a"}`, "Content-Type", "text/plain")).answer.Code)
	require.Equal(t, http.StatusMethodNotAllowed, h.Ask("DELETE", protocol.UCPSearchPath, "").Code)
	limited := nodetest.New(t, func(c *node.Config) { c.Dev, c.ReadRate, c.BaseURL = false, 0.001, "https://node.example" })
	for range 10 {
		a := limited.Ask("POST", protocol.UCPSearchPath, `{"query":"a"}`)
		if a.Code == 429 {
			require.Equal(t, "rate_limited", judge(limited, "", a).Code)
			require.NotEmpty(t, a.Header().Get("Retry-After"))
			return
		}
	}
	require.Fail(t, "the limit was never reached")
}

func TestUCP_Locations(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.UCPWorld(t, change)
		idli, tea := idOf(h, "Idli"), idOf(h, "Masala tea")
		const at = `{"filters":{"hours":{"open_at":%q}}}`
		for _, c := range []struct {
			name, body string
			want       []string
		}{
			{"browse", `{}`, []string{"chai", "rao"}},
			{"words", `{"query":"Mysuru"}`, []string{"chai"}},
			{"near", `{"distance":{"center":{"latitude":12.97,"longitude":77.59},"max":1000}}`, []string{"rao"}},
			{"128 km apart", `{"distance":{"center":{"latitude":12.9716,"longitude":77.5946},"max":130000}}`, []string{"chai", "rao"}},
			{"at the place itself", `{"distance":{"center":{"latitude":12.9716,"longitude":77.5946},"max":0}}`, []string{"rao"}},
			{"monday, the whole day", fmt.Sprintf(at, "2026-11-16T23:59:30+05:30"), []string{"rao"}},
			{"the same instant elsewhere", fmt.Sprintf(at, "2026-11-16T18:29:30Z"), []string{"rao"}},
			{"tuesday morning", fmt.Sprintf(at, "2026-11-17T09:00:00+05:30"), []string{}},
			{"tuesday night", fmt.Sprintf(at, "2026-11-17T23:59:59+05:30"), []string{"rao"}},
			{"after midnight", fmt.Sprintf(at, "2026-11-18T00:00:00+05:30"), []string{}},
			{"a holiday", fmt.Sprintf(at, "2026-11-09T12:00:00+05:30"), []string{}},
			{"an item in stock", `{"filters":{"inventory":[{"id":"` + idli + `"}]}}`, []string{"rao"}},
			{"no place has both", `{"filters":{"inventory":[{"id":"` + idli + `"},{"id":"` + tea + `"}]}}`, []string{}},
			{"amenities", `{"filters":{"amenities":["dev.ucp.amenity.wi_fi"]}}`, []string{}},
			{"city", `{"filters":{"stoa.city":"Bangalore"}}`, []string{"rao"}},
		} {
			a := ucp(h, "/locations/search", c.body)
			require.Equal(t, 200, a.answer.Code, "%s: %s", c.name, a.answer.Body)
			got := []string{}
			for _, l := range a.Locations {
				got = append(got, l.ID)
			}
			slices.Sort(got)
			require.Equal(t, c.want, got, c.name)
		}
		a := ucp(h, "/locations/lookup", `{"ids":["rao","@Rao","nobody","secret","rao"]}`)
		require.Len(t, a.Locations, 2)
		for _, l := range a.Locations {
			if l.ID == "rao" {
				require.Equal(t, []struct{ ID string }{{"rao"}, {"@Rao"}}, l.Inputs)
				require.Equal(t, "23:59", l.Hours[0]["closes"])
				require.Equal(t, "00:00", l.Hours[1]["closes"])
			}
		}
		many := make([]string, 60)
		for i := range many {
			many[i] = fmt.Sprint("id", i)
		}
		a = ucp(h, "/locations/lookup", `{"ids":`+asJSON(many...)+`}`)
		require.Equal(t, "batch_limit_applied", a.Messages[0].Code)
		require.Contains(t, a.Messages[0].Content, "50")
		require.Contains(t, a.Messages[0].Content, "10 were not")

		old := newPlatform(t, platformProfile("2026-04-08", catalogOf("2026-04-08"), ""))
		a = ucp(h, "/locations/search", `{}`, "UCP-Agent", old.agent("/"))
		require.Equal(t, "capabilities_incompatible", a.Messages[0].Code)
	})
}

// TestUCP_LocationsElsewhere: a shop of another node follows those of this one, with its node and its own pages, and is looked up
// by its ActivityPub id.
func TestUCP_LocationsElsewhere(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.UCPWorld(t, change)
		const actor = "https://n2.example/ap/agents/mehta"
		put := func(actor string, record protocol.MerchantDraft) {
			require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				_, err := tx.RemoteAgents().Put(ctx, storage.RemoteAgent{Actor: actor, Host: "n2.example", Summary: protocol.AgentSummary{
					Profile: protocol.ProfileDraft{Handle: "mehta", Name: "Mehta & Sons", Kind: protocol.Business}, Shop: &protocol.ShopSummary{Record: record}}})
				return err
			}))
		}
		put(actor, protocol.MerchantDraft{City: "Pune", Geo: &protocol.Geo{Latitude: 18.52, Longitude: 73.86}})
		put(actor+"2", protocol.MerchantDraft{}) // does not say where it is
		var ids []string
		for body := `{"pagination":{"limit":1}}`; body != ""; {
			a := ucp(h, "/locations/search", body)
			require.Equal(t, 200, a.answer.Code, "%s", a.answer.Body)
			for _, l := range a.Locations {
				ids = append(ids, l.ID)
			}
			if body = ""; a.Pagination.Cursor != "" {
				body = `{"pagination":{"limit":1,"cursor":"` + a.Pagination.Cursor + `"}}`
			}
		}
		require.Equal(t, actor, ids[len(ids)-1])
		require.Len(t, ids, 3)
		for body, want := range map[string]int{`{"query":"mehta"}`: 1, `{"distance":{"center":{"latitude":18.5,"longitude":73.8},"max":20000}}`: 1,
			`{"distance":{"center":{"latitude":18.5,"longitude":73.8},"max":2000}}`: 0, `{"filters":{"stoa.city":"Pune"}}`: 1} {
			require.Len(t, ucp(h, "/locations/search", body).Locations, want, body)
		}
		a := ucp(h, "/locations/lookup", `{"ids":["`+actor+`","https://n3.example/ap/agents/mehta","rao"]}`)
		require.Len(t, a.Locations, 2)
		require.Contains(t, a.answer.Body.String(), `"url":"https://n2.example/@mehta"`)
		require.Contains(t, a.answer.Body.String(), `"node":"n2.example"`)
		require.Empty(t, ucp(h, "/locations/lookup", `{"ids":["`+actor+`"],"filters":{"inventory":[{"id":"`+idOf(h, "Idli")+`"}]}}`).Locations)
	})
}

// TestUCP_SameRows: what a shop sells is found at every door.
func TestUCP_SameRows(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.UCPWorld(t, change)
		items := nodetest.As[protocol.Page[protocol.CatalogEntry]](h.Ask("GET", "/api/public/items?q=kettle", ""))
		require.Len(t, items.Items, 1)
		id := items.Items[0].ID
		require.Equal(t, id, ucp(h, "/catalog/search", `{"query":"kettle"}`).Products[0].ID)
		require.Equal(t, id, ucp(h, "/catalog/lookup", `{"ids":["`+items.Items[0].Variants[0].ID+`"]}`).Products[0].ID)
		require.Contains(t, string(h.Tool("list_items", `{"q":"kettle"}`).Structured), id)
		require.Contains(t, h.Ask("GET", "/api/public/merchants/chai", "").Body.String(), id)
		require.Contains(t, h.Ask("GET", "/@chai", "", "Accept", "text/html").Body.String(), id)
		require.Equal(t, []string{"chai"}, nodetest.Handles(h.ARDSearch(`{"query":{"text":"kettle"},"federation":"none"}`)))
		shops := nodetest.As[protocol.Page[protocol.MerchantEntry]](h.Ask("GET", "/api/public/merchants?q=kettle", ""))
		require.Len(t, shops.Items, 1)
		require.Equal(t, "chai", shops.Items[0].Handle)

		// Shops by distance in metres, by prices in rupees and by returns.
		for _, c := range []struct{ query, input, want string }{
			{"near=12.97,77.59&radius=1000", `{"near":"12.97,77.59","radius":1000}`, "rao"},
			{"near=12.9716,77.5946&radius=130000&acceptsReturns=true", `{"near":"12.9716,77.5946","radius":130000,"acceptsReturns":true}`, "rao"},
			{"near=12.3,76.64&maxPrice=20", `{"near":"12.3,76.64","maxPrice":"20"}`, "chai"},
			{"minPrice=950&maxPrice=1000", `{"minPrice":950,"maxPrice":"1000.00"}`, "rao"},
			{"minPrice=20&currency=USD", `{"minPrice":20,"currency":"USD"}`, "chai"},
		} {
			found := nodetest.As[protocol.Page[protocol.MerchantEntry]](h.Ask("GET", "/api/public/merchants?"+c.query, ""))
			require.Len(t, found.Items, 1, c.query)
			require.Equal(t, c.want, found.Items[0].Handle, c.query)
			require.Equal(t, strings.HasPrefix(c.query, "near"), found.Items[0].Distance != nil, c.query)
			rows := fmt.Sprintf(`"items":[{"handle":%q`, c.want)
			require.Contains(t, string(h.Tool("list_merchants", c.input).Structured), rows)
			page := h.Ask("GET", "/merchants?"+c.query, "", "Accept", "text/html").Body.String()
			require.Equal(t, 1, strings.Count(page, `<article class="card">`), c.query)
			require.Contains(t, page, `href="/@`+c.want+`"`)
		}
		page := h.Ask("GET", "/merchants?near=12.97,%2077.59&radius=300000", "", "Accept", "text/html", "Accept-Language", "hi").Body.String()
		require.Contains(t, page, "530 मी दूर")
		require.Contains(t, page, "127 किमी दूर")
		require.Contains(t, page, `<option value="300000" selected>300 किमी</option>`)
		sameEverywhere(t, h)
	})
}
