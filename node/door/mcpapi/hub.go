package mcpapi

import (
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
)

// Bounds of streams that tell of changes.
const (
	maxListeners = 512 // of a process; half of them for callers that the node does not know
	maxOfNetwork = 8
	maxFollowed  = 50 // resources of one stream
	maxLogs      = 32 // log messages that wait for their stream

	lookEvery  = time.Second
	perLook    = 64 // resources read in one look, in turn
	lookAnyway = 5  // looks without a commit here after which all are read: other processes commit too
	beatEvery  = 15 * time.Second
	openWithin = time.Minute // the older wire: how long what is followed waits for its stream
)

// A Hub tells streams when resources that they follow have changed: while there are any, one goroutine reads them again after commits, at most perLook
// a second for all together, and compares. So it tells what a reader would see, whatever changed it. It is safe for concurrent use.
type Hub struct {
	changes func() uint64
	streams hall.Streams
	ended   chan struct{}

	mu        sync.Mutex
	watches   map[string]*watch
	sessions  map[string]*listener // of the older wire
	listeners map[*listener]bool
	taken     protocol.Waiting
	networks  map[string]int
	running   bool
	over      bool
}

// NewHub returns a hub. changes grows whenever stored data may have changed.
func NewHub(changes func() uint64) *Hub {
	return &Hub{changes: changes, ended: make(chan struct{}), watches: map[string]*watch{}, sessions: map[string]*listener{},
		listeners: map[*listener]bool{}, networks: map[string]int{}}
}

// Close ends all streams.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.over = true
		close(h.ended)
	}
}

// Wait returns when every stream has ended, or ctx has.
func (h *Hub) Wait(ctx context.Context) { h.streams.Wait(ctx) }

// Streams is how many there are, Watched how many resources they follow together.
func (h *Hub) Streams() int { h.mu.Lock(); defer h.mu.Unlock(); return len(h.listeners) }
func (h *Hub) Watched() int { h.mu.Lock(); defer h.mu.Unlock(); return len(h.watches) }

// A watch is one resource as its followers last knew it.
type watch struct {
	key, uri string
	read     func(ctx context.Context) (sum [sha256.Size]byte, ok bool)
	sum      [sha256.Size]byte
	of       map[*listener]bool
}

// A listener is one stream.
type listener struct {
	network string
	known   bool
	session string        // of the older wire
	wake    chan struct{} // signal
	done    chan struct{} // closed when another stream of the session takes its place

	follows map[string]*watch // by address
	changed []string          // addresses to tell of, each once
	level   int               // of log messages, 0 for none
	logs    [][]byte
	until   time.Time // when it is forgotten, zero while its stream is open
}

// join takes a place; of a session of the same network that has no stream now, where the network has all of its own.
func (h *Hub) join(network string, known bool) (*listener, error) {
	if h.networks[network] >= maxOfNetwork {
		for _, l := range h.sessions {
			if l.network == network && !l.until.IsZero() {
				h.leave(l)
				break
			}
		}
	}
	full := func(detail string) error {
		return &protocol.Error{Code: protocol.Overloaded, Detail: detail, RetryAfter: 30 * time.Second}
	}
	switch shared := (protocol.Shared{Most: maxListeners}); {
	case h.over:
		return nil, full("this process is not serving streams now; try again")
	case h.networks[network] >= maxOfNetwork:
		return nil, full("your network has as many streams open as one network may have; close one")
	case shared.Full(known, h.taken):
		return nil, full("this node keeps as many streams open as it can; try again later")
	}
	l := &listener{network: network, known: known, wake: make(chan struct{}, 1), done: make(chan struct{}), follows: map[string]*watch{}}
	h.listeners[l] = true
	h.count(l, 1)
	return l, nil
}

func (h *Hub) count(l *listener, n int) {
	if l.known {
		h.taken.Known += n
	} else {
		h.taken.Strangers += n
	}
	if h.networks[l.network] += n; h.networks[l.network] == 0 {
		delete(h.networks, l.network)
	}
}

// leave gives the place back.
func (h *Hub) leave(l *listener) {
	if !h.listeners[l] {
		return
	}
	delete(h.listeners, l)
	if h.sessions[l.session] == l {
		delete(h.sessions, l.session)
	}
	h.count(l, -1)
	for uri := range l.follows {
		h.drop(l, uri)
	}
}

func (h *Hub) drop(l *listener, uri string) {
	w := l.follows[uri]
	if w == nil {
		return
	}
	delete(l.follows, uri)
	if delete(w.of, l); len(w.of) == 0 {
		delete(h.watches, w.key)
	}
}

// follow makes a listener hear of a resource. w is shared with others where its key is theirs.
func (h *Hub) follow(l *listener, w *watch) bool {
	if l.follows[w.uri] != nil {
		return true
	}
	if len(l.follows) >= maxFollowed {
		return false
	}
	if shared := h.watches[w.key]; shared != nil {
		w = shared
	}
	h.watches[w.key], l.follows[w.uri], w.of[l] = w, w, true
	h.begin()
	return true
}

func (h *Hub) begin() {
	if !h.running && !h.over {
		h.running = true
		go h.run()
	}
}

// run looks at what is followed until there is nothing, and nothing waits for its stream.
func (h *Hub) run() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var turn []*watch
	seen, idle := h.changes(), 0
	for {
		select {
		case <-tick.C:
		case <-h.ended:
			return
		}
		if h.rest() {
			return
		}
		idle++
		if now := h.changes(); now != seen || idle > lookAnyway {
			seen, idle, turn = now, 0, h.all(turn)
		}
		turn = h.look(turn)
	}
}

// look reads what is next in turn, and returns the rest.
func (h *Hub) look(turn []*watch) []*watch {
	some := turn[:min(len(turn), perLook)]
	for _, w := range some {
		ctx, cancel := context.WithTimeout(context.Background(), lookEvery)
		sum, ok := w.read(ctx)
		cancel()
		if ok {
			h.looked(w, sum)
		}
	}
	return turn[len(some):]
}

// all is what there is to look at: what is still to be looked at, then the rest.
func (h *Hub) all(turn []*watch) []*watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	waits := map[*watch]bool{}
	for _, w := range turn {
		waits[w] = true
	}
	for _, w := range h.watches {
		if !waits[w] {
			turn = append(turn, w)
		}
	}
	return slices.DeleteFunc(turn, func(w *watch) bool { return h.watches[w.key] != w })
}

// rest forgets those whose stream did not come, and reports whether there is nothing to do any more.
func (h *Hub) rest() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, waiting := time.Now(), false
	for _, l := range slices.Collect(maps.Values(h.sessions)) {
		if !l.until.IsZero() && now.After(l.until) {
			h.leave(l)
		} else if !l.until.IsZero() {
			waiting = true
		}
	}
	h.running = waiting || len(h.watches) > 0
	return !h.running
}

func (h *Hub) looked(w *watch, sum [sha256.Size]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.sum == sum {
		return
	}
	w.sum = sum
	for l := range w.of {
		if !slices.Contains(l.changed, w.uri) {
			l.changed = append(l.changed, w.uri)
		}
		l.rouse()
	}
}

func (l *listener) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns what a stream has to tell.
func (h *Hub) take(l *listener) (changed []string, logs [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed, logs, l.changed, l.logs = l.changed, l.logs, nil, nil
	return changed, logs
}

// stream writes what a listener hears, until done is closed or it ends. updated is the notification of a change; last is written at the end.
func (h *Hub) stream(w http.ResponseWriter, r *http.Request, l *listener, done chan struct{}, hello, last []byte, updated func(uri string) []byte) {
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	h.streams.Serve(w, r, http.StatusOK, func(life context.Context, out hall.Sink, first []byte) {
		defer h.left(l, done)
		if !hall.Put(out, append(first, hello...)) {
			return
		}
		beat := time.NewTicker(beatEvery)
		defer beat.Stop()
		for {
			var b []byte
			select {
			case <-life.Done():
				hall.Put(out, last)
				return
			case <-h.ended:
				hall.Put(out, last)
				return
			case <-done:
				return
			case <-l.wake:
				changed, logs := h.take(l)
				for _, uri := range changed {
					b = append(b, event(updated(uri))...)
				}
				for _, log := range logs {
					b = append(b, event(log)...)
				}
			case <-beat.C:
				b = []byte(":\n\n")
			}
			if !hall.Put(out, b) {
				return
			}
		}
	})
}

// left is the end of a stream. What a session of the older wire follows waits for its next one.
func (h *Hub) left(l *listener, done chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case l.done != done: // it has one
	case l.session == "" || len(l.follows) == 0:
		h.leave(l)
	default:
		l.until = time.Now().Add(openWithin)
		h.begin()
	}
}

func event(message []byte) []byte {
	return append(append([]byte("data: "), message...), '\n', '\n')
}
