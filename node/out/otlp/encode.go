package otlp

import (
	"encoding/hex"
	"strconv"

	"stoa/protocol/trace"
)

// These are the messages of opentelemetry-proto 1.x (collector/trace/v1, trace/v1) as OTLP encodes them in JSON: ids in hexadecimal, 64-bit integers as
// text, enumerations as numbers.
type (
	request struct {
		ResourceSpans [1]resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource      `json:"resource"`
		ScopeSpans [1]scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope struct {
			Name string `json:"name"`
		} `json:"scope"`
		Spans []span `json:"spans"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		Parent     string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       trace.Kind  `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes,omitempty"`
		Links      []link      `json:"links,omitempty"`
		Status     *status     `json:"status,omitempty"`
	}
	link struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	}
	status struct {
		Code int `json:"code"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		Text   string `json:"stringValue,omitempty"`
		Number string `json:"intValue,omitempty"`
	}
)

var failed = &status{Code: 2} // STATUS_CODE_ERROR

func encode(of []trace.Attr, batch []*trace.Trace) (out request) {
	r := &out.ResourceSpans[0]
	r.Resource.Attributes = attributes(of)
	to := &r.ScopeSpans[0]
	to.Scope.Name, to.Spans = "stoa", []span{}
	for _, t := range batch {
		id := hex.EncodeToString(t.ID[:])
		for i, s := range t.Spans {
			one := span{TraceID: id, SpanID: hex.EncodeToString(s.ID[:]), Name: s.Name, Kind: s.Kind, Attributes: attributes(s.Attrs),
				Start: strconv.FormatInt(s.Start.UnixNano(), 10), End: strconv.FormatInt(s.Start.Add(s.Duration).UnixNano(), 10)}
			if s.Parent != [8]byte{} {
				one.Parent = hex.EncodeToString(s.Parent[:])
			}
			if s.Failed {
				one.Status = failed
			}
			if first := i == len(t.Spans)-1; first && t.Cause.Valid() {
				one.Links = []link{{t.Cause.ID(), hex.EncodeToString(t.Cause.Span[:])}}
			}
			to.Spans = append(to.Spans, one)
		}
		if last := &to.Spans[len(to.Spans)-1]; t.Dropped > 0 {
			last.Attributes = append(last.Attributes, attributes([]trace.Attr{trace.Number("stoa.spans.dropped", t.Dropped)})...)
		}
	}
	return out
}

func attributes(all []trace.Attr) (out []attribute) {
	for _, a := range all {
		switch {
		case a.Key == "":
		case a.Text != "":
			out = append(out, attribute{a.Key, value{Text: a.Text}})
		default:
			out = append(out, attribute{a.Key, value{Number: strconv.FormatInt(a.Number, 10)}})
		}
	}
	return out
}
