// Package sshsig verifies signatures of files that ssh-keygen -Y sign makes with Ed25519 keys (OpenSSH, PROTOCOL.sshsig).
package sshsig

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"strings"
)

const keyType = "ssh-ed25519"

// ErrSignature is what Verify returns for a signature that is not one of the key over the text.
var ErrSignature = errors.New("the signature is not one of this key over this text")

// ParseKey reads a public key as a line of authorized_keys has it: "ssh-ed25519 AAAA… comment".
func ParseKey(line string) (ed25519.PublicKey, error) {
	fields := strings.Fields(line)
	if len(fields) < 2 || fields[0] != keyType {
		return nil, errors.New("not a key such as ssh-ed25519 AAAA…")
	}
	raw, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil {
		return nil, errors.New("the key is not in base64")
	}
	return publicKey(raw)
}

func publicKey(blob []byte) (ed25519.PublicKey, error) {
	r := reader{blob}
	kind, k := r.next(), r.next()
	if string(kind) != keyType || len(k) != ed25519.PublicKeySize || r.rest == nil || len(r.rest) > 0 {
		return nil, errors.New("not an Ed25519 key")
	}
	return ed25519.PublicKey(k), nil
}

// Verify checks the armored signature of a text by a key, made for a namespace (ssh-keygen -n).
func Verify(key ed25519.PublicKey, namespace string, text, armored []byte) error {
	block, _ := pem.Decode(armored)
	if block == nil || block.Type != "SSH SIGNATURE" {
		return errors.New("not a signature of ssh-keygen -Y sign")
	}
	blob, ok := bytes.CutPrefix(block.Bytes, []byte("SSHSIG\x00\x00\x00\x01"))
	if !ok {
		return errors.New("not a signature of version 1")
	}
	r := reader{blob}
	by, of, reserved, hash, signature := r.next(), r.next(), r.next(), r.next(), r.next()
	if r.rest == nil || len(r.rest) > 0 {
		return errors.New("the signature is cut off, or something follows it")
	}
	signer, err := publicKey(by)
	if err != nil {
		return err
	}
	var digest []byte
	switch string(hash) {
	case "sha512":
		sum := sha512.Sum512(text)
		digest = sum[:]
	case "sha256":
		sum := sha256.Sum256(text)
		digest = sum[:]
	default:
		return errors.New("the signature is over another digest than SHA-512 or SHA-256")
	}
	s := reader{signature}
	kind, value := s.next(), s.next()
	if !signer.Equal(key) || string(of) != namespace || string(kind) != keyType || len(s.rest) > 0 || len(value) != ed25519.SignatureSize {
		return ErrSignature
	}
	signed := []byte("SSHSIG")
	for _, part := range [][]byte{of, reserved, hash, digest} {
		signed = append(binary.BigEndian.AppendUint32(signed, uint32(len(part))), part...)
	}
	if !ed25519.Verify(key, signed, value) {
		return ErrSignature
	}
	return nil
}

// A reader takes the strings of SSH's wire format (RFC 4251 §5) from the front; rest is nil after one that is cut off.
type reader struct{ rest []byte }

func (r *reader) next() []byte {
	if len(r.rest) < 4 {
		r.rest = nil
		return nil
	}
	n := uint64(binary.BigEndian.Uint32(r.rest))
	if n > uint64(len(r.rest)-4) {
		r.rest = nil
		return nil
	}
	found := r.rest[4 : 4+n]
	r.rest = r.rest[4+n:]
	return found
}
