package tree

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

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

// algEd25519 is the kind of signature of a log (C2SP signed-note "Ed25519").
const algEd25519 = 1

// A signer signs notes with an Ed25519 key; it is a verifier with the public one alone.
type signer struct {
	name string
	alg  byte
	pub  ed25519.PublicKey
	key  crypto.Signer
}

func (s signer) Name() string { return s.name }

func (s signer) KeyHash() uint32 {
	sum := sha256.Sum256(append([]byte(s.name+"\n"+string(rune(s.alg))), s.pub...))
	return binary.BigEndian.Uint32(sum[:])
}

func (s signer) Sign(msg []byte) ([]byte, error) {
	return s.key.Sign(nil, msg, crypto.Hash(0))
}

func (s signer) Verify(msg, sig []byte) bool { return ed25519.Verify(s.pub, msg, sig) }

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
	if err == nil && c.Origin != origin {
		err = fmt.Errorf("%w: the checkpoint of another log", ErrTree)
	}
	return c, err
}
