package mail

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

// minRSABits is the shortest RSA key that receivers accept (RFC 8301 §3.2).
const minRSABits = 1024

// ReadKey reads a DKIM key: a PEM file with an RSA or Ed25519 private key
// (RFC 8463).
func ReadKey(file string) (crypto.Signer, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block", file)
	}
	if block.Type == "RSA PRIVATE KEY" {
		k, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return sound(file, k)
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return sound(file, k)
}

func sound(file string, k any) (crypto.Signer, error) {
	switch k := k.(type) {
	case ed25519.PrivateKey:
		return k, nil
	case *rsa.PrivateKey:
		if k.N.BitLen() >= minRSABits {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%s: DKIM needs an RSA key of %d bits or more, or an Ed25519 key", file, minRSABits)
}
