package pow

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// worked is the worked example that the Go, Python and altcha-lib 2.8.0
// implementations agree on.
func worked() Challenge {
	return Challenge{
		Parameters: Parameters{
			Algorithm: Algorithm, Cost: 1000,
			Data:      Data{Audience: "stoa.example", KeyID: "2026-11-20", Purpose: "contact"},
			ExpiresAt: 1795300000, KeyLength: 32, KeyPrefix: "00",
			Nonce: "000102030405060708090a0b0c0d0e0f", Salt: "101112131415161718191a1b1c1d1e1f",
		},
		Signature: "b9946c59e581b84e1264b260236144b1fe5f67863f42f80aa242997552379910",
	}
}

func TestWorkedExample(t *testing.T) {
	t.Parallel()
	c := worked()
	require.Equal(t, c.Signature, c.Parameters.MAC([]byte("docs-only-hmac-secret")))
	require.True(t, c.Authentic([]byte("docs-only-hmac-secret")))
	require.False(t, c.Authentic([]byte("another secret")))

	s := must.Get(Solve(context.Background(), c))(t)
	require.Equal(t, uint32(247), s.Solution.Counter)
	require.Equal(t, "00f200ab2d9ac7f93f1bcc073f5df4f7ee471668ad21853d8ff8185299da4489", s.Solution.DerivedKey)
	require.True(t, s.Check())
}

func TestCanonical_IsTheEncodersOwn(t *testing.T) {
	t.Parallel()
	p := worked().Parameters
	require.Equal(t, string(p.encode()), string(p.Canonical()))
	for _, s := range []string{"", `quo"te`, `back\slash`, "<&>", "नोड", "\x01", "\u2028"} {
		p.Data.Audience = s
		require.Equal(t, string(p.encode()), string(p.Canonical()), "%q", s)
	}
}

// The counter is the proof; the key only says what it derives.
func TestCheck_CounterAlone(t *testing.T) {
	t.Parallel()
	s := must.Get(Solve(context.Background(), worked()))(t)
	s.Solution = Answer{Counter: s.Solution.Counter}
	raw := must.Get(json.Marshal(s))(t)
	require.NotContains(t, string(raw), "derivedKey")
	got := must.Get(Parse(raw))(t)
	require.True(t, got.Check())
}

func TestParse_AcceptsEachForm(t *testing.T) {
	t.Parallel()
	s := must.Get(Solve(context.Background(), worked()))(t)
	asJSON := must.Get(json.Marshal(s))(t)
	quoted := must.Get(json.Marshal(" " + string(asJSON)))(t)
	for name, raw := range map[string]string{
		"json":          string(asJSON),
		"base64":        s.Encode(),
		"url base64":    base64.RawURLEncoding.EncodeToString(asJSON),
		"quoted base64": `"` + s.Encode() + `"`,
		"quoted json":   string(quoted),
	} {
		got, err := Parse([]byte(raw))
		require.NoError(t, err, name)
		require.Equal(t, s, got, name)
	}
}

func TestParse_Refuses(t *testing.T) {
	t.Parallel()
	s := must.Get(Solve(context.Background(), worked()))(t)
	raw, _ := json.Marshal(s)
	good := string(raw)
	for name, bad := range map[string]string{
		"empty":          "",
		"not base64":     "%%%",
		"a quote alone":  `"`,
		"quoted twice":   `"\"{}\""`,
		"unknown member": strings.Replace(good, `"cost"`, `"extra":1,"cost"`, 1),
		"text behind":    good + "{}",
		"algorithm":      strings.Replace(good, "PBKDF2/SHA-256", "SHA-256", 1),
		"huge cost":      strings.Replace(good, `"cost":1000`, `"cost":100000000`, 1),
		"huge key":       strings.Replace(good, `"keyLength":32`, `"keyLength":100000`, 1),
		"counter":        strings.Replace(good, `"counter":247`, `"counter":-1`, 1),
		"too long":       strings.Repeat("A", 10_000),
	} {
		require.ErrorIs(t, must.Err(Parse([]byte(bad))), ErrShape, name)
	}
}

func TestCheck_RefusesWrongWork(t *testing.T) {
	t.Parallel()
	good := must.Get(Solve(context.Background(), worked()))(t)
	for name, change := range map[string]func(*Solution){
		"other counter":  func(s *Solution) { s.Solution.Counter++ },
		"counter alone":  func(s *Solution) { s.Solution = Answer{Counter: s.Solution.Counter + 1} },
		"other key":      func(s *Solution) { s.Solution.DerivedKey = "00" + strings.Repeat("1", 62) },
		"key w/o prefix": func(s *Solution) { s.Solution.DerivedKey = strings.Repeat("1", 64) },
		"upper case":     func(s *Solution) { s.Solution.DerivedKey = strings.ToUpper(s.Solution.DerivedKey) },
		"bad nonce":      func(s *Solution) { s.Challenge.Parameters.Nonce = "zz" },
	} {
		s := good
		change(&s)
		require.False(t, s.Check(), name)
	}
}

func TestSolve_EndsWithContext(t *testing.T) {
	t.Parallel()
	c := worked()
	c.Parameters.KeyPrefix = "0000000000"
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, must.Err(Solve(ctx, c)), context.Canceled)
}

func FuzzParse(f *testing.F) {
	s, _ := Solve(context.Background(), worked())
	raw, _ := json.Marshal(s)
	f.Add(raw)
	f.Add([]byte(s.Encode()))
	f.Add([]byte(`{"challenge":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Parse(raw)
		if err != nil {
			return
		}
		require.Equal(t, s, must.Get(Parse([]byte(s.Encode())))(t))
	})
}
