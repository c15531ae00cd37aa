package node_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
)

// The README's list of what does not exist yet names nothing of the list of what works, which is generated.
func TestReadme(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, missing, found := strings.Cut(string(raw), "Does not exist yet:")
	require.True(t, found)
	missing, _, _ = strings.Cut(missing, "\n\n")
	for _, s := range node.Subjects {
		require.NotContains(t, strings.ToLower(missing), strings.ToLower(s), "it exists")
	}
}
