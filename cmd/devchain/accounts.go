package main

import (
	"crypto/ecdsa"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// An Account is a funded account with its key, the same at every start.
type Account struct {
	Address    common.Address `json:"address"`
	PrivateKey hexutil.Bytes  `json:"privateKey"`
}

const accountCount = 10

func devKey(name string) *ecdsa.PrivateKey {
	k, err := crypto.ToECDSA(crypto.Keccak256([]byte("stoa devchain " + name)))
	if err != nil {
		panic(err) // fixed names; all of them give a valid scalar
	}
	return k
}

// accountKey is the key of the n-th funded account.
func accountKey(n int) *ecdsa.PrivateKey { return devKey(fmt.Sprintf("account %d", n)) }

// deployerKey signs the first two transactions, which fixes the addresses of
// the registries.
func deployerKey() *ecdsa.PrivateKey { return devKey("deployer") }

func accounts() []Account {
	var out []Account
	for n := range accountCount {
		k := accountKey(n)
		out = append(out, Account{crypto.PubkeyToAddress(k.PublicKey), crypto.FromECDSA(k)})
	}
	return out
}

// funds gives each account a million ether.
func funds() types.GenesisAlloc {
	million := new(big.Int).Mul(big.NewInt(1_000_000), big.NewInt(params.Ether))
	alloc := types.GenesisAlloc{crypto.PubkeyToAddress(deployerKey().PublicKey): {Balance: million}}
	for _, a := range accounts() {
		alloc[a.Address] = types.Account{Balance: million}
	}
	return alloc
}
