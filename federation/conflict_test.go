package federation

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/integrity"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// titled posts a post with a title.
func (n *node) titled(title string) *protocol.StoredPost {
	n.tick.pass(time.Second)
	return n.post(func(p *protocol.StoredPost) { p.Title = title })
}

// copy copies the node's data, and put puts a copy in place, as one who does not know of epochs does.
func (n *node) copy() (put func()) {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), "copy.db")
	require.NoError(n.t, n.db.Backup(n.t.Context(), file))
	return func() {
		n.db = storagetest.OpenConfig(n.t, storage.Config{Path: file, Now: n.tick.now})
		n.f = n.start(nodeKeys(0), nil)
	}
}

func (n *node) conflict(board string) (c *storage.Conflict) {
	n.read(func(ctx context.Context, tx *storage.Tx) (err error) {
		c, err = tx.Subscriptions().Conflict(ctx, board)
		return absent(err)
	})
	return c
}

func (n *node) reports() []storage.Conflict {
	return reads(n, func(ctx context.Context, tx *storage.Tx) ([]storage.Conflict, error) { return tx.Logs().Reports(ctx) })
}

// onEach runs a test with a node, and a node that follows it on each engine.
func onEach(t *testing.T, fn func(t *testing.T, a, b *node, board string)) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		a, b := two(t, nil)
		c.Now = b.tick.now
		b.db = storagetest.OpenConfig(t, c)
		b.f = b.start(nodeKeys(1), nil)
		b.follow(a)
		fn(t, a, b, protocol.BoardID(a.base))
	})
}

// A node is put back to an old copy of its data and posts on under the same epoch: the
// node that follows it keeps both entries, takes nothing further, and tells both operators.
func TestConflict_Fork(t *testing.T) {
	onEach(t, func(t *testing.T, a, b *node, board string) {
		a.titled("one")
		a.titled("two")
		settle(t, a, b)
		put := a.copy()
		x := a.titled("fork-X")
		settle(t, a, b)
		require.Equal(t, protocol.Visible, b.state(x.URI))

		put()
		y, z := a.titled("fork-Y"), a.titled("fork-Z")
		require.Nil(t, b.conflict(board))
		b.tick.pass(2 * time.Minute) // soon after an entry was pushed, the log is compared
		settle(t, a, b)
		c := b.conflict(board)
		require.NotNil(t, c)
		require.Equal(t, []any{storage.ConflictFork, int64(3), b.subscription(board).Epoch}, []any{c.Kind, c.Seq, c.Epoch})
		require.NotEqual(t, c.Ours, c.Theirs)
		for doc, uri := range map[string]string{string(c.OursDoc): x.URI, string(c.TheirsDoc): y.URI} {
			require.NoError(t, b.f.verifyProof(t.Context(), json.RawMessage(doc), board), "signed by the node that forked")
			require.Contains(t, doc, uri)
		}
		require.Contains(t, b.subscription(board).LastError, "contradicts")
		report := a.reports()
		require.Len(t, report, 1)
		require.Equal(t, []any{"b.example", storage.ConflictFork, int64(3), c.Ours, c.Theirs},
			[]any{report[0].Board, report[0].Kind, report[0].Seq, report[0].Ours, report[0].Theirs})

		w := a.titled("after")
		b.tick.pass(time.Hour)
		settle(t, a, b)
		for _, p := range []*protocol.StoredPost{y, w} {
			require.Empty(t, b.state(p.URI), p.Title)
		}

		// The operator has the log read again: what it has now is taken.
		reread := func() {
			require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(tx.Subscriptions().Reread(ctx, board))
			}))
			settle(t, a, b)
		}
		reread()
		for _, p := range []*protocol.StoredPost{x, y, z, w} {
			require.Equal(t, protocol.Visible, b.state(p.URI), p.Title)
		}
		require.Nil(t, b.conflict(board))
		require.Equal(t, int64(5), b.subscription(board).LastSeq)
		v := a.titled("follows again")
		settle(t, a, b)
		require.Equal(t, protocol.Visible, b.state(v.URI))

		// What the node has no longer is deleted when the operator says so, also when the node is away for a while.
		a.change(v, protocol.Hidden, "hide")
		settle(t, a, b)
		a.net.set("a.example", true)
		require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Subscriptions().EnqueueForget(ctx, storage.ForgetArgs{Board: board, Since: b.tick.now().Add(-24 * time.Hour)})
		}))
		settle(t, b)
		require.Equal(t, protocol.Visible, b.state(x.URI))
		a.net.set("a.example", false)
		b.tick.pass(10 * time.Minute)
		settle(t, a, b)
		require.Equal(t, protocol.Deleted, b.state(x.URI))
		for _, p := range []*protocol.StoredPost{y, z, w} {
			require.Equal(t, protocol.Visible, b.state(p.URI), p.Title)
		}
		reread()
		require.Equal(t, protocol.Deleted, b.state(x.URI))
	})
}

// The number that was taken last arrives again with another entry: it is noticed at once.
func TestConflict_SameNumber(t *testing.T) {
	onEach(t, func(t *testing.T, a, b *node, board string) {
		put := a.copy()
		a.titled("fork-X")
		settle(t, a, b)
		put()
		a.titled("fork-Y")
		settle(t, a, b)
		require.NotNil(t, b.conflict(board))
		require.EqualValues(t, 1, b.conflict(board).Seq)
	})
}

// The log falls back below the cursor, and its node begins a new epoch when its operator
// hears of it: that ends the conflict on both nodes.
func TestConflict_Fallback(t *testing.T) {
	onEach(t, func(t *testing.T, a, b *node, board string) {
		for _, title := range []string{"one", "two", "three"} {
			a.titled(title)
		}
		settle(t, a, b)
		put := a.copy()
		for _, title := range []string{"four", "five", "six", "seven"} {
			a.titled(title)
			settle(t, a, b)
		}
		b.tick.pass(2 * time.Minute)
		settle(t, a, b)
		require.EqualValues(t, 7, b.subscription(board).LastSeq)
		put()
		q := a.titled("four anew")
		b.tick.pass(21 * time.Minute)
		settle(t, a, b)
		c := b.conflict(board)
		require.NotNil(t, c)
		require.Equal(t, []any{storage.ConflictFallback, int64(7)}, []any{c.Kind, c.Seq})
		head := must.JSON[activity.Activity](c.TheirsDoc)(t)
		require.EqualValues(t, 4, *head.Seq)
		require.NoError(t, b.f.verifyProof(t.Context(), c.TheirsDoc, board))
		require.Len(t, a.reports(), 1)
		require.Empty(t, b.state(q.URI))

		require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Logs().NewEpoch(ctx, board)) }))
		b.tick.pass(21 * time.Minute)
		settle(t, a, b)
		require.Nil(t, b.conflict(board))
		require.Equal(t, protocol.Visible, b.state(q.URI))
		require.Empty(t, a.reports())
		require.Empty(t, b.subscription(board).LastError)
	})
}

// An answer that was signed before one that was seen proves nothing, and one whose signed head is
// not its own is refused.
func TestConflict_OldAnswer(t *testing.T) {
	a, b := pairOf(t)
	board := protocol.BoardID(a.base)
	a.titled("one")
	settle(t, a, b)
	_, old := a.page("?after=0")
	require.NotEmpty(t, old.SignedHead)
	a.titled("two")
	b.tick.pass(2 * time.Minute)
	settle(t, a, b)
	s := must.Get(b.f.following(t.Context(), board))(t)
	require.EqualValues(t, 2, s.LastSeq)
	head := must.Get(b.f.readHead(t.Context(), &s.Subscription, &old))(t)
	require.ErrorContains(t, b.f.fallback(t.Context(), s, *old.Head, head), "an old answer")

	_, now := a.page("?after=0")
	now.SignedHead = old.SignedHead
	_, err := b.f.readHead(t.Context(), &s.Subscription, &now)
	require.ErrorContains(t, err, "not the head of this page")
	forged := old
	forged.SignedHead = asJSON(t, b.f.site.Head(s.Epoch, 1, "sha256:"+strings.Repeat("00", 32), b.tick.now()))
	forged.SignedHead = bytes.ReplaceAll(forged.SignedHead, []byte("b.example"), []byte("a.example"))
	require.ErrorIs(t, must.Err(b.f.readHead(t.Context(), &s.Subscription, &forged)), integrity.ErrNoProof)
	forged.SignedHead = nil
	head, err = b.f.readHead(t.Context(), &s.Subscription, &forged)
	require.NoError(t, err, "a node of version 0.1.0 signs none")
	require.Nil(t, head)
}

// A node of version 0.1.0 signs no head and gives tombstones no hash: it is followed as before, and its fork is noticed.
func TestConflict_OldPeer(t *testing.T) {
	t.Parallel()
	a, b := two(t, nil)
	a.net.reply = func(_ *http.Request, body []byte) []byte {
		var page map[string]json.RawMessage
		if json.Unmarshal(body, &page) != nil || page["orderedItems"] == nil {
			return body
		}
		delete(page, "stoa:signedHead")
		items := must.JSON[[]map[string]json.RawMessage](page["orderedItems"])(t)
		for _, i := range items {
			delete(i, "stoa:hash")
		}
		page["orderedItems"] = asJSON(t, items)
		return asJSON(t, page)
	}
	b.follow(a)
	board := protocol.BoardID(a.base)
	p := a.titled("one")
	settle(t, a, b)
	put := a.copy()
	a.change(p, protocol.Hidden, "hide")
	b.tick.pass(2 * time.Minute)
	settle(t, a, b)
	require.Equal(t, protocol.Hidden, b.state(p.URI))
	require.Nil(t, b.conflict(board))
	put()
	a.titled("fork-Y")
	b.tick.pass(21 * time.Minute)
	settle(t, a, b)
	require.NotNil(t, b.conflict(board))
	require.Equal(t, storage.ConflictFork, b.conflict(board).Kind)
}

// Every kind of entry has the same hash while its object is shown and after it is not.
func TestEntryHash_Erased(t *testing.T) {
	t.Parallel()
	a, _ := two(t, nil)
	p := a.titled("one")
	s := shop{n: a, name: "bazaar"}
	joined := s.tell(protocol.FeedMerchantJoined, "Bazaar", "Bazaar joined.", nil)
	s.summary("Bazaar")
	bid := a.bid(protocol.Author{Name: "Ada", Method: protocol.ByProof, Proof: protocol.AuthorProof{Level: protocol.ByNothing}})
	hashes := func() (all []string) {
		_, page := a.page("?after=0")
		for _, raw := range page.OrderedItems {
			all = append(all, hashOf(raw))
		}
		return all
	}
	before := hashes()
	require.NotContains(t, before, "")
	require.Len(t, before, 4)
	s.open(false)
	a.change(p, protocol.Deleted, "delete")
	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Logs().Redact(ctx, protocol.BoardID(a.base), p.ID); err != nil {
			return err
		}
		return tx.Bids().Retract(ctx, protocol.BoardID(a.base), bid.Subject.ID)
	}))
	seqs, kinds := entriesOf(t, func() logPage { _, p := a.page("?after=0"); return p }())
	require.Len(t, seqs, 7)
	require.Equal(t, []string{"Tombstone", "Tombstone", "Tombstone", "Tombstone"}, kinds[:4])
	require.Equal(t, before, hashes()[:4])
	require.Equal(t, 404, a.statusOf("/ap/news/"+joined.ID))
}

// A report is kept of a node that follows, about the epoch that the log has, one a node.
func TestLogReport_Refused(t *testing.T) {
	t.Parallel()
	a, b := two(t, nil)
	c := newNode(t, a.net, a.tick, 2, nil)
	b.follow(a)
	a.titled("one")
	settle(t, a, b)
	board := protocol.BoardID(a.base)
	epoch := b.subscription(board).Epoch
	report := func(from *node, kind, epoch, ours string, seq int64) {
		id := from.base + "/ap/reports/" + protocol.NewID(protocol.ActivityID, from.tick.now())
		body, err := from.f.prove(from.f.site.ReportLog(id, board, a.f.site.Log(), kind, epoch, seq, ours, "", from.tick.now()), from.f.site.Node(), from.tick.now())
		require.NoError(t, err)
		require.NoError(t, from.f.send(t.Context(), from.f.site.Node(), board+"/inbox", body).err)
		settle(t, a)
	}
	hash := "sha256:" + strings.Repeat("0a", 32)
	report(c, "fork", epoch, hash, 1)
	require.Empty(t, a.reports(), "it does not follow")
	report(b, "fork", "another", hash, 1)
	report(b, "theft", epoch, hash, 1)
	report(b, "fork", epoch, "sha256:1", 1)
	report(b, "fork", epoch, hash, -1)
	require.Empty(t, a.reports())
	report(b, "fork", epoch, hash, 1)
	report(b, "fallback", epoch, hash, 5)
	require.Len(t, a.reports(), 1)
	require.Equal(t, storage.ConflictFallback, a.reports()[0].Kind)
	a.tick.pass(31 * 24 * time.Hour)
	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.PruneExpired(ctx)) }))
	require.Empty(t, a.reports())
}
