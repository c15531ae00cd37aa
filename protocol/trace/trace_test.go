package trace_test

import (
	"context"
	"encoding/binary"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/trace"
)

// W3C Trace Context §3.2.2, with what is not valid.
func TestParent(t *testing.T) {
	t.Parallel()
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, c := range []struct {
		header  string
		good    bool
		sampled bool
	}{
		{"00-" + id + "-" + span + "-01", true, true},
		{"00-" + id + "-" + span + "-00", true, false},
		{"00-" + id + "-" + span + "-03", true, true},
		{"cc-" + id + "-" + span + "-01", true, true},
		{"cc-" + id + "-" + span + "-01-what-is-new", true, true},
		{"cc-" + id + "-" + span + "-01.new", false, false},
		{"00-" + id + "-" + span + "-01-what-is-new", false, false},
		{"ff-" + id + "-" + span + "-01", false, false},
		{"00-" + id + "-" + span + "-0", false, false},
		{"00-" + id + "-" + span + "-0g", false, false},
		{"0x-" + id + "-" + span + "-01", false, false},
		{"00-4BF92F3577B34DA6A3CE929D0E0E4736-" + span + "-01", false, false},
		{"00-00000000000000000000000000000000-" + span + "-01", false, false},
		{"00-" + id + "-0000000000000000-01", false, false},
		{"00_" + id + "-" + span + "-01", false, false},
		{"00-" + id + "_" + span + "-01", false, false},
		{"00-" + id + "-" + span + "_01", false, false},
		{"", false, false},
	} {
		got := trace.Parent(http.Header{"Traceparent": {c.header}})
		require.Equal(t, c.good, got.Valid(), c.header)
		require.Equal(t, c.sampled, got.Sampled, c.header)
		if c.good {
			require.Equal(t, id, got.ID())
			require.Equal(t, trace.Context{Trace: got.Trace, Span: got.Span}, trace.Stored(got.Bytes()))
		}
	}
	one := "00-" + id + "-" + span + "-01"
	require.False(t, trace.Parent(http.Header{"Traceparent": {one, one}}).Valid(), "two")
	require.False(t, trace.Parent(nil).Valid())
	for _, ids := range [][]byte{nil, {1}, make([]byte, 24), make([]byte, 25)} {
		require.False(t, trace.Stored(ids).Valid())
	}
}

func keeping(share float64) (*trace.Tracer, *[]*trace.Trace) {
	kept := new([]*trace.Trace)
	return &trace.Tracer{Share: share, Slow: time.Second, Keep: func(t *trace.Trace) { *kept = append(*kept, t) }}, kept
}

// A trace is kept when it failed, was slow, belongs to the share, or when who began it keeps it: decided at its end.
func TestTail(t *testing.T) {
	t.Parallel()
	low, high := trace.Context{Trace: [16]byte{0: 9, 15: 1}, Span: [8]byte{1}}, trace.Context{Trace: [16]byte{0: 9, 9: 0xff}, Span: [8]byte{1}}
	chosen, greatest := high, high
	chosen.Sampled = true
	for i := 8; i < 16; i++ {
		greatest.Trace[i] = 0xff
	}
	step := func(kind trace.Kind, fail bool) func(context.Context, *trace.Span) {
		return func(ctx context.Context, _ *trace.Span) {
			_, s := trace.Start(ctx, "step", kind)
			if fail {
				s.Fail()
			}
			s.End()
		}
	}
	for _, c := range []struct {
		name          string
		share         float64
		parent, cause trace.Context
		do            func(context.Context, *trace.Span)
		kept, matters bool
	}{
		{"nothing happened", 0, high, trace.Context{}, step(trace.Internal, false), false, false},
		{"it failed", 0, high, trace.Context{}, func(_ context.Context, s *trace.Span) { s.Fail() }, true, true},
		{"a step failed", 0, high, trace.Context{}, step(trace.Internal, true), true, true},
		{"another server failed", 0, high, trace.Context{}, step(trace.Client, true), false, false},
		{"slow", 0, high, trace.Context{}, func(context.Context, *trace.Span) { time.Sleep(time.Second) }, true, true},
		{"nearly slow", 0, high, trace.Context{}, func(context.Context, *trace.Span) { time.Sleep(time.Second - 1) }, false, false},
		{"a stream", 0, high, trace.Context{}, func(_ context.Context, s *trace.Span) { s.Long(); time.Sleep(time.Hour) }, false, false},
		{"refused", 1, high, trace.Context{}, func(_ context.Context, s *trace.Span) { s.Fail(); s.Drop() }, false, false},
		{"all", 1, high, trace.Context{}, step(trace.Internal, false), true, false},
		{"of the share", .01, high, trace.Context{}, step(trace.Internal, false), true, false},
		{"of the share of a collector that samples less", .001, high, trace.Context{}, step(trace.Internal, false), false, false},
		{"not of the share", .01, low, trace.Context{}, step(trace.Internal, false), false, false},
		{"its cause is of the share", .01, low, high, step(trace.Internal, false), true, false},
		{"its cause is not", .01, high, low, step(trace.Internal, false), false, false},
		{"none, of the greatest id", 0, greatest, trace.Context{}, step(trace.Internal, false), false, false},
		{"all, of the least", 1, low, trace.Context{}, step(trace.Internal, false), true, false},
		{"the proxy keeps it", 0, chosen, trace.Context{}, step(trace.Internal, false), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracer, kept := keeping(c.share)
				ctx, s := tracer.Begin(t.Context(), "first", trace.Server, c.parent, c.cause)
				c.do(ctx, s)
				require.Empty(t, *kept)
				s.End()
				if !c.kept {
					require.Empty(t, *kept)
					return
				}
				require.Len(t, *kept, 1)
				require.Equal(t, c.matters, (*kept)[0].Matters)
				require.Equal(t, c.parent.Trace, (*kept)[0].ID)
				_, late := trace.Start(ctx, "late", trace.Internal)
				n := len((*kept)[0].Spans)
				late.End()
				require.Len(t, (*kept)[0].Spans, n, "what ends later is not in it")
			})
		})
	}
}

// The share is that of the ids.
func TestTail_Share(t *testing.T) {
	t.Parallel()
	tracer, kept := keeping(.1)
	for range 20_000 {
		_, s := tracer.Begin(t.Context(), "first", trace.Server, trace.Context{}, trace.Context{})
		s.End()
	}
	require.InDelta(t, 2000, len(*kept), 300) // seven standard deviations
}

// A trace has at most MaxSpans spans, of which the first is the last; ids are unique, and of parents that there are.
func TestSpans(t *testing.T) {
	t.Parallel()
	tracer, kept := keeping(1)
	ctx, first := tracer.Begin(t.Context(), "first", trace.Server, trace.Context{}, trace.Context{})
	var running sync.WaitGroup
	for range 200 {
		running.Go(func() {
			ctx, s := trace.Start(ctx, "a", trace.Internal)
			_, under := trace.Start(ctx, "b", trace.Internal)
			under.End()
			s.End()
		})
	}
	running.Wait()
	first.End()
	tr := (*kept)[0]
	require.Len(t, tr.Spans, trace.MaxSpans)
	require.Equal(t, 401-trace.MaxSpans, tr.Dropped)
	require.Same(t, first, tr.Spans[trace.MaxSpans-1])
	require.Zero(t, first.Parent)
	seen := map[[8]byte]bool{}
	for _, s := range tr.Spans {
		require.False(t, seen[s.ID])
		seen[s.ID] = true
		if s.Name == "a" {
			require.Equal(t, first.ID, s.Parent)
		}
	}
	require.NotZero(t, binary.BigEndian.Uint64(tr.ID[8:]))
}

// What a job causes is caused by the request that caused the job.
func TestCause(t *testing.T) {
	t.Parallel()
	tracer, _ := keeping(0)
	ctx, _ := tracer.Begin(t.Context(), "request", trace.Server, trace.Context{}, trace.Context{})
	ctx, op := trace.Start(ctx, "operation", trace.Internal)
	of := trace.Cause(ctx)
	require.Equal(t, op.ID, of.Span)
	job, _ := tracer.Begin(t.Context(), "job", trace.Consumer, trace.Context{}, of)
	require.Equal(t, of, trace.Cause(job))
	require.Equal(t, of.ID(), trace.ID(job))
	require.Empty(t, trace.ID(t.Context()))
}

// Without a tracer nothing is allocated.
func TestOff(t *testing.T) {
	var off *trace.Tracer
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		ctx, s := off.Begin(ctx, "first", trace.Server, trace.Context{}, trace.Context{})
		ctx, under := trace.Start(ctx, "under", trace.Client)
		under.Set(trace.Number("n", 1))
		under.Fail()
		under.End()
		s.Long()
		s.End()
		if trace.Cause(ctx).Bytes() != nil || trace.ID(ctx) != "" {
			t.Fail()
		}
	}))
}

func BenchmarkOn(b *testing.B) {
	tracer, _ := keeping(0)
	for b.Loop() {
		ctx, s := tracer.Begin(b.Context(), "first", trace.Server, trace.Context{}, trace.Context{})
		for range 8 {
			_, under := trace.Start(ctx, "under", trace.Client)
			under.Set(trace.Text("a", "b"), trace.Number("n", 1))
			under.End()
		}
		s.End()
	}
}
