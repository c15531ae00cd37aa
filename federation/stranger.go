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

// Anybody can send a request with a made-up signature and so make this node fetch
// the key that it names, wherever that is. Such fetches have places of their own:
// slow hosts hold up neither deliveries nor walks, and one domain or one client
// network cannot have all of the places.
const (
	strangersInAll      = 64
	strangersOfDomain   = 8
	strangersOfNetwork  = 8
	strangersUndisputed = 2 * time.Second // then a fetch gives way to one that has no place
)

// errBusy says that a fetch had no place, or had to give way.
var errBusy = errors.New("too many keys of hosts that are not known yet are being fetched")

// A claimant is who causes a fetch by a request that is not verified.
type claimant struct{ network string }

type strangerKey struct{}

// forStranger marks what is fetched under ctx as caused by an unverified request
// of a client network, "" where that is not known.
func forStranger(ctx context.Context, network string) context.Context {
	return context.WithValue(ctx, strangerKey{}, &claimant{network})
}

func strangerOf(ctx context.Context) *claimant {
	s, _ := ctx.Value(strangerKey{}).(*claimant)
	return s
}

// place waits for a slot to a host, or takes a stranger's place at once or not at
// all. The fetch runs under the returned context.
func (f *Federation) place(ctx context.Context, host string) (context.Context, func(), error) {
	if s := strangerOf(ctx); s != nil {
		return f.strangers.enter(ctx, netx.Registrable(host), s.network)
	}
	release, err := f.hosts.take(ctx, host)
	return ctx, release, err
}

// awayOrBusy is why a request under ctx failed.
func awayOrBusy(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errBusy) {
		return errBusy
	}
	return errAway
}

// places are what strangers' fetches are under way in.
type places struct {
	mu    sync.Mutex // guards under
	under []*placed  // the longest under way first
}

type placed struct {
	domain, network string
	since           time.Time
	giveWay         context.CancelCauseFunc
}

// enter takes a place for a domain that a client network names. Where its bound is
// reached, the longest fetch that counts for it gives way, unless it is young.
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
		if time.Since(p.under[first].since) < strangersUndisputed {
			return ctx, nil, errBusy
		}
		p.under[first].giveWay(errBusy)
		p.under = slices.Delete(p.under, first, first+1)
	}
	ctx, giveWay := context.WithCancelCause(ctx)
	mine := &placed{domain, network, time.Now(), giveWay}
	p.under = append(p.under, mine)
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.under, mine); i >= 0 {
			p.under = slices.Delete(p.under, i, i+1)
		}
		giveWay(nil)
	}, nil
}

// growth counts what this process adds to the stocks that strangers grow.
type growth struct {
	mu    sync.Mutex // guards added
	added map[storage.Stock]int
	caps  map[storage.Stock]storage.Cap
}

// evictKind is the job that makes room in a stock, which its arguments name.
const evictKind = "evict"

// grow has room made in a stock, in the transaction that adds to it: at the first row
// that this process adds, and then for each sixty-fourth part of the cap. A job does
// it, since measuring a stock takes as long as it is large. It comes before all that
// waits: under a flood both grow.
func (f *Federation) grow(ctx context.Context, tx *storage.Tx, of storage.Stock) error {
	g := &f.growth
	g.mu.Lock()
	due := g.added[of]%max(g.caps[of].Rows/64, 1) == 0
	g.added[of]++
	g.mu.Unlock()
	if !due {
		return nil
	}
	return tx.Enqueue(ctx, storage.Job{Kind: evictKind, Lane: evictKind, Dedupe: evictKind + " " + string(of), Args: []byte(of), RunAt: tx.Now.Add(-time.Hour)})
}

func (f *Federation) evict(ctx context.Context, j storage.Job) (after, error) {
	of := storage.Stock(j.Args)
	n, err := f.c.DB.Evict(ctx, of, f.growth.caps[of])
	if n > 0 {
		f.log.Info("evicted", "stock", of, "rows", n)
	}
	return nil, err
}
