package directory

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol/must"
)

func TestKeysOf_OneBadKeyAmongGoodOnes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		good, enc, named, private, wrongAlg := newPair(t), newPair(t), newPair(t), newPair(t), newPair(t)
		entry := func(p key.Pair, from, to string) string {
			b := must.Get(key.MarshalPublic(p.Published()))(t)
			require.Contains(t, string(b), from)
			return strings.Replace(string(b), from, to, 1)
		}
		weak := `{"kty":"OKP","crv":"Ed25519","x":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}` // the identity point
		set := `{"keys":[` + strings.Join([]string{
			`{"kty":"post-quantum"}`, `null`, `7`, weak, `{"kty":"oct","k":"AAAA"}`,
			entry(private, `"kty"`, `"d":"AAAA","kty"`),
			entry(enc, `"use":"sig"`, `"use":"enc"`),
			entry(named, named.Thumbprint(), "my-key"),
			entry(wrongAlg, `"use"`, `"alg":"HS256","use"`),
			entry(good, `"use"`, `"alg":"EdDSA","use"`),
		}, ",") + `]}`
		w := newWeb(t)
		w.put(wellKnownOf("a.example"), answer(directoryMedia, set))
		w.put("https://a.example/jwks", answer(jsonMedia, set))
		c := run(t, Config{Client: w.client(t)})
		here, elsewhere := origin("a.example"), jwks("https://a.example/jwks")
		fetched(t, c, here, good)
		fetched(t, c, elsewhere, good)
		unknown(t, c, here, private, httpsig.CodeKeyUnknown, refetchEvery)
		unknown(t, c, here, enc, httpsig.CodeKeyMalformed, refetchEvery)
		unknown(t, c, here, wrongAlg, httpsig.CodeAlgorithmUnsupported, refetchEvery)
		unknown(t, c, here, named, httpsig.CodeKeyMalformed, refetchEvery)
		known(t, c, elsewhere, named) // kid is bound to the thumbprint at the well-known path only
		require.ErrorIs(t, must.Err(c.Lookup(here, key.Thumbprint(ed25519.PublicKey("\x01"+strings.Repeat("\x00", 31))), time.Now())), httpsig.CodeKeyUnknown)
	})
}

func TestKeysOf_SixteenKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var pairs []key.Pair
		for range MaxKeys + 1 {
			pairs = append(pairs, newPair(t))
		}
		w := newWeb(t)
		w.put(wellKnownOf("a.example"), answer(directoryMedia, setOf(t, pairs...)))
		c := run(t, Config{Client: w.client(t)})
		fetched(t, c, origin("a.example"), pairs[0])
		known(t, c, origin("a.example"), pairs[MaxKeys-1])
		unknown(t, c, origin("a.example"), pairs[MaxKeys], httpsig.CodeKeyUnknown, refetchEvery)
	})
}

func TestKeysOf_Algorithms(t *testing.T) {
	t.Parallel()
	rsa := must.Get(key.GenerateRSA(2048))(t)
	p256 := must.Get(key.GenerateP256())(t)
	raw := must.Get(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	p384 := must.Get(key.NewPair(raw))(t)
	for _, tc := range []struct {
		pair key.Pair
		alg  string
		want httpsig.Algorithm // "": refused
	}{
		{rsa, "", httpsig.RSAPSSSHA512}, {rsa, "PS512", httpsig.RSAPSSSHA512}, {rsa, "RS256", httpsig.RSAv15SHA256},
		{rsa, "ES256", ""}, {rsa, "PS256", ""},
		{p256, "", httpsig.ECDSAP256SHA256}, {p256, "ES256", httpsig.ECDSAP256SHA256}, {p256, "ES384", ""},
		{p384, "ES384", httpsig.ECDSAP384SHA384},
		{newPair(t), "Ed25519", httpsig.Ed25519}, {newPair(t), "none", ""},
	} {
		pub := tc.pair.Published()
		b := must.Get(key.MarshalPublic(pub))(t)
		if tc.alg != "" {
			b = []byte(strings.Replace(string(b), `"use"`, `"alg":"`+tc.alg+`","use"`, 1))
		}
		f, failure := keysOf(&document{header: http.Header{}}, []byte(`{"keys":[`+string(b)+`]}`), source{url: "https://a.example"}, time.Now())
		require.Nil(t, failure)
		got := f.keys[pub.Thumbprint]
		if tc.want == "" {
			require.NotNil(t, got.refused, tc.alg)
			require.JSONEq(t, `{"keys":[]}`, string(f.set))
			continue
		}
		require.Nil(t, got.refused, tc.alg)
		require.Equal(t, tc.want, got.key.Algorithm())
		c := must.Get(New(Config{Client: http.DefaultClient}))(t)
		_, again := c.kept(Record{Name: "https://a.example/", Set: f.set, FetchedAt: time.Now(), Expires: time.Now()}, time.Now())
		require.Equal(t, tc.want, again.keys[pub.Thumbprint].key.Algorithm(), "after a restart")
	}
}

func TestProve(t *testing.T) {
	bubble(t, func(t *testing.T) {
		good, wrong, silent, old := newPair(t), newPair(t), newPair(t), newPair(t)
		body := setOf(t, good, wrong, silent, old)
		related := &httpsig.Message{Method: "GET", RawPath: httpsig.DirectoryPath, Target: httpsig.NewTarget("https", "a.example")}
		h := http.Header{}
		sign := func(p key.Pair, o httpsig.SignOptions) {
			o.Key = p.Signer()
			if o.Created.IsZero() {
				o.Created = time.Now()
			}
			require.NoError(t, httpsig.SignResponse(h, 200, related, []byte(body), o))
		}
		sign(good, httpsig.SignOptions{Label: "binding0"})
		sign(newPair(t), httpsig.SignOptions{Label: "binding1", KeyID: wrong.Thumbprint()}) // someone else, in its name
		sign(silent, httpsig.SignOptions{Label: "binding2", Components: []string{"@authority;req"}})
		sign(old, httpsig.SignOptions{Label: "binding3", Created: time.Now().Add(-8 * 24 * time.Hour)})
		var fields []string
		for name, lines := range h {
			fields = append(fields, name, strings.Join(lines, ", "))
		}
		w := newWeb(t)
		w.put(wellKnownOf("a.example"), answer(directoryMedia, body, fields...))
		w.put(wellKnownOf("mirror.example"), answer(directoryMedia, body, fields...))
		w.put("https://a.example/changed", answer(directoryMedia, body+" ", fields...))
		c := run(t, Config{Client: w.client(t)})
		fetched(t, c, origin("a.example"), good)
		unknown(t, c, origin("a.example"), wrong, httpsig.CodeSignatureInvalid, refetchEvery)
		known(t, c, origin("a.example"), silent) // older clients cover no digest: no proof, but not a wrong one
		unknown(t, c, origin("a.example"), old, httpsig.CodeExpired, refetchEvery)

		// A copy at another authority proves nothing about that authority.
		fetched(t, c, origin("mirror.example"), silent)
		unknown(t, c, origin("mirror.example"), good, httpsig.CodeSignatureInvalid, refetchEvery)
		fetched(t, c, jwks("https://a.example/changed"), silent)
		unknown(t, c, jwks("https://a.example/changed"), good, httpsig.CodeDigestMismatch, refetchEvery)
	})
}

func TestParseCard_Vectors(t *testing.T) {
	t.Parallel()
	raw := must.Get(os.ReadFile("../httpsig/testdata/web-bot-auth-agent-and-cards.json"))(t)
	var file struct {
		Cards []struct {
			Name, URL string
			Valid     bool
			Card      json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	require.NotEmpty(t, file.Cards)
	for _, v := range file.Cards {
		_, f := parseCard(v.Card, v.URL)
		require.Equal(t, v.Valid, f == nil, v.Name)
	}
}

func FuzzParseCard(f *testing.F) {
	const url = "https://a.example/me"
	f.Add([]byte(`{"client_id":"` + url + `","jwks_uri":"https://a.example/jwks"}`))
	f.Add([]byte(`{"client_id":"` + url +
		`","jwks":{"keys":[{"kty":"OKP","crv":"Ed25519","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","use":"sig","nbf":1e9,"exp":2e9}]}}`))
	f.Add([]byte(`{"client_id":null,"jwks":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, failure := parseCard(body, url)
		if failure != nil {
			require.ErrorIs(t, failure, httpsig.CodeDirectoryMalformed)
			return
		}
		require.NotEqual(t, got.uri == "", got.set == nil, "exactly one of both")
		doc := &document{header: http.Header{}, body: body}
		if got.uri != "" {
			if src, bad := newSource(got.uri, false, false); bad == nil {
				again, bad := newSource(src.url, false, false)
				require.Nil(t, bad)
				require.Equal(t, src, again, "normal form is stable")
			}
			return
		}
		set, failure := keysOf(doc, got.set, source{url: url}, time.Unix(1.5e9, 0))
		if failure != nil {
			return
		}
		require.LessOrEqual(t, len(set.keys), MaxKeys)
		kept := must.Get(key.ParseSet(set.set))(t)
		require.Zero(t, kept.Ignored)
		for _, k := range kept.Keys {
			require.NotNil(t, set.keys[k.Thumbprint].key)
		}
	})
}
