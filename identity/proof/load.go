package proof

import (
	"math/bits"
	"sync"
	"time"
)

const (
	perStep    = 5 // accepted proofs of one network in ten minutes that raise its level by one
	window     = 10 * time.Minute
	mostTimes  = 8 * perStep // beyond the top of the ladder more makes no difference
	maxTracked = 50_000
)

// load counts accepted anonymous writes: over all networks in the last minute,
// and per network in the last ten. One process counts its own and what it is told
// of others; the numbers are estimates that steer a price, not limits.
type load struct {
	target int

	mu       sync.Mutex // guards all below
	minute   time.Time
	current  int // writes in this minute
	previous int // writes in the one before
	networks map[string][]time.Time
	told     *Usage // what other processes are to be told; nil where there are none
}

func newLoad(target int) *load { return &load{target: target, networks: map[string][]time.Time{}} }

func (l *load) add(network string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
	l.current++
	l.tell(network)
	l.note(network, now)
}

// note counts one proof of a network; the caller holds the mutex.
func (l *load) note(network string, now time.Time) {
	if _, known := l.networks[network]; !known && len(l.networks) >= maxTracked {
		l.forget(now)
	}
	times := append(recent(l.networks[network], now), now)
	if len(times) > mostTimes {
		times = times[len(times)-mostTimes:]
	}
	l.networks[network] = times
}

// steps is how many levels to add for the node's load and for the network.
func (l *load) steps(network string, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
	into := now.Sub(l.minute).Seconds() / 60
	rate := float64(l.current) + float64(l.previous)*(1-into) // sliding minute
	return max(0, bits.Len(uint(rate)/uint(l.target))-1) + len(recent(l.networks[network], now))/perStep
}

func (l *load) turn(now time.Time) {
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
		if len(recent(times, now)) == 0 {
			delete(l.networks, n)
		}
	}
	if len(l.networks) >= maxTracked {
		clear(l.networks)
	}
}

func recent(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) > window {
		times = times[1:]
	}
	return times
}
