package erc8004

import (
	"crypto/ecdsa"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// A tx is an EIP-1559 transaction without access list. go-ethereum's package core/types
// would pull in all of KZG for these lines.
type tx struct {
	chainID *big.Int
	nonce   uint64
	tip     *big.Int // wei for each gas
	feeCap  *big.Int
	gas     uint64
	to      []byte // empty deploys a contract
	data    []byte
	value   *big.Int // wei; nil for none
}

// sign returns the raw transaction: 02 | rlp(fields, yParity, r, s) (EIP-1559).
func (t tx) sign(key *ecdsa.PrivateKey) ([]byte, error) {
	value := t.value
	if value == nil {
		value = new(big.Int)
	}
	fields := []any{t.chainID, t.nonce, t.tip, t.feeCap, t.gas, t.to, value, t.data, []any{}}
	body, err := rlp.EncodeToBytes(fields)
	if err != nil {
		return nil, fmt.Errorf("encode transaction: %w", err)
	}
	sig, err := crypto.Sign(crypto.Keccak256([]byte{2}, body), key)
	if err != nil {
		return nil, fmt.Errorf("sign transaction: %w", err)
	}
	raw, err := rlp.EncodeToBytes(append(fields, sig[64], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:64])))
	return append([]byte{2}, raw...), err
}
