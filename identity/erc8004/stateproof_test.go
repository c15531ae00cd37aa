package erc8004

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
)

// The slots of the reference's namespaces, as OpenZeppelin Contracts 5 (ERC721Upgradeable) and the reference registry print them.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	for name, slot := range map[string]string{
		"openzeppelin.storage.ERC721": "0x80bb2b638cc20bc4d0a60d66940f3ab4a00c1d7b313497ca82fb0b4ab0079300",
		"erc8004.identity.registry":   "0xa040f782729de4970518741823ec1276cbcd41a0c7493f62d173341566a04e00",
	} {
		require.Equal(t, common.HexToHash(slot), common.BigToHash(namespace(name)), name)
	}
	require.Equal(t, big.NewInt(1), plus(new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)), 2), "2^256 is 0")
}
