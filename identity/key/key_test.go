package key

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func TestVectors_Thumbprints(t *testing.T) {
	t.Parallel()
	b := must.Get(os.ReadFile("testdata/jwk-thumbprints.json"))(t)
	var f struct {
		Cases []struct {
			Name       string
			JWK        json.RawMessage
			Thumbprint string
		}
	}
	require.NoError(t, json.Unmarshal(b, &f))
	require.Len(t, f.Cases, 6)
	for _, c := range f.Cases {
		p, err := ParsePublic(c.JWK)
		require.NoError(t, err, c.Name)
		require.Equal(t, c.Thumbprint, p.Thumbprint, c.Name)
		require.True(t, IsPublicTestKey(p.Thumbprint), c.Name)
	}
}

func pairs(t testing.TB) map[string]Pair {
	t.Helper()
	ed := must.Get(GenerateEd25519())(t)
	p256 := must.Get(GenerateP256())(t)
	rsa := must.Get(GenerateRSA(2048))(t)
	return map[string]Pair{"Ed25519": ed, "P-256": p256, "RSA": rsa}
}

func TestPair_FileRoundTrip(t *testing.T) {
	t.Parallel()
	for name, p := range pairs(t) {
		b, err := p.MarshalPrivate()
		require.NoError(t, err, name)
		back, err := ParsePair(b)
		require.NoError(t, err, name)
		require.Equal(t, p.Thumbprint(), back.Thumbprint(), name)
		require.True(t, p.Signer().(interface{ Equal(crypto.PrivateKey) bool }).Equal(back.Signer()), name)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", p, p, p, p), "d:", name)
		require.Contains(t, fmt.Sprintf("%#v", p), p.Thumbprint())
		require.ErrorIs(t, must.Err(ParsePublic(b)), ErrPrivate, name)
	}
	require.True(t, Pair{}.IsZero())
	require.ErrorIs(t, must.Err(Pair{}.MarshalPrivate()), ErrMalformed)
}

func TestParsePair_Refuses(t *testing.T) {
	t.Parallel()
	one := must.Get(GenerateEd25519())(t)
	two := must.Get(GenerateEd25519())(t)
	b := must.Get(one.MarshalPrivate())(t)
	var m, other map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	require.NoError(t, json.Unmarshal(must.Get(two.MarshalPrivate())(t), &other))
	m["x"] = other["x"] // signing with this pair would give the seed away
	mixed := must.Get(json.Marshal(m))(t)
	public := must.Get(MarshalSet([]Public{one.Published()}))(t)
	for name, in := range map[string]string{
		"another key's x": string(mixed), "a set": string(public), "nothing": "", "text": "secret", "null": "null",
		"public": `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`,
	} {
		require.ErrorIs(t, must.Err(ParsePair([]byte(in))), ErrMalformed, name)
	}
}

func TestSet_RoundTrip(t *testing.T) {
	t.Parallel()
	from, until := time.Unix(1795176000, 0), time.Unix(1810728000, 0)
	var keys []Public
	for _, p := range pairs(t) {
		k := p.Published()
		k.NotBefore, k.Expires = from, until
		keys = append(keys, k)
	}
	b := must.Get(MarshalSet(keys))(t)
	require.NotContains(t, string(b), `"d"`)
	set := must.Get(ParseSet(b))(t)
	require.Equal(t, Set{Keys: keys}, set)
	require.Equal(t, keys[0], must.Get(ParsePublic(must.Get(MarshalPublic(keys[0]))(t)))(t))
	found, ok := set.Find(keys[1].Thumbprint)
	require.True(t, ok)
	require.Equal(t, keys[1], found)
	_, ok = set.Find("x")
	require.False(t, ok)

	require.JSONEq(t, `{"keys":[]}`, string(must.Get(MarshalSet(nil))(t)))
	pair := must.Get(GenerateEd25519())(t)
	require.ErrorIs(t, must.Err(MarshalSet([]Public{{Key: pair.Signer()}})), ErrUnsupported, "a private key never gets into a set")
}

const edJWK = `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`

// One bad entry does not spoil a set, and is not used.
func TestParseSet_EntryByEntry(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]string{
		"unknown kty":     `{"kty":"AKP","pub":"x"}`,
		"symmetric":       `{"kty":"oct","k":"AAAA"}`,
		"private member":  strings.Replace(edJWK, `{`, `{"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",`, 1),
		"other curve":     strings.Replace(edJWK, "Ed25519", "X25519", 1),
		"curve type":      strings.Replace(edJWK, `"Ed25519"`, `1`, 1),
		"no x":            `{"kty":"OKP","crv":"Ed25519"}`,
		"x null":          `{"kty":"OKP","crv":"Ed25519","x":null}`,
		"x padded":        strings.Replace(edJWK, `URo"`, `URo="`, 1),
		"x short":         strings.Replace(edJWK, `URo"`, `U"`, 1),
		"identity point":  `{"kty":"OKP","crv":"Ed25519","x":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`,
		"order 2 point":   `{"kty":"OKP","crv":"Ed25519","x":"7P___________________________________________38"}`,
		"not canonical":   `{"kty":"OKP","crv":"Ed25519","x":"7v___________________________________________38"}`,
		"not on curve":    `{"kty":"EC","crv":"P-256","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","y":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`,
		"short EC":        `{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}`,
		"P-521":           `{"kty":"EC","crv":"P-521","x":"AAAA","y":"AAAA"}`,
		"RSA 1024":        `{"kty":"RSA","e":"AQAB","n":"` + strings.Repeat("_", 171) + `"}`,
		"RSA exponent 3":  `{"kty":"RSA","e":"Aw","n":"` + strings.Repeat("_", 342) + `"}`,
		"RSA long e":      `{"kty":"RSA","e":"AQABAQAB","n":"` + strings.Repeat("_", 342) + `"}`,
		"RSA leading 0":   `{"kty":"RSA","e":"AAEAAQ","n":"` + strings.Repeat("_", 342) + `"}`,
		"exp is a string": strings.Replace(edJWK, `{`, `{"exp":"soon",`, 1),
		"kid is a number": strings.Replace(edJWK, `{`, `{"kid":1,`, 1),
		"not an object":   `7`,
		"null":            `null`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Error(t, must.Err(ParsePublic([]byte(entry))))
			set := must.Get(ParseSet([]byte(`{"keys":[` + entry + `,` + edJWK + `]}`)))(t)
			require.Equal(t, 1, set.Ignored)
			require.Len(t, set.Keys, 1)
		})
	}
}

func TestParseSet_Refuses(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"empty": "", "array": "[]", "null": "null", "no keys": "{}", "keys null": `{"keys":null}`, "keys object": `{"keys":{}}`,
		"keys twice": `{"keys":[],"keys":[` + edJWK + `]}`, "other case": `{"Keys":[]}`, "text after": `{"keys":[]} x`,
		"member twice in a key": `{"keys":[{"kty":"OKP","kty":"EC"}]}`, "too large": `{"keys":[]}` + strings.Repeat(" ", MaxSetBytes),
	} {
		require.ErrorIs(t, must.Err(ParseSet([]byte(in))), ErrMalformed, name)
	}
	set := must.Get(ParseSet([]byte(`{"keys":[` + strings.Repeat(edJWK+",", 20) + edJWK + `]}`)))(t)
	require.Len(t, set.Keys, MaxSetKeys)
	require.Equal(t, 5, set.Ignored)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	small := must.Get(rsa.GenerateKey(rand.Reader, 1024))(t)
	for name, tc := range map[string]struct {
		pub  crypto.PublicKey
		want error
	}{
		"nil": {nil, ErrUnsupported}, "nil RSA": {(*rsa.PublicKey)(nil), ErrMalformed}, "empty RSA": {&rsa.PublicKey{}, ErrMalformed},
		"small RSA": {&small.PublicKey, ErrWeak}, "text": {"x", ErrUnsupported}, "empty Ed25519": {ed25519.PublicKey{}, ErrMalformed},
	} {
		require.ErrorIs(t, Check(tc.pub), tc.want, name)
	}
	require.ErrorIs(t, must.Err(NewPair(small)), ErrWeak)
	require.ErrorIs(t, must.Err(GenerateRSA(1024)), ErrWeak)
	require.Empty(t, Thumbprint("x"))
}

func TestMultikey(t *testing.T) {
	t.Parallel()
	// The example of FEP-c390.
	const mk = "z6MkrJVnaZkeFzdQyMZu1cgjg7k1pZZ6pvBQ7XJPt4swbTQ2"
	pub := must.Get(ParseMultikey(mk))(t)
	must.Get(ParseMultikey("z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"))(t) // did:key specification
	require.Equal(t, mk, Multikey(pub))
	require.Equal(t, "did:key:"+mk+"#"+mk, DIDKeyMethod(pub))
	for _, did := range []string{DIDKey(pub), DIDKeyMethod(pub)} {
		require.Equal(t, pub, must.Get(ParseDIDKey(did))(t))
	}
	for name, tc := range map[string]struct {
		in   string
		want error
	}{
		"empty":          {"", ErrMalformed},
		"base64url":      {"u7QE", ErrMalformed},
		"not base58":     {"z0OIl", ErrMalformed},
		"P-256":          {"zDnaerx9CtbPJ1q36T5Ln5wYt3MQYeGRG5ehnPAmxcf5mDZpv", ErrUnsupported},
		"too long":       {mk + strings.Repeat("1", 40), ErrMalformed},
		"low order":      {Multikey(ed25519.PublicKey(append([]byte{1}, make([]byte, 31)...))), ErrWeak},
		"other fragment": {"did:key:" + mk + "#x", ErrMalformed},
		"did:web":        {"did:web:a.example", ErrMalformed},
	} {
		_, err := ParseMultikey(tc.in)
		if strings.HasPrefix(tc.in, "did:") {
			_, err = ParseDIDKey(tc.in)
		}
		require.ErrorIs(t, err, tc.want, name)
	}
}

func TestPEM(t *testing.T) {
	t.Parallel()
	for name, p := range pairs(t) {
		text, err := PublicPEM(p.Public())
		require.NoError(t, err, name)
		back, err := ParsePublicPEM("\n" + text + "\n")
		require.NoError(t, err, name)
		require.Equal(t, p.Public(), back, name)
		for what, bad := range map[string]string{
			"two": text + text, "before": "x" + text, "cut": text[:len(text)/2], "empty": "", "type": strings.ReplaceAll(text, "PUBLIC", "PRIVATE"),
			"long": text + strings.Repeat("\n ", maxPEM) + "x",
		} {
			require.Error(t, must.Err(ParsePublicPEM(bad)), what)
		}
	}
}

func TestSealer(t *testing.T) {
	t.Parallel()
	s := must.Get(NewSealer(make([]byte, MasterSize)))(t)
	sealed := s.Seal("profile-key:asha", []byte("secret"))
	require.Len(t, sealed, len("secret")+29)
	require.NotEqual(t, sealed, s.Seal("profile-key:asha", []byte("secret")))
	require.Equal(t, "secret", string(must.Get(s.Open("profile-key:asha", sealed))(t)))
	require.ErrorIs(t, must.Err(s.Open("profile-key:bo", sealed)), ErrOpen)
	for i := range sealed {
		bad := append([]byte(nil), sealed...)
		bad[i] ^= 1
		require.ErrorIs(t, must.Err(s.Open("profile-key:asha", bad)), ErrOpen)
	}
	require.ErrorIs(t, must.Err(s.Open("profile-key:asha", sealed[:20])), ErrOpen)
	require.Error(t, must.Err(NewSealer([]byte("short"))))
}

func TestMasterFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "master.key")
	_, err := LoadMaster(path)
	require.ErrorIs(t, err, fs.ErrNotExist)

	// Many starts at once agree on one key.
	sealers := make([]*Sealer, 8)
	var wg sync.WaitGroup
	for i := range sealers {
		wg.Go(func() {
			s, err := LoadOrCreateMaster(path)
			if err == nil {
				sealers[i] = s
			}
		})
	}
	wg.Wait()
	sealed := sealers[0].Seal("p", []byte("x"))
	for _, s := range sealers {
		must.Get(s.Open("p", sealed))(t)
	}
	info := must.Get(os.Stat(path))(t)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	require.Len(t, must.Get(os.ReadDir(dir))(t), 1, "no temporary file stays")

	require.NoError(t, os.Chmod(path, 0o640))
	require.ErrorContains(t, must.Err(LoadOrCreateMaster(path)), "0600")
	bad := filepath.Join(dir, "bad.key")
	for _, text := range []string{"", "short\n", strings.Repeat("A", 300)} {
		require.NoError(t, os.WriteFile(bad, []byte(text), 0o600))
		_, err = LoadOrCreateMaster(bad)
		require.Error(t, err)
		require.False(t, errors.Is(err, fs.ErrNotExist))
	}
	require.Error(t, must.Err(LoadOrCreateMaster(filepath.Join(dir, "missing", "master.key"))))
}

func FuzzParseSet(f *testing.F) {
	f.Add([]byte(`{"keys":[` + edJWK + `]}`))
	b := must.Get(os.ReadFile("testdata/jwk-thumbprints.json"))(f)
	var v struct {
		Cases []struct{ JWK json.RawMessage }
	}
	require.NoError(f, json.Unmarshal(b, &v))
	for _, c := range v.Cases {
		f.Add([]byte(`{"keys":[` + string(c.JWK) + `]}`))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		set, err := ParseSet(b)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(set.Keys), MaxSetKeys)
		out := make([]Public, 0, len(set.Keys))
		for _, k := range set.Keys {
			require.NoError(t, Check(k.Key))
			out = append(out, Public{Key: k.Key, Thumbprint: k.Thumbprint, ID: k.Thumbprint, Use: "sig"})
		}
		text, err := MarshalSet(out)
		if err != nil {
			return // the same key twice
		}
		require.ElementsMatch(t, out, must.Get(ParseSet(text))(t).Keys)
	})
}

func FuzzMultikey(f *testing.F) {
	f.Add("z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK")
	f.Fuzz(func(t *testing.T, s string) {
		if pub, err := ParseMultikey(s); err == nil {
			require.Equal(t, s, Multikey(pub))
		}
	})
}

func TestGenerateEd25519_Argument(t *testing.T) {
	t.Parallel()
	for range 500 { // without the rule one in 64 begins so
		p := must.Get(GenerateEd25519())(t)
		require.NotEqual(t, byte('-'), p.Thumbprint()[0])
	}
}
