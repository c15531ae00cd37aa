package erc8004

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// load reads the agent, once for all concurrent callers. The read is counted for the first caller;
// when that is refused, for the next.
func (r *Reader) load(ctx context.Context, c *chain, id ID, key string) (*entry, error) {
	for {
		e, paid, err := r.loadOnce(ctx, c, id, key)
		if spent := (*BudgetError)(nil); paid || !errors.As(err, &spent) {
			return e, err
		}
	}
}

// loadOnce reports whether the read was counted for this caller.
func (r *Reader) loadOnce(ctx context.Context, c *chain, id ID, key string) (e *entry, paid bool, err error) {
	var first atomic.Bool
	done := r.flight.DoChan(key, func() (any, error) {
		first.Store(true)
		old, _ := r.cache.GetIfPresent(key)
		if err := r.pay(ctx, c, key, old != nil && (old.kept != nil || old.keys.proven())); err != nil {
			return nil, err
		}
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
		return nil, true, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case res := <-done:
		e, _ := res.Val.(*entry)
		return e, first.Load(), res.Err
	}
}

// pay counts one read: in the budget of new identities while there is room, so that known
// identities are only looked up when it matters.
func (r *Reader) pay(ctx context.Context, c *chain, key string, good bool) error {
	source, _ := ctx.Value(sourceKey{}).(string)
	if !good {
		err := c.budget.take(c.now(), asker{source: source})
		if err == nil || r.known == nil {
			return err
		}
		known, unknown := r.known(ctx, key)
		if unknown != nil {
			return fmt.Errorf("%w: which identities are known: %w", ErrUnavailable, unknown)
		}
		if !known {
			return err
		}
	}
	return c.budget.take(c.now(), asker{source, true})
}

// read takes one snapshot at the poller's head, or at the endpoint's own, and determines whether
// its authority is final.
func (r *Reader) read(ctx context.Context, c *chain, id ID, key string) (*entry, error) {
	old, _ := r.cache.GetIfPresent(key)
	if old != nil && old.pending > 0 {
		old = old.kept
	}
	var e, asked *entry // asked: the final state, when it was read too
	err := c.try(ctx, func(ctx context.Context, ep *endpoint) error {
		v, epoch, covered := c.current()
		asked = nil
		var err error
		if !covered {
			if v, _, err = c.readBlocks(ctx, ep, nil); err != nil {
				return err
			}
		}
		snap, err := ep.snapshot(ctx, id, v.head)
		if errors.Is(err, errUnknownBlock) {
			// The block was orphaned, or this endpoint does not have it yet.
			covered = false
			if v, _, err = c.readBlocks(ctx, ep, nil); err != nil {
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
			// The old entry is the final state if nothing changed between the finality at which it
			// was read and the current one.
			if old != nil && old.snap != nil && max(since, ch.settled) <= old.final && ch.first > e.final {
				e.kept = old
			} else {
				asked = c.finalState(ctx, ep, id, e)
				e.kept = asked
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if e.snap != nil {
		e.keys, err = r.judge(ctx, e.snap, e.snap.Keys)
	}
	if err == nil && asked != nil {
		asked.keys, err = r.judge(ctx, asked.snap, asked.snap.Keys)
	}
	return e, err
}

// finalState reads the final state of a pending entry, so that an owner's new wallet does not
// interrupt a key that both states name. It is nil where the endpoint does not have that state: then
// the key waits for finality.
func (c *chain) finalState(ctx context.Context, ep *endpoint, id ID, e *entry) *entry {
	var at *header
	el := []rpc.BatchElem{headerElem(hexutil.EncodeUint64(e.final), &at)}
	if ep.batch(ctx, c.ID, el) != nil || el[0].Error != nil || at == nil {
		return nil
	}
	snap, err := ep.snapshot(ctx, id, *at)
	if err != nil {
		return nil
	}
	snap.ReadAt = e.at
	return &entry{key: e.key, display: e.display, snap: snap, block: e.final, final: e.final, epoch: e.epoch, at: e.at}
}

// changesOf returns the agent's changes of authority in the blocks after since: from the poller if
// its events reach far enough, otherwise from the endpoint.
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
