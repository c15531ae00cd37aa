package feed

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

const (
	maxStreams        = 1024             // of one process
	maxNetworkStreams = 8                // of one client network
	poll              = time.Second      // how long another process's item may go unseen
	pageSize          = 100              // items a read
	waitingPages      = 16               // pages that may wait for a reader before it is cut
	retryStream       = 30 * time.Second // what a reader is told to wait for a free place
)

// A Hub follows the feed for all streams of a process at once: one goroutine
// (Run) reads what is new and hands it to every reader that has caught up.
// Readers that have not read by themselves, page by page. What waits for a
// reader is bounded; one that does not keep up is cut. Before Open and after Run
// there are no streams, so none outlives the node.
type Hub struct {
	DB   *storage.DB
	Base string // public address of the node, without a slash at the end
	Log  *slog.Logger

	arrived chan struct{} // a hint: a reader has caught up

	mu       sync.Mutex    // guards what follows
	ended    chan struct{} // closed when Run ends; nil before Open
	at       int64         // up to this number every live reader has been handed everything
	live     map[*reader]bool
	networks map[string]int // streams of a client network
	streams  int
}

// NewHub returns a hub that has no streams until Open.
func NewHub(db *storage.DB, base string, log *slog.Logger) *Hub {
	return &Hub{DB: db, Base: base, Log: log, arrived: make(chan struct{}, 1), live: map[*reader]bool{}, networks: map[string]int{}}
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
		clear(h.live)
	}()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.DB.Wake(storage.TopicFeed):
		case <-h.arrived:
		case <-tick.C:
		}
		if err := h.deliver(ctx); err != nil && ctx.Err() == nil {
			h.Log.Warn("cannot read the feed for streams", "err", err)
		}
	}
}

// Streams is how many there are.
func (h *Hub) Streams() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams
}

// deliver hands what is new to the live readers.
func (h *Hub) deliver(ctx context.Context) error {
	for {
		h.mu.Lock()
		at, idle := h.at, len(h.live) == 0
		h.mu.Unlock()
		if idle {
			return nil
		}
		p, err := h.read(ctx, at)
		if err != nil || len(p) == 0 {
			return err
		}
		h.hand(at, p)
	}
}

// hand gives a page to every live reader that has room, and cuts the others.
func (h *Hub) hand(at int64, p []entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at != at {
		return // all had gone and others have come meanwhile, who stand elsewhere
	}
	h.at = p[len(p)-1].n
	for r := range h.live {
		select {
		case r.pages <- p:
		default:
			delete(h.live, r)
			close(r.cut)
		}
	}
}

// An entry is a feed item as an event, with its number.
type entry struct {
	protocol.Event
	n int64
}

// read is a page of the feed behind a number, in the order of commits.
func (h *Hub) read(ctx context.Context, after int64) (p []entry, err error) {
	err = h.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		items, err := tx.FeedAfter(ctx, after, pageSize)
		if err != nil {
			return err
		}
		for _, i := range items {
			locate(h.Base, &i.FeedItem)
			data, err := json.Marshal(i.FeedItem)
			if err != nil {
				return err
			}
			p = append(p, entry{protocol.Event{ID: i.ID, Type: string(i.Type), Data: data}, i.N})
		}
		return nil
	})
	return p, err
}

// open takes a place for a stream that begins behind a number.
func (h *Hub) open(network string, after int64, place string, types []protocol.FeedType) (*reader, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	full := func(detail string, wait time.Duration) error {
		return &protocol.Error{Code: protocol.Overloaded, Detail: detail, RetryAfter: wait}
	}
	switch {
	case !h.running():
		return nil, full("this process serves no streams now; ask again", poll)
	case h.streams >= maxStreams:
		return nil, full("this node serves as many streams as it can", retryStream)
	case h.networks[network] >= maxNetworkStreams:
		return nil, full("your network has as many streams as one may have; close one", retryStream)
	}
	h.streams++
	h.networks[network]++
	r := &reader{hub: h, ended: h.ended, network: network, at: after, place: place, pages: make(chan []entry, waitingPages), cut: make(chan struct{})}
	if len(types) > 0 {
		r.types = map[string]bool{}
		for _, t := range types {
			r.types[string(t)] = true
		}
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

// attach makes a reader live that has read up to at. It is false when the hub
// has handed out more than that: then the reader reads on by itself.
func (h *Hub) attach(r *reader, at int64) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.running() {
		return false, errEnded
	}
	if len(h.live) == 0 {
		h.at = at
	}
	if h.at > at {
		return false, nil
	}
	h.live[r] = true
	select {
	case h.arrived <- struct{}{}: // what was committed since the reader looked had no live reader to be read for
	default:
	}
	return true, nil
}

// leave gives a place back.
func (h *Hub) leave(r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.live, r)
	h.streams--
	if h.networks[r.network]--; h.networks[r.network] == 0 {
		delete(h.networks, r.network)
	}
}

var errEnded = errors.New("feed: there are no streams any more")
