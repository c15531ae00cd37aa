// Package liveness checks whether the endpoints of capabilities and the sites of merchants answer,
// once a day, and whether the chain confirms identities. It also records when agents were last
// active.
//
// It obeys robots.txt (RFC 9309), names itself in User-Agent, sends one request at a time to a
// host and few per hour to a domain, uses HEAD, reads only the beginning of an answer, and asks
// failing endpoints less and less often. What is due is stored in the database: a restart repeats
// nothing, and only one of several processes asks at a time.
package liveness

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stoa/identity/cache"
	"stoa/protocol"
	"stoa/storage"
)

// Limits of what is asked.
const (
	PerDomain = 60 // addresses of one registrable domain per hour
	Pause     = 15 * time.Second
	Idle      = time.Minute // how late a new address may be noticed

	batch    = 30 // addresses per run; with Pause, 7,200 an hour in all
	parallel = 4  // hosts at a time
	lease    = 10 * time.Minute
	most     = 60 * time.Second // per run; what is left is due again after the lease
	handles  = 200              // profiles updated in one transaction
)

// A Prober asks. Set its fields before Job is first called.
type Prober struct {
	DB     *storage.DB
	Client *http.Client // refuses private addresses, bounds time and header
	Agent  string       // User-Agent: name, version, and an address that explains the requests
	Self   string       // host[:port] of this node, which is never asked
	// Identity returns nil when the chain grants the key to the identity now. A temporary error
	// decides nothing. The field is nil when no chain is configured.
	Identity func(ctx context.Context, identity, thumbprint string) error
	Observe  func(outcome Outcome) // may be nil
	Log      *slog.Logger
	Pause    time.Duration // between runs; 0 means the constant Pause

	once   sync.Once // makes both
	robots *cache.Cache[rules]
	stop   chan struct{}
}

func (p *Prober) begin() {
	p.once.Do(func() { p.robots, p.stop = cache.Of[rules](robotsMost), make(chan struct{}) })
}

// stopping is the channel that Stop closes.
func (p *Prober) stopping() chan struct{} {
	p.begin()
	return p.stop
}

// Stop ends a running Job, so that a process can exit. What was not finished is due again later.
// Call it once.
func (p *Prober) Stop() { close(p.stopping()) }

// Enqueue enqueues the job unless it is queued already.
func Enqueue(ctx context.Context, tx *storage.Tx) error { return enqueueAt(ctx, tx, tx.Now) }

func enqueueAt(ctx context.Context, tx *storage.Tx, at time.Time) error {
	return tx.Enqueue(ctx, storage.Job{Kind: storage.ProbeJob, Lane: string(storage.ProbeJob), Dedupe: string(storage.ProbeJob), RunAt: at})
}

// Job asks what is due, stores the outcomes, and enqueues the next run. It is the worker's handler
// of ProbeJob.
func (p *Prober) Job(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	go func() {
		select {
		case <-p.stopping():
			cancel()
		case <-ctx.Done():
		}
	}()
	var due []storage.Probe
	err := p.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		due, err = tx.Probes().Claim(ctx, storage.ProbeClaim{Most: batch, PerDomain: PerDomain, Lease: lease})
		return err
	})
	if err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, probe := range due {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			if err := p.probe(ctx, probe); err != nil { // the probe is due again after the lease
				p.Log.Warn("settle probe", "host", probe.Host, "err", err)
			}
			return nil
		})
	}
	return p.enqueueNext, group.Wait()
}

// Rest is the handler of ProbeJob on a node that no longer asks. It deletes old outcomes, which would
// otherwise be shown and counted for ever. When there are many it continues in a later job.
func (p *Prober) Rest(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for after := ""; ; {
		var rested []string
		err := p.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			rested, after, err = tx.Probes().Rest(ctx, after, handles)
			return err
		})
		for _, target := range rested {
			if err == nil {
				err = p.updateProfiles(ctx, target)
			}
		}
		if err == nil && len(rested) > 0 {
			err = p.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Probes().EndRest(ctx, rested) })
		}
		switch {
		case ctx.Err() != nil:
			return Enqueue, nil
		case err != nil || after == "":
			return nil, err
		}
	}
}

// enqueueNext enqueues the next run: when the next probe is due, but neither at once nor later than Idle.
func (p *Prober) enqueueNext(ctx context.Context, tx *storage.Tx) error {
	pause := p.Pause
	if pause == 0 {
		pause = Pause
	}
	next, err := tx.Probes().Next(ctx)
	if err != nil {
		return err
	}
	at := tx.Now.Add(max(Idle, pause))
	if p.Pause != 0 && p.Pause < Pause { // a test, or a node for development
		at = tx.Now.Add(pause)
	}
	if soonest := tx.Now.Add(pause); !next.IsZero() && next.Before(at) {
		at = next
		if at.Before(soonest) {
			at = soonest
		}
	}
	return enqueueAt(ctx, tx, at)
}

// probe asks one probe and stores the outcome. It stores nothing when the context has ended.
func (p *Prober) probe(ctx context.Context, probe storage.Probe) error {
	outcome := p.ask(ctx, probe)
	if ctx.Err() != nil {
		return nil
	}
	if p.Observe != nil {
		p.Observe(outcome)
	}
	p.Log.Debug("asked", "kind", probe.Kind, "host", probe.Host, "code", outcome)
	if err := p.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		settled, due := next(probe, outcome, tx.Now, jitter)
		return tx.Probes().Settle(ctx, settled, due)
	}); err != nil {
		return err
	}
	return p.updateProfiles(ctx, probe.Target)
}

// updateProfiles updates the profiles that list a target, some at a time: thousands may share the endpoint
// of one host.
func (p *Prober) updateProfiles(ctx context.Context, target string) error {
	for after := ""; ; {
		var some []string
		err := p.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			if some, err = tx.Probes().Handles(ctx, target, after, handles); err != nil {
				return err
			}
			return tx.Probes().JudgeAgents(ctx, some)
		})
		if err != nil || len(some) < handles {
			return err
		}
		after = some[len(some)-1]
	}
}

func (p *Prober) ask(ctx context.Context, probe storage.Probe) Outcome {
	if probe.Kind == storage.ProbeChain {
		return p.askChain(ctx, probe.Target)
	}
	if probe.Host == p.Self {
		return Own
	}
	if blocked, err := p.blocked(ctx, probe.Host); err != nil {
		return Undecided
	} else if blocked {
		return Blocked
	}
	return p.askHTTP(ctx, probe.Target, probe.Domain)
}

// blocked reports whether the operator has blocked a host.
func (p *Prober) blocked(ctx context.Context, host string) (blocked bool, err error) {
	err = p.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		blocked, err = tx.Peers().Refused(ctx, host)
		return err
	})
	return blocked, err
}

func (p *Prober) askChain(ctx context.Context, target string) Outcome {
	if p.Identity == nil {
		return NoChain
	}
	identity, thumbprint, _ := cutTarget(target)
	err := p.Identity(ctx, identity, thumbprint)
	if err == nil {
		return Answered
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok && !e.Code.Temporary() {
		return Missing
	}
	return Undecided
}
