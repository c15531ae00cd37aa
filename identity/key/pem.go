package key

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
)

// maxPEM bounds a publicKeyPem; RSA-8192 needs about 1,450 bytes.
const maxPEM = 4 << 10

// PublicPEM writes pub as SubjectPublicKeyInfo in PEM, the publicKeyPem of an
// actor.
func PublicPEM(pub crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return "", fmt.Errorf("write public key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
}

// ParsePublicPEM reads a publicKeyPem: SubjectPublicKeyInfo, or the PKCS #1 form
// that some older servers publish. Exactly one block; text around it is refused.
// The key has passed Check.
func ParsePublicPEM(s string) (crypto.PublicKey, error) {
	s = strings.TrimSpace(s)
	if len(s) > maxPEM || !strings.HasPrefix(s, "-----BEGIN ") {
		return nil, fmt.Errorf("%w: no PEM block", ErrMalformed)
	}
	block, rest := pem.Decode([]byte(s))
	if block == nil || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, fmt.Errorf("%w: not one PEM block", ErrMalformed)
	}
	var pub crypto.PublicKey
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		pub, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		pub, err = x509.ParsePKCS1PublicKey(block.Bytes)
	default:
		return nil, fmt.Errorf("%w: PEM block %q", ErrUnsupported, block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrMalformed, block.Type)
	}
	if err := Check(pub); err != nil {
		return nil, err
	}
	return pub, nil
}

// parsePairPEM reads a private key as openssl genpkey writes it: PKCS #8, not
// encrypted, in one PEM block.
func parsePairPEM(b []byte) (Pair, error) {
	block, rest := pem.Decode(b)
	if block == nil || len(b) > 4*maxPEM || len(bytes.TrimSpace(rest)) > 0 {
		return Pair{}, fmt.Errorf("%w: not one PEM block", ErrMalformed)
	}
	if block.Type != "PRIVATE KEY" {
		return Pair{}, fmt.Errorf("%w: PEM block %q; a private key is read as JWK (stoa keygen) or as PRIVATE KEY (openssl genpkey -algorithm ed25519)",
			ErrUnsupported, block.Type)
	}
	priv, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Pair{}, fmt.Errorf("%w: %s", ErrMalformed, block.Type)
	}
	signer, ok := priv.(crypto.Signer)
	if !ok {
		return Pair{}, ErrUnsupported
	}
	return NewPair(signer)
}
