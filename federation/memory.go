package federation

import (
	"context"
	"slices"
	"sync"
	"time"

	"stoa/protocol/netx"
)

// A rate bounds what one registrable domain may have: tokens a second, and at once.
type rate struct{ perSecond, burst float64 }

// What one registrable domain may make this node do.
var (
	// deliveryRate is of deliveries whose signature verified.
	deliveryRate = rate{50, 500}
	// peerRate is the same for a host that follows, or is followed.
	peerRate = rate{200, 2000}
	// lookUpRate is of keys and actors that are fetched to check a signature.
	lookUpRate = rate{10, 100}
)

const (
	domains = 10_000
	// weigh is how many bytes of a delivery cost one token more.
	weigh = 16 << 10
)

// buckets are token buckets by registrable domain, so that ten thousand
// sub-domains are one sender (CVE-2026-69132).
type buckets struct {
	rate rate
	mu   sync.Mutex // guards rows
	rows map[string]*bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newBuckets(r rate) *buckets { return &buckets{rate: r, rows: map[string]*bucket{}} }

// take takes tokens of the host's domain and reports whether there were as many.
func (b *buckets) take(host string, cost float64, now time.Time) bool {
	domain := netx.Registrable(host)
	b.mu.Lock()
	defer b.mu.Unlock()
	row, ok := b.rows[domain]
	if !ok {
		if len(b.rows) >= domains {
			b.shrink(now)
		}
		row = &bucket{tokens: b.rate.burst, at: now}
		b.rows[domain] = row
	}
	row.tokens, row.at = b.tokens(row, now), now
	if row.tokens < cost {
		return false
	}
	row.tokens -= cost
	return true
}

func (b *buckets) tokens(row *bucket, now time.Time) float64 {
	return min(b.rate.burst, row.tokens+now.Sub(row.at).Seconds()*b.rate.perSecond)
}

// shrink forgets the fuller half: strangers may fill the table with domains, and
// what is forgotten gains the least by it.
func (b *buckets) shrink(now time.Time) {
	full := make([]float64, 0, len(b.rows))
	for _, row := range b.rows {
		full = append(full, b.tokens(row, now))
	}
	slices.Sort(full)
	from, left := full[len(full)/2], len(full)/2
	for domain, row := range b.rows {
		if left > 0 && b.tokens(row, now) >= from {
			delete(b.rows, domain)
			left--
		}
	}
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
