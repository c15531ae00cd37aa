package key

import (
	"crypto/ed25519"
	"fmt"
	"strings"

	"github.com/mr-tron/base58"
)

// ed25519Multicodec is the varint 0xed that precedes an Ed25519 public key (multicodec table,
// "ed25519-pub").
const ed25519Multicodec = "\xed\x01"

// maxMultikey bounds the text before base58, whose decoding is quadratic.
const maxMultikey = 64

// Multikey returns the publicKeyMultibase value of an Ed25519 key: "z6Mk…",
// base58btc of 0xed01 and the key (W3C Controlled Identifiers §2.2.2, FEP-521a).
func Multikey(pub ed25519.PublicKey) string {
	return "z" + base58.Encode(append([]byte(ed25519Multicodec), pub...))
}

// ParseMultikey is the inverse of Multikey. The error wraps ErrMalformed,
// ErrUnsupported (another kind of key) or ErrWeak.
func ParseMultikey(s string) (ed25519.PublicKey, error) {
	if len(s) > maxMultikey || !strings.HasPrefix(s, "z") {
		return nil, fmt.Errorf("%w: no base58btc Multikey", ErrMalformed)
	}
	b, err := base58.Decode(s[1:])
	if err != nil {
		return nil, fmt.Errorf("%w: base58btc", ErrMalformed)
	}
	rest, ok := strings.CutPrefix(string(b), ed25519Multicodec)
	if !ok {
		return nil, fmt.Errorf("%w: Multikey is not Ed25519", ErrUnsupported)
	}
	pub := ed25519.PublicKey(rest)
	if err := Check(pub); err != nil {
		return nil, err
	}
	return pub, nil
}

const didKey = "did:key:"

// DIDKey returns the did:key of an Ed25519 key.
func DIDKey(pub ed25519.PublicKey) string { return didKey + Multikey(pub) }

// DIDKeyMethod returns the verification method of DIDKey(pub): the DID, "#" and
// the Multikey, as FEP-8b32 proofs name it.
func DIDKeyMethod(pub ed25519.PublicKey) string {
	mk := Multikey(pub)
	return didKey + mk + "#" + mk
}

// ParseDIDKey parses an Ed25519 did:key, or a verification method of one, whose fragment must
// repeat the key.
func ParseDIDKey(s string) (ed25519.PublicKey, error) {
	mk, ok := strings.CutPrefix(s, didKey)
	if !ok {
		return nil, fmt.Errorf("%w: no did:key", ErrMalformed)
	}
	mk, fragment, has := strings.Cut(mk, "#")
	if has && fragment != mk {
		return nil, fmt.Errorf("%w: did:key fragment names another key", ErrMalformed)
	}
	return ParseMultikey(mk)
}
