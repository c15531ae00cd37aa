package node_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPacked: what the program has compressed is what is in the tree; make generate compresses it.
func TestPacked(t *testing.T) {
	t.Parallel()
	unpack := func(path string) string {
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		r, err := gzip.NewReader(f)
		require.NoError(t, err)
		raw, err := io.ReadAll(r)
		require.NoError(t, err)
		return string(raw)
	}
	packed, err := filepath.Glob("door/web/*/*.gz")
	require.NoError(t, err)
	require.Greater(t, len(packed), 10)
	for _, path := range append(packed, "../protocol/codes/bcp47.txt.gz", "../protocol/codes/iso3166.txt.gz", "../protocol/codes/names.txt.gz",
		"../protocol/codes/zones.txt.gz",
		"../schemas/agent-profile.v1.json.gz") {
		path = strings.TrimSuffix(path, ".gz")
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, string(raw) == unpack(path+".gz"), "%s: make generate", path)
	}
	files, err := filepath.Glob("../storage/migrations/*/*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := ""
	for _, path := range files {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		all += fmt.Sprintf("-- file: %s\n%s", path[len("../"):], raw)
	}
	require.True(t, all == unpack("../storage/migrations.gz"), "make generate")
}
