package federation

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// What one delivery costs from the socket to the disk: scan, proof, signature
// (Ed25519), two writes.
func BenchmarkInbox(b *testing.B) {
	net := newNetwork()
	nodes := [2]*Federation{}
	for i, base := range []string{"https://a.example", "https://b.example"} {
		u, err := url.Parse(base)
		require.NoError(b, err)
		nodes[i], err = New(Config{Base: u, DB: storagetest.Open(b), Client: &http.Client{Transport: net}, Keys: nodeKeys(i), Receiver: &room{base: base}, Software: "stoa", Version: "0"})
		require.NoError(b, err)
		net.hosts[u.Host] = nodes[i].Handler()
	}
	nodes[1].limits = newBuckets(rate{1e9, 1e9})
	p := benchPost("https://a.example", 0)
	requests := make([]*http.Request, b.N)
	for i := range requests {
		inner, err := nodes[0].prove(nodes[0].site.Create(p, nil, ""), nodes[0].site.Anon(), p.CreatedAt)
		require.NoError(b, err)
		body, err := nodes[0].prove(nodes[0].site.Entry("e", int64(i+1), p.CreatedAt, inner), nodes[0].site.Board(), p.CreatedAt)
		require.NoError(b, err)
		r, err := http.NewRequestWithContext(b.Context(), "POST", "https://b.example/ap/inbox", bytes.NewReader(body))
		require.NoError(b, err)
		r.Header.Set("Content-Type", activity.MediaType)
		require.NoError(b, nodes[0].sign(r, body, nodes[0].site.Board(), schemeEd25519))
		requests[i] = httptest.NewRequestWithContext(b.Context(), "POST", "/ap/inbox", bytes.NewReader(body))
		requests[i].Host, requests[i].Header = "b.example", r.Header
	}
	work := make(chan *http.Request, b.N)
	for _, r := range requests {
		work <- r
	}
	close(work)
	door := nodes[1].Handler()
	b.ResetTimer()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w := httptest.NewRecorder()
			door.ServeHTTP(w, <-work)
			if w.Code != 202 {
				b.Errorf("%d %s", w.Code, w.Body)
				return
			}
		}
	})
}

func benchPost(base string, i int) *protocol.StoredPost {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Second)
	id := protocol.NewID(protocol.PostID, at)
	return &protocol.StoredPost{
		Post: protocol.Post{ID: id, URI: base + "/ap/posts/" + id, Kind: protocol.Offer, Title: fmt.Sprint("Post ", i), Body: "Some words.", Tags: []string{"paper"},
			Author: protocol.Author{Name: "Ada", Method: protocol.ByProof}, CreatedAt: at},
		State: protocol.Visible, Board: protocol.BoardID(base),
	}
}

func filled(b *testing.B) *Federation {
	b.Helper()
	u, err := url.Parse("https://a.example")
	require.NoError(b, err)
	f, err := New(Config{Base: u, DB: storagetest.Open(b), Client: &http.Client{Transport: newNetwork()}, Keys: nodeKeys(0), Receiver: &room{}, Software: "stoa", Version: "0"})
	require.NoError(b, err)
	require.NoError(b, f.c.DB.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for i := range 200 {
			p := benchPost("https://a.example", i)
			if err := tx.InsertPost(ctx, p); err != nil {
				return err
			}
			if _, err := tx.AppendLog(ctx, p.Board, "create", p.ID, nil); err != nil {
				return err
			}
		}
		return nil
	}))
	return f
}

// A page of up to 200 entries: made the first time, from then on, and at places that
// nobody asked for before.
func BenchmarkLogPage(b *testing.B) {
	for name, forget := range map[string]bool{"cold": true, "warm": false, "anywhere": false} {
		b.Run(name, func(b *testing.B) {
			f := filled(b)
			door := f.Handler()
			for i := 0; b.Loop(); i++ {
				after := 0
				if name == "anywhere" {
					after = i % 60
				}
				if forget {
					f.entries, f.blocks = newMemory(4096, 64<<20), newBlocks()
				}
				w := httptest.NewRecorder()
				door.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), "GET", fmt.Sprintf("/ap/board/log?after=%d", after), nil))
				require.Equal(b, 200, w.Code)
			}
		})
	}
}

// Catching up: 200 entries read, proven and applied.
func BenchmarkPull(b *testing.B) {
	a := filled(b)
	net := newNetwork()
	net.hosts["a.example"] = a.Handler()
	u, err := url.Parse("https://b.example")
	require.NoError(b, err)
	for b.Loop() {
		b.StopTimer()
		f, err := New(Config{Base: u, DB: storagetest.Open(b), Client: &http.Client{Transport: net}, Keys: nodeKeys(1), Receiver: &room{}, Software: "stoa", Version: "0"})
		require.NoError(b, err)
		board := protocol.BoardID("https://a.example")
		require.NoError(b, f.c.DB.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.PutSubscription(ctx, storage.Subscription{Board: board, Host: "a.example", LogURL: board + "/log", State: storage.SubscriptionAccepted})
		}))
		b.StartTimer()
		_, err = f.pull(b.Context(), storage.Job{Args: []byte(`"` + board + `"`)})
		require.NoError(b, err)
		s, err := f.subscribed(b.Context(), board)
		require.NoError(b, err)
		require.Equal(b, int64(200), s.LastSeq)
	}
}
