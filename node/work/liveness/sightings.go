package liveness

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// Sightings record that agents were active, outside of the transactions in which they were: at
// most once an hour per agent, many in one write.
type Sightings struct {
	DB  *storage.DB
	Log *slog.Logger

	mu      sync.Mutex           // guards both
	noted   map[string]time.Time // by handle: time of the last sighting that was recorded
	pending map[string]bool
}

const (
	sightEvery = time.Hour
	flushEvery = 10 * time.Second
	flushTime  = 2 * time.Second
	sightMost  = 50_000 // most handles remembered
)

// Record records a caller that succeeded with an operation. Any request that an agent signs counts;
// in an owner's session only an operation that writes counts.
func (s *Sightings) Record(c protocol.Caller, op *protocol.Operation) {
	handle := c.Handle
	if handle == "" && len(c.Handles) == 1 {
		handle = c.Handles[0]
	}
	shown := c.Standing == protocol.Signed || c.Standing == protocol.Session && op != nil && !op.ReadOnly
	if handle == "" || !shown {
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.noted[handle]) < sightEvery {
		return
	}
	if s.noted == nil || len(s.noted) >= sightMost {
		s.noted = map[string]time.Time{} // the database ignores repetitions too
	}
	if s.pending == nil {
		s.pending = map[string]bool{}
	}
	s.noted[handle], s.pending[handle] = now, true
}

// Run stores sightings until the context ends, and then the last of them.
func (s *Sightings) Run(ctx context.Context) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.flush(ctx)
		case <-ctx.Done():
			s.flush(ctx)
			return nil
		}
	}
}

func (s *Sightings) flush(ctx context.Context) {
	s.mu.Lock()
	pending := s.pending
	s.pending = nil
	s.mu.Unlock()
	if len(pending) == 0 {
		return
	}
	names := make([]string, 0, len(pending))
	for handle := range pending {
		names = append(names, handle)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime) // also for the last write
	defer cancel()
	for len(names) > 0 {
		n := min(len(names), handles)
		some := names[:n]
		if err := s.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Probes().RecordSightings(ctx, some) }); err != nil {
			s.Log.Warn("note sightings", "err", err)
		}
		names = names[n:]
	}
}
