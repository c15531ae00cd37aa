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
	rows rows
	most int // bytes of one value with its name; 0 is no bound
}

// rows is an otter.Cache of rows, behind an interface that does not depend on the type of
// the values: every package that uses a Cache, and every one that uses those, would compile
// the whole of otter again for each type.
type rows interface {
	GetIfPresent(name string) (row, bool)
	Set(name string, r row) (row, bool)
	Invalidate(name string) (row, bool)
	EstimatedSize() int
	WeightedSize() uint64
}

type row struct {
	value any
	size  int
	until time.Time
}

// rowSize is about what an entry takes, in bytes, apart from its name and value.
const rowSize = 200

// Of returns an empty cache of at most that many values.
func Of[V any](values int) *Cache[V] { return &Cache[V]{rows: ofValues(values)} }

// OfBytes returns an empty cache of at most that many bytes, names included.
func OfBytes[V any](bytes int) *Cache[V] { return &Cache[V]{rows: ofBytes(bytes), most: bytes} }

func ofValues(values int) rows {
	return otter.Must(&otter.Options[string, row]{MaximumSize: values, Executor: inline})
}

func ofBytes(bytes int) rows {
	return otter.Must(&otter.Options[string, row]{
		MaximumWeight: uint64(bytes), Executor: inline,
		Weigher: func(name string, r row) uint32 { return uint32(min(rowSize+len(name)+r.size, math.MaxUint32)) },
	})
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
	value, _ = r.value.(V) // a nil interface has no type
	return value, true
}

// Put keeps a value until just before a time. size is about what it takes in bytes; a cache of a
// number of values does not regard it.
func (c *Cache[V]) Put(name string, value V, size int, until time.Time) {
	if c.most > 0 && rowSize+len(name)+size > c.most {
		c.Drop(name)
		return
	}
	c.rows.Set(name, row{value, size, until})
}

// Drop forgets what is kept under a name.
func (c *Cache[V]) Drop(name string) { c.rows.Invalidate(name) }

// Len is how many values are kept, those that have run out among them.
func (c *Cache[V]) Len() int { return c.rows.EstimatedSize() }
