// Package tree is the Merkle tree over the entries of a log: its leaves, tiles and proofs (C2SP tlog-tiles), its signed
// checkpoints (C2SP tlog-checkpoint, signed-note) and their cosignatures (C2SP tlog-cosignature v1). Hashes are those of RFC 6962:
// a leaf is hashed after 0x00, a node after 0x01. The package stores and fetches nothing.
//
// A leaf does not contain what an entry says. It has the hash of the entry (activity.EntryHash, which covers epoch, number, time, type and
// object) and a salted hash of the content. When the content and its salt are deleted, neither can be found by guessing, also not the address
// of what was deleted, and the leaf remains as it is.
package tree

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	// Height is the number of levels of a tree that one tile has.
	Height = 8
	// Width is the number of hashes in a whole tile, and of leaves in a whole bundle.
	Width = 1 << Height
	// SaltSize is the size of a salt in bytes.
	SaltSize = 16
)

// ErrTree means that what a log gave is not of its tree.
var ErrTree = errors.New("not of this tree")

// A Leaf is one entry of a log. Hashes have 32 bytes; nil is "not known", or no content.
type Leaf struct {
	Seq            int64 // from 1; its index in the tree is one less
	Entry, Content []byte
}

// Bytes are the bytes of the leaf: three lines, each with a line feed. The number in decimal; the hash of the entry and the salted hash of
// the content, each as "sha256:" and 64 hex digits, or "-".
func (l Leaf) Bytes() []byte {
	return []byte(strconv.FormatInt(l.Seq, 10) + "\n" + Name(l.Entry) + "\n" + Name(l.Content) + "\n")
}

// hashPrefix begins the text of a SHA-256 hash.
const hashPrefix = "sha256:"

// Name is the text of a hash: "sha256:" and 64 hex digits, or "-".
func Name(hash []byte) string {
	if hash == nil {
		return "-"
	}
	return hashPrefix + hex.EncodeToString(hash)
}

// ParseHash reads a hash as a leaf has it; nil for "-" and for a text that is no hash.
func ParseHash(s string) []byte {
	digits, ok := strings.CutPrefix(s, hashPrefix)
	if b, err := hex.DecodeString(digits); ok && err == nil && len(b) == sha256.Size && digits == strings.ToLower(digits) {
		return b
	}
	return nil
}

// ParseLeaf reads the bytes of a leaf; the error wraps ErrTree.
func ParseLeaf(raw []byte) (Leaf, error) {
	lines := strings.Split(string(raw), "\n")
	if len(lines) != 4 {
		return Leaf{}, fmt.Errorf("%w: a leaf has three lines", ErrTree)
	}
	seq, err := strconv.ParseInt(lines[0], 10, 64)
	l := Leaf{seq, ParseHash(lines[1]), ParseHash(lines[2])}
	if err != nil || string(l.Bytes()) != string(raw) {
		return Leaf{}, fmt.Errorf("%w: a leaf that cannot be read", ErrTree)
	}
	return l, nil
}

// Salted is the salted hash of a content: SHA-256 of the salt followed by the content.
func Salted(salt, content []byte) []byte {
	sum := sha256.Sum256(append(append(make([]byte, 0, len(salt)+len(content)), salt...), content...))
	return sum[:]
}

// A Tile is the position of a tile of hashes, of 1 to 256 in width.
type Tile = tlog.Tile

// Bundles is the level of the bundles of leaves.
const Bundles = -1

// At returns the position of a tile.
func At(level int, n int64, width int) Tile { return Tile{H: Height, L: level, N: n, W: width} }

// Path is the path of a tile under the prefix of the tree (C2SP tlog-tiles "Merkle Tree"), of Bundles that of leaves.
func Path(t Tile) string {
	level, rest, _ := strings.Cut(strings.TrimPrefix(t.Path(), fmt.Sprintf("tile/%d/", Height)), "/")
	if t.L == Bundles {
		level = "entries"
	}
	return "tile/" + level + "/" + rest
}

// ParsePath reads what Path returns, in this one form.
func ParsePath(path string) (t Tile, ok bool) {
	level, rest, _ := strings.Cut(strings.TrimPrefix(path, "tile/"), "/")
	if len(path) > 64 {
		return t, false
	}
	if level == "entries" {
		level = "data"
	}
	t, err := tlog.ParseTilePath(fmt.Sprintf("tile/%d/%s/%s", Height, level, rest))
	return t, err == nil && Path(t) == path
}

// Bundle is a bundle of leaves: each after its length, two bytes.
func Bundle(leaves [][]byte) []byte {
	var b []byte
	for _, leaf := range leaves {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(leaf))), leaf...)
	}
	return b
}

// ParseBundle reads a bundle of n leaves; the error wraps ErrTree.
func ParseBundle(b []byte, n int) ([][]byte, error) {
	leaves := make([][]byte, 0, min(n, Width))
	for range n {
		if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
			return nil, fmt.Errorf("%w: the bundle ends too early", ErrTree)
		}
		size := int(binary.BigEndian.Uint16(b))
		leaves, b = append(leaves, b[2:2+size]), b[2+size:]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%w: the bundle has more than its leaves", ErrTree)
	}
	return leaves, nil
}

// A ReadTile returns the hashes of a tile: 32 bytes for each of its width, or more.
type ReadTile func(t Tile) ([]byte, error)

// ReadHashes reads hashes out of tiles. It is for tiles that are known to be right.
func (r ReadTile) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	tiles := map[Tile][]byte{}
	for i, index := range indexes {
		t := tlog.TileForIndex(Height, index)
		data, ok := tiles[t]
		if !ok {
			var err error
			if data, err = r(t); err != nil {
				return nil, err
			}
			if len(data) < t.W*tlog.HashSize {
				return nil, fmt.Errorf("%w: a tile that is too short", ErrTree)
			}
			data = data[:t.W*tlog.HashSize]
			tiles[t] = data
		}
		var err error
		if hashes[i], err = tlog.HashFromTile(t, data, index); err != nil {
			return nil, err
		}
	}
	return hashes, nil
}

// A Stored tile is one with its hashes.
type Stored struct {
	Tile
	Hashes []byte
}

// Append adds leaves to a tree of a size, whose tiles read returns. It returns the tiles that are new or wider, and the root.
func Append(size int64, leaves [][]byte, read ReadTile) (tiles []Stored, root tlog.Hash, err error) {
	fresh := map[int64]tlog.Hash{}
	both := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var missing []int64
		for _, i := range indexes {
			if _, ok := fresh[i]; !ok {
				missing = append(missing, i)
			}
		}
		old, err := read.ReadHashes(missing)
		if err != nil {
			return nil, err
		}
		hashes := make([]tlog.Hash, 0, len(indexes))
		for _, i := range indexes {
			if h, ok := fresh[i]; ok {
				hashes = append(hashes, h)
			} else {
				hashes, old = append(hashes, old[0]), old[1:]
			}
		}
		return hashes, nil
	})
	end := size
	for _, leaf := range leaves {
		hashes, err := tlog.StoredHashes(end, leaf, both)
		if err != nil {
			return nil, root, err
		}
		for i, h := range hashes {
			fresh[tlog.StoredHashIndex(0, end)+int64(i)] = h
		}
		end++
	}
	for _, t := range tlog.NewTiles(Height, size, end) {
		data, err := tlog.ReadTileData(t, both)
		if err != nil {
			return nil, root, err
		}
		tiles = append(tiles, Stored{t, data})
	}
	root, err = tlog.TreeHash(end, both)
	return tiles, root, err
}

// Within reports whether a tile is in a tree of a size, as wide as it is asked for.
func Within(t Tile, size int64) bool {
	level := max(t.L, 0)
	if level > 7 {
		return false
	}
	hashes := size >> (Height * level)
	return t.N < 1<<40 && t.N*Width+int64(t.W) <= hashes
}

const proofHeader = "c2sp.org/tlog-proof@v1\n"

// Proof is the proof that the leaf at an index is in the tree of a signed checkpoint (C2SP tlog-proof@v1).
func Proof(index int64, hashes tlog.RecordProof, signed []byte) []byte {
	b := []byte(proofHeader + "index " + strconv.FormatInt(index, 10) + "\n")
	for _, h := range hashes {
		b = append(b, h.String()+"\n"...)
	}
	return append(append(b, '\n'), signed...)
}

// CheckProof checks such a proof that a tree has a leaf, and the signature of its checkpoint by the log's key; the error wraps ErrTree.
func CheckProof(proof string, l Leaf, origin string, pub ed25519.PublicKey) (Checkpoint, error) {
	head, signed, _ := strings.Cut(proof, "\n\n")
	c, err := Open([]byte(signed), origin, pub)
	if err != nil {
		return c, err
	}
	lines := strings.Split(head, "\n")
	index := "index " + strconv.FormatInt(l.Seq-1, 10)
	if len(lines) < 2 || len(lines) > 66 || lines[0]+"\n" != proofHeader || lines[1] != index {
		return c, fmt.Errorf("%w: not a proof of entry %d", ErrTree, l.Seq)
	}
	hashes := make(tlog.RecordProof, len(lines)-2)
	for i, line := range lines[2:] {
		if hashes[i], err = tlog.ParseHash(line); err != nil {
			return c, fmt.Errorf("%w: a proof with a malformed hash", ErrTree)
		}
	}
	if l.Seq < 1 || l.Seq > c.Size {
		return c, fmt.Errorf("%w: no entry %d among %d", ErrTree, l.Seq, c.Size)
	}
	if err := tlog.CheckRecord(hashes, c.Size, c.Root, l.Seq-1, tlog.RecordHash(l.Bytes())); err != nil {
		return c, fmt.Errorf("%w: entry %d: %w", ErrTree, l.Seq, err)
	}
	return c, nil
}
