package erc8004

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// errNode: a trie node of a proof is missing or malformed.
var errNode = errors.New("a trie node is missing or malformed")

// trieNodes are the nodes of Merkle-Patricia tries by their hash (Ethereum yellow paper, appendix D).
type trieNodes map[common.Hash][]byte

// emptyTrie is the root of a trie without entries.
var emptyTrie = crypto.Keccak256Hash([]byte{0x80})

// maxTrieDepth is the most nodes on a way: one for each of the 64 digits of a hashed key.
const maxTrieDepth = 65

// get returns the value at keccak256(key), nil when the trie has none. An error means that the nodes do not show
// either.
func (t trieNodes) get(root common.Hash, key []byte) ([]byte, error) {
	if root == emptyTrie {
		return nil, nil
	}
	node, ok := t[root]
	if !ok {
		return nil, errNode
	}
	path := nibbles(crypto.Keccak256(key))
	for range maxTrieDepth {
		items, err := rlpItems(node)
		if err != nil {
			return nil, err
		}
		var next []byte // as an item of the node
		switch len(items) {
		case 2:
			part, leaf, err := unpackPath(items[0])
			if err != nil {
				return nil, err
			}
			if !bytes.HasPrefix(path, part) || leaf && len(part) != len(path) {
				return nil, nil
			}
			if leaf {
				return rlpString(items[1])
			}
			path, next = path[len(part):], items[1]
		case 17:
			if len(path) == 0 {
				return nil, errNode // hashed keys have one length
			}
			path, next = path[1:], items[path[0]]
		default:
			return nil, errNode
		}
		if next[0] >= 0xc0 { // a node of less than 32 bytes is inside its parent
			node = next
			continue
		}
		hash, err := rlpString(next)
		if err != nil || len(hash) == 0 {
			return nil, err
		}
		if node, ok = t[common.BytesToHash(hash)]; !ok || len(hash) != 32 {
			return nil, errNode
		}
	}
	return nil, errNode
}

// rlpItems returns the encoded items of a list that is the whole of raw.
func rlpItems(raw []byte) (items [][]byte, err error) {
	content, rest, err := rlp.SplitList(raw)
	if err != nil || len(rest) > 0 {
		return nil, errNode
	}
	for len(content) > 0 {
		_, _, rest, err := rlp.Split(content)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNode, err)
		}
		items, content = append(items, content[:len(content)-len(rest)]), rest
	}
	return items, nil
}

func rlpString(item []byte) ([]byte, error) {
	s, rest, err := rlp.SplitString(item)
	if err != nil || len(rest) > 0 {
		return nil, errNode
	}
	return s, nil
}

func nibbles(b []byte) []byte {
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, c>>4, c&15)
	}
	return out
}

// unpackPath reads the path of a node with two items (yellow paper, appendix C).
func unpackPath(item []byte) (path []byte, leaf bool, err error) {
	packed, err := rlpString(item)
	if err != nil || len(packed) == 0 || packed[0]>>4 > 3 {
		return nil, false, errNode
	}
	digits := nibbles(packed)
	flag := digits[0]
	return digits[2-flag&1:], flag&2 != 0, nil
}
