package directory

import (
	"container/list"
	"time"
)

// The methods of this file need Cache.mu to be held.

// insert adds an entry, after making room for it.
func (c *Cache) insert(src source) *entry {
	for len(c.entries) >= c.maxURLs {
		// A flood of invented URLs evicts itself, not the sets in use.
		if !c.evictOldest(&c.bare, nil) && !c.evictOldest(&c.full, nil) {
			break // all entries are queued or being fetched, and their number is bounded
		}
	}
	e := &entry{src: src}
	e.pos = c.bare.PushFront(e)
	c.entries[src.name] = e
	return e
}

func (c *Cache) touch(e *entry) { c.listOf(e).MoveToFront(e.pos) }

func (c *Cache) listOf(e *entry) *list.List {
	if e.keys != nil {
		return &c.full
	}
	return &c.bare
}

// adopt sets the key set of an entry.
func (c *Cache) adopt(e *entry, f *found) {
	c.listOf(e).Remove(e.pos)
	c.bytes -= e.size
	e.succeed(f)
	c.bytes += e.size
	e.pos = c.full.PushFront(e)
	delete(c.dropped, e.src.name)
	for c.bytes > maxBytes && c.evictOldest(&c.full, e) {
	}
}

// forget removes the key set of an entry.
func (c *Cache) forget(e *entry) {
	c.full.Remove(e.pos)
	c.bytes -= e.size
	e.keys, e.size, e.used = nil, 0, false
	e.pos = c.bare.PushFront(e)
	c.dropped[e.src.name] = struct{}{}
}

// evictOldest removes the least recently used idle entry of a list, but not keep.
func (c *Cache) evictOldest(l *list.List, keep *entry) bool {
	for pos := l.Back(); pos != nil; pos = pos.Prev() {
		e := pos.Value.(*entry)
		if e.busy || e == keep {
			continue
		}
		if e.keys != nil {
			c.forget(e)
		}
		c.bare.Remove(e.pos)
		delete(c.entries, e.src.name)
		return true
	}
	return false
}

// admits reports whether a fetch from the host can be queued.
func (c *Cache) admits(host string) bool {
	h := c.hosts[host]
	return len(c.queue) < maxWaiting && (h == nil || h.waiting < maxHostWait)
}

// enqueue queues one fetch of an idle entry.
func (c *Cache) enqueue(e *entry) bool {
	if !c.admits(e.src.host) {
		return false
	}
	h := c.hosts[e.src.host]
	if h == nil {
		h = &hostLoad{}
		c.hosts[e.src.host] = h
	}
	h.waiting++
	e.busy, e.ended = true, make(chan struct{})
	c.queue = append(c.queue, e)
	c.signal()
	return true
}

// take removes and returns the first fetch in the queue that may begin, nil for none.
func (c *Cache) take(now time.Time) *entry {
	if c.fetches >= maxFetches {
		return nil
	}
	for i, e := range c.queue {
		h := c.hosts[e.src.host]
		if h.fetching >= maxPerHost {
			continue // a slow host does not delay others
		}
		c.queue = append(c.queue[:i], c.queue[i+1:]...)
		h.waiting--
		h.fetching++
		c.fetches++
		e.tried, e.used = now, false
		return e
	}
	return nil
}

// leave undoes enter, or take after the whole fetch.
func (c *Cache) leave(host string) {
	h := c.hosts[host]
	if h.fetching--; h.fetching == 0 && h.waiting == 0 {
		delete(c.hosts, host)
	}
}

// enter counts a further fetch to a host, in addition to those that take counts.
func (c *Cache) enter(host string) bool {
	h := c.hosts[host]
	if h == nil {
		h = &hostLoad{}
		c.hosts[host] = h
	}
	if h.fetching >= maxPerHost {
		return false
	}
	h.fetching++
	return true
}

func (c *Cache) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
