package erc8004

import (
	"crypto/ecdsa"
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

var domainType = crypto.Keccak256([]byte("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"))

// typedDigest returns the EIP-712 digest of one struct whose members are the given 32-byte words,
// under a domain of version "1" with the registry of id. The chain and the registry in the domain
// make the signature invalid anywhere else.
func typedDigest(id ID, domain string, structType []byte, members ...[]byte) common.Hash {
	sep := crypto.Keccak256(domainType, crypto.Keccak256([]byte(domain)), crypto.Keccak256([]byte("1")),
		word64(id.ChainID), wordAddress(id.Registry))
	body := crypto.Keccak256(append([][]byte{structType}, members...)...)
	return crypto.Keccak256Hash([]byte{0x19, 0x01}, sep, body)
}

func word64(v uint64) []byte {
	w := make([]byte, 32)
	binary.BigEndian.PutUint64(w[24:], v)
	return w
}

func wordBig(v *big.Int) []byte { return v.FillBytes(make([]byte, 32)) }

func wordAddress(a common.Address) []byte { return common.LeftPadBytes(a[:], 32) }

// signDigest returns r | s | v with v 27 or 28, the form of contracts and wallets.
func signDigest(digest common.Hash, key *ecdsa.PrivateKey) ([]byte, error) {
	sig, err := crypto.Sign(digest[:], key)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	sig[64] += 27
	return sig, nil
}

// recoverSigner returns the account that made sig over digest. It requires exactly 65 bytes, v in
// {0, 1, 27, 28} and the low half of s: SigToPub also accepts the high twin of a signature, which
// anyone can compute.
func recoverSigner(digest common.Hash, sig []byte) (common.Address, bool) {
	if len(sig) != 65 {
		return common.Address{}, false
	}
	v := sig[64]
	if v == 27 || v == 28 {
		v -= 27
	}
	r, s := new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:64])
	if v > 1 || !crypto.ValidateSignatureValues(v, r, s, true) {
		return common.Address{}, false
	}
	norm := append(append(make([]byte, 0, 65), sig[:64]...), v)
	pub, err := crypto.SigToPub(digest[:], norm)
	if err != nil {
		return common.Address{}, false
	}
	return crypto.PubkeyToAddress(*pub), true
}
