package erc8004

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// Vectors of the project, made with the reference contracts and go-ethereum's
// own EIP-712 code; copied unchanged.
const (
	vectorID     = "eip155:31337:0x5fbdb2315678afecb367f032d93f642f64180aa3:1"
	vectorX      = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" // RFC 8037 A.2
	vectorThumb  = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" // RFC 8037 A.3
	vectorDigest = "4ae237b500862ac6185afe3694a2afe861f1a0ece0563bdbb4cfa28c847e73fe"
	vectorRecord = "01f390bdbc27475adfeda463b9ca5b1d879aa277d300000000691f02c001ed01d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a" +
		"faf5f9b04e42355399885a5b25ff7551962f208225324669f4f184f25de4d6d95bb9da97e365f54fda9648dd7e6e2796b578ec52fc02c031634d71258420e6ea1b"
	vectorEmpty = "01f390bdbc27475adfeda463b9ca5b1d879aa277d300000000691f02c10014d9144acdc7d5254805e836b134ae14a769ffc3773e76fea7634eb42133142b" +
		"5a01368226ed701f33987e148363874dd86c314b710e78879c43ff6a50d3c8621b"
)

func walletKey() *ecdsa.PrivateKey {
	k, _ := crypto.ToECDSA(crypto.Keccak256([]byte("stoa test wallet 1")))
	return k
}

func vectorKey(t testing.TB) Key {
	t.Helper()
	x := must.Get(base64.RawURLEncoding.DecodeString(vectorX))(t)
	return must.Get(NewKey(ed25519.PublicKey(x)))(t)
}

func seedKey(t testing.TB, seed string) Key {
	t.Helper()
	sum := sha256.Sum256([]byte(seed))
	return must.Get(NewKey(ed25519.NewKeyFromSeed(sum[:]).Public()))(t)
}

func p256Key(t testing.TB, seed string) Key {
	t.Helper()
	sum := sha256.Sum256([]byte(seed))
	priv := must.Get(ecdsa.ParseRawPrivateKey(elliptic.P256(), sum[:]))(t)
	return must.Get(NewKey(&priv.PublicKey))(t)
}

func mustID(t testing.TB, s string) ID {
	t.Helper()
	return must.Get(ParseID(s))(t)
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	return must.Get(hex.DecodeString(s))(t)
}

func TestRecord_Vectors(t *testing.T) {
	t.Parallel()
	id := mustID(t, vectorID)
	key := vectorKey(t)
	require.Equal(t, vectorThumb, key.Thumbprint)
	require.Equal(t, "ed01d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", hex.EncodeToString(key.appendEntry(nil)))
	require.Equal(t, "6799a157613cf87094eeb53f70c8e1e97364cc61b61b6353aa81992e2dacef46", hex.EncodeToString(recordType))

	r := must.Get(SignRecord(id, []Key{key}, time.Unix(1763640000, 0), walletKey()))(t)
	require.Equal(t, "0xF390bdBc27475ADFeda463b9Ca5B1d879AA277D3", r.Signer.Hex())
	require.Equal(t, vectorDigest, hex.EncodeToString(r.Digest(id).Bytes()))
	require.Equal(t, "34f3db605291e7782c66aa026173b47e5ee95629540095ea55fe829978478fe5", hex.EncodeToString(crypto.Keccak256(r.entries())))
	require.Equal(t, vectorRecord, hex.EncodeToString(r.Encode()))
	require.Len(t, r.Encode(), 129)

	back := must.Get(ParseRecord(unhex(t, vectorRecord)))(t)
	require.Equal(t, r, back)
	require.True(t, back.SignedBySigner(id))

	empty := must.Get(SignRecord(id, nil, time.Unix(1763640001, 0), walletKey()))(t)
	require.Equal(t, vectorEmpty, hex.EncodeToString(empty.Encode()))
	back = must.Get(ParseRecord(unhex(t, vectorEmpty)))(t)
	require.True(t, back.SignedBySigner(id))
	require.Empty(t, back.Keys)
}

func TestWalletDigest_Vector(t *testing.T) {
	t.Parallel()
	id := mustID(t, "eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:22")
	wallet := common.HexToAddress("0xF390bdBc27475ADFeda463b9Ca5B1d879AA277D3")
	d := WalletDigest(id, wallet, common.HexToAddress("0xaa"), big.NewInt(1763640300))
	require.Equal(t, "4d2dfad1d474a9f92a4d8b407b705b36c1cf3a5dd66e6db3b34073f6f03e2e6f", hex.EncodeToString(d[:]))
	sig := must.Get(signDigest(d, walletKey()))(t)
	require.Equal(t, "164bdadbea483a25a43df85458090e22d9bad8865d80e6dda95f98a8067e2e81"+
		"150244ffe7c22b5b39aedb1b9cfbddcfbd4ec46237a2b35f9d61dbe7298f48341b", hex.EncodeToString(sig))
}

func TestCalldata_Vectors(t *testing.T) {
	t.Parallel()
	require.Equal(t, "6352211e"+hex.EncodeToString(word64(1)), hex.EncodeToString(mustPack("ownerOf", common.Big1)))
	require.Equal(t, "cb4799f2"+hex.EncodeToString(word64(1))+hex.EncodeToString(word64(0x40))+hex.EncodeToString(word64(9))+
		"6167656e744b6579730000000000000000000000000000000000000000000000", hex.EncodeToString(mustPack("getMetadata", common.Big1, MetadataKeys)))
	for method, selector := range map[string]string{"register": "8ea42286", "setMetadata": "466648da", "setAgentURI": "0af28bd3",
		"setAgentWallet": "2d1ef5ae", "unsetAgentWallet": "3fddcf19", "transferFrom": "23b872dd", "approve": "095ea7b3",
		"tokenURI": "c87b56dd", "getAgentWallet": "00339509", "isValidSignature": "1626ba7e"} {
		require.Equal(t, selector, hex.EncodeToString(registryABI.Methods[method].ID), method)
	}
	for topic, want := range map[common.Hash]string{
		topicTransfer:    "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
		topicRegistered:  "ca52e62c367d81bb2e328eb795f7c7ba24afb478408a26c0e201d155c449bc4a",
		topicMetadataSet: "2c149ed548c6d2993cd73efe187df6eccabe4538091b33adbd25fafdb8a1468b",
		topicURIUpdated:  "3a2c7fffc2cba7582c690e3b82c453ea02a308326a98a3ad7576c606336409fb",
		topicUpgraded:    "bc7cd75a20ee27fd9adebab32041f755214dbc6bffa90cc0225b39da2e5c2d3b",
		authorityKeys[0]: "00a1979d4c528ed9fd68ab0f3b31c6a5a582287743855779ed4bbcdf17ea38a4",
		authorityKeys[1]: "2ac6109326e720d1435c0db66f7e35eda7839f52b6f1f5520a60788e132b4e39",
		authorityKeys[2]: "e1ac47485725de7a26317065ce7d9131cd76599490d258faf11bad54ce06a72e",
	} {
		require.Equal(t, want, hex.EncodeToString(topic[:]))
	}
}

func TestRecord_BothCurves(t *testing.T) {
	t.Parallel()
	id := mustID(t, vectorID)
	keys := []Key{p256Key(t, "1"), seedKey(t, "2"), p256Key(t, "3"), seedKey(t, "4")}
	r := must.Get(SignRecord(id, keys, time.Unix(1763640000, 0), walletKey()))(t)
	back := must.Get(ParseRecord(r.Encode()))(t)
	require.Equal(t, r, back)
	require.True(t, back.SignedBySigner(id))
	for _, k := range keys {
		require.Len(t, k.Thumbprint, 43)
	}
	require.ErrorIs(t, must.Err(SignRecord(id, append(keys, seedKey(t, "5")), time.Unix(1, 0), walletKey())), ErrInvalidRecord)
}

func TestNewKey_P256Thumbprint(t *testing.T) {
	t.Parallel()
	// The P-256 key of RFC 7515 A.3; its thumbprint computed with jwx v2.
	x, _ := base64.RawURLEncoding.DecodeString("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU")
	y, _ := base64.RawURLEncoding.DecodeString("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")
	pub := must.Get(ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...)))(t)
	require.Equal(t, "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U", must.Get(NewKey(pub))(t).Thumbprint)
}

func TestParseRecord_Strict(t *testing.T) {
	t.Parallel()
	good := unhex(t, vectorRecord)
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	double := func() []byte {
		b := bytes.Clone(good[:64])
		b[29] = 2
		return append(append(b, good[30:64]...), good[64:]...)
	}
	for name, b := range map[string][]byte{
		"empty":        nil,
		"head alone":   good[:30],
		"no signature": good[:64],
		"version":      edit(func(b []byte) []byte { b[0] = 2; return b }),
		"codec":        edit(func(b []byte) []byte { b[30] = 0xec; return b }),
		"five keys":    edit(func(b []byte) []byte { b[29] = 5; return b }),
		"short entry":  append(edit(func(b []byte) []byte { b[29] = 1; return b })[:32], 1, 2, 3),
		"not on curve": edit(func(b []byte) []byte { copy(b[32:64], bytes.Repeat([]byte{2}, 32)); return b }),
		"identity point": edit(func(b []byte) []byte {
			copy(b[32:64], append([]byte{1}, make([]byte, 31)...))
			return b
		}),
		"same key twice": double(),
		"too long":       append(bytes.Clone(good), make([]byte, 4096)...),
	} {
		require.ErrorIs(t, must.Err(ParseRecord(b)), ErrInvalidRecord, name)
	}
}

func TestSignedBySigner_Forgeries(t *testing.T) {
	t.Parallel()
	id := mustID(t, vectorID)
	good := must.Get(ParseRecord(unhex(t, vectorRecord)))(t)
	for name, other := range map[string]string{
		"other agent":    "eip155:31337:0x5fbdb2315678afecb367f032d93f642f64180aa3:2",
		"other chain":    "eip155:31338:0x5fbdb2315678afecb367f032d93f642f64180aa3:1",
		"other registry": "eip155:31337:0x5fbdb2315678afecb367f032d93f642f64180aa4:1",
	} {
		require.False(t, good.SignedBySigner(mustID(t, other)), name)
	}
	n, _ := new(big.Int).SetString("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)
	for name, f := range map[string]func(r *Record){
		"later":                             func(r *Record) { r.IssuedAt++ },
		"other key":                         func(r *Record) { r.Keys = []Key{seedKey(t, "evil")} },
		"no keys":                           func(r *Record) { r.Keys = nil },
		"signer":                            func(r *Record) { r.Signer[0]++ },
		"zero signer with broken signature": func(r *Record) { r.Signer = common.Address{}; r.Signature = make([]byte, 65) },
		"high s": func(r *Record) { // the twin that SigToPub takes
			s := new(big.Int).Sub(n, new(big.Int).SetBytes(r.Signature[32:64]))
			s.FillBytes(r.Signature[32:64])
			r.Signature[64] ^= 27 ^ 28
		},
		"v":     func(r *Record) { r.Signature[64] = 29 },
		"long":  func(r *Record) { r.Signature = append(r.Signature, 0) },
		"short": func(r *Record) { r.Signature = r.Signature[:64] },
	} {
		r := good
		r.Signature = bytes.Clone(good.Signature)
		f(&r)
		require.False(t, r.SignedBySigner(id), name)
	}
	low := good
	low.Signature = bytes.Clone(good.Signature)
	low.Signature[64] -= 27
	require.True(t, low.SignedBySigner(id), "v of 0 and 1 counts too")
}

func FuzzParseRecord(f *testing.F) {
	f.Add(unhex(f, vectorRecord))
	f.Add(unhex(f, vectorEmpty))
	r := must.Get(SignRecord(mustID(f, vectorID), []Key{p256Key(f, "1"), seedKey(f, "2")}, time.Unix(1, 0), walletKey()))(f)
	f.Add(r.Encode())
	id := mustID(f, vectorID)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRecord(b)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalidRecord)
			return
		}
		require.Equal(t, b, r.Encode(), "one record has one encoding")
		r.SignedBySigner(id)
	})
}

func BenchmarkRecord_ParseAndVerify(b *testing.B) {
	raw, id := unhex(b, vectorRecord), mustID(b, vectorID)
	for b.Loop() {
		r, err := ParseRecord(raw)
		if err != nil || !r.SignedBySigner(id) {
			b.Fatal(err)
		}
	}
}
