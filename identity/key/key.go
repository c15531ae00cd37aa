// Package key contains the keys that agents, nodes and actors sign with: key pairs, their JWK, PEM
// and Multikey forms, RFC 7638 thumbprints, and the sealing of private keys at rest.
//
// Foreign JWK Sets are parsed by the package's own strict code, entry by entry; jwx (v2) is used
// only to encode JWKs and to read the node's own private key files. The package fetches nothing
// and stores nothing.
package key

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"

	"filippo.io/edwards25519"
)

// RSA moduli shorter than MinRSABits are weak; longer than MaxRSABits cost a
// verifier too much.
const (
	MinRSABits = 2048
	MaxRSABits = 8192
)

// Reasons why a public key is not used. Errors of this package wrap one of them.
var (
	// ErrMalformed: the bytes do not encode a key of the stated kind.
	ErrMalformed = errors.New("key: malformed")
	// ErrWeak: a low-order Ed25519 point, an RSA modulus outside
	// MinRSABits..MaxRSABits, or an RSA exponent other than 65537.
	ErrWeak = errors.New("key: weak")
	// ErrUnsupported: a kind of key that nothing here can verify with.
	ErrUnsupported = errors.New("key: unsupported kind")
	// ErrPrivate: a private member where only public keys belong.
	ErrPrivate = errors.New("key: private member in a public key")
)

// Check reports whether pub may be used to verify signatures. It accepts
// ed25519.PublicKey, *rsa.PublicKey and *ecdsa.PublicKey on P-256 or P-384 and
// returns an error wrapping ErrMalformed, ErrWeak or ErrUnsupported.
func Check(pub crypto.PublicKey) error {
	switch k := pub.(type) {
	case ed25519.PublicKey:
		return checkEd25519(k)
	case *rsa.PublicKey:
		if k == nil || k.N == nil || k.N.Sign() <= 0 {
			return fmt.Errorf("%w: empty RSA modulus", ErrMalformed)
		}
		if n := k.N.BitLen(); n < MinRSABits || n > MaxRSABits {
			return fmt.Errorf("%w: RSA modulus of %d bits, want %d to %d", ErrWeak, n, MinRSABits, MaxRSABits)
		}
		if k.E != 65537 || k.N.Bit(0) == 0 {
			return fmt.Errorf("%w: RSA exponent %d, want 65537 and an odd modulus", ErrWeak, k.E)
		}
		return nil
	case *ecdsa.PublicKey:
		if k == nil || (k.Curve != elliptic.P256() && k.Curve != elliptic.P384()) {
			return fmt.Errorf("%w: curve", ErrUnsupported)
		}
		if _, err := k.ECDH(); err != nil { // refuses points off the curve and at infinity
			return fmt.Errorf("%w: point not on the curve", ErrMalformed)
		}
		return nil
	}
	return fmt.Errorf("%w: %T", ErrUnsupported, pub)
}

// checkEd25519 refuses points that are not canonical and points of low order: with the identity
// point an all-zero S verifies every message, and crypto/ed25519 accepts it.
func checkEd25519(k ed25519.PublicKey) error {
	if len(k) != ed25519.PublicKeySize {
		return fmt.Errorf("%w: Ed25519 key of %d bytes", ErrMalformed, len(k))
	}
	p, err := new(edwards25519.Point).SetBytes(k)
	if err != nil || !bytes.Equal(p.Bytes(), k) {
		return fmt.Errorf("%w: no canonical Ed25519 point", ErrMalformed)
	}
	if new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 1 {
		return fmt.Errorf("%w: Ed25519 point of low order", ErrWeak)
	}
	return nil
}

// Thumbprint returns the RFC 7638 SHA-256 thumbprint of pub in base64url, 43
// characters, or "" for a kind of key that Check does not accept. It does not
// check the key.
func Thumbprint(pub crypto.PublicKey) string {
	b64 := base64.RawURLEncoding.EncodeToString
	var text string // RFC 7638 §3: required members only, sorted, no blanks
	switch k := pub.(type) {
	case ed25519.PublicKey:
		text = `{"crv":"Ed25519","kty":"OKP","x":"` + b64(k) + `"}` // RFC 8037 §2
	case *rsa.PublicKey:
		text = `{"e":"` + b64(big.NewInt(int64(k.E)).Bytes()) + `","kty":"RSA","n":"` + b64(k.N.Bytes()) + `"}`
	case *ecdsa.PublicKey:
		point, err := k.Bytes() // 0x04 ‖ x ‖ y
		if err != nil {
			return ""
		}
		half := (len(point) - 1) / 2
		text = `{"crv":"` + k.Curve.Params().Name + `","kty":"EC","x":"` + b64(point[1:1+half]) + `","y":"` + b64(point[1+half:]) + `"}`
	default:
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return b64(sum[:])
}

// IsPublicTestKey reports whether the private half of the key with this thumbprint is published in
// an RFC, so that everyone can sign with it.
func IsPublicTestKey(thumbprint string) bool {
	switch thumbprint {
	case "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U", // RFC 9421 test-key-ed25519
		"oD0HwocPBSfpNy5W3bpJeyFGY_IQ_YpqxSjQ3Yd-CLA", // RFC 9421 test-key-rsa-pss
		"BHj8s0GPnMEQtkaULIM-PLgEhLBbuGUQ1vMxmBWZzEo", // RFC 9421 test-key-rsa
		"ydQXMtvbsOsZyFir-Y7A8t7fKEM1gbKPvyFkdpu4fvI", // RFC 9421 test-key-ecc-p256
		"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", // RFC 8037 appendix A
		"NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs": // RFC 7517 appendix A.2, RFC 7638 §3.1
		return true
	}
	return false
}
