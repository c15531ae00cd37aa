package federation

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// A turnWorld is three nodes that follow one another, each with a clock and a network of its
// own, through which it reaches the others.
type turnWorld struct {
	t     *testing.T
	nodes []*node
	uris  map[string]protocol.PostState // of what was posted, and how it must be on every node

	mu  sync.Mutex
	got map[int][]*http.Request // deliveries to a node, while it keeps them
}

func newTurnWorld(t *testing.T) *turnWorld {
	w := &turnWorld{t: t, uris: map[string]protocol.PostState{}, got: map[int][]*http.Request{}}
	for i := range 3 {
		w.nodes = append(w.nodes, newNode(t, newNetwork(), newClock(), i, nil))
	}
	for i, n := range w.nodes {
		serve := n.net.hosts[n.name]
		for _, other := range w.nodes {
			other.net.hosts[n.name] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Method == "POST" {
					w.keep(i, r)
				}
				serve.ServeHTTP(rw, r)
			})
		}
	}
	for _, n := range w.nodes {
		for _, other := range w.nodes {
			if n != other {
				must.Get(n.f.Follow(t.Context(), other.base))(t)
				settle(t, w.nodes...)
			}
		}
	}
	return w
}

// keep keeps a delivery to a node, to be repeated.
func (w *turnWorld) keep(to int, r *http.Request) {
	body := must.Get(io.ReadAll(r.Body))(w.t)
	r.Body = io.NopCloser(bytes.NewReader(body))
	again := r.Clone(context.WithoutCancel(r.Context()))
	again.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got[to] = append(w.got[to], again)
}

// write has every node post, and delete what it posted the time before.
func (w *turnWorld) write(before []*protocol.StoredPost) (posts []*protocol.StoredPost) {
	for i, n := range w.nodes {
		if before != nil {
			(&world{t: w.t, node: n}).change(before[i], protocol.Deleted, "delete")
			w.uris[before[i].URI] = protocol.Deleted
		}
		p := n.post(nil)
		posts, w.uris[p.URI] = append(posts, p), protocol.Visible
		n.tick.pass(time.Second)
	}
	return posts
}

// same checks that every node shows what all have written, each once, and believes no log to contradict itself.
func (w *turnWorld) same(when string) {
	w.t.Helper()
	for range 3 { // walks that failed are repeated after a while
		settle(w.t, w.nodes...)
		for _, n := range w.nodes {
			n.tick.pass(20 * time.Minute)
		}
	}
	settle(w.t, w.nodes...)
	for _, n := range w.nodes {
		for uri, state := range w.uris {
			if got := n.state(uri); state == protocol.Deleted {
				require.NotEqual(w.t, protocol.Visible, got, "%s: %s on %s", when, uri, n.name)
			} else {
				require.Equal(w.t, state, got, "%s: %s on %s", when, uri, n.name)
			}
		}
		got := slices.Clone(n.room.got)
		slices.Sort(got)
		require.Len(w.t, slices.Compact(got), len(n.room.got), "%s: received twice on %s", when, n.name)
		for _, other := range w.nodes {
			if n == other {
				continue
			}
			n.read(func(ctx context.Context, tx *storage.Tx) error {
				require.False(w.t, must.Get(tx.Subscriptions().HasConflict(ctx, protocol.BoardID(other.base)))(w.t), "%s: %s of %s", when, n.name, other.name)
				return nil
			})
		}
	}
}

// TestInTurn: each of three nodes in turn is cut off, killed, has its clock put forward and back, and gets every delivery again in
// the reverse order and altered; what all have written is on all of them afterwards, once.
func TestInTurn(t *testing.T) {
	t.Parallel()
	w := newTurnWorld(t)
	posts := w.write(nil)
	w.same("at first")
	for i, n := range w.nodes {
		cut := func(down bool) {
			for _, other := range w.nodes {
				if other != n {
					other.net.set(n.name, down)
					n.net.set(other.name, down)
				}
			}
		}
		cut(true)
		posts = w.write(posts)
		settle(t, w.nodes...)
		for _, other := range w.nodes {
			if other != n {
				require.Empty(t, other.state(posts[i].URI), "it is cut off")
			}
		}
		cut(false)
		w.same(n.name + " was cut off")

		posts = w.write(posts)
		n.f = n.start(nodeKeys(i), nil) // what it had in memory is lost
		w.same(n.name + " was killed")

		for _, step := range []time.Duration{time.Hour, -2 * time.Hour, time.Hour} {
			n.tick.pass(step)
			posts = w.write(posts)
			settle(t, w.nodes...)
		}
		w.same(n.name + " had another time")

		w.mu.Lock()
		again := w.got[i]
		w.got = map[int][]*http.Request{}
		w.mu.Unlock()
		require.NotEmpty(t, again)
		slices.Reverse(again)
		codes := map[int]int{}
		for _, r := range again {
			body := must.Get(io.ReadAll(r.Body))(t)
			for _, sent := range [][]byte{body, bytes.Replace(body, []byte("200 sheets"), []byte("900 sheets"), 1)} {
				same := r.Clone(t.Context())
				same.Body = io.NopCloser(bytes.NewReader(sent))
				rw := httptest.NewRecorder()
				n.f.Handler().ServeHTTP(rw, same)
				codes[rw.Code]++
				if !bytes.Equal(sent, body) {
					require.NotEqual(t, 202, rw.Code, "altered")
				}
			}
		}
		w.same(fmt.Sprint(n.name, " had everything again: ", codes))
	}
	for uri := range w.uris {
		for _, n := range w.nodes {
			if p := n.held(uri); p != nil && p.State == protocol.Visible {
				require.Equal(t, "200 sheets.", p.Body)
			}
		}
	}
}
