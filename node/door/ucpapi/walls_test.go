package ucpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestCheck_Profile: what may be the address of a platform's profile.
func TestCheck_Profile(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][2]bool{ // on a public node, in development
		"https://a.example/.well-known/ucp": {true, true}, "https://a.example": {true, true}, "https://a.example/?q=1": {true, true},
		"http://127.0.0.1:8080/x": {false, true}, "http://localhost/x": {false, true}, "http://a.example/": {}, "ftp://a.example/": {}, "a.example": {},
		"https:a.example": {}, "https://": {}, "https:///x": {}, "https://user@a.example/": {}, "https://user:secret@a.example/": {}, "https://@a.example/": {},
		"http://user@127.0.0.1/": {}, "https://a.example/#x": {}, "https://a.example/%zz": {}, "": {},
		"https://a.example/" + strings.Repeat("a", maxProfileURL): {},
	} {
		for i, ok := range want {
			u, f := (&platforms{loopback: i == 1}).check(address)
			require.Equal(t, ok, f == nil, "%s: %v", address, f)
			if require.Equal(t, ok, u != nil, address); !ok {
				require.Equal(t, "invalid_profile_url", f.code, address)
			}
		}
	}
}

// TestPasses: prices are compared within their currency.
func TestPasses(t *testing.T) {
	t.Parallel()
	cup := variant{Price: price{Amount: 100, Currency: "INR"}, Availability: availability{Status: protocol.InStock}}
	for body, want := range map[string]bool{
		`{}`: true, `{"filters":{}}`: true,
		`{"context":{"currency":"INR"},"filters":{"price":{"min":100,"max":100}}}`: true,
		`{"context":{"currency":"INR"},"filters":{"price":{"min":101}}}`:           false,
		`{"context":{"currency":"INR"},"filters":{"price":{"max":99}}}`:            false,
		`{"context":{"currency":"USD"},"filters":{"price":{"min":100,"max":100}}}`: false,
		`{"context":{"currency":"USD"},"filters":{"price":{"min":0}}}`:             false,
		`{"context":{"currency":"JPY"},"filters":{"price":{"max":100000}}}`:        false,
		`{"filters":{"price":{"max":1}}}`:                                          true, // without a currency it is ignored
		`{"filters":{"stoa.availability":["in_stock"]}}`:                           true,
		`{"filters":{"stoa.availability":["preorder"]}}`:                           false,
	} {
		in, f := parse([]byte(body))
		require.Nil(t, f, body)
		got := (&exchange{}).readFilters(in)
		require.Nil(t, *in.fault, body)
		require.Equal(t, want, got.passes(cup), body)
	}
}

// TestVerify: which keys of a platform's profile verify, and that a digest holds also where no signature covers it.
func TestVerify(t *testing.T) {
	t.Parallel()
	pair := must.Get(key.GenerateP256())(t)
	raw := must.Get(key.MarshalPublic(pair.Published()))(t)
	keyed := func(members string) *platform {
		jwk := must.JSON[map[string]any](raw)(t)
		require.NoError(t, json.Unmarshal([]byte(members), &jwk))
		list := must.Get(json.Marshal([]any{jwk}))(t)
		o := newObject(map[string]json.RawMessage{"keys": list})
		return &platform{url: "https://a.example/", keys: readKeys(o, "keys")}
	}
	target := must.Get(httpsig.ParseTarget("https://n1.example"))(t)
	api := &API{target: target, platforms: newPlatforms(Config{Client: &http.Client{Transport: nowhere{}}})}
	t.Cleanup(api.Close)
	covered := []string{"@method", "@authority", "@path", "ucp-agent", "content-digest", "content-type"}
	sent := func(p *platform, components []string, body, received string) string {
		r := httptest.NewRequest("POST", "https://n1.example"+protocol.UCPSearchPath, bytes.NewReader([]byte(body)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("UCP-Agent", `profile="https://a.example/"`)
		o := httpsig.SignOptions{Key: pair.Signer(), Tag: "-", Nonce: "-", TTL: -1, Components: components}
		require.NoError(t, httpsig.SignRequest(r, target, []byte(body), o))
		require.NotEmpty(t, r.Header.Get("Content-Digest"))
		_, err := (&exchange{API: api}).verify(r, p, []byte(received))
		if err == nil {
			return ""
		}
		return err.(*fault).code
	}
	const body, unknown = `{"query":"idli"}`, "key_not_found"
	for members, want := range map[string]string{
		`{}`: "", `{"use":"sig"}`: "", `{"key_ops":["verify"]}`: "", `{"use":"sig","key_ops":["sign","verify"]}`: "",
		`{"use":"enc"}`: unknown, `{"use":"other"}`: unknown, `{"key_ops":["sign"]}`: unknown, `{"key_ops":[]}`: unknown, `{"key_ops":"verify"}`: unknown,
		`{"use":"enc","key_ops":["verify"]}`: unknown,
	} {
		require.Equal(t, want, sent(keyed(members), covered, body, body), members)
	}
	p := keyed("{}")
	for _, components := range [][]string{covered, {"@method", "@authority", "@path", "ucp-agent", "content-type"}, {"@authority"}} {
		require.Empty(t, sent(p, components, body, body), fmt.Sprint(components))
		require.Equal(t, "digest_mismatch", sent(p, components, body, `{"query":"dosa"}`), fmt.Sprint(components))
	}
}

// nowhere is a network without hosts.
type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed }
