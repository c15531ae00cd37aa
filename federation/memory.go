package federation

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"
)

// memory remembers values for a while, at most max of them. What is over the
// limit drops the oldest half: strangers choose the keys.
type memory struct {
	mu   sync.Mutex // guards rows
	max  int
	rows map[string]remembered
}

type remembered struct {
	value any
	until time.Time
}

func newMemory(most int) *memory { return &memory{max: most, rows: map[string]remembered{}} }

func (m *memory) get(key string, now time.Time) (any, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row, ok := m.rows[key]
	if !ok || now.After(row.until) {
		return nil, false
	}
	return row.value, true
}

func (m *memory) put(key string, value any, until, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.rows) >= m.max {
		for k, row := range m.rows { // expired ones first
			if now.After(row.until) {
				delete(m.rows, k)
			}
		}
		for k := range m.rows {
			if len(m.rows) < m.max/2 {
				break
			}
			delete(m.rows, k)
		}
	}
	m.rows[key] = remembered{value, until}
}

// Limits of what one registrable domain may deliver.
const (
	perSecond = 50
	burst     = 500
	domains   = 10_000
)

// buckets are token buckets by registrable domain, so that ten thousand
// sub-domains are one sender (CVE-2026-69132).
type buckets struct {
	rate, burst float64    // tokens a second, tokens at most
	mu          sync.Mutex // guards rows
	rows        map[string]*bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newBuckets(rate, burst float64) *buckets {
	return &buckets{rate: rate, burst: burst, rows: map[string]*bucket{}}
}

// take takes one token of the host's domain and reports whether there was one.
func (b *buckets) take(host string, now time.Time) bool {
	domain := registrable(host)
	b.mu.Lock()
	defer b.mu.Unlock()
	row, ok := b.rows[domain]
	if !ok {
		if len(b.rows) >= domains {
			for k, r := range b.rows { // a bucket that is full again says nothing
				if now.Sub(r.at).Seconds() > b.burst/b.rate {
					delete(b.rows, k)
				}
			}
			if len(b.rows) >= domains {
				return false
			}
		}
		row = &bucket{tokens: b.burst, at: now}
		b.rows[domain] = row
	}
	row.tokens = min(b.burst, row.tokens+now.Sub(row.at).Seconds()*b.rate)
	row.at = now
	if row.tokens < 1 {
		return false
	}
	row.tokens--
	return true
}

func registrable(host string) string {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if net.ParseIP(strings.Trim(name, "[]")) != nil {
		return host
	}
	if d, err := publicsuffix.EffectiveTLDPlusOne(name); err == nil {
		return d
	}
	return host
}

// slots bound how much is under way to one host and in all, so that a slow host
// cannot hold up the others.
type slots struct {
	all   chan struct{}
	mu    sync.Mutex // guards hosts
	hosts map[string]*hostSlots
}

type hostSlots struct {
	free  chan struct{}
	users int
}

const (
	slotsPerHost = 2
	slotsInAll   = 64
)

func newSlots() *slots {
	return &slots{all: make(chan struct{}, slotsInAll), hosts: map[string]*hostSlots{}}
}

// take waits for a slot to host; the host's first, so that waiting for a slow
// host takes nothing from the others. The returned function gives it back.
func (s *slots) take(ctx context.Context, host string) (func(), error) {
	s.mu.Lock()
	h := s.hosts[host]
	if h == nil {
		h = &hostSlots{free: make(chan struct{}, slotsPerHost)}
		s.hosts[host] = h
	}
	h.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		if h.users--; h.users == 0 {
			delete(s.hosts, host)
		}
		s.mu.Unlock()
	}
	select {
	case h.free <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	select {
	case s.all <- struct{}{}:
	case <-ctx.Done():
		<-h.free
		leave()
		return nil, ctx.Err()
	}
	return func() { <-s.all; <-h.free; leave() }, nil
}
