package hall

import (
	"net/http"
	"time"

	"stoa/identity/cache"
	"stoa/protocol"
)

const (
	cacheBytes = 32 << 20
	cacheBody  = 256 << 10       // an answer longer than this is not kept
	cacheKey   = 1024            // an answer with a longer key is not kept
	cacheTTL   = 1 * time.Second // how late another process's write may be noticed
)

// A Cache keeps a door's rendered answers to open reads. An entry is valid until something is
// committed in this process, and at most cacheTTL, for commits of other processes. It is safe for
// concurrent use.
type Cache[T any] struct {
	version func() uint64
	kept    *cache.Cache[versioned[T]]
}

type versioned[T any] struct {
	answer  T
	version uint64
}

// NewCache returns an empty cache. version returns a number that grows whenever stored data may
// have changed.
func NewCache[T any](version func() uint64) *Cache[T] {
	return &Cache[T]{version, cache.OfBytes[versioned[T]](cacheBytes)}
}

// Open reports whether answers of an operation may be kept: it is a read that is open to everyone.
// Its answer to an unknown caller is valid for every caller. A known caller may be given more only
// where others get an error, and that answer is not kept.
func Open(op *protocol.Operation) bool {
	return op.ReadOnly && op.HTTP.Method == http.MethodGet && op.Access == protocol.Anonymous && !op.NoStore
}

// Unknown reports whether a request carries no credential or signature.
func Unknown(r *http.Request) bool {
	return r.Header["Authorization"] == nil && r.Header["Signature-Input"] == nil && r.Header["Signature"] == nil
}

// Version returns the version for Put; call it before the answer is made.
func (c *Cache[T]) Version() uint64 { return c.version() }

// Get returns the answer that is kept under a key.
func (c *Cache[T]) Get(key string) (answer T, ok bool) {
	e, ok := c.kept.Get(key, time.Now())
	if !ok || e.version != c.version() {
		return answer, false
	}
	return e.answer, true
}

// Put keeps an answer of size bytes that was made at that version. It keeps nothing with an empty
// key.
func (c *Cache[T]) Put(key string, version uint64, answer T, size int) {
	if size <= cacheBody && len(key) <= cacheKey && key != "" {
		c.kept.Put(key, versioned[T]{answer, version}, size, time.Now().Add(cacheTTL))
	}
}
