package federation

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// probes note how long jobs like those of received activities wait.
type probes struct {
	mu    sync.Mutex
	waits []time.Duration
}

// take returns how long the probes have waited since it was called last, in order.
func (p *probes) take() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := p.waits
	p.waits = nil
	slices.Sort(waits)
	return waits
}

// boards has the node follow the boards of all peers, which were read last at some time within the last heartbeat.
func (s *sim) boards() {
	r := rand.New(rand.NewPCG(3, 4))
	require.NoError(s.t, s.f.c.DB.Write(s.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for i := range s.net.peers {
			host := fmt.Sprintf("p%d.example", i)
			board := protocol.BoardID("https://" + host)
			if err := tx.Subscriptions().Put(ctx, storage.Subscription{Board: board, Host: host, NodeActor: "https://" + host + "/ap/node",
				LogURL: board + "/log", State: storage.SubscriptionAccepted, NextAt: tx.Now.Add(time.Duration(r.Int64N(int64(heartbeat))))}); err != nil {
				return err
			}
			if _, err := tx.Subscriptions().Reset(ctx, board, "", "1"); err != nil {
				return err
			}
			if err := s.f.setScheme(ctx, tx, host, schemeEd25519); err != nil {
				return err
			}
		}
		return nil
	}))
}

// page is the page of the empty log of a simulated board.
func (w *simNet) page(r *http.Request) *http.Response {
	body := fmt.Sprintf(`{"@context":"https://www.w3.org/ns/activitystreams","type":"OrderedCollectionPage","partOf":"https://%s/ap/board/log","stoa:epoch":"1",
		"stoa:head":0,"orderedItems":[]}`, r.URL.Host)
	head := http.Header{"Content-Type": {activity.MediaType}}
	return &http.Response{StatusCode: http.StatusOK, Header: head, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

// Received activities are applied soon whatever the followed boards do, also after a start and while a tenth of them is dead.
func TestSimulation_Following(t *testing.T) { simulated(t, simulateFollowing) }

func simulateFollowing(t *testing.T, peers int) {
	net := newSimNet(peers)
	net.die()
	s := newSim(t, net)
	s.boards()
	p := &probes{}
	jobs := simWorker(s.f)
	jobs.Handle(storage.ProcessJob, func(_ context.Context, j storage.Job) (after, error) {
		at, err := strconv.ParseInt(string(j.Args), 10, 64)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waits = append(p.waits, time.Since(time.Unix(0, at)))
		return nil, err
	})
	simStart(t, s.f, jobs)
	for _, minutes := range []int{1, 4, 10, 15} {
		net.mu.Lock()
		clear(net.seconds)
		net.mu.Unlock()
		for range minutes * 6 {
			require.NoError(t, s.f.c.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				return tx.Enqueue(ctx, storage.Job{Kind: storage.ProcessJob, Args: []byte(strconv.FormatInt(time.Now().UnixNano(), 10))})
			}))
			time.Sleep(10 * time.Second)
		}
		waits, reads := p.take(), 0
		unread, oldest := s.unread()
		net.mu.Lock()
		for _, n := range net.seconds {
			reads += n
		}
		net.mu.Unlock()
		t.Logf("%d minutes: activities wait median %v, 99 %% %v, worst %v; %.1f reads/s; %d living boards not read yet, the others %v ago at most",
			minutes, share(waits, .5), share(waits, .99), share(waits, 1), float64(reads)/60/float64(minutes), unread, oldest)
		require.Len(t, waits, minutes*6, "an activity waits longer than ten seconds")
		require.Less(t, share(waits, 1), 3*time.Second)
	}
	unread, oldest := s.unread()
	require.Zero(t, unread)
	require.Less(t, oldest, heartbeat+heartbeatDrift+time.Minute)
}

// unread is how many living boards were not read yet, and how long ago the others were at most.
func (s *sim) unread() (n int, oldest time.Duration) {
	require.NoError(s.t, s.f.c.DB.Read(s.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		all, err := tx.Subscriptions().List(ctx)
		for _, sub := range all {
			i, _ := strconv.Atoi(strings.TrimSuffix(sub.Host[1:], ".example"))
			switch {
			case s.net.peers[i].kind != healthy:
			case sub.OKAt.IsZero():
				n++
			default:
				oldest = max(oldest, time.Since(sub.OKAt))
			}
		}
		return err
	}))
	return n, oldest.Round(time.Second)
}
