// Package trace records the steps of a request, a job or a delivery, and how long each took: the spans of OpenTelemetry's data model
// (https://opentelemetry.io/docs/specs/otel/trace/api/). A [Tracer] begins a trace; what is under way continues it by [Start], with the
// context that everything passes on. Without a tracer nothing is recorded and nothing is allocated.
//
// Whether a trace is kept is decided when its first span here ends: one that failed or was slow always is, of the others a share. The package
// does no I/O; node/out/otlp sends what is kept.
//
// Names and values of a span come from small fixed sets, except for the hosts of other servers: no ids, handles, texts, paths or queries.
package trace

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"
)

// MaxSpans are the spans that a trace has at most; those that end later are counted only.
const MaxSpans = 128

// A Kind is what a span is to its caller, in the numbers of OTLP.
type Kind int

const (
	Internal Kind = 1
	Server   Kind = 2
	Client   Kind = 3 // of an outgoing call; a failure of it is not one of the trace
	Producer Kind = 4
	Consumer Kind = 5
)

// A Tracer begins traces. A nil one begins none.
type Tracer struct {
	Share float64       // of the traces that neither failed nor were slow, 0 to 1
	Slow  time.Duration // from which on a trace is kept; 0 for never
	Keep  func(*Trace)  // is given each trace that is kept; it must not wait
}

// A Trace is what happens here of one trace, under its first span.
type Trace struct {
	ID      [16]byte
	Cause   Context // the span of another trace that caused this one, if any
	Spans   []*Span // in the order in which they ended: the one that began the trace is the last
	Dropped int     // spans beyond MaxSpans

	Matters bool // it failed or was slow

	tracer  *Tracer
	sampled bool // by the caller whose trace this continues
	long    bool // of a stream: Slow does not apply
	ended   bool
	mu      sync.Mutex // guards all but ID, Cause, tracer and sampled until the trace has ended; then nothing changes
}

// A Span is one step. A nil one records nothing.
type Span struct {
	Name       string
	Kind       Kind
	ID, Parent [8]byte // Parent is zero for none
	Start      time.Time
	Duration   time.Duration
	Attrs      []Attr
	Failed     bool

	trace *Trace
	first bool
}

// An Attr is a number, or a text where Text is not "". Without a key it is none.
type Attr struct {
	Key    string
	Text   string
	Number int64
}

// Text is an attribute with a text, none for "".
func Text(key, value string) Attr {
	if value == "" {
		return Attr{}
	}
	return Attr{Key: key, Text: value}
}

// Number is an attribute with a number.
func Number[N int | int64 | uint64](key string, value N) Attr {
	return Attr{Key: key, Number: int64(value)}
}

type spanKey struct{}

// Begin begins a trace, or continues that of a valid parent elsewhere, with its first span here. A valid cause is linked from that span.
func (t *Tracer) Begin(ctx context.Context, name string, kind Kind, parent, cause Context) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	tr := &Trace{ID: parent.Trace, Cause: cause, tracer: t, sampled: parent.Sampled}
	if !parent.Valid() {
		binary.BigEndian.PutUint64(tr.ID[:8], rand.Uint64())
		binary.BigEndian.PutUint64(tr.ID[8:], rand.Uint64()|1)
	}
	s := tr.span(name, kind, parent.Span)
	s.first = true
	return context.WithValue(ctx, spanKey{}, s), s
}

// Start begins a step of what the context belongs to.
func Start(ctx context.Context, name string, kind Kind) (context.Context, *Span) {
	s := Of(ctx).Child(name, kind)
	if s == nil {
		return ctx, nil
	}
	return context.WithValue(ctx, spanKey{}, s), s
}

// Of is the span that the context belongs to, nil for none.
func Of(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// Cause is what a job or a delivery that is enqueued now links to: the span of the request, also within a job that the request caused.
func Cause(ctx context.Context) Context {
	s := Of(ctx)
	switch {
	case s == nil:
		return Context{}
	case s.trace.Cause.Valid():
		return s.trace.Cause
	}
	return Context{Trace: s.trace.ID, Span: s.ID}
}

// ID is the id of the trace of that request, in hexadecimal; "" for none.
func ID(ctx context.Context) string { return Cause(ctx).ID() }

// Child begins a step of the span, for code that passes no context on.
func (s *Span) Child(name string, kind Kind) *Span {
	if s == nil {
		return nil
	}
	return s.trace.span(name, kind, s.ID)
}

func (tr *Trace) span(name string, kind Kind, parent [8]byte) *Span {
	s := &Span{Name: name, Kind: kind, Parent: parent, Start: time.Now(), trace: tr}
	binary.BigEndian.PutUint64(s.ID[:], rand.Uint64()|1)
	return s
}

// Set adds attributes. Until it ends, a span is used by one goroutine.
func (s *Span) Set(attrs ...Attr) {
	if s != nil {
		s.Attrs = append(s.Attrs, attrs...)
	}
}

// Fail says that the step failed by a fault, and not for what the caller did.
func (s *Span) Fail() {
	if s != nil {
		s.Failed = true
	}
}

// Long exempts the trace from Slow: it is that of a stream.
func (s *Span) Long() {
	if s != nil {
		s.trace.mu.Lock()
		defer s.trace.mu.Unlock()
		s.trace.long = true
	}
}

// End ends a step now.
func (s *Span) End() {
	if s != nil {
		s.EndAfter(time.Since(s.Start))
	}
}

// Drop ends a trace that is never kept. It is called on the first span, in place of End.
func (s *Span) Drop() {
	if s != nil {
		s.trace.mu.Lock()
		defer s.trace.mu.Unlock()
		s.trace.ended = true
	}
}

// EndAfter ends a step that took that long.
func (s *Span) EndAfter(d time.Duration) {
	if s == nil {
		return
	}
	s.Duration = d
	if s.trace.add(s) && s.trace.tracer.Keep != nil {
		s.trace.tracer.Keep(s.trace)
	}
}

// add reports whether the trace has ended with the span, and is kept. Steps that end later are not in it.
func (tr *Trace) add(s *Span) (kept bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.ended {
		return false
	}
	tr.Matters = tr.Matters || s.Failed && s.Kind != Client
	if !s.first && len(tr.Spans) >= MaxSpans-1 {
		tr.Dropped++
		return false
	}
	tr.Spans = append(tr.Spans, s)
	if !s.first {
		return false
	}
	tr.ended = true
	tr.Matters = tr.Matters || tr.tracer.Slow > 0 && s.Duration >= tr.tracer.Slow && !tr.long
	return tr.Matters || tr.sampled || tr.shared()
}

// shared reports whether the trace is in the share. The id of the trace that caused it decides, so that a request in the share is kept with what
// it causes: its last 56 bits are at least the threshold (OpenTelemetry, TraceState: Probability Sampling).
func (tr *Trace) shared() bool {
	id := tr.ID
	if tr.Cause.Valid() {
		id = tr.Cause.Trace
	}
	return binary.BigEndian.Uint64(id[8:])&(1<<56-1) >= uint64((1-tr.tracer.Share)*(1<<56))
}
