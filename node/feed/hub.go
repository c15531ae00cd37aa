package feed

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// MaxStreams is how many streams a process serves unless its operator says otherwise.
const MaxStreams = 1024

const (
	maxNetworkStreams = 8                // of one client network
	poll              = time.Second      // how long another process's item may go unseen
	pageSize          = 100              // items a read
	heartbeat         = 15 * time.Second // between two signs of life
	waitingBatches    = 64               // that a reader may be behind the hub before it is cut: more than a door waits for one write
	readTime          = 5 * time.Second  // for one page, so that signs of life come while the database does not answer
	retryStream       = 30 * time.Second // what a reader is told to wait for a free place

	// A wake costs a write to each stream, however much there is to write, so the
	// time from one wake to the next grows with their number: all together make at
	// most 4000 writes a second, a twentieth of a core.
	streamRest = 250 * time.Microsecond
	leastRest  = 100 * time.Millisecond
	mostRest   = time.Second

	// A wake gives all streams together wakeBytes, and each of them at least
	// leastBytes and at most mostBytes, so that bytes cost no more than the writes.
	// What is more waits in the database for the next wake.
	wakeBytes  = 48 << 20
	leastBytes = 48 << 10
	mostBytes  = 128 << 10
)

// rest is the time from one wake of so many streams to the next. It is twice as
// long when they are behind: then nothing is told at once anyway, and fewer and
// larger writes cost less.
func rest(streams int, behind bool) time.Duration {
	d := min(max(time.Duration(streams)*streamRest, leastRest), mostRest)
	if behind {
		return 2 * d
	}
	return d
}

// share is how many bytes each of so many streams is given by a wake.
func share(streams int) int { return min(max(wakeBytes/max(streams, 1), leastBytes), mostBytes) }

// A Hub follows the feed for all streams of a process at once: one goroutine
// (Run) reads what is new and wakes every reader that has caught up with a batch
// that all share, and then rests. Readers that have not caught up read by
// themselves, page by page, one at a time. A reader that does not keep up is cut.
// Before Open and after Run there are no streams, so none outlives the node.
type Hub struct {
	DB   *storage.DB
	Base string // public address of the node, without a slash at the end
	Log  *slog.Logger
	Max  int // streams at a time

	arrived chan struct{} // a hint: a reader has caught up
	reading chan struct{} // held by the reader that reads by itself
	wakes   atomic.Uint64 // batches that were handed over, the number of the newest
	counts  counts

	mu       sync.Mutex    // guards what follows
	ended    chan struct{} // closed when Run ends; nil before Open
	at       int64         // up to this number every live reader has been handed everything
	head     *wake         // the next one
	live     int           // readers that wait for it, or for one before it
	networks map[string]int
	streams  int
}

// A wake is what the hub hands to all live readers at once. They wait for the
// newest; one that is late finds those it has missed one after the other.
type wake struct {
	ready chan struct{} // closed when the rest is set
	n     uint64
	page  []entry
	beat  bool // those that get no event say that they are alive
	next  *wake

	mu sync.Mutex // guards by
	by map[types]*protocol.Batch
}

func newWake() *wake { return &wake{ready: make(chan struct{})} }

// batch is what streams of some types are given, shared by all of them.
func (w *wake) batch(of types) *protocol.Batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.by[of]
	if b == nil {
		b = pick(w.page, of, 0)
		if w.by == nil {
			w.by = map[types]*protocol.Batch{}
		}
		w.by[of] = b
	}
	return b
}

// Counts is what a hub serves, and has done since it was made.
type Counts struct {
	Streams int    // that are open
	Wakes   uint64 // times that the waiting streams were woken
	Batches uint64 // batches of events that streams were given, each written at once
	Events  uint64 // events in them
	Cut     uint64 // streams that were too slow
	Behind  bool   // whether more waited than the last wake could give
}

type counts struct {
	batches, events, cut atomic.Uint64
	behind               atomic.Bool
}

// Counts may be called at any time.
func (h *Hub) Counts() Counts {
	return Counts{h.Streams(), h.wakes.Load(), h.counts.batches.Load(), h.counts.events.Load(), h.counts.cut.Load(), h.counts.behind.Load()}
}

// NewHub returns a hub that has no streams until Open, and then MaxStreams.
func NewHub(db *storage.DB, base string, log *slog.Logger) *Hub {
	return &Hub{DB: db, Base: base, Log: log, Max: MaxStreams, arrived: make(chan struct{}, 1), reading: make(chan struct{}, 1),
		head: newWake(), networks: map[string]int{}}
}

// Open lets streams begin, so that a server may be started behind it that
// refuses none. Run has to follow.
func (h *Hub) Open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.ended = make(chan struct{})
	}
}

// Run serves streams until ctx ends, and ends them all. It runs once.
func (h *Hub) Run(ctx context.Context) error {
	h.Open()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		close(h.ended)
	}()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	beat := time.Now().Add(heartbeat)
	for more := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		if !more {
			select {
			case <-ctx.Done():
				return nil
			case <-h.DB.Wake(storage.TopicFeed):
			case <-h.arrived:
			case <-tick.C:
			}
		}
		now := time.Now()
		due := !now.Before(beat)
		if due {
			beat = now.Add(heartbeat)
		}
		var err error
		if more, err = h.deliver(ctx, due); err != nil && ctx.Err() == nil {
			h.Log.Warn("cannot read the feed for streams", "err", err)
		}
		h.counts.behind.Store(more)
		pause.Reset(rest(h.Streams(), more))
	}
}

// Streams is how many there are.
func (h *Hub) Streams() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams
}

// deliver wakes the live readers with what is new, as much as one wake may give,
// and reports whether there is more.
func (h *Hub) deliver(ctx context.Context, beat bool) (more bool, err error) {
	h.mu.Lock()
	at, live := h.at, h.live
	h.mu.Unlock()
	if live == 0 {
		return false, nil
	}
	room := share(live)
	var page []entry
	for after, full := at, true; full && room > 0; {
		var p []entry
		if p, err = h.read(ctx, after, room); err != nil {
			break
		}
		for _, e := range p {
			room -= e.size()
			after = e.n
		}
		page, full = append(page, p...), len(p) == pageSize
	}
	if len(page) > 0 || beat {
		h.hand(at, page, beat)
	}
	return room <= 0, err
}

// hand wakes every live reader.
func (h *Hub) hand(at int64, page []entry, beat bool) {
	h.mu.Lock()
	if h.at != at {
		h.mu.Unlock()
		return // all had gone and others have come meanwhile, who stand elsewhere
	}
	if len(page) > 0 {
		h.at = page[len(page)-1].n
	}
	w := h.head
	h.head = newWake()
	w.n, w.page, w.beat, w.next = h.wakes.Add(1), page, beat, h.head
	h.mu.Unlock()
	close(w.ready)
}

// An entry is a feed item as an event, with its number.
type entry struct {
	protocol.Event
	n int64
}

// size is about how many bytes it takes in a stream.
func (e entry) size() int { return len(e.Data) + len(e.ID) + len(e.Type) }

// read is a page of the feed behind a number, in the order of commits. It ends
// with the item that fills room, in bytes.
func (h *Hub) read(ctx context.Context, after int64, room int) (p []entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	err = h.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		p = nil
		items, err := tx.FeedAfter(ctx, after, pageSize)
		if err != nil {
			return err
		}
		for left := room; len(items) > 0 && left > 0; items = items[1:] {
			i := &items[0]
			locate(h.Base, &i.FeedItem)
			data, err := json.Marshal(i.FeedItem)
			if err != nil {
				return err
			}
			e := entry{protocol.Event{ID: i.ID, Type: string(i.Type), Data: data}, i.N}
			p, left = append(p, e), left-e.size()
		}
		return nil
	})
	return p, err
}

// readAlone is read for a reader that has not caught up. There is one at a time,
// so that however many come back at once take one connection to the database.
func (h *Hub) readAlone(ctx context.Context, after int64) ([]entry, error) {
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
		return h.read(ctx, after, mostBytes)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open takes a place for a stream that begins behind a number.
func (h *Hub) open(network string, after int64, place string, want []protocol.FeedType) (*reader, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	full := func(detail string, wait time.Duration) error {
		return &protocol.Error{Code: protocol.Overloaded, Detail: detail, RetryAfter: wait}
	}
	switch {
	case !h.running():
		return nil, full("this process serves no streams now; ask again", poll)
	case h.streams >= h.Max:
		return nil, full("this node serves as many streams as it can", retryStream)
	case h.networks[network] >= maxNetworkStreams:
		return nil, full("your network has as many streams as one may have; close one", retryStream)
	}
	h.streams++
	h.networks[network]++
	r := &reader{hub: h, ended: h.ended, network: network, at: after, place: place, types: allTypes}
	if len(want) > 0 {
		r.types = typesOf(want...)
	}
	return r, nil
}

// running reports whether streams may begin. The mutex is held.
func (h *Hub) running() bool {
	select {
	case <-h.ended:
		return false
	default:
		return h.ended != nil
	}
}

// attach gives a reader that has read up to at the wake to wait for. It is nil
// when the hub has handed out more than that: then the reader reads on by itself.
func (h *Hub) attach(at int64) (*wake, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.running() {
		return nil, errEnded
	}
	if h.live == 0 {
		h.at = at
	}
	if h.at > at {
		return nil, nil
	}
	h.live++
	select {
	case h.arrived <- struct{}{}: // what was committed since the reader looked had no live reader to be read for
	default:
	}
	return h.head, nil
}

// detach takes a reader from those that wait.
func (h *Hub) detach() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live--
}

// leave gives a place back.
func (h *Hub) leave(r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams--
	if h.networks[r.network]--; h.networks[r.network] == 0 {
		delete(h.networks, r.network)
	}
}

var errEnded = errors.New("feed: there are no streams any more")
