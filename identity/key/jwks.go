package key

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"fmt"

	"github.com/lestrrat-go/jwx/v2/jwk"
)

// MarshalSet encodes a JWK Set for publication: kid is the thumbprint, use is "sig"; nbf, exp and
// alg are written when set. The same keys give the same output, so it can be signed and cached.
func MarshalSet(keys []Public) ([]byte, error) {
	set := jwk.NewSet()
	for _, p := range keys {
		k, err := publicJWK(p)
		if err != nil {
			return nil, err
		}
		if err := set.AddKey(k); err != nil {
			return nil, fmt.Errorf("add key %s: %w", p.Thumbprint, err)
		}
	}
	b, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("write JWK Set: %w", err)
	}
	return b, nil
}

// MarshalPublic encodes one public JWK in the form of MarshalSet's entries.
func MarshalPublic(p Public) ([]byte, error) {
	k, err := publicJWK(p)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("write JWK: %w", err)
	}
	return b, nil
}

// Published returns the pair's public key as an entry for MarshalSet, with the bounds of [Pair.Between].
func (p Pair) Published() Public {
	return Public{Key: p.Public(), Thumbprint: p.thumbprint, ID: p.thumbprint, Use: "sig", NotBefore: p.from, Expires: p.until}
}

func publicJWK(p Public) (jwk.Key, error) {
	if err := Check(p.Key); err != nil { // also keeps private keys out of published sets
		return nil, err
	}
	k, err := jwk.FromRaw(p.Key)
	if err != nil {
		return nil, fmt.Errorf("write JWK: %w", err)
	}
	members := map[string]any{jwk.KeyIDKey: Thumbprint(p.Key), jwk.KeyUsageKey: jwk.ForSignature}
	if p.Alg != "" {
		members[jwk.AlgorithmKey] = p.Alg
	}
	if !p.NotBefore.IsZero() {
		members["nbf"] = p.NotBefore.Unix()
	}
	if !p.Expires.IsZero() {
		members["exp"] = p.Expires.Unix()
	}
	for name, v := range members {
		if err := k.Set(name, v); err != nil {
			return nil, fmt.Errorf("set JWK member %q: %w", name, err)
		}
	}
	return k, nil
}

// MarshalPrivate encodes the pair as a private JWK with kid, indented, with a final newline: the
// form of a key file. Keep it from logs and from other users.
func (p Pair) MarshalPrivate() ([]byte, error) {
	if p.signer == nil {
		return nil, fmt.Errorf("%w: no key", ErrMalformed)
	}
	k, err := jwk.FromRaw(p.signer)
	if err != nil {
		return nil, fmt.Errorf("write private JWK: %w", err)
	}
	if err := k.Set(jwk.KeyIDKey, p.thumbprint); err != nil {
		return nil, fmt.Errorf("write private JWK: %w", err)
	}
	b, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write private JWK: %w", err)
	}
	return append(b, '\n'), nil
}

// ParsePair parses a private JWK, or an unencrypted PKCS #8 key in PEM. The public members must
// match the private one, and kid, when it looks like a thumbprint, is recomputed and not trusted.
// The error wraps ErrMalformed, ErrWeak or ErrUnsupported and never contains key material.
func ParsePair(b []byte) (Pair, error) {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("-----BEGIN ")) {
		return parsePairPEM(b)
	}
	if _, err := object(b); err != nil { // size and repeated members
		return Pair{}, err
	}
	k, err := jwk.ParseKey(b)
	if err != nil {
		return Pair{}, fmt.Errorf("%w: private JWK", ErrMalformed)
	}
	var raw any
	if err := k.Raw(&raw); err != nil {
		return Pair{}, fmt.Errorf("%w: private JWK", ErrMalformed)
	}
	switch priv := raw.(type) {
	case ed25519.PrivateKey:
		// jwx joins d and x without comparing them. With a wrong x crypto/ed25519 would sign with
		// another key, and two such signatures reveal the seed.
		if !bytes.Equal(ed25519.NewKeyFromSeed(priv.Seed()), priv) {
			return Pair{}, fmt.Errorf("%w: x does not belong to d", ErrMalformed)
		}
		return NewPair(priv)
	case *rsa.PrivateKey:
		priv.Precompute() // jwx omits it, and every signature would pay for it
		if err := priv.Validate(); err != nil {
			return Pair{}, fmt.Errorf("%w: inconsistent RSA key", ErrMalformed)
		}
		return NewPair(priv)
	case *ecdsa.PrivateKey:
		d, err := priv.Bytes()
		if err != nil {
			return Pair{}, fmt.Errorf("%w: EC key", ErrMalformed)
		}
		own, err := ecdsa.ParseRawPrivateKey(priv.Curve, d)
		if err != nil || !own.PublicKey.Equal(&priv.PublicKey) {
			return Pair{}, fmt.Errorf("%w: x and y do not belong to d", ErrMalformed)
		}
		return NewPair(priv)
	case crypto.PublicKey:
		return Pair{}, fmt.Errorf("%w: no private key", ErrMalformed)
	}
	return Pair{}, ErrUnsupported
}
