package proof

import (
	"math/bits"
	"sync"
	"time"
)

const (
	perStep    = 5 // accepted proofs of one network in ten minutes that raise its level by one
	slack      = 3 // of them may come between fetching a challenge and spending it
	window     = 10 * time.Minute
	mostTimes  = 8 * perStep // beyond the top of the ladder more makes no difference
	maxTracked = 50_000

	underWay = 5 * time.Second // longest time between the check of a proof and the end of its write
)

// load counts accepted anonymous writes: over all networks in the last minute, and per network in
// the last ten. A process counts its own and those that others report; the numbers are estimates
// for a price, not limits.
type load struct {
	target int

	mu       sync.Mutex // guards all below
	minute   time.Time
	current  int // writes in this minute
	previous int // writes in the one before
	networks map[string][]time.Time
	begun    map[string][]time.Time // likewise, proofs whose write is under way
	unshared *Usage                 // not yet reported to other processes; nil when there are none
}

func newLoad(target int) *load {
	return &load{target: target, networks: map[string][]time.Time{}, begun: map[string][]time.Time{}}
}

// begin records a valid proof whose write has not ended. add ends it; a write that fails is
// forgotten after some seconds.
func (l *load) begin(network string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.begun) >= maxTracked {
		clear(l.begun)
	}
	times := append(since(l.begun[network], now, underWay), now)
	l.begun[network] = times[max(0, len(times)-mostTimes):]
}

func (l *load) add(network string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rotate(now)
	l.current++
	if times := since(l.begun[network], now, underWay); len(times) > 1 {
		l.begun[network] = times[1:]
	} else {
		delete(l.begun, network)
	}
	l.countShared(network)
	l.note(network, now)
}

// note counts one proof of a network; the caller holds the mutex.
func (l *load) note(network string, now time.Time) {
	if _, known := l.networks[network]; !known && len(l.networks) >= maxTracked {
		l.forget(now)
	}
	times := append(since(l.networks[network], now, window), now)
	if len(times) > mostTimes {
		times = times[len(times)-mostTimes:]
	}
	l.networks[network] = times
}

// steps returns how many levels to add for the node's load and for the network.
func (l *load) steps(network string, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.doublings(now) + len(since(l.networks[network], now, window))/perStep
}

// spending is steps for a challenge that is being spent: with what is under way, and less what may
// have changed since it was fetched.
func (l *load) spending(network string, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	paid := len(since(l.networks[network], now, window)) + len(since(l.begun[network], now, underWay))
	return max(0, l.doublings(now)-1) + max(0, paid-slack)/perStep
}

// doublings is how often the rate of all writes exceeds the target; the caller holds the mutex.
func (l *load) doublings(now time.Time) int {
	l.rotate(now)
	into := now.Sub(l.minute).Seconds() / 60
	rate := float64(l.current) + float64(l.previous)*(1-into) // sliding minute
	return max(0, bits.Len(uint(rate)/uint(l.target))-1)
}

func (l *load) rotate(now time.Time) {
	switch start := now.Truncate(time.Minute); {
	case start.Equal(l.minute):
	case start.Sub(l.minute) == time.Minute:
		l.minute, l.previous, l.current = start, l.current, 0
	default:
		l.minute, l.previous, l.current = start, 0, 0
	}
}

func (l *load) forget(now time.Time) {
	for n, times := range l.networks {
		if len(since(times, now, window)) == 0 {
			delete(l.networks, n)
		}
	}
	if len(l.networks) >= maxTracked {
		clear(l.networks)
	}
}

// since returns the times that are at most d ago.
func since(times []time.Time, now time.Time, d time.Duration) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) > d {
		times = times[1:]
	}
	return times
}
