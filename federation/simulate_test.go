package federation

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/work/worker"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// The simulation of one node among many peers (docs/CAPACITY.md). Real are the node's federation, jobs, queues and database; the clock is that
// of a bubble (testing/synctest), which stands while anything runs. The peers and the network are simulated: latency, the CPU that a
// delivery takes, and what is wrong with some of the peers.

// Behaviours of simulated peers.
const (
	healthy = iota
	mortal  // dies and returns: half of them never answer then, half refuse connections
	flapper // every other minute it refuses connections
	limiter // answers 429 with Retry-After to more than one request in ten seconds
	late    // answers after 29 s
	dripper // its answer comes at once, and the body a byte a second
)

// simCores and simRSA, simEd are the processor: two cores, and what a delivery takes of them (docs/PERFORMANCE.md).
const (
	simCores = 2
	simRSA   = 1500 * time.Microsecond
	simEd    = 300 * time.Microsecond
)

type simPeer struct {
	kind    int
	stoa    bool
	latency time.Duration
	got     int64     // number of the newest entry that it has
	limited time.Time // of a limiter: until when it refuses
	held    time.Duration
	sent    int
}

// A simNet is the network between the node and its peers.
type simNet struct {
	node  func() http.Handler // of b.example
	cores chan struct{}

	mu       sync.Mutex // guards the rest
	peers    []*simPeer
	dead     bool
	posts    []time.Time       // when an entry was made, by its number less one
	uris     map[string]int64  // number of an entry by its post
	lags     []time.Duration   // of healthy peers
	caught   map[int]time.Time // mortal peers that returned, until they have everything
	flying   int
	most     int           // requests at once
	seconds  map[int64]int // requests by second
	bytes    int64
	failed   int
	others   map[string]http.Handler
	fromNode map[string]int // requests of others to the node, by path
	outBytes int64          // answers to them
}

func newSimNet(peers int) *simNet {
	w := &simNet{cores: make(chan struct{}, simCores), uris: map[string]int64{}, seconds: map[int64]int{}, caught: map[int]time.Time{},
		others: map[string]http.Handler{}, fromNode: map[string]int{}}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range peers {
		p := &simPeer{stoa: i%2 == 0, latency: time.Duration(float64(80*time.Millisecond) * math.Exp(0.8*r.NormFloat64()))}
		switch {
		case i == 3:
			p.kind = late
		case i == 5:
			p.kind = dripper
		case i%20 == 8, i%20 == 9:
			p.kind = mortal
		case i%50 == 7:
			p.kind = flapper
		case i%50 == 21:
			p.kind = limiter
		}
		w.peers = append(w.peers, p)
	}
	return w
}

var errRefusedDial = errors.New("connection refused")

// wait sleeps unless the request ends before.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (w *simNet) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	if !strings.HasPrefix(r.URL.Host, "p") {
		return w.between(r, body)
	}
	i, err := strconv.Atoi(r.URL.Host[1:strings.IndexByte(r.URL.Host, '.')])
	if err != nil {
		return nil, err
	}
	p, cost := w.peers[i], simRSA
	if p.stoa {
		cost = simEd
	}
	w.cores <- struct{}{}
	time.Sleep(cost)
	<-w.cores
	began := time.Now()
	w.mu.Lock()
	w.flying++
	w.most = max(w.most, w.flying)
	w.seconds[began.Unix()]++
	w.bytes += int64(len(body)) + 900 // the header, with TLS
	p.sent++
	w.mu.Unlock()
	status, header, err := w.meet(r.Context(), i, p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flying--
	p.held += time.Since(began)
	if err != nil {
		w.failed++
		return nil, err
	}
	if r.Method == http.MethodGet && status == http.StatusAccepted {
		return w.page(r), nil
	}
	if status == http.StatusAccepted {
		w.arrived(i, p, body)
	}
	res := &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: r}
	if p.kind == dripper {
		res.Body = &drip{r.Context(), time.Now(), p, w}
	}
	return res, nil
}

// meet is how a peer takes a request.
func (w *simNet) meet(ctx context.Context, i int, p *simPeer) (int, http.Header, error) {
	w.mu.Lock()
	dead, now := w.dead, time.Now()
	limited := p.kind == limiter && now.Before(p.limited)
	if p.kind == limiter && !limited {
		p.limited = now.Add(10 * time.Second)
	}
	w.mu.Unlock()
	switch {
	case p.kind == mortal && dead && i/20%2 == 0:
		<-ctx.Done()
		return 0, nil, context.Cause(ctx)
	case p.kind == mortal && dead, p.kind == flapper && now.Unix()/60%2 == int64(i/50%2):
		_ = wait(ctx, p.latency)
		return 0, nil, errRefusedDial
	}
	latency := p.latency
	if p.kind == late {
		latency = 29 * time.Second
	}
	if err := wait(ctx, latency); err != nil {
		return 0, nil, err
	}
	if limited {
		return http.StatusTooManyRequests, http.Header{"Retry-After": {"10"}}, nil
	}
	return http.StatusAccepted, nil, nil
}

// A drip is a body of which a byte a second arrives.
type drip struct {
	ctx   context.Context
	began time.Time
	peer  *simPeer
	net   *simNet
}

func (d *drip) Read(p []byte) (int, error) {
	if err := wait(d.ctx, time.Second); err != nil {
		return 0, err
	}
	return copy(p, "."), nil
}

func (d *drip) Close() error {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	d.peer.held += time.Since(d.began)
	return nil
}

// arrived notes what a peer has. Its caller holds mu.
func (w *simNet) arrived(i int, p *simPeer, body []byte) {
	seq := int64(0)
	if _, rest, ok := bytes.Cut(body, []byte(`"stoa:seq":`)); ok && p.stoa {
		n := 0
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		seq, _ = strconv.ParseInt(string(rest[:n]), 10, 64)
	} else if _, rest, ok := bytes.Cut(body, []byte(`/ap/posts/`)); ok {
		id, _, _ := bytes.Cut(rest, []byte(`"`))
		seq = w.uris[string(id)]
	}
	for n := p.got + 1; n <= seq; n++ {
		if p.kind == healthy {
			w.lags = append(w.lags, time.Since(w.posts[n-1]))
		}
	}
	p.got = max(p.got, seq)
	if at, ok := w.caught[i]; ok && at.IsZero() && p.got == int64(len(w.posts)) {
		w.caught[i] = time.Now()
	}
}

// between is a request between the node and a real peer.
func (w *simNet) between(r *http.Request, body []byte) (*http.Response, error) {
	if err := wait(r.Context(), 80*time.Millisecond); err != nil {
		return nil, err
	}
	w.mu.Lock()
	h := w.others[r.URL.Host]
	w.mu.Unlock()
	if r.URL.Host == "b.example" {
		h = w.node()
	}
	if h == nil {
		return nil, errRefusedDial
	}
	in := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.RequestURI(), bytes.NewReader(body))
	in.Host, in.Header, in.RequestURI = r.URL.Host, r.Header.Clone(), r.URL.RequestURI()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, in)
	if r.URL.Host == "b.example" {
		w.mu.Lock()
		w.fromNode[r.Method+" "+simPath(r.URL.Path)]++
		w.outBytes += int64(rec.Body.Len()) + 600
		w.mu.Unlock()
	}
	res := rec.Result()
	res.Request = r
	return res, nil
}

// simPath is the path of a request without what differs.
func simPath(path string) string {
	if _, rest, ok := strings.Cut(path, "/tree/"); ok {
		parts := strings.Split(rest, "/")
		if len(parts) > 2 && parts[2] == "entries" {
			return "bundle"
		}
		return parts[1]
	}
	return path
}

// A sim is the node that is observed.
type sim struct {
	t        *testing.T
	net      *simNet
	f        *Federation
	seq      int       // posts made
	returned time.Time // when the dead returned
}

func newSim(t *testing.T, net *simNet) *sim {
	s := &sim{t: t, net: net, f: simNode(t, "b.example", net, 1)}
	s.f.preparation.places = make(chan struct{}, simCores)
	net.node = s.f.Handler
	return s
}

func simNode(t *testing.T, host string, net http.RoundTripper, keys int) *Federation {
	base := must.Get(url.Parse("https://" + host))(t)
	f := must.Get(New(Config{Base: base, DB: storagetest.Open(t), Client: &http.Client{Transport: net}, Keys: nodeKeys(keys),
		Receiver: &room{base: base.String()}, Software: "stoa", Version: "0"}))(t)
	return f
}

func simWorker(f *Federation) *worker.Worker {
	w := &worker.Worker{DB: f.c.DB, Log: slog.New(slog.DiscardHandler), Owner: f.site.Host}
	for kind, handle := range f.Jobs() {
		if kind != storage.ProcessJob {
			w.Handle(kind, handle)
		}
	}
	return w
}

// follow has all peers follow the board.
func (s *sim) follow() {
	board := s.f.site.Board()
	require.NoError(s.t, s.f.c.DB.Write(s.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for i, p := range s.net.peers {
			host := fmt.Sprintf("p%d.example", i)
			actor := "https://" + host + "/u/bob"
			if err := tx.Followers().Put(ctx, storage.Follower{LocalActor: board, Actor: actor, Inbox: actor + "/inbox", Host: host, Stoa: p.stoa}); err != nil {
				return err
			}
			if err := s.f.openOutlet(ctx, tx, board, actor+"/inbox", host, p.stoa, 0); err != nil {
				return err
			}
			if err := s.f.setScheme(ctx, tx, host, schemeEd25519); err != nil { // the time of RSA is simulated
				return err
			}
		}
		return nil
	}))
}

func (s *sim) publish() {
	now := time.Now()
	p := benchPost(s.f.site.Base, s.seq)
	known(p)
	p.CreatedAt = now
	s.seq++
	s.net.mu.Lock()
	s.net.posts = append(s.net.posts, now)
	s.net.uris[p.ID] = int64(s.seq)
	s.net.mu.Unlock()
	require.NoError(s.t, s.f.c.DB.Write(s.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Posts().Insert(ctx, p); err != nil {
			return err
		}
		return tx.Logs().Append(ctx, p.Board, "create", p.ID, nil)
	}))
}

// A phase is what was seen in a while.
type phase struct {
	lags         []time.Duration
	requests     int
	perSecond    float64
	mostInSecond int
	bytes        int64
	most, failed int
}

// during makes so many posts, a pause apart, and returns what was seen of it and of the rest of the time.
func (s *sim) during(posts int, pause, rest time.Duration) phase {
	w := s.net
	w.mu.Lock()
	w.lags, w.seconds, w.bytes, w.most, w.failed = nil, map[int64]int{}, 0, 0, 0
	w.mu.Unlock()
	began := time.Now()
	for range posts {
		s.publish()
		time.Sleep(pause)
	}
	time.Sleep(rest)
	w.mu.Lock()
	defer w.mu.Unlock()
	p := phase{lags: w.lags, bytes: w.bytes, most: w.most, failed: w.failed}
	slices.Sort(p.lags)
	for _, n := range w.seconds {
		p.requests += n
		p.mostInSecond = max(p.mostInSecond, n)
	}
	p.perSecond = float64(p.requests) / time.Since(began).Seconds()
	return p
}

func share(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Round(time.Millisecond)
}

func (p phase) String() string {
	return fmt.Sprintf("lag median %v, 95 %% %v, 99 %% %v, worst %v of %d; %d requests, %.1f/s, most in a second %d, at once %d; %d failed; %.1f MB",
		share(p.lags, 0.5), share(p.lags, 0.95), share(p.lags, 0.99), share(p.lags, 1), len(p.lags), p.requests, p.perSecond, p.mostInSecond, p.most, p.failed,
		float64(p.bytes)/1e6)
}

// simSizes are how many peers to simulate: STOA_SIMULATE, else few.
func simSizes(t *testing.T) (all []int) {
	for _, word := range strings.Fields(cmp.Or(os.Getenv("STOA_SIMULATE"), "60")) {
		n := must.Get(strconv.Atoi(word))(t)
		require.GreaterOrEqual(t, n, 20, "STOA_SIMULATE: peers of each kind")
		all = append(all, n)
	}
	return all
}

// simulated runs a simulation of each size in a bubble, whose clock is virtual.
func simulated(t *testing.T, run func(t *testing.T, peers int)) {
	t.Parallel()
	nodeKeys(1)
	for _, peers := range simSizes(t) {
		t.Run(strconv.Itoa(peers), func(t *testing.T) {
			began := time.Now()
			synctest.Test(t, func(t *testing.T) { run(t, peers) })
			t.Logf("simulated in %v", time.Since(began).Round(time.Second))
		})
	}
}

// simStart runs the federation of a node, and its jobs if there are any, until the test ends.
func simStart(t *testing.T, f *Federation, jobs *worker.Worker) {
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) })
	if jobs != nil {
		running.Go(func() { _ = jobs.Run(ctx) })
	}
	t.Cleanup(func() { stop(); running.Wait() })
}

// Every post reaches every peer that lives, as soon when a tenth is dead, and those that return as soon as they are heard of.
func TestSimulation_Deliveries(t *testing.T) { simulated(t, simulateDeliveries) }

func simulateDeliveries(t *testing.T, peers int) {
	net := newSimNet(peers)
	s := newSim(t, net)
	s.follow()
	simStart(t, s.f, nil)
	time.Sleep(time.Second)
	const pause = 20 * time.Second
	posts := min(10, max(3, 20_000/peers))
	live := s.during(posts, pause, 0)
	t.Logf("all live: %v", live)
	net.die()
	dying := s.during(posts, pause, 0)
	t.Logf("a tenth dies: %v", dying)
	t.Logf("ten minutes without a post: %v", s.during(0, 0, 10*time.Minute))
	dead := s.during(posts, pause, 0)
	t.Logf("a tenth is dead: %v", dead)
	woken := s.revive()
	back := s.during(posts, pause, 0)
	t.Logf("a tenth returns: %v", back)
	t.Logf("half an hour without a post: %v", s.during(0, 0, 30*time.Minute))
	for _, kind := range []struct {
		name       string
		stoa, told bool
	}{{"stoa nodes that are heard of", true, true}, {"stoa nodes", true, false}, {"others that are heard of", false, true}, {"others", false, false}} {
		var took []time.Duration
		net.mu.Lock()
		caught := maps.Clone(net.caught)
		net.mu.Unlock()
		for i, at := range caught {
			if net.peers[i].stoa == kind.stoa && woken[i] == kind.told {
				require.False(t, at.IsZero(), "p%d does not have everything", i)
				took = append(took, at.Sub(s.returned))
			}
		}
		slices.Sort(took)
		t.Logf("returned %s have everything: %d, median %v, worst %v", kind.name, len(took), share(took, .5), share(took, 1))
	}
	for _, i := range []int{3, 5} {
		p, name := net.peers[i], map[int]string{late: "answers after 29 s", dripper: "drips"}
		t.Logf("p%d, %s: %d requests, which took %v", i, name[p.kind], p.sent, p.held)
	}
	t.Logf("goroutines afterwards: %d", runtime.NumGoroutine())

	all := 0
	for _, p := range net.peers {
		if p.kind == healthy {
			all++
		}
	}
	for _, p := range []phase{live, dying, dead, back} {
		require.Len(t, p.lags, all*posts, "a post that a living peer does not have")
		require.LessOrEqual(t, p.most, inFlight)
	}
	require.Less(t, share(dying.lags, 1), share(live.lags, 1)+fetchTimeout/2, "the dead hold up the living")
	require.Less(t, share(dead.lags, 1), share(live.lags, 1)+time.Second)
	require.Less(t, share(back.lags, 1), share(live.lags, 1)+fetchTimeout/2, "those that return hold up the others")
}

// die has those that are mortal answer no more.
func (w *simNet) die() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
}

// revive brings the dead back. Half of them send something within ten seconds, and are heard of so.
func (s *sim) revive() (woken map[int]bool) {
	woken = map[int]bool{}
	s.net.mu.Lock()
	s.net.dead, s.returned = false, time.Now()
	for i, p := range s.net.peers {
		if p.kind == mortal {
			s.net.caught[i], woken[i] = time.Time{}, i/40%2 == 0
		}
	}
	s.net.mu.Unlock()
	for i := range s.net.peers {
		if woken[i] {
			time.AfterFunc(time.Duration(i%10_000)*time.Millisecond, func() {
				_ = s.f.c.DB.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
					return tx.Outlets().WakeHost(ctx, fmt.Sprintf("p%d.example", i))
				})
			})
		}
	}
	return woken
}

// What a stoa node asks of a node whose board it follows, for each post and each hour.
func TestSimulation_Reading(t *testing.T) {
	t.Parallel()
	nodeKeys(1)
	nodeKeys(2)
	synctest.Test(t, func(t *testing.T) {
		net := newSimNet(0)
		s := newSim(t, net)
		reader := simNode(t, "s.example", net, 2)
		net.others["s.example"] = reader.Handler()
		for _, f := range []*Federation{s.f, reader} {
			jobs := simWorker(f)
			jobs.Handle(storage.ProcessJob, f.process)
			simStart(t, f, jobs)
		}
		must.Get(reader.Follow(t.Context(), "https://b.example"))(t)
		time.Sleep(time.Minute)
		for _, c := range []struct {
			posts       int
			every, rest time.Duration
		}{{60, 5 * time.Second, 0}, {10, time.Minute, 0}, {0, 0, time.Hour}} {
			net.mu.Lock()
			clear(net.fromNode)
			net.outBytes = 0
			net.mu.Unlock()
			for range c.posts {
				s.publish()
				time.Sleep(c.every)
			}
			time.Sleep(c.rest)
			net.mu.Lock()
			reads := net.fromNode["GET /ap/board/log"]
			t.Logf("%d posts, one every %v: %d reads of the log, each %.1f kB; %v", c.posts, c.every, reads,
				float64(net.outBytes)/1000/float64(reads), net.fromNode)
			if net.mu.Unlock(); c.posts == 0 {
				require.LessOrEqual(t, reads, int(time.Hour/(heartbeat-heartbeatDrift)), "a log without anything new is read at its heartbeat")
			}
		}
		require.NoError(t, reader.c.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			require.EqualValues(t, s.seq, must.Get(tx.Subscriptions().ByBoard(ctx, s.f.site.Board()))(t).LastSeq)
			return nil
		}))
	})
}
