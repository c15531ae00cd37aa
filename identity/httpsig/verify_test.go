package httpsig

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol/must"
)

func TestFromRequest(t *testing.T) {
	t.Parallel()
	target := NewTarget("HTTPS", "Node.Example:443")
	require.Equal(t, Target{"https", "node.example"}, target)
	for _, tc := range []struct {
		name, uri, host, path, query string
		hasQuery                     bool
		code                         Code
	}{
		{"plain", "/a/b?x=1", "node.example", "/a/b", "x=1", true, ""},
		{"default port and case", "/", "NODE.example:443", "/", "", false, ""},
		{"bare question mark", "/p?", "node.example", "/p", "", true, ""},
		{"second question mark", "/p?a?b", "node.example", "/p", "a?b", true, ""},
		{"escapes kept", "/a%2Fb/%7Eu", "node.example", "/a%2Fb/%7Eu", "", false, ""},
		{"absolute form", "https://node.example/p?q", "node.example", "/p", "q", true, ""},
		{"absolute form without path", "http://node.example", "node.example", "/", "", false, ""},
		{"absolute form, query only", "http://node.example?q", "node.example", "", "q", true, ""},
		{"other host", "/", "evil.example", "", "", false, CodeHostUnknown},
		{"other port", "/", "node.example:8443", "", "", false, CodeHostUnknown},
		{"no host", "/", "", "", "", false, CodeHostUnknown},
		{"fragment", "/p#f", "node.example", "", "", false, CodeTargetInvalid},
		{"non-ASCII", "/é", "node.example", "", "", false, CodeTargetInvalid},
		{"blank", "/a b", "node.example", "", "", false, CodeTargetInvalid},
		{"asterisk", "*", "node.example", "", "", false, CodeTargetInvalid},
		{"authority form", "node.example:443", "node.example", "", "", false, CodeTargetInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{Method: "POST", RequestURI: tc.uri, Host: tc.host, Header: http.Header{}}
			m, err := FromRequest(r, target)
			if tc.code != "" {
				var e *Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, tc.code, e.Code)
				require.Equal(t, OutcomeMalformed, e.Outcome())
				if tc.code == CodeHostUnknown {
					require.Equal(t, http.StatusMisdirectedRequest, e.Status())
				}
				return
			}
			require.NoError(t, err)
			require.Equal(t, []any{tc.path, tc.query, tc.hasQuery}, []any{m.RawPath, m.RawQuery, m.HasQuery})
		})
	}
}

// §1.8: on the wire, an absolute target overrules Host.
func TestFromRequest_AbsoluteFormOnTheWire(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", "http://evil.example/p", nil)
	r.Header.Set("Host", "node.example")
	require.ErrorIs(t, must.Err(FromRequest(r, NewTarget("http", "node.example"))), CodeHostUnknown)
}

// signedWith makes a message whose signature covers list, signed by a new key.
func signedWith(t testing.TB, m *Message, list, params string) Key {
	t.Helper()
	pair := must.Get(key.GenerateEd25519())(t)
	m.Header.Set("Signature-Input", "sig1=("+list+")"+params)
	m.Header.Set("Signature", "sig1=:AAAA:")
	sig := ed25519.Sign(pair.Signer().(ed25519.PrivateKey), []byte(baseOf(t, m)))
	m.Header.Set("Signature", "sig1=:"+base64.StdEncoding.EncodeToString(sig)+":")
	return must.Get(NewKey(pair.Public()))(t)
}

const testParams = `;created=1795176000;expires=1795176060;keyid="k";nonce="0123456789abcdef";tag="web-bot-auth"`

func TestVerify_Coverage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, list, body string
		head             map[string]string
		code             Code
	}{
		{"stoa tag is ours", `"@method" "@target-uri"`, "", nil, ""},
		{"strict digest counts", `"@method" "@target-uri" "content-digest";sf "content-type"`, "b", nil, ""},
		{"wrapped digest does not count", `"@method" "@target-uri" "content-digest";bs "content-type"`, "b", nil, CodeCoverageInsufficient},
		{"content-type", `"@method" "@target-uri" "content-digest"`, "b", nil, CodeCoverageInsufficient},
		{"content-encoding", `"@method" "@target-uri"`, "", map[string]string{"Content-Encoding": "gzip"}, CodeCoverageInsufficient},
		{"identity not covered", `"@method" "@target-uri"`, "", map[string]string{"Agent-Identity": "eip155:1:0xa:1"}, CodeCoverageInsufficient},
		{"identity covered", `"@method" "@target-uri" "agent-identity"`, "", map[string]string{"Agent-Identity": "eip155:1:0xa:1"}, ""},
		{"agent wrapped", `"@method" "@target-uri" "signature-agent";bs`, "", map[string]string{"Signature-Agent": `"https://a.example"`}, CodeAgentNotCovered},
		{"two agents", `"@method" "@target-uri" "signature-agent";key="a" "signature-agent";key="b"`, "",
			map[string]string{"Signature-Agent": `a="https://a.example", b="https://b.example"`}, CodeAgentMalformed},
		{"line break in a value", `"@method" "@target-uri" "x-a"`, "", map[string]string{"X-A": "a\nb"}, CodeComponentValueInvalid},
		{"non-ASCII in a value", `"@method" "@target-uri" "x-a"`, "", map[string]string{"X-A": "é"}, CodeComponentValueInvalid},
		{"trailer", `"@method" "@target-uri" "x-a";tr`, "", map[string]string{"X-A": "a"}, CodeComponentUnsupported},
		{"flag set to false", `"@method" "@target-uri" "x-a";bs=?0`, "", map[string]string{"X-A": "a"}, CodeComponentUnsupported},
		{"unknown structured type", `"@method" "@target-uri" "x-a";sf`, "", map[string]string{"X-A": "a"}, CodeComponentUnsupported},
		{"unparsable member", `"@method" "@target-uri" "x-a";key="a"`, "", map[string]string{"X-A": "a=("}, CodeComponentValueInvalid},
		{"broken query escape", `"@method" "@target-uri" "@query-param";name="a"`, "", map[string]string{"X-Query": "a=%zz"}, CodeComponentValueInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := &Message{Method: "POST", RawPath: "/a", Target: NewTarget("https", "node.example"), Header: http.Header{}}
			for name, v := range tc.head {
				m.Header.Set(name, v)
			}
			if v := m.Header.Get("X-Query"); v != "" {
				m.RawQuery, m.HasQuery = v, true
			}
			if tc.body != "" {
				m.Header.Set("Content-Type", "text/plain")
				m.Header.Set("Content-Digest", ContentDigest([]byte(tc.body)))
			}
			m.Header.Set("Signature-Input", "sig1=("+tc.list+")"+testParams)
			m.Header.Set("Signature", "sig1=:AAAA:")
			var k Key = &ed25519Key{pub: make(ed25519.PublicKey, 32)}
			p := &parse{limits: Limits{}.orDefault()}
			require.Nil(t, p.read(m.Header["Signature-Input"], m.Header["Signature"]))
			if p.buildBase(m, &p.members[0]) == nil {
				k = signedWith(t, m, tc.list, testParams)
			}
			v := &Verifier{Keys: anyKey(k), Now: clock(epoch)}
			res, err := v.Verify(t.Context(), m, []byte(tc.body), WritePolicy())
			if tc.code != "" {
				require.ErrorIs(t, err, tc.code)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "("+tc.list+")", res.Covered.String())
		})
	}
}

func TestVerify_Resolver(t *testing.T) {
	t.Parallel()
	m, body, k, _ := vectorRequest(t)
	for _, tc := range []struct {
		name    string
		answer  Resolved
		err     error
		code    Code
		outcome Outcome
		status  int
	}{
		{"code", Resolved{}, CodeDirectoryStatus, CodeDirectoryStatus, OutcomeUnverified, 401},
		{"wrapped code", Resolved{}, errors.Join(errors.New("x"), CodeKeyExpired), CodeKeyExpired, OutcomeInvalid, 401},
		{"error", Resolved{}, &Error{Code: CodeAgentMissing}, CodeAgentMissing, OutcomeUnverified, 401},
		{"foreign error", Resolved{}, context.DeadlineExceeded, CodeKeyUnavailable, OutcomeUnverified, 503},
		{"no key", Resolved{}, nil, CodeKeyUnknown, OutcomeUnverified, 401},
		{"test key", Resolved{Key: k}, nil, CodeTestKeyRefused, OutcomeInvalid, 401},
	} {
		v := &Verifier{Now: clock(epoch), Keys: resolverFunc(func(KeyRequest) (Resolved, error) { return tc.answer, tc.err })}
		_, err := v.Verify(t.Context(), m, body, WritePolicy())
		var e *Error
		require.ErrorAs(t, err, &e, tc.name)
		require.Equal(t, tc.code, e.Code, tc.name)
		require.Equal(t, tc.outcome, e.Outcome(), tc.name)
		require.Equal(t, tc.status, e.Status(), tc.name)
		require.Equal(t, "sig1", e.Label, tc.name)
	}
	v := &Verifier{Now: clock(epoch), Keys: anyKey(k), AllowTestKeys: true}
	q := WritePolicy()
	q.Algorithms = []Algorithm{RSAPSSSHA512}
	require.ErrorIs(t, must.Err(v.Verify(t.Context(), m, body, q)), CodeAlgorithmUnsupported)
}

// Two signatures for us: each is judged alone, the first that verifies wins.
func TestVerify_FirstGoodWins(t *testing.T) {
	t.Parallel()
	m, body, k, _ := vectorRequest(t)
	bad := strings.Replace(m.Header.Get("Signature-Input"), "sig1=", "bad=", 1)
	m.Header["Signature-Input"] = []string{bad, m.Header.Get("Signature-Input")}
	m.Header["Signature"] = []string{m.Header.Get("Signature"), "bad=:" + strings.Repeat("A", 86) + "==:"}
	v := &Verifier{Now: clock(epoch), Keys: anyKey(k), AllowTestKeys: true}
	require.Equal(t, "sig1", must.Get(v.Verify(t.Context(), m, body, WritePolicy()))(t).Label)
}

// The nonce key depends on keyid and nonce only, so a second request with the
// same nonce is the caller's to refuse.
func TestVerify_NonceKey(t *testing.T) {
	t.Parallel()
	m, body, k, _ := vectorRequest(t)
	v := &Verifier{Now: clock(epoch), Keys: anyKey(k), AllowTestKeys: true}
	one := must.Get(v.Verify(t.Context(), m, body, WritePolicy()))(t)
	require.Equal(t, one, must.Get(v.Verify(t.Context(), m, body, WritePolicy()))(t))

	spent := map[[16]byte]string{one.NonceKey: "the vector"}
	for _, params := range []string{
		testParams,
		strings.Replace(testParams, `keyid="k"`, `keyid="l"`, 1), // nobody spends the nonce of another key
		strings.Replace(testParams, `"0123456789abcdef"`, `"0123456789abcdeg"`, 1),
	} {
		m := &Message{Method: "POST", RawPath: "/a", Target: NewTarget("https", "node.example"), Header: http.Header{}}
		k := signedWith(t, m, `"@method" "@target-uri"`, params)
		res := must.Get((&Verifier{Now: clock(epoch), Keys: anyKey(k)}).Verify(t.Context(), m, nil, WritePolicy()))(t)
		require.NotContains(t, spent, res.NonceKey, params)
		spent[res.NonceKey] = params
	}
}

func TestNewKey_Refuses(t *testing.T) {
	t.Parallel()
	identity := make(ed25519.PublicKey, 32)
	identity[0] = 1
	// crypto/ed25519 accepts an all-zero S under the identity point for anything.
	forged := append(bytes.Clone(identity), make([]byte, 32)...)
	require.True(t, ed25519.Verify(identity, []byte("anything"), forged))
	require.ErrorIs(t, must.Err(NewKey(identity)), CodeKeyWeak)
	require.ErrorIs(t, must.Err(NewKey(ed25519.PublicKey("short"))), CodeKeyMalformed)
	require.ErrorIs(t, must.Err(NewKey("text")), CodeAlgorithmUnsupported)
	small := must.Get(rsa.GenerateKey(rand.Reader, 1024))(t)
	require.ErrorIs(t, must.Err(NewKey(&small.PublicKey)), CodeKeyWeak)
	pair := must.Get(key.GenerateP256())(t)
	require.ErrorIs(t, must.Err(NewKeyFor(pair.Public(), Ed25519)), CodeAlgorithmMismatch)
}

func TestCovered_QueryParam(t *testing.T) {
	t.Parallel()
	c := Covered{list: `("@method" "@query-param";name="a%20b" "x";key="c \" d)")`}
	require.True(t, c.QueryParam("a b"))
	require.False(t, c.QueryParam("a"))
	require.False(t, c.Has("x"))
	require.True(t, Covered{list: `("@target-uri")`}.QueryParam("anything"))
}

func TestAgentURL(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		url      string
		loopback bool
		code     Code
		id, set  string
	}{
		{"https://Agent.Example:443/", false, "", "https://agent.example", "https://Agent.Example:443" + DirectoryPath},
		{"https://agent.example/keys?v=1", false, "", "https://agent.example/keys", "https://agent.example/keys?v=1"},
		{"http://127.0.0.1:8081/k", true, "", "http://127.0.0.1:8081/k", "http://127.0.0.1:8081/k"},
		{"http://localhost:8081", true, "", "http://localhost:8081", "http://localhost:8081" + DirectoryPath},
		{"http://127.0.0.1:8081/k", false, CodeAgentMalformed, "", ""},
		{"http://10.0.0.1/k", true, CodeAgentMalformed, "", ""},
		{"https://10.0.0.1/k", true, CodeDirectoryAddressRefused, "", ""},
		{"https://127.1/", false, CodeDirectoryAddressRefused, "", ""},
		{"https://2130706433/", false, CodeDirectoryAddressRefused, "", ""},
		{"https://0x7f.0.0.0x1/", false, CodeDirectoryAddressRefused, "", ""},
		{"https://[::1]/", false, CodeDirectoryAddressRefused, "", ""},
		{"https://a.example#f", false, CodeAgentMalformed, "", ""},
		{"https://u:p@a.example", false, CodeAgentMalformed, "", ""},
		{"https://a..example", false, CodeAgentMalformed, "", ""},
		{"https://a.example:", false, CodeAgentMalformed, "", ""},
		{"https://a.example\\@b", false, CodeAgentMalformed, "", ""},
		{"https://", false, CodeAgentMalformed, "", ""},
		{"javascript:alert(1)", false, CodeAgentMalformed, "", ""},
		{"https://a.example/" + strings.Repeat("x", 500), false, CodeAgentMalformed, "", ""},
	} {
		ref, e := newAgent("sig1", tc.url, "", tc.loopback)
		if tc.code != "" {
			require.NotNil(t, e, tc.url)
			require.Equal(t, tc.code, e.Code, tc.url)
			continue
		}
		require.Nil(t, e, tc.url)
		require.Equal(t, tc.id, ref.ID())
		require.Equal(t, tc.set, ref.KeySetURL())
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	many := func(n int, one string) string { return strings.TrimSpace(strings.Repeat(one, n)) }
	for name, tc := range map[string]struct {
		input, signature string
		code             Code
	}{
		"input bytes":  {"a=(" + many(800, `"x-header" `) + ")", "a=:AAAA:", CodeSignatureTooLarge},
		"sig bytes":    {"a=()", "a=:" + strings.Repeat("A", 8192) + ":", CodeSignatureTooLarge},
		"one sig":      {"a=()", "a=:" + strings.Repeat("A", 1400) + ":", CodeSignatureTooLarge},
		"components":   {"a=(" + many(33, `"x" `) + ")", "a=:AAAA:", CodeSignatureTooLarge},
		"params":       {"a=();a;b;c;d;e;f;g;h;i;j;k;l;m;n;o;p;q", "a=:AAAA:", CodeSignatureTooLarge},
		"item params":  {`a=("x";a;b;c;d;e;f;g;h;i;j;k;l;m;n;o;p;q)`, "a=:AAAA:", CodeSignatureTooLarge},
		"labels":       {"a=(),b=(),c=(),d=(),e=(),f=(),g=(),h=(),i=(),j=(),k=(),l=(),m=(),n=(),o=(),p=(),q=()", "a=:AAAA:", CodeTooManySignatures},
		"only in sig":  {"a=()", "a=:AAAA:, b=:AAAA:", CodeLabelMismatch},
		"sig twice":    {"a=()", "a=:AAAA:, a=:AAAA:", CodeLabelDuplicate},
		"empty fields": {"", "", CodeNoAcceptableSignature},
	} {
		m := &Message{Method: "GET", Header: http.Header{"Signature-Input": {tc.input}, "Signature": {tc.signature}}}
		require.ErrorIs(t, must.Err((&Verifier{}).Verify(t.Context(), m, nil, ReadPolicy())), tc.code, name)
	}
}

func TestPolicy_At(t *testing.T) {
	t.Parallel()
	m, body, k, _ := vectorRequest(t)
	v := &Verifier{Now: clock(epoch.Add(48 * time.Hour)), Keys: anyKey(k), AllowTestKeys: true}
	q := WritePolicy()
	require.ErrorIs(t, must.Err(v.Verify(t.Context(), m, body, q)), CodeExpired)
	q.At = epoch
	must.Get(v.Verify(t.Context(), m, body, q))(t)
}
