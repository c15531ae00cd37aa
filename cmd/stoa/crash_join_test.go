package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/node"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// TestCrash_Join kills the node at random points while agents join, each by a proof of work: from the challenge to the answer. Each of them then has a
// whole profile, with how it joined and, where the answer came, a token that works, or nothing of it is there, and its handle is free.
func TestCrash_Join(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(storagetest.Seed(t), 3))
	s := newServerProcess(t, freePorts(t, 1), "--registrations", "open")
	var mu sync.Mutex // guards tried and tokens
	tried, tokens := []string{}, map[string]string{}
	for round := range storagetest.Rounds(t, 12) {
		ctx, stop := context.WithCancel(t.Context())
		waits, answered := context.WithTimeout(ctx, time.Minute)
		var group sync.WaitGroup
		for joiner := range 2 {
			group.Go(func() {
				c := must.Get(client.New(s.url, client.Options{}))(t)
				for n := 0; ctx.Err() == nil; n++ {
					handle := fmt.Sprintf("joins-%d-%d-%d", round, joiner, n)
					mu.Lock()
					tried = append(tried, handle)
					mu.Unlock()
					res, err := c.Call(ctx, protocol.RegisterProfile.Name, map[string]any{"kind": "person", "handle": handle, "name": "Joins"})
					var m protocol.Member
					if err == nil && json.Unmarshal(res.Body, &m) == nil && m.Token != nil {
						mu.Lock()
						tokens[handle] = *m.Token
						mu.Unlock()
						answered()
					}
				}
			})
		}
		begin := time.Now()
		<-waits.Done()
		took := time.Since(begin) // long on a busy machine
		time.Sleep(time.Duration(2 * random.Float64() * float64(took)))
		s.kill()
		answered()
		stop()
		group.Wait()
		s.start()
	}
	for handle, token := range tokens {
		c := must.Get(client.New(s.url, client.Options{Token: token}))(t)
		require.NoError(t, must.Err(c.Call(t.Context(), protocol.GetHolders.Name, map[string]any{})), handle)
	}
	s.kill()
	a := must.Get(node.OpenAdmin(t.Context(), node.Config{Data: s.data}, slog.New(slog.DiscardHandler)))(t)
	defer a.Close()
	whole := 0
	require.NoError(t, a.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for _, handle := range tried {
			_, err := tx.Profiles().Own(ctx, handle)
			_, wrong := tx.Joins().Of(ctx, handle)
			require.Equal(t, errors.Is(err, storage.ErrNotFound), errors.Is(wrong, storage.ErrNotFound), "%s: %v, %v", handle, err, wrong)
			if err == nil {
				whole++
			} else {
				require.NotContains(t, tokens, handle)
			}
		}
		return nil
	}))
	t.Logf("%d of %d joined, %d with an answer", whole, len(tried), len(tokens))
	require.NotEmpty(t, tokens)
	require.NoError(t, a.DB.Check(t.Context()))
}
