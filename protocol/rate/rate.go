// Package rate limits how often something is done, by the generic cell rate
// algorithm: all that is known of a key is the time at which its whole burst is
// free again. Times are Unix nanoseconds.
package rate

import (
	"slices"
	"time"
)

// A Limit is one unit each Every, and Burst units at once.
type Limit struct {
	Every time.Duration
	Burst float64
}

// PerSecond is the limit of n units a second.
func PerSecond(n, burst float64) Limit {
	return Limit{time.Duration(max(1, float64(time.Second)/n)), burst}
}

// Take returns the time of a key after it took some units. A positive wait is how
// long they are not there; then nothing is to be stored.
func (l Limit) Take(free, now int64, units float64) (next int64, wait time.Duration) {
	next = max(free, now) + int64(units*float64(l.Every))
	return next, time.Duration(next - now - int64(l.Burst*float64(l.Every)))
}

// A Table is the times of keys, at most Most. It is not safe for concurrent use.
type Table[K comparable] struct {
	Most int
	free map[K]int64
}

// Free is the time of a key, 0 for one that took nothing or was dropped.
func (t *Table[K]) Free(key K) int64 { return t.free[key] }

// Len is the number of keys.
func (t *Table[K]) Len() int { return len(t.free) }

// Set stores the time of a key, for which there is [Table.Room].
func (t *Table[K]) Set(key K, free int64) {
	if t.free == nil {
		t.free = map[K]int64{}
	}
	t.free[key] = free
}

// Room reports whether the time of a key can be stored. When there are too many, it
// drops those whose burst is free, which loses nothing.
func (t *Table[K]) Room(key K, now int64) bool {
	if _, known := t.free[key]; known || len(t.free) < t.Most {
		return true
	}
	for k, free := range t.free {
		if free <= now {
			delete(t.free, k)
		}
	}
	return len(t.free) < t.Most
}

// Halve drops the half of the keys that took the least.
func (t *Table[K]) Halve() {
	times := make([]int64, 0, len(t.free))
	for _, free := range t.free {
		times = append(times, free)
	}
	slices.Sort(times)
	left := (len(times) + 1) / 2
	for k, free := range t.free {
		if left > 0 && free <= times[(len(times)-1)/2] {
			delete(t.free, k)
			left--
		}
	}
}
