package node_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
)

// TestGenerated fails when a generated file in the repository is stale.
func TestGenerated(t *testing.T) {
	t.Parallel()
	files, err := node.Generate()
	require.NoError(t, err)
	for _, f := range files {
		committed, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(f.Path)))
		require.NoError(t, err)
		file, err := f.File(committed)
		require.NoError(t, err)
		if !bytes.Equal(file, committed) {
			t.Errorf("%s is stale: run make generate", f.Path)
		}
	}
}
