package httpsig

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol/must"
)

var epoch = time.Unix(1795176000, 0)

func clock(at time.Time) func() time.Time { return func() time.Time { return at } }

// received is the request as a server reads it from the wire.
func received(t testing.TB, r *http.Request) *http.Request {
	t.Helper()
	var wire bytes.Buffer
	require.NoError(t, r.Write(&wire))
	return must.Get(http.ReadRequest(bufio.NewReader(&wire)))(t)
}

func newRequest(t testing.TB, method, url, body string) (*http.Request, Target) {
	t.Helper()
	r := must.Get(http.NewRequest(method, url, strings.NewReader(body)))(t)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	target := must.Get(ParseTarget(url))(t)
	return r, target
}

func signers(t testing.TB) map[Algorithm]crypto.Signer {
	t.Helper()
	ed := must.Get(key.GenerateEd25519())(t)
	p256 := must.Get(key.GenerateP256())(t)
	p384 := must.Get(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	rsa := must.Get(key.GenerateRSA(2048))(t)
	return map[Algorithm]crypto.Signer{
		Ed25519: ed.Signer(), ECDSAP256SHA256: p256.Signer(), ECDSAP384SHA384: p384,
		RSAv15SHA256: rsa.Signer(), RSAPSSSHA512: rsa.Signer(),
	}
}

func TestSignRequest_RoundTrip(t *testing.T) {
	t.Parallel()
	for alg, priv := range signers(t) {
		k := must.Get(NewKeyFor(priv.Public(), alg))(t)
		for _, tc := range []struct{ name, method, url, body, agent, identity string }{
			{"post", "POST", "https://node.example/api/public/board?lang=en", `{"a":1}`, `sig1="https://agent.example"`, "eip155:1:0xabc:7"},
			{"post, string agent", "POST", "https://node.example/a", `{"a":1}`, `"https://agent.example"`, ""},
			{"delete without body", "DELETE", "https://node.example/a%2Fb?", "", "", ""},
			{"loopback", "POST", "http://127.0.0.1:8081/a?x=1", "{}", "", ""},
			{"port", "GET", "https://Node.example:8443", "", "", ""},
		} {
			t.Run(string(alg)+" "+tc.name, func(t *testing.T) {
				t.Parallel()
				r, target := newRequest(t, tc.method, tc.url, tc.body)
				if tc.agent != "" {
					r.Header.Set("Signature-Agent", tc.agent)
				}
				if tc.identity != "" {
					r.Header.Set("Agent-Identity", tc.identity)
				}
				require.NoError(t, SignRequest(r, target, []byte(tc.body), SignOptions{Key: priv, Algorithm: alg, Created: epoch, SendAlg: true}))
				m := must.Get(FromRequest(received(t, r), target))(t)
				var asked KeyRequest
				v := &Verifier{Now: clock(epoch), Keys: resolverFunc(func(q KeyRequest) (Resolved, error) {
					asked = q
					return Resolved{Key: k}, nil
				})}
				res := must.Get(v.Verify(t.Context(), &m, []byte(tc.body), WritePolicy()))(t)
				require.Equal(t, tc.body != "", res.BodyBound)
				require.Equal(t, k.Thumbprint(), res.Params.KeyID)
				require.Equal(t, TagWebBotAuth, res.Params.Tag)
				require.Len(t, res.Params.Nonce, 24)
				require.Equal(t, epoch.Add(90*time.Second), res.NonceUntil)
				require.Equal(t, tc.identity, asked.Identity)
				if tc.agent != "" {
					require.Equal(t, "https://agent.example", asked.Agent.ID())
				}
				require.Equal(t, strings.HasPrefix(tc.url, "http:"), res.Covered.Has("@target-uri"))
				require.True(t, res.Covered.Has("@method"))

				require.Error(t, must.Err(v.Verify(t.Context(), &m, append([]byte(tc.body), 'x'), WritePolicy())))
			})
		}
	}
}

func TestSignRequest_Options(t *testing.T) {
	t.Parallel()
	pair := must.Get(key.GenerateEd25519())(t)
	r, target := newRequest(t, "POST", "https://peer.example/inbox", "{}")
	o := SignOptions{
		Key: pair.Signer(), KeyID: "https://node.example/a#k", Label: "fed", Tag: "-", Nonce: "-", TTL: -1, Created: epoch,
		Components: []string{"@method", "@target-uri", "content-digest"}, Extra: []string{"date"}, SendAlg: true,
	}
	require.ErrorIs(t, SignRequest(r, target, []byte("{}"), o), CodeComponentMissing, "no Date yet")
	require.Empty(t, r.Header.Get("Signature"))
	r.Header.Set("Date", epoch.UTC().Format(http.TimeFormat))
	require.NoError(t, SignRequest(r, target, []byte("{}"), o))
	require.Equal(t, `fed=("@method" "@target-uri" "content-digest" "date");created=1795176000;keyid="https://node.example/a#k";alg="ed25519"`,
		r.Header.Get("Signature-Input"))

	// A second signature joins the first.
	o.Label, o.Tag, o.Nonce, o.TTL = "other", "", "", 0
	require.NoError(t, SignRequest(r, target, []byte("{}"), o))
	k := must.Get(NewKey(pair.Public()))(t)
	m := must.Get(FromRequest(received(t, r), target))(t)
	v := &Verifier{Now: clock(epoch), Keys: anyKey(k)}
	res := must.Get(v.Verify(t.Context(), &m, []byte("{}"), FederationPolicy()))(t)
	require.Equal(t, "fed", res.Label)
	require.Zero(t, res.NonceKey)
	q := WritePolicy()
	q.Require &^= RequireContentType
	res = must.Get(v.Verify(t.Context(), &m, []byte("{}"), q))(t)
	require.Equal(t, "other", res.Label)

	for name, bad := range map[string]SignOptions{
		"no key":    {},
		"label":     {Key: pair.Signer(), Label: "A b"},
		"keyid":     {Key: pair.Signer(), KeyID: "a\"b"},
		"component": {Key: pair.Signer(), Components: []string{"X-Upper"}},
	} {
		r, target := newRequest(t, "GET", "https://peer.example/", "")
		require.Error(t, SignRequest(r, target, nil, bad), name)
		require.Empty(t, r.Header.Get("Signature"), name)
	}
	r, _ = newRequest(t, "GET", "https://peer.example/", "")
	require.ErrorIs(t, SignRequest(r, target, nil, SignOptions{Key: pair.Signer(), Algorithm: RSAPSSSHA512}), CodeAlgorithmMismatch)
	require.ErrorIs(t, SignRequest(r, NewTarget("https", "other.example"), nil, SignOptions{Key: pair.Signer()}), CodeHostUnknown)
}

func TestSignResponse_Directory(t *testing.T) {
	t.Parallel()
	one := must.Get(key.GenerateEd25519())(t)
	two := must.Get(key.GenerateEd25519())(t)
	body := must.Get(key.MarshalSet([]key.Public{one.Published(), two.Published()}))(t)
	related := &Message{Method: "GET", Target: NewTarget("https", "agent.example"), RawPath: DirectoryPath}
	h := http.Header{}
	require.NoError(t, SignResponse(h, 200, related, body, SignOptions{Key: one.Signer(), Created: epoch}))
	k1 := must.Get(NewKey(one.Public()))(t)
	k2 := must.Get(NewKey(two.Public()))(t)
	m := &Message{Status: 200, Header: h, Related: related}
	proofs := VerifyDirectory(m, body, []Key{k1, k2}, epoch, false)
	require.NoError(t, proofs[0].Err)
	require.ErrorIs(t, proofs[1].Err, CodeSignatureMissing)

	require.NoError(t, SignResponse(h, 200, related, body, SignOptions{Key: two.Signer(), Label: "binding1", Created: epoch}))
	for _, p := range VerifyDirectory(m, body, []Key{k1, k2}, epoch.Add(7*24*time.Hour), false) {
		require.NoError(t, p.Err)
	}
	for name, change := range map[string]func() (*Message, []byte, time.Time){
		"other host": func() (*Message, []byte, time.Time) {
			return &Message{Status: 200, Header: h, Related: &Message{Target: NewTarget("https", "evil.example")}}, body, epoch
		},
		"other body": func() (*Message, []byte, time.Time) { return m, append([]byte(" "), body...), epoch },
		"expired":    func() (*Message, []byte, time.Time) { return m, body, epoch.Add(8 * 24 * time.Hour) },
		"no request": func() (*Message, []byte, time.Time) { return &Message{Status: 200, Header: h}, body, epoch },
	} {
		m, body, now := change()
		for _, p := range VerifyDirectory(m, body, []Key{k1, k2}, now, false) {
			require.Error(t, p.Err, name)
			require.NotErrorIs(t, p.Err, CodeSignatureMissing, name)
		}
	}
}

func TestAcceptSignature(t *testing.T) {
	t.Parallel()
	require.Equal(t, `sig1=("@method" "@authority" "@path" "@query" "content-type" "content-digest" `+
		`"signature-agent";key="sig1");created;expires;nonce="n";tag="web-bot-auth"`,
		AcceptSignature(Wanted{Nonce: "n"}))
	require.Equal(t, `a=("@authority";req);created;expires;keyid="k";alg="ed25519";tag="stoa"`,
		AcceptSignature(Wanted{Label: "a", Components: []string{"@authority;req"}, KeyID: "k\r\n\"", Alg: "ed25519", Tag: TagStoa}))
	must.Get(httpsfv.UnmarshalDictionary([]string{AcceptSignature(Wanted{})}))(t)
}
