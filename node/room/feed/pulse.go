package feed

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// maxPulse is how many pages a process keeps informed at a time.
const maxPulse = 512

// A Pulse tells pages that wait for an answer when something may have happened to them: when the number up to which
// items and news are complete has grown, which it does on every process of a deployment. One goroutine (Run) looks
// once a second while there are such pages, and not at all otherwise. There are none before and after Run.
type Pulse struct {
	DB  *storage.DB
	Log *slog.Logger

	arrived chan struct{} // signal: the first page has come

	mu      sync.Mutex // guards what follows
	running bool
	beat    chan struct{} // closed when n grows or Run ends
	n       int64
	seats   seats
}

// NewPulse returns a pulse that accepts pages while it runs.
func NewPulse(db *storage.DB, log *slog.Logger) *Pulse {
	return &Pulse{DB: db, Log: log, arrived: make(chan struct{}, 1), beat: make(chan struct{}), seats: newSeats()}
}

// Run serves pages until ctx ends. It must be called once.
func (p *Pulse) Run(ctx context.Context) error {
	p.mu.Lock()
	p.running = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.running = false
		close(p.beat)
	}()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if p.Pages() == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-p.arrived:
			}
		}
		if err := p.look(ctx); err != nil && ctx.Err() == nil {
			p.Log.Warn("cannot read what pages wait for", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (p *Pulse) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	var n int64
	err := p.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		_, n, _, err = tx.News().After(ctx, nil, 0, 1)
		return err
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.n {
		p.n = n
		close(p.beat)
		p.beat = make(chan struct{})
	}
	return nil
}

// Pages returns how many pages wait.
func (p *Pulse) Pages() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seats.count()
}

// Join takes a place for a page of a client network, known when somebody signed in looks at it; leave gives it back. It
// fails with overloaded when there is no place, or the pulse does not run.
func (p *Pulse) Join(network string, known bool) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running {
		return nil, &protocol.Error{Code: protocol.Overloaded, Detail: "no page is kept up to date now; load the page again", RetryAfter: retryStream}
	}
	if err := p.seats.take(maxPulse, network, known); err != nil {
		return nil, err
	}
	select {
	case p.arrived <- struct{}{}:
	default:
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seats.leave(network, known)
	}, nil
}

// Next waits until something has happened after seen, 0 for nothing yet, and returns the number to pass next. It
// returns io.EOF when the pulse has ended, and the error of ctx.
func (p *Pulse) Next(ctx context.Context, seen int64) (int64, error) {
	for {
		p.mu.Lock()
		running, n, beat := p.running, p.n, p.beat
		p.mu.Unlock()
		if !running {
			return seen, io.EOF
		}
		if n > seen {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return seen, ctx.Err()
		case <-beat:
		}
	}
}
