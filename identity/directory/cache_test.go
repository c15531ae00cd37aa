package directory

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/protocol/must"
)

// pass lets fake time pass and everything settle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestCache_FailureIsRememberedLongerEachTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		url := wellKnownOf("a.example")
		w.put(url, status(503))
		c := run(t, Config{Client: w.client(t)})
		for i, wait := range []int{30, 60, 120, 240, 300, 300} {
			unknown(t, c, origin("a.example"), p, httpsig.CodeKeyUnknown, fetchSoon)
			synctest.Wait()
			wait := time.Duration(wait) * time.Second
			for left := wait; left > 0; left -= 10 * time.Second {
				unknown(t, c, origin("a.example"), p, httpsig.CodeDirectoryStatus, left)
				pass(10 * time.Second)
			}
			require.Equal(t, i+1, w.count(url))
		}
		w.put(url, answer(directoryMedia, setOf(t, p)))
		fetched(t, c, origin("a.example"), p)
		require.Zero(t, c.entries[url].failures)
	})
}

func TestCache_Rotation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, old, next := newWeb(t), newPair(t), newPair(t)
		url := wellKnownOf("a.example")
		w.put(url, answer(directoryMedia, setOf(t, old), "Cache-Control", "max-age=3600"))
		c := run(t, Config{Client: w.client(t)})
		fetched(t, c, origin("a.example"), old)
		w.put(url, answer(directoryMedia, setOf(t, next), "Cache-Control", "max-age=3600"))

		// Within a minute nobody can make us ask again, however many keys they name.
		unknown(t, c, origin("a.example"), next, httpsig.CodeKeyUnknown, time.Minute)
		pass(59 * time.Second)
		unknown(t, c, origin("a.example"), newPair(t), httpsig.CodeKeyUnknown, time.Second)
		require.Equal(t, 1, w.count(url))
		known(t, c, origin("a.example"), old)

		pass(time.Second)
		fetched(t, c, origin("a.example"), next)
		require.Equal(t, 2, w.count(url))
		unknown(t, c, origin("a.example"), old, httpsig.CodeKeyUnknown, time.Minute) // withdrawn
	})
}

func TestCache_WithdrawnKeyStaysAwayWhenTheDirectoryFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		url := wellKnownOf("a.example")
		w.put(url, answer(directoryMedia, setOf(t, p), "Cache-Control", "max-age=60"))
		c := run(t, Config{Client: w.client(t)})
		fetched(t, c, origin("a.example"), p)
		w.put(url, answer(directoryMedia, `{"keys":[]}`))
		pass(time.Minute) // it was in use, so it has been refreshed
		require.Equal(t, 2, w.count(url))
		w.put(url, status(503))
		for range 20 {
			pass(time.Minute)
			require.Error(t, must.Err(c.Lookup(origin("a.example"), p.Thumbprint(), time.Now())))
		}
		require.Greater(t, w.count(url), 3)
	})
}

func TestCache_SetInUseIsRefreshedBeforeItExpires(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		url := wellKnownOf("a.example")
		w.put(url, answer(directoryMedia, setOf(t, p), "Cache-Control", "max-age=1"))
		c := run(t, Config{Client: w.client(t)})
		fetched(t, c, origin("a.example"), p)
		for range 120 {
			pass(30 * time.Second)
			known(t, c, origin("a.example"), p)
		}
		require.InDelta(t, 66, w.count(url), 7, "about one fetch a lifetime of 60 s")

		// Nobody asks: nothing is fetched, and the set is not believed later.
		before := w.count(url)
		pass(time.Hour)
		require.LessOrEqual(t, w.count(url), before+1)
		fetched(t, c, origin("a.example"), p)
	})
}

func TestCache_StaleSetCountsForADay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		url := wellKnownOf("a.example")
		w.put(url, answer(directoryMedia, setOf(t, p), "Cache-Control", "max-age=600"))
		c := run(t, Config{Client: w.client(t)})
		fetched(t, c, origin("a.example"), p)
		begin := time.Now()
		w.put(url, status(500))
		for time.Since(begin) < MaxStale-time.Minute {
			pass(time.Minute)
			known(t, c, origin("a.example"), p)
		}
		require.InDelta(t, (MaxStale-10*time.Minute)/maxRetry, w.count(url), 15, "it is asked every five minutes")
		pass(time.Until(begin.Add(MaxStale + sweepEvery)))
		require.Error(t, must.Err(c.Lookup(origin("a.example"), p.Thumbprint(), time.Now())))
		require.Equal(t, 0, c.full.Len())
		require.Zero(t, c.bytes)
	})
}

// TestCache_GoneEndsTheKeys: a directory that says that it is gone for good is believed, where one that fails keeps its keys for a day.
func TestCache_GoneEndsTheKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		url := wellKnownOf("a.example")
		w.put(url, answer(directoryMedia, setOf(t, p), "Cache-Control", "max-age=600"))
		c := run(t, Config{Client: w.client(t)})
		fetched(t, c, origin("a.example"), p)
		w.put(url, status(410))
		pass(5 * time.Minute)
		known(t, c, origin("a.example"), p)
		pass(5*time.Minute + sweepEvery)
		_, _ = c.Lookup(origin("a.example"), p.Thumbprint(), time.Now())
		pass(time.Minute)
		require.ErrorIs(t, must.Err(c.Lookup(origin("a.example"), p.Thumbprint(), time.Now())), httpsig.CodeKeyUnknown)
	})
}

func TestCache_FetchesAtOnceAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		var now, most atomic.Int64
		page := func(rw http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			answer(jsonMedia, setOf(t, p))(rw, r)
		}
		c := run(t, Config{Client: w.client(t)})
		var refs []httpsig.AgentRef
		add := func(url string) {
			w.put(url, page)
			refs = append(refs, jwks(url))
			unknown(t, c, refs[len(refs)-1], p, httpsig.CodeKeyUnknown, fetchSoon)
		}
		for i := range 60 {
			add(fmt.Sprintf("https://slow.example/%d", i))
		}
		synctest.Wait()
		require.EqualValues(t, maxPerHost, now.Load())
		w.put("https://quick.example/", answer(jsonMedia, setOf(t, p)))
		fetched(t, c, jwks("https://quick.example/"), p) // the slow host holds up nobody else
		for i := range 200 {
			add(fmt.Sprintf("https://h%d.example/", i))
		}
		pass(20 * time.Second)
		require.EqualValues(t, maxFetches, most.Load())
		for _, ref := range refs {
			known(t, c, ref, p)
		}
		require.Empty(t, c.hosts)
		require.Zero(t, c.fetches)
	})
}

func TestCache_ManyCardsThatNameOneVictim(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		var now, most atomic.Int64
		w.put("https://victim.example/jwks", func(rw http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			answer(jsonMedia, setOf(t, p))(rw, r)
		})
		c := run(t, Config{Client: w.client(t)})
		for i := range 50 {
			url := fmt.Sprintf("https://c%d.example/", i)
			w.put(url, answer(jsonMedia, `{"client_id":"`+url+`","jwks_uri":"https://victim.example/jwks"}`))
			unknown(t, c, cimd(url), p, httpsig.CodeKeyUnknown, fetchSoon)
		}
		pass(5 * time.Second)
		require.EqualValues(t, maxPerHost, most.Load())
		require.Equal(t, maxPerHost, w.count("https://victim.example/jwks"))
		require.Empty(t, c.hosts)
	})
}

func TestCache_QueueIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, err := New(Config{Client: http.DefaultClient}) // does not run
		require.NoError(t, err)
		p := newPair(t)
		for i := range maxHostWait {
			unknown(t, c, jwks(fmt.Sprintf("https://one.example/%d", i)), p, httpsig.CodeKeyUnknown, fetchSoon)
		}
		require.Contains(t, unknown(t, c, jwks("https://one.example/more"), p, httpsig.CodeKeyUnknown, busyWait).Detail, "too many")
		for i := range maxWaiting - maxHostWait {
			unknown(t, c, origin(fmt.Sprintf("h%d.example", i)), p, httpsig.CodeKeyUnknown, fetchSoon)
		}
		unknown(t, c, origin("more.example"), p, httpsig.CodeKeyUnknown, busyWait)
		require.Len(t, c.entries, maxWaiting, "what cannot be queued is not remembered")
	})
}

func TestCache_FloodPushesItselfOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		c := must.Get(New(Config{Client: w.client(t)}))(t)
		c.maxURLs = 10
		runFor(t, c)
		for i := range 5 {
			host := fmt.Sprintf("good%d.example", i)
			w.put(wellKnownOf(host), answer(directoryMedia, setOf(t, p)))
			fetched(t, c, origin(host), p)
		}
		for i := range 100 {
			unknown(t, c, origin(fmt.Sprintf("flood%d.example", i)), p, httpsig.CodeKeyUnknown, fetchSoon)
			synctest.Wait()
			require.LessOrEqual(t, len(c.entries), 10)
		}
		for i := range 5 {
			known(t, c, origin(fmt.Sprintf("good%d.example", i)), p)
		}
		// Among good ones the least recently used goes.
		for i := range 10 {
			host := fmt.Sprintf("new%d.example", i)
			w.put(wellKnownOf(host), answer(directoryMedia, setOf(t, p)))
			fetched(t, c, origin(host), p)
			known(t, c, origin("good3.example"), p)
		}
		require.Equal(t, 10, c.full.Len()+c.bare.Len())
		require.Nil(t, c.entries[wellKnownOf("good0.example")])
		require.NotNil(t, c.entries[wellKnownOf("good3.example")])
		total := 0
		for _, e := range c.entries {
			total += e.size
		}
		require.Equal(t, total, c.bytes)
	})
}

func TestCache_BytesAreBounded(t *testing.T) {
	t.Parallel()
	c := must.Get(New(Config{Client: http.DefaultClient}))(t)
	big := make([]byte, MaxBody)
	for i := range maxBytes/MaxBody + 10 {
		src, f := sourceOf(origin(fmt.Sprintf("h%d.example", i)), false)
		require.Nil(t, f)
		c.adopt(c.insert(src), &found{keys: map[string]listed{}, set: big, at: time.Now(), lifetime: time.Hour})
		require.LessOrEqual(t, c.bytes, maxBytes)
	}
	require.Equal(t, maxBytes/MaxBody, c.full.Len())
	require.Len(t, c.dropped, 10)
}
