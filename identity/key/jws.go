package key

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
)

// SignJWS signs a detached payload (RFC 7515 appendix F): an Ed25519 pair as EdDSA (RFC 8037), a
// P-256 pair as ES256. The header contains typ JOSE, kid and, unless it is "", jku. The same
// payload always gets the same signature. Other pairs give an error that wraps ErrUnsupported.
func (p Pair) SignJWS(payload []byte, kid, jku string) (protected, signature string, err error) {
	return p.signJWS(payload, jwsHeader{Jku: jku, Kid: kid, Typ: "JOSE"})
}

// A jwsHeader is the protected header of what [Pair.signJWS] makes.
type jwsHeader struct {
	Alg string `json:"alg"`
	Jku string `json:"jku,omitempty"`
	Kid string `json:"kid"`
	Typ string `json:"typ"`
}

func (p Pair) signJWS(payload []byte, header jwsHeader) (protected, signature string, err error) {
	switch k := p.signer.(type) {
	case ed25519.PrivateKey:
		header.Alg = "EdDSA"
	case *ecdsa.PrivateKey:
		if k.Curve != elliptic.P256() {
			return "", "", fmt.Errorf("%w: ES256 needs P-256", ErrUnsupported)
		}
		header.Alg = "ES256"
	default:
		return "", "", fmt.Errorf("%w: %T signs no JWS here", ErrUnsupported, p.signer)
	}
	raw, err := json.Marshal(header)
	if err != nil {
		return "", "", fmt.Errorf("write JWS header: %w", err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	protected = b64(raw)
	input := []byte(protected + "." + b64(payload))
	sum := sha256.Sum256(input)
	var sig []byte
	if header.Alg == "EdDSA" {
		sig, err = p.signer.Sign(nil, input, crypto.Hash(0))
	} else if sig, err = p.signer.Sign(nil, sum[:], crypto.SHA256); err == nil { // RFC 6979: no randomness
		sig, err = fixed(sig, 32)
	}
	if err != nil {
		return "", "", fmt.Errorf("sign JWS: %w", err)
	}
	return protected, b64(sig), nil
}

// fixed turns an ASN.1 signature into r ‖ s of size bytes each (RFC 7518 §3.4).
func fixed(der []byte, size int) ([]byte, error) {
	var n struct{ R, S *big.Int }
	if rest, err := asn1.Unmarshal(der, &n); err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("%w: ECDSA signature", ErrMalformed)
	}
	out := make([]byte, 2*size)
	n.R.FillBytes(out[:size])
	n.S.FillBytes(out[size:])
	return out, nil
}

// VerifyJWS verifies a signature of [Pair.SignJWS] that was made with an Ed25519 key. Errors wrap
// ErrMalformed, or ErrUnsupported for another algorithm.
func VerifyJWS(pub crypto.PublicKey, payload []byte, protected, signature string) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(protected)
	if err != nil {
		return fmt.Errorf("%w: JWS header", ErrMalformed)
	}
	var header struct{ Alg string }
	if err := json.Unmarshal(raw, &header); err != nil {
		return fmt.Errorf("%w: JWS header", ErrMalformed)
	}
	own, ok := pub.(ed25519.PublicKey)
	if !ok || header.Alg != "EdDSA" {
		return fmt.Errorf("%w: only EdDSA is verified here", ErrUnsupported)
	}
	sig, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || !ed25519.Verify(own, []byte(protected+"."+base64.RawURLEncoding.EncodeToString(payload)), sig) {
		return fmt.Errorf("%w: JWS signature", ErrMalformed)
	}
	return nil
}
