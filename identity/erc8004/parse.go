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

// ParseChain parses a chain as an operator writes it:
// chainId=rpcURL[|rpcURL…],identityRegistry[,reputationRegistry][,finality][,quorum:<n>], where
// finality is finalized (the default), safe or depth:<blocks>, and quorum is how many of the
// endpoints must give the same answer (1 by default: the first that answers is used).
func ParseChain(s string) (Chain, error) {
	number, rest, ok := strings.Cut(s, "=")
	id, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil || id == 0 {
		return Chain{}, fmt.Errorf("%q does not begin with a chain id and =", s)
	}
	c := Chain{ID: id}
	parts := strings.Split(rest, ",")
	if n, ok := strings.CutPrefix(parts[len(parts)-1], "quorum:"); ok {
		if c.Quorum, err = strconv.Atoi(n); err != nil || c.Quorum < 1 {
			return Chain{}, fmt.Errorf("chain %d: quorum:%s is not quorum:<number of endpoints>", id, n)
		}
		parts = parts[:len(parts)-1]
	}
	if last := parts[len(parts)-1]; len(parts) > 2 && !strings.HasPrefix(last, "0x") {
		if _, err := parseFinality(last); err != nil {
			return Chain{}, err
		}
		c.Finality, parts = last, parts[:len(parts)-1]
	}
	if len(parts) < 2 || len(parts) > 3 {
		return Chain{}, fmt.Errorf("chain %d is not chainId=rpcURL,identityRegistry[,reputationRegistry][,finality][,quorum:<n>]", id)
	}
	for i, endpoint := range strings.Split(parts[0], "|") {
		// An endpoint's address often contains a secret, so it is not repeated.
		if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return Chain{}, fmt.Errorf("endpoint %d of chain %d is not an http or https URL", i+1, id)
		}
		c.RPC = append(c.RPC, endpoint)
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
	c.Registries = []Registry{r}
	return c, nil
}

// ParseAddress parses a 20-byte address, and checks its EIP-55 checksum when its letters are in
// mixed case.
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

// ParseWalletKey parses a secp256k1 private key: 64 hex digits, with or without 0x.
func ParseWalletKey(s string) (*ecdsa.PrivateKey, error) {
	k, err := crypto.HexToECDSA(strings.TrimPrefix(strings.TrimSpace(s), "0x"))
	if err != nil {
		return nil, fmt.Errorf("not a secp256k1 private key of 64 hex digits")
	}
	return k, nil
}
