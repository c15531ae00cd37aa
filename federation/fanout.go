package federation

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// Limits of delivering the log.
const (
	outletLease     = 2 * time.Minute
	claimAtOnce     = 128
	inFlight        = 1280        // deliveries; more than slotsLate, so that late ones do not delay the others
	failingInFlight = 256         // of them to inboxes that failed before
	poll            = time.Second // the longest time until an entry of another process is noticed
	deadAfter       = 20          // failures in a row: about a week
	pullsAtOnce     = 32          // walks of followed logs that wait or run because they are due
)

// Run delivers the log to followers and keeps the followed boards fresh until
// ctx ends. It begins by asking every followed board what was missed.
func (f *Federation) Run(ctx context.Context) error {
	owner := "federation/" + protocol.NewID("run", f.now())
	if err := f.pullAll(ctx); err != nil && ctx.Err() == nil {
		f.log.Error("start pulls", "err", err)
	}
	var running sync.WaitGroup
	running.Go(func() { f.schedulePulls(ctx) })
	running.Go(func() { f.keepTree(ctx) })
	f.fanOut(ctx, owner, &running)
	running.Wait()
	giveBack, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := f.c.DB.ReleaseOutlets(giveBack, owner); err != nil {
		f.log.Warn("release outlets", "err", err)
	}
	return nil
}

// pullAll makes every board that accepted our Follow due, in the order in which it would have been: after a power cut nodes that follow the
// same boards do not read them in the same order.
func (f *Federation) pullAll(ctx context.Context) error {
	err := f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Subscriptions().HastenAll(ctx, heartbeat+heartbeatDrift)
	})
	if err != nil {
		return err
	}
	return f.pullDue(ctx)
}

// schedulePulls queues the walks that are due: the heartbeat, and the retry of a failed
// walk.
func (f *Federation) schedulePulls(ctx context.Context) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := f.pullDue(ctx); err != nil && ctx.Err() == nil {
			f.log.Error("due pulls", "err", err)
		}
	}
}

// pullDue queues walks that are due, up to pullsAtOnce with those that are queued, so that other jobs need not wait for more; at least one.
func (f *Federation) pullDue(ctx context.Context) error {
	var due []string
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		due, err = tx.Subscriptions().ListDue(ctx, pullsAtOnce)
		return err
	})
	if err != nil || len(due) == 0 {
		return err
	}
	return f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		for _, board := range due {
			if err := f.enqueuePull(ctx, tx, board); err != nil {
				return err
			}
		}
		return nil
	})
}

// fanOut claims the outlets whose cursor is behind the log and delivers to each
// concurrently, as soon as an entry is written to a log.
func (f *Federation) fanOut(ctx context.Context, owner string, running *sync.WaitGroup) {
	begun := make(chan struct{}, inFlight)
	var failing atomic.Int64
	ended := make(chan struct{}, 1)
	wake := f.c.DB.Wake(storage.TopicLog)
	for ctx.Err() == nil {
		most := min(claimAtOnce, inFlight-len(begun))
		claimed, err := f.c.DB.ClaimOutlets(ctx, owner, most, min(most, failingInFlight-int(failing.Load())), outletLease)
		if err != nil && ctx.Err() == nil {
			f.log.Error("claim outlets", "err", err)
		}
		for _, o := range claimed {
			begun <- struct{}{}
			if o.State != storage.OutletActive {
				failing.Add(1)
			}
			running.Go(func() {
				defer func() {
					if o.State != storage.OutletActive {
						failing.Add(-1)
					}
					<-begun
					select {
					case ended <- struct{}{}:
					default:
					}
				}()
				f.serveOutlet(context.WithoutCancel(ctx), o)
			})
		}
		if len(claimed) > 0 && len(begun) < inFlight {
			continue
		}
		select {
		case <-ctx.Done():
		case <-wake:
			select {
			case f.treeDue <- struct{}{}:
			default:
			}
		case <-ended: // there is room, and an outlet may have more to deliver
		case <-time.After(poll):
		}
	}
}

// serveOutlet delivers the missing entries to one outlet and advances its cursor.
// The cursor is advanced after the delivery: after a crash in between, the entry is
// delivered again and the receiver ignores it.
func (f *Federation) serveOutlet(ctx context.Context, o storage.Outlet) {
	ctx, cancel := context.WithTimeout(ctx, outletLease-10*time.Second)
	defer cancel()
	var err error
	if o.Stoa {
		err = f.pushEntry(ctx, o)
	} else {
		err = f.deliverEntries(ctx, o)
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		f.log.Error("serve outlet", "host", o.Host, "err", err)
	}
}

// pushEntry sends one entry to a stoa peer: the next one if the peer lacks only
// that, otherwise the newest, whose sequence number makes the peer read the rest
// from the log. So a burst costs one request per peer.
func (f *Federation) pushEntry(ctx context.Context, o storage.Outlet) error {
	var body []byte
	var head int64
	var newest storage.LogEntry
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		epoch, at, err := tx.Logs().Head(ctx, o.Board)
		if err != nil {
			return absent(err)
		}
		head = at
		entries, err := tx.Logs().After(ctx, o.Board, head-1, 1)
		if err != nil || len(entries) == 0 || head <= o.Cursor {
			return err
		}
		newest = entries[0]
		raw, public, err := f.entry(ctx, tx, epoch, newest)
		if public {
			body = raw
		}
		return err
	})
	if err != nil {
		return err
	}
	if body == nil { // deleted or hidden meanwhile: its own entry follows
		return f.advance(ctx, o, head)
	}
	res := f.sendEntry(ctx, f.site.Board(), o.Inbox, newest, body)
	if res.done() || res.permanent() { // a peer that refuses this one still reads the log
		return f.advance(ctx, o, head)
	}
	return f.deliveryFailed(ctx, o, res)
}

func (f *Federation) advance(ctx context.Context, o storage.Outlet, cursor int64) error {
	return f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Outlets().Advance(ctx, o.Board, o.Inbox, cursor)
	})
}

// deliveryFailed schedules the retry of an outlet, or removes an outlet whose inbox
// is gone.
func (f *Federation) deliveryFailed(ctx context.Context, o storage.Outlet, res outcome) error {
	if res.gone() {
		return f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Followers().RemoveInbox(ctx, o.Board, o.Inbox)
		})
	}
	pause, state := afterFailure(o, res.retryAfter)
	return f.c.DB.FailOutlet(ctx, o.Board, o.Inbox, pause, clipError(res.err), state)
}

// afterFailure is how long an outlet waits after one more failure, and its state then.
func afterFailure(o storage.Outlet, retryAfter time.Duration) (time.Duration, storage.OutletState) {
	pause := max(retryAfter, netx.Jitter(pauseAfter(o)))
	if o.Failures+1 >= deadAfter {
		return pause, storage.OutletDead
	}
	return pause, storage.OutletSlow
}

// fediversePauses are the pauses between the attempts at a failing inbox: short at
// first, then 12 hours. A stoa peer is tried more often, since an attempt is one
// small request and the peer reads the rest itself.
var fediversePauses = []time.Duration{
	time.Minute, 5 * time.Minute, 20 * time.Minute, time.Hour, 3 * time.Hour, 8 * time.Hour, 12 * time.Hour,
}

func pauseAfter(o storage.Outlet) time.Duration {
	if o.Stoa {
		return min(time.Second<<min(o.Failures, 20), 10*time.Minute)
	}
	return fediversePauses[min(o.Failures, len(fediversePauses)-1)]
}
