package dispatch

import (
	"net/http"
	"sync"
	"time"

	"stoa/protocol"
)

const (
	cacheEntries = 4096
	cacheBytes   = 32 << 20
	cacheBody    = 256 << 10       // an answer longer than this is not kept
	cacheKey     = 1024            // a key longer than this neither
	cacheTTL     = 1 * time.Second // how long another process's write may go unseen
)

// A Cache keeps the rendered answers of a door to open reads. An entry holds
// while nothing was committed in this process; another process's commit shows
// after a second at the latest. It is safe for concurrent use.
type Cache[T any] struct {
	version func() uint64

	mu      sync.RWMutex // guards the two below
	entries map[string]cached[T]
	size    int
}

type cached[T any] struct {
	answer  T
	size    int
	version uint64
	until   time.Time
}

// NewCache returns an empty cache. version grows whenever something stored may
// have changed.
func NewCache[T any](version func() uint64) *Cache[T] {
	return &Cache[T]{version: version, entries: map[string]cached[T]{}}
}

// Open reports an operation whose answers may be kept: a read that is open to
// everybody. What it answers to nobody is what it answers to everybody; its room
// may give a known caller only what it refuses to others, and that is not kept.
func Open(op *protocol.Operation) bool {
	return op.ReadOnly && op.HTTP.Method == http.MethodGet && op.Access == protocol.Anonymous && !op.NoStore
}

// Unknown reports a request without a credential or signature to be checked.
func Unknown(r *http.Request) bool {
	return r.Header["Authorization"] == nil && r.Header["Signature-Input"] == nil && r.Header["Signature"] == nil
}

// Version is what to give to Put; ask for it before the answer is made.
func (c *Cache[T]) Version() uint64 { return c.version() }

// Get returns the answer that is kept under a key.
func (c *Cache[T]) Get(key string) (answer T, ok bool) {
	c.mu.RLock()
	e, ok := c.entries[key]
	c.mu.RUnlock()
	if !ok || e.version != c.version() || time.Now().After(e.until) {
		return answer, false
	}
	return e.answer, true
}

// Put keeps an answer of size bytes that was made while version held. An answer
// under the empty key is not kept.
func (c *Cache[T]) Put(key string, version uint64, answer T, size int) {
	if size > cacheBody || len(key) > cacheKey || key == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= cacheEntries || c.size+size > cacheBytes {
		clear(c.entries)
		c.size = 0
	}
	c.size += size - c.entries[key].size
	c.entries[key] = cached[T]{answer, size, version, time.Now().Add(cacheTTL)}
}
