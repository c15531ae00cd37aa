package erc8004

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common/hexutil"
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
// identities are only looked up, and payments only used up, when it matters.
func (r *Reader) pay(ctx context.Context, c *chain, key string, good bool) error {
	source, _ := ctx.Value(sourceKey{}).(string)
	if !good {
		err := c.budget.take(c.now(), asker{source, stranger})
		if err == nil {
			return nil
		}
		if r.known != nil {
			var unknown error
			if good, unknown = r.known(ctx, key); unknown != nil {
				return fmt.Errorf("%w: which identities are known: %w", ErrUnavailable, unknown)
			}
		}
		if !good {
			return c.payFor(ctx, asker{source, paying}, err)
		}
	}
	return c.budget.take(c.now(), asker{source, known})
}

// payFor counts a read that the caller pays for; refused is the error without a payment. Nothing is paid where there is no room.
func (c *chain) payFor(ctx context.Context, who asker, refused error) error {
	pay, ok := ctx.Value(paymentKey{}).(func(context.Context) error)
	if !ok {
		return refused
	}
	if err := c.budget.room(c.now(), who); err != nil {
		return err
	}
	if err := pay(ctx); err != nil {
		return &BudgetError{Payment: err}
	}
	return c.budget.take(c.now(), who)
}

// read takes one snapshot at the poller's head, or at that of the endpoints, and determines whether
// its authority is final.
func (r *Reader) read(ctx context.Context, c *chain, id ID, key string) (*entry, error) {
	old, _ := r.cache.GetIfPresent(key)
	if old != nil && old.pending > 0 {
		old = old.kept
	}
	p := c.panel()
	v, epoch, covered := c.current()
	snap, err := (*Snapshot)(nil), error(errUnknownBlock)
	for tries := 0; tries < 2 && errors.Is(err, errUnknownBlock); tries++ {
		// The block was orphaned, or the endpoints do not have its state any more: the head is read again, once.
		if covered = covered && tries == 0; !covered {
			if v, _, err = c.look(ctx, p, nil); err != nil {
				return nil, err
			}
		}
		snap, err = c.snapshot(ctx, p, id, v.head)
	}
	if err != nil {
		return nil, err
	}
	e := &entry{key: key, display: id.Display(), snap: snap, block: uint64(v.head.Number), final: v.final, epoch: epoch, at: c.now()}
	if snap == nil {
		return e, nil
	}
	snap.ReadAt = e.at
	if e.keys, err = r.judge(ctx, snap, snap.Keys); err != nil {
		return nil, err
	}
	ch, since, err := c.changesOf(ctx, p, id, e, old, v.head, covered)
	if err != nil || ch.last <= e.final {
		return e, err
	}
	e.pending = ch.last
	// The old entry is the final state if nothing changed between the finality at which it was read and the current one.
	if old != nil && old.snap != nil && max(since, ch.settled) <= old.final && ch.first > e.final {
		e.kept = old
	} else if e.kept = c.finalState(ctx, p, id, e); e.kept != nil {
		e.kept.keys, err = r.judge(ctx, e.kept.snap, e.kept.snap.Keys)
	}
	return e, err
}

// finalState reads the final state of a pending entry, so that an owner's new wallet does not
// interrupt a key that both states name. It is nil where the endpoint does not have that state: then
// the key waits for finality.
func (c *chain) finalState(ctx context.Context, p *panel, id ID, e *entry) *entry {
	at, err := agree(ctx, p, func(ctx context.Context, ep *endpoint) (header, error) {
		all, err := ep.headers(ctx, c.ID, []hexutil.Uint64{hexutil.Uint64(e.final)})
		if err != nil {
			return header{}, err
		}
		return all[0], nil
	}, header.mark)
	if err != nil {
		return nil
	}
	snap, err := c.snapshot(ctx, p, id, at)
	if err != nil || snap == nil {
		return nil
	}
	snap.ReadAt = e.at
	return &entry{key: e.key, display: e.display, snap: snap, block: e.final, final: e.final, epoch: e.epoch, at: e.at}
}

// changesOf returns the agent's changes of authority in the blocks after since: from the poller if
// its events reach far enough, otherwise from the endpoints.
func (c *chain) changesOf(ctx context.Context, p *panel, id ID, e, old *entry, head header, covered bool) (change, uint64, error) {
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
	ch, err := agree(ctx, p, func(ctx context.Context, ep *endpoint) (change, error) {
		return c.changes(ctx, ep, id, since+1, head)
	}, func(ch change) string { return fmt.Sprint(ch.first, ch.last) })
	return ch, since, err
}
