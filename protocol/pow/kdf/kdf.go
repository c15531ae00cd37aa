// Package kdf derives the keys of proofs of work. It keeps nothing and starts nothing;
// make race compiles it, with the hash that is instantiated in it, without the
// detector's calls, which would make the proofs of the tests four times as slow.
package kdf

import (
	"crypto/pbkdf2"
	"crypto/sha256"
)

// Key derives size bytes by PBKDF2 with HMAC-SHA-256 (RFC 8018 §5.2). It fails where
// the runtime is restricted to FIPS 140-3 and the salt or the key is too short for it.
func Key(password string, salt []byte, iterations, size int) ([]byte, error) {
	return pbkdf2.Key(sha256.New, password, salt, iterations, size)
}
