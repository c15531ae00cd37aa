package commit

import (
	"context"
	"time"

	"stoa/protocol"
	"stoa/protocol/trace"
)

// marked is the context of a write whose steps are recorded. The writer sets its fields; the caller reads them after the answer.
type marked struct {
	context.Context
	taken      time.Time // when the write left the queue
	began, ran time.Time // when its function began and returned, in the last attempt
	commits    time.Time // when that attempt began to commit
	batch      int       // writes in the transaction
}

// marks returns the marked of a recorded write, nil for others.
func (o *op) marks() *marked {
	m, _ := o.ctx.(*marked)
	return m
}

// traced is Write for a caller whose steps are recorded.
func (db *DB) traced(ctx context.Context, s *trace.Span, fn func(ctx context.Context, tx *Tx) error, spends []protocol.Spend) error {
	s = s.Child("write", trace.Internal)
	defer s.End()
	s.Set(trace.Text("db.system.name", map[Engine]string{SQLite: "sqlite", Postgres: "postgresql"}[db.engine]))
	m := &marked{Context: ctx}
	o := &op{ctx: m, fn: fn, done: make(chan error, 1), spends: spends}
	err := db.write(ctx, o)
	if o.state.Load() != opTaken {
		return err // no writer took it
	}
	end := time.Now()
	s.Set(trace.Number("db.operation.batch.size", m.batch))
	step(s, "write.wait", s.Start, m.taken)
	step(s, "write.run", m.began, m.ran)
	step(s, "write.commit", m.commits, end)
	return err
}

// step records a step between two moments, if both came.
func step(of *trace.Span, name string, from, to time.Time) {
	if from.IsZero() || to.IsZero() {
		return
	}
	s := of.Child(name, trace.Internal)
	s.Start = from
	s.EndAfter(to.Sub(from))
}
