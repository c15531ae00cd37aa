package directory

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/protocol/must"
)

// memory is a Store without a disk.
type memory struct {
	mu      sync.Mutex
	records map[string]Record
	broken  error
	slow    time.Duration
}

func (m *memory) Load(context.Context) ([]Record, error) {
	time.Sleep(m.slow)
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Record
	for _, r := range m.records {
		all = append(all, r)
	}
	return all, m.broken
}

func (m *memory) Save(_ context.Context, name string, set []byte, lifetime time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records == nil {
		m.records = map[string]Record{}
	}
	m.records[name] = Record{Name: name, Set: set, FetchedAt: time.Now(), Expires: time.Now().Add(lifetime)}
	return m.broken
}

func (m *memory) Remove(_ context.Context, names []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range names {
		delete(m.records, n)
	}
	return m.broken
}

func (m *memory) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for n := range m.records {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

func TestRun_RestartAsksNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p, refused := newWeb(t), newPair(t), newPair(t)
		h := http.Header{}
		related := &httpsig.Message{Method: "GET", RawPath: "/jwks", Target: httpsig.NewTarget("https", "a.example")}
		body := setOf(t, p, refused)
		require.NoError(t, httpsig.SignResponse(h, 200, related, []byte(body), httpsig.SignOptions{
			Key: newPair(t).Signer(), KeyID: refused.Thumbprint(), Created: time.Now(),
		}))
		w.put("https://a.example/jwks", answer(jsonMedia, body, "Cache-Control", "max-age=3600", "Content-Digest", h.Get("Content-Digest"),
			"Signature-Input", h.Get("Signature-Input"), "Signature", h.Get("Signature")))
		w.put("https://a.example/me", answer(jsonMedia, `{"client_id":"https://a.example/me","jwks":`+setOf(t, p)+`}`, "Cache-Control", "max-age=600"))
		w.put(wellKnownOf("old.example"), answer(directoryMedia, setOf(t, p), "Cache-Control", "max-age=600"))
		store := &memory{}

		c := must.Get(New(Config{Client: w.client(t), Store: store}))(t)
		stop := runFor(t, c)
		synctest.Wait()
		fetched(t, c, jwks("https://a.example/jwks"), p)
		fetched(t, c, cimd("https://a.example/me"), p)
		fetched(t, c, origin("old.example"), p)
		stop()
		require.Equal(t, []string{"cimd:https://a.example/me", "https://a.example/jwks", wellKnownOf("old.example")}, store.names())

		time.Sleep(30 * time.Minute)
		store.slow = 3 * time.Second
		c = must.Get(New(Config{Client: w.client(t), Store: store}))(t)
		runFor(t, c)
		synctest.Wait()
		unknown(t, c, jwks("https://a.example/jwks"), p, httpsig.CodeKeyUnknown, fetchSoon) // not read yet
		time.Sleep(store.slow)
		synctest.Wait()
		known(t, c, jwks("https://a.example/jwks"), p)
		require.Equal(t, 1, w.count("https://a.example/jwks"))

		// Its lifetime is over: it is fetched before it is believed, and if that
		// fails it still counts.
		w.put("https://a.example/me", status(503))
		unknown(t, c, cimd("https://a.example/me"), p, httpsig.CodeKeyUnknown, fetchSoon)
		synctest.Wait()
		known(t, c, cimd("https://a.example/me"), p)

		// A key that was refused does not come back through the store.
		require.Error(t, must.Err(c.Lookup(jwks("https://a.example/jwks"), refused.Thumbprint(), time.Now())))
		synctest.Wait()
		require.ErrorIs(t, must.Err(c.Lookup(jwks("https://a.example/jwks"), refused.Thumbprint(), time.Now())), httpsig.CodeSignatureInvalid)

		// Left alone for a day, it leaves the store as well.
		time.Sleep(MaxStale)
		synctest.Wait()
		require.Empty(t, store.names())
	})
}

func TestRun_UselessRecordsAreRemoved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		now := time.Now()
		set := []byte(setOf(t, p))
		store := &memory{records: map[string]Record{}}
		for name, r := range map[string]Record{
			"https://good.example/":     {Set: set, FetchedAt: now, Expires: now.Add(time.Hour)},
			"https://long.example/":     {Set: set, FetchedAt: now, Expires: now.Add(1000 * time.Hour)},
			"https://old.example/":      {Set: set, FetchedAt: now.Add(-MaxStale), Expires: now.Add(time.Hour)},
			"https://future.example/":   {Set: set, FetchedAt: now.Add(time.Hour), Expires: now.Add(2 * time.Hour)},
			"https://broken.example/":   {Set: []byte("{"), FetchedAt: now, Expires: now.Add(time.Hour)},
			"http://plain.example/":     {Set: set, FetchedAt: now, Expires: now.Add(time.Hour)},
			"HTTPS://Spelling.Example/": {Set: set, FetchedAt: now, Expires: now.Add(time.Hour)},
			"https://192.0.2.1/":        {Set: set, FetchedAt: now, Expires: now.Add(time.Hour)},
			"https://x.example/\x00":    {Set: set, FetchedAt: now, Expires: now.Add(time.Hour)},
		} {
			r.Name = name
			store.records[name] = r
		}
		c := run(t, Config{Client: w.client(t), Store: store})
		known(t, c, jwks("https://good.example/"), p)
		known(t, c, jwks("https://long.example/"), p)
		require.Equal(t, MaxLifetime, c.entries["https://long.example/"].expires.Sub(now))
		pass(sweepEvery)
		require.Equal(t, []string{"https://good.example/", "https://long.example/"}, store.names())
	})
}

func TestRun_BrokenStoreCostsOnlyFetches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		w.put(wellKnownOf("a.example"), answer(directoryMedia, setOf(t, p)))
		c := run(t, Config{Client: w.client(t), Store: &memory{broken: errors.New("disk full")}})
		fetched(t, c, origin("a.example"), p)
		pass(MaxStale + time.Hour) // remove fails too
		fetched(t, c, origin("a.example"), p)
	})
}

func TestRun_EndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		url := wellKnownOf("a.example")
		slow := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		w.put(url, slow)
		c := must.Get(New(Config{Client: w.client(t)}))(t)
		stop := runFor(t, c)
		synctest.Wait()
		for i := range 10 { // more than are fetched at once
			w.put(fmt.Sprintf("https://a.example/%d", i), slow)
			unknown(t, c, jwks(fmt.Sprintf("https://a.example/%d", i)), p, httpsig.CodeKeyUnknown, fetchSoon)
		}
		unknown(t, c, origin("a.example"), p, httpsig.CodeKeyUnknown, fetchSoon)
		synctest.Wait()
		require.ErrorContains(t, c.Run(t.Context()), "is running")
		begin := time.Now()
		stop()
		require.Equal(t, begin, time.Now(), "at once")

		// What was broken off is no failure of the directory, and what was queued
		// waits for the next Run.
		w.put(url, answer(directoryMedia, setOf(t, p)))
		for _, e := range c.entries {
			require.Zero(t, e.failures)
		}
		runFor(t, c)
		time.Sleep(2 * fetchTimeout)
		synctest.Wait()
		known(t, c, origin("a.example"), p)
	})
}

func TestNew_NeedsAClient(t *testing.T) {
	t.Parallel()
	require.Error(t, must.Err(New(Config{})))
}
