package tree

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Checkpoint is a tree at a size, under the name of its log.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   tlog.Hash
}

// MaxCheckpoint is the maximum size of a checkpoint with its signatures, in bytes.
const MaxCheckpoint = 64 << 10

// Text is the text that is signed (C2SP tlog-checkpoint): origin, size and root, a line each.
func (c Checkpoint) Text() string {
	return c.Origin + "\n" + strconv.FormatInt(c.Size, 10) + "\n" + c.Root.String() + "\n"
}

// Parse reads a checkpoint, signed or not, whose signatures are not checked; the error wraps ErrTree.
func Parse(raw []byte) (c Checkpoint, err error) {
	lines := strings.Split(string(raw), "\n")
	if len(lines) < 4 || lines[0] == "" {
		return c, fmt.Errorf("%w: not a checkpoint", ErrTree)
	}
	c.Origin = lines[0]
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Size < 0 || strconv.FormatInt(c.Size, 10) != lines[1] {
		return c, fmt.Errorf("%w: a checkpoint without size", ErrTree)
	}
	if c.Root, err = tlog.ParseHash(lines[2]); err != nil {
		return c, fmt.Errorf("%w: a checkpoint without root", ErrTree)
	}
	return c, nil
}

// Prefix is the address under which the tree of a board's log in an epoch is served (C2SP tlog-tiles "prefix").
func Prefix(board, epoch string) string { return board + "/tree/" + epoch }

// Origin is the name of that tree: its prefix without scheme (C2SP tlog-checkpoint "origin").
func Origin(board, epoch string) string {
	_, rest, _ := strings.Cut(Prefix(board, epoch), "://")
	return rest
}

// OriginOf returns the first line of a checkpoint, of which nothing is checked.
func OriginOf(raw []byte) string {
	origin, _, _ := strings.Cut(string(raw), "\n")
	return origin
}

// The kinds of signatures of a note (C2SP signed-note).
const (
	algEd25519     = 1
	algCosignature = 4
)

// A signer signs notes with an Ed25519 key; it is a verifier with the public one alone.
type signer struct {
	name string
	alg  byte
	pub  ed25519.PublicKey
	key  crypto.Signer
	at   time.Time // of a cosignature
}

func (s signer) Name() string { return s.name }

func (s signer) KeyHash() uint32 {
	sum := sha256.Sum256(append([]byte(s.name+"\n"+string(rune(s.alg))), s.pub...))
	return binary.BigEndian.Uint32(sum[:])
}

func (s signer) Sign(msg []byte) ([]byte, error) {
	if s.alg == algEd25519 {
		return s.key.Sign(nil, msg, crypto.Hash(0))
	}
	at := uint64(s.at.Unix())
	sig, err := s.key.Sign(nil, cosigned(at, msg), crypto.Hash(0))
	return append(binary.BigEndian.AppendUint64(nil, at), sig...), err
}

func (s signer) Verify(msg, sig []byte) bool {
	if s.alg == algCosignature {
		if len(sig) != 8+ed25519.SignatureSize {
			return false
		}
		msg, sig = cosigned(binary.BigEndian.Uint64(sig), msg), sig[8:]
	}
	return ed25519.Verify(s.pub, msg, sig)
}

// cosigned is the message of a cosignature at a time in seconds (C2SP tlog-cosignature "Ed25519 signed message").
func cosigned(at uint64, text []byte) []byte {
	return append([]byte("cosignature/v1\ntime "+strconv.FormatUint(at, 10)+"\n"), text...)
}

// Sign returns a checkpoint as a note that the log's key signed, in the name of its origin.
func Sign(c Checkpoint, key crypto.Signer) ([]byte, error) {
	pub, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("a checkpoint is signed with an Ed25519 key, not %T", key.Public())
	}
	return note.Sign(&note.Note{Text: c.Text()}, signer{name: c.Origin, alg: algEd25519, pub: pub, key: key})
}

// VerifierKey is the public key of a log in the form of signed notes: name, hash and key.
func VerifierKey(origin string, pub ed25519.PublicKey) string {
	s := signer{name: origin, alg: algEd25519, pub: pub}
	return fmt.Sprintf("%s+%08x+%s", origin, s.KeyHash(), base64.StdEncoding.EncodeToString(append([]byte{algEd25519}, pub...)))
}

// Open reads a checkpoint of a log that its key signed; the error wraps ErrTree.
func Open(raw []byte, origin string, pub ed25519.PublicKey) (Checkpoint, error) {
	if len(raw) > MaxCheckpoint {
		return Checkpoint{}, fmt.Errorf("%w: a checkpoint of more than %d bytes", ErrTree, MaxCheckpoint)
	}
	n, err := note.Open(raw, note.VerifierList(signer{name: origin, alg: algEd25519, pub: pub}))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: checkpoint: %w", ErrTree, err)
	}
	c, err := Parse([]byte(n.Text))
	if err == nil && n.Text != c.Text() { // no extensions: none is cosigned
		err = fmt.Errorf("%w: more than a checkpoint", ErrTree)
	}
	if err == nil && c.Origin != origin {
		err = fmt.Errorf("%w: the checkpoint of another log", ErrTree)
	}
	return c, err
}

// Cosign returns the signature line by which a witness cosigns a checkpoint at a time.
func Cosign(c Checkpoint, name string, key crypto.Signer, at time.Time) ([]byte, error) {
	pub, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("a checkpoint is cosigned with an Ed25519 key, not %T", key.Public())
	}
	signed, err := note.Sign(&note.Note{Text: c.Text()}, signer{name: name, alg: algCosignature, pub: pub, key: key, at: at})
	if err != nil {
		return nil, err
	}
	return signed[len(c.Text())+1:], nil
}

// ReadCosignature returns the line of a witness among the lines that it answered with, once it verifies for a signed checkpoint; the error
// wraps ErrTree.
func ReadCosignature(raw, lines []byte, name string, pub ed25519.PublicKey) (string, error) {
	n, err := note.Open(append(bytes.Clone(raw), lines...), note.VerifierList(signer{name: name, alg: algCosignature, pub: pub}))
	if err != nil {
		return "", fmt.Errorf("%w: cosignature: %w", ErrTree, err)
	}
	return "— " + n.Sigs[0].Name + " " + n.Sigs[0].Base64 + "\n", nil
}
