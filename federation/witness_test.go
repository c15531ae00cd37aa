package federation

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"stoa/identity/tree"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// lines are the signature lines of a checkpoint, by name.
func lines(checkpoint []byte) map[string][]byte {
	found := map[string][]byte{}
	_, signatures, _ := strings.Cut(string(checkpoint), "\n\n")
	for line := range strings.Lines(signatures) {
		fields := strings.Fields(line)
		found[fields[1]], _ = base64.StdEncoding.DecodeString(fields[2])
	}
	return found
}

// A following node is asked to cosign after it has read the log, and no more often than every five minutes; the checkpoint is served with what it
// cosigned, as C2SP tlog-cosignature has it.
func TestWitness(t *testing.T) {
	onEach(t, func(t *testing.T, a, b *node, board string) {
		for range 3 {
			a.post(nil)
		}
		settle(t, a, b)
		b.tick.pass(2 * time.Minute)
		settle(t, a, b)
		b.tick.pass(20 * time.Second)
		settle(t, a, b)
		path, size, _ := a.signed()
		require.EqualValues(t, 3, size)
		signed := a.ask(path + "/checkpoint").Body.Bytes()
		sig := lines(signed)["b.example/ap/witness"]
		require.Len(t, sig, 4+8+64)
		text, _, _ := bytes.Cut(signed, []byte("\n\n"))
		pub := nodeKeys(1).Ed25519.Public().(ed25519.PublicKey)
		at := binary.BigEndian.Uint64(sig[4:])
		message := "cosignature/v1\ntime " + strconv.FormatUint(at, 10) + "\n" + string(text) + "\n"
		require.True(t, ed25519.Verify(pub, []byte(message), sig[12:]))
		require.InDelta(t, b.tick.now().Unix(), at, 60)

		// The tree has grown: what was cosigned is served beside it, and it is cosigned after the next reading.
		a.post(nil)
		settle(t, a, b)
		require.Len(t, lines(a.ask(path+"/checkpoint").Body.Bytes()), 1)
		require.Equal(t, string(signed), a.ask(path+"/cosigned").Body.String())
		before := a.net.count("POST b.example/ap/witness/add-checkpoint")
		for range 4 {
			b.tick.pass(15 * time.Second)
			require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(tx.Subscriptions().Hasten(ctx, board))
			}))
			settle(t, a, b)
		}
		require.Equal(t, before, a.net.count("POST b.example/ap/witness/add-checkpoint"))
		b.tick.pass(21 * time.Minute)
		settle(t, a, b)
		b.tick.pass(20 * time.Second)
		settle(t, a, b)
		require.Len(t, lines(a.ask(path+"/checkpoint").Body.Bytes()), 2)
		require.Equal(t, before+1, a.net.count("POST b.example/ap/witness/add-checkpoint"), "with the right proof at once")
	})
}

// offered sends an offer to the witness of a node.
func (n *node) offered(body string) *httptest.ResponseRecorder {
	n.t.Helper()
	w := httptest.NewRecorder()
	n.f.Handler().ServeHTTP(w, httptest.NewRequestWithContext(n.t.Context(), "POST", n.base+"/ap/witness/add-checkpoint", strings.NewReader(body)))
	return w
}

// The answers are those of C2SP tlog-witness; a witness cosigns only trees of boards that it follows, that contain what it cosigned before.
func TestWitness_Answers(t *testing.T) {
	t.Parallel()
	a, b := two(t, nil)
	c := newNode(t, a.net, a.tick, 2, nil)
	b.follow(a)
	board := protocol.BoardID(a.base)
	grow := func() []byte {
		a.post(nil)
		a.growTree()
		path, _ := a.treePath()
		return a.ask(path + "/checkpoint").Body.Bytes()
	}
	one, two, three := grow(), grow(), grow()
	proof := func(from, to int64) (text string) {
		a.read(func(ctx context.Context, tx *storage.Tx) error {
			now := must.Get(tx.Logs().Tree(ctx, board))(t)
			hashes, err := tlog.ProveTree(to, from, readTiles(ctx, tx, now.ID))
			for _, h := range hashes {
				text += h.String() + "\n"
			}
			return err
		})
		return text
	}
	status := func(n *node, body string) int { return n.offered(body).Code }
	require.Equal(t, 404, status(c, "old 0\n\n"+string(one)), "it does not follow")
	require.Equal(t, 404, status(b, "old 0\n\n"+strings.Replace(string(one), "/tree/", "/tree/x", 1)))
	require.Equal(t, 404, status(b, "old 0\n\nx\n0\n\n"))
	for _, body := range []string{"", "old 0\n" + string(one), "old 00\n\n" + string(one), "old -1\n\n" + string(one), "old 1\nx\n\n" + string(two),
		"old 1\n" + strings.Repeat(tlog.Hash{}.String()+"\n", 64) + "\n" + string(two), "old 2\n\n" + string(one), strings.Repeat("x", 70_000)} {
		require.Equal(t, 400, status(b, body), body[:min(len(body), 40)])
	}
	_, key := a.treePath()
	origin, _, _ := strings.Cut(key, "+")
	forged := must.Get(tree.Sign(tree.Checkpoint{Origin: origin, Size: 1}, nodeKeys(2).Ed25519.Signer()))(t)
	require.Equal(t, 403, status(b, "old 0\n\n"+string(forged)))

	w := b.offered("old 0\n\n" + string(one))
	require.Equal(t, 200, w.Code)
	verified := must.Get(tree.ReadCosignature(one, w.Body.Bytes(), "b.example/ap/witness", nodeKeys(1).Ed25519.Public().(ed25519.PublicKey)))(t)
	require.Equal(t, w.Body.String(), verified)
	_, err := tree.ReadCosignature(two, w.Body.Bytes(), "b.example/ap/witness", nodeKeys(1).Ed25519.Public().(ed25519.PublicKey))
	require.ErrorIs(t, err, tree.ErrTree)
	require.Equal(t, 200, status(b, "old 1\n\n"+string(one)), "the same again")
	w = b.offered("old 0\n\n" + string(three))
	require.Equal(t, []any{409, "text/x.tlog.size", "1\n"}, []any{w.Code, w.Header().Get("Content-Type"), w.Body.String()})
	require.Equal(t, 422, status(b, "old 1\n\n"+string(three)))
	require.Equal(t, 422, status(b, "old 1\n"+proof(1, 2)+"\n"+string(three)))
	require.Equal(t, 200, status(b, "old 1\n"+proof(1, 3)+"\n"+string(three)))
	require.Equal(t, 409, status(b, "old 1\n"+proof(1, 2)+"\n"+string(two)), "not back")
	require.Nil(t, b.conflict(board))
	settle(t, a, b)
	b.tick.pass(2 * time.Minute)
	settle(t, a, b)
	require.EqualValues(t, 3, b.followedTree(board).Proved, "also what was cosigned before it was read is compared")
	require.Nil(t, b.conflict(board))

	// The board signs another tree of a size that was cosigned.
	opened := must.Get(b.f.openCheckpoint(t.Context(), board, b.subscription(board).Epoch, three))(t)
	opened.Root[0]++
	other := must.Get(tree.Sign(opened, nodeKeys(0).Ed25519.Signer()))(t)
	require.Equal(t, 409, status(b, "old 3\n\n"+string(other)))
	found := requireTreeConflict(t, a, b, board, 3)
	require.Equal(t, []string{string(three), string(other)}, []string{string(found.OursDoc), string(found.TheirsDoc)})
	require.Equal(t, 403, status(b, "old 3\n\n"+string(three)), "nothing more is cosigned")
}

// A board tells two followers different stories from the start. One of them follows the other too, and compares what it reads with what that
// accepted: the two signed trees contradict each other, whichever is larger.
func TestWitness_TwoStories(t *testing.T) {
	t.Parallel()
	for name, sizes := range map[string][2]int{"of one size": {2, 2}, "the other has less": {2, 3}, "the other has more": {3, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := two(t, nil)
			c := newNode(t, a.net, a.tick, 2, nil)
			b.follow(a)
			c.follow(a)
			c.follow(b)
			board := protocol.BoardID(a.base)
			file := filepath.Join(t.TempDir(), "copy.db")
			require.NoError(t, a.db.Backup(t.Context(), file))
			other := *a
			other.db = storagetest.OpenConfig(t, storage.Config{Path: file, Now: a.tick.now})
			other.f = other.start(nodeKeys(0), nil)
			a.net.mu.Lock()
			a.net.hosts["a.example"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.UserAgent(), "c.example") {
					other.f.Handler().ServeHTTP(w, r)
					return
				}
				a.f.Handler().ServeHTTP(w, r)
			})
			a.net.mu.Unlock()
			for range sizes[0] {
				a.titled("to b")
			}
			for range sizes[1] {
				other.titled("to c")
			}
			a.growTree()
			other.growTree()
			b.tick.pass(21 * time.Minute)
			settle(t, b)
			require.EqualValues(t, sizes[0], b.followedTree(board).Proved)
			if sizes[0] > sizes[1] { // the story that is told to c ends before
				settle(t, c)
				require.EqualValues(t, sizes[1], c.followedTree(board).Proved)
				require.Nil(t, c.conflict(board))
				other.titled("to c")
				other.growTree()
				b.tick.pass(21 * time.Minute)
			}
			found := requireTreeConflict(t, &other, c, board, int64(max(sizes[0], sizes[1])))
			require.EqualValues(t, sizes[0], must.Get(c.f.openCheckpoint(t.Context(), board, found.Epoch, found.TheirsDoc))(t).Size)
			require.Equal(t, b.followedTree(board).Checkpoint, found.TheirsDoc)
		})
	}
}
