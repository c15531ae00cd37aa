package key

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/stretchr/testify/require"
)

// TestSignJWS checks against another implementation, and that a signature of the
// same bytes never changes.
func TestSignJWS(t *testing.T) {
	t.Parallel()
	ed, err := GenerateEd25519()
	require.NoError(t, err)
	p256, err := GenerateP256()
	require.NoError(t, err)
	payload := []byte(`{"name":"Asha"}`)
	for alg, pair := range map[jwa.SignatureAlgorithm]Pair{jwa.EdDSA: ed, jwa.ES256: p256} {
		protected, signature, err := pair.SignJWS(payload, "k1", "https://node.example/jwks.json")
		require.NoError(t, err)
		compact := protected + "." + base64.RawURLEncoding.EncodeToString(payload) + "." + signature
		got, err := jws.Verify([]byte(compact), jws.WithKey(alg, pair.Public()))
		require.NoError(t, err)
		require.Equal(t, payload, got)
		header, err := base64.RawURLEncoding.DecodeString(protected)
		require.NoError(t, err)
		require.JSONEq(t, `{"alg":"`+alg.String()+`","jku":"https://node.example/jwks.json","kid":"k1","typ":"JOSE"}`, string(header))
		_, again, err := pair.SignJWS(payload, "k1", "https://node.example/jwks.json")
		require.NoError(t, err)
		require.Equal(t, signature, again)
		_, err = jws.Verify([]byte(strings.Replace(compact, protected, protected[:len(protected)-2]+"AA", 1)), jws.WithKey(alg, pair.Public()))
		require.Error(t, err)
	}
	rsa, err := GenerateRSA(MinRSABits)
	require.NoError(t, err)
	_, _, err = rsa.SignJWS(payload, "k1", "")
	require.ErrorIs(t, err, ErrUnsupported)
	_, _, err = Pair{}.SignJWS(payload, "k1", "")
	require.ErrorIs(t, err, ErrUnsupported)
}
