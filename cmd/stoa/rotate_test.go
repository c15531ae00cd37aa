package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// TestRotate: the commands that replace the master key and the node's keys say what to do next, and the node signs with other keys after.
func TestRotate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	admin := func(args ...string) (string, string) {
		t.Helper()
		out, errs, code := typed(t, "", append(append([]string{"admin"}, args...), "--json", "--data", dir, "--base-url", "https://n1.example")...)
		require.Equal(t, exitDone, code, "%v: %s", args, errs)
		return out, errs
	}
	signs := func(out string) (signs string, all int) {
		t.Helper()
		var keys struct{ Items []map[string]string }
		require.NoError(t, json.Unmarshal([]byte(out), &keys))
		for _, k := range keys.Items {
			if k["state"] == "signs" {
				signs = k["keyid"]
			}
		}
		return signs, len(keys.Items)
	}
	out, _ := admin("node-key", "list")
	first, _ := signs(out)
	file := filepath.Join(dir, "master.key")
	was := must.Get(os.ReadFile(file))(t)
	out, errs := admin("rotate", "master-key")
	var done struct {
		Sealed int
		Former string
	}
	require.NoError(t, json.Unmarshal([]byte(out), &done))
	require.GreaterOrEqual(t, done.Sealed, 4, "the node's own")
	require.Contains(t, errs, done.Former)
	require.Equal(t, was, must.Get(os.ReadFile(done.Former))(t))
	out, _ = admin("node-key", "list")
	same, _ := signs(out)
	require.Equal(t, first, same, "the key itself stays")

	_, errs = admin("rotate", "node-keys")
	require.Contains(t, errs, "Restart the node after")
	_, refused, code := typed(t, "", "admin", "rotate", "node-keys", "--data", dir)
	require.NotEqual(t, exitDone, code)
	require.Contains(t, refused, string(protocol.Conflict))
	out, _ = admin("node-key", "list")
	still, n := signs(out)
	require.Equal(t, first, still, "until the next one begins")
	require.Equal(t, 2, n)
	out, _ = admin("rotate", "node-keys", "--now")
	require.Equal(t, 2, strings.Count(out, `"ended"`))
}
