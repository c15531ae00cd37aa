package federation

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"stoa/identity/tree"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// ask returns an answer of the node to a stranger.
func (n *node) ask(path string) *httptest.ResponseRecorder {
	n.t.Helper()
	w := httptest.NewRecorder()
	n.f.Handler().ServeHTTP(w, httptest.NewRequestWithContext(n.t.Context(), "GET", "https://"+n.name+path, nil))
	return w
}

// treePath is the path of the tree of the node's log, and key the key of its checkpoints, as a page of the log has them.
func (n *node) treePath() (path, key string) {
	n.t.Helper()
	var page struct {
		Tree string `json:"stoa:tree"`
		Key  string `json:"stoa:checkpointKey"`
	}
	require.NoError(n.t, json.Unmarshal(n.ask("/ap/board/log?after=0").Body.Bytes(), &page))
	return strings.TrimPrefix(page.Tree, n.base), page.Key
}

// signed reads the checkpoint as a stranger does who has nothing of ours.
func (n *node) signed() (path string, size int64, root tlog.Hash) {
	n.t.Helper()
	path, key := n.treePath()
	verifier := must.Get(note.NewVerifier(key))(n.t)
	w := n.ask(path + "/checkpoint")
	require.Equal(n.t, []any{200, "public, no-cache"}, []any{w.Code, w.Header().Get("Cache-Control")})
	opened := must.Get(note.Open(w.Body.Bytes(), note.VerifierList(verifier)))(n.t)
	lines := strings.Split(opened.Text, "\n")
	require.Equal(n.t, []string{"a.example" + path, ""}, []string{lines[0], lines[3]})
	require.Equal(n.t, lines[0], verifier.Name())
	size = must.Get(strconv.ParseInt(lines[1], 10, 64))(n.t)
	root = must.Get(tlog.ParseHash(lines[2]))(n.t)
	return path, size, root
}

// leaves reads all leaves out of the bundles, whole ones and the last one.
func (n *node) leaves(path string, size int64) (all [][]byte) {
	n.t.Helper()
	for at := int64(0); at < size; at += tree.Width {
		width := min(tree.Width, size-at)
		w := n.ask(path + "/" + tree.Path(tree.At(tree.Bundles, at/tree.Width, int(width))))
		require.Equal(n.t, 200, w.Code)
		require.Contains(n.t, w.Header().Get("Cache-Control"), "immutable")
		some := must.Get(tree.ParseBundle(w.Body.Bytes(), int(width)))(n.t)
		all = append(all, some...)
	}
	return all
}

// plainRoot is the root of a tree by its definition (RFC 6962 §2.1).
func plainRoot(leaves [][]byte) [32]byte {
	if len(leaves) == 1 {
		return sha256.Sum256(append([]byte{0}, leaves[0]...))
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	a, b := plainRoot(leaves[:k]), plainRoot(leaves[k:])
	return sha256.Sum256(append(append([]byte{1}, a[:]...), b[:]...))
}

// Every kind of entry is in the tree with the hash that its page gives, and its content with a salted hash that a reader of the
// page can make. A deletion and a change leave the tree as it is, and no salt of what is not shown any more.
func TestTree_Leaves(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		a := newNodeOn(t, newNetwork(), newClock(), 0, nil, c)
		p := a.titled("one")
		gone := a.titled("gone")
		s := shop{n: a, name: "bazaar"}
		s.tell(protocol.FeedMerchantJoined, "Bazaar", "Bazaar joined.", nil)
		s.summary("Bazaar")
		a.bid(protocol.Author{Name: "Ada", Method: protocol.ByProof, Proof: protocol.AuthorProof{Level: protocol.ByNothing}})
		a.change(p, protocol.Hidden, "hide")
		a.change(p, protocol.Visible, "restore")
		reply := a.post(func(r *protocol.StoredPost) { r.ReplyTo, r.Title, r.Language = p.URI, "Re: one", "en" })
		settle(t, a)
		path, size, root := a.signed()
		require.EqualValues(t, 8, size)
		leaves := a.leaves(path, size)
		require.Equal(t, tlog.Hash(plainRoot(leaves)), root)

		check := func(shown ...int64) {
			_, page := a.page("?after=0")
			salts := strings.Split(a.ask(path+"/salts/0").Body.String(), "\n")
			var found []int64
			for i, raw := range page.OrderedItems[:len(leaves)] {
				leaf := must.Get(tree.ParseLeaf(leaves[i]))(t)
				require.EqualValues(t, i+1, leaf.Seq)
				require.Equal(t, tree.ParseHash(hashOf(raw)), leaf.Entry, "entry %d", i+1)
				var e struct {
					Object struct {
						Object json.RawMessage `json:"object"`
					} `json:"object"`
				}
				require.NoError(t, json.Unmarshal(raw, &e))
				salt, err := base64.StdEncoding.DecodeString(salts[i])
				if salts[i] == "-" {
					continue
				}
				require.NoError(t, err)
				require.Equal(t, tree.Salted(salt, content(e.Object.Object)), leaf.Content)
				found = append(found, leaf.Seq)
			}
			require.Equal(t, shown, found)
		}
		// What was hidden has no salt; the summary of the agent and the reply have.
		check(2, 4, 8)

		require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Logs().Redact(ctx, protocol.BoardID(a.base), gone.ID)
		}))
		require.Equal(t, "-", strings.Split(a.ask(path+"/salts/0").Body.String(), "\n")[1], "at once")
		a.change(gone, protocol.Deleted, "delete")
		a.change(reply, protocol.Hidden, "hide")
		settle(t, a)
		check(4)
		_, more, _ := a.signed()
		require.EqualValues(t, 10, more)
		require.Equal(t, leaves, a.leaves(path, more)[:8])
		require.NotContains(t, string(leaves[1]), gone.ID)
	})
}

// The tree is the same in whatever steps it was made, each tile is that of its hashes, each entry has a proof, and a reader gets no more than
// the tree has.
func TestTree_Steps(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		a := newNodeOn(t, newNetwork(), newClock(), 0, nil, c)
		old := tlog.Tree{}
		for i, n := range []int{1, 2, 252, 1, 1, 700} {
			for range n {
				a.post(nil)
			}
			require.NoError(t, a.db.Numbered(t.Context()))
			a.growTree()
			path, size, root := a.signed()
			require.Equal(t, tlog.Hash(plainRoot(a.leaves(path, size))), root)
			get := tree.ReadTile(func(tile tree.Tile) ([]byte, error) {
				w := a.ask(path + "/" + tree.Path(tile))
				if w.Code != 200 || w.Body.Len() != 32*tile.W {
					return nil, fmt.Errorf("%s: %d", tree.Path(tile), w.Code)
				}
				return w.Body.Bytes(), nil
			})
			if i > 0 {
				require.NoError(t, tlog.CheckTree(must.Get(tlog.ProveTree(size, old.N, get))(t), size, root, old.N, old.Hash))
			}
			old = tlog.Tree{N: size, Hash: root}
		}
		path, size, root := a.signed()
		require.EqualValues(t, 957, size)
		pub := must.Get(ed25519Of(a.f.c.Keys.Ed25519))(t)
		board := a.f.site.Board()
		for _, seq := range []int64{1, 256, 257, 768, 957} {
			a.read(func(ctx context.Context, tx *storage.Tx) error {
				entries := must.Get(tx.Logs().After(ctx, board, seq-1, 1))(t)
				p := must.Get(tx.Posts().ByID(ctx, entries[0].ObjectID))(t)
				in := must.Get(a.f.Logged(ctx, tx, p))(t)
				require.Len(t, in.Salt, tree.SaltSize)
				require.Equal(t, seq, in.Seq)
				leaf := tree.Leaf{Seq: seq, Content: tree.Salted(in.Salt, []byte(in.Content)),
					Entry: tree.ParseHash(activity.HashEntry(in.Epoch, seq, in.Published, in.Type, p.URI))}
				at := must.Get(tree.CheckProof(in.Proof, leaf, tree.Origin(board, in.Epoch), pub))(t)
				require.Equal(t, tlog.Tree{N: size, Hash: root}, tlog.Tree{N: at.Size, Hash: at.Root})
				leaf.Seq++
				require.ErrorIs(t, must.Err(tree.CheckProof(in.Proof, leaf, at.Origin, pub)), tree.ErrTree)
				require.ErrorIs(t, must.Err(tree.CheckProof(strings.Replace(in.Proof, "\n\n", "\n", 1), leaf, at.Origin, pub)), tree.ErrTree)
				return nil
			})
		}
		late := a.post(nil)
		require.NoError(t, a.db.Numbered(t.Context()))
		a.read(func(ctx context.Context, tx *storage.Tx) error {
			require.Nil(t, must.Get(a.f.Logged(ctx, tx, must.Get(tx.Posts().ByID(ctx, late.ID))(t)))(t), "the tree does not have the entry yet")
			return nil
		})
		for _, none := range []string{"tile/0/003.p/190", "tile/0/003", "tile/0/004.p/1", "tile/1/000", "tile/1/000.p/4", "tile/2/000.p/1", "tile/0/-01", "tile/0/3",
			"tile/entries/003", "tile/entries/004.p/1", "tile/data/000", "tile/0/000.p/0", "tile/0/000.p/256", "tile/63/000", "salts/4", "salts/-1", "salts/x", "tile",
			"tile/0/x999/x999/x999/x999/x999/x999/999"} {
			require.Equal(t, 404, a.ask(path+"/"+none).Code, none)
		}
		require.Equal(t, 404, a.ask("/ap/board/tree/other/checkpoint").Code)
	})
}

// Several processes that put the same entries into the tree put each there once.
func TestTree_Processes(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		a := newNodeOn(t, newNetwork(), newClock(), 0, nil, c)
		for range 10 {
			for range 30 {
				a.post(nil)
			}
			require.NoError(t, a.db.Numbered(t.Context()))
			var running sync.WaitGroup
			for range 4 {
				running.Go(func() {
					if _, err := a.f.growTree(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			running.Wait()
			path, size, root := a.signed()
			require.Equal(t, tlog.Hash(plainRoot(a.leaves(path, size))), root)
		}
		_, size, _ := a.signed()
		require.EqualValues(t, 300, size)
	})
}

// An entry whose object is deleted while its leaf is made gets no salt.
func TestTree_DeletedMeanwhile(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		a := newNodeOn(t, newNetwork(), newClock(), 0, nil, c)
		p := a.titled("one")
		require.NoError(t, a.db.Numbered(t.Context()))
		var before storage.LogTree
		var leaves []storage.TreeLeaf
		a.read(func(ctx context.Context, tx *storage.Tx) (err error) {
			if before, err = tx.Logs().Tree(ctx, a.f.site.Board()); err == nil {
				leaves, err = a.f.leavesAfter(ctx, tx, before)
			}
			return err
		})
		require.Len(t, leaves[0].Salt, tree.SaltSize)
		require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Logs().Redact(ctx, a.f.site.Board(), p.ID); err != nil {
				return err
			}
			require.True(t, must.Get(tx.Logs().GrowTree(ctx, before, leaves, nil, make([]byte, 32)))(t))
			return nil
		}))
		a.read(func(ctx context.Context, tx *storage.Tx) error {
			now := must.Get(tx.Logs().Tree(ctx, a.f.site.Board()))(t)
			salts, err := tx.Logs().TreeSalts(ctx, now.ID, 0, 10)
			require.Len(t, salts, 1)
			require.Nil(t, salts[0].Salt)
			return err
		})
	})
}

// A new epoch has a tree of its own, under another name and address; the earlier one is deleted.
func TestTree_Epoch(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		a := newNodeOn(t, newNetwork(), newClock(), 0, nil, c)
		for range 300 {
			a.post(nil)
		}
		settle(t, a)
		path, size, root := a.signed()
		a.tick.pass(time.Minute)
		require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.Logs().NewEpoch(ctx, a.f.site.Board()))
		}))
		require.Equal(t, 404, a.ask(path+"/checkpoint").Code)
		settle(t, a)
		path2, size2, root2 := a.signed()
		require.Equal(t, size, size2)
		require.NotEqual(t, path, path2)
		require.NotEqual(t, root, root2)
		a.read(func(ctx context.Context, tx *storage.Tx) error {
			require.Zero(t, must.Get(tx.Logs().Tree(ctx, a.f.site.Board()))(t).Old)
			return nil
		})
	})
}
