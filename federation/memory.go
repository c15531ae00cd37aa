package federation

import (
	"context"
	"slices"
	"sync"
	"time"

	"stoa/protocol/netx"
)

// A rate is the rate limit of one registrable domain: tokens per second, and the
// size of its bucket.
type rate struct{ perSecond, burst float64 }

// Rate limits of one registrable domain.
var (
	// deliveryRate is for deliveries whose signature is verified.
	deliveryRate = rate{50, 500}
	// peerRate is the same for a host that follows our board, or is followed.
	peerRate = rate{200, 2000}
	// lookUpRate is for keys and actors that are fetched to check a signature.
	lookUpRate = rate{10, 100}
)

const (
	domains = 10_000
	// weigh is the number of bytes of a delivery that cost one more token.
	weigh = 16 << 10
)

// buckets are token buckets by registrable domain, so that ten thousand subdomains
// count as one sender (CVE-2026-69132).
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

// take takes tokens from the bucket of the host's domain and reports whether there
// were enough.
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

// shrink deletes the fuller half of the buckets: strangers may fill the table with
// domains, and a full bucket loses the least when it is created again.
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

// slots limit the concurrent requests to one host and in all, so that a slow host
// cannot delay the others.
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

// take waits for a slot to host; the host's limit first, so that waiting for a slow
// host uses no slot of the others. The returned function releases it.
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
