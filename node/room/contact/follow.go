package contact

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"sync"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

const (
	maxFollowed = 10                    // exchanges that one caller, or the guests of one network, may follow at a time
	followPoll  = time.Second           // how soon a change by another process is noticed
	followRest  = 20 * time.Millisecond // from one round to the next, at least
	followSpan  = 10 * time.Second      // how far back a poll looks: transactions that were long, clocks that differ
	followShort = time.Second           // how far back a round looks that follows a change by this process
	followBeat  = 15 * time.Second      // how often a follower hears that its stream is alive
	followRetry = 30 * time.Second      // how long one who finds no place is told to wait
)

// MaxFollowers is how many exchanges are followed at a time in a process unless its operator says otherwise.
const MaxFollowers = 2048

// A Hub wakes those who follow exchanges. While there are any, one goroutine reads which threads have changed, in one statement for all.
// It is safe for concurrent use.
type Hub struct {
	DB  *storage.DB
	Log *slog.Logger
	Max int // half of them for guests

	mu      sync.Mutex
	threads map[string]map[*follower]bool
	callers map[string]int
	all     int
	running bool
	ended   chan struct{} // closed at the end of the process
	over    bool
}

// NewHub returns a hub with so many places.
func NewHub(db *storage.DB, log *slog.Logger, most int) *Hub {
	return &Hub{DB: db, Log: log, Max: most, threads: map[string]map[*follower]bool{}, callers: map[string]int{}, ended: make(chan struct{})}
}

// Close ends all followers.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.over = true
		close(h.ended)
	}
}

// Count returns how many exchanges are followed.
func (h *Hub) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}

// enter gives a follower a place.
func (h *Hub) enter(f *follower) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	full := func(detail string) error {
		return &protocol.Error{Code: protocol.Overloaded, Detail: detail, RetryAfter: followRetry}
	}
	switch {
	case h.over, h.all >= h.Max, f.guest && h.all >= h.Max/2:
		return full("no more tasks can be followed now; ask for the task again later")
	case h.callers[f.who] >= maxFollowed:
		return full("you follow as many tasks as one caller may; end a stream first")
	}
	if h.threads[f.thread] == nil {
		h.threads[f.thread] = map[*follower]bool{}
	}
	h.threads[f.thread][f] = true
	h.callers[f.who]++
	h.all++
	if !h.running {
		h.running = true
		go h.run()
	}
	return nil
}

func (h *Hub) leave(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.threads[f.thread][f] {
		return
	}
	if delete(h.threads[f.thread], f); len(h.threads[f.thread]) == 0 {
		delete(h.threads, f.thread)
	}
	if h.callers[f.who]--; h.callers[f.who] == 0 {
		delete(h.callers, f.who)
	}
	h.all--
}

// run wakes followers until there are none.
func (h *Hub) run() {
	poll := time.NewTicker(followPoll)
	defer poll.Stop()
	for {
		span := followSpan
		select {
		case <-h.DB.Wake(storage.TopicTasks):
			time.Sleep(followRest)
			span = followShort
		case <-poll.C:
		case <-h.ended:
		}
		var moved []storage.MovedExchange
		err := h.DB.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
			moved, err = tx.Exchanges().Moved(ctx, tx.Now.Add(-span))
			return err
		})
		h.mu.Lock()
		for _, m := range moved {
			for f := range h.threads[m.ThreadID] {
				f.hears(m.ExchangeVersion)
			}
		}
		over := h.over || h.all == 0
		if over {
			h.running = false
		}
		h.mu.Unlock()
		if over {
			return
		}
		if err != nil {
			h.Log.Warn("cannot read which tasks have changed", "err", err)
		}
	}
}

// A follower is the stream of one exchange.
type follower struct {
	room   *Contact
	who    string
	thread string
	guest  bool
	thing  bool // a bid or a meeting request, which its door reads
	c      protocol.Caller
	in     protocol.ExchangeInput
	wake   chan struct{}
	heard  storage.ExchangeVersion // under the hub's lock
	seen   [sha256.Size]byte       // of what it was told last
	final  bool
}

// hears wakes the follower for a version that it has not heard of. A round shows those of a while again, and of an older task of its thread.
func (f *follower) hears(v storage.ExchangeVersion) {
	if v == f.heard || v.First < f.heard.First {
		return
	}
	f.heard = v
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Follow returns the stream of an exchange of the caller: whenever it has changed from now on. Who has a place reads it as it is, so that
// nothing is missed in between. That something has changed of a bid or a meeting request is all that its stream says: its door reads it, as the
// caller may.
func (r *Contact) Follow(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ExchangeInput) (protocol.Stream, error) {
	c.Evidence, c.Key, c.Spend = nil, nil, nil
	f := &follower{room: r, who: c.ID(), thread: in.ID, c: c, in: in, wake: make(chan struct{}, 1)}
	if f.thing = protocol.IsID(protocol.BidID, in.ID) || protocol.IsID(protocol.MeetingID, in.ID); !f.thing {
		t, _, err := r.ownExchange(ctx, tx, c, in)
		if err != nil {
			return nil, err
		}
		f.thread = t.ID
	}
	f.guest = c.Standing&(protocol.Signed|protocol.Session) == 0
	var err error
	if f.heard, err = tx.Exchanges().Version(ctx, f.thread); err != nil {
		return nil, err
	}
	return f, r.Hub.enter(f)
}

// Next implements protocol.Stream. An event is the whole exchange.
func (f *follower) Next(ctx context.Context) (*protocol.Batch, error) {
	beat := time.NewTimer(followBeat)
	defer beat.Stop()
	for !f.final {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-f.room.Hub.ended:
			return nil, io.EOF
		case <-beat.C:
			return &protocol.Batch{}, nil
		case <-f.wake:
		}
		if f.thing {
			return &protocol.Batch{Events: []protocol.Event{{Type: "exchange"}}}, nil
		}
		var e protocol.Exchange
		err := f.room.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			e, err = f.room.GetExchange(ctx, tx, f.c, f.in)
			return err
		})
		if err != nil {
			return nil, err
		}
		raw, err := hall.JSON(e)
		if err != nil {
			return nil, err
		}
		f.final = e.State.Final()
		if sum := sha256.Sum256(raw); sum != f.seen {
			f.seen = sum
			return &protocol.Batch{Events: []protocol.Event{{Type: "exchange", Data: raw}}}, nil
		}
	}
	return nil, io.EOF
}

// Place implements protocol.Stream. A client that comes back begins with the exchange as it is.
func (f *follower) Place() string { return "" }

// Close implements protocol.Stream.
func (f *follower) Close() { f.room.Hub.leave(f) }
