package httpsig

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"math/big"

	"stoa/identity/key"
)

// Algorithm is a name of the HTTP Signature Algorithms registry (RFC 9421 §6.2).
// JOSE names are never used.
type Algorithm string

const (
	Ed25519         Algorithm = "ed25519"
	ECDSAP256SHA256 Algorithm = "ecdsa-p256-sha256"
	ECDSAP384SHA384 Algorithm = "ecdsa-p384-sha384"
	RSAPSSSHA512    Algorithm = "rsa-pss-sha512"
	RSAv15SHA256    Algorithm = "rsa-v1_5-sha256"
	hmacSHA256      Algorithm = "hmac-sha256" // known by name only; never verified
)

func (a Algorithm) known() bool {
	switch a {
	case Ed25519, ECDSAP256SHA256, ECDSAP384SHA384, RSAPSSSHA512, RSAv15SHA256, hmacSHA256:
		return true
	}
	return false
}

// Key verifies signatures with one public key and one algorithm. Implementations
// are safe for concurrent use.
type Key interface {
	Algorithm() Algorithm
	// Verify returns nil, CodeSignatureMalformed for a signature of the wrong
	// length, or CodeSignatureInvalid. After another error it is not known.
	Verify(base, sig []byte) error
	Thumbprint() string // RFC 7638; of an Ethereum account its name by CAIP-10
	Public() crypto.PublicKey
}

// NewKey checks a public key: ed25519.PublicKey, *ecdsa.PublicKey on P-256 or P-384, or
// *rsa.PublicKey, which then verifies rsa-pss-sha512, the algorithm of Web Bot Auth. For RSA keys
// of the fediverse use NewKeyFor.
//
// The error is an *Error with CodeKeyMalformed, CodeKeyWeak or CodeAlgorithmUnsupported. Making a
// key costs more than a map lookup, so reuse it.
func NewKey(pub crypto.PublicKey) (Key, error) { return NewKeyFor(pub, "") }

// NewKeyFor is NewKey with an explicit algorithm, which only RSA keys need: pass RSAv15SHA256 for
// actors of the fediverse. An algorithm that does not fit the type of key gives
// CodeAlgorithmMismatch; "" is the type's default.
func NewKeyFor(pub crypto.PublicKey, alg Algorithm) (Key, error) {
	if err := key.Check(pub); err != nil {
		code := CodeKeyMalformed
		switch {
		case errors.Is(err, key.ErrWeak):
			code = CodeKeyWeak
		case errors.Is(err, key.ErrUnsupported):
			code = CodeAlgorithmUnsupported
		}
		return nil, &Error{Code: code, Err: err}
	}
	thumb := key.Thumbprint(pub)
	var own Key
	switch pub := pub.(type) {
	case ed25519.PublicKey:
		own = &ed25519Key{pub: pub, thumb: thumb}
	case *ecdsa.PublicKey:
		own = &ecdsaKey{pub: pub, thumb: thumb}
	case *rsa.PublicKey:
		if alg == "" {
			alg = RSAPSSSHA512
		}
		if alg == RSAPSSSHA512 || alg == RSAv15SHA256 {
			own = &rsaKey{pub: pub, alg: alg, thumb: thumb}
		}
	}
	if own == nil || alg != "" && alg != own.Algorithm() {
		return nil, fail(CodeAlgorithmMismatch, fmt.Sprintf("%q does not belong to this kind of key", alg))
	}
	return own, nil
}

type ed25519Key struct {
	pub   ed25519.PublicKey
	thumb string
}

func (k *ed25519Key) Algorithm() Algorithm     { return Ed25519 }
func (k *ed25519Key) Thumbprint() string       { return k.thumb }
func (k *ed25519Key) Public() crypto.PublicKey { return k.pub }

func (k *ed25519Key) Verify(base, sig []byte) error {
	if len(sig) != ed25519.SignatureSize {
		return CodeSignatureMalformed
	}
	if !ed25519.Verify(k.pub, base, sig) {
		return CodeSignatureInvalid
	}
	return nil
}

type ecdsaKey struct {
	pub   *ecdsa.PublicKey
	thumb string
}

func (k *ecdsaKey) Thumbprint() string       { return k.thumb }
func (k *ecdsaKey) Public() crypto.PublicKey { return k.pub }

func (k *ecdsaKey) Algorithm() Algorithm {
	if k.pub.Curve == elliptic.P384() {
		return ECDSAP384SHA384
	}
	return ECDSAP256SHA256
}

// Verify expects r ‖ s, each as long as the field, not ASN.1 (RFC 9421 §3.3.4).
func (k *ecdsaKey) Verify(base, sig []byte) error {
	size := (k.pub.Curve.Params().BitSize + 7) / 8
	if len(sig) != 2*size {
		return CodeSignatureMalformed
	}
	r, s := new(big.Int).SetBytes(sig[:size]), new(big.Int).SetBytes(sig[size:])
	if !ecdsa.Verify(k.pub, ecdsaDigest(k.pub.Curve, base), r, s) {
		return CodeSignatureInvalid
	}
	return nil
}

func ecdsaDigest(curve elliptic.Curve, base []byte) []byte {
	if curve == elliptic.P384() {
		sum := sha512.Sum384(base)
		return sum[:]
	}
	sum := sha256.Sum256(base)
	return sum[:]
}

type rsaKey struct {
	pub   *rsa.PublicKey
	alg   Algorithm
	thumb string
}

func (k *rsaKey) Algorithm() Algorithm     { return k.alg }
func (k *rsaKey) Thumbprint() string       { return k.thumb }
func (k *rsaKey) Public() crypto.PublicKey { return k.pub }

// pssOptions is RFC 9421 §3.3.1: MGF1 with SHA-512 and a salt of 64 bytes.
var pssOptions = &rsa.PSSOptions{SaltLength: 64, Hash: crypto.SHA512}

func (k *rsaKey) Verify(base, sig []byte) error {
	if len(sig) != k.pub.Size() {
		return CodeSignatureMalformed
	}
	var err error
	if k.alg == RSAPSSSHA512 {
		sum := sha512.Sum512(base)
		err = rsa.VerifyPSS(k.pub, crypto.SHA512, sum[:], sig, pssOptions)
	} else {
		sum := sha256.Sum256(base)
		err = rsa.VerifyPKCS1v15(k.pub, crypto.SHA256, sum[:], sig)
	}
	if err != nil {
		return CodeSignatureInvalid
	}
	return nil
}
