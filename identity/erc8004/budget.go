package erc8004

import (
	"context"
	"fmt"
	"sync"
	"time"

	"stoa/protocol/rate"
)

// A class is what is known of the identity of a read. Each leaves a part of the chain's burst to the next, so that it cannot displace it.
type class int

const (
	stranger class = iota // new here
	paying                // new here, and the caller has paid for the read
	known                 // known good
)

// share is the part of the chain's burst that a class may use up.
var share = [...]float64{stranger: 0.5, paying: 0.75, known: 1}

// limits are how many reads one source may cause. That of the known bounds what a stranger can do with their names.
var limits = [...]rate.Limit{
	stranger: {Every: 10 * time.Second, Burst: 6}, // six a minute
	paying:   {Every: 2 * time.Second, Burst: 30},
	known:    {Every: 500 * time.Millisecond, Burst: 120},
}

const maxSources = 10_000 // sources remembered; further ones share one budget

// A BudgetError means that the reads that requests may cause are used up: those of the caller's
// source, or those of the chain. It is ErrUnavailable too.
type BudgetError struct {
	Source  bool          // the source's; otherwise the chain's
	Wait    time.Duration // until one read is possible
	Payable bool          // a payment would admit the read (WithPayment)
	Payment error         // why the payment of the caller was not taken; nil when it offered none
}

func (e *BudgetError) Error() string {
	if e.Payment != nil {
		return fmt.Sprintf("payment for a chain read: %v", e.Payment)
	}
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

type paymentKey struct{}

// WithPayment lets the reads of a context be paid for when the share of new identities is used up: pay uses up what the caller paid, once
// for each call, or returns why it does not count. Reads of new identities that are paid for are displaced by those of known ones only.
func WithPayment(ctx context.Context, pay func(context.Context) error) context.Context {
	return context.WithValue(ctx, paymentKey{}, pay)
}

// An asker is the source that a read is counted for.
type asker struct {
	source string
	class  class
}

func (a asker) limit(b *budget) rate.Limit {
	if a.source == "" {
		return rate.Limit{Every: 4 * b.limit.Every, Burst: max(1, b.limit.Burst/2)}
	}
	return limits[a.class]
}

// A budget bounds the reads of one chain that requests can cause, with the generic cell rate
// algorithm.
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
func (b *budget) take(at time.Time, who asker) error { return b.count(at, who, true) }

// room is the error that take would return.
func (b *budget) room(at time.Time, who asker) error { return b.count(at, who, false) }

func (b *budget) count(at time.Time, who asker, take bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, chain := at.UnixNano(), b.limit
	chain.Burst = max(1, chain.Burst*share[who.class])
	next, wait := chain.Take(b.free, now, 1)
	bounded := who.source != "" || who.class != known
	var own int64
	if bounded {
		if !b.sources.Room(who, now) {
			who.source = "others"
		}
		var ownWait time.Duration
		if own, ownWait = who.limit(b).Take(b.sources.Free(who), now, 1); ownWait > 0 {
			return &BudgetError{Source: who.source != "", Wait: ownWait, Payable: who.class == stranger}
		}
	}
	if wait > 0 {
		return &BudgetError{Wait: wait, Payable: who.class == stranger}
	}
	if take {
		if b.free = next; bounded {
			b.sources.Set(who, own)
		}
	}
	return nil
}
