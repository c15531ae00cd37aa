// Package directory caches the key directories of foreign agents: JWK Sets that a Signature-Agent
// field refers to (Web Bot Auth, draft-meunier-webbotauth-httpsig-protocol-02 and related drafts).
//
// A lookup is answered from memory. A missing set is fetched in the background; a request waits
// for that at most a second, and is otherwise told to retry. A key belongs to the URL that it was
// fetched from: the same key at another URL is a different entry, so no directory can speak for
// another agent.
//
// Strangers control everything here, so everything is bounded: concurrent fetches, queued fetches,
// bytes, keys, time, and the number of URLs remembered.
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

// Lifetimes.
const (
	MinLifetime = time.Minute    // of a fetched set, whatever Cache-Control says
	MaxLifetime = time.Hour      // likewise; there is no revocation, so this bounds the life of a removed key
	MaxStale    = 24 * time.Hour // how long a set is used after it expired, while refreshes fail

	defaultLifetime = 5 * time.Minute  // without Cache-Control
	fetchTimeout    = 3 * time.Second  // for one directory, a card's second document included
	awaitTimeout    = time.Second      // how long a request waits for a fetch that is under way
	fetchSoon       = 2 * time.Second  // when to retry the request while a fetch is under way
	busyWait        = 5 * time.Second  // likewise, while no fetch can be queued
	refetchEvery    = time.Minute      // for a keyid that is not in the set
	minRetry        = 30 * time.Second // after a failure, doubling up to
	maxRetry        = 5 * time.Minute
	staleGrace      = 30 * time.Second // for a retry that is due and has not finished
	sweepEvery      = 10 * time.Second
	storeTimeout    = 5 * time.Second
)

// Bounds.
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
	// Client refuses addresses that are not public (see node/out/outbound). The cache
	// uses a copy that follows no redirect and keeps no cookie.
	Client *http.Client
	// Classify names the reason of an error of Client, such as
	// httpsig.CodeDirectoryAddressRefused, or returns "". nil: all are
	// directory-unreachable.
	Classify func(error) httpsig.Code
	// Store keeps sets across a restart, so that a restarted node does not have to fetch all of
	// them at once. nil: memory only.
	Store Store
	Log   *slog.Logger // nil: none
	// AllowLoopback also accepts http and IP literals in URLs of this machine:
	// development only.
	AllowLoopback bool
}

// Store stores fetched sets. Losing it only costs fetches; its errors are logged. Its methods are
// called concurrently, never while a request waits.
type Store interface {
	// Load returns what was saved and not removed, in any order.
	Load(ctx context.Context) ([]Record, error)
	// Save inserts or replaces the record of a name: a set that was fetched just now, by the
	// clock of the store, and expires after lifetime.
	Save(ctx context.Context, name string, set []byte, lifetime time.Duration) error
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

// A Cache answers lookups in foreign key directories. It is safe for concurrent use. Nothing is
// fetched unless Run is running.
type Cache struct {
	cfg     Config
	client  *http.Client
	log     *slog.Logger
	running atomic.Bool
	wake    chan struct{} // capacity 1: something was queued or a fetch ended
	maxURLs int
	ready   atomic.Bool // the store has been read

	mu      sync.Mutex // guards the fields below, including entries; not held during I/O
	entries map[string]*entry
	full    list.List // of *entry with a set, most recently used first
	bare    list.List // of *entry without a set: never fetched, or failed
	bytes   int       // of the sets in full
	queue   []*entry  // to be fetched, in order
	fetches int       // under way
	hosts   map[string]*hostLoad
	waiters map[string]int      // requests that wait for a fetch, by client network
	waiting int                 // their sum
	dropped map[string]struct{} // names to remove from the store
}

type hostLoad struct{ waiting, fetching int }

// New returns a cache. It fetches only while Run is running.
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
	k, _, _, err := c.lookup(ref, thumbprint, now)
	return k, err
}

// Await is Lookup for a request: when a fetch is under way, it waits up to a second for its end,
// so that a client that sends only one request is recognised too. network is the client's; few
// requests of one network may wait at once, and the others are answered like Lookup. name is the
// client_name of a card, "" for none.
func (c *Cache) Await(ctx context.Context, network string, ref httpsig.AgentRef, thumbprint string, now time.Time) (k httpsig.Key, name string, err error) {
	k, name, ended, err := c.lookup(ref, thumbprint, now)
	if ended == nil || !c.await(network) {
		return k, name, err
	}
	defer c.awaited(network)
	began := time.Now()
	timer := time.NewTimer(awaitTimeout)
	defer timer.Stop()
	select {
	case <-ended:
		k, name, _, err = c.lookup(ref, thumbprint, now.Add(time.Since(began)))
		return k, name, err
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil, "", err
}

// await takes one of the places for waiting requests.
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

// lookup also returns the channel that is closed when the fetch under way ends, nil if there is
// none.
func (c *Cache) lookup(ref httpsig.AgentRef, thumbprint string, now time.Time) (k httpsig.Key, name string, ended <-chan struct{}, err error) {
	if ref.Form != httpsig.AgentMetadata && !isThumbprint(thumbprint) { // no set can contain it, so a fetch is useless
		return nil, "", nil, (&Failure{Code: httpsig.CodeKeyUnknown, Detail: "keyid is not an RFC 7638 SHA-256 thumbprint in base64url"}).answer(0)
	}
	src, f := sourceOf(ref, c.cfg.AllowLoopback)
	if f != nil {
		return nil, "", nil, f.answer(0)
	}
	if !c.ready.Load() {
		return nil, "", nil, src.underWay()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[src.name]
	if e == nil {
		if !c.admits(src.host) {
			return nil, "", nil, src.crowded()
		}
		e = c.insert(src)
	}
	c.touch(e)
	why := e.failure
	if e.usable(now) {
		k, f := e.find(thumbprint, now)
		if f == nil {
			e.used = true
			return k, e.name, nil, nil
		}
		why = f
	}
	if e.busy {
		return nil, "", e.ended, src.underWay()
	}
	if wait := e.nextTry(now).Sub(now); wait > 0 {
		return nil, "", nil, why.answer(wait)
	}
	if !c.enqueue(e) {
		return nil, "", nil, src.crowded()
	}
	return nil, "", e.ended, src.underWay()
}

// isThumbprint reports whether s has the form of a SHA-256 in base64url.
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
