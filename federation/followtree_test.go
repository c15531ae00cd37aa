package federation

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/tree"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

func (n *node) followedTree(board string) (t storage.FollowedTree) {
	n.t.Helper()
	n.read(func(ctx context.Context, tx *storage.Tx) error {
		found, err := tx.Subscriptions().Tree(ctx, board)
		if err == nil {
			t = *found
		}
		return absent(err)
	})
	return t
}

// A follower accepts the tree with the log, and compares each entry with it, pushed ones and those that come before their leaves too.
func TestFollowedTree(t *testing.T) {
	onEach(t, func(t *testing.T, a, b *node, board string) {
		for range 270 {
			a.post(nil)
		}
		settle(t, a, b)
		b.tick.pass(2 * time.Minute)
		settle(t, a, b)
		f := b.followedTree(board)
		require.Equal(t, []any{int64(270), int64(270), b.subscription(board).Epoch}, []any{f.Size, f.Proved, f.Epoch})

		p := a.titled("pushed")
		settle(t, a, b)
		require.Equal(t, protocol.Visible, b.state(p.URI))
		require.EqualValues(t, 270, b.followedTree(board).Proved, "the log was not read since")
		b.tick.pass(2 * time.Minute)
		settle(t, a, b)
		require.EqualValues(t, 271, b.followedTree(board).Proved)

		// The tree is late: the entry is taken, and compared soon after the tree has it.
		a.net.set("a.example", true)
		q := a.titled("late")
		a.net.set("a.example", false)
		require.NoError(t, a.db.Numbered(t.Context()))
		b.tick.pass(21 * time.Minute)
		settle(t, b)
		require.Equal(t, protocol.Visible, b.state(q.URI))
		require.EqualValues(t, 271, b.followedTree(board).Proved)
		a.growTree()
		b.tick.pass(2 * time.Minute)
		settle(t, b)
		require.EqualValues(t, 272, b.followedTree(board).Proved)
		require.Empty(t, b.subscription(board).LastError)
	})
}

// What was deleted, hidden or changed since it was put into the tree is no contradiction for one who begins to follow.
func TestFollowedTree_Deleted(t *testing.T) {
	t.Parallel()
	a, b := two(t, nil)
	gone, hidden := a.titled("gone"), a.titled("hidden")
	a.post(nil)
	settle(t, a)
	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Logs().Redact(ctx, a.f.site.Board(), gone.ID)
	}))
	a.change(gone, protocol.Deleted, "delete")
	a.change(hidden, protocol.Hidden, "hide")
	a.change(hidden, protocol.Visible, "restore")
	settle(t, a)
	b.follow(a)
	board := protocol.BoardID(a.base)
	require.Nil(t, b.conflict(board))
	require.EqualValues(t, 6, b.followedTree(board).Proved)
}

// forge has the answers of a node to one path be made by fn.
func (n *node) forge(suffix string, fn func(body []byte) []byte) {
	n.net.mu.Lock()
	defer n.net.mu.Unlock()
	n.net.reply = func(r *http.Request, body []byte) []byte {
		if r.Host == n.name || r.URL.Host == n.name {
			if strings.HasSuffix(r.URL.Path, suffix) {
				return fn(body)
			}
		}
		return body
	}
}

// requireTreeConflict checks that b found that a's tree contradicts itself within one poll, tells both operators, and takes nothing more.
func requireTreeConflict(t *testing.T, a, b *node, board string, seq int64) *storage.Conflict {
	t.Helper()
	settle(t, a, b)
	c := b.conflict(board)
	require.NotNil(t, c)
	require.Equal(t, []any{storage.ConflictTree, seq, b.subscription(board).Epoch}, []any{c.Kind, c.Seq, c.Epoch})
	require.NotEqual(t, c.Ours, c.Theirs)
	require.Contains(t, b.subscription(board).LastError, "contradicts")
	reports := a.reports()
	require.Len(t, reports, 1)
	require.Equal(t, []any{b.name, storage.ConflictTree, seq, c.Ours, c.Theirs},
		[]any{reports[0].Board, reports[0].Kind, reports[0].Seq, reports[0].Ours, reports[0].Theirs})
	after := a.titled("after the conflict")
	b.tick.pass(time.Hour)
	settle(t, a, b)
	require.Empty(t, b.state(after.URI))
	return c
}

// The log keeps its entries as the follower has them, and its node makes another tree over them: both signed checkpoints are kept.
func TestFollowedTree_Fork(t *testing.T) {
	onEach(t, func(t *testing.T, a, b *node, board string) {
		for _, title := range []string{"one", "two", "three"} {
			a.titled(title)
		}
		put := a.copy() // before the entries are in the tree
		settle(t, a, b)
		b.tick.pass(2 * time.Minute)
		settle(t, a, b)
		require.EqualValues(t, 3, b.followedTree(board).Proved)
		put() // the salts are random: the same entries have another tree
		a.titled("four")
		b.tick.pass(21 * time.Minute)
		c := requireTreeConflict(t, a, b, board, 3)
		ours := must.Get(b.f.openCheckpoint(t.Context(), board, c.Epoch, c.OursDoc))(t)
		theirs := must.Get(b.f.openCheckpoint(t.Context(), board, c.Epoch, c.TheirsDoc))(t)
		require.Equal(t, []int64{3, 4}, []int64{ours.Size, theirs.Size})

		// The operator decides: the log is read again, with its tree.
		require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.Subscriptions().Reread(ctx, board))
		}))
		settle(t, a, b)
		require.Nil(t, b.conflict(board))
		require.EqualValues(t, 5, b.followedTree(board).Proved)
	})
}

// The text of an entry is another one than its tree has: the entry and the checkpoint, both signed, show it.
func TestFollowedTree_Content(t *testing.T) {
	a, b := pairOf(t)
	board := protocol.BoardID(a.base)
	p := a.titled("one")
	require.NoError(t, a.db.Numbered(t.Context()))
	a.growTree()
	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
		other := *p
		other.Body = "Another text."
		return tx.Posts().Revise(ctx, p.ID, &other)
	}))
	b.tick.pass(21 * time.Minute)
	c := requireTreeConflict(t, a, b, board, 1)
	require.NoError(t, b.f.verifyProof(t.Context(), c.TheirsDoc, board))
	require.Contains(t, string(c.TheirsDoc), "Another text.")
}

// Another entry than the tree has, at a number that was not taken before.
func TestFollowedTree_Entry(t *testing.T) {
	a, b := pairOf(t)
	board := protocol.BoardID(a.base)
	empty := a.copy()
	a.titled("one")
	a.growTree()
	filled := a.copy()
	empty()
	q := a.titled("another one")
	a.growTree()
	page := a.ask("/ap/board/log?after=0&limit=200").Body.Bytes()
	filled()
	a.forge("/log", func([]byte) []byte { return page })
	b.tick.pass(21 * time.Minute) // the log is read before the entry is pushed
	settle(t, b)
	c := b.conflict(board)
	require.NotNil(t, c)
	require.Equal(t, []any{storage.ConflictTree, int64(1)}, []any{c.Kind, c.Seq})
	require.Contains(t, string(c.TheirsDoc), q.URI)
	require.Empty(t, b.state(q.URI))
}

// What is not signed shows nothing about the board: it stops the reading, and is no conflict.
func TestFollowedTree_InTransit(t *testing.T) {
	t.Parallel()
	other := must.Get(tree.Sign(tree.Checkpoint{Origin: "a.example/x", Size: 1}, nodeKeys(2).Ed25519.Signer()))(t)
	for suffix, fn := range map[string]func([]byte) []byte{
		"/checkpoint": func([]byte) []byte { return other },
		"/tile/0/000.p/3": func(b []byte) []byte {
			b = bytes.Clone(b)
			b[0]++
			return b
		},
		"/tile/entries/000.p/3": func(b []byte) []byte { return bytes.Replace(b, []byte("sha256:"), []byte("sha256;"), 1) },
		"/salts/0":              func([]byte) []byte { return bytes.Repeat([]byte("x\n"), 30_000) },
	} {
		t.Run(strings.Trim(strings.ReplaceAll(suffix, "/", " "), " "), func(t *testing.T) {
			a, b := pairOf(t)
			board := protocol.BoardID(a.base)
			for range 3 {
				a.post(nil)
			}
			require.NoError(t, a.db.Numbered(t.Context()))
			a.growTree()
			a.forge(suffix, fn)
			b.tick.pass(21 * time.Minute)
			settle(t, b)
			require.Nil(t, b.conflict(board))
			if suffix != "/salts/0" {
				require.NotEmpty(t, b.subscription(board).LastError)
				require.Zero(t, b.subscription(board).LastSeq)
			}
			a.forge("nothing", nil)
			b.tick.pass(time.Hour)
			settle(t, a, b)
			require.EqualValues(t, 3, b.followedTree(board).Proved)
		})
	}
}

// A log that had a tree does not lose it within the epoch, and one whose tree stays far behind is not read on.
func TestFollowedTree_Missing(t *testing.T) {
	a, b := pairOf(t)
	board := protocol.BoardID(a.base)
	a.titled("one")
	settle(t, a, b)
	b.tick.pass(2 * time.Minute)
	settle(t, a, b)
	require.EqualValues(t, 1, b.followedTree(board).Size)
	a.forge("/log", func(body []byte) []byte {
		page := must.JSON[map[string]json.RawMessage](body)(t)
		delete(page, "stoa:tree")
		return asJSON(t, page)
	})
	p := a.titled("two")
	require.NoError(t, a.db.Numbered(t.Context()))
	b.tick.pass(21 * time.Minute)
	settle(t, b)
	require.Empty(t, b.state(p.URI))
	require.Contains(t, b.subscription(board).LastError, "does not name its tree")
}

// A checkpoint that is older than the one that was accepted is an old answer: nothing is taken with it.
func TestFollowedTree_Old(t *testing.T) {
	a, b := pairOf(t)
	board := protocol.BoardID(a.base)
	a.titled("one")
	settle(t, a, b)
	path, _ := a.treePath()
	old := a.ask(path + "/checkpoint").Body.Bytes()
	a.titled("two")
	settle(t, a, b)
	b.tick.pass(2 * time.Minute)
	settle(t, a, b)
	require.EqualValues(t, 2, b.followedTree(board).Size)
	a.forge("/checkpoint", func([]byte) []byte { return old })
	p := a.titled("three")
	require.NoError(t, a.db.Numbered(t.Context()))
	a.growTree()
	b.tick.pass(21 * time.Minute)
	settle(t, b)
	require.Contains(t, b.subscription(board).LastError, "an old checkpoint of 1")
	require.Empty(t, b.state(p.URI))
	require.Nil(t, b.conflict(board))
}
