package erc8004

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"stoa/protocol"
)

// ErrNoStateProof: no endpoint gives a proof of the state at that block, or the registry keeps its state in a way
// that is not known here.
var ErrNoStateProof = errors.New("there is no proof of the chain's state")

// ErrStateProof: a state proof is malformed, or does not show what it should.
var ErrStateProof = errors.New("the proof of the chain's state is not valid")

// Hex is bytes that are written in JSON as 0x and hexadecimal digits.
type Hex = hexutil.Bytes

// A StateProof shows, without the chain, what the storage of a registry holds about one agent in the state of one block
// (EIP-1186, with the nodes of all its proofs in one list).
type StateProof struct {
	Layout string `json:"layout"` // name of one of the layouts
	Header Hex    `json:"header"` // of the block, RLP
	Nodes  []Hex  `json:"nodes"`  // of the state trie and of the registry's storage trie, each once
}

// Bounds of a StateProof that is opened.
const (
	maxProofNodes  = 400
	maxHeaderBytes = 4096
)

// A View is what a registry holds about an agent in one block.
type View struct {
	Block     uint64
	BlockHash common.Hash
	Owner     common.Address
	Wallet    common.Address // zero for none
	Record    []byte         // metadata agentKeys, unchecked; nil for none or more than MaxRecordBytes
	Bound     bool           // metadata agent-binding is not empty (ERC-8217)
}

// A layout is where a registry keeps its state: the slot of its mapping from agent to owner, and that of its mapping
// from agent and key to metadata, to which the agent's wallet belongs.
type layout struct {
	name             string
	owners, metadata *big.Int
}

// layouts are those of the reference registry, version 2.0.0 (ERC-7201), and of the development chain's.
var layouts = []layout{
	{"erc8004-2", plus(namespace("openzeppelin.storage.ERC721"), 2), plus(namespace("erc8004.identity.registry"), 1)},
	{"stoa-devchain-1", big.NewInt(1), big.NewInt(4)},
}

// namespace returns the first slot of a namespace (ERC-7201).
func namespace(name string) *big.Int {
	id := new(big.Int).SetBytes(crypto.Keccak256([]byte(name)))
	slot := crypto.Keccak256(wordBig(id.Sub(id, big.NewInt(1))))
	slot[31] = 0
	return new(big.Int).SetBytes(slot)
}

func plus(n *big.Int, m int64) *big.Int {
	sum := new(big.Int).Add(n, big.NewInt(m))
	return sum.SetBytes(common.BigToHash(sum).Bytes()) // modulo 2^256
}

func (l layout) owner(agent *big.Int) common.Hash {
	return crypto.Keccak256Hash(wordBig(agent), wordBig(l.owners))
}

// data returns the slot of a metadata entry.
func (l layout) data(agent *big.Int, key string) common.Hash {
	return crypto.Keccak256Hash([]byte(key), crypto.Keccak256(wordBig(agent), wordBig(l.metadata)))
}

// chunks returns the slots after the first one of a value of n bytes.
func chunks(slot common.Hash, n int) (all []common.Hash) {
	if n < 32 {
		return nil
	}
	first := new(big.Int).SetBytes(crypto.Keccak256(slot[:]))
	for i := range (n + 31) / 32 {
		all = append(all, common.BigToHash(plus(first, int64(i))))
	}
	return all
}

// metadataWallet is the metadata key under which the registry keeps the agent's wallet.
const metadataWallet = "agentWallet"

// slots are those that show an agent with a record of n bytes.
func (l layout) slots(agent *big.Int, n int) []common.Hash {
	keys := l.data(agent, MetadataKeys)
	return append([]common.Hash{l.owner(agent), l.data(agent, metadataWallet), l.data(agent, metadataBinding), keys}, chunks(keys, n)...)
}

// Open verifies the proof for an agent and returns what it shows. Whether BlockHash is a block of the chain, the
// caller has to know. Errors wrap ErrStateProof.
func (p StateProof) Open(id ID) (View, error) {
	v, err := p.open(id)
	if err != nil {
		return View{}, fmt.Errorf("%w: %w", ErrStateProof, err)
	}
	return v, nil
}

func (p StateProof) open(id ID) (v View, err error) {
	i := slices.IndexFunc(layouts, func(l layout) bool { return l.name == p.Layout })
	if i < 0 || len(p.Nodes) > maxProofNodes || len(p.Header) > maxHeaderBytes {
		return v, fmt.Errorf("layout %q is not known, or the proof is too large", p.Layout)
	}
	header, err := rlpItems(p.Header)
	if err != nil || len(header) < 15 {
		return v, fmt.Errorf("the header of the block is malformed")
	}
	root, err := rlpString(header[3])
	number, err2 := rlpString(header[8])
	if err := errors.Join(err, err2); err != nil || len(root) != 32 || len(number) > 8 {
		return v, fmt.Errorf("the header of the block is malformed")
	}
	nodes := trieNodes{}
	for _, n := range p.Nodes {
		nodes[crypto.Keccak256Hash(n)] = n
	}
	raw, err := nodes.get(common.Hash(root), id.Registry[:])
	if err != nil {
		return v, fmt.Errorf("account of the registry: %w", err)
	}
	account, err := rlpItems(raw)
	if err != nil || len(account) != 4 {
		return v, fmt.Errorf("the registry has no account in that state")
	}
	storage, err := rlpString(account[2])
	if err != nil || len(storage) != 32 {
		return v, errNode
	}
	v.Block, v.BlockHash = new(big.Int).SetBytes(number).Uint64(), crypto.Keccak256Hash(p.Header)
	return v, layouts[i].read(id.AgentID, &v, func(slot common.Hash) (word common.Hash, err error) {
		item, err := nodes.get(common.Hash(storage), slot[:])
		if err != nil || item == nil {
			return word, err
		}
		value, err := rlpString(item)
		if err != nil || len(value) > 32 {
			return word, errNode
		}
		return common.BytesToHash(value), nil
	})
}

// read reads an agent from the registry's storage.
func (l layout) read(agent *big.Int, v *View, at func(common.Hash) (common.Hash, error)) error {
	owner, err := at(l.owner(agent))
	if err != nil {
		return fmt.Errorf("owner: %w", err)
	}
	if v.Owner = common.BytesToAddress(owner[:]); v.Owner == (common.Address{}) || [12]byte(owner[:12]) != [12]byte{} {
		return fmt.Errorf("the registry has no such agent in that state")
	}
	wallet, err := metadata(at, l.data(agent, metadataWallet))
	if err != nil {
		return fmt.Errorf("wallet: %w", err)
	}
	if len(wallet) >= 20 {
		v.Wallet = common.Address(wallet[:20])
	}
	if v.Record, err = metadata(at, l.data(agent, MetadataKeys)); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	bound, err := at(l.data(agent, metadataBinding))
	if err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	v.Bound = bound != (common.Hash{})
	return nil
}

// metadata reads a value of the type bytes: nil for one of more than MaxRecordBytes, which is no record.
func metadata(at func(common.Hash) (common.Hash, error), slot common.Hash) ([]byte, error) {
	head, err := at(slot)
	if err != nil {
		return nil, err
	}
	if head[31]&1 == 0 {
		return bytes.Clone(head[:min(head[31]/2, 31)]), nil
	}
	size := new(big.Int).SetBytes(head[:])
	if size.Rsh(size, 1); size.Cmp(big.NewInt(MaxRecordBytes)) > 0 {
		return nil, nil
	}
	n := int(size.Int64())
	var value []byte
	for _, slot := range chunks(slot, n) {
		word, err := at(slot)
		if err != nil {
			return nil, err
		}
		value = append(value, word[:]...)
	}
	return value[:n], nil
}

// Key returns the key of that thumbprint from the record. byContract is true when the record's signature is not that of an ordinary account: then
// its signer may be a contract that accepts it, which only the chain could tell (ERC-1271). Errors are ErrInvalidRecord, ErrIdentityBound and
// ErrKeyUnknown.
func (v View) Key(id ID, keyid string) (k *Key, byContract bool, err error) {
	rec, err := ParseRecord(v.Record)
	switch {
	case err != nil:
		return nil, false, err
	case v.Bound:
		return nil, false, ErrIdentityBound
	case rec.Signer != v.Owner && rec.Signer != v.Wallet:
		return nil, false, fmt.Errorf("%w: its signer is neither owner nor wallet", ErrInvalidRecord)
	}
	for i := range rec.Keys {
		if rec.Keys[i].Thumbprint == keyid {
			return &rec.Keys[i], !rec.SignedBySigner(id), nil
		}
	}
	return nil, false, ErrKeyUnknown
}

// SignedByAccount reports whether an ordinary account, an address in lower case, made a signature over a digest. A contract may accept one
// that this refuses (ERC-1271).
func SignedByAccount(digest [32]byte, sig []byte, account string) bool {
	who, ok := recoverSigner(digest, sig)
	return ok && addressText(who) == account
}

// StatedView is a view that somebody states, without a proof.
func StatedView(owner, wallet string, record []byte) View {
	return View{Owner: common.HexToAddress(owner), Wallet: common.HexToAddress(wallet), Record: record}
}

// Differs returns an error when the view is not the one with these values: a hash and addresses in lower case, "" for no wallet.
func (v View) Differs(block uint64, hash, owner, wallet string, record []byte) error {
	switch {
	case v.Block != block || strings.ToLower(v.BlockHash.Hex()) != hash:
		return fmt.Errorf("%w: it is of block %d, %s", ErrStateProof, v.Block, strings.ToLower(v.BlockHash.Hex()))
	case addressText(v.Owner) != owner:
		return fmt.Errorf("%w: the owner is %s", ErrStateProof, addressText(v.Owner))
	case addressText(v.Wallet) != wallet:
		return fmt.Errorf("%w: the wallet is %q", ErrStateProof, addressText(v.Wallet))
	case !bytes.Equal(v.Record, record):
		return fmt.Errorf("%w: the record is another one", ErrStateProof)
	}
	return nil
}

// Controllers returns owner and wallet as addresses in lower case, "" for no wallet.
func (v View) Controllers() (owner, wallet string) {
	return addressText(v.Owner), addressText(v.Wallet)
}

// LevelOf returns as what an account, an address in lower case, controls the agent: owner, else wallet, else none.
func (v View) LevelOf(account string) protocol.ProofLevel {
	switch {
	case account == "":
	case addressText(v.Owner) == account:
		return protocol.ByOwner
	case addressText(v.Wallet) == account:
		return protocol.ByWallet
	}
	return protocol.ByNothing
}

// Signer returns the account that the record names as its signer, an address in lower case; "" without a record.
func (v View) Signer() string {
	rec, err := ParseRecord(v.Record)
	if err != nil {
		return ""
	}
	return addressText(rec.Signer)
}
