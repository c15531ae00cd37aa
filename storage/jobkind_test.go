package storage_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage"
)

// TestJobKinds checks that JobKinds lists every declared kind once, and that the
// product names kinds by their constants, so that a typo does not compile.
func TestJobKinds(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("jobkind.go"))(t)
	var declared []storage.JobKind
	for _, m := range regexp.MustCompile(`JobKind = "([a-z-]+)"`).FindAllSubmatch(text, -1) {
		declared = append(declared, storage.JobKind(m[1]))
	}
	require.NotEmpty(t, declared)
	require.ElementsMatch(t, declared, storage.JobKinds())

	literal := regexp.MustCompile(`\bJob\{[^}]*Kind: +"|\.Handle\("[a-z-]+", |JobKind\("[^"]`)
	for _, root := range []string{"federation", "node", "storage", "identity", "cmd"} {
		require.NoError(t, filepath.WalkDir("../"+root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			require.Empty(t, literal.FindAllString(string(text), -1), "%s names a kind of job by its text", path)
			return err
		}))
	}
}
