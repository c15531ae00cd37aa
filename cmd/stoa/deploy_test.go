package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol/must"
)

// TestMan: the manual pages have what help has, and each is of a command that help lists.
func TestMan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, errs, code := typed(t, "", "man", dir)
	require.Equal(t, exitDone, code, errs)
	page := func(name string) string { return string(must.Get(os.ReadFile(filepath.Join(dir, name+".1")))(t)) }
	require.Contains(t, page("stoa-serve"), `\fB\-\-base\-url=URL\fR`)
	require.Contains(t, page("stoa-admin"), ".SH peer follow\nstoa admin peer follow")
	require.Contains(t, page("stoa-admin"), "stoa(1)")
	help, _, _ := typed(t, "")
	files := must.Get(filepath.Glob(filepath.Join(dir, "stoa-*.1")))(t)
	require.Greater(t, len(files), 10)
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "stoa-"), ".1")
		require.Contains(t, help, "\n  "+name+" ")
		for line := range strings.Lines(page("stoa-" + name)) {
			require.NotRegexp(t, `^\.(TH|SH|SS|TP|PP)?[^ A-Z\n]`, line, "text is no request of roff")
		}
	}
}

// TestHealth asks a node, one that is not ready, and none.
func TestHealth(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	ready := httptest.NewServer(h.OperatorHandler())
	defer ready.Close()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "stopping", http.StatusServiceUnavailable) }))
	defer busy.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	at := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	for address, want := range map[string]int{
		at(ready): exitDone, "0.0.0.0:" + strings.TrimPrefix(at(ready), "127.0.0.1:"): exitDone, at(busy): exitFailed, at(gone): exitFailed, "nonsense": exitUsage,
	} {
		out, errs, code := typed(t, "", "health", "--operator-listen", address)
		require.Equal(t, want, code, "%s: %s%s", address, out, errs)
	}
	_, errs, _ := typed(t, "", "health", "--operator-listen", at(busy))
	require.Contains(t, errs, "not ready: stopping")
}

// TestDeploy: every variable in the files of docs/deploy is a setting.
func TestDeploy(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"STOA_POSTGRES_PASSWORD": true}
	config := reflect.TypeFor[node.Config]()
	for i := range config.NumField() {
		known[config.Field(i).Tag.Get("env")] = true
	}
	for _, name := range []string{"Containerfile", "compose.yaml"} {
		found := regexp.MustCompile(`\bSTOA_[A-Z_]+\b`).FindAllString(string(must.Get(os.ReadFile("../../docs/deploy/"+name))(t)), -1)
		require.NotEmpty(t, found)
		for _, variable := range found {
			require.True(t, known[variable] || variable == "STOA_", "%s: %s is no setting", name, variable)
		}
	}
}
