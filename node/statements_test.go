package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// postStatements is how many SQL statements a signed board post may take in a full batch,
// beside the batch's own, on PostgreSQL: from the contract, §8; a change needs an issue.
const postStatements = 1

// TestStatements_SignedPost counts what PostgreSQL is asked for a full batch of signed posts by
// as many authors, and for a batch of one: the statements of the batch are the same.
//
// It runs beside no other test: what a node keeps of an author is good while it hears of changes every two seconds, and a
// starved one asks again.
func TestStatements_SignedPost(t *testing.T) {
	if os.Getenv(storagetest.PostgresEnv) == "" {
		t.Skip("needs " + storagetest.PostgresEnv)
	}
	address, asked := storagetest.Statements(t, storagetest.PostgresURL(t))
	h := nodetest.New(t, func(c *node.Config) { c.Database = address })
	const full = 128 // storage/commit
	pairs := make([]key.Pair, full)
	for i := range pairs {
		pairs[i] = h.Hosted(fmt.Sprint("author-", i))
	}
	batch := func(authors []key.Pair) int64 {
		t.Helper()
		begun, queued := make(chan struct{}), make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { // the posts gather while it runs
			_ = h.DB.Write(t.Context(), func(context.Context, *storage.Tx) error {
				close(begun)
				<-queued
				return nil
			})
		})
		<-begun
		before := asked.Load()
		for _, author := range authors {
			running.Go(func() { h.Signed(author, nodetest.GoodPost, nil) })
		}
		for h.DB.QueueLen() < len(authors) {
			time.Sleep(time.Millisecond)
		}
		close(queued)
		running.Wait()
		return asked.Load() - before
	}
	require.Equal(t, 201, h.Signed(pairs[0], nodetest.GoodPost, nil).Code)
	batch(pairs) // what the node keeps of an author, it keeps for a minute
	var all, one int64
	for range 3 { // a machine that is busy with something else starves a node
		all, one = batch(pairs), batch(pairs[:1])
		t.Logf("a batch of one: %d statements, of %d: %d", one, full, all)
		require.Positive(t, one)
		// The node asks for something of its own meanwhile; one more for each post would be 127 more.
		if all-one <= int64(postStatements*(full-1)+full/4) {
			return
		}
	}
	require.Fail(t, "too many statements", "of a batch: %d, of a post: %d", all, one)
}

// TestPost_Language: a post has the first language of its author's profile, as the profile is then, without
// asking for it.
func TestPost_Language(t *testing.T) {
	t.Parallel()
	nodetest.EachHouse(t, func(t *testing.T, h *nodetest.House) {
		pair := h.Hosted("asha")
		secret := h.OwnerToken("asha")
		language := func(a nodetest.Answer) (tag string) {
			t.Helper()
			require.Equal(t, 201, a.Code, "%s", a.Body)
			p := nodetest.As[protocol.Post](a)
			require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				stored, err := tx.Posts().ByID(ctx, p.ID)
				tag = stored.Language
				return err
			}))
			return tag
		}
		for _, want := range []string{"", "hi", "ta", ""} {
			languages := []string{}
			if want != "" {
				languages = []string{want, "en"}
			}
			profile, err := json.Marshal(map[string]any{"handle": "asha", "name": "Asha", "kind": "person", "languages": languages})
			require.NoError(t, err)
			h.PutProfile(profile)
			require.Equal(t, want, language(h.Signed(pair, nodetest.GoodPost, nil)), "signed")
			require.Equal(t, want, language(h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", "Bearer "+secret)), "with a token")
		}
		require.Empty(t, language(h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", h.Proof("board"))), "a visitor")
	})
}
