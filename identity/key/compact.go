package key

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"stoa/identity/strictjson"
)

// ErrUnknownKey: the key that a signature names is not in the set.
var ErrUnknownKey = errors.New("key: not in the set")

// SignCompact returns a payload as a compact JWS (RFC 7515 §7.1), whose header has the pair's
// thumbprint as kid, and typ. The algorithms are those of [Pair.SignJWS].
func (p Pair) SignCompact(payload []byte, typ string) (string, error) {
	protected, signature, err := p.signJWS(payload, jwsHeader{Kid: p.thumbprint, Typ: typ})
	if err != nil {
		return "", err
	}
	return protected + "." + base64.RawURLEncoding.EncodeToString(payload) + "." + signature, nil
}

// VerifyCompact verifies a compact JWS of at most maxBytes with the key of the set that its kid names
// by thumbprint, and returns the payload and that key. The header must have the type typ, and alg must
// be that of the key: EdDSA for Ed25519, ES256 for P-256. A key outside its nbf and exp is not used.
// Errors wrap ErrMalformed, ErrUnsupported or ErrUnknownKey.
func (s Set) VerifyCompact(token, typ string, maxBytes int, now time.Time) (payload []byte, k Public, err error) {
	parts := strings.Split(token, ".")
	if len(token) > maxBytes || len(parts) != 3 {
		return nil, k, fmt.Errorf("%w: not a compact JWS of at most %d bytes", ErrMalformed, maxBytes)
	}
	var raw [3][]byte
	for i, part := range parts {
		if raw[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return nil, k, fmt.Errorf("%w: part %d of the JWS is not base64url", ErrMalformed, i+1)
		}
	}
	var header struct {
		Alg  string   `json:"alg"`
		Kid  string   `json:"kid"`
		Typ  string   `json:"typ"`
		Crit []string `json:"crit"`
	}
	if err := strictjson.DecodeLoose(raw[0], &header); err != nil {
		return nil, k, fmt.Errorf("%w: header of the JWS", ErrMalformed)
	}
	if header.Typ != typ || header.Crit != nil { // RFC 7515 §4.1.11: what is critical is not understood here
		return nil, k, fmt.Errorf("%w: the header says typ %q, want %q", ErrUnsupported, header.Typ, typ)
	}
	k, ok := s.Find(header.Kid)
	if !ok || !k.Expires.IsZero() && !now.Before(k.Expires) || now.Before(k.NotBefore) {
		return nil, k, fmt.Errorf("%w: %q", ErrUnknownKey, header.Kid)
	}
	input := []byte(parts[0] + "." + parts[1])
	good := false
	switch pub := k.Key.(type) {
	case ed25519.PublicKey:
		good = header.Alg == "EdDSA" && ed25519.Verify(pub, input, raw[2])
	case *ecdsa.PublicKey:
		if header.Alg == "ES256" && len(raw[2]) == 64 && pub.Curve.Params().BitSize == 256 {
			sum := sha256.Sum256(input)
			good = ecdsa.Verify(pub, sum[:], new(big.Int).SetBytes(raw[2][:32]), new(big.Int).SetBytes(raw[2][32:]))
		}
	default:
		return nil, k, fmt.Errorf("%w: %T verifies no JWS here", ErrUnsupported, k.Key)
	}
	if !good {
		return nil, k, fmt.Errorf("%w: the signature does not match", ErrMalformed)
	}
	return raw[1], k, nil
}
