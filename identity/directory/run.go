package directory

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"stoa/identity/key"
)

// Run fetches until ctx ends, then waits for running fetches and returns nil. It reads the store
// first; lookups before that are told to retry. It may be called again after it has returned.
func (c *Cache) Run(ctx context.Context) error {
	if !c.running.CompareAndSwap(false, true) {
		return errors.New("directory: Run is running")
	}
	defer c.running.Store(false)
	var work sync.WaitGroup
	defer work.Wait()
	c.load(ctx)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		for e := c.next(ctx); e != nil; e = c.next(ctx) {
			work.Go(func() { c.do(ctx, e) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-tick.C:
			if names := c.sweep(time.Now()); len(names) > 0 && c.cfg.Store != nil {
				work.Go(func() { c.remove(ctx, names) })
			}
		}
	}
}

func (c *Cache) next(ctx context.Context) *entry {
	if ctx.Err() != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.take(time.Now())
}

// do fetches one directory and stores the result.
func (c *Cache) do(ctx context.Context, e *entry) {
	got, failure := c.fetch(ctx, e.src)
	switch had := c.settle(ctx, e, got, failure); {
	case ctx.Err() != nil:
	case failure == nil:
		c.log.DebugContext(ctx, "key directory fetched", "url", e.src.url, "keys", len(got.keys))
		c.save(ctx, e.src.name, got)
	case had:
		c.log.WarnContext(ctx, "key directory not refreshed", "url", e.src.url, "err", failure)
	default: // anyone can name a URL that fails
		c.log.DebugContext(ctx, "key directory not fetched", "url", e.src.url, "err", failure)
	}
	// After saving, so that a slow store delays fetching and nothing accumulates.
	c.mu.Lock()
	c.fetches--
	c.leave(e.src.host)
	c.mu.Unlock()
	c.signal()
}

// settle records the result of a fetch and reports whether there was a set before.
func (c *Cache) settle(ctx context.Context, e *entry, got *found, failure *Failure) (had bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.busy = false
	defer close(e.ended)
	had = e.keys != nil
	switch {
	case failure == nil:
		c.adopt(e, got)
	case ctx.Err() == nil: // otherwise the fetch was cancelled here
		e.fail(failure, time.Now())
	}
	return had
}

// sweep queues refreshes of the sets in use, forgets sets that are too old, and returns the names
// that the store should remove.
func (c *Cache) sweep(now time.Time) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var due []*entry
	for pos := c.full.Front(); pos != nil; {
		e := pos.Value.(*entry)
		pos = pos.Next()
		switch {
		case e.busy:
		case !now.Before(e.fetched.Add(MaxStale)):
			c.forget(e)
		case e.used && !now.Before(e.refresh) && !now.Before(e.retry):
			due = append(due, e)
		}
	}
	for _, e := range due { // most recently used first; the rest follows in a later sweep
		c.enqueue(e)
	}
	names := slices.Collect(maps.Keys(c.dropped))
	clear(c.dropped)
	return names
}

func (c *Cache) save(ctx context.Context, name string, f *found) {
	if c.cfg.Store == nil || strings.HasPrefix(name, metaPrefix) { // a stored set has no kid
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := c.cfg.Store.Save(ctx, name, f.set, f.lifetime); err != nil {
		c.log.WarnContext(ctx, "key directory not saved", "url", name, "err", err)
	}
}

func (c *Cache) remove(ctx context.Context, names []string) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := c.cfg.Store.Remove(ctx, names); err != nil {
		c.log.WarnContext(ctx, "key directories not removed", "count", len(names), "err", err)
	}
}

// load reads the store. Records that are too old or cannot be parsed are removed.
func (c *Cache) load(ctx context.Context) {
	if c.ready.Load() {
		return
	}
	defer c.ready.Store(true)
	reading, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	records, err := c.cfg.Store.Load(reading)
	if err != nil {
		c.log.WarnContext(ctx, "key directories not loaded", "err", err)
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range records {
		src, got := c.kept(r, now)
		if got == nil || c.entries[src.name] != nil || len(c.entries) >= c.maxURLs {
			c.dropped[r.Name] = struct{}{}
			continue
		}
		e := c.insert(src)
		c.adopt(e, got)
		e.tried = got.at
	}
}

// kept parses a record; it returns nil for a useless one.
func (c *Cache) kept(r Record, now time.Time) (source, *found) {
	src, failure := sourceOfName(r.Name, c.cfg.AllowLoopback)
	age := now.Sub(r.FetchedAt)
	if failure != nil || src.name != r.Name || age < 0 || age >= MaxStale {
		return source{}, nil
	}
	set, err := key.ParseSet(r.Set)
	if err != nil {
		return source{}, nil
	}
	var own struct {
		Name json.RawMessage `json:"client_name"`
	}
	_ = json.Unmarshal(r.Set, &own) // it is a JWK Set
	got := &found{keys: map[string]listed{}, set: r.Set, name: nameOf(own.Name), at: r.FetchedAt, lifetime: clamp(r.Expires.Sub(r.FetchedAt))}
	for _, p := range set.Keys {
		if k, failure := listKey(p, false); failure == nil {
			got.keys[p.Thumbprint] = k
		}
	}
	return src, got
}
