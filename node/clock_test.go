package node_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readsClock finds the calls that read the clock of the machine, or that of a package's configuration.
var readsClock = regexp.MustCompile(`\btime\.(Now|Since|Until)\(|\b[nN]ow\(\)`)

// wallClock lists the files of writing packages that may read a clock, and what for. They store nothing of it.
var wallClock = map[string]string{
	"storage/migrate.go":                  "how long a migration took, for the log",
	"storage/partmove.go":                 "for how long a job moves posts, in memory",
	"storage/commit/writer.go":            "how long a write waits, for traces",
	"storage/pending.go":                  "when to look again, in memory",
	"storage/commit/generation.go":        "age of what was read, in memory",
	"node/metrics.go":                     "how long the certificate is valid, for a gauge",
	"node/backup.go":                      "names of what is kept, and the time in a file",
	"node/work/backup/backup.go":          "how long a backup took",
	"node/hall/streams.go":                "deadlines of writes, and the date of an answer",
	"node/room/credential/progress.go":    "age of a cache",
	"node/room/credential/signin.go":      "ages of texts and tokens, which are signed and not stored",
	"node/hall/draft.go":                  "age of a count, in memory",
	"node/room/account/oauth.go":          "ages of codes and ids, which are sealed and not stored",
	"node/room/account/oauthclient.go":    "age of a cache",
	"node/room/directory/fetch.go":        "how long a directory asks to wait",
	"node/room/operate/health.go":         "when this process began",
	"node/room/reputation/fetch.go":       "ages of limits and caches, in memory",
	"federation/boost.go":                 "age of a cache",
	"federation/prepare.go":               "how long deliveries yield, in memory",
	"federation/message.go":               "the rate of a domain's mentions of the board",
	"federation/deliver.go":               "how long a peer asks to wait",
	"federation/fanout.go":                "name of this process",
	"federation/head.go":                  "time of a signed head",
	"federation/inbox.go":                 "age of a measurement, in memory",
	"federation/key.go":                   "age of a cache",
	"federation/log.go":                   "age of a cache",
	"federation/logpage.go":               "age of a cache",
	"federation/logtree.go":               "how often progress is logged",
	"federation/pull.go":                  "how long a job has run; age of a cache",
	"federation/reader.go":                "age of a cache",
	"federation/remote.go":                "age of a cache; rates, in memory",
	"federation/reach.go":                 "rates, in memory",
	"node/work/doctor/address.go":         "how long a certificate is valid",
	"node/work/doctor/doctor.go":          "the clock that is examined",
	"node/work/doctor/inside.go":          "how far the clock is off, and ages of what is stored",
	"node/work/doctor/mark.go":            "whether a mark has expired",
	"federation/sign.go":                  "when a request is signed",
	"federation/stranger.go":              "which fetch is the oldest",
	"federation/verify.go":                "rates, in memory",
	"federation/witness.go":               "time of a cosignature",
	"node/room/account/signinby.go":       "whether what was signed has expired",
	"node/room/archive/receipts.go":       "whether a key that verifies has expired",
	"node/room/archive/steps.go":          "how long a step may take",
	"node/room/credential/chain.go":       "age of a cache",
	"node/room/credential/credentials.go": "age of a cache",
	"node/room/credential/enrolments.go":  "when to check again, in memory",
	"node/hall/cache.go":                  "age of a cache",
	"node/hall/hall.go":                   "how long a request took",
	"node/hall/limit.go":                  "rates, in memory",
	"node/hall/share.go":                  "rates, in memory",
	"node/room/feed/hub.go":               "when a stream sends a sign of life",
	"node/work/liveness/ask.go":           "age of a cache",
	"node/work/liveness/sightings.go":     "what was recorded within the hour, in memory",
	"node/room/operate/follow.go":         "whether a follow is given up",
	"node/room/operate/rules.go":          "age of a cache",
	"node/room/operate/usage.go":          "for how long rates were counted",
	"node/routes.go":                      "age of a cache",
	"node/nodetest/tick.go":               "when the next millisecond begins",
	"node/nodetest/chain.go":              "when a key record is signed",
	"node/nodetest/account.go":            "when a request is signed",
	"node/room/credential/prove.go":       "when a document is signed, and whether a cached key is good",
	"node/work/worker/worker.go":          "how long a job took",
	"storage/commit/available.go":         "when the log last named the fault",
	"storage/commit/db.go":                "tx.Now itself",
	"storage/replace.go":                  "name of a file",
	"storage/upgrade.go":                  "how long a trial took, and its name",
	"storage/commit/conn.go":              "how long a caller waits",
	"storage/commit/batch.go":             "how long a step of a write took",
	"storage/commit/traced.go":            "how long a step of a write took",
	"storage/commit/reach.go":             "how long a server may be silent",
	"storage/commit/replica.go":           "how long a server may be silent",
	"storage/storagetest/pooler.go":       "how long a program may take to start",
	"storage/storagetest/servers.go":      "how long a program may take to start",
	"node/check.go":                       "whether a certificate has expired",
	"node/rotate.go":                      "name of a file",
	"storage/storagetest/storagetest.go":  "seed of tests",
	"storage/number.go":                   "how long a round took",
}

// TestOneClock checks that tx.Now is the only clock of stored times: a package that writes reads no other clock, except
// in the files of wallClock. A package that does not write passes durations to one that does.
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
			if readsClock.Match(text) {
				found[folder] = append(found[folder], filepath.ToSlash(strings.TrimPrefix(path, "../")))
			}
			return nil
		}))
		for folder, files := range found {
			for _, file := range files {
				if writes[folder] && wallClock[file] == "" {
					t.Errorf("%s reads a clock: stored times come from tx.Now; if nothing of it is stored, add the file to wallClock", file)
				}
				used[file] = true
			}
		}
	}
	for file := range wallClock {
		require.True(t, used[file], "%s reads no clock: remove it from wallClock", file)
	}
}
