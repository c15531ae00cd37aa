// Package directory keeps the key directories of foreign agents: JWK Sets that
// a Signature-Agent field leads to (Web Bot Auth,
// draft-meunier-webbotauth-httpsig-protocol-02 and the drafts around it).
//
// A lookup answers out of memory. What is not there is fetched in the
// background; a request waits for that at most a second, and is otherwise told to
// come again. A key belongs to the URL it was fetched from: the same key under
// another URL is another answer, so no directory speaks for a second agent.
//
// Everything here is paced by strangers, so everything is bounded: fetches at
// once, fetches waiting, bytes, keys, time, and the number of URLs remembered.
package directory

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"stoa/identity/httpsig"
)

// How long things hold.
const (
	MinLifetime = time.Minute    // of a fetched set, whatever Cache-Control says
	MaxLifetime = time.Hour      // likewise; there is no revocation, so this bounds the life of a removed key
	MaxStale    = 24 * time.Hour // how long a set outlives refreshes that fail

	defaultLifetime = 5 * time.Minute  // without Cache-Control
	fetchTimeout    = 3 * time.Second  // for one directory, a card's second document included
	awaitTimeout    = time.Second      // how long a request waits for a fetch that is under way
	fetchSoon       = 2 * time.Second  // when to send the request again, while a fetch is under way
	busyWait        = 5 * time.Second  // likewise, while no fetch can be queued
	refetchEvery    = time.Minute      // for a keyid that the set lacks
	minRetry        = 30 * time.Second // after a failure, doubling up to
	maxRetry        = 5 * time.Minute
	staleGrace      = 30 * time.Second // for a retry that is due and has not ended
	sweepEvery      = 10 * time.Second
	storeTimeout    = 5 * time.Second
)

// How much there may be of things.
const (
	MaxBody = 64 << 10 // bytes of one document
	MaxKeys = 16       // keys used of one directory; later ones are ignored
	MaxURLs = 10_000   // directories remembered; the least recently used goes first

	maxBytes    = 32 << 20 // of all sets together, as JSON
	maxFetches  = 64       // at once
	maxPerHost  = 4        // at once to one host
	maxWaiting  = 1024     // fetches queued
	maxHostWait = 64       // fetches queued for one host
	maxAwaiting = 256      // requests that wait for a fetch
	maxAwaitNet = 8        // likewise, of one client network
)

// Config of a Cache. Client is required.
type Config struct {
	// Client refuses addresses that are not public (see node/outbound). The cache
	// uses a copy that follows no redirect and keeps no cookie.
	Client *http.Client
	// Classify names the reason of an error of Client, such as
	// httpsig.CodeDirectoryAddressRefused, or returns "". nil: all are
	// directory-unreachable.
	Classify func(error) httpsig.Code
	// Store keeps sets over a restart, so that a restarted node does not ask
	// everybody at once. nil: memory only.
	Store Store
	Log   *slog.Logger // nil: none
	// AllowLoopback also accepts http and IP literals in URLs of this machine:
	// development only.
	AllowLoopback bool
}

// Store keeps fetched sets. Losing it costs fetches and nothing else; its
// errors are logged. Methods are called by several goroutines at once, never
// while a request waits.
type Store interface {
	// Load returns what was saved and not removed, in any order.
	Load(ctx context.Context) ([]Record, error)
	// Save inserts or replaces the record of its name.
	Save(ctx context.Context, r Record) error
	// Remove deletes the records of these names; unknown names are no error.
	Remove(ctx context.Context, names []string) error
}

// A Record is one directory as it is kept.
type Record struct {
	Name      string // unique: the URL, with "cimd:" before the URL of a client metadata document; at most 600 bytes
	Set       []byte // JWK Set of the keys that were accepted, at most MaxBody bytes
	FetchedAt time.Time
	Expires   time.Time
}

// A Cache answers for foreign key directories. It is safe for concurrent use.
// Nothing is fetched unless Run runs.
type Cache struct {
	cfg     Config
	client  *http.Client
	log     *slog.Logger
	running atomic.Bool
	wake    chan struct{} // capacity 1: something was queued or a fetch ended
	maxURLs int
	ready   atomic.Bool // the store has been read

	mu      sync.Mutex // guards what follows, entries included; held for no I/O
	entries map[string]*entry
	full    list.List // of *entry with a set, last used first
	bare    list.List // of *entry without: never fetched, or failed
	bytes   int       // of the sets in full
	queue   []*entry  // to be fetched, first come first
	fetches int       // under way
	hosts   map[string]*hostLoad
	waiters map[string]int      // requests that wait for a fetch, by client network
	waiting int                 // their sum
	dropped map[string]struct{} // names to remove from the store
}

type hostLoad struct{ waiting, fetching int }

// New makes a cache. Call Run to make it fetch.
func New(cfg Config) (*Cache, error) {
	if cfg.Client == nil {
		return nil, fmt.Errorf("directory: no client")
	}
	own := *cfg.Client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Jar = nil
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Cache{
		cfg: cfg, client: &own, log: cfg.Log, wake: make(chan struct{}, 1), maxURLs: MaxURLs,
		entries: map[string]*entry{}, hosts: map[string]*hostLoad{}, waiters: map[string]int{}, dropped: map[string]struct{}{},
	}
	c.ready.Store(cfg.Store == nil)
	return c, nil
}

// Lookup returns the key with this thumbprint in the directory that ref names.
// It does no I/O. The error is always a *protocol.Error with the code
// key-unknown; its cause is a *Failure that names the reason by the codes of
// httpsig (errors.Is(err, httpsig.CodeDirectoryStatus)), and RetryAfter, where
// it is set, says when another try may find more.
func (c *Cache) Lookup(ref httpsig.AgentRef, thumbprint string, now time.Time) (httpsig.Key, error) {
	k, _, err := c.lookup(ref, thumbprint, now)
	return k, err
}

// Await is Lookup for a request: where a fetch is under way, it waits up to a
// second for its end, so that a client that sends one request only is known
// too. network is the client's; few requests of one network wait at once, and
// the others are answered as Lookup does.
func (c *Cache) Await(ctx context.Context, network string, ref httpsig.AgentRef, thumbprint string, now time.Time) (httpsig.Key, error) {
	k, ended, err := c.lookup(ref, thumbprint, now)
	if ended == nil || !c.await(network) {
		return k, err
	}
	defer c.awaited(network)
	began := time.Now()
	timer := time.NewTimer(awaitTimeout)
	defer timer.Stop()
	select {
	case <-ended:
		return c.Lookup(ref, thumbprint, now.Add(time.Since(began)))
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil, err
}

// await takes one of the places for requests that wait.
func (c *Cache) await(network string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running.Load() || c.waiting >= maxAwaiting || c.waiters[network] >= maxAwaitNet {
		return false
	}
	c.waiting++
	c.waiters[network]++
	return true
}

func (c *Cache) awaited(network string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
	if c.waiters[network]--; c.waiters[network] == 0 {
		delete(c.waiters, network)
	}
}

// lookup also returns the channel that is closed when the fetch that is under way
// ends, nil where there is none.
func (c *Cache) lookup(ref httpsig.AgentRef, thumbprint string, now time.Time) (httpsig.Key, <-chan struct{}, error) {
	if !isThumbprint(thumbprint) { // no set can hold it: nothing to fetch for
		return nil, nil, (&Failure{Code: httpsig.CodeKeyUnknown, Detail: "keyid is not an RFC 7638 SHA-256 thumbprint in base64url"}).answer(0)
	}
	src, f := sourceOf(ref, c.cfg.AllowLoopback)
	if f != nil {
		return nil, nil, f.answer(0)
	}
	if !c.ready.Load() {
		return nil, nil, src.underWay()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[src.name]
	if e == nil {
		if !c.admits(src.host) {
			return nil, nil, src.crowded()
		}
		e = c.insert(src)
	}
	c.touch(e)
	why := e.failure
	if e.usable(now) {
		k, f := e.find(thumbprint, now)
		if f == nil {
			e.used = true
			return k, nil, nil
		}
		why = f
	}
	if e.busy {
		return nil, e.ended, src.underWay()
	}
	if wait := e.nextTry(now).Sub(now); wait > 0 {
		return nil, nil, why.answer(wait)
	}
	if !c.enqueue(e) {
		return nil, nil, src.crowded()
	}
	return nil, e.ended, src.underWay()
}

// isThumbprint reports whether s looks like a SHA-256 in base64url.
func isThumbprint(s string) bool {
	if len(s) != 43 {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}
