package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/trace"
)

// A collector answers by a function, and counts the spans that it took.
type collector struct {
	mu     sync.Mutex // guards those below
	answer func(r *http.Request, try int) (*http.Response, error)
	got
}

type got struct {
	tries, spans int
	most         int // spans of one request
	last         *http.Request
}

func (c *collector) seen() got {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got
}

// waiting is how many spans wait.
func waiting(e *Exporter) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.spans
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.tries++
	c.last = r
	answer, try := c.answer, c.tries
	c.mu.Unlock()
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	var in request
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	res, err := answer(r, try)
	if err == nil && res.StatusCode == 200 {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := len(in.ResourceSpans[0].ScopeSpans[0].Spans)
		c.spans, c.most = c.spans+n, max(c.most, n)
	}
	return res, err
}

func answers(code int, head ...string) *http.Response {
	res := &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}
	for i := 0; i < len(head); i += 2 {
		res.Header.Set(head[i], head[i+1])
	}
	return res
}

func newExporter(c *collector) (*Exporter, *said) {
	var log said
	return &Exporter{URL: "http://collector.test/v1/traces", Header: http.Header{"Authorization": {"Bearer x"}}, Client: &http.Client{Transport: c},
		Resource: []trace.Attr{trace.Text("service.name", "stoa")}, Log: slog.New(slog.NewTextHandler(&log, nil))}, &log
}

// said is a log that a test reads while it is written.
type said struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// ended is a trace with so many spans.
func ended(t *testing.T, spans int, matters bool) (out *trace.Trace) {
	tracer := &trace.Tracer{Share: 1, Keep: func(tr *trace.Trace) { out = tr }}
	ctx, first := tracer.Begin(t.Context(), "first", trace.Server, trace.Context{}, trace.Context{})
	for range spans - 1 {
		_, s := trace.Start(ctx, "step", trace.Internal)
		s.End()
	}
	if matters {
		first.Fail()
	}
	first.End()
	return out
}

// run runs the exporter until the test has looked at it.
func run(t *testing.T, e *Exporter) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { e.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

// pass lets time pass, and what it brings about end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestSends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(*http.Request, int) (*http.Response, error) { return answers(200), nil }}
		e, log := newExporter(c)
		defer run(t, e)()
		for range 300 {
			e.Keep(ended(t, 10, false))
		}
		pass(10 * time.Second)
		require.Equal(t, 3000, c.seen().spans)
		require.LessOrEqual(t, c.seen().most, perRequest+trace.MaxSpans)
		require.LessOrEqual(t, c.seen().tries, 4, "many in one request; the first may go with few")
		require.Equal(t, []string{"application/json", "gzip", "Bearer x"},
			[]string{c.seen().last.Header.Get("Content-Type"), c.seen().last.Header.Get("Content-Encoding"), c.seen().last.Header.Get("Authorization")})
		require.EqualValues(t, 300, e.Sent.Load())
		require.Zero(t, e.Dropped.Load())
		require.Empty(t, log.String())
		e.Keep(ended(t, 1, false))
		synctest.Wait()
		require.Equal(t, 3001, c.seen().spans, "at once when nothing was sent for a second")
	})
}

// While the collector does not answer nothing waits for it: what does not fit is dropped and counted, first of all what is kept for its share.
func TestSlowCollector(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(r *http.Request, _ int) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}}
		e, _ := newExporter(c)
		stop := run(t, e)
		began := time.Now()
		e.Keep(ended(t, 1, false))
		synctest.Wait() // it is on its way
		one, bad := ended(t, 64, false), ended(t, 64, true)
		for range maxWaiting/64 + 10 {
			e.Keep(one)
		}
		require.Equal(t, maxWaiting/2, waiting(e))
		require.EqualValues(t, maxWaiting/128+10, e.Dropped.Load())
		for range maxWaiting / 128 {
			e.Keep(bad)
		}
		require.Equal(t, maxWaiting, waiting(e), "the other half is for what matters")
		e.Keep(bad)
		require.EqualValues(t, maxWaiting/128+11, e.Dropped.Load())
		require.Zero(t, time.Since(began), "nobody waited")
		stop()
		require.LessOrEqual(t, time.Since(began), flushFor, "nor does the end of the process, for long")
		require.EqualValues(t, maxWaiting/64+maxWaiting/128+12, e.Dropped.Load(), "all that was not sent is counted")
		require.Zero(t, e.Sent.Load())
	})
}

// A collector that is away is asked again, less and less often; the log names it once a minute.
func TestCollectorAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		c.answer = func(_ *http.Request, try int) (*http.Response, error) {
			switch {
			case try == 1:
				return nil, errors.New("connection refused")
			case try == 2:
				return answers(503, "Retry-After", "20"), nil
			case try < 12:
				return answers(429), nil
			}
			return answers(200), nil
		}
		e, log := newExporter(c)
		defer run(t, e)()
		began := time.Now()
		e.Keep(ended(t, 3, true))
		pass(time.Second + 20*time.Second - 1)
		require.Equal(t, 2, c.seen().tries, "it said when")
		pass(5 * time.Minute)
		require.Equal(t, attempts, c.seen().tries)
		require.EqualValues(t, 1, e.Dropped.Load())
		for range 7 {
			e.Keep(ended(t, 3, true))
			pass(time.Minute)
		}
		require.Equal(t, 12+5, c.seen().tries)
		require.EqualValues(t, 6, e.Sent.Load())
		lines := strings.Count(log.String(), "traces are not sent")
		require.Greater(t, lines, 1)
		require.LessOrEqual(t, lines, int(time.Since(began)/warnEvery)+1)
		require.NotContains(t, log.String(), "Bearer")
	})
}

// What a collector refuses for good is not sent again.
func TestRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(*http.Request, int) (*http.Response, error) { return answers(400), nil }}
		e, log := newExporter(c)
		defer run(t, e)()
		e.Keep(ended(t, 3, true))
		pass(time.Minute)
		require.Equal(t, 1, c.seen().tries)
		require.EqualValues(t, 1, e.Dropped.Load())
		require.Contains(t, log.String(), "answered 400")
		c.mu.Lock()
		c.answer = func(*http.Request, int) (*http.Response, error) {
			res := answers(200)
			res.Body = io.NopCloser(strings.NewReader(`{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}`))
			return res, nil
		}
		c.mu.Unlock()
		e.Keep(ended(t, 3, true))
		pass(time.Minute)
		require.Contains(t, log.String(), "too old")
		require.NoError(t, e.Probe(t.Context()))
		c.mu.Lock()
		c.answer = func(*http.Request, int) (*http.Response, error) { return answers(401), nil }
		c.mu.Unlock()
		require.ErrorContains(t, e.Probe(t.Context()), "answered 401")
	})
}

// At the end what waits is sent, also what an attempt was made with before.
func TestFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(_ *http.Request, try int) (*http.Response, error) {
			if try == 1 {
				return answers(503), nil
			}
			return answers(200), nil
		}}
		e, _ := newExporter(c)
		stop := run(t, e)
		e.Keep(ended(t, 3, true))
		synctest.Wait()
		e.Keep(ended(t, 3, true))
		stop()
		require.EqualValues(t, 2, e.Sent.Load())
		require.Equal(t, 6, c.seen().spans)
		require.Zero(t, e.Dropped.Load())
	})
}
