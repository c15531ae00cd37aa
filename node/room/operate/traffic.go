package operate

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// trafficEvery is how often counts are written to the database.
const trafficEvery = time.Minute

// flushTime is how long a write of counts may take.
const flushTime = 2 * time.Second

// A Meter counts what this process does, and adds it hour by hour to what is stored.
// No request waits for it.
type Meter struct {
	DB  *storage.DB
	Log *slog.Logger

	mu     sync.Mutex
	counts map[storage.Deed]int64 // since the last write
}

func (m *Meter) add(deeds ...storage.Deed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[storage.Deed]int64{}
	}
	for _, d := range deeds {
		m.counts[d]++
	}
}

// Operation counts an operation that was done.
func (m *Meter) Operation(o hall.Observation) {
	op := protocol.Lookup(o.Op)
	switch {
	case op == nil || o.Err != nil || o.Replayed:
	case op.ReadOnly:
		m.add(storage.DeedRead)
	default:
		deeds := []storage.Deed{storage.DeedWrite}
		if o.Caller.Standing == protocol.Proof {
			deeds = append(deeds, storage.DeedProof)
		}
		if op == protocol.ReportPost.Operation {
			deeds = append(deeds, storage.DeedReport)
		}
		m.add(deeds...)
	}
}

// Delivery counts an attempt to deliver an activity.
func (m *Meter) Delivery(err error) {
	if err != nil {
		m.add(storage.DeedFailure)
	} else {
		m.add(storage.DeedDelivery)
	}
}

// Run writes the counts every minute, and at the end.
func (m *Meter) Run(ctx context.Context) error {
	tick := time.NewTicker(trafficEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		write, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime) // also for the last counts
		if err := m.Flush(write); err != nil {                                      // a node ends in order without them
			m.Log.Warn("counts of traffic were not written", "err", err)
		}
		cancel()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// Flush writes the counts. Those that cannot be written are counted with the next.
func (m *Meter) Flush(ctx context.Context) error {
	m.mu.Lock()
	counts := m.counts
	m.counts = nil
	m.mu.Unlock()
	if len(counts) == 0 {
		return nil
	}
	err := m.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Traffic().Add(ctx, counts) })
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		for d, n := range m.counts {
			counts[d] += n
		}
		m.counts = counts
	}
	return err
}

// Traffic returns what the node did over the last day or month.
func Traffic(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.TrafficQuery) (protocol.Traffic, error) {
	step, n := time.Hour, 24
	if in.Span == "month" {
		step, n = 24*time.Hour, 30
	} else {
		in.Span = "day"
	}
	from := tx.Now.Truncate(step).Add(-time.Duration(n-1) * step).UTC()
	out := protocol.Traffic{Span: in.Span, Steps: make([]protocol.TrafficStep, n)}
	for i := range out.Steps {
		out.Steps[i].At = from.Add(time.Duration(i) * step)
	}
	all, err := tx.Traffic().Since(ctx, from)
	for _, c := range all {
		i := int(c.Hour.Sub(from) / step)
		if i < 0 || i >= n { // a process whose clock is ahead
			continue
		}
		s := &out.Steps[i]
		switch c.Deed {
		case storage.DeedRead:
			s.Reads += c.N
		case storage.DeedWrite:
			s.Writes += c.N
		case storage.DeedProof:
			s.Proofs += c.N
		case storage.DeedReport:
			s.Reports += c.N
		case storage.DeedDelivery:
			s.Deliveries += c.N
		case storage.DeedFailure:
			s.Failures += c.N
		}
	}
	return out, err
}
