package erc8004

import (
	"crypto/ecdsa"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// ParseChain reads a chain as an operator writes it:
// chainId=rpcURL,identityRegistry[,reputationRegistry].
func ParseChain(s string) (Chain, error) {
	number, rest, ok := strings.Cut(s, "=")
	id, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil || id == 0 {
		return Chain{}, fmt.Errorf("%q does not begin with a chain id and =", s)
	}
	parts := strings.Split(rest, ",")
	if len(parts) < 2 || len(parts) > 3 {
		return Chain{}, fmt.Errorf("%q is not chainId=rpcURL,identityRegistry[,reputationRegistry]", s)
	}
	if u, err := url.Parse(parts[0]); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return Chain{}, fmt.Errorf("%q is not an http or https URL", parts[0])
	}
	var r Registry
	if r.Identity, err = ParseAddress(parts[1]); err != nil {
		return Chain{}, err
	}
	if len(parts) == 3 {
		if r.Reputation, err = ParseAddress(parts[2]); err != nil {
			return Chain{}, err
		}
	}
	return Chain{ID: id, RPC: parts[:1], Registries: []Registry{r}}, nil
}

// ParseAddress reads a 20-byte address, with its EIP-55 checksum when its
// letters are of both cases.
func ParseAddress(s string) (common.Address, error) {
	if !strings.HasPrefix(s, "0x") || !common.IsHexAddress(s) {
		return common.Address{}, fmt.Errorf("%q is not an address of 0x and 40 hex digits", s)
	}
	a := common.HexToAddress(s)
	if digits := s[2:]; digits != strings.ToLower(digits) && digits != strings.ToUpper(digits) && a.Hex() != s {
		return common.Address{}, fmt.Errorf("%q has a wrong EIP-55 checksum", s)
	}
	return a, nil
}

// ParseWalletKey reads a secp256k1 private key: 64 hex digits, with or without 0x.
func ParseWalletKey(s string) (*ecdsa.PrivateKey, error) {
	k, err := crypto.HexToECDSA(strings.TrimPrefix(strings.TrimSpace(s), "0x"))
	if err != nil {
		return nil, fmt.Errorf("not a secp256k1 private key of 64 hex digits")
	}
	return k, nil
}
