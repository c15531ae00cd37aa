package node_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/node"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// A tracedSpan is one as a collector gets it.
type tracedSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	StartTimeUnixNano, EndTimeUnixNano  string
	Attributes                          []struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	}
	Links  []struct{ TraceID, SpanID string }
	Status struct{ Code int }
}

func (s tracedSpan) attr(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// A stranger is a server that is the collector at one path, and elsewhere the inbox of a follower.
type stranger struct {
	*httptest.Server
	mu       sync.Mutex // guards the fields below
	spans    []tracedSpan
	raw      strings.Builder // what the collector got
	asked    strings.Builder // what others than the collector got
	inboxed  int
	received http.Header // of the last request to the collector
}

func newStranger(t *testing.T) *stranger {
	s := &stranger{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.URL.Path != "/v1/traces" {
			raw, _ := io.ReadAll(r.Body)
			_ = r.Header.Write(&s.asked)
			s.asked.Write(raw)
			if s.inboxed++; r.Method == "POST" {
				w.WriteHeader(202)
				return
			}
			w.WriteHeader(404)
			return
		}
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			w.WriteHeader(400)
			return
		}
		raw, _ := io.ReadAll(z)
		s.raw.Write(raw)
		s.received = r.Header
		var in struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []tracedSpan }
			}
		}
		if json.Unmarshal(raw, &in) != nil {
			w.WriteHeader(400)
			return
		}
		for _, rs := range in.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				s.spans = append(s.spans, ss.Spans...)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *stranger) seen() []tracedSpan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spans)
}

// find waits for a span.
func (s *stranger) find(t *testing.T, what string, fits func(tracedSpan) bool) (found tracedSpan) {
	t.Helper()
	require.Eventually(t, func() bool {
		all := s.seen()
		i := slices.IndexFunc(all, fits)
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	}, 3*time.Minute, 10*time.Millisecond, what)
	return found
}

// runTraced runs a node that logs everything, and returns how to end it.
func runTraced(t *testing.T, to *lines, before func(*node.Node), change ...func(*node.Config)) *nodetest.House {
	log := slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, stop := context.WithCancel(context.Background())
	n, err := node.New(ctx, nodetest.Config(t, change...), log)
	require.NoError(t, err)
	if before != nil {
		before(n)
	}
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	return &nodetest.House{Node: n, T: t}
}

const (
	edgeTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	edgeParent = "00-" + edgeTrace + "-00f067aa0ba902b7-00"
	edgeID     = "edge-0123456789"
)

// One trace id leads from the proxy through the request, its steps, its jobs and its deliveries, in spans and in the log. Nobody else learns of it, and
// the spans name no person and no text.
func TestTraces(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		s, log := newStranger(t), new(lines)
		secret := filepath.Join(t.TempDir(), "headers")
		require.NoError(t, os.WriteFile(secret, []byte("Authorization: Bearer of-the-collector\n\nX-Scope-OrgID:  stoa\n"), 0o600))
		h := runTraced(t, log, nil, change, func(c *node.Config) {
			c.TrustedProxies, c.Traces, c.TraceHeaders, c.TraceShare = []string{"192.0.2.0/24"}, s.URL, secret, 1
		})
		at, err := url.Parse(s.URL)
		require.NoError(t, err)
		board := protocol.BoardID(h.Base)
		pair := h.Hosted("asha")
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for _, stoa := range []bool{true, false} {
				inbox := s.URL + "/fedi/inbox"
				if stoa {
					inbox = s.URL + "/stoa/inbox"
				}
				f := storage.Follower{LocalActor: board, Actor: inbox + "/actor", Inbox: inbox, Host: at.Host}
				_, head, err := tx.Logs().Head(ctx, board)
				if err != nil {
					return err
				}
				if err := tx.Followers().Put(ctx, f); err != nil {
					return err
				}
				o := storage.Outlet{Board: board, Inbox: inbox, Host: at.Host, Stoa: stoa, Cursor: head, State: storage.OutletActive}
				if err := tx.Outlets().Put(ctx, o); err != nil {
					return err
				}
			}
			return nil
		}))

		const title = "Indigo by the bolt"
		a := h.Signed(pair, `{"kind":"offer","title":"`+title+`","body":"Woven here"}`, func(r *http.Request, _ *httpsig.SignOptions) {
			r.Header.Set("Traceparent", edgeParent)
			r.Header.Set("X-Request-Id", edgeID)
		}).Is(201)
		require.Equal(t, edgeID, a.Header().Get("Request-Id"))

		first := s.find(t, "the request", func(p tracedSpan) bool { return p.TraceID == edgeTrace && p.ParentSpanID == "00f067aa0ba902b7" })
		require.Equal(t, "POST /api/public/board", first.Name)
		require.Equal(t, 2, first.Kind)
		require.Equal(t, []string{"201", "POST", "/api/public/board", edgeID},
			[]string{first.attr("http.response.status_code"), first.attr("http.request.method"), first.attr("http.route"), first.attr("stoa.request.id")})
		op := s.find(t, "the operation", func(p tracedSpan) bool { return p.TraceID == edgeTrace && p.Name == "post_to_board" })
		require.Equal(t, first.SpanID, op.ParentSpanID)
		require.Equal(t, []string{"http", "signature"}, []string{op.attr("stoa.door"), op.attr("stoa.caller")})
		write := s.find(t, "the write", func(p tracedSpan) bool {
			return p.TraceID == edgeTrace && p.Name == "write" && p.ParentSpanID == op.SpanID
		})
		require.NotEmpty(t, write.attr("db.operation.batch.size"))
		for _, step := range []string{"write.wait", "write.run", "write.commit"} {
			one := s.find(t, step, func(p tracedSpan) bool { return p.TraceID == edgeTrace && p.Name == step })
			require.LessOrEqual(t, one.StartTimeUnixNano, one.EndTimeUnixNano)
			require.GreaterOrEqual(t, one.StartTimeUnixNano, write.StartTimeUnixNano)
		}
		for range 2 { // one a follower
			s.find(t, "both deliveries", func(tracedSpan) bool {
				n := 0
				for _, p := range s.seen() {
					if p.Name == "delivery" && p.attr("stoa.request.id") == edgeID {
						n++
						require.Equal(t, edgeTrace, p.Links[0].TraceID)
						require.Equal(t, op.SpanID, p.Links[0].SpanID)
						require.NotEqual(t, edgeTrace, p.TraceID)
					}
				}
				return n == 2
			})
		}
		call := s.find(t, "the request to the inbox", func(p tracedSpan) bool {
			return p.Name == "request" && p.Kind == 3 && p.attr("http.request.method") == "POST"
		})
		require.Equal(t, "202", call.attr("http.response.status_code"))
		require.Equal(t, at.Hostname(), call.attr("server.address"))

		// A job.
		h.Ask("POST", "/api/operator/peers/follow", `{"url":"`+s.URL+`"}`, "Authorization", h.Operator().Bearer,
			"Traceparent", edgeParent, "X-Request-Id", edgeID).Is(204)
		job := s.find(t, "the job", func(p tracedSpan) bool { return p.Name == "job follow" })
		require.Equal(t, []any{edgeTrace, edgeID, 2}, []any{job.Links[0].TraceID, job.attr("stoa.request.id"), job.Status.Code})

		for _, msg := range []string{"operation", "job", "delivery"} {
			require.Eventually(t, func() bool {
				return slices.ContainsFunc(strings.Split(log.string(), "\n"), func(l string) bool {
					return strings.Contains(l, `"msg":"`+msg) && strings.Contains(l, `"trace":"`+edgeTrace+`"`) && strings.Contains(l, `"rid":"`+edgeID+`"`)
				})
			}, time.Minute, 10*time.Millisecond, msg)
		}
		require.Equal(t, protocol.CheckOK, examined(h)["traces"].Verdict)
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Equal(t, []string{"Bearer of-the-collector", "stoa", "application/json"},
			[]string{s.received.Get("Authorization"), s.received.Get("X-Scope-Orgid"), s.received.Get("Content-Type")})
		require.Contains(t, s.asked.String(), "Signature")
		for _, private := range []string{edgeTrace, edgeID, "raceparent", "of-the-collector"} {
			require.NotContains(t, s.asked.String(), private, "nobody else learns of the trace")
		}
		for _, private := range []string{"asha", "Indigo", "Woven", "inbox", "post_0", protocol.ActorID(h.Base, "asha"), "192.0.2", "Bearer"} {
			require.NotContains(t, s.raw.String(), private)
		}
	})
}

// What one who is no trusted proxy says is not continued, nor kept anywhere; requests over the limit, and those of monitoring, leave no trace.
func TestTraces_Stranger(t *testing.T) {
	t.Parallel()
	s := newStranger(t)
	h := runTraced(t, new(lines), nil, func(c *node.Config) { c.Traces, c.TraceShare = s.URL+"/v1/traces", 1 })
	h.Ask("GET", "/healthz", "", "Traceparent", edgeParent).Is(200)
	h.Ask("GET", "/api/public/board?q=secret+words", "", "Traceparent", edgeParent, "X-Request-Id", edgeID).Is(200)
	h.Ask("GET", "/@nobody", "").Is(404)
	h.Ask("BREW", "/coffee", "").Is(405)
	h.Ask("GET", "/coffee/with/milk", "").Is(404)
	s.find(t, "unknown method", func(p tracedSpan) bool { return strings.HasPrefix(p.Name, "_OTHER /:") })
	s.find(t, "unknown path", func(p tracedSpan) bool { return p.Name == "GET" && p.attr("http.route") == "" })
	p := s.find(t, "the request", func(p tracedSpan) bool { return p.Name == "GET /api/public/board" })
	require.Empty(t, p.ParentSpanID)
	s.find(t, "a page", func(p tracedSpan) bool { return strings.HasPrefix(p.Name, "GET /:") })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, private := range []string{edgeTrace, edgeID, "secret", "nobody", "coffee", "milk", "BREW", "healthz"} {
		require.NotContains(t, s.raw.String(), private)
	}
}

// Without a share the trace of a request that fails by a fault of the node is sent, and no other.
func TestTraces_Failed(t *testing.T) {
	t.Parallel()
	s := newStranger(t)
	h := runTraced(t, new(lines), func(n *node.Node) {
		n.Table.Observe = func(o hall.Observation) {
			if o.Op == protocol.SearchAgents.Name {
				panic("a fault")
			}
		}
	}, func(c *node.Config) { c.Traces = s.URL })
	h.Ask("GET", "/api/public/board", "").Is(200)
	h.Ask("GET", "/api/public/board?limit=1000", "").Is(422)
	h.Ask("GET", "/api/public/agents", "").Is(500)
	s.find(t, "the failed request", func(p tracedSpan) bool { return p.Name == "GET /api/public/agents" && p.Status.Code == 2 })
	for _, p := range s.seen() {
		require.NotContains(t, p.Name, "board")
	}
	require.Eventually(t, func() bool {
		metrics := h.Metrics()
		return strings.Contains(metrics, "stoa_traces_sent_total 1\n") && strings.Contains(metrics, "stoa_traces_dropped_total 0\n")
	}, time.Minute, 10*time.Millisecond)
}

func TestTraces_Settings(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "headers")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for _, c := range []struct {
		change func(*node.Config)
		want   string
	}{
		{func(c *node.Config) { c.Traces = "collector:4318" }, "traces: "},
		{func(c *node.Config) { c.Traces = "http://user:word@collector:4318" }, "traces: "},
		{func(c *node.Config) { c.Traces = "http://collector:4318?a=b" }, "traces: "},
		{func(c *node.Config) { c.Traces = "https://collector/otlp/v1/traces" }, ""},
		{func(c *node.Config) { c.TraceHeaders = file("A: b") }, "traces-headers: "},
		{func(c *node.Config) { c.Traces, c.TraceHeaders = "http://[::1]:4318", "/nowhere" }, "traces-headers: "},
		{func(c *node.Config) { c.Traces, c.TraceHeaders = "http://[::1]:4318", file("A: b\nthe secret alone\n") }, "traces-headers: "},
		{func(c *node.Config) { c.Traces, c.TraceHeaders = "http://[::1]:4318", file("A: b\r\nC-d: e f\n") }, ""},
		{func(c *node.Config) { c.TraceShare = 1.1 }, "traces-share: "},
		{func(c *node.Config) { c.TraceShare = -1 }, "traces-share: "},
		{func(c *node.Config) { c.TraceSlow = -1 }, "traces-slow: "},
	} {
		config := node.Config{Listen: "127.0.0.1:0", Data: "data"}
		c.change(&config)
		err := config.Validate()
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "secret alone")
	}
}
