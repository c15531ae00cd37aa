package federation

import (
	"context"
	"sync"
	"time"

	"stoa/protocol/netx"
	"stoa/protocol/rate"
)

// Rate limits of one registrable domain.
var (
	// deliveryRate is for deliveries whose signature is verified.
	deliveryRate = rate.PerSecond(50, 500)
	// peerRate is the same for a host that follows our board, or is followed.
	peerRate = rate.PerSecond(200, 2000)
	// lookUpRate is for keys and actors that are fetched to check a signature.
	lookUpRate = rate.PerSecond(10, 100)
	// mentionRate is for posts that mention our board.
	mentionRate = rate.Limit{Every: 10 * time.Minute, Burst: 20}
)

const (
	domains = 10_000
	// weigh is the number of bytes of a delivery that cost one more token.
	weigh = 16 << 10
)

// buckets limit the rate of each registrable domain, so that ten thousand
// subdomains count as one sender (CVE-2026-69132).
type buckets struct {
	rate rate.Limit
	mu   sync.Mutex // guards rows
	rows rate.Table[string]
}

func newBuckets(r rate.Limit) *buckets {
	return &buckets{rate: r, rows: rate.Table[string]{Most: domains}}
}

// take takes tokens from the bucket of the host's domain and reports whether there
// were enough. Strangers may fill the table with domains: then those that took the
// least are dropped, since a full bucket loses the least when it is created again.
func (b *buckets) take(host string, cost float64, now time.Time) bool {
	domain := netx.Registrable(host)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.rows.Room(domain, now.UnixNano()) {
		b.rows.Halve()
	}
	free := b.rows.Free(domain)
	if free > now.Add(time.Duration(b.rate.Burst*float64(b.rate.Every))).UnixNano() { // later than any can be: the clock was set back since
		free = 0
	}
	next, wait := b.rate.Take(free, now.UnixNano(), cost)
	if wait > 0 {
		return false
	}
	b.rows.Set(domain, next)
	return true
}

// slots limit the concurrent requests to one host and in all. A host that does not
// answer soon delays nobody: its request gives its slot to others and goes on among the
// late ones, as long as there is room.
type slots struct {
	all, late chan struct{}
	mu        sync.Mutex // guards hosts
	hosts     map[string]*hostSlots
}

type hostSlots struct {
	free  chan struct{}
	users int
}

const (
	slotsPerHost = 2
	slotsInAll   = 128
	slotsLate    = 1024
	lateAfter    = 500 * time.Millisecond
)

func newSlots() *slots {
	return &slots{all: make(chan struct{}, slotsInAll), late: make(chan struct{}, slotsLate), hosts: map[string]*hostSlots{}}
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
	end := s.hold()
	return func() { end(); <-h.free; leave() }, nil
}

// hold keeps a slot of all until it is ended, or one of the late from lateAfter on.
func (s *slots) hold() (end func()) {
	var mu sync.Mutex // guards in
	in := s.all
	timer := time.AfterFunc(lateAfter, func() {
		mu.Lock()
		defer mu.Unlock()
		if in == nil {
			return
		}
		select {
		case s.late <- struct{}{}:
			<-s.all
			in = s.late
		default:
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		<-in
		in = nil
	}
}
