package federation

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"stoa/protocol/netx"
	"stoa/storage"
)

// Anyone can send a request with a made-up signature and so cause this node to
// fetch the key that it names, from any host. Such fetches have separate places:
// slow hosts delay neither deliveries nor walks, and one domain or one client
// network cannot occupy all places.
const (
	strangersInAll      = 64
	strangersOfDomain   = 8
	strangersOfNetwork  = 8
	strangersUndisputed = 2 * time.Second // after it, a fetch can be cancelled for a new one
)

// errBusy is returned when a fetch got no place, or was cancelled for another.
var errBusy = errors.New("too many keys of hosts that are not known yet are being fetched")

// A claimant is the sender of an unverified request that causes a fetch.
type claimant struct{ network string }

type strangerKey struct{}

// forStranger marks fetches under ctx as caused by an unverified request of a
// client network, "" if that is not known.
func forStranger(ctx context.Context, network string) context.Context {
	return context.WithValue(ctx, strangerKey{}, &claimant{network})
}

func strangerOf(ctx context.Context) *claimant {
	s, _ := ctx.Value(strangerKey{}).(*claimant)
	return s
}

// place waits for a slot to a host; for a stranger's fetch it takes a stranger's
// place or fails at once. The fetch runs under the returned context.
func (f *Federation) place(ctx context.Context, host string) (context.Context, func(), error) {
	if s := strangerOf(ctx); s != nil {
		return f.strangers.enter(ctx, netx.Registrable(host), s.network)
	}
	release, err := f.hosts.take(ctx, host)
	return ctx, release, err
}

// unavailableOrBusy is the reason why a request under ctx failed.
func unavailableOrBusy(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errBusy) {
		return errBusy
	}
	return errUnavailable
}

// places limit the concurrent fetches of strangers.
type places struct {
	mu         sync.Mutex // guards what follows
	undisputed time.Duration
	under      []*placed // oldest first
}

type placed struct {
	domain, network string
	since           time.Time
	cancel          context.CancelCauseFunc
}

// enter takes a place for a domain named by a client network. If its limit is
// reached, the oldest fetch that counts against the limit is cancelled, unless it
// is young.
func (p *places) enter(ctx context.Context, domain, network string) (context.Context, func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, bound := range []struct {
		most   int
		counts func(*placed) bool
	}{
		{strangersOfDomain, func(o *placed) bool { return o.domain == domain }},
		{strangersOfNetwork, func(o *placed) bool { return network != "" && o.network == network }},
		{strangersInAll, func(*placed) bool { return true }},
	} {
		first, n := -1, 0
		for i, o := range p.under {
			if bound.counts(o) {
				if n++; first < 0 {
					first = i
				}
			}
		}
		if n < bound.most {
			continue
		}
		if time.Since(p.under[first].since) < p.undisputed {
			return ctx, nil, errBusy
		}
		p.under[first].cancel(errBusy)
		p.under = slices.Delete(p.under, first, first+1)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	own := &placed{domain, network, time.Now(), cancel}
	p.under = append(p.under, own)
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.under, own); i >= 0 {
			p.under = slices.Delete(p.under, i, i+1)
		}
		cancel(nil)
	}, nil
}

// growth counts the rows that this process adds to the stocks that strangers can
// grow.
type growth struct {
	mu    sync.Mutex // guards added
	added map[storage.Stock]int
	caps  map[storage.Stock]storage.Cap
}

// grow queues an evict job for a stock, in the transaction that adds to it: at the
// first row that this process adds, and then after each 64th part of the cap. A job
// does the work, since the time of measuring a stock grows with its size. The job
// comes before all others that wait: under a flood both grow.
func (f *Federation) grow(ctx context.Context, tx *storage.Tx, of storage.Stock) error {
	g := &f.growth
	g.mu.Lock()
	due := g.added[of]%max(g.caps[of].Rows/64, 1) == 0
	g.added[of]++
	g.mu.Unlock()
	if !due {
		return nil
	}
	return tx.Jobs().EnqueueEvict(ctx, of)
}

func (f *Federation) evict(ctx context.Context, j storage.Job) (after, error) {
	of := storage.Stock(j.Args)
	n, err := f.c.DB.Evict(ctx, of, f.growth.caps[of])
	if n > 0 {
		f.log.Info("evicted", "stock", of, "rows", n)
	}
	return nil, err
}
