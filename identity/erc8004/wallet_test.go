package erc8004

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// The vectors of the Web3 Secret Storage definition (https://ethereum.org/developers/docs/data-structures-and-encoding/web3-secret-storage/).
const (
	vectorSecret     = "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d"
	vectorPassphrase = "testpassword"
	vectorPBKDF2     = `{"crypto":{"cipher":"aes-128-ctr","cipherparams":{"iv":"6087dab2f9fdbbfaddc31a909735c1e6"},` +
		`"ciphertext":"5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46","kdf":"pbkdf2",` +
		`"kdfparams":{"c":262144,"dklen":32,"prf":"hmac-sha256","salt":"ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"},` +
		`"mac":"517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"},"id":"3198bc9c-6672-5ab3-d995-4942343ae5b6","version":3}`
	vectorScrypt = `{"crypto":{"cipher":"aes-128-ctr","cipherparams":{"iv":"83dbcc02d8ccb40e466191a123791e0e"},` +
		`"ciphertext":"d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c","kdf":"scrypt",` +
		`"kdfparams":{"dklen":32,"n":262144,"p":8,"r":1,"salt":"ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19"},` +
		`"mac":"2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097"},"id":"3198bc9c-6672-5ab3-d995-4942343ae5b6","version":3}`
	// openssl ecparam -name secp256k1 -genkey; openssl pkcs8 -topk8 -nocrypt
	vectorPEM  = "fd7e7e9d01469dc55410f88545ad27eba5140fab06132e241537d1a37d39014e"
	vectorSEC1 = `-----BEGIN EC PARAMETERS-----
BgUrgQQACg==
-----END EC PARAMETERS-----
-----BEGIN EC PRIVATE KEY-----
MHQCAQEEIP1+fp0BRp3FVBD4hUWtJ+ulFA+rBhMuJBU30aN9OQFOoAcGBSuBBAAK
oUQDQgAEitBOvWmu64l4AHgWD/iZqgnvPbTgk5kEdlOmgGay1aDNK8Olp8mxHZAo
MvRci5pWR5Eg0feS2f1t0xsM2CzVaA==
-----END EC PRIVATE KEY-----
`
	vectorPKCS8 = `-----BEGIN PRIVATE KEY-----
MIGEAgEAMBAGByqGSM49AgEGBSuBBAAKBG0wawIBAQQg/X5+nQFGncVUEPiFRa0n
66UUD6sGEy4kFTfRo305AU6hRANCAASK0E69aa7riXgAeBYP+JmqCe89tOCTmQR2
U6aAZrLVoM0rw6WnybEdkCgy9FyLmlZHkSDR95LZ/W3TGwzYLNVo
-----END PRIVATE KEY-----
`
)

func TestReadWallet(t *testing.T) {
	t.Parallel()
	word := func() (string, error) { return vectorPassphrase, nil }
	for name, file := range map[string]string{"hex": "0x" + vectorSecret + "\n", "pbkdf2": vectorPBKDF2, "scrypt": vectorScrypt,
		"spelt Crypto": strings.Replace(vectorPBKDF2, "crypto", "Crypto", 1)} {
		k, err := ReadWallet([]byte(file), word)
		require.NoError(t, err, name)
		require.Equal(t, vectorSecret, hex.EncodeToString(crypto.FromECDSA(k)), name)
	}
	for _, file := range []string{vectorSEC1, vectorPKCS8} {
		require.Equal(t, vectorPEM, hex.EncodeToString(crypto.FromECDSA(must.Get(ReadWallet([]byte(file), word))(t))))
	}
	require.ErrorContains(t, must.Err(ReadWallet([]byte(vectorPBKDF2), func() (string, error) { return "another", nil })), "the passphrase is not the one")
	_, err := ReadWallet([]byte(vectorPBKDF2), func() (string, error) { return "", ErrSealed })
	require.True(t, errors.Is(err, ErrSealed))
	for _, bad := range []string{"{}", strings.Replace(vectorScrypt, "262144", "1073741824", 1), strings.Replace(vectorPBKDF2, "262144", "2621440000", 1),
		strings.Replace(vectorPBKDF2, `"ciphertext":"53`, `"ciphertext":"`, 1), "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----", "0x12"} {
		require.Error(t, must.Err(ReadWallet([]byte(bad), word)), bad)
	}
}
