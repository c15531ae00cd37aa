package ucpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestUCP_Negotiation walks discovery, versions and capabilities (UCP 2026-08-25, Negotiation
// Protocol).
func TestUCP_Negotiation(t *testing.T) {
	t.Parallel()
	h := nodetest.UCPWorld(t, func(*node.Config) {})
	for _, c := range []struct {
		name, profile string
		handle        http.HandlerFunc
		status        int
		code          string // of a transport error, or of a business one
		version       string // of the capability
	}{
		{name: "current", profile: platformProfile("2026-08-25", catalogOf("2026-08-25"), ""), version: "2026-08-25"},
		{name: "older", profile: platformProfile("2026-04-08", catalogOf("2026-04-08"), ""), version: "2026-04-08"},
		{name: "current release, older capability", profile: platformProfile("2026-08-25", catalogOf("2026-04-08"), ""), version: "2026-04-08"},
		{name: "the highest of both", profile: platformProfile("2026-08-25",
			`"dev.ucp.shopping.catalog.search":[{"version":"2026-04-08"},{"version":"2026-08-25"},{"version":"2027-01-01"}]`, ""), version: "2026-08-25"},
		{name: "a future release", profile: platformProfile("2027-01-01", catalogOf("2027-01-01"), ""), status: 422, code: "version_unsupported"},
		{name: "an old release", profile: platformProfile("2026-01-23", catalogOf("2026-01-23"), ""), status: 422, code: "version_unsupported"},
		{name: "no version in common", profile: platformProfile("2026-08-25", catalogOf("2027-01-01"), ""), code: "capabilities_incompatible"},
		{name: "another capability", profile: platformProfile("2026-08-25", `"dev.ucp.shopping.checkout":[{"version":"2026-08-25"}]`, ""),
			code: "capabilities_incompatible"},
		{name: "an extension without parent", profile: platformProfile("2026-08-25",
			`"dev.ucp.shopping.catalog.search":[{"version":"2026-08-25","extends":"dev.ucp.shopping.checkout"}]`, ""), code: "capabilities_incompatible"},
		{name: "no JSON", profile: "<html>", status: 422, code: "profile_malformed"},
		{name: "no ucp", profile: `{}`, status: 422, code: "profile_malformed"},
		{name: "no services", profile: `{"ucp":{"version":"2026-08-25","payment_handlers":{}}}`, status: 422, code: "profile_malformed"},
		{name: "draft", profile: `{"ucp":{"version":"draft","services":{},"payment_handlers":{}}}`, status: 422, code: "profile_malformed"},
		{name: "repeated members", profile: `{"ucp":{},"ucp":{}}`, status: 422, code: "profile_malformed"},
		{name: "huge", profile: `{"x":"` + strings.Repeat("a", 300<<10) + `"}`, status: 422, code: "profile_malformed"},
		{name: "200 KiB", profile: `{"x":"` + strings.Repeat("a", 200<<10) + `",` + platformProfile("2026-08-25", catalogOf("2026-08-25"), "")[1:],
			version: "2026-08-25"},
		{name: "not there", handle: http.NotFound, status: 424, code: "profile_unreachable"},
		{name: "redirect", handle: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, status: 424,
			code: "profile_unreachable"},
		{name: "cut off", handle: func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, status: 424, code: "profile_unreachable"},
	} {
		p := newPlatform(t, c.profile)
		p.handle = c.handle
		for range 3 {
			a := ucp(h, "/catalog/search", `{"query":"idli"}`, "UCP-Agent", p.agent("/.well-known/ucp"))
			if c.status != 0 {
				require.Equal(t, c.status, a.answer.Code, "%s: %s", c.name, a.answer.Body)
				require.Equal(t, c.code, a.Code, c.name)
				require.Contains(t, a.answer.Body.String(), `"continue_url"`)
				continue
			}
			require.Equal(t, 200, a.answer.Code, "%s: %s", c.name, a.answer.Body)
			if c.code != "" {
				require.Equal(t, c.code, a.Messages[0].Code, c.name)
				continue
			}
			require.Equal(t, []string{"Idli"}, a.titles(), c.name)
			require.Equal(t, c.version, a.UCP.Capabilities["dev.ucp.shopping.catalog.search"][0].Version, c.name)
			require.Len(t, a.UCP.Capabilities, 1, "only what is relevant to the answer")
		}
		require.Equal(t, 1, p.requests(), "%s: fetched once", c.name)
	}
	for _, field := range []string{`profile=1`, `"x"`, `other="https://a.example/"`, `profile="ftp://a.example/"`, `profile="http://a.example/"`,
		`profile="https://"`,
		`profile="https://u:p@a.example/"`, `profile="https://a.example/#x"`, `profile="https://a.example/` + strings.Repeat("a", 600) + `"`, `===`} {
		a := ucp(h, "/catalog/search", `{"query":"idli"}`, "UCP-Agent", field)
		require.Equal(t, 400, a.answer.Code, field)
		require.Equal(t, "invalid_profile_url", a.Code, field)
	}

	blocked := nodetest.New(t)
	require.NoError(t, blocked.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		return tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "127.0.0.1", Policy: storage.PolicyReject})
	}))
	a := ucp(blocked, "/catalog/search", `{"query":"idli"}`, "UCP-Agent", newPlatform(t, "").agent("/"))
	require.Equal(t, 403, a.answer.Code, "%s", a.answer.Body)
	require.Equal(t, "profile_not_trusted", a.Code)

	strict := nodetest.New(t, func(c *node.Config) { c.UCPStrict = true })
	require.Equal(t, "invalid_profile_url", ucp(strict, "/catalog/search", `{"query":"idli"}`).Code)
	good := newPlatform(t, platformProfile("2026-08-25", catalogOf("2026-08-25"), ""))
	require.Equal(t, 200, ucp(strict, "/catalog/search", `{"query":"idli"}`, "UCP-Agent", good.agent("/")).answer.Code)

	public := nodetest.New(t, func(c *node.Config) { c.Dev, c.BaseURL = false, "https://node.example" })
	for _, address := range []string{"https://127.0.0.1/x", "https://[::1]/x", "https://10.1.2.3/x", "https://169.254.169.254/latest", "https://localhost/x"} {
		a := ucp(public, "/catalog/search", `{"query":"idli"}`, "UCP-Agent", `profile="`+address+`"`)
		require.Equal(t, 400, a.answer.Code, "%s: %s", address, a.answer.Body)
		require.Equal(t, "invalid_profile_url", a.Code, address)
	}
}

// A slow profile is fetched in the background; meanwhile the platform is told when to come again.
func TestUCP_SlowProfile(t *testing.T) {
	t.Parallel()
	h := nodetest.UCPWorld(t, func(*node.Config) {})
	p := newPlatform(t, "")
	asked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p.handle = func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(asked) })
		<-release
		w.Write([]byte(platformProfile("2026-08-25", catalogOf("2026-08-25"), "")))
	}
	a := ucp(h, "/catalog/search", `{"query":"idli"}`, "UCP-Agent", p.agent("/"))
	require.Equal(t, 503, a.answer.Code)
	require.NotEmpty(t, a.answer.Header().Get("Retry-After"))
	<-asked
	close(release)
	for a.answer.Code == 503 {
		a = ucp(h, "/catalog/search", `{"query":"idli"}`, "UCP-Agent", p.agent("/"))
	}
	require.Equal(t, []string{"Idli"}, a.titles())
	require.Equal(t, 1, p.requests())

	// The fetches have a budget, whoever names the profiles: 50, then ten a second.
	fetched, begin := 0, time.Now()
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	for i := range 80 {
		if ucp(h, "/catalog/search", `{"query":"idli"}`, "UCP-Agent", fmt.Sprintf(`profile="%s/%d"`, gone.URL, i)).Code != "discovery_busy" {
			fetched++
		}
	}
	require.LessOrEqual(t, float64(fetched), 51+10*time.Since(begin).Seconds())
}

// A ucpSigner signs requests as a platform.
type ucpSigner struct {
	h    *nodetest.House
	site *platformSite
}

// send signs a search and sends it. change may alter the request before it is signed, after after.
func (s ucpSigner) send(pair key.Pair, change func(*http.Request, *httpsig.SignOptions), after func(*http.Request)) ucpAnswer {
	s.h.T.Helper()
	body := []byte(`{"query":"idli"}`)
	r := httptest.NewRequest("POST", s.h.Base+protocol.UCPSearchPath, bytes.NewReader(body))
	r.RequestURI = protocol.UCPSearchPath
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("UCP-Agent", s.site.agent("/.well-known/ucp"))
	r.Header.Set("Idempotency-Key", "k-1")
	o := httpsig.SignOptions{Key: pair.Signer(), Tag: "-", Nonce: "-", TTL: -1,
		Components: []string{"@method", "@authority", "@path", "ucp-agent", "idempotency-key", "content-digest", "content-type"}}
	if change != nil {
		change(r, &o)
	}
	require.NoError(s.h.T, httpsig.SignRequest(r, must.Get(httpsig.ParseTarget(s.h.Base))(s.h.T), body, o))
	if after != nil {
		after(r)
	}
	w := httptest.NewRecorder()
	s.h.Handler().ServeHTTP(w, r)
	return judge(s.h, "/catalog/search", nodetest.Answer{ResponseRecorder: w, T: s.h.T})
}

func TestUCP_Signatures(t *testing.T) {
	t.Parallel()
	h := nodetest.UCPWorld(t, func(*node.Config) {})
	ed := must.Get(key.GenerateEd25519())(t)
	ec := must.Get(key.GenerateP256())(t)
	foreign := must.Get(key.GenerateEd25519())(t)
	jwk := func(p key.Pair, id string) string {
		raw := must.Get(key.MarshalPublic(p.Published()))(t)
		m := must.JSON[map[string]any](raw)(t)
		if id != "" {
			m["kid"] = id
		}
		raw = must.Get(json.Marshal(m))(t)
		return string(raw)
	}
	unusable := `{"kid":"odd","kty":"OKP","crv":"X25519","x":"AAAA"},` + strings.Replace(jwk(ec, "signing-only"), "{", `{"key_ops":["sign"],`, 1)
	s := ucpSigner{h, newPlatform(t, platformProfile("2026-08-25", catalogOf("2026-08-25"),
		strings.Join([]string{jwk(ed, ""), jwk(ec, ""), jwk(ec, "platform-2026"), unusable}, ",")))}
	without := func(name string) func(*http.Request, *httpsig.SignOptions) {
		return func(_ *http.Request, o *httpsig.SignOptions) {
			for i, c := range o.Components {
				if c == name {
					o.Components = append(o.Components[:i:i], o.Components[i+1:]...)
					return
				}
			}
		}
	}
	dual := func(r *http.Request, o *httpsig.SignOptions) {
		r.Header.Set("Signature-Agent", `sig1="`+s.site.URL+`/.well-known/ucp";type=jwks_uri`)
		o.Components = append(o.Components, `signature-agent;key="sig1"`)
		o.Tag, o.TTL, o.Nonce = httpsig.TagWebBotAuth, 0, ""
	}
	named := func(id string) func(*http.Request, *httpsig.SignOptions) {
		return func(_ *http.Request, o *httpsig.SignOptions) { o.KeyID = id }
	}
	for _, c := range []struct {
		name   string
		pair   key.Pair
		change func(*http.Request, *httpsig.SignOptions)
		after  func(*http.Request)
		status int
		code   string
	}{
		{"Ed25519", ed, nil, nil, 200, ""},
		{"ES256", ec, nil, nil, 200, ""},
		{"a kid of the platform's own", ec, named("platform-2026"), nil, 200, ""},
		{"dual audience", ed, dual, nil, 200, ""},
		{"dual audience names the key by its thumbprint", ec,
			func(r *http.Request, o *httpsig.SignOptions) { dual(r, o); o.KeyID = "platform-2026" }, nil, 401, "signature_invalid"},
		{"unknown key", foreign, nil, nil, 401, "key_not_found"},
		{"another key's kid", foreign, named(ed.Thumbprint()), nil, 401, "signature_invalid"},
		{"a kind of key that nothing verifies", ed, named("odd"), nil, 400, "algorithm_unsupported"},
		{"a key for other operations", ec, named("signing-only"), nil, 401, "key_not_found"},
		{"changed after signing", ed, nil, func(r *http.Request) { r.Header.Set("Idempotency-Key", "k-2") }, 401, "signature_invalid"},
		{"the body changed", ed, nil, func(r *http.Request) {
			r.Body = http.NoBody
			body := `{"query":"shirt"}`
			r.Body, r.ContentLength = struct {
				*strings.Reader
				nopClose
			}{strings.NewReader(body), nopClose{}}, int64(len(body))
		}, 400, "digest_mismatch"},
		{"only half", ed, nil, func(r *http.Request) { r.Header.Del("Signature-Input") }, 401, "signature_missing"},
		// Such a signature is skipped: the request counts as unsigned, which is enough for a read.
		{"without ucp-agent", foreign, without("ucp-agent"), nil, 200, ""},
		{"without idempotency-key", foreign, without("idempotency-key"), nil, 200, ""},
		{"without digest", foreign, without("content-digest"), nil, 200, ""},
		{"without path", foreign, without("@path"), nil, 200, ""},
		{"bare Web Bot Auth", foreign,
			func(r *http.Request, o *httpsig.SignOptions) {
				dual(r, o)
				o.Components = []string{"@authority", `signature-agent;key="sig1"`}
			}, nil, 200, ""},
		{"another tag", foreign, func(_ *http.Request, o *httpsig.SignOptions) { o.Tag = "other" }, nil, 200, ""},
	} {
		a := s.send(c.pair, c.change, c.after)
		require.Equal(t, c.status, a.answer.Code, "%s: %s", c.name, a.answer.Body)
		require.Equal(t, c.code, a.Code, c.name)
		if c.status == 401 && c.code != "signature_missing" {
			require.NotEmpty(t, a.answer.Header().Get("Signature-Error"), c.name)
		}
	}
	require.Equal(t, 1, s.site.requests(), "an unknown kid within a minute fetches nothing again")
}

type nopClose struct{}

func (nopClose) Close() error { return nil }

// TestUCP_MCP calls the tools of the MCP binding.
func TestUCP_MCP(t *testing.T) {
	t.Parallel()
	h := nodetest.UCPWorld(t, func(*node.Config) {})
	var list struct {
		Tools []struct {
			Name                      string
			InputSchema, OutputSchema json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(h.RPCAt(protocol.UCPMCPPath, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Result, &list))
	require.Len(t, list.Tools, 15)
	outputs, inputs := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, tool := range list.Tools {
		inputs[tool.Name], outputs[tool.Name] = tool.InputSchema, tool.OutputSchema
	}
	call := func(name, args string, headers ...string) nodetest.RPCAnswer {
		nodetest.Valid(t, nodetest.Compile(t, inputs[name], ""), []byte(args))
		return h.RPCAt(protocol.UCPMCPPath, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, args), headers...)
	}
	path := map[string]string{"search_catalog": "/catalog/search", "lookup_catalog": "/catalog/lookup", "get_product": "/catalog/product",
		"search_locations": "/locations/search", "lookup_locations": "/locations/lookup"}
	good := func(name, args string) ucpAnswer {
		a := call(name, args)
		require.Nil(t, a.Error, "%s", a.Body)
		var result struct {
			Content    []struct{ Type, Text string }
			Structured json.RawMessage `json:"structuredContent"`
		}
		require.NoError(t, json.Unmarshal(a.Result, &result))
		require.JSONEq(t, string(result.Structured), result.Content[0].Text)
		nodetest.Valid(t, nodetest.Compile(t, outputs[name], ""), result.Structured)
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", "application/json")
		w.Write(result.Structured)
		return judge(h, path[name], nodetest.Answer{ResponseRecorder: w, T: t})
	}
	p := newPlatform(t, platformProfile("2026-04-08", catalogOf("2026-04-08"), ""))
	meta := `"meta":{"ucp-agent":{"profile":"` + p.URL + `/"}}`
	found := good("search_catalog", `{"catalog":{"query":"shirt"}}`)
	require.Equal(t, []string{"Cotton shirt"}, found.titles())
	require.Equal(t, "2026-04-08", good("search_catalog", `{`+meta+`,"catalog":{"query":"shirt"}}`).UCP.Version)
	id := found.Products[0].ID
	require.Len(t, good("lookup_catalog", `{"catalog":{"ids":["`+id+`"]}}`).Products, 1)
	require.Equal(t, id, good("get_product", `{"catalog":{"id":"`+id+`"}}`).Product.ID)
	require.Equal(t, "not_found", good("get_product", `{"catalog":{"id":"x"}}`).Messages[0].Code)
	for _, c := range []struct{ name, request, has string }{
		{"search_locations", `{"query":"rao"}`, `"id":"rao"`},
		{"search_locations", `{"filters":{"stoa.city":"Bengaluru"},"pagination":{"limit":1}}`, `"has_next_page"`},
		{"search_locations", `{"distance":{"center":{"latitude":12.97,"longitude":77.6},"max":50000}}`, `"id":"rao"`},
		{"lookup_locations", `{"ids":["@Rao","nobody"]}`, `"inputs":[{"id":"@Rao"}]`},
	} {
		over := good(c.name, `{"location":`+c.request+`}`).answer.Body.String()
		require.Contains(t, over, c.has)
		require.JSONEq(t, ucp(h, path[c.name], c.request).answer.Body.String(), over, "REST and MCP give the same")
	}
	require.Equal(t, "error", good("search_locations", `{`+meta+`,"location":{}}`).UCP.Status, "the older release has no locations")

	gone := newPlatform(t, "")
	gone.handle = http.NotFound
	for _, c := range []struct {
		name, args string
		status     int
		rpc        int
		code       string
	}{
		{"search_catalog", `{"meta":{"ucp-agent":{"profile":"` + gone.URL + `"}},"catalog":{"query":"x"}}`, 424, -32001, "profile_unreachable"},
		{"search_catalog", `{"meta":{"ucp-agent":{"profile":"ftp://x"}},"catalog":{"query":"x"}}`, 400, -32001, "invalid_profile_url"},
		{"search_catalog", `{"catalog":{}}`, 400, -32602, "invalid_request"},
		{"search_locations", `{"location":{"serves":{}}}`, 400, -32602, "invalid_request"},
		{"search_catalog", `{"catalog":{"query":"x","filters":{"price":{"min":1e3}},"context":{"currency":"INR"}}}`, 400, -32602, "invalid_request"},
	} {
		a := call(c.name, c.args)
		require.Equal(t, c.status, a.Answer.Code, "%s: %s", c.args, a.Body)
		require.NotNil(t, a.Error, "%s", a.Body)
		require.Equal(t, c.rpc, a.Error.Code, c.args)
		require.Contains(t, a.Body.String(), `"code":"`+c.code+`"`)
	}
	a := h.RPCAt(protocol.UCPMCPPath, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_catalog","arguments":{}}}`)
	require.Equal(t, -32602, a.Error.Code)
	a = h.ModernAt(protocol.UCPMCPPath, "tools/call", `"name":"search_catalog","arguments":{"catalog":{"query":"idli"}}`, "Mcp-Name", "search_catalog")
	require.Nil(t, a.Error, "%s", a.Body)
}
