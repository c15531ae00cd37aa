package sshsig

import (
	"bytes"
	"encoding/pem"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func file(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return raw
}

func TestVerify(t *testing.T) {
	t.Parallel()
	key, err := ParseKey(string(file(t, "key.pub")))
	require.NoError(t, err)
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
		_, err := ParseKey(line)
		require.Error(t, err, line)
	}
}

func FuzzVerify(f *testing.F) {
	key, err := ParseKey(string(file(f, "key.pub")))
	require.NoError(f, err)
	text := file(f, "SHA256SUMS")
	f.Add(file(f, "sha512.sig"), text)
	f.Fuzz(func(t *testing.T, sig, signed []byte) {
		if Verify(key, "stoa-release", signed, sig) == nil {
			require.Equal(t, text, signed)
		}
	})
}
