package key

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"time"
)

// Pair is a private key with its public half. The zero Pair is not a key; make one with Generate…,
// NewPair or ParsePair. A Pair is immutable, safe for concurrent use, and never prints its private
// half.
type Pair struct {
	signer      crypto.Signer
	thumbprint  string
	from, until time.Time
}

// NewPair wraps an ed25519.PrivateKey, *rsa.PrivateKey or *ecdsa.PrivateKey
// (P-256, P-384). It refuses what Check refuses.
func NewPair(signer crypto.Signer) (Pair, error) {
	switch signer.(type) {
	case ed25519.PrivateKey, *rsa.PrivateKey, *ecdsa.PrivateKey:
	default:
		return Pair{}, fmt.Errorf("%w: %T", ErrUnsupported, signer)
	}
	if err := Check(signer.Public()); err != nil {
		return Pair{}, err
	}
	return Pair{signer: signer, thumbprint: Thumbprint(signer.Public())}, nil
}

// GenerateEd25519 makes a new Ed25519 pair. Its thumbprint does not begin with "-", which one in 64 would: command lines take such an
// argument for a flag.
func GenerateEd25519() (Pair, error) {
	for {
		_, priv, err := ed25519.GenerateKey(nil)
		if err != nil {
			return Pair{}, fmt.Errorf("generate Ed25519 key: %w", err)
		}
		if p, err := NewPair(priv); err != nil || p.thumbprint[0] != '-' {
			return p, err
		}
	}
}

// GenerateP256 makes a new ECDSA pair on P-256.
func GenerateP256() (Pair, error) {
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generate P-256 key: %w", err)
	}
	return NewPair(priv)
}

// GenerateRSA makes a new RSA pair; bits is MinRSABits to MaxRSABits. The
// fediverse expects 2048.
func GenerateRSA(bits int) (Pair, error) {
	if bits < MinRSABits || bits > MaxRSABits {
		return Pair{}, fmt.Errorf("%w: %d bits", ErrWeak, bits)
	}
	priv, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return Pair{}, fmt.Errorf("generate RSA key: %w", err)
	}
	return NewPair(priv)
}

// Between returns the pair with the times from which and until which its public key is published as valid (nbf, exp); zero for no bound.
func (p Pair) Between(from, until time.Time) Pair {
	p.from, p.until = from, until
	return p
}

// Bounds are the times of Between.
func (p Pair) Bounds() (from, until time.Time) { return p.from, p.until }

// IsZero reports whether p holds no key.
func (p Pair) IsZero() bool { return p.signer == nil }

// Signer returns the private key.
func (p Pair) Signer() crypto.Signer { return p.signer }

// Public returns the public key: ed25519.PublicKey, *rsa.PublicKey or
// *ecdsa.PublicKey.
func (p Pair) Public() crypto.PublicKey {
	if p.signer == nil {
		return nil
	}
	return p.signer.Public()
}

// Thumbprint returns the RFC 7638 thumbprint, which is the pair's keyid.
func (p Pair) Thumbprint() string { return p.thumbprint }

// String returns the thumbprint of the pair; it never shows the private key.
func (p Pair) String() string { return "key " + p.thumbprint }

// GoString prevents %#v from printing the private key.
func (p Pair) GoString() string { return "key.Pair{" + p.thumbprint + "}" }
