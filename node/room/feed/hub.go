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
const MaxStreams = 2048

const (
	maxNetworkStreams = 8                // of one client network
	poll              = time.Second      // how late an item of another process may be noticed
	pageSize          = 100              // items per read
	heartbeat         = 15 * time.Second // longest silence of a stream
	waitingBatches    = 64               // that a reader may be late before it is cut: more than a door waits for one write
	readTime          = 5 * time.Second  // for one page, so that heartbeats are sent while the database does not answer
	retryStream       = 30 * time.Second // how long a reader is told to wait for a free place

	// Each wake costs one write per stream, however much there is to write. The time between wakes
	// therefore grows with the number of streams: all together make at most 4000 writes a second,
	// a twentieth of a core.
	streamRest = 250 * time.Microsecond
	leastRest  = 100 * time.Millisecond
	mostRest   = time.Second

	// One wake hands out wakeBytes over all streams, and at least leastBytes and at most mostBytes
	// to each, so that bytes cost no more than the writes. The rest waits in the database for the
	// next wake.
	wakeBytes  = 48 << 20
	leastBytes = 48 << 10
	mostBytes  = 128 << 10
)

// rest returns the pause between two wakes for a number of streams. It is twice as long when the
// streams are behind: nothing is immediate then, and fewer and larger writes cost less.
func rest(streams int, behind bool) time.Duration {
	d := min(max(time.Duration(streams)*streamRest, leastRest), mostRest)
	if behind {
		return 2 * d
	}
	return d
}

// share returns how many bytes one wake hands to each stream.
func share(streams int) int { return min(max(wakeBytes/max(streams, 1), leastBytes), mostBytes) }

// A Hub follows the feed for all streams of a process. One goroutine (Run) reads new items, wakes
// every reader that has caught up with one shared batch, and pauses. Readers that have not caught
// up read for themselves, page by page, one reader at a time. A reader that is too slow is cut.
// There are no streams before Open and after Run, so none outlives the node.
type Hub struct {
	DB   *storage.DB
	Base string // public address of the node, without a slash at the end
	Log  *slog.Logger
	Max  int // most streams at a time

	arrived chan struct{} // signal: a reader has caught up
	reading chan struct{} // held by the reader that reads for itself
	wakes   atomic.Uint64 // number of the newest batch that was handed out
	counts  counts

	mu    sync.Mutex    // guards what follows
	ended chan struct{} // closed when Run ends; nil before Open
	at    int64         // every live reader has been handed everything up to this number
	head  *wake         // the next wake
	live  int           // readers that wait for it or for an earlier one
	seats seats
	turns uint64 // times that a stream began or ended
}

// A wake is what the hub hands to all live readers at once. They wait for the newest; a late
// reader follows the chain of those that it has missed.
type wake struct {
	ready chan struct{} // closed when the other fields are set
	n     uint64
	page  []entry
	beat  bool // readers without an event send a heartbeat
	next  *wake

	mu sync.Mutex // guards by
	by map[types]*protocol.Batch
}

func newWake() *wake { return &wake{ready: make(chan struct{})} }

// batch returns the events of some types, shared by all streams that want them.
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

// Counts are the figures of a hub: its streams now, the rest since it was made.
type Counts struct {
	Streams int    // open streams
	Wakes   uint64 // times that the waiting streams were woken
	Batches uint64 // batches of events that streams were given, each written at once
	Events  uint64 // events in those batches
	Cut     uint64 // streams that were too slow
	Behind  bool   // the last wake could not hand out everything
}

type counts struct {
	batches, events, cut atomic.Uint64
	behind               atomic.Bool
}

// Counts may be called at any time.
func (h *Hub) Counts() Counts {
	return Counts{h.Streams(), h.wakes.Load(), h.counts.batches.Load(), h.counts.events.Load(), h.counts.cut.Load(), h.counts.behind.Load()}
}

// NewHub returns a hub with room for MaxStreams streams, which accepts none before Open.
func NewHub(db *storage.DB, base string, log *slog.Logger) *Hub {
	return &Hub{DB: db, Base: base, Log: log, Max: MaxStreams, arrived: make(chan struct{}, 1), reading: make(chan struct{}, 1),
		head: newWake(), seats: newSeats()}
}

// Open accepts streams. A server that is started after it refuses none. Run must be called next.
func (h *Hub) Open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.ended = make(chan struct{})
	}
}

// Run serves streams until ctx ends, then ends them all. It must be called once.
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
	tidy := newTidier()
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
		tidy.look(h.turnsSoFar(), now)
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

// Streams returns the number of open streams.
func (h *Hub) Streams() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seats.count()
}

// turnsSoFar is how many times a stream began or ended.
func (h *Hub) turnsSoFar() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.turns
}

// deliver wakes the live readers with new items, as many as one wake may hand out, and reports
// whether there are more.
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
		h.wakeAll(at, page, beat)
	}
	return room <= 0, err
}

// wakeAll wakes every live reader.
func (h *Hub) wakeAll(at int64, page []entry, beat bool) {
	h.mu.Lock()
	if h.at != at {
		h.mu.Unlock()
		return // all readers left, and others have come with another position
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
	n      int64
	remote bool // it happened on another node
}

// size is roughly the number of bytes that the entry takes in a stream.
func (e entry) size() int { return len(e.Data) + len(e.ID) + len(e.Type) }

// read returns a page of the feed after a number, in the order of commits. It ends with the item
// that exceeds room, in bytes.
func (h *Hub) read(ctx context.Context, after int64, room int) (p []entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	err = h.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		p = nil
		items, err := tx.Feed().After(ctx, after, pageSize)
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
			e := entry{protocol.Event{ID: i.ID, Type: string(i.Type), Data: data}, i.N, i.Node != nil}
			p, left = append(p, e), left-e.size()
		}
		return nil
	})
	return p, err
}

// readAlone is read for a reader that has not caught up. It serves one reader at a time, so that
// many returning readers use one connection to the database, and reads on a goroutine of its own,
// so that the stack of the reader's, which lasts for hours, stays small.
func (h *Hub) readAlone(ctx context.Context, after int64) (p []entry, err error) {
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p, err = h.read(ctx, after, mostBytes)
	}()
	<-done
	return p, err
}

// open takes a place for a stream that starts after a number.
func (h *Hub) open(c protocol.Caller, after int64, place string, in protocol.FeedStream) (*reader, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.running() {
		return nil, &protocol.Error{Code: protocol.Overloaded, Detail: "this process is not serving streams now; try again", RetryAfter: poll}
	}
	if err := h.seats.take(h.Max, c.Network, c.Known()); err != nil {
		return nil, err
	}
	h.turns++
	r := &reader{hub: h, ended: h.ended, network: c.Network, known: c.Known(), at: after, place: place, types: allTypes}
	if want := in.List(); len(want) > 0 {
		r.types = typesOf(want...) | ofOthers
	}
	if in.Local {
		r.types &^= ofOthers
	}
	return r, nil
}

// running reports whether streams may be opened. The caller holds the mutex.
func (h *Hub) running() bool {
	select {
	case <-h.ended:
		return false
	default:
		return h.ended != nil
	}
}

// attach returns the wake to wait for, for a reader that has read up to at. It returns nil when
// the hub has handed out more than that: the reader then keeps reading for itself.
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
	case h.arrived <- struct{}{}: // items committed since that reader's last read had no live reader yet
	default:
	}
	return h.head, nil
}

// detach removes a reader from the live ones.
func (h *Hub) detach() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live--
}

// leave releases a stream's place.
func (h *Hub) leave(r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turns++
	h.seats.leave(r.network, r.known)
}

var errEnded = errors.New("feed: the hub has ended")
