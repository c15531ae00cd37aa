package erc8004

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"golang.org/x/crypto/scrypt"
)

// ErrSealed is the error of a keystore that was read without its passphrase.
var ErrSealed = errors.New("an encrypted keystore, which needs its passphrase")

// ReadWallet reads the private key of an account from a file: 64 hex digits; a keystore of version 3 (Web3 Secret Storage), for which
// passphrase is asked, at most once; or PEM of a secp256k1 key (SEC 1, PKCS #8).
func ReadWallet(raw []byte, passphrase func() (string, error)) (*ecdsa.PrivateKey, error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case bytes.HasPrefix(raw, []byte("{")):
		return openKeystore(raw, passphrase)
	case bytes.HasPrefix(raw, []byte("-----BEGIN ")):
		return parseWalletPEM(raw)
	}
	return ParseWalletKey(string(raw))
}

// AccountOf returns the account of a private key.
func AccountOf(k *ecdsa.PrivateKey) common.Address { return crypto.PubkeyToAddress(k.PublicKey) }

// keystore is a file of the Web3 Secret Storage, version 3.
type keystore struct {
	Version int
	Crypto  struct { // also spelt Crypto
		Cipher       string
		CipherText   string
		CipherParams struct{ IV string }
		KDF          string
		KDFParams    struct {
			DKLen, N, R, P, C int
			PRF, Salt         string
		}
		MAC string
	}
}

// Bounds of what a keystore may cost to open: 1 GiB of memory, some seconds.
const (
	maxScryptMemory = 1 << 30
	maxIterations   = 10_000_000
)

func openKeystore(raw []byte, passphrase func() (string, error)) (*ecdsa.PrivateKey, error) {
	var k keystore
	if err := json.Unmarshal(raw, &k); err != nil || k.Version != 3 || k.Crypto.Cipher != "aes-128-ctr" {
		return nil, errors.New("not a keystore of version 3 with aes-128-ctr")
	}
	p := k.Crypto.KDFParams
	var faults []error
	bytesOf := func(text string) []byte {
		b, err := hex.DecodeString(text)
		faults = append(faults, err)
		return b
	}
	text, iv, salt, mac := bytesOf(k.Crypto.CipherText), bytesOf(k.Crypto.CipherParams.IV), bytesOf(p.Salt), bytesOf(k.Crypto.MAC)
	switch {
	case errors.Join(faults...) != nil || len(text) != 32 || len(iv) != aes.BlockSize || p.DKLen != 32:
		return nil, errors.New("a keystore whose members have wrong lengths")
	case k.Crypto.KDF == "scrypt" && (p.N < 2 || p.R < 1 || p.P < 1 || p.P > 16 || p.R > 64 || 128*p.N*p.R > maxScryptMemory):
		return nil, errors.New("a keystore whose scrypt costs too much")
	case k.Crypto.KDF == "pbkdf2" && (p.PRF != "hmac-sha256" || p.C < 1 || p.C > maxIterations):
		return nil, errors.New("a keystore whose pbkdf2 is not one of hmac-sha256, or costs too much")
	}
	secret, err := passphrase()
	if err != nil {
		return nil, err
	}
	var derived []byte
	switch k.Crypto.KDF {
	case "scrypt":
		derived, err = scrypt.Key([]byte(secret), salt, p.N, p.R, p.P, p.DKLen)
	case "pbkdf2":
		derived, err = pbkdf2.Key(sha256.New, secret, salt, p.C, p.DKLen)
	default:
		err = fmt.Errorf("a keystore with the unknown kdf %q", k.Crypto.KDF)
	}
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(mac, crypto.Keccak256(derived[16:32], text)) {
		return nil, errors.New("the passphrase is not the one of the keystore")
	}
	block, err := aes.NewCipher(derived[:16])
	if err != nil {
		return nil, err
	}
	plain := make([]byte, len(text))
	cipher.NewCTR(block, iv).XORKeyStream(plain, text)
	return crypto.ToECDSA(plain)
}

// secp256k1 is the object identifier of the curve (SEC 2).
var secp256k1 = asn1.ObjectIdentifier{1, 3, 132, 0, 10}

// sec1 is an ECPrivateKey (RFC 5915), which the standard library does not read for this curve.
type sec1 struct {
	Version    int
	PrivateKey []byte
	Curve      asn1.ObjectIdentifier `asn1:"optional,explicit,tag:0"`
	PublicKey  asn1.BitString        `asn1:"optional,explicit,tag:1"`
}

func parseWalletPEM(raw []byte) (*ecdsa.PrivateKey, error) {
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		der := block.Bytes
		var curve asn1.ObjectIdentifier
		switch block.Type {
		case "EC PRIVATE KEY":
		case "PRIVATE KEY":
			var outer struct {
				Version   int
				Algorithm struct{ ID, Curve asn1.ObjectIdentifier }
				Key       []byte
			}
			if _, err := asn1.Unmarshal(der, &outer); err != nil {
				return nil, errors.New("a PEM block that is no private key of an elliptic curve")
			}
			curve, der = outer.Algorithm.Curve, outer.Key
		default: // EC PARAMETERS
			continue
		}
		var k sec1
		if _, err := asn1.Unmarshal(der, &k); err != nil {
			return nil, errors.New("a PEM block that is no private key of an elliptic curve")
		}
		if len(k.Curve) > 0 {
			curve = k.Curve
		}
		if !curve.Equal(secp256k1) {
			return nil, errors.New("a key of another curve than secp256k1")
		}
		return crypto.ToECDSA(k.PrivateKey)
	}
	return nil, errors.New("PEM without a private key")
}
