package erc8004

import (
	"crypto/ecdsa"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Bounds of a record, version 1.
const (
	MaxRecordKeys  = 4
	MaxRecordBytes = 4096
	minRecordBytes = 31 // the header and one byte of signature
	recordHead     = 1 + 20 + 8 + 1
)

// MetadataKeys is the metadata key under which the record is kept on chain.
const MetadataKeys = "agentKeys"

// recordSkew is how far in the future a record may be issued.
const recordSkew = 5 * time.Minute

const recordDomain = "ServiceAgentKey"

var recordType = crypto.Keccak256([]byte("AgentKeySet(uint256 agentId,address signer,uint64 issuedAt,bytes32 keysHash)"))

// A Record is a signed list of the message keys of one agent, version 1:
//
//	01 | signer (20) | issuedAt (8, Unix seconds) | n (1) | n entries | signature
//
// The agent is not in the bytes but in what is signed, so a record that is copied to another
// agent, registry or chain does not verify. An empty list revokes all keys.
type Record struct {
	Signer    common.Address // owner or agentWallet of the agent
	IssuedAt  uint64         // Unix seconds; the newest one of a signer is valid
	Keys      []Key          // at most MaxRecordKeys, preferred first, without duplicates
	Signature []byte         // 65 bytes r | s | v, or whatever an ERC-1271 signer accepts
}

// SignRecord returns the record of the given agent. Keys come from [NewKey]; issuedAt is truncated
// to seconds.
func SignRecord(id ID, keys []Key, issuedAt time.Time, signer *ecdsa.PrivateKey) (Record, error) {
	r := Record{Signer: crypto.PubkeyToAddress(signer.PublicKey), IssuedAt: uint64(issuedAt.Unix()), Keys: keys}
	if err := r.checkKeys(); err != nil {
		return Record{}, err
	}
	var err error
	r.Signature, err = signDigest(r.Digest(id), signer)
	return r, err
}

// ParseRecord parses a record strictly: an unknown version or codec, a short entry, more than
// [MaxRecordKeys], a duplicate key, a point off its curve, no signature or more than
// [MaxRecordBytes] give [ErrInvalidRecord]. It does not check the signature. The result shares no
// memory with b.
func ParseRecord(b []byte) (Record, error) {
	if len(b) < minRecordBytes || len(b) > MaxRecordBytes {
		return Record{}, fmt.Errorf("%w: %d bytes", ErrInvalidRecord, len(b))
	}
	if b[0] != 1 {
		return Record{}, fmt.Errorf("%w: unknown version %d", ErrInvalidRecord, b[0])
	}
	r := Record{Signer: common.BytesToAddress(b[1:21]), IssuedAt: binary.BigEndian.Uint64(b[21:29])}
	n, rest := int(b[29]), b[recordHead:]
	if n > MaxRecordKeys {
		return Record{}, fmt.Errorf("%w: %d keys", ErrInvalidRecord, n)
	}
	for range n {
		key, after, err := parseEntry(rest)
		if err != nil {
			return Record{}, fmt.Errorf("%w: %w", ErrInvalidRecord, err)
		}
		r.Keys, rest = append(r.Keys, key), after
	}
	if len(rest) == 0 {
		return Record{}, fmt.Errorf("%w: no signature", ErrInvalidRecord)
	}
	r.Signature = append([]byte(nil), rest...)
	return r, r.checkKeys()
}

// Encode returns the bytes that are stored on chain; 129 for one Ed25519 key.
func (r Record) Encode() []byte {
	b := make([]byte, 0, recordHead+len(r.Keys)*35+len(r.Signature))
	b = append(append(b, 1), r.Signer[:]...)
	b = binary.BigEndian.AppendUint64(b, r.IssuedAt)
	b = append(b, byte(len(r.Keys)))
	return append(append(b, r.entries()...), r.Signature...)
}

// Digest returns what the signer signs for the given agent (EIP-712, domain "ServiceAgentKey"
// version "1").
func (r Record) Digest(id ID) common.Hash {
	return typedDigest(id, recordDomain, recordType,
		wordBig(id.AgentID), wordAddress(r.Signer), word64(r.IssuedAt), crypto.Keccak256(r.entries()))
}

// TypedData is what the signer signs for the given agent as wallets take it (EIP-712, eth_signTypedData_v4); its hash is Digest.
func (r Record) TypedData(id ID) map[string]any {
	type member struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	return map[string]any{
		"types": map[string][]member{
			"EIP712Domain": {{"name", "string"}, {"version", "string"}, {"chainId", "uint256"}, {"verifyingContract", "address"}},
			"AgentKeySet":  {{"agentId", "uint256"}, {"signer", "address"}, {"issuedAt", "uint64"}, {"keysHash", "bytes32"}},
		},
		"primaryType": "AgentKeySet",
		"domain": map[string]any{"name": recordDomain, "version": "1", "chainId": strconv.FormatUint(id.ChainID, 10),
			"verifyingContract": id.Registry.Hex()},
		"message": map[string]any{"agentId": id.AgentID.String(), "signer": r.Signer.Hex(), "issuedAt": strconv.FormatUint(r.IssuedAt, 10),
			"keysHash": crypto.Keccak256Hash(r.entries()).Hex()},
	}
}

// SignedBySigner reports whether the signature is that of an ordinary account, and that account is
// Signer. When it is not, Signer may still be a contract that accepts it (ERC-1271), which only a
// [Reader] can ask.
func (r Record) SignedBySigner(id ID) bool {
	who, ok := recoverSigner(r.Digest(id), r.Signature)
	return ok && who == r.Signer && who != common.Address{}
}

func (r Record) entries() []byte {
	var b []byte
	for _, k := range r.Keys {
		b = k.appendEntry(b)
	}
	return b
}

func (r Record) checkKeys() error {
	if len(r.Keys) > MaxRecordKeys {
		return fmt.Errorf("%w: %d keys, at most %d", ErrInvalidRecord, len(r.Keys), MaxRecordKeys)
	}
	for i, k := range r.Keys {
		for _, other := range r.Keys[:i] {
			if k.Thumbprint == other.Thumbprint {
				return fmt.Errorf("%w: a key is listed twice", ErrInvalidRecord)
			}
		}
	}
	return nil
}
