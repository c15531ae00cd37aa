package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/protocol/must"
)

// identityFollowed: what an account holds is found on the chain, keys are dropped, and who watches sees it.
func identityFollowed(t *testing.T, w *localWorld) {
	dir := t.TempDir()
	chain := fmt.Sprintf("%d=%s,%s", w.Chain.ChainID, w.Chain.RPC, w.Chain.IdentityRegistry)
	wallet := filepath.Join(filepath.Dir(w.Nodes[0].Data), "wallet")
	_, owner := w.registrar()
	account := owner.registrar.Address().Hex()
	identity := func(args ...string) (string, string, int) {
		return stoa(t, "", append([]string{"identity"}, append(args, "--chain", chain)...)...)
	}
	done := func(args ...string) (string, string) {
		out, errs, code := identity(args...)
		require.Equal(t, exitDone, code, "%v: %s", args, errs)
		return out, errs
	}
	var keys, ids []string
	for _, name := range []string{"a", "b"} {
		file := filepath.Join(dir, name)
		_, errs, code := stoa(t, "", "keygen", file)
		require.Equal(t, exitDone, code)
		ids = append(ids, strings.TrimSpace(strings.TrimPrefix(errs, "keyid ")))
		keys = append(keys, "--key", file)
	}
	out, errs := done(append([]string{"register", "--wallet", wallet, "--uri", "https://agent.example/x"}, keys...)...)
	id := strings.TrimSpace(out)
	require.Contains(t, errs, "Registering: gas ")
	require.Contains(t, errs, "of the chain's currency")
	done("watch", "--every", "100ms", "--until-final", id)

	t.Run("list", func(t *testing.T) {
		for _, whose := range [][]string{{account}, {"--wallet", wallet}} {
			out, errs := done(append([]string{"list", "--json"}, whose...)...)
			require.Contains(t, errs, "searching from block")
			l := must.JSON[holdings]([]byte(out))(t)
			require.True(t, l.Complete)
			require.Equal(t, account, l.Account)
			require.Equal(t, *l.Owned, len(l.Identities))
			found := false
			for _, v := range l.Identities {
				require.Equal(t, account, v.Owner)
				if strings.EqualFold(v.Identity, id) {
					found = true
					require.Equal(t, "https://agent.example/x", v.URI)
					require.Equal(t, []keyView{{ids[0], "Ed25519", true}, {ids[1], "Ed25519", true}}, v.Keys)
				}
			}
			require.True(t, found)
		}
		table, _ := done("list", account)
		require.Contains(t, table, ids[0]+" (chain-key)")
		_, errs, code := identity("list", account, "--limit", "1")
		require.Equal(t, exitOpen, code, "a list that is not complete")
		require.Contains(t, errs, "not complete")
		_, _, code = identity("list")
		require.Equal(t, exitUsage, code)
		empty, _ := done("list", "0x00000000000000000000000000000000000000bb")
		require.Equal(t, 1, strings.Count(empty, "\n"), "only the names of the columns")
	})

	watch := exec.Command(filepath.Join(bin(t), "stoa"), "identity", "watch", "--json", "--every", "100ms", "--chain", chain, id)
	lines := bufio.NewScanner(must.Get(watch.StdoutPipe())(t))
	require.NoError(t, watch.Start())
	t.Cleanup(func() { watch.Process.Kill(); watch.Wait() })
	next := func() (s sighting) {
		t.Helper()
		require.True(t, lines.Scan(), "the watch ended")
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		return s
	}
	require.Equal(t, erc8004.SightNow, next().Event)
	settled := func(changed ...string) (s sighting) { // reads the lines of one change until it is final
		t.Helper()
		first := next()
		require.Equal(t, erc8004.SightChanged, first.Event)
		require.Equal(t, changed, first.Changed)
		for s = first; s.Now.Pending; {
			s = next()
		}
		return s
	}

	t.Run("drop one key", func(t *testing.T) {
		drop := []string{"drop", "--wallet", wallet, id, "--key", ids[0]}
		_, errs, code := identity(drop...)
		require.Equal(t, exitUsage, code, "a pipe is no terminal")
		require.Contains(t, errs, "--yes")
		require.Contains(t, errs, "drops")
		printed, _ := done(append(drop, "--print")...)
		call := must.JSON[erc8004.Call]([]byte(printed))(t)
		require.NotZero(t, call.Gas)
		out, errs := done(append(drop, "--yes")...)
		require.Contains(t, out, "1 key, block ")
		require.Contains(t, errs, "cannot be reverted once that block is final")
		require.Equal(t, []keyView{{ids[1], "Ed25519", true}}, settled("keys").Now.Keys)
		shown, _ := done("show", id)
		require.NotContains(t, shown, ids[0])
		_, errs, code = identity(append(drop, "--yes")...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, errs, "has no key "+ids[0])
	})
	t.Run("drop all", func(t *testing.T) {
		out, _ := done("drop", "--yes", "--wallet", wallet, id)
		require.Contains(t, out, "no keys, block ")
		require.Empty(t, settled("keys").Now.Keys)
		_, errs := done("drop", "--yes", "--wallet", wallet, id)
		require.Contains(t, errs, "nothing was done")
	})
	t.Run("watch", func(t *testing.T) {
		out, _ := done("watch", "--until-final", id)
		require.Contains(t, out, "keys      none")
		require.NoError(t, watch.Process.Signal(os.Interrupt))
		ended := make(chan error, 1)
		go func() { ended <- watch.Wait() }()
		select {
		case err := <-ended:
			require.NoError(t, err, "an interrupted watch has done its work")
		case <-time.After(time.Minute):
			t.Fatal("the watch did not end")
		}
		_, _, code := identity("watch", id[:strings.LastIndex(id, ":")]+":99999")
		require.Equal(t, exitFailed, code)
	})
}
