package node_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
)

// Twenty nodes need eight primes, and no two have the same key.
func TestRSAPool(t *testing.T) {
	t.Parallel()
	var p nodetest.RSAPool
	seen := map[string]bool{}
	for range 20 {
		pair, err := p.Pair()
		require.NoError(t, err)
		seen[pair.Thumbprint()] = true
	}
	require.Len(t, seen, 20)
	require.LessOrEqual(t, len(p.Primes), 8)
}
