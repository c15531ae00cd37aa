package hall

import (
	"hash/maphash"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"stoa/protocol"
	"stoa/protocol/rate"
)

// A Rate is a sustained number of requests a second and the burst above it.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Rates are the limits of one process or, when they are shared, of a whole deployment. A network
// is the keyed hash of a client network; an identity is a signer or an account.
type Rates struct {
	NetworkRead   Rate // every request of a network
	NetworkWrite  Rate // of those, requests that change something, admitted or not
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

// With returns the rates with those that are not nil replaced, in requests a second. A burst keeps
// the default's length in seconds.
func (r Rates) With(read, write, identity *float64) Rates {
	set := func(rate *Rate, perSecond *float64, seconds float64) {
		if perSecond != nil && *perSecond > 0 {
			*rate = Rate{PerSecond: *perSecond, Burst: int(max(1, *perSecond*seconds))}
		}
	}
	set(&r.NetworkRead, read, 4)
	set(&r.NetworkWrite, write, 8)
	set(&r.IdentityWrite, identity, 6)
	return r
}

// WideRates are so high that a test or a development node never reaches them.
func WideRates() Rates {
	wide := Rate{1e6, 1e6}
	return Rates{wide, wide, wide}
}

// Limits applies Rates with one word of state per key. It is safe for concurrent use. A process counts its own
// requests, and those of others that it is told about
// ([Limits.Share]).
type Limits struct {
	networkRead, networkWrite, identityWrite atomic.Pointer[gcra]
	shared                                   atomic.Bool
}

// NewLimits returns limits with nothing used.
func NewLimits(r Rates) *Limits {
	l := &Limits{}
	l.Set(r)
	return l
}

// Set changes the rates. For a rate that does not change, what was used remains counted.
func (l *Limits) Set(r Rates) {
	for p, rate := range map[*atomic.Pointer[gcra]]Rate{&l.networkRead: r.NetworkRead, &l.networkWrite: r.NetworkWrite, &l.identityWrite: r.IdentityWrite} {
		if old := p.Load(); old == nil || old.rate != rate {
			fresh := newGCRA(rate)
			fresh.shared.Store(l.shared.Load())
			p.Store(fresh)
		}
	}
}

// each returns the limits by name.
func (l *Limits) each() map[string]*atomic.Pointer[gcra] {
	return map[string]*atomic.Pointer[gcra]{"read": &l.networkRead, "write": &l.networkWrite, "identity": &l.identityWrite}
}

// Request counts one request of a client network. The router calls it first, once for each request
// to any door.
func (l *Limits) Request(network string) error {
	return l.networkRead.Load().take(network, "network")
}

// Return undoes Request, for a request that another limit applies to: it was signed by a host that
// has its own.
func (l *Limits) Return(network string) { l.networkRead.Load().give(network) }

// Write counts one request of a client network that changes something.
func (l *Limits) Write(network string) error {
	return l.networkWrite.Load().take(network, "network")
}

// Caller counts one write of a verified identity; other callers were counted already.
func (l *Limits) Caller(c protocol.Caller, op *protocol.Operation) error {
	if op.ReadOnly || c.Standing&(protocol.Signed|protocol.Session) == 0 && c.Account == "" {
		return nil
	}
	return l.identityWrite.Load().take(c.ID(), "identity")
}

// Fields writes the RateLimit fields of an answer: what a network has left for reading, or for
// writing (draft-ietf-httpapi-ratelimit-headers).
func (l *Limits) Fields(head http.Header, network string, readOnly bool) {
	g := l.networkWrite.Load()
	if readOnly {
		g = l.networkRead.Load()
	}
	left, reset := g.left(network)
	head["Ratelimit-Policy"] = []string{`"network";q=` + strconv.Itoa(int(g.cell.Burst))}
	head["Ratelimit"] = []string{`"network";r=` + strconv.Itoa(max(left, 0)) + `;t=` + strconv.Itoa(int((reset+time.Second-1)/time.Second))}
}

const (
	shards   = 64
	shardCap = 20_000 // keys that a shard holds before it forgets those that are full again
)

// gcra applies one rate to each key.
type gcra struct {
	rate   Rate
	cell   rate.Limit
	seed   maphash.Seed
	shared atomic.Bool // requests are counted for other processes
	parts  [shards]part
}

type part struct {
	sync.Mutex                    // guards both
	free       rate.Table[string] // when all of a key's burst is free
	used       map[string]int     // requests since the last drain, when the limit is shared
}

func newGCRA(r Rate) *gcra {
	g := &gcra{rate: r, cell: rate.PerSecond(r.PerSecond, float64(max(1, r.Burst))), seed: maphash.MakeSeed()}
	for i := range g.parts {
		g.parts[i].free.Most, g.parts[i].used = shardCap, map[string]int{}
	}
	return g
}

func (g *gcra) part(key string) *part { return &g.parts[maphash.String(g.seed, key)%shards] }

func (g *gcra) take(key, what string) error {
	now := time.Now().UnixNano()
	p := g.part(key)
	p.Lock()
	defer p.Unlock()
	next, wait := g.cell.Take(p.free.Free(key), now, 1)
	if wait > 0 {
		return &protocol.Error{Code: protocol.RateLimited, RetryAfter: wait,
			Detail: "Too many requests from this " + what + "; wait, then try again."}
	}
	if !p.free.Room(key, now) {
		return &protocol.Error{Code: protocol.Overloaded, RetryAfter: time.Second, Detail: "Too many callers at once; try again."}
	}
	p.free.Set(key, next)
	if g.shared.Load() {
		p.used[key]++
	}
	return nil
}

func (g *gcra) give(key string) {
	p := g.part(key)
	p.Lock()
	defer p.Unlock()
	if at := p.free.Free(key); at != 0 {
		p.free.Set(key, at-int64(g.cell.Every))
	}
	if p.used[key] > 0 {
		p.used[key]--
	}
}

func (g *gcra) left(key string) (int, time.Duration) {
	now := time.Now().UnixNano()
	p := g.part(key)
	p.Lock()
	defer p.Unlock()
	used := time.Duration(max(p.free.Free(key)-now, 0))
	return int(g.cell.Burst) - int((used+g.cell.Every-1)/g.cell.Every), used
}
