package node

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wallClock are the files of packages that write to the database which may read the
// clock of the machine, with what for: nothing of it is stored.
var wallClock = map[string]string{
	"federation/stranger.go":             "who waits longest for a place",
	"node/archive/steps.go":              "how long a step may take",
	"node/credential/chain.go":           "age of a cache",
	"node/credential/credentials.go":     "age of a cache",
	"node/credential/enrolments.go":      "when to look again, in memory",
	"node/dispatch/cache.go":             "age of a cache",
	"node/dispatch/dispatch.go":          "how long a request took",
	"node/dispatch/limit.go":             "rates, in memory",
	"node/dispatch/share.go":             "rates, in memory",
	"node/feed/hub.go":                   "when streams say that they are alive",
	"node/liveness/ask.go":               "age of a cache",
	"node/liveness/sightings.go":         "what was said within the hour, in memory",
	"node/operate/rules.go":              "age of a cache",
	"node/operate/usage.go":              "over how long rates were counted",
	"node/routes.go":                     "age of a cache",
	"node/worker/worker.go":              "how long a job took",
	"storage/replace.go":                 "name of a file",
	"storage/storagetest/storagetest.go": "seed of tests",
}

// TestOneClock: tx.Now is the only clock of what is stored. A package that writes
// reads no other, but for what wallClock names.
func TestOneClock(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, root := range []string{"storage", "federation", "node"} {
		writes := map[string]bool{}
		found := map[string][]string{} // folder → files that read the clock
		require.NoError(t, filepath.WalkDir("../"+root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			folder := filepath.Dir(path)
			writes[folder] = writes[folder] || root == "storage" || bytes.Contains(text, []byte(`"stoa/storage"`))
			if bytes.Contains(text, []byte("time.Now()")) {
				found[folder] = append(found[folder], filepath.ToSlash(strings.TrimPrefix(path, "../")))
			}
			return nil
		}))
		for folder, files := range found {
			for _, file := range files {
				if writes[folder] && wallClock[file] == "" {
					t.Errorf("%s reads time.Now: what is stored takes its time from tx.Now; if nothing of it is stored, name the file in wallClock", file)
				}
				used[file] = true
			}
		}
	}
	for file := range wallClock {
		require.True(t, used[file], "%s reads no clock any more: remove it from wallClock", file)
	}
}
