package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
)

// start runs the program until the returned function is called.
func start(t *testing.T, state string) (Ready, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, "127.0.0.1:0", foreign, chainID, state, nil, slog.New(slog.DiscardHandler), in)
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(<-done)
	}
	var r Ready
	require.NoError(t, json.Unmarshal(line, &r))
	return r, func() { cancel(); require.NoError(t, <-done) }
}

func registrarAt(t *testing.T, r Ready, account int) *erc8004.Registrar {
	t.Helper()
	g, err := erc8004.NewRegistrar(erc8004.RegistrarConfig{RPC: r.RPC, ChainID: r.ChainID, Registry: r.IdentityRegistry, Key: accountKey(account)})
	require.NoError(t, err)
	return g
}

func readerAt(t *testing.T, r Ready) *erc8004.Reader {
	t.Helper()
	reader, err := erc8004.NewReader(erc8004.Config{Chains: []erc8004.Chain{{ID: r.ChainID, RPC: []string{r.RPC}, Poll: 200 * time.Millisecond,
		Registries: []erc8004.Registry{{Identity: r.IdentityRegistry, Reputation: r.ReputationRegistry}}}}})
	require.NoError(t, err)
	return reader
}

func TestRun_SameAgentsAfterRestart(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "chain.json")
	first, stop := start(t, state)
	require.Equal(t, uint64(chainID), first.ChainID)
	require.Len(t, first.Accounts, accountCount)
	ctx := t.Context()
	key := messageKey(t, "a")
	var ids []erc8004.ID
	for n := range 3 {
		g := registrarAt(t, first, n)
		id, _, err := g.Register(ctx, "https://node.example/")
		require.NoError(t, err)
		rec, err := erc8004.SignRecord(id, []erc8004.Key{key}, time.Now(), accountKey(n))
		require.NoError(t, err)
		_, err = g.SetKeys(ctx, id.AgentID, rec)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	_, err := registrarAt(t, first, 2).Transfer(ctx, ids[2].AgentID, address(5))
	require.NoError(t, err)
	stop()

	for range 2 { // a restart keeps the file as good as it was
		again, stop := start(t, state)
		same := again
		same.RPC = first.RPC
		require.Equal(t, first, same)
		r := readerAt(t, again)
		for n, id := range ids[:2] {
			g, err := r.Authority(ctx, id, key.Thumbprint)
			require.NoError(t, err, "final as soon as the chain is ready")
			require.Equal(t, address(n), g.Owner)
		}
		s, err := r.Snapshot(ctx, ids[2])
		require.NoError(t, err)
		require.Equal(t, address(5), s.Owner)
		id, _, err := registrarAt(t, again, 7).Register(ctx, "")
		require.NoError(t, err)
		ids = append(ids, id)
		stop()
	}
	require.Equal(t, "3", ids[3].AgentID.String())
	require.Equal(t, "4", ids[4].AgentID.String())
}

func TestRun_FinalWithinSeconds(t *testing.T) {
	t.Parallel()
	ready, stop := start(t, "")
	defer stop()
	g := registrarAt(t, ready, 0)
	key := messageKey(t, "a")
	id, _, err := g.Register(t.Context(), "")
	require.NoError(t, err)
	rec, err := erc8004.SignRecord(id, []erc8004.Key{key}, time.Now(), accountKey(0))
	require.NoError(t, err)
	begin := time.Now()
	_, err = g.SetKeys(t.Context(), id.AgentID, rec)
	require.NoError(t, err)
	included := time.Since(begin)
	require.Eventually(t, func() bool {
		_, err := readerAt(t, ready).Authority(t.Context(), id, key.Thumbprint)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	t.Logf("included after %s, final after %s", included, time.Since(begin))
}

func TestRun_Errors(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	require.Error(t, run(t.Context(), "no port", foreign, chainID, "", nil, log, io.Discard))
	bad := filepath.Join(t.TempDir(), "chain.json")
	require.NoError(t, os.WriteFile(bad, []byte(`{"version":9}`), 0o600))
	require.ErrorContains(t, run(t.Context(), "127.0.0.1:0", foreign, chainID, bad, nil, log, io.Discard), "version 9")
}
