// Package worker runs the durable jobs: it claims due jobs, runs the handler of each kind, and
// either marks a job done, together with what follows from it, or retries it later. The lease of a
// job is renewed while it runs. A job whose worker dies becomes due again when its lease ends, or
// on SQLite when the next process starts, so a handler may run more than once and must tolerate that.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/protocol/trace"
	"stoa/storage"
)

const (
	lease       = 45 * time.Second      // longer than a fail-over of the database takes, in which nothing is renewed
	renewal     = 10 * time.Second      // how often the leases of jobs that run are renewed
	timeout     = 90 * time.Second      // for one run of a handler
	settleBy    = 110 * time.Second     // from its begin its outcome is stored
	poll        = time.Second           // how late a job of another process may be noticed
	busy        = 20 * time.Millisecond // pause before the next claim while another process claims
	streak      = 32                    // jobs of one lane that are run one after another before other lanes
	maxAttempts = 8
	maxLong     = 720                    // attempts of a job whose runs use up their time, a day of them: each may do a part of its work
	longPause   = 30 * time.Second       // at most, between such runs
	lateAfter   = 500 * time.Millisecond // a job that has run for so long mostly waits for another server, and leaves its place to others,
	lateAtOnce  = 64                     // unless so many have left theirs
)

// A Worker runs jobs until its context ends.
type Worker struct {
	DB       *storage.DB
	Log      *slog.Logger
	Owner    string // name of this process in leases
	Parallel int    // jobs at once, in addition to those that are late; default 8
	Observe  func(kind storage.JobKind, d time.Duration, err error)
	Traces   *trace.Tracer // nil for none

	handlers map[storage.JobKind]storage.JobHandler
	lost     atomic.Bool // a claim or an outcome was not answered: the database may have leases of this process for jobs that it does not run

	mu    sync.Mutex
	since map[int64]time.Time // when the jobs that run here were begun, by id
}

// Handle registers the handler of a kind; it panics on a second. Call it before Run.
func (w *Worker) Handle(kind storage.JobKind, h storage.JobHandler) {
	if w.handlers == nil {
		w.handlers = map[storage.JobKind]storage.JobHandler{}
	}
	if w.handlers[kind] != nil {
		panic("two handlers for jobs of kind " + string(kind))
	}
	w.handlers[kind] = h
}

// Complete returns an error when a kind has no handler, or a handler a kind that is not among all.
func (w *Worker) Complete(all []storage.JobKind) error {
	for _, kind := range all {
		if w.handlers[kind] == nil {
			return fmt.Errorf("jobs of kind %s have no handler: return one from the method Jobs of a room", kind)
		}
	}
	for kind := range w.handlers {
		if !slices.Contains(all, kind) {
			return fmt.Errorf("jobs of kind %s have a handler, but storage.JobKinds does not list the kind", kind)
		}
	}
	return nil
}

// Run claims and runs jobs until ctx ends, then waits for the running jobs and releases the leases
// of those not yet begun.
func (w *Worker) Run(ctx context.Context) error {
	parallel := w.Parallel
	if parallel == 0 {
		parallel = 8
	}
	places := &places{all: make(chan struct{}, parallel), late: make(chan struct{}, lateAtOnce), left: make(chan struct{}, 1)}
	var running, renewing sync.WaitGroup
	renew, stop := context.WithCancel(context.WithoutCancel(ctx))
	renewing.Go(func() { w.renew(renew) })
	defer func() {
		running.Wait()
		stop()
		renewing.Wait()
		giveBack, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := w.DB.ReleaseJobs(giveBack, w.Owner); err != nil {
			w.Log.Warn("release jobs", "err", err)
		}
	}()
	wake := w.DB.Wake(storage.TopicJobs)
	for ctx.Err() == nil {
		jobs, taken, err := w.claim(ctx, parallel-len(places.all), len(places.all)+len(places.late))
		if err != nil && ctx.Err() == nil {
			w.Log.Error("claim jobs", "err", err)
		}
		for _, j := range jobs {
			leave := places.take(!j.Kind.Heavy())
			running.Go(func() {
				defer leave()
				w.lane(ctx, j)
			})
		}
		if len(jobs) > 0 && len(places.all) < parallel {
			continue
		}
		pause := poll
		if taken {
			pause = busy
		}
		select {
		case <-ctx.Done():
		case <-wake:
		case <-places.left: // a place is free, and perhaps a lane
		case <-time.After(pause):
		}
	}
	return nil
}

// places are those of the jobs that run.
type places struct {
	all, late chan struct{}
	left      chan struct{} // told when one is free
}

// take takes a place until leave is called. A job that may be late leaves it earlier, while not too many are: servers that do not answer hold up
// nothing else.
func (p *places) take(mayBeLate bool) (leave func()) {
	p.all <- struct{}{}
	var mu sync.Mutex // guards in
	in := p.all
	move := func(to chan struct{}) {
		mu.Lock()
		defer mu.Unlock()
		if in == nil {
			return
		}
		if to != nil {
			select {
			case to <- struct{}{}:
			default:
				return
			}
		}
		<-in
		in = to
		select {
		case p.left <- struct{}{}:
		default:
		}
	}
	if !mayBeLate {
		return func() { move(nil) }
	}
	timer := time.AfterFunc(lateAfter, func() { move(p.late) })
	return func() { timer.Stop(); move(nil) }
}

// claim leases due jobs. After an answer that was lost it first waits for the jobs that run here, and ends the leases that are left.
func (w *Worker) claim(ctx context.Context, room, running int) (jobs []storage.Job, taken bool, err error) {
	if w.lost.Load() {
		if running > 0 {
			return nil, false, nil
		}
		if err := w.DB.ReleaseJobs(ctx, w.Owner); err != nil {
			return nil, false, err
		}
		w.lost.Store(false)
	}
	jobs, taken, err = w.DB.ClaimJobs(ctx, w.Owner, room, lease)
	w.misses(err)
	return jobs, taken, err
}

// renew extends the leases of jobs that have run for some time, until ctx ends. One that is not renewed in time is run by another process too.
func (w *Worker) renew(ctx context.Context) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		ids := w.runs(renewal)
		if len(ids) == 0 {
			continue
		}
		within, cancel := context.WithTimeout(ctx, renewal)
		if err := w.DB.RenewJobs(within, w.Owner, ids, lease); err != nil && ctx.Err() == nil {
			w.Log.Warn("renew leases of jobs", "err", err)
		}
		cancel()
	}
}

// runs are the jobs that have run here for at least that long.
func (w *Worker) runs(atLeast time.Duration) (ids []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, since := range w.since {
		if time.Since(since) >= atLeast {
			ids = append(ids, id)
		}
	}
	return ids
}

// begins notes that a job runs here, until the returned function is called.
func (w *Worker) begins(id int64) (ends func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since == nil {
		w.since = map[int64]time.Time{}
	}
	w.since[id] = time.Now()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.since, id)
	}
}

// misses notes an error after which a write may have been committed or not.
func (w *Worker) misses(err error) {
	if protocol.CodeOf(err) == protocol.Overloaded {
		w.lost.Store(true)
	}
}

// lane runs a job, and then the jobs that wait in its lane.
func (w *Worker) lane(ctx context.Context, first storage.Job) {
	next := &first
	for n := 1; next != nil; n++ {
		next = w.do(context.WithoutCancel(ctx), *next, n < streak && ctx.Err() == nil)
	}
}

// do runs a job and stores the outcome. With more it returns the next job of the lane, leased, if
// there is one.
func (w *Worker) do(ctx context.Context, j storage.Job, more bool) (next *storage.Job) {
	start := time.Now()
	defer w.begins(j.ID)()
	ctx, span := w.Traces.Begin(protocol.WithRequestID(ctx, j.Request), "job", trace.Consumer, trace.Context{}, trace.Stored(j.Trace))
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), settleBy)
	defer end()
	next, err := w.run(limited, ctx, j, more)
	log := w.Log
	if span != nil {
		log = log.With("trace", trace.ID(ctx))
		span.Name += " " + string(j.Kind)
		span.Set(trace.Number("stoa.job.attempt", j.Attempt), trace.Text("stoa.request.id", j.Request))
		if err != nil {
			span.Fail()
		}
		defer span.End()
	}
	if w.Observe != nil {
		w.Observe(j.Kind, time.Since(start), err)
	}
	if err == nil {
		log.Debug("job", "rid", j.Request, "job", j.ID, "kind", j.Kind, "dur", time.Since(start))
		return next
	}
	most, longest := maxAttempts, 24*time.Hour
	if limited.Err() != nil {
		most, longest = maxLong, longPause
	}
	if final(err) || j.Attempt >= most {
		log.Warn("job is dead", "rid", j.Request, "job", j.ID, "kind", j.Kind, "attempt", j.Attempt, "err", err)
		err = w.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Bury(ctx, j.ID, err.Error()) })
	} else {
		wait := min(Backoff(j.Attempt, err), longest)
		log.Debug("job is tried again", "rid", j.Request, "job", j.ID, "kind", j.Kind, "attempt", j.Attempt, "in", wait, "err", err)
		err = w.DB.RetryJob(ctx, j.ID, wait, err.Error())
	}
	if err != nil {
		w.misses(err)
		log.Error("settle job", "rid", j.Request, "job", j.ID, "kind", j.Kind, "err", err)
	}
	return nil
}

// run runs the handler of a job within one context, and stores what it returns within another.
func (w *Worker) run(ctx, settle context.Context, j storage.Job, more bool) (next *storage.Job, err error) {
	defer func() {
		if r := recover(); r != nil {
			next, err = nil, fmt.Errorf("panic: %v", r)
		}
	}()
	h := w.handlers[j.Kind]
	if h == nil {
		return nil, fmt.Errorf("no handler for jobs of kind %s", j.Kind)
	}
	after, err := h(ctx, j)
	if err != nil {
		return nil, err
	}
	err = w.DB.Write(settle, func(ctx context.Context, tx *storage.Tx) (err error) {
		// Done first, so that a follow-up may enqueue the job again with the same dedupe key.
		next = nil
		if more && j.Lane != "" {
			next, err = tx.Jobs().Next(ctx, j.ID, w.Owner, lease)
		} else {
			err = tx.Jobs().Finish(ctx, j.ID)
		}
		if err != nil || after == nil {
			return err
		}
		return after(ctx, tx)
	})
	if err != nil {
		w.misses(err)
		return nil, err
	}
	return next, nil
}

// final reports an error that a retry cannot fix.
func final(err error) bool {
	e, ok := errors.AsType[*protocol.Error](err)
	return ok && !e.Code.Temporary()
}

// Backoff returns the pause after the n-th attempt: what the error asks for, otherwise 5 s
// doubling up to 6 h, multiplied by a random factor of 0.5 to 1.5.
func Backoff(attempt int, err error) time.Duration {
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.RetryAfter > 0 {
		return min(e.RetryAfter, 24*time.Hour)
	}
	return netx.Spread(netx.Backoff(5*time.Second, 6*time.Hour, attempt), 0.5)
}
