package httpsig

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ethereum "github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/identity/eip4361"
	"stoa/identity/key"
	"stoa/protocol/must"
)

// The shared shape of the vector files.
type vectorFile struct {
	Keys  map[string]vectorKey `json:"keys"`
	Cases []vector             `json:"cases"`
}

type vectorKey struct {
	JWK json.RawMessage `json:"jwk"`
}

type vector struct {
	Name     string           `json:"name"`
	Request  *vectorMessage   `json:"request"`
	Response *vectorMessage   `json:"response"`
	Label    string           `json:"label"`
	Alg      string           `json:"alg"`
	Key      string           `json:"key"`
	Expect   string           `json:"expect"`
	Reason   string           `json:"reason"`
	Status   int              `json:"status"`
	Now      int64            `json:"now"`
	Clock    int64            `json:"clock"`
	Created  int64            `json:"created"`
	Base     string           `json:"signature_base"`
	Signed   string           `json:"signed_base"`
	Spec     string           `json:"spec"`
	Line     string           `json:"line"`      // components.json
	ID       string           `json:"component"` // components.json
	Error    string           `json:"error"`     // components.json
	Related  *json.RawMessage `json:"related"`
}

type vectorMessage struct {
	Method  string      `json:"method"`
	URI     string      `json:"target_uri"`
	Status  int         `json:"status"`
	Headers [][2]string `json:"headers"`
	Body    *string     `json:"body"`
}

func readVectors(t testing.TB, name string, cases int) vectorFile {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
	f := must.JSON[vectorFile](b)(t)
	require.Len(t, f.Cases, cases, "cases in %s", name)
	return f
}

func (v *vectorMessage) header() http.Header {
	h := make(http.Header)
	for _, l := range v.Headers {
		h.Add(l[0], l[1])
	}
	return h
}

func (v *vectorMessage) body() []byte {
	if v.Body == nil {
		return nil
	}
	return []byte(*v.Body)
}

// request views a recorded request as FromRequest would.
func (v *vectorMessage) request(t testing.TB) *Message {
	t.Helper()
	m := &Message{Method: v.Method, Header: v.header()}
	if v.Status != 0 {
		m.Status = v.Status
		return m
	}
	m.Target = must.Get(ParseTarget(v.URI))(t)
	rest, ok := cutScheme(v.URI)
	require.True(t, ok)
	i := strings.IndexAny(rest, "/?")
	if i >= 0 {
		m.RawPath, m.RawQuery, m.HasQuery = strings.Cut(rest[i:], "?")
	}
	return m
}

// message is the signed message of a case, with the request that it answers.
func (v *vector) message(t testing.TB) (*Message, []byte) {
	if v.Response == nil {
		return v.Request.request(t), v.Request.body()
	}
	m := v.Response.request(t)
	if v.Request != nil {
		m.Related = v.Request.request(t)
	}
	return m, v.Response.body()
}

func publicOf(t testing.TB, k vectorKey) crypto.PublicKey {
	t.Helper()
	pair, err := key.ParsePair(k.JWK)
	if err == nil {
		return pair.Public()
	}
	members := must.JSON[map[string]json.RawMessage](k.JWK)(t)
	for _, private := range []string{"d", "p", "q", "dp", "dq", "qi"} {
		delete(members, private)
	}
	b := must.Get(json.Marshal(members))(t)
	pub := must.Get(key.ParsePublic(b))(t)
	return pub.Key
}

type resolverFunc func(q KeyRequest) (Resolved, error)

func (f resolverFunc) Resolve(_ context.Context, q KeyRequest) (Resolved, error) { return f(q) }

// anyKey resolves every signature to one key.
func anyKey(k Key) KeyResolver {
	return resolverFunc(func(KeyRequest) (Resolved, error) { return Resolved{Key: k, Principal: "vector"}, nil })
}

// onlyLabel leaves one signature in a message, for files in which others are part
// of the example.
func onlyLabel(t testing.TB, m *Message, label string) {
	t.Helper()
	p := &parse{limits: Limits{}.orDefault()}
	require.Nil(t, p.read(m.Header["Signature-Input"], m.Header["Signature"]))
	sig := p.find(label)
	require.NotNil(t, sig)
	input, signature := p.memberText(sig)
	m.Header["Signature-Input"], m.Header["Signature"] = []string{input}, []string{signature}
}

func baseOf(t testing.TB, m *Message) string {
	t.Helper()
	p := &parse{limits: Limits{}.orDefault()}
	require.Nil(t, p.read(m.Header["Signature-Input"], m.Header["Signature"]))
	require.Nil(t, p.buildBase(m, &p.members[0]))
	return string(p.base)
}

func TestVectors_RFC9421(t *testing.T) {
	t.Parallel()
	f := readVectors(t, "rfc9421.json", 20)
	checked := 0
	for _, c := range f.Cases {
		m, body := c.message(t)
		// The proxy example covers the signature that it wraps, so that stays.
		if c.Label == "proxy_sig" {
			f := m.Header["Signature-Input"]
			require.Len(t, f, 1)
		} else {
			onlyLabel(t, m, c.Label)
		}
		if c.Base != "" && c.Label != "proxy_sig" && c.Expect == "valid" {
			require.Equal(t, c.Base, baseOf(t, m), c.Name)
		}
		if c.Alg == "hmac-sha256" { // base only: HMAC is not verified here
			checked++
			continue
		}
		k, err := NewKeyFor(publicOf(t, f.Keys[c.Key]), Algorithm(c.Alg))
		require.NoError(t, err, c.Name)
		v := &Verifier{AllowTestKeys: true, Now: func() time.Time { return time.Unix(1618884500, 0) }, Keys: resolverFunc(func(q KeyRequest) (Resolved, error) {
			if q.Params.KeyID != c.Key {
				return Resolved{}, CodeKeyUnknown
			}
			return Resolved{Key: k}, nil
		})}
		res, err := v.Verify(t.Context(), m, body, &Policy{})
		if c.Expect == "valid" {
			require.NoError(t, err, c.Name)
			require.Equal(t, c.Label, res.Label, c.Name)
			if c.Label == "proxy_sig" {
				checked++
				continue // the other signature fails first
			}
			v.AllowTestKeys = false
			_, err = v.Verify(t.Context(), m, body, &Policy{})
			require.ErrorIs(t, err, CodeTestKeyRefused, c.Name)
		} else {
			require.ErrorIs(t, err, CodeSignatureInvalid, c.Name)
		}
		checked++
	}
	require.Equal(t, 20, checked)
}

func TestVectors_Components(t *testing.T) {
	t.Parallel()
	f := readVectors(t, "components.json", 40)
	for _, c := range f.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			m := c.Request.request(t)
			p := &parse{limits: Limits{}.orDefault()}
			require.Nil(t, p.read([]string{"x=(" + c.ID + ")"}, []string{"x=:AAAA:"}))
			e := p.buildBase(m, &p.members[0])
			if c.Error != "" {
				require.NotNil(t, e)
				require.Equal(t, c.Error, string(e.Code))
				return
			}
			require.Nil(t, e)
			line, _, _ := strings.Cut(string(p.base), "\n")
			require.Equal(t, c.Line, line)
		})
	}
}

func TestVectors_ContentDigest(t *testing.T) {
	t.Parallel()
	b := must.Get(os.ReadFile("testdata/content-digest.json"))(t)
	var f struct {
		Cases []struct {
			Name, Body, Expect, Reason string
			Digest                     []string `json:"content_digest"`
		}
	}
	require.NoError(t, json.Unmarshal(b, &f))
	require.Len(t, f.Cases, 12)
	for _, c := range f.Cases {
		err := VerifyContentDigest(c.Digest, []byte(c.Body))
		if c.Expect == "valid" {
			require.NoError(t, err, c.Name)
		} else {
			require.ErrorIs(t, err, Code(c.Reason), c.Name)
		}
	}
	require.NoError(t, VerifyContentDigest([]string{ContentDigest([]byte("x"))}, []byte("x")))
}

func TestVectors_WebBotAuth(t *testing.T) {
	t.Parallel()
	f := readVectors(t, "web-bot-auth.json", 11)
	for _, c := range f.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			m, body := c.message(t)
			if c.Base != "" {
				require.Equal(t, c.Base, baseOf(t, m))
			}
			k := must.Get(NewKeyFor(publicOf(t, f.Keys[c.Key]), Algorithm(c.Alg)))(t)
			now := time.Unix(c.Created+60, 0)
			if c.Response != nil {
				require.Equal(t, []Proof{{Thumbprint: c.Key}}, VerifyDirectory(m, body, []Key{k}, now, true))
				return
			}
			q := ReadPolicy()
			q.MaxWindow = 0 // the recorded windows are a century long
			v := &Verifier{Keys: anyKey(k), AllowTestKeys: true, Now: func() time.Time { return now }}
			res := must.Get(v.Verify(t.Context(), m, body, q))(t)
			require.Equal(t, Algorithm(c.Alg), res.Algorithm)
			require.Equal(t, c.Key, res.Thumbprint)
			require.False(t, res.BodyBound)
			if m.Header.Get("Signature-Agent") != "" {
				require.Equal(t, "https://signature-agent.test"+DirectoryPath, res.Agent.KeySetURL())
			} else {
				require.Equal(t, AgentRef{}, res.Agent)
			}
		})
	}
}

// directory is the resolver that adversarial.json describes: one agent publishes
// one key.
func directory(k Key) KeyResolver {
	return resolverFunc(func(q KeyRequest) (Resolved, error) {
		switch {
		case q.Agent.Form == AgentNone:
			return Resolved{}, CodeAgentMissing
		case q.Agent.KeySetURL() != "https://agent.example/jwks.json":
			return Resolved{}, CodeDirectoryUnreachable
		case q.Params.KeyID != k.Thumbprint():
			return Resolved{}, CodeKeyUnknown
		}
		return Resolved{Key: k, Principal: q.Agent.ID()}, nil
	})
}

func TestVectors_Adversarial(t *testing.T) {
	t.Parallel()
	f := readVectors(t, "adversarial.json", 81)
	k := must.Get(NewKey(publicOf(t, f.Keys["poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"])))(t)
	for _, c := range f.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			m, body := c.message(t)
			q := WritePolicy()
			// "here a route that accepts named parameters"
			q.NamedQuery = c.Name == "P11-query-param-encoding" || c.Name == "N60-query-param-repeated"
			v := &Verifier{Keys: directory(k), AllowTestKeys: true, Now: func() time.Time { return time.Unix(c.Now, 0) }}
			res, err := v.Verify(t.Context(), m, body, q)
			if c.Expect == "valid" {
				require.NoError(t, err)
				require.Equal(t, c.Label, res.Label)
				require.Equal(t, "https://agent.example/jwks.json", res.Principal)
				require.Equal(t, len(body) > 0, res.BodyBound)
				require.NotZero(t, res.NonceKey)
				require.Equal(t, time.Unix(res.Params.Expires+30, 0), res.NonceUntil)
				if c.Name[:3] != "P03" {
					require.Equal(t, c.Signed, baseOf(t, m))
				}
				return
			}
			require.Nil(t, res)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.Reason, string(e.Code), e.Error())
			require.Equal(t, c.Expect, string(e.Outcome()))
			require.Equal(t, c.Status, e.Status())
			require.NotEmpty(t, e.SignatureError())
			require.NotContains(t, e.Error(), "signature-params")
		})
	}
}

func TestVectors_NPMClients(t *testing.T) {
	t.Parallel()
	f := readVectors(t, "npm-clients.json", 13)
	for _, c := range f.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			m, body := c.message(t)
			k := must.Get(NewKeyFor(publicOf(t, f.Keys[c.Key]), Algorithm(c.Alg)))(t)
			now := time.Unix(1735689700, 0)
			v := &Verifier{Keys: anyKey(k), AllowTestKeys: true, Now: func() time.Time { return now }}
			if c.Response != nil {
				// The signature is right but covers no digest: proof absent.
				proofs := VerifyDirectory(m, body, []Key{k}, now, true)
				require.Len(t, proofs, 1)
				require.ErrorIs(t, proofs[0].Err, CodeSignatureMissing)
				must.Get(v.Verify(t.Context(), m, body, &Policy{}))(t)
				return
			}
			q := ReadPolicy()
			if body != nil {
				q = WritePolicy()
			}
			q.MaxWindow = 0
			if strings.Contains(c.Name, "no-alg") {
				q.Tags = nil // has no tag either
			}
			_, err := v.Verify(t.Context(), m, body, q)
			if c.Expect == "valid" {
				require.NoError(t, err)
			} else {
				require.Equal(t, "bad-signature", c.Reason)
				require.ErrorIs(t, err, CodeSignatureInvalid)
			}
		})
	}
}

func TestVectors_Fediverse(t *testing.T) {
	t.Parallel()
	f := readVectors(t, "fediverse.json", 4)
	checked := 0
	for _, c := range f.Cases {
		m, body := c.message(t)
		k := must.Get(NewKeyFor(publicOf(t, f.Keys[c.Key]), RSAv15SHA256))(t)
		for _, at := range []struct {
			after time.Duration
			code  Code
		}{
			{0, ""}, {65 * time.Minute, ""}, {65*time.Minute + time.Second, CodeExpired},
			{-60 * time.Minute, ""}, {-60*time.Minute - time.Second, CodeNotYetValid},
		} {
			v := &Verifier{Keys: anyKey(k), AllowTestKeys: true, Now: func() time.Time { return time.Unix(c.Clock, 0).Add(at.after) }}
			res, err := v.Verify(t.Context(), m, body, FederationPolicy())
			if c.Spec != "rfc9421" { // the cavage cases are driven by package cavage
				require.ErrorIs(t, err, CodeSignatureMissing, c.Name)
				continue
			}
			if at.code != "" {
				require.ErrorIs(t, err, at.code, c.Name)
				continue
			}
			require.NoError(t, err, c.Name)
			require.Equal(t, body != nil, res.BodyBound)
			require.Zero(t, res.NonceKey)
			require.True(t, res.Covered.Has("host"))
		}
		checked++
	}
	require.Equal(t, 4, checked)
}

// anAccount is an Ethereum account as a key, for the vectors of ERC-8128.
type anAccount struct{ Account }

func (a anAccount) Algorithm() Algorithm     { return EIP191 }
func (a anAccount) Thumbprint() string       { return a.String() }
func (a anAccount) Public() crypto.PublicKey { return nil }

func (a anAccount) Verify(base, sig []byte) error {
	if len(sig) != 65 {
		return CodeSignatureMalformed
	}
	raw := slices.Clone(sig)
	raw[64] -= 27
	digest := eip4361.Digest(string(base))
	pub, err := ethereum.SigToPub(digest[:], raw)
	if err != nil || !strings.EqualFold(ethereum.PubkeyToAddress(*pub).Hex(), a.Address) {
		return CodeSignatureInvalid
	}
	return nil
}

// ofAccounts resolves every keyid of ERC-8128.
type ofAccounts struct{}

func (ofAccounts) Resolve(_ context.Context, q KeyRequest) (Resolved, error) {
	a, ok := q.Params.Account()
	if !ok {
		return Resolved{}, CodeKeyUnknown
	}
	return Resolved{Key: anAccount{a}}, nil
}

// TestVectors_ERC8128: both revisions verify, and nothing that was changed does.
func TestVectors_ERC8128(t *testing.T) {
	t.Parallel()
	f := readVectors(t, "erc8128.json", 4)
	for _, c := range f.Cases {
		m, body := c.message(t)
		if c.Base != "" {
			require.Equal(t, c.Base, baseOf(t, m), c.Name)
		}
		v := &Verifier{Keys: ofAccounts{}, Now: func() time.Time { return time.Unix(c.Now, 0) }}
		r, err := v.Verify(t.Context(), m, body, WritePolicy())
		require.NoError(t, err, c.Name)
		require.Equal(t, "eip155:1:0x7e5f4552091a69125d5dfcb7b8c2659029395bdf", r.Thumbprint, c.Name)
		require.NotZero(t, r.NonceKey, c.Name)
		if len(body) > 0 {
			require.ErrorIs(t, must.Err(v.Verify(t.Context(), m, append(slices.Clone(body), ' '), WritePolicy())), CodeDigestMismatch, c.Name)
		}
		for _, change := range [][2]string{{"0x7e5f", "0x8e5f"}, {"created=1700000000", "created=1699999999"}, {"@method", "@scheme"},
			{`keyid="`, `alg="ed25519";keyid="`}, {"eip155:1:0x7e", "eip155:1:0x7E"}, {":1:0x", ":01:0x"}, {"erc8128\"", "erc8128-delegated\""}} {
			changed := *m
			changed.Header = m.Header.Clone()
			input := strings.Replace(m.Header["Signature-Input"][0], change[0], change[1], 1)
			if input == m.Header["Signature-Input"][0] {
				continue
			}
			changed.Header["Signature-Input"] = []string{input}
			require.Error(t, must.Err(v.Verify(t.Context(), &changed, body, WritePolicy())), "%s: %s", c.Name, change[1])
		}
	}
}

func TestVectors_SignatureAgentHeaders(t *testing.T) {
	t.Parallel()
	b := must.Get(os.ReadFile("testdata/web-bot-auth-agent-and-cards.json"))(t)
	var f struct {
		Headers []struct {
			Name, Header string
			Entries      []struct{ Label, URI, Type string }
		} `json:"signature_agent_headers"`
	}
	require.NoError(t, json.Unmarshal(b, &f))
	require.Len(t, f.Headers, 3)
	forms := map[string]AgentForm{"directory": AgentOrigin, "jwks_uri": AgentJWKS, "cimd": AgentCard}
	for _, h := range f.Headers {
		for _, entry := range h.Entries {
			m := &Message{Header: http.Header{"Signature-Agent": {h.Header}}}
			ref, e := agentOf(m, "other", []component{{name: "signature-agent", flags: flagKey, arg: entry.Label}}, false)
			require.Nil(t, e, h.Name)
			require.Equal(t, AgentRef{Form: forms[entry.Type], Member: entry.Label, URL: entry.URI}, ref, h.Name)
		}
	}
}

// vectorRequest is P01 of adversarial.json, for tests that change it.
func vectorRequest(t testing.TB) (*Message, []byte, Key, ed25519.PrivateKey) {
	t.Helper()
	f := readVectors(t, "adversarial.json", 81)
	raw := f.Keys["poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"]
	k := must.Get(NewKey(publicOf(t, raw)))(t)
	var jwk struct{ D string }
	require.NoError(t, json.Unmarshal(raw.JWK, &jwk))
	seed := must.Get(base64.RawURLEncoding.DecodeString(jwk.D))(t)
	i := slices.IndexFunc(f.Cases, func(c vector) bool { return c.Name == "P01-baseline" })
	m, body := f.Cases[i].message(t)
	return m, body, k, ed25519.NewKeyFromSeed(seed)
}
