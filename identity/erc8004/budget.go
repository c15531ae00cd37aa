package erc8004

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// How many reads one source may cause: of identities that are new here, and of those that are
// known, whose number bounds what a stranger can do with their names.
const (
	strangerEvery = 10 * time.Second // six a minute
	strangerBurst = 6
	knownEvery    = 500 * time.Millisecond
	knownBurst    = 120
	maxSources    = 10_000 // sources remembered; further ones share one budget
)

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

func (a asker) rate(b *budget) (every time.Duration, burst int) {
	switch {
	case a.source == "":
		return 4 * b.every, max(1, b.burst/2)
	case a.known:
		return knownEvery, knownBurst
	}
	return strangerEvery, strangerBurst
}

// A budget bounds the reads of one chain that requests can cause, with the generic cell rate
// algorithm. Identities that are not known leave half of the chain's burst unused, so that they
// never displace known ones.
type budget struct {
	every time.Duration // between two reads at the sustained rate
	burst int

	mu      sync.Mutex // guards all below
	next    time.Time  // when all of the chain's reads are free again
	sources map[asker]time.Time
}

func newBudget(perSecond float64, burst int) *budget {
	return &budget{every: time.Duration(float64(time.Second) / perSecond), burst: burst, sources: map[asker]time.Time{}}
}

// take counts one read, or returns a *BudgetError. A refused read counts neither for the source
// nor for the chain. The node's own reads of known identities are bounded only by the chain's
// budget.
func (b *budget) take(now time.Time, who asker) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	burst := b.burst
	if !who.known {
		burst = max(1, b.burst/2)
	}
	next, wait := cell(b.next, now, b.every, burst)
	if who.source == "" && who.known {
		if wait > 0 {
			return &BudgetError{Wait: wait}
		}
		b.next = next
		return nil
	}
	if _, seen := b.sources[who]; !seen && len(b.sources) >= maxSources {
		b.sweep(now)
		if len(b.sources) >= maxSources {
			who.source = "others"
		}
	}
	every, most := who.rate(b)
	own, ownWait := cell(b.sources[who], now, every, most)
	switch {
	case ownWait > 0:
		return &BudgetError{Source: who.source != "", Wait: ownWait}
	case wait > 0:
		return &BudgetError{Wait: wait}
	}
	b.next, b.sources[who] = next, own
	return nil
}

// sweep forgets the sources with a full budget. It needs b.mu.
func (b *budget) sweep(now time.Time) {
	for who, t := range b.sources {
		if !t.After(now) {
			delete(b.sources, who)
		}
	}
}

// cell is one step of the algorithm: the next value, and how long to wait if
// there is no room now.
func cell(t, now time.Time, every time.Duration, burst int) (next time.Time, wait time.Duration) {
	if t.Before(now) {
		t = now
	}
	next = t.Add(every)
	return next, next.Sub(now) - time.Duration(burst)*every
}
