package sshsig

import (
	"bytes"
	"encoding/pem"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func file(t testing.TB, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile("testdata/" + name))(t)
}

func TestVerify(t *testing.T) {
	t.Parallel()
	key := must.Get(ParseKey(string(file(t, "key.pub"))))(t)
	text := file(t, "SHA256SUMS")
	for _, name := range []string{"sha512.sig", "sha256.sig"} {
		sig := file(t, name)
		require.NoError(t, Verify(key, "stoa-release", text, sig), name)
		require.ErrorIs(t, Verify(key, "stoa-release", append(bytes.Clone(text), ' '), sig), ErrSignature)
		require.ErrorIs(t, Verify(key, "file", text, sig), ErrSignature)
		block, _ := pem.Decode(sig)
		for i := range block.Bytes { // each byte is covered, or refused
			changed := pem.Block{Type: block.Type, Bytes: bytes.Clone(block.Bytes)}
			changed.Bytes[i] ^= 1
			require.Error(t, Verify(key, "stoa-release", text, pem.EncodeToMemory(&changed)), "byte %d of %s", i, name)
		}
	}
	require.ErrorIs(t, Verify(key, "stoa-release", text, file(t, "other.sig")), ErrSignature)
	require.ErrorIs(t, Verify(key, "stoa-release", text, file(t, "namespace.sig")), ErrSignature)
	require.Error(t, Verify(key, "stoa-release", text, nil))
	for _, line := range []string{"", "ssh-rsa AAAA", "ssh-ed25519 AAAA", "ssh-ed25519 ?"} {
		require.Error(t, must.Err(ParseKey(line)), line)
	}
}

func FuzzVerify(f *testing.F) {
	key := must.Get(ParseKey(string(file(f, "key.pub"))))(f)
	text := file(f, "SHA256SUMS")
	f.Add(file(f, "sha512.sig"), text)
	f.Fuzz(func(t *testing.T, sig, signed []byte) {
		if Verify(key, "stoa-release", signed, sig) == nil {
			require.Equal(t, text, signed)
		}
	})
}
