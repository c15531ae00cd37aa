package erc8004

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// hedgeAfter is how long a caller waits for an endpoint before the next one is asked too.
const hedgeAfter = 800 * time.Millisecond

// errSlow: another endpoint, which was asked later, answered first.
var errSlow = errors.New("no answer while another endpoint gave one")

// A panel is the endpoints of a chain for one read of several steps. Those that answered one step are asked first in the next.
type panel struct {
	c      *chain
	quorum int           // how many endpoints must give the same answer
	hedge  time.Duration // after each such time without enough answers one more endpoint is asked; 0 asks another one after a failure only
	quiet  bool          // different answers may come from the code of a stranger, so that they say nothing about endpoints
	first  []*endpoint
}

func (c *chain) panel() *panel { return &panel{c: c, quorum: c.Quorum, hedge: hedgeAfter} }

// order returns the endpoints to ask, first those that work. One with an open breaker is used only where others are too few, so that the
// next request finds out whether it works again; one that asked for a pause is left alone.
func (p *panel) order() []*endpoint {
	now := p.c.now()
	var open, closed []*endpoint
	for _, e := range slices.Concat(p.first, p.c.endpoints) {
		switch ok, paused := e.open(now); {
		case paused || slices.Contains(open, e) || slices.Contains(closed, e):
		case ok:
			open = append(open, e)
		default:
			closed = append(closed, e)
		}
	}
	return append(open, closed[:min(len(closed), max(0, p.quorum-len(open)))]...)
}

// A vote is the answers of endpoints to one question.
type vote[T any] struct {
	groups []group[T]
	errs   []error
}

// A group is the endpoints with the same answer, as its mark tells.
type group[T any] struct {
	mark    string
	by      []*endpoint
	answers []T
}

// add returns the group of an answer.
func (v *vote[T]) add(e *endpoint, answer T, mark string) *group[T] {
	i := slices.IndexFunc(v.groups, func(g group[T]) bool { return g.mark == mark })
	if i < 0 {
		i, v.groups = len(v.groups), append(v.groups, group[T]{mark: mark})
	}
	g := &v.groups[i]
	g.by, g.answers = append(g.by, e), append(g.answers, answer)
	return g
}

// most is the size of the largest group.
func (v *vote[T]) most() (n int) {
	for _, g := range v.groups {
		n = max(n, len(g.by))
	}
	return n
}

// agree asks a question until as many endpoints as the quorum have given the same answer; mark is the text by which answers are compared.
// Different answers of a quorum are counted and logged, and without a quorum the error wraps ErrUnavailable. It wraps errUnknownBlock too
// when an endpoint does not have the block: that is no fault of the endpoint. f may run for several endpoints at the same time.
func agree[T any](ctx context.Context, p *panel, f func(context.Context, *endpoint) (T, error), mark func(T) string) (answer T, err error) {
	same, err := gather(ctx, p, f, mark)
	if err != nil {
		return answer, err
	}
	return same[0], nil
}

// gather is agree with the answer of each endpoint of the quorum.
func gather[T any](ctx context.Context, p *panel, f func(context.Context, *endpoint) (T, error), mark func(T) string) ([]T, error) {
	type reply struct {
		e      *endpoint
		answer T
		err    error
	}
	own, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	order, running := p.order(), map[*endpoint]time.Time{}
	replies := make(chan reply, len(order))
	start := func() {
		e := order[0]
		order, running[e] = order[1:], time.Now()
		wg.Go(func() {
			attempt, cancel := context.WithTimeout(own, attemptTimeout)
			defer cancel()
			answer, err := f(attempt, e)
			replies <- reply{e, answer, err}
		})
	}
	var hedge <-chan time.Time
	if p.hedge > 0 {
		t := time.NewTicker(p.hedge)
		defer t.Stop()
		hedge = t.C
	}
	var v vote[T]
	for {
		for len(order) > 0 && len(running) < p.quorum-v.most() {
			start()
		}
		if len(running) == 0 {
			return nil, p.refused(ctx, v.hosts(), v.errs)
		}
		select {
		case <-hedge:
			if len(order) > 0 {
				start()
			}
		case r := <-replies:
			delete(running, r.e)
			switch {
			case r.err == nil:
				r.e.report(p.c.now(), nil)
				if g := v.add(r.e, r.answer, mark(r.answer)); len(g.by) == p.quorum {
					p.reached(ctx, g.by, v.hosts(), running)
					return g.answers, nil
				}
			case ctx.Err() != nil:
				if errors.Is(ctx.Err(), context.DeadlineExceeded) {
					p.c.setReachable(false)
				}
				return nil, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
			default:
				p.failed(ctx, r.e, r.err)
				v.errs = append(v.errs, fmt.Errorf("%s: %w", r.e.name, r.err))
			}
		}
	}
}

// hosts returns the hosts of each group.
func (v *vote[T]) hosts() (all []string) {
	for _, g := range v.groups {
		var names []string
		for _, e := range g.by {
			names = append(names, e.name)
		}
		all = append(all, strings.Join(names, ","))
	}
	return all
}

// reached ends a vote with a quorum. An endpoint that had been asked long before counts as failed, so that its breaker opens some time.
func (p *panel) reached(ctx context.Context, by []*endpoint, hosts []string, running map[*endpoint]time.Time) {
	p.first = by
	p.c.setReachable(true)
	p.differ(ctx, hosts)
	for e, began := range running {
		if p.hedge > 0 && time.Since(began) >= p.hedge {
			p.failed(ctx, e, errSlow)
		}
	}
}

// refused ends a vote without a quorum.
func (p *panel) refused(ctx context.Context, hosts []string, errs []error) error {
	p.differ(ctx, hosts)
	p.c.setReachable(false)
	if len(hosts) > 0 {
		errs = append(errs, fmt.Errorf("no quorum of %d", p.quorum))
	}
	if len(errs) == 0 {
		return fmt.Errorf("%w: each endpoint asked for a pause", ErrUnavailable)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(errs...))
}

// differ counts and logs endpoints that gave different answers to one question.
func (p *panel) differ(ctx context.Context, hosts []string) {
	if len(hosts) > 1 && !p.quiet {
		p.c.differed.Add(1)
		p.c.log.Error("chain endpoints disagree", "chain", p.c.ID, "hosts", strings.Join(hosts, " | "))
	}
}

func (p *panel) failed(ctx context.Context, e *endpoint, err error) {
	if errors.Is(err, errUnknownBlock) {
		return
	}
	e.report(p.c.now(), err)
	level := slog.LevelWarn
	if errors.Is(err, errWrongChain) {
		level = slog.LevelError
	}
	p.c.log.Log(ctx, level, "chain endpoint failed", "chain", p.c.ID, "host", e.name, "err", err)
}

// try calls f with one endpoint after another until it succeeds once.
func (c *chain) try(ctx context.Context, f func(context.Context, *endpoint) error) error {
	_, err := agree(ctx, &panel{c: c, quorum: 1}, func(ctx context.Context, e *endpoint) (struct{}, error) {
		return struct{}{}, f(ctx, e)
	}, any1[struct{}])
	return err
}

// any1 is the mark of answers that need not be the same.
func any1[T any](T) string { return "" }
