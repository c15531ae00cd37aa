package erc8004

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"filippo.io/edwards25519"
)

// A Key is one message key of a record: an ed25519.PublicKey or an
// *ecdsa.PublicKey on P-256, with its RFC 7638 thumbprint.
type Key struct {
	Thumbprint string // 43 characters of base64url
	Public     crypto.PublicKey
}

// Entries of a record: a multicodec varint, then the key.
const (
	codecEd25519 = "\xed\x01" // 0xed, 32 bytes follow
	codecP256    = "\x80\x24" // 0x1200, 33 bytes follow: the compressed point
)

// NewKey returns a Key for an ed25519.PublicKey or an *ecdsa.PublicKey on P-256. Other keys,
// points off the curve and points of small order are errors.
func NewKey(public crypto.PublicKey) (Key, error) {
	switch k := public.(type) {
	case ed25519.PublicKey:
		if len(k) != ed25519.PublicKeySize {
			return Key{}, fmt.Errorf("ed25519 key: want %d bytes, have %d", ed25519.PublicKeySize, len(k))
		}
		p, err := new(edwards25519.Point).SetBytes(k)
		if err != nil || !bytes.Equal(p.Bytes(), k) {
			return Key{}, fmt.Errorf("ed25519 key is not a canonical point of the curve")
		}
		// A point of small order verifies signatures that nobody made.
		if new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 1 {
			return Key{}, fmt.Errorf("ed25519 key has small order")
		}
		return Key{thumbprint(`{"crv":"Ed25519","kty":"OKP","x":"` + b64(k) + `"}`), k}, nil
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return Key{}, fmt.Errorf("ecdsa key: want curve P-256")
		}
		point, err := k.Bytes() // 04 | x | y; refuses points off the curve
		if err != nil {
			return Key{}, fmt.Errorf("ecdsa key: %w", err)
		}
		return Key{thumbprint(`{"crv":"P-256","kty":"EC","x":"` + b64(point[1:33]) + `","y":"` + b64(point[33:]) + `"}`), k}, nil
	}
	return Key{}, fmt.Errorf("message key: want Ed25519 or P-256, have %T", public)
}

// appendEntry appends the key in the form of a record entry.
func (k Key) appendEntry(b []byte) []byte {
	switch p := k.Public.(type) {
	case ed25519.PublicKey:
		return append(append(b, codecEd25519...), p...)
	case *ecdsa.PublicKey:
		point, _ := p.Bytes() // checked by NewKey
		b = append(append(b, codecP256...), 2|point[64]&1)
		return append(b, point[1:33]...)
	}
	return b
}

// parseEntry parses one record entry and returns the remaining bytes.
func parseEntry(b []byte) (Key, []byte, error) {
	if len(b) < 2 {
		return Key{}, nil, fmt.Errorf("short entry")
	}
	codec, rest := string(b[:2]), b[2:]
	switch {
	case codec == codecEd25519 && len(rest) >= 32:
		k, err := NewKey(ed25519.PublicKey(append([]byte(nil), rest[:32]...)))
		return k, rest[32:], err
	case codec == codecP256 && len(rest) >= 33:
		x, y := elliptic.UnmarshalCompressed(elliptic.P256(), rest[:33])
		if x == nil {
			return Key{}, nil, fmt.Errorf("p256 key is not a point on the curve")
		}
		point := append(make([]byte, 1, 65), x.FillBytes(make([]byte, 32))...)
		point[0] = 4
		pub, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(point, y.FillBytes(make([]byte, 32))...))
		if err != nil {
			return Key{}, nil, err
		}
		k, err := NewKey(pub)
		return k, rest[33:], err
	case codec == codecEd25519 || codec == codecP256:
		return Key{}, nil, fmt.Errorf("short entry")
	}
	return Key{}, nil, fmt.Errorf("unknown codec %x", codec)
}

// thumbprint hashes the canonical JWK (RFC 7638 §3.3): the required members in
// order, without white space.
func thumbprint(jwk string) string {
	sum := sha256.Sum256([]byte(jwk))
	return b64(sum[:])
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
