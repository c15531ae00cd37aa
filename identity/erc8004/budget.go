package erc8004

import (
	"context"
	"fmt"
	"sync"
	"time"

	"stoa/protocol/rate"
)

// How many reads one source may cause: of identities that are new here, and of those that are
// known, whose number bounds what a stranger can do with their names.
var (
	strangerLimit = rate.Limit{Every: 10 * time.Second, Burst: 6} // six a minute
	knownLimit    = rate.Limit{Every: 500 * time.Millisecond, Burst: 120}
)

const maxSources = 10_000 // sources remembered; further ones share one budget

// A BudgetError means that the reads that requests may cause are used up: those of the caller's
// source, or those of the chain. It is ErrUnavailable too.
type BudgetError struct {
	Source bool          // the source's; otherwise the chain's
	Wait   time.Duration // until one read is possible
}

func (e *BudgetError) Error() string {
	whose := "the chain"
	if e.Source {
		whose = "the source"
	}
	return fmt.Sprintf("budget of chain reads of %s is spent for %s", whose, e.Wait)
}

func (e *BudgetError) Is(target error) bool { return target == ErrUnavailable }

type sourceKey struct{}

// WithSource sets the source that the reads of a context are counted for: the same text for all
// requests of one client network. Reads without a source are the node's own, which share a quarter
// of the chain's budget.
func WithSource(ctx context.Context, source string) context.Context {
	return context.WithValue(ctx, sourceKey{}, source)
}

// An asker is the source that a read is counted for.
type asker struct {
	source string
	known  bool // the identity is known good
}

func (a asker) limit(b *budget) rate.Limit {
	switch {
	case a.source == "":
		return rate.Limit{Every: 4 * b.limit.Every, Burst: max(1, b.limit.Burst/2)}
	case a.known:
		return knownLimit
	}
	return strangerLimit
}

// A budget bounds the reads of one chain that requests can cause, with the generic cell rate
// algorithm. Identities that are not known leave half of the chain's burst unused, so that they
// never displace known ones.
type budget struct {
	limit rate.Limit

	mu      sync.Mutex // guards all below
	free    int64      // when all of the chain's reads are free again
	sources rate.Table[asker]
}

func newBudget(perSecond float64, burst int) *budget {
	return &budget{limit: rate.PerSecond(perSecond, float64(burst)), sources: rate.Table[asker]{Most: maxSources}}
}

// take counts one read, or returns a *BudgetError. A refused read counts neither for the source
// nor for the chain. The node's own reads of known identities are bounded only by the chain's
// budget.
func (b *budget) take(at time.Time, who asker) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, chain := at.UnixNano(), b.limit
	if !who.known {
		chain.Burst = max(1, chain.Burst/2)
	}
	next, wait := chain.Take(b.free, now, 1)
	if who.source == "" && who.known {
		if wait > 0 {
			return &BudgetError{Wait: wait}
		}
		b.free = next
		return nil
	}
	if !b.sources.Room(who, now) {
		who.source = "others"
	}
	own, ownWait := who.limit(b).Take(b.sources.Free(who), now, 1)
	switch {
	case ownWait > 0:
		return &BudgetError{Source: who.source != "", Wait: ownWait}
	case wait > 0:
		return &BudgetError{Wait: wait}
	}
	b.free = next
	b.sources.Set(who, own)
	return nil
}
