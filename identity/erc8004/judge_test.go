package erc8004

import (
	"bytes"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// TestUnwrapped: the signature in one of ERC-6492 is taken out, as its ABI says; what is not whole stays as it is.
func TestUnwrapped(t *testing.T) {
	t.Parallel()
	kind := func(name string) abi.Type { return must.Get(abi.NewType(name, "", nil))(t) }
	args := abi.Arguments{{Type: kind("address")}, {Type: kind("bytes")}, {Type: kind("bytes")}}
	inner := bytes.Repeat([]byte{7}, 65)
	head := must.Get(args.Pack(common.HexToAddress("0xca11"), []byte("create"), inner))(t)
	require.Equal(t, inner, unwrapped(append(bytes.Clone(head), wrapping...)))
	require.Equal(t, inner, unwrapped(inner))
	for n := range head { // cut anywhere
		short := append(bytes.Clone(head[:n]), wrapping...)
		require.NotPanics(t, func() { unwrapped(short) })
	}
	for i := range head { // changed anywhere
		other := append(bytes.Clone(head), wrapping...)
		other[i] ^= 0xff
		require.NotPanics(t, func() { unwrapped(other) })
	}
}
