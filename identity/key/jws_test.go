package key

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// TestSignJWS checks against another implementation, and that a signature of the
// same bytes never changes.
func TestSignJWS(t *testing.T) {
	t.Parallel()
	ed := must.Get(GenerateEd25519())(t)
	p256 := must.Get(GenerateP256())(t)
	payload := []byte(`{"name":"Asha"}`)
	for alg, pair := range map[jwa.SignatureAlgorithm]Pair{jwa.EdDSA: ed, jwa.ES256: p256} {
		protected, signature, err := pair.SignJWS(payload, "k1", "https://node.example/jwks.json")
		require.NoError(t, err)
		compact := protected + "." + base64.RawURLEncoding.EncodeToString(payload) + "." + signature
		require.Equal(t, payload, must.Get(jws.Verify([]byte(compact), jws.WithKey(alg, pair.Public())))(t))
		header := must.Get(base64.RawURLEncoding.DecodeString(protected))(t)
		require.JSONEq(t, `{"alg":"`+alg.String()+`","jku":"https://node.example/jwks.json","kid":"k1","typ":"JOSE"}`, string(header))
		_, again, err := pair.SignJWS(payload, "k1", "https://node.example/jwks.json")
		require.NoError(t, err)
		require.Equal(t, signature, again)
		_, err = jws.Verify([]byte(strings.Replace(compact, protected, protected[:len(protected)-2]+"AA", 1)), jws.WithKey(alg, pair.Public()))
		require.Error(t, err)
	}
	rsa := must.Get(GenerateRSA(MinRSABits))(t)
	_, _, err := rsa.SignJWS(payload, "k1", "")
	require.ErrorIs(t, err, ErrUnsupported)
	_, _, err = Pair{}.SignJWS(payload, "k1", "")
	require.ErrorIs(t, err, ErrUnsupported)
}
