package key

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"stoa/identity/strictjson"
)

// Limits on a foreign JWK Set.
const (
	MaxSetBytes = 64 << 10
	MaxSetKeys  = 16 // later entries are ignored
)

// Public is one public key of a JWK Set.
type Public struct {
	Key        crypto.PublicKey // ed25519.PublicKey, *rsa.PublicKey or *ecdsa.PublicKey
	Thumbprint string           // RFC 7638, computed here, never taken from the set
	ID         string           // "kid" as published, "" when absent
	Use        string           // "sig", "enc" or ""
	Alg        string           // JOSE name, "" when absent
	NotBefore  time.Time        // "nbf"; zero: no bound
	Expires    time.Time        // "exp"; zero: no bound
}

// Set is the usable part of a JWK Set.
type Set struct {
	Keys    []Public
	Ignored int // entries of unknown kind, malformed, weak, or with private members
}

// Find returns the key with the given thumbprint.
func (s Set) Find(thumbprint string) (Public, bool) {
	for _, k := range s.Keys {
		if k.Thumbprint == thumbprint {
			return k, true
		}
	}
	return Public{}, false
}

// ParseSet parses a foreign JWK Set (RFC 7517 §5). An unusable entry does not affect the others:
// it is counted in Ignored. The error wraps ErrMalformed when the document is not a JWK Set or is
// larger than MaxSetBytes.
func ParseSet(b []byte) (Set, error) {
	if len(b) > MaxSetBytes {
		return Set{}, fmt.Errorf("%w: set of %d bytes, at most %d", ErrMalformed, len(b), MaxSetBytes)
	}
	members, err := object(b)
	if err != nil {
		return Set{}, err
	}
	var entries []json.RawMessage
	if raw, ok := members["keys"]; !ok || json.Unmarshal(raw, &entries) != nil || entries == nil {
		return Set{}, fmt.Errorf("%w: no array of keys", ErrMalformed)
	}
	var s Set
	for i, e := range entries {
		if i >= MaxSetKeys {
			s.Ignored += len(entries) - i
			break
		}
		k, err := ParsePublic(e)
		if err != nil {
			s.Ignored++
			continue
		}
		s.Keys = append(s.Keys, k)
	}
	return s, nil
}

// privateMembers must not occur in a published key (RFC 7518 §6, RFC 8037 §2).
var privateMembers = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"}

// ParsePublic parses one public JWK. It refuses repeated members, private members (ErrPrivate),
// types that nothing here verifies with (ErrUnsupported) and keys that Check refuses.
func ParsePublic(b []byte) (Public, error) {
	if len(b) > MaxSetBytes {
		return Public{}, fmt.Errorf("%w: key of %d bytes", ErrMalformed, len(b))
	}
	m, err := object(b)
	if err != nil {
		return Public{}, err
	}
	for _, name := range privateMembers {
		if _, ok := m[name]; ok {
			return Public{}, fmt.Errorf("%w: %q", ErrPrivate, name)
		}
	}
	r := reader{members: m}
	p := Public{ID: r.optional("kid"), Use: r.optional("use"), Alg: r.optional("alg"), NotBefore: r.time("nbf"), Expires: r.time("exp")}
	switch kty := r.text("kty"); kty {
	case "OKP":
		if crv := r.text("crv"); r.err == nil && crv != "Ed25519" {
			return Public{}, fmt.Errorf("%w: curve %q", ErrUnsupported, crv)
		}
		p.Key = ed25519.PublicKey(r.bytes("x"))
	case "EC":
		p.Key, err = r.ecdsa()
	case "RSA":
		p.Key = r.rsa()
	default:
		return Public{}, fmt.Errorf("%w: kty %q", ErrUnsupported, kty)
	}
	if err := errors.Join(r.err, err); err != nil {
		return Public{}, err
	}
	if err := Check(p.Key); err != nil {
		return Public{}, err
	}
	p.Thumbprint = Thumbprint(p.Key)
	return p, nil
}

// object parses one JSON object. It refuses repeated member names: two readers could otherwise see
// two different keys in one document.
func object(b []byte) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := strictjson.DecodeLoose(b, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if m == nil {
		return nil, fmt.Errorf("%w: not a JSON object", ErrMalformed)
	}
	return m, nil
}

// reader reads typed members of a JWK and keeps the first error.
type reader struct {
	members map[string]json.RawMessage
	err     error
}

func (r *reader) fail(name string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: member %q", ErrMalformed, name)
	}
}

func (r *reader) text(name string) string {
	var s *string
	if json.Unmarshal(r.members[name], &s) != nil || s == nil {
		r.fail(name)
		return ""
	}
	return *s
}

func (r *reader) optional(name string) string {
	if _, ok := r.members[name]; !ok {
		return ""
	}
	return r.text(name)
}

func (r *reader) time(name string) time.Time {
	raw, ok := r.members[name]
	if !ok {
		return time.Time{}
	}
	var seconds float64 // some libraries write times as 1.7e9
	if json.Unmarshal(raw, &seconds) != nil || seconds < 0 || seconds > 1e12 {
		r.fail(name)
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

func (r *reader) bytes(name string) []byte {
	b, err := base64.RawURLEncoding.Strict().DecodeString(r.text(name))
	if err != nil || len(b) == 0 {
		r.fail(name)
		return nil
	}
	return b
}

func (r *reader) rsa() *rsa.PublicKey {
	n, e := r.bytes("n"), r.bytes("e")
	// RFC 7518 §6.3.1: no leading zero octets; otherwise one key could have two thumbprints.
	if r.err != nil || n[0] == 0 || e[0] == 0 || len(e) > 4 {
		r.fail("n")
		return nil
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
}

func (r *reader) ecdsa() (*ecdsa.PublicKey, error) {
	crv, x, y := r.text("crv"), r.bytes("x"), r.bytes("y")
	if r.err != nil {
		return nil, r.err
	}
	curve, size := elliptic.P256(), 32
	switch crv {
	case "P-256":
	case "P-384":
		curve, size = elliptic.P384(), 48
	default:
		return nil, fmt.Errorf("%w: curve %q", ErrUnsupported, crv)
	}
	if len(x) != size || len(y) != size {
		return nil, fmt.Errorf("%w: %s coordinates", ErrMalformed, crv)
	}
	pub, err := ecdsa.ParseUncompressedPublicKey(curve, append(append([]byte{4}, x...), y...))
	if err != nil {
		return nil, fmt.Errorf("%w: point not on %s", ErrMalformed, crv)
	}
	return pub, nil
}
