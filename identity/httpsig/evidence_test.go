package httpsig

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol/must"
)

// captured is a verified request with its evidence and the key that signed it.
func captured(t testing.TB, o SignOptions, url, body string, head http.Header) (Evidence, Key) {
	t.Helper()
	pair := must.Get(key.GenerateEd25519())(t)
	k := must.Get(NewKey(pair.Public()))(t)
	r, target := newRequest(t, "POST", url, body)
	for name, v := range head {
		r.Header[name] = v
	}
	o.Key, o.Created = pair.Signer(), epoch
	require.NoError(t, SignRequest(r, target, []byte(body), o))
	r.Header.Add("X-Not-Covered", "secret")
	m := must.Get(FromRequest(received(t, r), target))(t)
	v := &Verifier{Keys: anyKey(k), Now: clock(epoch), AllowLoopback: true}
	res := must.Get(v.Verify(t.Context(), &m, []byte(body), WritePolicy()))(t)
	e := must.Get(Capture(&m, []byte(body), res))(t)
	return e, k
}

// reverify is what another node does.
func reverify(t testing.TB, raw []byte, k Key) error {
	t.Helper()
	e, err := ParseEvidence(raw)
	if err != nil {
		return err
	}
	m, body, err := e.Open()
	if err != nil {
		return err
	}
	q := WritePolicy()
	q.At = epoch
	v := &Verifier{Keys: anyKey(k), AllowLoopback: true}
	_, err = v.Verify(t.Context(), &m, body, q)
	return err
}

var evidenceHeaders = http.Header{
	"Signature-Agent": {`sig1="https://agent.example", other="https://other.example"`},
	"Agent-Identity":  {"eip155:1:0xabc:7"},
	"X-Note":          {"one", " two"},
}

func evidenceCases(t testing.TB) map[string]func() (Evidence, Key) {
	parts := "https://node.example/api/a%2Fb?lang=en"
	return map[string]func() (Evidence, Key){
		"parts": func() (Evidence, Key) {
			return captured(t, SignOptions{Extra: []string{"x-note"}}, parts, `{"a":1}`, evidenceHeaders)
		},
		"keyed agent": func() (Evidence, Key) {
			return captured(t, SignOptions{Components: []string{"@method", "@authority", "@path", "@query", "content-type", "content-digest",
				`signature-agent;key="sig1"`, "agent-identity", "host"}}, parts, `{"a":1}`, evidenceHeaders)
		},
		"target-uri": func() (Evidence, Key) {
			return captured(t, SignOptions{Components: []string{"@method", "@target-uri", "content-type", "content-digest"}}, parts, `{"a":1}`, nil)
		},
		"plain http": func() (Evidence, Key) { return captured(t, SignOptions{}, "http://node-b.test/api?x", "{}", nil) },
		"no body":    func() (Evidence, Key) { return captured(t, SignOptions{}, "https://node.example/a", "", nil) },
	}
}

func TestEvidence_RoundTrip(t *testing.T) {
	t.Parallel()
	for name, make := range evidenceCases(t) {
		e, k := make()
		raw, err := json.Marshal(e)
		require.NoError(t, err, name)
		require.NotContains(t, string(raw), "secret")
		require.NoError(t, reverify(t, raw, k), name)
	}
	e, _ := evidenceCases(t)["keyed agent"]()
	require.Equal(t, `sig1="https://agent.example"`, e.Components["signature-agent"], "only the covered member")
	require.Equal(t, "node.example", e.Components["host"])
	require.Equal(t, "https://node.example/api/a%2Fb?lang=en", e.TargetURI)
	require.Equal(t, base64.RawURLEncoding.EncodeToString([]byte(`{"a":1}`)), e.Body)
}

// Each part of the evidence that is changed makes it worthless.
func TestEvidence_TamperedPartIsRefused(t *testing.T) {
	t.Parallel()
	for name, make := range evidenceCases(t) {
		e, k := make()
		changes := map[string]func(*Evidence){
			"type":          func(e *Evidence) { e.Type = "Other" },
			"method":        func(e *Evidence) { e.Method = "PUT" },
			"host":          func(e *Evidence) { e.TargetURI = strings.Replace(e.TargetURI, "://node", "://mode", 1) },
			"scheme":        func(e *Evidence) { e.TargetURI = swapScheme(e.TargetURI) },
			"path":          func(e *Evidence) { e.TargetURI = strings.Replace(e.TargetURI, "/a", "/b", 1) },
			"query":         func(e *Evidence) { e.TargetURI += "&x=1" },
			"query added":   func(e *Evidence) { e.TargetURI += "?" },
			"upper case":    func(e *Evidence) { e.TargetURI = strings.Replace(e.TargetURI, "node", "NODE", 1) },
			"userinfo":      func(e *Evidence) { e.TargetURI = strings.Replace(e.TargetURI, "node", "u@node", 1) },
			"fragment":      func(e *Evidence) { e.TargetURI += "#f" },
			"created":       func(e *Evidence) { e.SignatureInput = strings.Replace(e.SignatureInput, "1795176000", "1795176001", 1) },
			"nonce":         func(e *Evidence) { e.SignatureInput = strings.Replace(e.SignatureInput, `nonce="`, `nonce="x`, 1) },
			"blanks":        func(e *Evidence) { e.SignatureInput = strings.Replace(e.SignatureInput, `" "`, `"  "`, 1) },
			"two":           func(e *Evidence) { e.SignatureInput += ", b=()"; e.Signature += ", b=:AAAA:" },
			"signature":     func(e *Evidence) { e.Signature = flip(e.Signature) },
			"extra field":   func(e *Evidence) { e.Components["x-admin"] = "1" },
			"derived field": func(e *Evidence) { e.Components["@method"] = "POST" },
			"body":          func(e *Evidence) { e.Body = base64.RawURLEncoding.EncodeToString([]byte("other")) },
			"body padding":  func(e *Evidence) { e.Body += "==" },
		}
		for field := range e.Components {
			changes["changed "+field] = func(e *Evidence) { e.Components[field] += "x" }
			changes["removed "+field] = func(e *Evidence) { delete(e.Components, field) }
		}
		if _, ok := e.Components["signature-agent"]; ok {
			changes["agent member added"] = func(e *Evidence) { e.Components["signature-agent"] += `, b="https://b.example"` }
		}
		for what, change := range changes {
			tampered := e
			tampered.Components = map[string]string{}
			for n, v := range e.Components {
				tampered.Components[n] = v
			}
			change(&tampered)
			require.Error(t, reverify(t, must.Get(json.Marshal(tampered))(t), k), "%s: %s", name, what)
		}
	}
}

func swapScheme(uri string) string {
	if rest, ok := strings.CutPrefix(uri, "https:"); ok {
		return "http:" + rest
	}
	return "https:" + strings.TrimPrefix(uri, "http:")
}

func flip(signature string) string {
	b := []byte(signature)
	i := strings.IndexByte(signature, ':') + 5
	if b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return string(b)
}

func TestEvidence_Limits(t *testing.T) {
	t.Parallel()
	e, k := evidenceCases(t)["parts"]()
	raw := must.Get(json.Marshal(e))(t)
	for name, bad := range map[string]string{
		"empty":          "",
		"array":          "[]",
		"empty object":   "{}",
		"unknown member": `{"extra":1,` + string(raw[1:]),
		"member twice":   `{"type":"HttpMessageSignature",` + string(raw[1:]),
		"text after":     string(raw) + "{}",
		"too large":      strings.Replace(string(raw), `"body":"`, `"body":"`+strings.Repeat("A", MaxEvidence), 1),
		"body too large": strings.Replace(string(raw), `"body":"`, `"body":"`+strings.Repeat("A", 90_000), 1),
		"uri too long":   strings.Replace(string(raw), "lang=en", "lang="+strings.Repeat("A", 9000), 1),
		"fields":         strings.Replace(string(raw), "eip155", strings.Repeat("A", 40_000), 1),
	} {
		require.ErrorIs(t, reverify(t, []byte(bad), k), CodeEvidenceMalformed, name)
	}

	// What cannot be carried is not captured.
	m, body, key, _ := vectorRequest(t)
	v := &Verifier{Keys: anyKey(key), AllowTestKeys: true, Now: clock(epoch)}
	res := must.Get(v.Verify(t.Context(), m, body, WritePolicy()))(t)
	require.ErrorIs(t, must.Err(Capture(m, make([]byte, MaxEvidenceBody+1), res)), CodeEvidenceMalformed)
	m.Status = 200
	require.ErrorIs(t, must.Err(Capture(m, body, res)), CodeEvidenceMalformed)
}
