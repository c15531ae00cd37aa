// Package cache keeps values in memory for a while, within a bound: strangers
// choose many of the names.
package cache

import (
	"math"
	"time"

	"github.com/maypok86/otter/v2"
)

// A Cache keeps values under names. It is safe for concurrent use. Over its bound it
// drops what is unlikely to be asked for again, which may be what was just put in.
type Cache[V any] struct {
	rows *otter.Cache[string, row[V]]
	most int // bytes of one value with its name; 0 is no bound
}

type row[V any] struct {
	value V
	size  int
	until time.Time
}

// rowSize is about what an entry takes, in bytes, apart from its name and value.
const rowSize = 200

// Of returns an empty cache of at most that many values.
func Of[V any](values int) *Cache[V] {
	return &Cache[V]{rows: otter.Must(&otter.Options[string, row[V]]{MaximumSize: values, Executor: inline})}
}

// OfBytes returns an empty cache of at most that many bytes, names included.
func OfBytes[V any](bytes int) *Cache[V] {
	return &Cache[V]{most: bytes, rows: otter.Must(&otter.Options[string, row[V]]{
		MaximumWeight: uint64(bytes), Executor: inline,
		Weigher: func(name string, r row[V]) uint32 { return uint32(min(rowSize+len(name)+r.size, math.MaxUint32)) },
	})}
}

// inline does the upkeep in the call that makes it due, so that the bound holds
// when the call returns.
func inline(fn func()) { fn() }

// Get returns what is kept under a name and still good at that time.
func (c *Cache[V]) Get(name string, now time.Time) (value V, ok bool) {
	r, ok := c.rows.GetIfPresent(name)
	if !ok || !now.Before(r.until) {
		return value, false
	}
	return r.value, true
}

// Put keeps a value until just before a time. size is about what it takes in bytes; a cache of a
// number of values does not regard it.
func (c *Cache[V]) Put(name string, value V, size int, until time.Time) {
	if c.most > 0 && rowSize+len(name)+size > c.most {
		c.Drop(name)
		return
	}
	c.rows.Set(name, row[V]{value, size, until})
}

// Drop forgets what is kept under a name.
func (c *Cache[V]) Drop(name string) { c.rows.Invalidate(name) }

// Len is how many values are kept, those that have run out among them.
func (c *Cache[V]) Len() int { return c.rows.EstimatedSize() }
