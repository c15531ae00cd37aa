package erc8004

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"golang.org/x/sync/singleflight"
)

// A chain is the state of the Reader for one chain.
type chain struct {
	Chain
	final     finality
	endpoints []*endpoint
	budget    *budget
	differed  atomic.Uint64 // how often endpoints gave different answers
	now       func() time.Time
	log       *slog.Logger
	drop      func(key string) // removes a cached agent
	changed   func(Changes)

	polling sync.Mutex         // held during one poll
	fresh   singleflight.Group // looks that callers wait for

	lastUse  atomic.Int64 // Unix nanoseconds of the last lookup
	logRange atomic.Uint64

	feedbackRange atomic.Uint64 // blocks of one eth_getLogs for feedback

	mu       sync.Mutex // guards all below
	view     view       // head that the events below reach; zero before the first look
	since    uint64     // events are complete from the block after since
	covered  bool       // view, since and events are complete without a gap
	lookedAt time.Time  // end of the last good look
	epoch    uint64     // incremented when all cached entries become invalid
	setting  error      // what the last check found wrong with the setting
	failed   bool       // no endpoint answered the last attempt
	events   map[string]*change
}

// A view is a head and the finality that was read with it.
type view struct {
	head  header
	final uint64
}

// A change is what the events of one agent show.
type change struct {
	seen        uint64 // block of the last event of any kind: an older snapshot is stale
	first, last uint64 // blocks of the first and last change of authority, 0 for none
	settled     uint64 // block of the last change that was final before first
	at          time.Time
}

// add records an event, given the finality at that time.
func (ch *change) add(block uint64, authority bool, final uint64) {
	ch.seen = max(ch.seen, block)
	if !authority {
		return
	}
	if ch.last > 0 && ch.last <= final && block > final {
		ch.settled, ch.first = ch.last, 0
	}
	if ch.first == 0 || block < ch.first {
		ch.first = block
	}
	ch.last = max(ch.last, block)
}

func newChain(c Chain, final finality, cfg *Config, log *slog.Logger) (*chain, error) {
	ch := &chain{Chain: c, final: final, now: time.Now, log: log, events: map[string]*change{}, changed: cfg.Changed,
		budget: newBudget(cfg.ReadsPerSec, cfg.ReadBurst)}
	ch.logRange.Store(c.LogRange)
	ch.feedbackRange.Store(c.LogRange)
	hc := httpClient(cfg.HTTPClient)
	for _, u := range c.RPC {
		client, err := rpc.DialOptions(context.Background(), u, rpc.WithHTTPClient(hc)) // dials nothing yet
		if err != nil {
			return nil, fmt.Errorf("chain %d: %w", c.ID, err)
		}
		ch.endpoints = append(ch.endpoints, &endpoint{name: hostOf(u), client: client})
	}
	return ch, nil
}

// allowed reports whether the operator listed the registry.
func (c *chain) allowed(registry common.Address) bool {
	for _, r := range c.Registries {
		if r.Identity == registry {
			return true
		}
	}
	return false
}

func (c *chain) setReachable(yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = !yes
}

// readBlocks reads head and finality of one endpoint. With prev it also returns the header that is now
// at prev's height.
func (c *chain) readBlocks(ctx context.Context, e *endpoint, prev *header) (v view, there *header, err error) {
	var head, final *header
	elems := []rpc.BatchElem{headerElem("latest", &head)}
	if c.final.tag != "" {
		elems = append(elems, headerElem(c.final.tag, &final))
	}
	if prev != nil {
		elems = append(elems, headerElem(prev.Number.String(), &there))
	}
	if err := e.batch(ctx, c.ID, elems); err != nil {
		return v, nil, err
	}
	for _, el := range elems {
		if el.Error != nil {
			return v, nil, fmt.Errorf("eth_getBlockByNumber %v: %w", el.Args[0], el.Error)
		}
	}
	if head == nil || c.final.tag != "" && final == nil {
		return v, nil, fmt.Errorf("no %s block (set finality to depth:<n> for chains without the tag)", c.final.tag)
	}
	if age := head.age(c.now()); age > c.MaxHeadAge {
		return v, nil, fmt.Errorf("%w: %s", errStuck, age.Round(time.Second))
	}
	v.head = *head
	switch n := uint64(head.Number); {
	case final != nil:
		v.final = min(uint64(final.Number), n)
	case n > c.final.depth:
		v.final = n - c.final.depth
	}
	return v, there, nil
}

// look reads a head and the finality on which a quorum agrees, and with prev the header that is now at its height. Each endpoint of the
// quorum has reached that head, says that the blocks up to that finality are final, and has the same header at that height; so no single
// endpoint can name a block, or call one final. One that is behind can hold the view back, until its head is too old.
func (c *chain) look(ctx context.Context, p *panel, prev *header) (view, header, error) {
	type answer struct {
		view
		there header
	}
	all, err := gather(ctx, p, func(ctx context.Context, e *endpoint) (a answer, err error) {
		v, there, err := c.readBlocks(ctx, e, prev)
		if err == nil && prev != nil {
			if there == nil || v.head.Number < prev.Number {
				return a, errBehind
			}
			a.there = *there
		}
		a.view = v
		return a, err
	}, any1)
	if err != nil {
		return view{}, header{}, err
	}
	least := all[0]
	for _, a := range all {
		if a.head.Number < least.head.Number {
			least.head = a.head
		}
		least.final = min(least.final, a.final)
	}
	if p.quorum == 1 {
		return least.view, least.there, nil
	}
	same, err := agree(ctx, p, func(ctx context.Context, e *endpoint) (a answer, err error) {
		numbers := []hexutil.Uint64{least.head.Number}
		if prev != nil {
			numbers = append(numbers, prev.Number)
		}
		found, err := e.headers(ctx, c.ID, numbers)
		if err != nil {
			return a, err
		}
		if a.head = found[0]; prev != nil {
			a.there = found[1]
		}
		return a, nil
	}, func(a answer) string { return a.head.mark() + a.there.mark() })
	return view{same.head, least.final}, same.there, err
}

// healthy reports whether the poller keeps the view fresh. It needs c.mu.
func (c *chain) healthy(now time.Time) bool {
	return c.covered && now.Sub(c.lookedAt) <= 3*c.Poll && c.view.head.age(now) <= c.MaxHeadAge
}

// current returns the poller's view, if it is reliable.
func (c *chain) current() (v view, epoch uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view, c.epoch, c.healthy(c.now())
}

// advance adopts a look of the poller and the events up to its head. reset discards what was known
// before.
func (c *chain) advance(v view, logs []logEntry, reset bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if reset {
		c.epoch++
		c.since, c.events = v.final, map[string]*change{}
	} else {
		v.final = max(v.final, c.view.final) // endpoints differ; what was final stays final
	}
	for _, l := range logs {
		if l.Topics[0] == topicUpgraded {
			c.log.Error("identity registry was upgraded", "chain", c.ID, "registry", l.Address, "block", uint64(l.Block))
			c.epoch++
			continue
		}
		key := ID{c.ID, l.Address, l.agent()}.String()
		ch := c.events[key]
		if ch == nil {
			ch = &change{}
			c.events[key] = ch
		}
		ch.add(uint64(l.Block), l.authority(), v.final)
		ch.at = now
	}
	c.view, c.covered, c.lookedAt = v, true, now
	for key, ch := range c.events {
		// Reads that began before the event are over by then.
		if max(ch.seen, ch.last) <= v.final && now.Sub(ch.at) > 2*readTimeout {
			delete(c.events, key)
			c.drop(key)
		}
	}
}

// forget discards everything that came from the poller.
func (c *chain) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.covered {
		c.covered, c.events = false, map[string]*change{}
		c.epoch++
	}
}
