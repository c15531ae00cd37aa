package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	vm "github.com/VictoriaMetrics/metrics"

	"stoa/node/door/httpapi"
	"stoa/node/out/otlp"
	"stoa/node/out/outbound"
	"stoa/protocol/trace"
)

// traceFaults reports the faults of the settings of traces.
func (c Config) traceFaults(bad func(format string, args ...any)) {
	if !(c.TraceShare >= 0 && c.TraceShare <= 1) { // not a number either
		bad("traces-share: must be from 0 to 1")
	}
	if c.TraceSlow < 0 {
		bad("traces-slow: must be 0 or more")
	}
	if _, err := c.collector(); err != nil {
		bad("traces: %w", err)
	}
	if _, err := readHeader(c.TraceHeaders); err != nil {
		bad("traces-headers: %w", err)
	}
	if c.TraceHeaders != "" && c.Traces == "" {
		bad("traces-headers: name the collector that they are for in traces")
	}
}

// collector returns the URL that traces are posted to, "" for none. An address without a path gets the default path of OTLP/HTTP.
func (c Config) collector() (string, error) {
	if c.Traces == "" {
		return "", nil
	}
	u, err := url.Parse(c.Traces)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("is not the address of a collector such as http://127.0.0.1:4318, without user, password and query")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

const maxHeaderFile = 16 << 10 // bytes

var headerLine = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([ -~]+)$")

// readHeader reads a file of header fields, one a line.
func readHeader(file string) (http.Header, error) {
	head := http.Header{}
	if file == "" {
		return head, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxHeaderFile {
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxHeaderFile)
	}
	n := 0
	for line := range strings.Lines(string(raw)) {
		n++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		parts := headerLine.FindStringSubmatch(line)
		if parts == nil {
			return nil, fmt.Errorf("%s, line %d: is not like Authorization: Bearer …", file, n) // without the line: it may hold a secret
		}
		head.Add(parts[1], parts[2])
	}
	return head, nil
}

// traceExporter sends to the collector; nil without one.
func (c Config) traceExporter(base string) (*otlp.Exporter, error) {
	to, err := c.collector()
	if to == "" || err != nil {
		return nil, err
	}
	head, err := readHeader(c.TraceHeaders)
	if err != nil {
		return nil, fmt.Errorf("%w: traces-headers: %w", ErrConfig, err)
	}
	return &otlp.Exporter{
		URL: to, Header: head,
		Resource: []trace.Attr{trace.Text("service.name", "stoa"), trace.Text("service.version", cmp.Or(c.Version, "unknown")),
			trace.Text("service.instance.id", owner()), trace.Text("stoa.base", base)},
		// The address is the operator's own: it may be on this machine or its network.
		Client: outbound.New(outbound.Options{AllowPrivate: true, Ports: []uint16{443, urlPort(to)}, UserAgent: "stoa/" + c.Version, Timeout: 10 * time.Second}),
	}, nil
}

// openTraces makes what records traces and sends them, where a collector is set.
func (n *Node) openTraces() error {
	c := n.Config
	e, err := c.traceExporter(n.Base)
	if e == nil || err != nil {
		return err
	}
	e.Log, n.exporter = n.log, e
	n.tracer = &trace.Tracer{Share: c.TraceShare, Slow: time.Duration(c.TraceSlow) * time.Millisecond, Keep: e.Keep}
	return nil
}

// exported adds counters of the traces that were sent, and of those that were dropped because too many waited or the collector refused them.
func (m *metrics) exported(e *otlp.Exporter) {
	m.RegisterMetricsWriter(func(w io.Writer) {
		vm.WriteCounterUint64(w, "stoa_traces_sent_total", e.Sent.Load())
		vm.WriteCounterUint64(w, "stoa_traces_dropped_total", e.Dropped.Load())
	})
}

// sendTraces sends traces until the function that it returns is called, which sends what is left.
func (n *Node) sendTraces() (end func()) {
	if n.exporter == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.exporter.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// traced begins a trace for each request, which continues that of a trusted proxy. Probes of monitoring have none, and requests that are answered
// 429 leave none.
func traced(t *trace.Tracer, trusted []netip.Prefix, next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if probed(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		var parent trace.Context
		if within(remoteAddr(r), trusted) {
			parent = trace.Parent(r.Header)
		}
		ctx, span := t.Begin(r.Context(), method(r), trace.Server, parent, trace.Context{})
		answer := &answered{ResponseWriter: w}
		defer func() {
			span.Set(trace.Text("http.request.method", method(r)), trace.Text("stoa.request.id", w.Header().Get(httpapi.RequestIDHeader)))
			switch {
			case answer.status == http.StatusTooManyRequests:
				span.Drop()
				return
			case answer.status == 0: // nothing was written, or a stream has taken the connection
				answer.status = http.StatusOK
			}
			span.Set(trace.Number("http.response.status_code", answer.status))
			if answer.status >= http.StatusInternalServerError {
				span.Fail()
			}
			if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
				span.Long()
			}
			span.End()
		}()
		next.ServeHTTP(answer, r.WithContext(ctx))
	})
}

// method is the method of a request, one of few.
func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "_OTHER"
}

// routed names the span of a request after its route: a pattern, without the values of the request.
func routed(r *http.Request, pattern string) {
	if s := trace.Of(r.Context()); s != nil {
		s.Name = method(r) + " " + pattern
		s.Set(trace.Text("http.route", pattern))
	}
}

// An answered writer knows the status that was written.
type answered struct {
	http.ResponseWriter
	status int
}

func (a *answered) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answered) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Flush is called by gzhttp.
func (a *answered) Flush() { _ = a.FlushError() }

func (a *answered) FlushError() error { return http.NewResponseController(a.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }
