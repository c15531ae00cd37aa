package node_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"stoa/node"
	"stoa/protocol/must"
)

// TestGenerated fails when a generated file in the repository is stale.
func TestGenerated(t *testing.T) {
	t.Parallel()
	files := must.Get(node.Generate())(t)
	for _, f := range files {
		committed := must.Get(os.ReadFile(filepath.Join("..", filepath.FromSlash(f.Path))))(t)
		file := must.Get(f.File(committed))(t)
		if !bytes.Equal(file, committed) {
			t.Errorf("%s is stale: run make generate", f.Path)
		}
	}
}
