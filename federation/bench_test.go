package federation

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/cache"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/protocol/rate"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// deliveries are n signed entries of a board that the returned node follows.
func deliveries(b *testing.B, n int) (*Federation, []*http.Request) {
	b.Helper()
	net := newNetwork()
	nodes := [2]*Federation{}
	for i, base := range []string{"https://a.example", "https://b.example"} {
		u, err := url.Parse(base)
		require.NoError(b, err)
		nodes[i], err = New(Config{Base: u, DB: storagetest.Open(b), Client: &http.Client{Transport: net}, Keys: nodeKeys(i), Receiver: &room{base: base},
			Software: "stoa", Version: "0"})
		require.NoError(b, err)
		net.hosts[u.Host] = nodes[i].Handler()
	}
	nodes[1].limits, nodes[1].peers = newBuckets(rate.PerSecond(1e9, 1e9)), newBuckets(rate.PerSecond(1e9, 1e9))
	board := nodes[0].site.Board()
	require.NoError(b, nodes[1].c.DB.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
		return tx.Subscriptions().Put(ctx,
			storage.Subscription{Board: board, Host: "a.example", LogURL: board + "/log", Epoch: "e", State: storage.SubscriptionAccepted})
	}))
	requests := make([]*http.Request, n)
	for i := range requests {
		p := benchPost("https://a.example", i)
		inner := must.Get(nodes[0].prove(nodes[0].site.Create(p, nil, ""), nodes[0].site.Anon(), p.CreatedAt))(b)
		body := must.Get(nodes[0].prove(nodes[0].site.Entry("e", int64(i+1), p.CreatedAt, inner), nodes[0].site.Board(), p.CreatedAt))(b)
		r := must.Get(http.NewRequestWithContext(b.Context(), "POST", "https://b.example/ap/inbox", bytes.NewReader(body)))(b)
		r.Header.Set("Content-Type", activity.MediaType)
		require.NoError(b, nodes[0].sign(r, body, nodes[0].site.Board(), schemeEd25519))
		requests[i] = httptest.NewRequestWithContext(b.Context(), "POST", "/ap/inbox", bytes.NewReader(body))
		requests[i].Host, requests[i].Header = "b.example", r.Header
	}
	return nodes[1], requests
}

// knock hands the requests to the inbox, 8 at once.
func knock(b *testing.B, f *Federation, requests []*http.Request) {
	b.Helper()
	door := f.Handler()
	var next atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(requests)); i = next.Add(1) - 1 {
				w := httptest.NewRecorder()
				door.ServeHTTP(w, requests[i])
				if w.Code != 202 {
					b.Errorf("%d %s", w.Code, w.Body)
					return
				}
			}
		})
	}
	group.Wait()
}

// What one delivery costs from the socket to the disk: scan, proof, signature
// (Ed25519), two writes.
func BenchmarkInbox(b *testing.B) {
	f, requests := deliveries(b, b.N)
	b.ResetTimer()
	before := cpuTime()
	knock(b, f, requests)
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// What one delivery costs until it is applied: the door, the job and what it does.
func BenchmarkInboxApplied(b *testing.B) {
	f, requests := deliveries(b, b.N)
	jobs, done := f.Jobs(), 0
	b.ResetTimer()
	before := cpuTime()
	knock(b, f, requests)
	for {
		claimed, _, err := f.c.DB.ClaimJobs(b.Context(), "bench", 16, time.Minute)
		require.NoError(b, err)
		if len(claimed) == 0 {
			break
		}
		for _, j := range claimed { // as package worker does it
			finish := must.Get(jobs[j.Kind](b.Context(), j))(b)
			require.NoError(b, f.c.DB.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
				if finish != nil {
					if err := finish(ctx, tx); err != nil {
						return err
					}
				}
				return tx.Jobs().Finish(ctx, j.ID)
			}))
			if j.Kind == "process" {
				done++
			}
		}
	}
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
	require.Equal(b, b.N, done)
}

// BenchmarkEd25519Bare is the baseline of what verifies: the curve alone.
func BenchmarkEd25519Bare(b *testing.B) {
	pub, priv, err := ed25519.GenerateKey(nil)
	require.NoError(b, err)
	message := bytes.Repeat([]byte("x"), 450)
	sig := ed25519.Sign(priv, message)
	before := cpuTime()
	for b.Loop() {
		if !ed25519.Verify(pub, message, sig) {
			b.Fatal("not verified")
		}
	}
	b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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

func filled(b *testing.B, entries int) *Federation {
	b.Helper()
	u := must.Get(url.Parse("https://a.example"))(b)
	f := must.Get(New(Config{Base: u, DB: storagetest.Open(b), Client: &http.Client{Transport: newNetwork()}, Keys: nodeKeys(0), Receiver: &room{},
		Software: "stoa", Version: "0"}))(b)
	require.NoError(b, f.c.DB.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for i := range entries {
			p := benchPost("https://a.example", i)
			if err := tx.Posts().Insert(ctx, p); err != nil {
				return err
			}
			if err := tx.Logs().Append(ctx, p.Board, "create", p.ID, nil); err != nil {
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
			f := filled(b, 200)
			door := f.Handler()
			for i := 0; b.Loop(); i++ {
				after := 0
				if name == "anywhere" {
					after = i % 60
				}
				if forget {
					f.entries, f.blocks = cache.OfBytes[[]byte](64<<20), newBlocks()
				}
				w := httptest.NewRecorder()
				door.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), "GET", fmt.Sprintf("/ap/board/log?after=%d", after), nil))
				require.Equal(b, 200, w.Code)
			}
		})
	}
}

// Catching up: 1,000 entries read, proven and applied.
func BenchmarkPull(b *testing.B) {
	const entries = 1000
	a := filled(b, entries)
	net := newNetwork()
	net.hosts["a.example"] = a.Handler()
	for after := 0; after < entries; after += maxLogPage { // the sender's pages are made and kept
		a.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(b.Context(), "GET", fmt.Sprintf("/ap/board/log?after=%d", after), nil))
	}
	u := must.Get(url.Parse("https://b.example"))(b)
	var used time.Duration
	for range b.N {
		b.StopTimer()
		f, err := New(Config{Base: u, DB: storagetest.Open(b), Client: &http.Client{Transport: net}, Keys: nodeKeys(1), Receiver: &room{}, Software: "stoa",
			Version: "0"})
		require.NoError(b, err)
		board := protocol.BoardID("https://a.example")
		require.NoError(b, f.c.DB.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Subscriptions().Put(ctx, storage.Subscription{Board: board, Host: "a.example", LogURL: board + "/log", State: storage.SubscriptionAccepted})
		}))
		b.StartTimer()
		before := cpuTime()
		must.Get(f.pull(b.Context(), storage.Job{Args: []byte(`"` + board + `"`)}))(b)
		used += cpuTime() - before
		s := must.Get(f.following(b.Context(), board))(b)
		require.Equal(b, int64(entries), s.LastSeq)
	}
	b.ReportMetric(float64(used.Microseconds())/float64(entries*b.N), "cpu-µs/entry")
	b.ReportMetric(float64(entries*b.N)/b.Elapsed().Seconds(), "entries/s")
}
