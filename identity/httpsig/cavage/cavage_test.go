package cavage

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	gofed "github.com/go-fed/httpsig"
	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol/must"
)

type file struct {
	Keys map[string]struct {
		JWK json.RawMessage `json:"jwk"`
		PEM string          `json:"public_pem"`
	} `json:"keys"`
	Cases []struct {
		Name, Key, KeyID, Expect, Reason, Spec string
		Base                                   string `json:"signing_string"`
		Now, Clock                             int64
		Request                                struct {
			Method  string
			URI     string `json:"target_uri"`
			Headers [][2]string
			Body    *string
		}
	} `json:"cases"`
}

func read(t testing.TB, name string, cases int) file {
	t.Helper()
	b := must.Get(os.ReadFile("testdata/" + name))(t)
	f := must.JSON[file](b)(t)
	require.Len(t, f.Cases, cases)
	return f
}

func (f file) public(t testing.TB, id string) crypto.PublicKey {
	t.Helper()
	k := f.Keys[id]
	if k.PEM != "" {
		block, _ := pem.Decode([]byte(k.PEM))
		return must.Get(x509.ParsePKIXPublicKey(block.Bytes))(t)
	}
	pair := must.Get(key.ParsePair(k.JWK))(t)
	return pair.Public()
}

func (f file) message(t testing.TB, i int) (*httpsig.Message, []byte) {
	t.Helper()
	r := f.Cases[i].Request
	target := must.Get(httpsig.ParseTarget(r.URI))(t)
	req := must.Get(http.NewRequest(r.Method, r.URI, nil))(t)
	for _, h := range r.Headers {
		req.Header.Add(h[0], h[1])
	}
	m := must.Get(httpsig.FromRequest(req, target))(t)
	if r.Body == nil {
		return &m, nil
	}
	return &m, []byte(*r.Body)
}

type resolver func(keyID string) (Resolved, error)

func (f resolver) Resolve(_ context.Context, keyID string) (Resolved, error) { return f(keyID) }

func one(keyID string, pub crypto.PublicKey) Resolver {
	return resolver(func(id string) (Resolved, error) {
		if id != keyID {
			return Resolved{}, httpsig.CodeKeyUnknown
		}
		return Resolved{Key: pub, Principal: "actor"}, nil
	})
}

func TestVectors_Cavage(t *testing.T) {
	t.Parallel()
	f := read(t, "cavage.json", 20)
	for i, c := range f.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			m, body := f.message(t, i)
			pub := f.public(t, c.Key)
			v := &Verifier{Keys: one(c.KeyID, pub), AllowTestKeys: true, Now: func() time.Time { return time.Unix(c.Now, 0) }}
			res, err := v.Verify(t.Context(), m, body)
			switch {
			case strings.HasPrefix(c.Name, "draft-12-"):
				// "cryptographic check only": a 1024-bit key and too little coverage.
				require.Error(t, err)
				text, _ := field(m.Header)
				s, e := parse(text)
				require.Nil(t, e)
				base, e := s.base(m, true)
				require.Nil(t, e)
				require.Equal(t, c.Base, string(base))
				require.True(t, verify(pub, s.algorithm, base, s.signature))
			case c.Expect == "valid":
				require.NoError(t, err)
				require.Equal(t, c.KeyID, res.KeyID)
				require.Equal(t, "actor", res.Principal)
				require.Equal(t, c.Name == "get-without-query-in-request-target", res.QueryIgnored)
				require.Contains(t, res.Headers, "host")
				require.NotZero(t, res.ReplayKey)
				v.AllowTestKeys = false
				_, err = v.Verify(t.Context(), m, body)
				require.ErrorIs(t, err, httpsig.CodeTestKeyRefused)
			default:
				var e *httpsig.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, c.Reason, string(e.Code))
			}
		})
	}
}

func TestVectors_FedifyCavage(t *testing.T) {
	t.Parallel()
	f := read(t, "fediverse.json", 4)
	verified := 0
	for i, c := range f.Cases {
		m, body := f.message(t, i)
		v := &Verifier{Keys: one(c.KeyID, f.public(t, c.Key)), AllowTestKeys: true, Now: func() time.Time { return time.Unix(c.Clock, 0) }}
		res, err := v.Verify(t.Context(), m, body)
		if c.Spec == "rfc9421" {
			require.ErrorIs(t, err, httpsig.CodeSignatureMissing, c.Name)
			require.False(t, Signed(m.Header))
			continue
		}
		require.NoError(t, err, c.Name)
		require.True(t, Signed(m.Header))
		require.Equal(t, m.HasQuery, res.QueryIgnored, c.Name)
		verified++
	}
	require.Equal(t, 2, verified)
}

func testPair(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	pair := must.Get(key.ParsePair(read(t, "cavage.json", 20).Keys["test-key-rsa"].JWK))(t)
	return pair.Signer().(*rsa.PrivateKey)
}

// received sends a request over the wire form, as a server would see it.
func received(t testing.TB, r *http.Request) *http.Request {
	t.Helper()
	var wire bytes.Buffer
	require.NoError(t, r.Write(&wire))
	return must.Get(http.ReadRequest(bufio.NewReader(&wire)))(t)
}

func TestSign_RoundTrip(t *testing.T) {
	t.Parallel()
	priv := testPair(t)
	const keyID = "https://node.example/actors/asha#main-key"
	for _, tc := range []struct{ name, method, url, body string }{
		{"post", "POST", "https://peer.example/inbox", `{"type":"Create"}`},
		{"post without body", "POST", "https://peer.example/inbox", ""},
		{"escaped path", "POST", "https://peer.example/users/a%2Fb/%C3%A9/inbox", "{}"},
		{"get with query", "GET", "https://peer.example/outbox?page=2&q=%20", ""},
		{"bare question mark", "GET", "https://peer.example/outbox?", ""},
		{"port and case", "GET", "https://Peer.Example:8443/a", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := must.Get(http.NewRequest(tc.method, tc.url, strings.NewReader(tc.body)))(t)
			require.NoError(t, Sign(r, []byte(tc.body), keyID, priv))
			require.NoError(t, Sign(r, []byte(tc.body), keyID, priv), "a retry is signed again")
			target := must.Get(httpsig.ParseTarget(tc.url))(t)
			got := received(t, r)
			m := must.Get(httpsig.FromRequest(got, target))(t)
			v := &Verifier{Keys: one(keyID, priv.Public()), AllowTestKeys: true}
			require.False(t, must.Get(v.Verify(t.Context(), &m, []byte(tc.body)))(t).QueryIgnored)

			// Second opinion, where go-fed's verifier is right.
			if !strings.Contains(tc.url, "%2F") && !strings.HasSuffix(tc.url, "?") {
				second := must.Get(gofed.NewVerifier(got))(t)
				require.Equal(t, keyID, second.KeyId())
				require.NoError(t, second.Verify(priv.Public(), gofed.RSA_SHA256))
			}
			if tc.body != "" {
				require.ErrorIs(t, must.Err(v.Verify(t.Context(), &m, []byte(tc.body+" "))), httpsig.CodeDigestMismatch)
			}
			m.RawPath += "x"
			require.ErrorIs(t, must.Err(v.Verify(t.Context(), &m, []byte(tc.body))), httpsig.CodeSignatureInvalid)
		})
	}
}

func TestVerify_Refuses(t *testing.T) {
	t.Parallel()
	f := read(t, "cavage.json", 20)
	const good = `keyId="k",headers="(request-target) host date digest",signature="AAAA"`
	for _, tc := range []struct {
		name, field string
		code        httpsig.Code
	}{
		{"not parameters", "sig1=:AAAA:", httpsig.CodeSignatureMalformed},
		{"unterminated", `keyId="k`, httpsig.CodeSignatureMalformed},
		{"no keyId", `signature="AAAA"`, httpsig.CodeSignatureMalformed},
		{"trailing comma", good + ",", httpsig.CodeSignatureMalformed},
		{"no comma", `keyId="k" signature="AAAA"`, httpsig.CodeSignatureMalformed},
		{"unquoted keyId", `keyId=k,signature="AAAA"`, httpsig.CodeSignatureMalformed},
		{"quoted created", `created="1",` + good, httpsig.CodeSignatureMalformed},
		{"bad base64", `keyId="k",headers="date",signature="A"`, httpsig.CodeSignatureMalformed},
		{"two keyIds", `keyId="a",` + good, httpsig.CodeParameterDuplicate},
		{"header twice", `keyId="k",headers="date date",signature="AAAA"`, httpsig.CodeComponentDuplicate},
		{"empty header name", `keyId="k",headers="date  host",signature="AAAA"`, httpsig.CodeComponentUnsupported},
		{"created listed but absent", `keyId="k",headers="(created)",signature="AAAA"`, httpsig.CodeParameterMissing},
		{"default headers", `keyId="k",signature="AAAA",created=1`, httpsig.CodeCoverageInsufficient},
		{"unknown key", good, httpsig.CodeKeyUnknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m, body := f.message(t, 0)
			m.Header.Set("Signature", tc.field)
			v := &Verifier{Keys: one("other", nil), Now: func() time.Time { return time.Unix(f.Cases[0].Now, 0) }}
			require.ErrorIs(t, must.Err(v.Verify(t.Context(), m, body)), tc.code)
		})
	}
}

// A request that carries both forms is never read as the weaker one.
func TestVerify_NoDowngrade(t *testing.T) {
	t.Parallel()
	f := read(t, "cavage.json", 20)
	m, body := f.message(t, 0)
	m.Header.Set("Signature-Input", "sig1=()")
	v := &Verifier{Keys: one(f.Cases[0].KeyID, f.public(t, f.Cases[0].Key)), AllowTestKeys: true}
	require.ErrorIs(t, must.Err(v.Verify(t.Context(), m, body)), httpsig.CodeSignatureMissing)
}

func TestVerify_AuthorizationAndEd25519(t *testing.T) {
	t.Parallel()
	pair := must.Get(key.GenerateEd25519())(t)
	target := httpsig.NewTarget("https", "node.example")
	r := httptest.NewRequest("GET", "/actors/asha", nil)
	r.Host = "node.example"
	r.Header.Set("Date", "Fri, 20 Nov 2026 12:00:00 GMT")
	sig := ed25519.Sign(pair.Signer().(ed25519.PrivateKey), []byte("(request-target): get /actors/asha\nhost: node.example\ndate: Fri, 20 Nov 2026 12:00:00 GMT"))
	b64 := must.Get(json.Marshal(sig))(t)
	r.Header.Set("Authorization", `Signature keyId="k",algorithm="ed25519",headers="(request-target) host date",signature=`+string(b64))
	m := must.Get(httpsig.FromRequest(r, target))(t)
	v := &Verifier{Keys: one("k", pair.Public()), Now: func() time.Time { return time.Unix(1795176000, 0) }}
	res := must.Get(v.Verify(t.Context(), &m, nil))(t)
	require.Equal(t, pair.Thumbprint(), res.Thumbprint)
	v.Keys = one("k", testPair(t).Public())
	require.ErrorIs(t, must.Err(v.Verify(t.Context(), &m, nil)), httpsig.CodeAlgorithmMismatch)
}

func FuzzParse(f *testing.F) {
	for _, c := range read(f, "cavage.json", 20).Cases {
		for _, h := range c.Request.Headers {
			if h[0] == "Signature" {
				f.Add(h[1])
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, e := parse(text)
		if e != nil {
			return
		}
		require.NotEmpty(t, s.keyID)
		require.NotEmpty(t, s.signature)
		// What we accept, go-fed reads as the same key, unless it splits a comma
		// inside a quoted value.
		if strings.Count(text, ",")+1 != strings.Count(text, "=") || strings.ContainsAny(text, " \t") {
			return
		}
		r := &http.Request{Header: http.Header{"Signature": {text}, "Date": {"x"}}}
		if v, err := gofed.NewVerifier(r); err == nil {
			require.Equal(t, s.keyID, v.KeyId())
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	f := read(b, "cavage.json", 20)
	m, body := f.message(b, 0)
	v := &Verifier{Keys: one(f.Cases[0].KeyID, f.public(b, f.Cases[0].Key)), AllowTestKeys: true, Now: func() time.Time { return time.Unix(f.Cases[0].Now, 0) }}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(b.Context(), m, body); err != nil {
			b.Fatal(err)
		}
	}
}
