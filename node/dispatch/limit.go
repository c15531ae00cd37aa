package dispatch

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"stoa/protocol"
)

// A Rate is a sustained number of requests a second and the burst above it.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Rates are the limits of one process. A network is the keyed hash of a client
// network; an identity is whoever signed or signed in.
type Rates struct {
	NetworkRead   Rate // every request of a network
	NetworkWrite  Rate // those that change something, admitted or not
	IdentityWrite Rate // writes of one verified identity
}

// DefaultRates suit one public node.
func DefaultRates() Rates {
	return Rates{
		NetworkRead:   Rate{50, 200},
		NetworkWrite:  Rate{5, 40},
		IdentityWrite: Rate{10, 60},
	}
}

// WideRates limit nothing that a test or a development node would notice.
func WideRates() Rates {
	wide := Rate{1e6, 1e6}
	return Rates{wide, wide, wide}
}

// Limits applies Rates with the generic cell rate algorithm, one word of state
// a key. It is safe for concurrent use; one process knows its own counts only.
type Limits struct {
	rates                     Rates
	networkRead, networkWrite *gcra
	identityWrite             *gcra
}

// NewLimits returns limits with nothing used up.
func NewLimits(r Rates) *Limits {
	return &Limits{r, newGCRA(r.NetworkRead), newGCRA(r.NetworkWrite), newGCRA(r.IdentityWrite)}
}

// Network takes one request of a client network, before anything else is known.
func (l *Limits) Network(network string, op *protocol.Operation) error {
	g, what := l.networkRead, "network"
	if !op.ReadOnly {
		g = l.networkWrite
	}
	return g.take(network, what)
}

// Caller takes one write of a verified identity; others were counted already.
func (l *Limits) Caller(c protocol.Caller, op *protocol.Operation) error {
	if op.ReadOnly || c.Standing&(protocol.Signed|protocol.Session) == 0 && c.Account == "" {
		return nil
	}
	return l.identityWrite.take(c.ID(), "identity")
}

// Quota is what is left to a network, for the RateLimit fields.
func (l *Limits) Quota(network string, readOnly bool) (limit, remaining int, reset time.Duration) {
	g := l.networkWrite
	if readOnly {
		g = l.networkRead
	}
	remaining, reset = g.left(network)
	return g.burst, remaining, reset
}

const (
	shards   = 64
	shardCap = 20_000 // keys a shard holds before it forgets those that are full again
)

// gcra keeps, for each key, the theoretical arrival time of its next request.
type gcra struct {
	interval time.Duration // between two requests at the sustained rate
	burst    int
	seed     maphash.Seed
	parts    [shards]struct {
		sync.Mutex
		tat map[string]int64 // Unix nanoseconds; guarded by the mutex
	}
}

func newGCRA(r Rate) *gcra {
	g := &gcra{interval: time.Duration(math.Max(1, float64(time.Second)/r.PerSecond)), burst: max(1, r.Burst), seed: maphash.MakeSeed()}
	for i := range g.parts {
		g.parts[i].tat = map[string]int64{}
	}
	return g
}

func (g *gcra) take(key, what string) error {
	now := time.Now().UnixNano()
	p := &g.parts[maphash.String(g.seed, key)%shards]
	p.Lock()
	defer p.Unlock()
	next := max(p.tat[key], now) + int64(g.interval)
	if over := next - now - int64(g.burst)*int64(g.interval); over > 0 {
		wait := time.Duration(over)
		return &protocol.Error{Code: protocol.RateLimited, RetryAfter: wait,
			Detail: "Too many requests from this " + what + "; wait and send it again."}
	}
	if len(p.tat) >= shardCap {
		for k, t := range p.tat {
			if t <= now {
				delete(p.tat, k)
			}
		}
		if len(p.tat) >= shardCap {
			return &protocol.Error{Code: protocol.Overloaded, RetryAfter: time.Second, Detail: "Too many callers at once; send it again."}
		}
	}
	p.tat[key] = next
	return nil
}

func (g *gcra) left(key string) (int, time.Duration) {
	now := time.Now().UnixNano()
	p := &g.parts[maphash.String(g.seed, key)%shards]
	p.Lock()
	defer p.Unlock()
	used := time.Duration(max(p.tat[key]-now, 0))
	return g.burst - int((used+g.interval-1)/g.interval), used
}
