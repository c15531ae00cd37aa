package federation

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/work/worker"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A burst is what servers of the fediverse send to a node that runs, at once:
// replies to a post of its board, each signed, over sockets.
type burst struct {
	db       *storage.DB
	root     *protocol.StoredPost
	requests []*http.Request
	boosts   atomic.Int64 // that followers received
}

// newBurst runs the inbox, the jobs and the fan-out of a node with so many followers, and
// signs so many replies from each of so many hosts.
func newBurst(tb testing.TB, hosts, each, followers int) *burst {
	tb.Helper()
	net := newNetwork()
	base := must.Get(url.Parse("https://b.example"))(tb)
	db := storagetest.Open(tb)
	f := must.Get(New(Config{Base: base, DB: db, Client: &http.Client{Transport: net}, Keys: nodeKeys(1),
		Receiver: &room{base: "https://b.example"}, Software: "stoa", Version: "0"}))(tb)
	jobs := worker.Worker{DB: db, Log: slog.New(slog.DiscardHandler), Owner: "burst"}
	for kind, handle := range f.Jobs() {
		jobs.Handle(kind, handle)
	}
	b := &burst{db: db, root: benchPost("https://b.example", 0)}
	require.NoError(tb, db.Write(tb.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Posts().Insert(ctx, b.root) }))

	follow(tb, f, followers)
	for n := range followers {
		net.hosts[fmt.Sprintf("f%d.example", n)] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			b.boosts.Add(1)
			w.WriteHeader(http.StatusAccepted)
		})
	}

	door := httptest.NewServer(f.Handler())
	sender, err := New(Config{Base: base, DB: db, Client: &http.Client{Transport: net}, Keys: nodeKeys(2), Receiver: &room{}, Software: "x", Version: "0"})
	require.NoError(tb, err)
	documents := map[string][]byte{}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", activity.MediaType)
		_, _ = w.Write(documents["https://"+r.Host+r.URL.Path])
	})
	for n := range hosts * each {
		host := fmt.Sprintf("h%d.example", n%hosts)
		actor := "https://" + host + "/u/ada"
		if documents[actor] == nil {
			net.hosts[host] = serve
			documents[actor] = (&actorKeys{id: actor, keys: nodeKeys(2)}).document(tb)
		}
		body := fmt.Appendf(nil, `{"@context":"https://www.w3.org/ns/activitystreams","id":"https://%s/a/%d","type":"Create","actor":%q,"to":"as:Public",
			"object":{"id":"https://%s/n/%d","type":"Note","attributedTo":%q,"content":"<p>Reply %d</p>","published":%q,"to":"as:Public","inReplyTo":%q}}`,
			host, n, actor, host, n, actor, n, time.Now().UTC().Format(time.RFC3339), b.root.URI)
		r := must.Get(http.NewRequestWithContext(tb.Context(), "POST", "https://b.example/ap/inbox", bytes.NewReader(body)))(tb)
		r.Header.Set("Content-Type", activity.MediaType)
		require.NoError(tb, sender.sign(r, body, actor, schemeCavage))
		r.URL.Scheme, r.URL.Host, r.Host = "http", door.Listener.Addr().String(), "b.example"
		b.requests = append(b.requests, r)
	}

	ctx, stop := context.WithCancel(tb.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = jobs.Run(ctx) })
	running.Go(func() { _ = f.Run(ctx) })
	tb.Cleanup(func() { stop(); running.Wait(); door.Close() })
	return b
}

// deliver sends everything on sixteen connections. It returns how long that took,
// and how long after the last 202 the last reply was visible.
func (b *burst) deliver(tb testing.TB) (sending, visible time.Duration) {
	tb.Helper()
	work := make(chan *http.Request, len(b.requests))
	for _, r := range b.requests {
		work <- r
	}
	close(work)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	began := time.Now()
	var senders sync.WaitGroup
	for range 16 {
		senders.Go(func() {
			for r := range work {
				res, err := client.Do(r)
				if err != nil {
					tb.Error(err)
					return
				}
				text, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusAccepted {
					tb.Errorf("%d %s", res.StatusCode, text)
				}
			}
		})
	}
	senders.Wait()
	sending = time.Since(began)
	require.Eventually(tb, func() bool {
		var n int
		require.NoError(tb, b.db.Read(tb.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
			n, err = tx.Posts().CountThread(ctx, b.root.ID)
			return err
		}))
		return n == len(b.requests)
	}, time.Minute, 5*time.Millisecond)
	return sending, time.Since(began) - sending
}

// TestInbox_Burst: what is accepted is visible soon after, of many hosts and of
// one, whose activities are processed one after another. With a job a second for
// each host it would take half a minute and a minute.
func TestInbox_Burst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ hosts, each int }{{6, 30}, {1, 60}} {
		t.Run(fmt.Sprintf("%d of %d hosts", c.hosts*c.each, c.hosts), func(t *testing.T) {
			t.Parallel()
			sending, visible := newBurst(t, c.hosts, c.each, 0).deliver(t)
			t.Logf("sent in %v, visible %v later", sending, visible)
			require.Less(t, visible, time.Duration(c.each)*time.Second/2+sending, "on a slow machine both take longer")
		})
	}
}

// BenchmarkInboxBurst measures how long after the last 202 everything is visible, and what
// followers of the board change of it.
func BenchmarkInboxBurst(b *testing.B) {
	for _, c := range []struct{ hosts, each, followers int }{{100, 10, 0}, {1, 500, 0}, {100, 10, 10_000}} {
		b.Run(fmt.Sprintf("activities=%d/hosts=%d/followers=%d", c.hosts*c.each, c.hosts, c.followers), func(b *testing.B) {
			var sending, visible time.Duration
			var boosts int64
			for b.Loop() {
				b.StopTimer()
				burst := newBurst(b, c.hosts, c.each, c.followers)
				b.StartTimer()
				s, v := burst.deliver(b)
				sending, visible, boosts = sending+s, visible+v, boosts+burst.boosts.Load()
			}
			b.ReportMetric(sending.Seconds()/float64(b.N), "s-sending")
			b.ReportMetric(visible.Seconds()/float64(b.N), "s-until-visible")
			b.ReportMetric(float64(c.hosts*c.each*b.N)/(sending+visible).Seconds(), "applied/s")
			b.ReportMetric(float64(boosts)/float64(b.N), "boosts-meanwhile")
		})
	}
}
