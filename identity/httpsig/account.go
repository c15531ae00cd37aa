package httpsig

import (
	"crypto"
	"strconv"
	"strings"
)

// ERC-8128 signs requests with an Ethereum account (EIP-191 over the signature base, or the account's contract by ERC-1271). Two revisions
// are in use: that of January 2026 (keyid erc8128:<chainId>:<address>, no tag, never covers content-type) and that of August 2026 (tag
// erc8128, keyid eip155:<chainId>:<address> in lower case). Neither names an algorithm.

const (
	tagAccount    = "erc8128"
	accountPrefix = "erc8128:"

	// EIP191 is the algorithm of signatures by ERC-8128. It is in no registry, and never in the parameter alg.
	EIP191 Algorithm = "eip191"
)

// byAccount reports whether a signature is one of ERC-8128.
func (p Params) byAccount() bool {
	if p.HasTag {
		return p.Tag == tagAccount
	}
	return len(p.KeyID) > len(accountPrefix) && strings.EqualFold(p.KeyID[:len(accountPrefix)], accountPrefix)
}

// An Account is an Ethereum account of a chain, as a keyid of ERC-8128 names it.
type Account struct {
	Chain   uint64
	Address string // 0x and 40 hexadecimal digits, in lower case
}

// String returns the account by CAIP-10.
func (a Account) String() string {
	return "eip155:" + strconv.FormatUint(a.Chain, 10) + ":" + a.Address
}

// Account returns the account that signs by ERC-8128; ok is false for a signature of another kind, and for a keyid that names none.
func (p Params) Account() (a Account, ok bool) {
	if !p.byAccount() {
		return a, false
	}
	if p.HasTag {
		return ParseAccount(p.KeyID)
	}
	return ParseAccount("eip155:" + strings.ToLower(p.KeyID[len(accountPrefix):]))
}

// ParseAccount reads the form of [Account.String].
func ParseAccount(text string) (a Account, ok bool) {
	rest, ok := strings.CutPrefix(text, "eip155:")
	chain, address, found := strings.Cut(rest, ":")
	digits, hex := strings.CutPrefix(address, "0x")
	if !ok || !found || !hex || len(digits) != 40 || strings.Trim(digits, "0123456789abcdef") != "" || chain == "" || chain[0] < '1' || chain[0] > '9' {
		return a, false
	}
	n, err := strconv.ParseUint(chain, 10, 63)
	return Account{n, address}, err == nil
}

// AccountKey is an Ethereum account as a key, whose signatures are those of personal_sign over a signature base (ERC-8128). Check decides
// about one; its errors are those of [Key].
type AccountKey struct {
	Account
	Check func(base, sig []byte) error
}

func (k AccountKey) Algorithm() Algorithm          { return EIP191 }
func (k AccountKey) Thumbprint() string            { return k.String() }
func (k AccountKey) Public() crypto.PublicKey      { return nil }
func (k AccountKey) Verify(base, sig []byte) error { return k.Check(base, sig) }
