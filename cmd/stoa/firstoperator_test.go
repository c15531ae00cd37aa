package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/protocol/must"
)

// TestServe_FirstOperator: a node without an operator writes no link into its log, which others may read, but the command that prints one;
// a terminal is shown the link, once. With an operator neither says anything.
func TestServe_FirstOperator(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), freePorts(t, 1)
	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	var log bytes.Buffer
	c := exec.Command(filepath.Join(bin(t), "stoa"), "serve", "--data", dir, "--listen", strings.TrimPrefix(base, "http://"), "--operator-listen=")
	c.Stdout, c.Stderr = &log, &log
	require.NoError(t, c.Start())
	require.Eventually(t, func() bool {
		res, err := http.Get(base + "/readyz")
		if err == nil {
			res.Body.Close()
		}
		return err == nil && res.StatusCode == 200
	}, time.Minute, 10*time.Millisecond)
	out, errs, code := stoa(t, "", "admin", "account", "first-operator", "--data", dir)
	require.Equal(t, exitDone, code, errs)
	i := strings.Index(out, base+"/operator?ticket=")
	require.GreaterOrEqual(t, i, 0, out)
	res := must.Get(http.Get(strings.Fields(out[i:])[0]))(t)
	page := string(must.Get(io.ReadAll(res.Body))(t))
	require.NoError(t, res.Body.Close())
	require.Equal(t, 200, res.StatusCode, page)
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	require.Contains(t, log.String(), "no operator yet: stoa admin account first-operator")
	require.NotContains(t, log.String(), "ticket=")

	var shown bytes.Buffer
	cfg := node.Config{Data: t.TempDir()}
	w := &world{ctx: t.Context(), stdout: &shown}
	a := must.Get(node.OpenAdmin(t.Context(), cfg, newLogger(io.Discard, cfg)))(t)
	defer func() { require.NoError(t, a.Close()) }()
	for _, terminal := range []bool{false, true, true} {
		require.NoError(t, offerOperator(w, a, terminal))
	}
	require.Equal(t, 1, strings.Count(shown.String(), "ticket="), shown.String())
	_, _, code = stoa(t, "", "admin", "account", "create", "Asha", "--role", "operator", "--data", cfg.Data)
	require.Equal(t, exitDone, code)
	shown.Reset()
	for _, terminal := range []bool{false, true} {
		require.NoError(t, offerOperator(w, a, terminal))
	}
	require.Empty(t, shown.String())
}
