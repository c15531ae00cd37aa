package feed

import (
	"context"
	"errors"
	"io"
	"sync"

	"stoa/protocol"
)

// A reader is one stream. It is a protocol.Stream, read by one goroutine.
type reader struct {
	hub     *Hub
	ended   chan struct{}
	network string
	types   map[string]bool // nil for all
	pages   chan []entry    // what the hub has handed over
	cut     chan struct{}   // closed when pages was full

	at    int64  // number of the last entry that was given or passed over
	place string // its id
	live  bool
	once  sync.Once
}

// Next implements protocol.Stream.
func (r *reader) Next(ctx context.Context) ([]protocol.Event, error) {
	for {
		p, err := r.page(ctx)
		if err != nil {
			return nil, err
		}
		if events := r.pass(p); len(events) > 0 {
			return events, nil
		}
	}
}

// page is what comes next: read from the database until nothing is left, then
// handed over by the hub.
func (r *reader) page(ctx context.Context) ([]entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for !r.live {
		select {
		case <-r.ended:
			return nil, io.EOF
		default:
		}
		p, err := r.hub.read(ctx, r.at)
		if err != nil || len(p) > 0 {
			return p, err
		}
		if r.live, err = r.hub.attach(r, r.at); errors.Is(err, errEnded) {
			return nil, io.EOF
		}
	}
	select {
	case <-r.ended:
		return nil, io.EOF
	default:
	}
	select {
	case p := <-r.pages:
		return p, nil
	case <-r.ended:
		return nil, io.EOF
	case <-r.cut:
		return nil, &protocol.Error{Code: protocol.Overloaded, Detail: "the reader of this stream is too slow"}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pass moves over a page and keeps what the reader wants and has not had.
func (r *reader) pass(p []entry) (events []protocol.Event) {
	for _, e := range p {
		if e.n <= r.at {
			continue
		}
		r.at, r.place = e.n, e.ID
		if r.types == nil || r.types[e.Type] {
			events = append(events, e.Event)
		}
	}
	return events
}

// Place implements protocol.Stream.
func (r *reader) Place() string { return r.place }

// Close implements protocol.Stream.
func (r *reader) Close() { r.once.Do(func() { r.hub.leave(r) }) }
