package a2aapi

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/identity/strictjson"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
)

// TestSign_Vectors drives the signing vectors unchanged: the canonical bytes, the
// EdDSA signatures bit for bit, and ES256 against the published key, since the
// vectors' own were made with randomness.
func TestSign_Vectors(t *testing.T) {
	t.Parallel()
	raw := must.Get(os.ReadFile("testdata/agent-card-signing.json"))(t)
	var file struct {
		Seed    string `json:"ed25519_seed_hex"`
		D       string `json:"p256_d_hex"`
		JWKS    json.RawMessage
		Vectors []struct {
			ID        string
			Card      json.RawMessage
			Canonical string `json:"canonical_utf8"`
			Sum       string `json:"canonical_sha256"`
			Legacy    string `json:"legacy_ascii_sha256"`
		}
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	const jku = "https://node.example/.well-known/service-agents/abc/jwks.json"
	seed := must.Get(hex.DecodeString(file.Seed))(t)
	ed := must.Get(key.NewPair(ed25519.NewKeyFromSeed(seed)))(t)
	d := must.Get(hex.DecodeString(file.D))(t)
	private := must.Get(ecdsa.ParseRawPrivateKey(elliptic.P256(), d))(t)
	p256 := must.Get(key.NewPair(private))(t)
	set := must.Get(key.ParseSet(file.JWKS))(t)
	require.True(t, set.Keys[1].Key.(*ecdsa.PublicKey).Equal(p256.Public()))
	keys := []CardKey{{ed, "ed-1", jku}, {p256, "p256-1", jku}}

	for _, v := range file.Vectors {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			members := must.JSON[map[string]json.RawMessage](v.Card)(t)
			want := must.JSON[[]a2a.Signature](members["signatures"])(t)
			delete(members, "signatures")
			payload := must.Get(json.Marshal(members))(t)
			canonical := must.Get(strictjson.Canonical(payload))(t)
			require.Equal(t, v.Canonical, string(canonical))
			require.Equal(t, v.Sum, sum(canonical))
			require.Equal(t, v.Legacy, sum(escape(canonical)))

			got := must.Get(sign(payload, keys))(t)
			require.Len(t, got, len(want))
			for i := range want {
				require.Equal(t, want[i].Protected, got[i].Protected)
				if i != 1 {
					require.Equal(t, want[i], got[i])
					continue
				}
				for _, s := range []a2a.Signature{want[i], got[i]} { // ES256
					require.True(t, verifyES256(t, private.PublicKey, s, canonical))
					require.False(t, verifyES256(t, private.PublicKey, s, append(canonical[:len(canonical):len(canonical)], ' ')))
				}
			}
		})
	}
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func verifyES256(t *testing.T, pub ecdsa.PublicKey, s a2a.Signature, payload []byte) bool {
	t.Helper()
	sig := must.Get(base64.RawURLEncoding.DecodeString(s.Signature))(t)
	require.Len(t, sig, 64)
	digest := sha256.Sum256([]byte(s.Protected + "." + base64.RawURLEncoding.EncodeToString(payload)))
	return ecdsa.Verify(&pub, digest[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
}
