package node_test

import (
	"crypto/rsa"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
)

// Nodes of tests have RSA keys as others have: valid, and no two the same one.
func TestRSAKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	makes := nodetest.Config(t).NewRSA
	for range 100 {
		pair, err := makes()
		require.NoError(t, err)
		require.NoError(t, pair.Signer().(*rsa.PrivateKey).Validate())
		require.False(t, seen[pair.Thumbprint()])
		seen[pair.Thumbprint()] = true
	}
}
