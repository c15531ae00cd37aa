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
	maxWaiting = 8192 // spans; those of traces that are kept for their share fill half
	atOnce     = 1024 // spans of one request
	rest       = time.Second
	attempts   = 5
	flushFor   = 3 * time.Second
	maxAnswer  = 64 << 10 // bytes
	maxPause   = 30 * time.Second
	sayEvery   = time.Minute
)

// An Exporter sends what it is given by Keep while it runs.
type Exporter struct {
	URL           string // of the collector, with its path
	Header        http.Header
	Client        *http.Client
	Resource      []trace.Attr // what the process is
	Log           *slog.Logger
	Sent, Dropped atomic.Uint64 // traces

	mu    sync.Mutex // guards queue, spans and wake
	queue []*trace.Trace
	spans int // of queue
	wake  chan struct{}
	said  time.Time // when the log last named a fault; of Run
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
			for e.some() && ctx.Err() == nil {
				e.send(ctx, e.take())
				wait(ctx, rest)
			}
		}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushFor)
	defer cancel()
	for e.some() {
		batch := e.take()
		if _, err := e.post(end, batch); err != nil {
			e.drop(batch, err)
			continue
		}
		e.Sent.Add(uint64(len(batch)))
	}
}

// some reports whether something waits.
func (e *Exporter) some() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.queue) > 0
}

// take returns what one request sends.
func (e *Exporter) take() []*trace.Trace {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, spans := 0, 0
	for n < len(e.queue) && spans < atOnce {
		spans += len(e.queue[n].Spans)
		n++
	}
	batch := e.queue[:n:n]
	if e.queue, e.spans = e.queue[n:], e.spans-spans; len(e.queue) == 0 {
		e.queue = nil
	}
	return batch
}

// send sends a batch, with more attempts where the collector may take it later. What ctx ends is put back.
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
			e.say(err)
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
	e.say(err)
}

// say names a fault in the log, once a minute.
func (e *Exporter) say(err error) {
	if now := time.Now(); now.Sub(e.said) >= sayEvery {
		e.said = now
		e.Log.Warn("traces are not sent", "err", err, "dropped", e.Dropped.Load())
	}
}

// Probe sends a request without spans, and returns why the collector does not take it.
func (e *Exporter) Probe(ctx context.Context) error {
	_, err := e.post(ctx, nil)
	return err
}

// post makes one request. With an error, again is how long to wait at least before the next, less than 0 where none helps (OTLP/HTTP "Failures").
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
			PartialSuccess struct {
				RejectedSpans any
				ErrorMessage  string
			}
		}
		if json.Unmarshal(answer, &a) == nil && a.PartialSuccess.ErrorMessage != "" {
			e.say(fmt.Errorf("the collector took not all: %.200q", a.PartialSuccess.ErrorMessage))
		}
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return netx.RetryAfter(res.Header.Get("Retry-After"), time.Now(), maxPause), fmt.Errorf("the collector answered %d", res.StatusCode)
	}
	return -1, fmt.Errorf("the collector answered %d", res.StatusCode)
}
