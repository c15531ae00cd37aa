package erc8004

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// A Lag says how far the final state of a chain is behind its head.
type Lag struct {
	Head, Final     uint64
	HeadAt, FinalAt time.Time // when these blocks were made
}

// Lag reads head and finality of a chain. Errors are ErrChainNotSupported and ErrUnavailable.
func (r *Reader) Lag(ctx context.Context, chainID uint64) (l Lag, err error) {
	c := r.chains[chainID]
	if c == nil {
		return l, ErrChainNotSupported
	}
	err = c.try(ctx, func(ctx context.Context, e *endpoint) error {
		v, _, err := c.readBlocks(ctx, e, nil)
		if err != nil {
			return err
		}
		var final *header
		el := []rpc.BatchElem{headerElem(hexutil.Uint64(v.final).String(), &final)}
		if err := e.batch(ctx, c.ID, el); err != nil {
			return err
		}
		if el[0].Error != nil || final == nil {
			return errors.Join(errBehind, el[0].Error)
		}
		l = Lag{uint64(v.head.Number), v.final, time.Unix(int64(v.head.Time), 0).UTC(), time.Unix(int64(final.Time), 0).UTC()}
		return nil
	})
	return l, err
}

// Until estimates how long it takes until a block at the head, or a little below, is final: as long as it took for the last block that
// is final. Zero when it is final.
func (l Lag) Until(block uint64) time.Duration {
	if block <= l.Final || l.Head <= l.Final {
		return 0
	}
	whole := l.HeadAt.Sub(l.FinalAt)
	return whole - whole*time.Duration(l.Head-min(l.Head, block))/time.Duration(l.Head-l.Final)
}

// An Overview is what the chain says about an agent at its head, and which of it is final.
type Overview struct {
	Snapshot
	Record  []KeyState // the keys of the record that counts, preferred first
	NoKeys  error      // why Record is empty: ErrKeyUnknown (no valid record, or one without keys) or ErrIdentityBound
	Pending bool       // the last change of owner, wallet or keys can still be reverted
}

// A KeyState is a key of an agent. One that is not valid yet waits for finality.
type KeyState struct {
	Key
	Valid bool
}

// Overview reads the agent as [Reader.Snapshot] does, with the same errors.
func (r *Reader) Overview(ctx context.Context, id ID) (Overview, error) {
	e, err := r.lookup(ctx, id)
	if err != nil {
		return Overview{}, err
	}
	o := Overview{Snapshot: *e.snap, Pending: e.pending > 0}
	set, err := r.keysNow(ctx, e)
	switch {
	case errors.Is(err, ErrKeyUnknown) || errors.Is(err, ErrIdentityBound):
		o.NoKeys = err
		return o, nil
	case err != nil:
		return Overview{}, err
	}
	for _, k := range set.rec.Keys {
		valid := !o.Pending
		if !valid {
			if valid, err = r.hadKey(ctx, e, k.Thumbprint); err != nil {
				return Overview{}, err
			}
		}
		o.Record = append(o.Record, KeyState{k, valid})
	}
	if len(o.Record) == 0 {
		o.NoKeys = ErrKeyUnknown
	}
	return o, nil
}

// Differences names what two overviews of one agent differ in: owner, agentWallet, agentURI, keys.
func (o Overview) Differences(later Overview) []string {
	var names []string
	add := func(name string, differs bool) {
		if differs {
			names = append(names, name)
		}
	}
	add("owner", o.Owner != later.Owner)
	add("agentWallet", o.Wallet != later.Wallet)
	add("agentURI", o.URI != later.URI)
	add("keys", !slices.EqualFunc(o.Record, later.Record, func(a, b KeyState) bool { return a.Thumbprint == b.Thumbprint }))
	return names
}

// A Sight is one event of [Reader.Follow].
type Sight struct {
	Kind     string // SightNow, SightChanged, SightFinal, SightReorganised or SightUnreadable
	Changed  []string
	Overview Overview // as it is from now on; empty when Err is set
	Err      error    // ErrNotRegistered: the agent does not exist any more
}

// Kinds of a [Sight].
const (
	SightNow         = "now"         // the first look
	SightChanged     = "changed"     // the agent differs from the last look
	SightFinal       = "final"       // what was pending cannot be reverted any more
	SightReorganised = "reorganised" // the block of the last look is not of the chain any more
	SightUnreadable  = "unreadable"  // the chain cannot be read; said once until it can be
)

// Follow looks at an agent at once and after each pause, and reports what it sees, until ctx ends or report returns false. While
// [Reader.Run] runs, a look without news costs no call. An agent that does not exist at the first look is an error.
func (r *Reader) Follow(ctx context.Context, id ID, pause time.Duration, report func(Sight) bool) error {
	last, err := r.Overview(ctx, id)
	if err != nil {
		return err
	}
	if !report(Sight{Kind: SightNow, Overview: last}) {
		return nil
	}
	var failed error
	t := time.NewTicker(pause)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		now, err := r.Overview(ctx, id)
		if err != nil {
			if ctx.Err() == nil && failed == nil && !report(Sight{Kind: SightUnreadable, Err: err}) {
				return nil
			}
			failed = err
			continue
		}
		failed = nil
		for _, s := range r.sights(ctx, last, now) {
			if !report(s) {
				return nil
			}
		}
		last = now
	}
}

// sights returns what is to be reported when last is followed by now.
func (r *Reader) sights(ctx context.Context, last, now Overview) (all []Sight) {
	changed := last.Differences(now)
	if now.ReadAt != last.ReadAt {
		hashes, err := r.BlockHashes(ctx, last.ID.ChainID, []uint64{last.Block})
		if err == nil && hashes[0] != "" && hashes[0] != last.BlockHash.Hex() {
			all = append(all, Sight{Kind: SightReorganised, Changed: changed, Overview: now})
		}
	}
	switch {
	case len(changed) > 0 && len(all) == 0:
		all = append(all, Sight{Kind: SightChanged, Changed: changed, Overview: now})
	case len(all) == 0 && last.Pending && !now.Pending:
		all = append(all, Sight{Kind: SightFinal, Overview: now})
	}
	return all
}
