package liveness

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// network answers for every host without any network, and counts.
type network struct {
	mu      sync.Mutex
	down    map[string]bool
	asked   map[string][]time.Time // by host, requests for robots.txt left out
	running map[string]int
	crowded bool // two requests to one host at a time
	slow    time.Duration
}

func newNetwork() *network {
	return &network{down: map[string]bool{}, asked: map[string][]time.Time{}, running: map[string]int{}}
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	down := n.down[r.URL.Host]
	if r.URL.Path != "/robots.txt" {
		n.asked[r.URL.Host] = append(n.asked[r.URL.Host], time.Now())
	}
	n.running[r.URL.Host]++
	n.crowded = n.crowded || n.running[r.URL.Host] > 1
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.running[r.URL.Host]--
		n.mu.Unlock()
	}()
	if n.slow > 0 {
		select {
		case <-time.After(n.slow):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if down {
		return nil, fmt.Errorf("nobody is there")
	}
	status := 200
	if r.URL.Path == "/robots.txt" {
		status = 404
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

func (n *network) count(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.asked[host])
}

func put(t *testing.T, db *storage.DB, handle string, endpoints ...string) {
	t.Helper()
	p := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Business}}
	for i, e := range endpoints {
		p.Draft.Capabilities = append(p.Draft.Capabilities, protocol.Capability{ID: fmt.Sprintf("c-%d", i), Name: "C", Description: "d", Endpoint: e})
	}
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Profiles().Put(ctx, p)
		return err
	})
}

func write(t *testing.T, db *storage.DB, fn func(context.Context, *storage.Tx) error) {
	t.Helper()
	require.NoError(t, db.Write(context.Background(), fn))
}

func profile(t *testing.T, db *storage.DB, handle string) (p *storage.StoredProfile) {
	t.Helper()
	require.NoError(t, db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
		p, err = tx.Profiles().ByHandle(ctx, handle)
		return err
	}))
	return p
}

func proberOn(db *storage.DB, n *network) *Prober {
	return &Prober{DB: db, Client: &http.Client{Transport: n}, Agent: agent, Self: "n1.example", Log: slog.New(slog.DiscardHandler)}
}

// run is what the worker does with the job, until a time. Runs that would find
// nothing due are passed over.
func run(t *testing.T, p *Prober, until time.Time) (runs int) {
	t.Helper()
	for time.Now().Before(until) {
		after, err := p.Job(context.Background(), storage.Job{})
		require.NoError(t, err)
		runs++
		var due, next time.Time
		write(t, p.DB, func(ctx context.Context, tx *storage.Tx) error {
			if err := after(ctx, tx); err != nil {
				return err
			}
			page, err := tx.Jobs().List(ctx, storage.JobWaiting, storage.ProbeJob, 10, "")
			require.Len(t, page.Items, 1, "one run waits")
			due = page.Items[0].RunAt
			if err == nil {
				err = tx.Jobs().Finish(ctx, page.Items[0].ID)
			}
			if err == nil {
				next, err = tx.Probes().Next(ctx)
			}
			return err
		})
		require.True(t, time.Until(due) >= Pause-time.Second && time.Until(due) <= Idle, "%s", time.Until(due))
		if next.IsZero() || next.After(until) {
			next = until
		}
		time.Sleep(max(time.Until(due), time.Until(next)))
	}
	return runs
}

// A month in the life of three endpoints: one answers, one never does, one stops
// and comes back. Days pass at once.
func TestJob_AMonth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := storagetest.Open(t)
		n := newNetwork()
		n.down["never.example"] = true
		put(t, db, "up", "https://up.example/a2a")
		put(t, db, "never", "https://never.example/a2a")
		put(t, db, "flaky", "https://flaky.example/a2a")
		put(t, db, "silent")
		put(t, db, "self", "https://n1.example/a2a/self")
		p := proberOn(db, n)
		start := time.Now()
		run(t, p, start.Add(2*time.Hour))
		for handle, want := range map[string]protocol.Liveness{"up": protocol.LivenessAlive, "never": protocol.LivenessDead, "flaky": protocol.LivenessAlive,
			"silent": protocol.LivenessUnknown, "self": protocol.LivenessUnknown} {
			require.Equal(t, want, profile(t, db, handle).Alive, handle)
		}
		require.True(t, profile(t, db, "never").LastSeenAt.IsZero())

		n.mu.Lock()
		n.down["flaky.example"] = true
		n.mu.Unlock()
		run(t, p, start.Add(4*daily))
		require.Equal(t, protocol.LivenessDead, profile(t, db, "flaky").Alive)
		seen := profile(t, db, "flaky").LastSeenAt
		require.WithinDuration(t, start, seen, 2*time.Hour, "when it last answered stays")
		n.mu.Lock()
		n.down["flaky.example"] = false
		n.mu.Unlock()

		run(t, p, start.Add(30*daily))
		require.Equal(t, protocol.LivenessAlive, profile(t, db, "flaky").Alive)
		require.WithinDuration(t, time.Now(), profile(t, db, "up").LastSeenAt, 30*time.Hour)
		require.InDelta(t, 30, n.count("up.example"), 7, "once a day")
		require.InDelta(t, 0, n.count("never.example"), 8, "robots.txt is asked first, and nothing more")
		require.Zero(t, n.count("n1.example"))
	})
}

// What is dead is asked ever more seldom: after an hour, a day, two, four, and
// then weekly.
func TestJob_BackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := storagetest.Open(t)
		n := newNetwork()
		put(t, db, "gone", "https://gone.example/x")
		p := proberOn(db, n)
		outcomes := 0
		var times []time.Time
		p.Observe = func(o Outcome) { outcomes++; times = append(times, time.Now()) }
		n.down["gone.example"] = true
		run(t, p, time.Now().Add(40*daily))
		want := []time.Duration{time.Hour, daily, 2 * daily, 4 * daily, weekly, weekly, weekly}
		require.GreaterOrEqual(t, outcomes, 6)
		for i := range times[1:] {
			require.InEpsilon(t, float64(want[min(i, len(want)-1)]), float64(times[i+1].Sub(times[i])), 0.2, "pause %d", i+1)
		}
	})
}

// However many profiles list addresses of one domain, and whatever their hosts,
// few are asked within an hour, and one at a time of a host.
func TestJob_Caps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := storagetest.Open(t)
		n := newNetwork()
		n.slow = 100 * time.Millisecond
		for i := range 20 {
			var endpoints []string
			for j := range 10 {
				endpoints = append(endpoints, fmt.Sprintf("https://h%d.big.example/%d", i, j))
			}
			put(t, db, fmt.Sprintf("agent-%d", i), endpoints...)
		}
		put(t, db, "other", "https://small.example/")
		start := time.Now()
		run(t, proberOn(db, n), start.Add(12*time.Hour))
		var all []time.Time
		for host, times := range n.asked {
			if strings.HasSuffix(host, "big.example") {
				all = append(all, times...)
			}
		}
		require.Len(t, all, 200, "each in its turn")
		require.False(t, n.crowded, "one at a time of a host")
		for _, from := range all {
			within := 0
			for _, at := range all {
				if !at.Before(from) && at.Sub(from) < time.Hour-time.Minute {
					within++
				}
			}
			require.LessOrEqual(t, within, PerDomain)
		}
		require.Equal(t, 1, n.count("small.example"))
		require.Less(t, n.asked["small.example"][0].Sub(start), 10*time.Minute, "a large domain holds up nobody")
	})
}

// What was asked is not asked again by a process that has just started, nor by
// two at the same time, nor by one that died while it asked.
func TestJob_Processes(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		now := time.Now().Add(time.Hour) // all is due
		c.Now = func() time.Time { return now }
		one, err := storage.Open(context.Background(), c)
		require.NoError(t, err)
		two, err := storage.Open(context.Background(), c)
		require.NoError(t, err)
		defer func() { require.NoError(t, one.Close()); require.NoError(t, two.Close()) }()
		for i := range 12 {
			put(t, one, fmt.Sprintf("agent-%d", i), fmt.Sprintf("https://h%d.example/", i))
		}
		now = now.Add(time.Hour)
		claim := storage.ProbeClaim{Most: 8, PerDomain: PerDomain, Lease: lease}
		var first, second, third []storage.Probe
		write(t, one, func(ctx context.Context, tx *storage.Tx) (err error) {
			first, err = tx.Probes().Claim(ctx, claim)
			return err
		})
		write(t, two, func(ctx context.Context, tx *storage.Tx) (err error) {
			second, err = tx.Probes().Claim(ctx, claim)
			return err
		})
		require.Len(t, first, 8)
		require.Len(t, second, 4)
		seen := map[string]bool{}
		for _, p := range append(first, second...) {
			require.False(t, seen[p.Target])
			seen[p.Target] = true
		}
		now = now.Add(lease - time.Second)
		n := newNetwork()
		after, err := proberOn(two, n).Job(context.Background(), storage.Job{})
		require.NoError(t, err)
		require.NotNil(t, after)
		require.Empty(t, n.asked, "claimed and not settled: not before the lease ends")
		now = now.Add(time.Minute)
		write(t, two, func(ctx context.Context, tx *storage.Tx) (err error) {
			third, err = tx.Probes().Claim(ctx, storage.ProbeClaim{Most: 99, PerDomain: 99, Lease: lease})
			return err
		})
		require.Len(t, third, 12, "then again")
	})
}

// The lane of the job lets one process ask at a time.
func TestEnqueue_Once(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		for range 3 { // three processes start
			write(t, db, Enqueue)
		}
		jobs, _, err := db.ClaimJobs(context.Background(), "one", 8, time.Minute)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		write(t, db, Enqueue)
		jobs, _, err = db.ClaimJobs(context.Background(), "two", 8, time.Minute)
		require.NoError(t, err)
		require.Empty(t, jobs)
	})
}

// A process that stops does not wait for slow hosts; what it did not settle is
// asked later.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := storagetest.Open(t)
		n := newNetwork()
		n.slow = 5 * time.Second
		put(t, db, "slow", "https://slow.example/")
		time.Sleep(2 * time.Minute)
		p := proberOn(db, n)
		time.AfterFunc(time.Second, p.Stop)
		start := time.Now()
		_, err := p.Job(context.Background(), storage.Job{})
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, protocol.LivenessUnknown, profile(t, db, "slow").Alive)
		fresh := proberOn(db, newNetwork())
		run(t, fresh, time.Now().Add(lease+2*time.Minute))
		require.Equal(t, protocol.LivenessAlive, profile(t, db, "slow").Alive)
	})
}

// Identities are asked of the chain; they say who is verified, not who is alive.
func TestJob_Identities(t *testing.T) {
	t.Parallel()
	db := storagetest.OpenConfig(t, storage.Config{Now: func() time.Time { return time.Now().Add(time.Hour) }})
	const id = "eip155:1337:0x5fbdb2315678afecb367f032d93f642f64180aa3:"
	for i, listed := range []bool{true, true, false} {
		p := &storage.StoredProfile{ERC8004: fmt.Sprint(id, i), KeyHash: fmt.Sprint("key-", i), Unlisted: !listed,
			Draft: protocol.ProfileDraft{Handle: fmt.Sprintf("agent-%d", i), Name: "A", Kind: protocol.Business}}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { _, err := tx.Profiles().Put(ctx, p); return err })
	}
	revoked := map[string]bool{id + "1": true}
	away := false
	p := proberOn(db, newNetwork())
	p.Identity = func(_ context.Context, identity, thumbprint string) error {
		require.Equal(t, "key-"+identity[len(id):], thumbprint)
		switch {
		case away:
			return &protocol.Error{Code: protocol.ChainUnavailable}
		case revoked[identity]:
			return protocol.Errorf(protocol.KeyUnknown, "revoked")
		}
		return nil
	}
	census := func() (c storage.Census) {
		require.NoError(t, db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) { c, err = tx.Site().Census(ctx); return err }))
		return c
	}
	require.Equal(t, storage.Census{Listed: 2}, census(), "an enrolled identity counts once it was checked")
	var probes []storage.Probe
	read := func() {
		require.NoError(t, db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
			probes, err = tx.Probes().OfProfile(ctx, "agent-0")
			return err
		}))
	}
	read()
	require.Len(t, probes, 1)
	for i := range 3 {
		require.NoError(t, p.probe(context.Background(), storage.Probe{Target: fmt.Sprintf("%s%d key-%d", id, i, i), Kind: storage.ProbeChain,
			Alive: protocol.LivenessUnknown}))
	}
	require.Equal(t, storage.Census{Listed: 2, Verified: 1}, census())
	require.Equal(t, protocol.LivenessUnknown, profile(t, db, "agent-0").Alive)
	away = true
	read()
	require.NoError(t, p.probe(context.Background(), probes[0]))
	require.Equal(t, storage.Census{Listed: 2, Verified: 1}, census(), "an absent chain decides nothing")
	away, revoked[id+"0"] = false, true
	require.NoError(t, p.probe(context.Background(), probes[0]))
	require.Equal(t, storage.Census{Listed: 2}, census(), "a revoked key shows at once")
}

// An agent that signs is alive, whatever its endpoints do, for a week.
func TestSightings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := storagetest.Open(t)
		put(t, db, "asha", "https://asha.example/")
		put(t, db, "ravi")
		n := newNetwork()
		n.down["asha.example"] = true
		p := proberOn(db, n)
		run(t, p, time.Now().Add(2*time.Hour))
		require.Equal(t, protocol.LivenessDead, profile(t, db, "asha").Alive)

		s := &Sightings{DB: db, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		read, wrote := protocol.GetAgentProfile.Operation, protocol.PostToBoard.Operation
		s.Record(protocol.Caller{Standing: protocol.Signed, Handle: "asha"}, read)
		s.Record(protocol.Caller{Standing: protocol.Session, Handles: []string{"ravi"}}, read)
		s.Record(protocol.Caller{Standing: protocol.Proof, Handle: "ravi"}, wrote)
		s.Record(protocol.Caller{Standing: protocol.Signed, Agent: "eip155:1:0x0:1"}, wrote)
		s.Record(protocol.Caller{Standing: protocol.Signed, Handle: "nobody"}, wrote)
		time.Sleep(2 * flushEvery)
		asha := profile(t, db, "asha")
		require.Equal(t, protocol.LivenessAlive, asha.Alive)
		require.WithinDuration(t, time.Now(), asha.LastSeenAt, 2*flushEvery)
		require.Equal(t, protocol.LivenessUnknown, profile(t, db, "ravi").Alive, "looking at something is not answering")

		version := db.Version()
		for range 1000 {
			s.Record(protocol.Caller{Standing: protocol.Signed, Handle: "asha"}, wrote)
		}
		time.Sleep(50 * time.Minute)
		require.Equal(t, version, db.Version(), "once an hour")
		s.Record(protocol.Caller{Standing: protocol.Session, Handles: []string{"ravi"}}, wrote)
		cancel()
		require.NoError(t, <-ended)
		require.Equal(t, protocol.LivenessAlive, profile(t, db, "ravi").Alive, "the last ones are stored too")

		run(t, p, time.Now().Add(6*daily))
		require.Equal(t, protocol.LivenessAlive, profile(t, db, "asha").Alive)
		time.Sleep(2 * daily)
		gone := 0
		write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
			gone, err = tx.Probes().ForgetSightings(ctx)
			return err
		})
		require.Equal(t, 2, gone)
		require.Equal(t, protocol.LivenessDead, profile(t, db, "asha").Alive)
		require.Equal(t, protocol.LivenessUnknown, profile(t, db, "ravi").Alive)
	})
}

func TestSightings_Bounded(t *testing.T) {
	t.Parallel()
	s := &Sightings{}
	for i := range 2 * sightMost {
		s.Record(protocol.Caller{Standing: protocol.Signed, Handle: fmt.Sprint("a", i)}, nil)
	}
	require.LessOrEqual(t, len(s.noted), sightMost)
}

// A host that the operator blocked, or rejects, is asked nothing, and nothing is
// known of it then.
func TestJob_Blocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, n := storagetest.Open(t), newNetwork()
		put(t, db, "asha", "https://api.blocked.example/")
		put(t, db, "ravi", "https://rejected.example/")
		put(t, db, "mira", "https://fine.example/")
		p := proberOn(db, n)
		run(t, p, time.Now().Add(2*time.Hour))
		require.Equal(t, protocol.LivenessAlive, profile(t, db, "asha").Alive)
		before := n.count("api.blocked.example")
		require.Positive(t, before)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "rejected.example", Policy: storage.PolicyReject}); err != nil {
				return err
			}
			return tx.Blocks().Put(ctx,
				protocol.Block{ID: protocol.NewID(protocol.BlockID, tx.Now), Kind: protocol.BlockHost, Value: "blocked.example", CreatedAt: tx.Now})
		})
		run(t, p, time.Now().Add(72*time.Hour))
		require.Equal(t, before, n.count("api.blocked.example"))
		require.Equal(t, protocol.LivenessUnknown, profile(t, db, "asha").Alive)
		require.Equal(t, protocol.LivenessUnknown, profile(t, db, "ravi").Alive)
		require.Equal(t, protocol.LivenessAlive, profile(t, db, "mira").Alive)
		p.Stop()
	})
}

// A node that switches asking off shows and counts nothing that was found once.
func TestRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, n := storagetest.Open(t), newNetwork()
		n.down["down.example"] = true
		put(t, db, "asha", "https://fine.example/")
		put(t, db, "ravi", "https://down.example/")
		for i := range handles + 10 {
			put(t, db, fmt.Sprint("agent-", i), fmt.Sprintf("https://h%d.example/", i))
		}
		p := proberOn(db, n)
		run(t, p, time.Now().Add(6*time.Hour))
		census := func() (c storage.Census) {
			require.NoError(t, db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
				c, err = tx.Site().Census(ctx)
				return err
			}))
			return c
		}
		require.Equal(t, storage.Census{Listed: handles + 12, Answering: handles + 11, ActiveMonth: handles + 11, ActiveHalfyear: handles + 11}, census())
		seen := profile(t, db, "asha").LastSeenAt

		after, err := p.Rest(context.Background(), storage.Job{})
		require.NoError(t, err)
		require.Nil(t, after, "it is done")
		require.Equal(t, storage.Census{Listed: handles + 12, ActiveMonth: handles + 11, ActiveHalfyear: handles + 11}, census(), "who was seen stays true")
		require.Equal(t, protocol.LivenessUnknown, profile(t, db, "asha").Alive)
		require.Equal(t, seen, profile(t, db, "asha").LastSeenAt, "when it answered stays true")
		require.Equal(t, protocol.LivenessUnknown, profile(t, db, "ravi").Alive)

		run(t, p, time.Now().Add(30*time.Hour)) // switched on again
		require.Equal(t, handles+11, census().Answering)
		p.Stop()
	})
}
