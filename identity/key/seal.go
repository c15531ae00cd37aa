package key

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MasterSize is the length of a master key in bytes.
const MasterSize = 32

// sealVersion is the first byte of everything sealed, so that the cipher can be
// changed while old rows can still be opened.
const sealVersion = 1

// ErrOpen means that sealed bytes were made with another master key, for another purpose, or were
// changed. On purpose it does not say which.
var ErrOpen = errors.New("key: sealed bytes do not open")

// Sealer encrypts secrets at rest with AES-256-GCM under a master key. It is safe
// for concurrent use. Nonces are random, so one master key seals at most 2^32
// secrets (NIST SP 800-38D §8.3).
type Sealer struct {
	aead cipher.AEAD
	next *Sealer // while the master key is rotated, for what is sealed with the next one already; else nil
}

// NewSealer makes a Sealer from a master key of MasterSize bytes.
func NewSealer(master []byte) (*Sealer, error) {
	if len(master) != MasterSize {
		return nil, fmt.Errorf("master key of %d bytes, want %d", len(master), MasterSize)
	}
	block, err := aes.NewCipher(master)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Sealer{aead: aead}, nil
}

// Seal encrypts secret for purpose, a fixed text that names the secret and its owner, such as
// "profile-key:asha". The same purpose must be given to Open; a sealed key therefore cannot be
// moved to another row. The result is 29 bytes longer than secret.
func (s *Sealer) Seal(purpose string, secret []byte) []byte {
	out := make([]byte, 1, 1+len(secret)+s.aead.Overhead())
	out[0] = sealVersion
	return s.aead.Seal(out, nil, secret, []byte(purpose))
}

// Open decrypts what Seal made for the same purpose, or returns ErrOpen.
func (s *Sealer) Open(purpose string, sealed []byte) ([]byte, error) {
	if len(sealed) < 1+s.aead.Overhead() || sealed[0] != sealVersion {
		return nil, ErrOpen
	}
	secret, err := s.aead.Open(nil, nil, sealed[1:], []byte(purpose))
	if err != nil && s.next != nil {
		return s.next.Open(purpose, sealed)
	}
	if err != nil {
		return nil, ErrOpen
	}
	return secret, nil
}

// LoadMaster reads a master key file: 43 base64url characters and a line end. It
// refuses a file that group or others may read. A missing file gives
// fs.ErrNotExist. While the key is rotated, it opens what is sealed with the next one too.
func LoadMaster(path string) (*Sealer, error) {
	s, err := loadMaster(path)
	if err != nil {
		return nil, err
	}
	s.next, err = loadMaster(path + nextMaster)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return s, err
}

func loadMaster(path string) (*Sealer, error) {
	text, err := readMaster(path)
	if err != nil {
		return nil, err
	}
	master, err := parseMaster(text)
	if err != nil {
		return nil, fmt.Errorf("master key %s: %w", path, err)
	}
	return NewSealer(master)
}

// MasterFingerprint returns what tells a master key file from others and does not tell the key.
func MasterFingerprint(path string) (string, error) {
	text, err := readMaster(path)
	if err != nil {
		return "", err
	}
	return Fingerprint(text)
}

// Fingerprint is MasterFingerprint for the text of such a file.
func Fingerprint(text []byte) (string, error) {
	master, err := parseMaster(text)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte("stoa master key "), master...))
	return hex.EncodeToString(sum[:8]), nil
}

// parseMaster reads the text of a master key file.
func parseMaster(text []byte) ([]byte, error) {
	master, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(master) != MasterSize {
		return nil, errors.New("want 43 base64url characters")
	}
	return master, nil
}

func readMaster(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("master key %s: mode %v, want a regular file with 0600", path, info.Mode())
	}
	if info.Size() > 256 {
		return nil, fmt.Errorf("master key %s: %d bytes cannot be a master key", path, info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	return text, nil
}

// LoadOrCreateMaster reads the master key file, and creates it with a random key when it does not
// exist. The new file appears completely or not at all; two processes that start at the same time
// use the same key.
func LoadOrCreateMaster(path string) (*Sealer, error) {
	s, err := LoadMaster(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if err := createMaster(path); err != nil {
		return nil, err
	}
	return LoadMaster(path)
}

func createMaster(path string) error {
	master := make([]byte, MasterSize)
	rand.Read(master) // never fails since Go 1.24
	return createOnce(path, []byte(base64.RawURLEncoding.EncodeToString(master)+"\n"))
}

// createOnce writes path with mode 0600 unless it exists: it links a synced temporary file into
// place, which fails where a rename would overwrite.
func createOnce(path string, b []byte) error {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, ".master-*") // CreateTemp uses 0600
	if err != nil {
		return fmt.Errorf("create master key: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write master key: %w", err)
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create master key: %w", err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("create master key: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
