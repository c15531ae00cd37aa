package erc8004

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"
)

// How long an agent's snapshot is used. Authority has a life of its own: a key
// never changes under its thumbprint, its authority does.
const (
	ttlPolled   = 5 * time.Minute // with a poller that sees every event
	ttlAlone    = time.Minute     // without one, or when it is behind
	ttlMissing  = 30 * time.Second
	maxAttempts = 3 // reads of one lookup that events overtook
)

// A Reader answers who speaks for an agent. It may be used at once from many
// goroutines.
type Reader struct {
	chains       map[uint64]*chain
	cache        *otter.Cache[string, *entry]
	flight       singleflight.Group
	memory       Memory
	records      Records
	log          *slog.Logger
	now          func() time.Time
	allowPending bool
}

// NewReader checks the configuration and dials nothing.
func NewReader(cfg Config) (*Reader, error) {
	setDefault(&cfg.CacheEntries, 50_000)
	setDefault(&cfg.ReadsPerSec, 20)
	setDefault(&cfg.ReadBurst, 40)
	r := &Reader{chains: map[uint64]*chain{}, memory: cfg.Memory, records: cfg.Records, log: cfg.Log,
		now: time.Now, allowPending: cfg.AllowPending}
	if r.memory == nil {
		r.memory = newMemory()
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if r.cache, err = otter.New(&otter.Options[string, *entry]{MaximumSize: cfg.CacheEntries}); err != nil {
		return nil, err
	}
	for _, c := range cfg.Chains {
		final, err := c.normalise()
		if err != nil {
			return nil, err
		}
		if r.chains[c.ID] != nil {
			return nil, fmt.Errorf("chain %d: listed twice", c.ID)
		}
		ch, err := newChain(c, final, &cfg, r.log)
		if err != nil {
			return nil, err
		}
		ch.drop = func(key string) { r.cache.Invalidate(key) }
		r.chains[c.ID] = ch
	}
	return r, nil
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// Snapshot returns what the registry says about the agent, from the cache or
// in one batch of reads at one block. It may be up to a minute old, or five
// while [Reader.Run] sees the events. The errors are ErrChainNotSupported,
// ErrRegistryNotAllowed, ErrNotRegistered and ErrUnavailable. Its byte slices
// belong to the Reader.
func (r *Reader) Snapshot(ctx context.Context, id ID) (Snapshot, error) {
	e, err := r.lookup(ctx, id)
	if err != nil {
		return Snapshot{}, err
	}
	return *e.snap, nil
}

// chainOf applies the operator's lists (ERC-8004 knows no root of trust but them).
func (r *Reader) chainOf(id ID) (*chain, error) {
	c := r.chains[id.ChainID]
	if c == nil {
		return nil, fmt.Errorf("%w: %d", ErrChainNotSupported, id.ChainID)
	}
	if !c.allowed(id.Registry) {
		return nil, fmt.Errorf("%w: %s on chain %d", ErrRegistryNotAllowed, id.Registry, id.ChainID)
	}
	if id.AgentID == nil || id.AgentID.Sign() < 0 || id.AgentID.BitLen() > 256 {
		return nil, fmt.Errorf("%w: agent id out of range", ErrInvalidID)
	}
	return c, nil
}

// An entry is one cached agent.
type entry struct {
	key, display string    // the agent's id, in both spellings
	snap         *Snapshot // nil when there is no such agent
	keys         *keySet   // of the on-chain record; nil when it has none that counts
	block        uint64
	final        uint64 // finality at the read
	epoch        uint64
	at           time.Time

	// A change of authority at block pending was not final at the read. kept is
	// the entry that still describes the final state, if that is known.
	pending uint64
	kept    *entry

	file fileCache
}

// usable reports whether a cached entry still counts; overtaken when an event
// or a reorganisation made it stale, whatever its age.
func (c *chain) usable(e *entry) (ok, overtaken bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.events[e.key]; e.epoch != c.epoch || ch != nil && ch.seen > e.block {
		return false, true
	}
	ttl := ttlAlone
	switch healthy := c.healthy(now); {
	case e.snap == nil:
		ttl = ttlMissing
	case healthy && e.pending > 0 && c.view.final >= e.pending:
		// Final by number. The block itself may have been replaced: read again.
		return false, false
	case healthy:
		ttl = ttlPolled
	case e.pending > 0:
		ttl = min(ttlAlone, c.Poll)
	}
	return now.Sub(e.at) < ttl, false
}

// lookup returns a usable entry with a snapshot.
func (r *Reader) lookup(ctx context.Context, id ID) (*entry, error) {
	c, err := r.chainOf(id)
	if err != nil {
		return nil, err
	}
	c.lastUse.Store(c.now().UnixNano())
	key := id.String()
	e, ok := r.cache.GetIfPresent(key)
	if ok {
		ok, _ = c.usable(e)
	}
	if !ok {
		if e, err = r.load(ctx, c, id, key); err != nil {
			return nil, err
		}
	}
	if e.snap == nil {
		return nil, ErrNotRegistered
	}
	return e, nil
}

// load reads the agent, once for all who ask for it at the same time.
func (r *Reader) load(ctx context.Context, c *chain, id ID, key string) (*entry, error) {
	done := r.flight.DoChan(key, func() (any, error) {
		// The read is shared, so it must outlive the request that began it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		for range maxAttempts {
			e, err := r.read(ctx, c, id, key)
			if err != nil {
				return nil, err
			}
			if _, overtaken := c.usable(e); !overtaken {
				r.cache.Set(key, e)
				return e, nil
			}
		}
		return nil, fmt.Errorf("%w: agent changes faster than it can be read", ErrUnavailable)
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case res := <-done:
		if res.Err != nil {
			return nil, res.Err
		}
		return res.Val.(*entry), nil
	}
}

// read takes one snapshot at the poller's head, or else at the endpoint's own,
// and finds out whether its authority is final.
func (r *Reader) read(ctx context.Context, c *chain, id ID, key string) (*entry, error) {
	if !c.budget.take(c.now()) {
		return nil, fmt.Errorf("%w: budget of chain reads is spent", ErrUnavailable)
	}
	old, _ := r.cache.GetIfPresent(key)
	if old != nil && old.pending > 0 {
		old = old.kept
	}
	var e *entry
	err := c.try(ctx, func(ctx context.Context, ep *endpoint) error {
		v, epoch, covered := c.current()
		var err error
		if !covered {
			if v, _, err = c.look(ctx, ep, nil); err != nil {
				return err
			}
		}
		snap, err := ep.snapshot(ctx, id, v.head)
		if errors.Is(err, errUnknownBlock) {
			// Orphaned meanwhile, or this endpoint has not seen it yet.
			covered = false
			if v, _, err = c.look(ctx, ep, nil); err != nil {
				return err
			}
			snap, err = ep.snapshot(ctx, id, v.head)
		}
		missing := errors.Is(err, ErrNotRegistered)
		if err != nil && !missing {
			return err
		}
		e = &entry{key: key, display: id.Display(), snap: snap, block: uint64(v.head.Number), final: v.final, epoch: epoch, at: c.now()}
		if missing {
			return nil
		}
		snap.ReadAt = e.at
		ch, since, err := c.changesOf(ctx, ep, id, e, old, covered)
		if err != nil {
			return err
		}
		if ch.last > e.final {
			e.pending = ch.last
			// The old entry speaks for the final state if nothing changed
			// between the finality it was read under and the present one.
			if old != nil && old.snap != nil && max(since, ch.settled) <= old.final && ch.first > e.final {
				e.kept = old
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if e.snap != nil {
		e.keys, err = r.judge(ctx, e.snap, e.snap.Keys, 0)
	}
	return e, err
}

// changesOf returns the agent's changes of authority in the blocks after since:
// from the poller where its events reach far enough, else from the endpoint.
func (c *chain) changesOf(ctx context.Context, ep *endpoint, id ID, e, old *entry, covered bool) (change, uint64, error) {
	if covered {
		c.mu.Lock()
		defer c.mu.Unlock()
		since := c.since
		if old != nil && old.epoch != c.epoch {
			since = e.final
		}
		if ch := c.events[e.key]; ch != nil {
			return *ch, since, nil
		}
		return change{}, since, nil
	}
	since := e.final
	if old != nil && old.final < since && e.block-old.final <= 4*c.LogRange {
		since = old.final
	}
	ch, err := c.changes(ctx, ep, id, since+1, e.block)
	return ch, since, err
}

// Check asks every endpoint-independent question about the configured
// registries: that there is a contract, that it is an ERC-721 token and that the
// reputation registry points back at it. All faults are joined.
func (r *Reader) Check(ctx context.Context) error {
	var faults []error
	for _, c := range r.chains {
		for _, reg := range c.Registries {
			if err := c.check(ctx, reg); err != nil {
				faults = append(faults, fmt.Errorf("chain %d registry %s: %w", c.ID, reg.Identity, err))
			}
		}
	}
	return errors.Join(faults...)
}

func (c *chain) check(ctx context.Context, reg Registry) error {
	calls := []call{{reg.Identity, mustPack("supportsInterface", [4]byte{0x80, 0xac, 0x58, 0xcd}), callGas}}
	if reg.Reputation != (common.Address{}) {
		calls = append(calls, call{reg.Reputation, mustPack("getIdentityRegistry"), callGas})
	}
	var got []answer
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := c.try(ctx, func(ctx context.Context, e *endpoint) error {
		v, _, err := c.look(ctx, e, nil)
		if err == nil {
			got, err = e.callAt(ctx, c.ID, v.head, calls)
		}
		return err
	})
	if err != nil {
		return err
	}
	if is, err := result[bool]("supportsInterface", got[0]); err != nil || !is {
		return errors.Join(errors.New("not an ERC-721 contract"), err)
	}
	if len(got) > 1 {
		if back, err := result[common.Address]("getIdentityRegistry", got[1]); err != nil || back != reg.Identity {
			return errors.Join(fmt.Errorf("reputation registry points at %s", back), err)
		}
	}
	return nil
}
