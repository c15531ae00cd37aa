package feed

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"stoa/protocol"
)

// A reader is one stream. It is a protocol.Stream, read by one goroutine.
type reader struct {
	hub     *Hub
	ended   chan struct{}
	network string
	known   bool // whose place it has
	types   types

	at    int64  // number of the last entry that was returned or skipped
	place string // its id
	wake  *wake  // what it waits for; nil while it reads for itself
	once  sync.Once
}

// Next implements protocol.Stream.
func (r *reader) Next(ctx context.Context) (*protocol.Batch, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		select {
		case <-r.ended:
			return nil, io.EOF
		default:
		}
		b, beat, err := r.step(ctx)
		if err != nil {
			return nil, err
		}
		if len(b.Events) > 0 {
			r.hub.counts.batches.Add(1)
			r.hub.counts.events.Add(uint64(len(b.Events)))
		}
		if len(b.Events) > 0 || beat {
			return b, nil
		}
	}
}

// step returns the next events: read from the database until it has caught up, then handed over by
// the hub. beat means that a heartbeat is due.
func (r *reader) step(ctx context.Context) (b *protocol.Batch, beat bool, err error) {
	if r.wake == nil {
		p, err := r.hub.readAlone(ctx, r.at)
		if err != nil {
			return nil, false, err
		}
		if len(p) == 0 {
			r.wake, err = r.hub.attach(r.at)
			if errors.Is(err, errEnded) {
				err = io.EOF
			}
		}
		return r.advance(p, func() *protocol.Batch { return pick(p, r.types, r.at) }), false, err
	}
	select {
	case <-r.wake.ready:
	case <-r.ended:
		return nil, false, io.EOF
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	w := r.wake
	if r.hub.wakes.Load()-w.n > waitingBatches {
		r.hub.counts.cut.Add(1)
		return nil, false, &protocol.Error{Code: protocol.Overloaded, Detail: "the reader of this stream is too slow"}
	}
	r.wake = w.next
	return r.advance(w.page, func() *protocol.Batch {
		if w.page[0].n > r.at {
			return w.batch(r.types)
		}
		return pick(w.page, r.types, r.at) // it was ahead of the hub
	}), w.beat, nil
}

// advance moves the position past a page and returns the events that the reader wants and has not had.
func (r *reader) advance(p []entry, wanted func() *protocol.Batch) *protocol.Batch {
	if len(p) == 0 || p[len(p)-1].n <= r.at {
		return &protocol.Batch{}
	}
	b := wanted()
	last := p[len(p)-1]
	r.at, r.place = last.n, last.ID
	return b
}

// Place implements protocol.Stream.
func (r *reader) Place() string { return r.place }

// Close implements protocol.Stream.
func (r *reader) Close() {
	r.once.Do(func() {
		if r.wake != nil {
			r.hub.detach()
			r.wake = nil
		}
		r.hub.leave(r)
	})
}

// types is a set of types of feed items, a bit for each of protocol.FeedTypes, and the bit ofOthers, without which what
// happened on other nodes is left out.
type types uint8

const (
	allTypes = ^types(0)
	ofOthers = types(1 << 7)
)

func typesOf(want ...protocol.FeedType) (set types) {
	for _, t := range want {
		if i := slices.Index(protocol.FeedTypes, t); i >= 0 {
			set |= 1 << i
		}
	}
	return set
}

// pick returns the events of a page that are after a number and of some types.
func pick(page []entry, of types, after int64) *protocol.Batch {
	b := &protocol.Batch{}
	for _, e := range page {
		if e.n > after && (of == allTypes || typesOf(protocol.FeedType(e.Type))&of != 0 && (!e.remote || of&ofOthers != 0)) {
			b.Events = append(b.Events, e.Event)
		}
	}
	return b
}
