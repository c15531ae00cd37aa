package federation

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/protocol/rate"
	"stoa/storage"
)

// known reports what is kept of an actor and of its main key.
func (w *world) known(id string) (a *storage.RemoteActor, k *storage.RemoteKey) {
	w.t.Helper()
	w.read(func(ctx context.Context, tx *storage.Tx) (err error) {
		if a, err = tx.Peers().ActorByID(ctx, id); absent(err) != nil {
			return err
		}
		k, err = tx.Peers().KeyByID(ctx, id+"#main-key")
		return absent(err)
	})
	return a, k
}

// view is an activity that has no effect.
func view(actor string, n int) []byte {
	return fmt.Appendf(nil, `{"id":"%s/v/%d","type":"View","actor":%q,"object":"x"}`, actor, n, actor)
}

// claimed is a request whose signature is not that of the key it names.
func (w *world) claimed(actor string, n int) *http.Request {
	r := w.request(mallory, schemeCavage, view(actor, n))
	r.Header.Set("Signature", strings.Replace(r.Header.Get("Signature"), mallory+"#main-key", actor+"#main-key", 1))
	return r
}

// An actor that an unsigned stranger names is fetched once and kept nowhere; one
// that signed is kept without what nobody reads again.
func TestAttack_StrangersKeepNothing(t *testing.T) {
	w := newWorld(t)
	const padded = "https://evil.example/u/padded"
	a := &actorKeys{id: padded, keys: nodeKeys(103)}
	w.actors[padded] = a
	w.served[padded] = func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", activity.MediaType)
		_, _ = rw.Write([]byte(strings.Replace(string(a.document(t)), "{", `{"summary":"`+strings.Repeat("x", 100<<10)+`",`, 1)))
	}
	for i := range 20 {
		require.Equal(t, 401, w.do(w.claimed(padded, i)))
	}
	require.Equal(t, 1, w.net.count("GET evil.example/u/padded"))
	kept, key := w.known(padded)
	require.Nil(t, kept, "401, and nothing is stored")
	require.Nil(t, key)

	require.Equal(t, 202, w.deliver(padded, view(padded, 20)))
	require.Equal(t, 1, w.net.count("GET evil.example/u/padded"), "the key that was fetched is used")
	kept, key = w.known(padded)
	require.NotNil(t, key)
	require.Less(t, len(kept.Doc), 1<<10)
	require.Equal(t, padded+"/inbox", kept.Inbox)
	require.Equal(t, "padded", kept.Handle)
	again := must.Get(w.f.actorOf(t.Context(), padded, actorAge))(t)
	require.Equal(t, padded+"/inbox", again.Inbox.One())
	require.Equal(t, 1, w.net.count("GET evil.example/u/padded"), "what is kept is enough")

	for name, doc := range map[string]string{
		"huge": `"summary":"` + strings.Repeat("x", maxStranger) + `",`,
		"long": `"stoa:log":"https://evil.example/` + strings.Repeat("l", activity.MaxID) + `",`,
	} {
		id := "https://evil.example/u/" + name
		w.actors[id] = &actorKeys{id: id, keys: nodeKeys(103)}
		w.served[id] = func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", activity.MediaType)
			_, _ = rw.Write([]byte(strings.Replace(string(w.actors[id].document(t)), "{", "{"+doc, 1)))
		}
		require.Equal(t, 401, w.deliver(id, view(id, 0)), name)
		kept, key := w.known(id)
		require.Nil(t, kept, name)
		require.Nil(t, key, name)
	}
}

// A key that fails is fetched again and put in the place of the known one only when
// it verifies something.
func TestAttack_RotationNeedsASignature(t *testing.T) {
	w := newWorld(t)
	_, before := w.known(alice)
	w.tick.pass(keyRetryAge + time.Minute)
	require.Equal(t, 401, w.do(w.claimed(alice, 1)))
	require.Equal(t, 401, w.do(w.claimed(alice, 2)))
	require.Equal(t, 2, w.net.count("GET victim.example/u/alice"), "once when it was new, once more for both")
	_, after := w.known(alice)
	require.Equal(t, before, after)

	w.tick.pass(keyRetryAge + time.Minute)
	w.actors[alice].keys = nodeKeys(104)
	require.Equal(t, 202, w.deliver(alice, view(alice, 3)))
	_, after = w.known(alice)
	require.NotEqual(t, before.Key, after.Key)
}

// Rows that throw-away actors cause have a cap, and those of peers go last.
func TestAttack_CapsOfStocks(t *testing.T) {
	w := newWorld(t)
	w.f.growth.caps = map[storage.Stock]storage.Cap{}
	for of := range storage.Caps {
		w.f.growth.caps[of] = storage.Cap{Rows: 20, Bytes: 1 << 20}
	}
	id := func(i int) string { return fmt.Sprintf("https://t%d.example/u/x", i) }
	for i := range 60 {
		host := hostOf(id(i))
		w.actors[id(i)] = &actorKeys{id: id(i), keys: nodeKeys(100)}
		w.net.hosts[host] = http.HandlerFunc(w.remote)
		body := fmt.Appendf(nil, `{"id":"%s/d","type":"Delete","actor":%q,"object":"https://%s/n/1"}`, id(i), id(i), host)
		require.Equal(t, 202, w.do(w.request(id(i), schemeRSA, body)))
		w.tick.pass(time.Second)
	}
	settle(t, w.node)
	var actors, keys, stones, schemes int
	w.read(func(ctx context.Context, tx *storage.Tx) error {
		for i := range 60 {
			if _, err := tx.Peers().ActorByID(ctx, id(i)); err == nil {
				actors++
			}
			if _, err := tx.Peers().KeyByID(ctx, id(i)+"#main-key"); err == nil {
				keys++
			}
			if gone, err := tx.Inbox().Tombstoned(ctx, "https://"+hostOf(id(i))+"/n/1"); err == nil && gone {
				stones++
			}
			if s, err := tx.Peers().Scheme(ctx, hostOf(id(i))); err == nil && s != "" {
				schemes++
			}
		}
		return nil
	})
	for name, n := range map[string]int{"actors": actors, "keys": keys, "tombstones": stones, "schemes": schemes} {
		require.LessOrEqual(t, n, 21, name)
		require.Greater(t, n, 10, name)
	}
	kept, key := w.known(alice)
	require.NotNil(t, kept, "a follower's, though it is the oldest")
	require.NotNil(t, key)
}

// An activity that is processed leaves its key and no body.
func TestKeptIsEmptied(t *testing.T) {
	w := newWorld(t)
	for i, body := range [][]byte{
		view(alice, 1), w.note(60, ""), []byte(`{"id":"https://victim.example/f/2","type":"Flag","actor":"` + alice + `","object":[]}`),
	} {
		require.Equal(t, 202, w.deliver(alice, body), i)
	}
	waiting := func() int64 {
		return reads(w, func(ctx context.Context, tx *storage.Tx) (int64, error) {
			return tx.Inbox().WaitingBytes(ctx, maxBacklog)
		})
	}
	require.Positive(t, waiting())
	settle(t, w.node)
	require.Zero(t, waiting())
	require.Equal(t, 202, w.deliver(alice, w.note(60, "")), "a repeat is known")
	require.Zero(t, waiting())
}

// crowd sends n requests that name slow hosts and holds them until the test ends.
func (w *world) crowd(n int, host, network func(i int) string) (refused *atomic.Int32) {
	ctx, cancel := context.WithCancel(w.t.Context())
	slow := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ctx.Done():
		}
	})
	var sent sync.WaitGroup
	refused = new(atomic.Int32)
	requests := make([]*http.Request, n)
	for i := range n {
		w.net.mu.Lock()
		w.net.hosts[host(i)] = slow
		w.net.mu.Unlock()
		requests[i] = w.claimed("https://"+host(i)+"/u/x", i)
		requests[i].Header.Set("X-Network", network(i))
	}
	var begun sync.WaitGroup
	for _, r := range requests {
		begun.Add(1)
		sent.Go(func() {
			begun.Done()
			if res, err := w.net.RoundTrip(r); err == nil && res.StatusCode == http.StatusServiceUnavailable {
				require.NotEmpty(w.t, res.Header.Get("Retry-After"))
				refused.Add(1)
			}
		})
	}
	begun.Wait()
	w.t.Cleanup(func() { cancel(); sent.Wait() })
	return refused
}

// 400 fetches of slow hosts under way hold up neither deliveries nor new peers.
func TestAttack_SlowHosts(t *testing.T) {
	t.Parallel()
	one := func(int) string { return "one" }
	for name, c := range map[string]struct {
		host, network func(i int) string
		held          int
	}{
		"sub-domains, many networks": {func(i int) string { return fmt.Sprintf("s%d.slow.example", i) }, func(i int) string { return fmt.Sprint(i) },
			strangersOfDomain},
		"domains, one network": {func(i int) string { return fmt.Sprintf("slow%d.example", i) }, one, strangersOfNetwork},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.f.c.Network = func(r *http.Request) string { return r.Header.Get("X-Network") }
			w.f.lookUps = newBuckets(rate.PerSecond(1e6, 1e6))
			w.patient()
			honest := w.newcomer()
			refused := w.crowd(400, c.host, c.network)
			require.Eventually(t, func() bool { return int(refused.Load()) == 400-c.held }, time.Minute, time.Millisecond, "they fail fast")

			begun := time.Now()
			require.Equal(t, 202, w.deliver(honest, view(honest, 1)), "an honest new actor")
			before := w.net.count("POST victim.example")
			w.post = w.node.post(func(p *protocol.StoredPost) { p.Author.Method = protocol.BySession })
			settle(t, w.node)
			require.Greater(t, w.net.count("POST victim.example"), before, "a post reaches the follower")
			require.Less(t, time.Since(begun), w.f.fetchFor, "no slow fetch was waited for")
		})
	}
}

// patient lets fetches take so long that none ends in the test.
func (w *world) patient() {
	w.f.fetchFor = 10 * time.Minute
	w.undisputed(time.Hour)
}

// undisputed sets how long a fetch has its place for sure.
func (w *world) undisputed(d time.Duration) {
	w.f.strangers.mu.Lock()
	defer w.f.strangers.mu.Unlock()
	w.f.strangers.undisputed = d
}

// newcomer is an actor of a host that nobody has heard of.
func (w *world) newcomer() string {
	const id = "https://honest.example/u/new"
	w.actors[id] = &actorKeys{id: id, keys: nodeKeys(101)}
	w.net.hosts["honest.example"] = http.HandlerFunc(w.remote)
	return id
}

// A crowd of many networks and many domains fills every place; a fetch that has run
// for a while gives way.
func TestAttack_SlowHostsGiveWay(t *testing.T) {
	w := newWorld(t)
	w.f.c.Network = func(r *http.Request) string { return r.Header.Get("X-Network") }
	w.patient()
	honest := w.newcomer()
	refused := w.crowd(400, func(i int) string { return fmt.Sprintf("slow%d.example", i) }, func(i int) string { return fmt.Sprint(i) })
	require.Eventually(t, func() bool { return int(refused.Load()) == 400-strangersInAll }, time.Minute, time.Millisecond)
	require.Equal(t, 503, w.deliver(honest, view(honest, 1)), "no place, and at once")
	w.undisputed(time.Nanosecond)
	require.Equal(t, 202, w.deliver(honest, view(honest, 1)))
	require.Eventually(t, func() bool { return int(refused.Load()) == 400-strangersInAll+1 }, time.Minute, time.Millisecond, "one gave way, with 503")
}

// What strangers name uses up nothing of those that they name.
func TestAttack_NamedHostIsNotHeldUp(t *testing.T) {
	w := newWorld(t)
	for i := range int(deliveryRate.Burst) + 20 {
		require.Equal(t, 401, w.do(w.claimed(alice, i)))
	}
	require.Equal(t, 202, w.deliver(alice, view(alice, 1)))
}

// A peer may deliver more than a stranger and does so on its own account, not on
// its client network's. A large delivery counts for more.
func TestDeliveryRates(t *testing.T) {
	w := newWorld(t)
	returned := 0
	w.f.c.Return = func(*http.Request) { returned++ }
	most := func(host string, bytes int) (n int) {
		for ; ; n++ {
			if _, err := w.f.withinRate(httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), host, bytes); err != nil {
				var r *refusal
				require.ErrorAs(t, err, &r)
				require.Equal(t, 429, r.status)
				return n
			}
		}
	}
	require.Equal(t, int(deliveryRate.Burst), most("evil.example", 100))
	require.Zero(t, returned)
	require.Equal(t, 429, w.deliver(mallory, view(mallory, 1)))
	require.Equal(t, 202, w.deliver(alice, view(alice, 1)))
	require.Equal(t, int(peerRate.Burst)-1, most("victim.example", 100), "alice follows the board")
	require.Equal(t, int(peerRate.Burst), returned)
	require.Equal(t, 429, w.deliver(alice, view(alice, 2)))
	require.Less(t, most("other.example", 200<<10), int(deliveryRate.Burst)/10)
}

// Where too much waits to be processed, strangers are told to come back before
// peers are.
func TestAttack_Backlog(t *testing.T) {
	w := newWorld(t)
	wait := func(bytes int64) { w.f.backlog.at, w.f.backlog.bytes = w.tick.now(), bytes }
	wait(maxBacklog / 2)
	require.Equal(t, 503, w.deliver(mallory, view(mallory, 1)))
	require.Equal(t, 202, w.deliver(alice, view(alice, 1)))
	wait(maxBacklog)
	require.Equal(t, 503, w.deliver(alice, view(alice, 2)))
	w.tick.pass(time.Second)
	require.Equal(t, 202, w.deliver(mallory, view(mallory, 1)), "measured again")
}

func TestBuckets_Full(t *testing.T) {
	t.Parallel()
	b, now := newBuckets(rate.PerSecond(1, 10)), time.Now()
	busy := "busy.example"
	for range 10 {
		require.True(t, b.take(busy, 1, now))
	}
	for i := range 3 * domains {
		require.True(t, b.take(fmt.Sprintf("d%d.example", i), 1, now), "a new domain is served however many there are")
	}
	require.LessOrEqual(t, b.rows.Len(), domains)
	require.False(t, b.take(busy, 1, now), "one that used up its rate is not forgotten for others")
}

// Throw-away actors that follow fill no table: a follow too many is rejected until
// followers are gone, and a host that takes no answers gets no more of them.
func TestAttack_Followers(t *testing.T) {
	w := newWorld(t) // alice follows
	w.f.maxFollowers = 3
	id := func(i int) string { return fmt.Sprintf("https://f%d.example/u/x", i) }
	follow := func(i, n int) {
		w.actors[id(i)] = &actorKeys{id: id(i), keys: nodeKeys(100)}
		w.net.mu.Lock()
		w.net.hosts[hostOf(id(i))] = http.HandlerFunc(w.remote)
		w.net.mu.Unlock()
		body := fmt.Appendf(nil, `{"id":"%s/f/%d","type":"Follow","actor":%q,"object":"https://u.example/ap/board"}`, id(i), n, id(i))
		require.Equal(t, 202, w.deliver(id(i), body))
	}
	followers := func() int {
		return reads(w, func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.Followers().Count(ctx, protocol.BoardID(w.base))
		})
	}
	for i := range 5 {
		follow(i, 0)
	}
	settle(t, w.node)
	require.Equal(t, 3, followers())
	require.NoError(t, w.db.FailOutlet(t.Context(), protocol.BoardID(w.base), id(0)+"/inbox", 0, "gone", storage.OutletDead))
	follow(4, 1)
	settle(t, w.node)
	require.Equal(t, 3, followers(), "in the place of one that was given up")

	w.net.set(hostOf(id(4)), true)
	for n := range maxAnswers + 20 {
		follow(4, 2+n)
		if n%50 == 0 {
			settle(t, w.node)
		}
	}
	settle(t, w.node)
	w.read(func(ctx context.Context, tx *storage.Tx) error {
		stats, err := tx.Jobs().Stats(ctx)
		for _, s := range stats {
			if s.Kind == "deliver" && s.State == storage.JobWaiting {
				require.LessOrEqual(t, s.Count, maxAnswers)
				require.Greater(t, s.Count, maxAnswers/2)
			}
		}
		return err
	})
}

// A clock that is set back by an hour refuses no domain for an hour.
func TestBuckets_ClockSetBack(t *testing.T) {
	t.Parallel()
	b, now := newBuckets(rate.PerSecond(1, 2)), time.Now()
	spend := func() (n int) {
		for b.take("peer.example", 1, now) {
			n++
		}
		return n
	}
	require.Equal(t, 2, spend())
	now = now.Add(-time.Hour)
	require.Equal(t, 2, spend())
	now = now.Add(time.Second)
	require.Equal(t, 1, spend())
}
