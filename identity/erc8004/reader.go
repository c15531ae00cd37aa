package erc8004

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"
)

// How long an agent's snapshot is used. Authority has its own lifetime: the key of a thumbprint
// never changes, its authority does.
const (
	ttlPolled   = 5 * time.Minute // with a poller that sees every event
	ttlAlone    = time.Minute     // without one, or when it is behind
	ttlMissing  = 30 * time.Second
	maxAttempts = 3 // reads of one lookup that events overtook
)

// A Reader determines which keys are authorised for an agent. It is safe for concurrent use.
type Reader struct {
	chains       map[uint64]*chain
	cache        *otter.Cache[string, *entry]
	flight       singleflight.Group
	memory       Memory
	known        func(context.Context, string) (bool, error)
	log          *slog.Logger
	now          func() time.Time
	allowPending bool
}

// NewReader checks the configuration; it does not dial.
func NewReader(cfg Config) (*Reader, error) {
	setDefault(&cfg.CacheEntries, 50_000)
	setDefault(&cfg.ReadsPerSec, 20)
	setDefault(&cfg.ReadBurst, 40)
	r := &Reader{chains: map[uint64]*chain{}, memory: cfg.Memory, known: cfg.Known, log: cfg.Log,
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
	chains, err := merged(cfg.Chains)
	if err != nil {
		return nil, err
	}
	for _, c := range chains {
		final, err := c.normalise()
		if err != nil {
			return nil, err
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

// Snapshot returns the registry's data about the agent, from the cache or in one batch of reads at
// one block. It may be up to a minute old, or five while [Reader.Run] sees the events. The errors
// are ErrChainNotSupported, ErrRegistryNotAllowed, ErrNotRegistered and ErrUnavailable. Its byte
// slices belong to the Reader.
func (r *Reader) Snapshot(ctx context.Context, id ID) (Snapshot, error) {
	e, err := r.lookup(ctx, id)
	if err != nil {
		return Snapshot{}, err
	}
	return *e.snap, nil
}

// chainOf applies the operator's lists, which are the only root of trust of ERC-8004.
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
	key, display string    // the agent's id, in both forms
	snap         *Snapshot // nil when the agent does not exist
	keys         *keySet   // of the on-chain record; nil when there is no valid one
	block        uint64
	final        uint64 // finality at the read
	epoch        uint64
	at           time.Time

	// A change of authority at block pending was not final at the read. kept is the entry with the
	// final state, if that is known.
	pending uint64
	kept    *entry
}

// usable reports whether a cached entry is still valid; overtaken when an event or a
// reorganisation made it stale, whatever its age.
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
		// Final by number. The block itself may have been replaced, so read again.
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
