package httpapi

import (
	"net/http"
	"sync"
	"time"
)

const (
	cacheEntries = 4096
	cacheBytes   = 32 << 20
	cacheBody    = 256 << 10       // an answer longer than this is not kept
	cacheTTL     = 1 * time.Second // how long another process's write may go unseen
)

// cache keeps rendered answers to open reads, by request target. An entry
// holds while nothing was committed in this process; another process's commit
// shows after cacheTTL at the latest.
type cache struct {
	version func() uint64

	mu      sync.RWMutex // guards the two below
	entries map[string]cached
	size    int
}

type cached struct {
	*answer
	version uint64
	until   time.Time
}

func newCache(version func() uint64) *cache {
	return &cache{version: version, entries: map[string]cached{}}
}

func (c *cache) get(r *http.Request) *answer {
	c.mu.RLock()
	e, ok := c.entries[r.RequestURI]
	c.mu.RUnlock()
	if !ok || e.version != c.version() || time.Now().After(e.until) {
		return nil
	}
	return e.answer
}

// put keeps an answer that was made while version held.
func (c *cache) put(r *http.Request, version uint64, a *answer) {
	if len(a.body) > cacheBody || len(r.RequestURI) > 1024 || r.RequestURI == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= cacheEntries || c.size+len(a.body) > cacheBytes {
		clear(c.entries)
		c.size = 0
	}
	if old, ok := c.entries[r.RequestURI]; ok {
		c.size -= len(old.body)
	}
	c.entries[r.RequestURI] = cached{a, version, time.Now().Add(cacheTTL)}
	c.size += len(a.body)
}
