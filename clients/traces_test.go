package clients

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"stoa/node"
	"stoa/protocol/trace"
)

// inBase64 turns the ids of OTLP's JSON, which are in hexadecimal, into what the JSON of Protocol Buffers has for bytes.
func inBase64(t *testing.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if text, ok := value.(string); ok && (name == "traceId" || name == "spanId" || name == "parentSpanId") {
				raw, err := hex.DecodeString(text)
				require.NoError(t, err)
				v[name] = base64.StdEncoding.EncodeToString(raw)
				continue
			}
			v[name] = inBase64(t, value)
		}
	case []any:
		for i := range v {
			v[i] = inBase64(t, v[i])
		}
	}
	return v
}

// The traces of a node are what OpenTelemetry's collector reads, and have no member that the definitions of OTLP do not know.
func TestTraces_Collector(t *testing.T) {
	t.Parallel()
	bodies := make(chan []byte, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		raw, _ := io.ReadAll(z)
		bodies <- raw
		answer, _ := ptraceotlp.NewExportResponse().MarshalJSON()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}))
	t.Cleanup(collector.Close)
	began := time.Now()
	w := newWorld(t, func(c *node.Config) { c.Traces, c.TraceShare = collector.URL, 1 })
	w.agent("asha")
	w.get("/api/public/agents/asha")
	res, err := http.Post(w.URL+"/api/operator/peers/follow", "application/json", bytes.NewReader([]byte(`{"url":"http://127.0.0.1:1"}`)))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	found := map[string]ptrace.Span{}
	for found["GET /api/public/agents/:handle"] == (ptrace.Span{}) || found["get_agent_profile"] == (ptrace.Span{}) {
		var raw []byte
		select {
		case raw = <-bodies:
		case <-time.After(time.Minute):
			require.Fail(t, "these spans came only", "%v", slices.Sorted(maps.Keys(found)))
		}
		var message any
		require.NoError(t, json.Unmarshal(raw, &message))
		strict, err := json.Marshal(inBase64(t, message))
		require.NoError(t, err)
		var defined tracepb.TracesData
		require.NoError(t, protojson.UnmarshalOptions{DiscardUnknown: false}.Unmarshal(strict, &defined), "%s", raw)

		read := ptraceotlp.NewExportRequest()
		require.NoError(t, read.UnmarshalJSON(raw))
		require.Equal(t, 1, read.Traces().ResourceSpans().Len())
		of := read.Traces().ResourceSpans().At(0)
		name, _ := of.Resource().Attributes().Get("service.name")
		require.Equal(t, "stoa", name.Str())
		spans := of.ScopeSpans().At(0).Spans()
		require.Len(t, defined.ResourceSpans[0].ScopeSpans[0].Spans, spans.Len())
		for i := range spans.Len() {
			s := spans.At(i)
			require.False(t, s.TraceID().IsEmpty())
			require.False(t, s.SpanID().IsEmpty())
			require.WithinRange(t, s.StartTimestamp().AsTime(), began, time.Now())
			require.False(t, s.EndTimestamp().AsTime().Before(s.StartTimestamp().AsTime()))
			found[s.Name()] = s
		}
	}
	request, op := found["GET /api/public/agents/:handle"], found["get_agent_profile"]
	require.Equal(t, request.TraceID(), op.TraceID())
	require.Equal(t, request.SpanID(), op.ParentSpanID())
	require.Equal(t, ptrace.SpanKindServer, request.Kind())
	require.Equal(t, ptrace.SpanKindInternal, op.Kind())
	status, _ := request.Attributes().Get("http.response.status_code")
	require.Equal(t, int64(200), status.Int())
}

// FuzzTraceparent compares the reading of traceparent with that of OpenTelemetry.
func FuzzTraceparent(f *testing.F) {
	for _, seed := range []string{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0", "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-09",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		head := http.Header{"Traceparent": {header}}
		theirs := oteltrace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), propagation.HeaderCarrier(head)))
		ours := trace.Parent(head)
		if ours.Valid() {
			require.Equal(t, theirs.TraceID(), oteltrace.TraceID(ours.Trace))
			require.Equal(t, theirs.SpanID(), oteltrace.SpanID(ours.Span))
			require.Equal(t, theirs.IsSampled(), ours.Sampled)
			return
		}
		require.False(t, theirs.IsValid(), "%q", header)
	})
}
