package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
	"stoa/storage/storagetest/fill"
)

// TestCrash_Backup kills what makes a backup at each of its steps. What has the name of a backup is whole, what was there before is
// untouched, and the next one is made at once and removes what was left.
func TestCrash_Backup(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, at storage.Config) {
		data, place := t.TempDir(), t.TempDir()
		settings := []string{"--data", data, "--backup-dir", place}
		if at.URL != "" {
			settings = append(settings, "--database", at.URL)
		}
		admin := func(args ...string) (string, string, int) {
			return stoa(t, "", append(append([]string{"admin"}, args...), settings...)...)
		}
		_, errs, code := admin("check")
		require.Equal(t, exitDone, code, errs)
		c := at
		if c.URL == "" {
			c.Path = filepath.Join(data, "stoa.db")
		}
		db := must.Get(storage.Open(t.Context(), c))(t)
		require.NoError(t, fill.Fill(t.Context(), db, must.Get(fill.Parse("2000"))(t)))
		require.NoError(t, db.Close())
		out, errs, code := admin("backup")
		require.Equal(t, exitDone, code, errs)
		require.Contains(t, out, "restored on trial")
		first := must.Get(os.ReadDir(place))(t)[0].Name()

		there := func(pattern string) func() bool {
			return func() bool {
				found := must.Get(filepath.Glob(pattern))(t)
				return len(found) > 0 && !(len(found) == 1 && filepath.Base(found[0]) == first)
			}
		}
		began := func(all *tail) func() bool { return func() bool { return all.String() != "" } }
		for _, step := range []string{"begun", "copy", "partial", "stored", "trial"} {
			if at.URL != "" && (step == "copy" || step == "trial") {
				continue // of SQLite
			}
			var log tail
			p := exec.Command(filepath.Join(bin(t), "stoa"), append([]string{"admin", "backup"}, settings...)...)
			p.Stderr = &log
			require.NoError(t, p.Start())
			ended := make(chan error, 1)
			go func() { ended <- p.Wait() }()
			reached := map[string]func() bool{"begun": began(&log), "copy": there(filepath.Join(data, "backup-copy.db")),
				"partial": there(filepath.Join(place, ".*.partial")), "stored": there(filepath.Join(place, "*.tar.gz")),
				"trial": there(filepath.Join(data, "backup-trial.db"))}[step]
			for running := true; running && !reached(); {
				select {
				case <-ended:
					running = false
					ended <- nil
				case <-time.After(time.Millisecond):
				}
			}
			p.Process.Kill()
			<-ended
			whole := 0
			for _, e := range must.Get(os.ReadDir(place))(t) {
				if !strings.HasPrefix(e.Name(), ".") {
					whole++
					_, errs, code := admin("restore", filepath.Join(place, e.Name()), "--check")
					require.Equal(t, exitDone, code, "killed at %q: %s: %s", step, e.Name(), errs)
				}
			}
			require.Positive(t, whole, "one that was there before, or the new one that takes its place")
		}
		out, errs, code = admin("backup", "--json")
		require.Equal(t, exitDone, code, errs)
		require.Contains(t, out, `"checked": "restored on trial"`)
		for _, dir := range []string{place, data} {
			for _, e := range must.Get(os.ReadDir(dir))(t) {
				require.NotContains(t, e.Name(), "partial")
				require.NotContains(t, e.Name(), "backup-")
				require.NotContains(t, e.Name(), ".restore")
			}
		}
		out, errs, code = admin("backup", "--list")
		require.Equal(t, exitDone, code, errs)
		require.NotContains(t, out, first, "of a day the newest is kept")
		_, errs, code = admin("check")
		require.Equal(t, exitDone, code, errs)
	})
}
