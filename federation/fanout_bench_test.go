package federation

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A sink is the inboxes of many hosts, of which so many never answer: the first ones, or with tenth every tenth.
type sink struct {
	dead  atomic.Int64
	tenth bool
	got   atomic.Int64
}

func (s *sink) RoundTrip(r *http.Request) (*http.Response, error) {
	var n int64
	if _, err := fmt.Sscanf(r.URL.Host, "f%d.example", &n); err != nil {
		return nil, err
	}
	if s.tenth {
		if n%10 != 0 {
			n = math.MaxInt64
		} else {
			n /= 10
		}
	}
	if n < s.dead.Load() {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	_, _ = io.Copy(io.Discard, r.Body)
	s.got.Add(1)
	return &http.Response{StatusCode: http.StatusAccepted, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// follow gives the board of a node so many followers, each on a host of its own.
func follow(tb testing.TB, f *Federation, hosts int) {
	tb.Helper()
	board := f.site.Board()
	require.NoError(tb, f.c.DB.Write(tb.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for i := range hosts {
			host := fmt.Sprintf("f%d.example", i)
			actor := "https://" + host + "/u/bob"
			if err := tx.Followers().Put(ctx, storage.Follower{LocalActor: board, Actor: actor, Inbox: actor + "/inbox", Host: host}); err != nil {
				return err
			}
			if err := f.openOutlet(ctx, tx, board, actor+"/inbox", host, false, 0); err != nil {
				return err
			}
		}
		return nil
	}))
}

// publish makes the i-th post of a known author.
func publish(tb testing.TB, f *Federation, i int) {
	tb.Helper()
	require.NoError(tb, f.c.DB.Write(tb.Context(), func(ctx context.Context, tx *storage.Tx) error {
		p := benchPost(f.site.Base, i)
		known(p)
		if err := tx.Posts().Insert(ctx, p); err != nil {
			return err
		}
		return tx.Logs().Append(ctx, p.Board, "create", p.ID, nil)
	}))
}

// BenchmarkFanOut measures one post to 10,000 followers on as many hosts: how long until
// the last of those that live has it, and the CPU of a delivery.
func BenchmarkFanOut(b *testing.B) {
	const hosts = 10_000
	for _, dead := range []int{0, hosts / 10} {
		b.Run(fmt.Sprintf("dead=%d", dead), func(b *testing.B) {
			base := must.Get(url.Parse("https://b.example"))(b)
			to := &sink{tenth: true}
			to.dead.Store(int64(dead))
			f := must.Get(New(Config{Base: base, DB: storagetest.Open(b), Client: &http.Client{Transport: to}, Keys: nodeKeys(1),
				Receiver: &room{base: "https://b.example"}, Software: "stoa", Version: "0"}))(b)
			follow(b, f, hosts)
			ctx, stop := context.WithCancel(b.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = f.Run(ctx) })
			defer func() { stop(); running.Wait() }()
			var last, used time.Duration
			for i := range b.N {
				before, began, was := cpuTime(), time.Now(), to.got.Load()
				publish(b, f, i)
				require.Eventually(b, func() bool { return to.got.Load()-was >= int64(hosts-dead) }, 10*time.Minute, time.Millisecond)
				last, used = last+time.Since(began), used+cpuTime()-before
			}
			b.ReportMetric(last.Seconds()/float64(b.N), "s-until-last")
			b.ReportMetric(float64(used.Microseconds())/float64(b.N*(hosts-dead)), "cpu-µs/delivery")
		})
	}
}
