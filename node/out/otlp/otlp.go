// Package otlp sends traces to a collector: OTLP/HTTP with the JSON encoding
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp). What waits is bounded, and nothing waits for the collector.
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"stoa/protocol/netx"
	"stoa/protocol/trace"
)

const (
	maxWaiting = 8192             // spans; those of traces that are kept for their share fill half
	perRequest = 1024             // spans; the trace that reaches it goes whole
	pause      = time.Second      // between two requests
	attempts   = 5                // at one request
	maxPause   = 30 * time.Second // between two attempts
	flushFor   = 2 * time.Second  // at the end of the process
	maxAnswer  = 64 << 10         // bytes
	warnEvery  = time.Minute
)

// An Exporter sends what it is given by Keep while it runs.
type Exporter struct {
	URL           string // of the collector, with its path
	Header        http.Header
	Client        *http.Client
	Resource      []trace.Attr // what the process is
	Log           *slog.Logger
	Sent, Dropped atomic.Uint64 // traces

	mu     sync.Mutex // guards queue, spans and wake
	queue  []*trace.Trace
	spans  int // of queue
	wake   chan struct{}
	warned time.Time // when the log last named a fault; used by Run only
}

// Keep takes a trace to send, or drops it where too much waits. It does not wait.
func (e *Exporter) Keep(t *trace.Trace) {
	most := maxWaiting
	if !t.Matters {
		most /= 2
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.spans+len(t.Spans) > most {
		e.Dropped.Add(1)
		return
	}
	e.queue, e.spans = append(e.queue, t), e.spans+len(t.Spans)
	select {
	case e.waker() <- struct{}{}:
	default:
	}
}

// waker is the channel of a hint that something waits.
func (e *Exporter) waker() chan struct{} {
	if e.wake == nil {
		e.wake = make(chan struct{}, 1)
	}
	return e.wake
}

// Run sends until ctx ends, then once more what waits, for three seconds at most.
func (e *Exporter) Run(ctx context.Context) {
	e.mu.Lock()
	wake := e.waker()
	e.mu.Unlock()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-wake:
			for e.waiting() && ctx.Err() == nil {
				e.send(ctx, e.take())
				wait(ctx, pause)
			}
		}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushFor)
	defer cancel()
	for e.waiting() {
		batch := e.take()
		if _, err := e.post(end, batch); err != nil {
			e.drop(batch, err)
			continue
		}
		e.Sent.Add(uint64(len(batch)))
	}
}

// waiting reports whether a trace waits to be sent.
func (e *Exporter) waiting() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.queue) > 0
}

// take returns what one request sends.
func (e *Exporter) take() []*trace.Trace {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, spans := 0, 0
	for n < len(e.queue) && spans < perRequest {
		spans += len(e.queue[n].Spans)
		n++
	}
	batch := e.queue[:n:n]
	if e.queue, e.spans = e.queue[n:], e.spans-spans; len(e.queue) == 0 {
		e.queue = nil
	}
	return batch
}

// send sends a batch, and tries again where the collector may take it later. When ctx ends before, the batch is put back.
func (e *Exporter) send(ctx context.Context, batch []*trace.Trace) {
	for try := 1; ; try++ {
		again, err := e.post(ctx, batch)
		switch {
		case err == nil:
			e.Sent.Add(uint64(len(batch)))
			return
		case ctx.Err() == nil && (again < 0 || try == attempts):
			e.drop(batch, err)
			return
		case ctx.Err() == nil:
			e.warn(err)
			wait(ctx, max(again, netx.Backoff(time.Second, maxPause, try)))
		}
		if ctx.Err() != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			for _, t := range batch {
				e.spans += len(t.Spans)
			}
			e.queue = append(batch, e.queue...)
			return
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (e *Exporter) drop(batch []*trace.Trace, err error) {
	e.Dropped.Add(uint64(len(batch)))
	e.warn(err)
}

// warn names a fault in the log, once a minute.
func (e *Exporter) warn(err error) {
	if now := time.Now(); now.Sub(e.warned) >= warnEvery {
		e.warned = now
		e.Log.Warn("traces are not sent", "err", err, "dropped", e.Dropped.Load())
	}
}

// Probe sends a request without spans, and returns why the collector does not take it.
func (e *Exporter) Probe(ctx context.Context) error {
	_, err := e.post(ctx, nil)
	return err
}

// post makes one request. With an error, again is the least wait before the next attempt, less than 0 when no attempt can help (OTLP/HTTP "Failures").
func (e *Exporter) post(ctx context.Context, batch []*trace.Trace) (again time.Duration, err error) {
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	if err := json.NewEncoder(z).Encode(encode(e.Resource, batch)); err != nil {
		return -1, err
	}
	if err := z.Close(); err != nil {
		return -1, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, &body)
	if err != nil {
		return -1, err
	}
	for name, values := range e.Header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Encoding", "gzip")
	res, err := e.Client.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		var a struct {
			PartialSuccess struct{ ErrorMessage string }
		}
		if json.Unmarshal(answer, &a) == nil && a.PartialSuccess.ErrorMessage != "" {
			e.warn(fmt.Errorf("the collector did not take everything: %.200q", a.PartialSuccess.ErrorMessage))
		}
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return netx.RetryAfter(res.Header.Get("Retry-After"), time.Now(), maxPause), fmt.Errorf("the collector answered %d", res.StatusCode)
	}
	return -1, fmt.Errorf("the collector answered %d", res.StatusCode)
}
