package eip4361

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// example is the first message of EIP-4361, "Examples".
const example = `example.com wants you to sign in with your Ethereum account:
0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2

I accept the ExampleOrg Terms of Service: https://example.com/tos

URI: https://example.com/login
Version: 1
Chain ID: 1
Nonce: 32891756
Issued At: 2021-09-30T16:25:24Z
Resources:
- ipfs://bafybeiemxf5abjwjbikoz4mc3a3dla6ual3jsgpdr4cjr3oz3evfyavhwq/
- https://example.com/my-web2-claim.json`

func TestParse(t *testing.T) {
	t.Parallel()
	m := must.Get(Parse(example))(t)
	require.Equal(t, Message{
		Domain: "example.com", Account: "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2",
		Statement: "I accept the ExampleOrg Terms of Service: https://example.com/tos", URI: "https://example.com/login", ChainID: 1, Nonce: "32891756",
		IssuedAt: "2021-09-30T16:25:24Z", Resources: []string{"ipfs://bafybeiemxf5abjwjbikoz4mc3a3dla6ual3jsgpdr4cjr3oz3evfyavhwq/",
			"https://example.com/my-web2-claim.json"},
	}, m)
	issued, expires, _ := m.Times()
	require.Equal(t, int64(1633019124), issued.Unix())
	require.True(t, expires.IsZero())

	swap := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(example) }
	bare, _, _ := strings.Cut(example, "\nResources:")
	for name, text := range map[string]string{
		"a scheme and a port":  swap("example.com wants", "http://localhost:8080 wants"),
		"no statement":         swap("I accept the ExampleOrg Terms of Service: https://example.com/tos\n", ""),
		"every line":           bare + "\nExpiration Time: 2021-09-30T17:25:24.123Z\nNot Before: 2021-09-30T16:25:24+05:30\nRequest ID: a%20b\nResources:",
		"an empty request id":  bare + "\nRequest ID: ",
		"a chain of 64 bits":   swap("Chain ID: 1\n", "Chain ID: 9223372036854775807\n"),
		"an address of a host": swap("example.com wants", "[2001:db8::1]:443 wants"),
	} {
		m, err := Parse(text)
		require.NoError(t, err, name)
		require.Equal(t, text, m.String(), name)
	}
	for name, text := range map[string]string{
		"nothing":                   "",
		"CR LF":                     strings.ReplaceAll(example, "\n", "\r\n"),
		"a line break at the end":   bare + "\n",
		"a space at the end":        bare + " ",
		"no domain":                 swap("example.com wants", " wants"),
		"a path in the domain":      swap("example.com wants", "example.com/a wants"),
		"a user in the domain":      swap("example.com wants", "evil@example.com wants"),
		"another question":          swap("sign in with", "sign  in with"),
		"no checksum":               swap("0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2", "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"),
		"a wrong checksum":          swap("0xC02aaA39", "0xc02aaA39"),
		"a short address":           swap("0xC02aaA39b223", "0xC02aaA39b2"),
		"two statements":            swap("/tos\n", "/tos\nAnd more\n"),
		"a statement in Devanagari": swap("I accept", "मैं"),
		"no empty line":             swap("Cc2\n\n", "Cc2\n"),
		"no URI":                    swap("URI: https://example.com/login\n", ""),
		"a relative URI":            swap("URI: https://example.com/login", "URI: /login"),
		"a space in the URI":        swap("URI: https://example.com/login", "URI: https://example.com/lo gin"),
		"version 2":                 swap("Version: 1", "Version: 2"),
		"no version":                swap("Version: 1\n", ""),
		"chain 0":                   swap("Chain ID: 1\n", "Chain ID: 0\n"),
		"chain 01":                  swap("Chain ID: 1\n", "Chain ID: 01\n"),
		"a chain over 64 bits":      swap("Chain ID: 1\n", "Chain ID: 99999999999999999999\n"),
		"a hexadecimal chain":       swap("Chain ID: 1\n", "Chain ID: 0x1\n"),
		"a short nonce":             swap("32891756", "3289175"),
		"a sign in the nonce":       swap("32891756", "3289175-"),
		"no time":                   swap("Issued At: 2021-09-30T16:25:24Z\n", ""),
		"no such day":               swap("2021-09-30", "2021-09-31"),
		"a time without a zone":     swap("16:25:24Z", "16:25:24"),
		"lower case":                swap("16:25:24Z", "16:25:24z"),
		"lines in another order":    swap("Version: 1\nChain ID: 1", "Chain ID: 1\nVersion: 1"),
		"a line twice":              swap("Nonce: 32891756\n", "Nonce: 32891756\nNonce: 32891756\n"),
		"an empty expiry":           bare + "\nExpiration Time: ",
		"the end before the start":  bare + "\nNot Before: 2021-09-30T16:25:24Z\nExpiration Time: 2021-09-30T16:25:24Z",
		"a line nobody knows":       bare + "\nColour: red",
		"a resource that is no URI": bare + "\nResources:\n- x y",
		"many resources":            bare + "\nResources:" + strings.Repeat("\n- https://a.example/", 11),
		"too long":                  bare + "\nResources:\n- https://a.example/" + strings.Repeat("a", MaxBytes),
	} {
		require.ErrorIs(t, must.Err(Parse(text)), ErrInvalid, name)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	got, ok := Address("0xc02AAA39b223fe8d0a0e5c4f27ead9083c756cc2")
	require.True(t, ok)
	require.Equal(t, "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2", got)
	for _, bad := range []string{"", "0x", "C02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2", "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc",
		"0xg02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"} {
		_, ok := Address(bad)
		require.False(t, ok, bad)
	}
}

// TestDigest: the digest is the one that wallets sign; the first is of eth_hashMessage("hello").
func TestDigest(t *testing.T) {
	t.Parallel()
	digest := Digest("hello")
	require.Equal(t, "50b2c43fd39106bafbba0da34fc430e1f91e3c96ea2acee2bc34119f92b37750", hex.EncodeToString(digest[:]))
	key := must.Get(crypto.HexToECDSA(strings.Repeat("46", 32)))(t)
	sig := must.Get(crypto.Sign(digest[:], key))(t)
	who := must.Get(crypto.SigToPub(digest[:], sig))(t)
	require.Equal(t, "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F", crypto.PubkeyToAddress(*who).Hex())
}

// FuzzParse: nothing panics, and what is read gives the same text again.
func FuzzParse(f *testing.F) {
	bare, _, _ := strings.Cut(example, "\nResources:")
	for _, seed := range []string{example, bare, bare + "\nExpiration Time: 2021-09-30T17:25:24Z\nNot Before: 2021-09-30T16:25:24Z\nRequest ID: x\nResources:",
		strings.Replace(example, "I accept", "", 1), "", "\n\n\n\n", asks, "a" + asks + "\n0x\n\n\nURI: "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			require.Zero(t, m)
			return
		}
		require.Equal(t, text, m.String())
		require.LessOrEqual(t, len(text), MaxBytes)
		for _, line := range []string{m.Domain, m.Statement, m.URI, m.Nonce, m.IssuedAt} {
			require.NotContains(t, line, "\n")
		}
	})
}
