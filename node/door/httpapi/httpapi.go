// Package httpapi is the HTTP door: it combines path, query and body of a request into one JSON
// object, passes it to the hall, and renders the answer or the problem document (RFC 9457). It
// names no operation: routes, fields and codes come from the declarations.
package httpapi

import (
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"stoa/identity"
	"stoa/identity/httpsig"
	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/trace"
)

// MaxBody is the longest body of an operation, in bytes (contract §1).
const MaxBody = 64 << 10

// An API renders operations over HTTP.
type API struct {
	Table *hall.Table
	Base  string // public address of the node, without a slash at the end
	// Network returns the keyed hash of the client's network.
	Network func(r *http.Request) string

	cache   *hall.Cache[*answer]
	streams hall.Streams // open streams
}

// New returns the door. version returns a number that grows whenever stored data may have changed;
// answers to open reads are kept until it does.
func New(t *hall.Table, base string, network func(*http.Request) string, version func() uint64) *API {
	return &API{Table: t, Base: base, Network: network, cache: hall.NewCache[*answer](version)}
}

var anyOrigin, exposed = []string{"*"}, []string{protocol.ExposedHeaders}

// Handler serves one operation. Path parameters come from r.PathValue.
func (a *API) Handler(op *protocol.Operation) http.Handler {
	fields := newFields(a.Table.Schemas, op)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		head := w.Header()
		if op.For == protocol.Everybody { // owners' and operators' operations refuse pages of other origins (contract §1)
			head["Access-Control-Allow-Origin"], head["Access-Control-Expose-Headers"] = anyOrigin, exposed
		}
		keeps := hall.Open(op) && r.ContentLength == 0 // a body may hold input and is not part of the key
		unknown := hall.Unknown(r)
		if keeps && unknown {
			if kept, ok := a.cache.Get(r.RequestURI); ok {
				kept.write(w, r)
				if a.Table.Observe != nil {
					a.Table.Observe(hall.Observation{ID: head.Get(RequestIDHeader), Trace: trace.ID(r.Context()), Op: op.Name, Door: "http",
						Duration: time.Since(start), Kept: true})
				}
				return
			}
		}
		network := a.Network(r)
		version := a.cache.Version()
		visitor := a.visitor(r, op)
		var kept *answer
		var look func() bool
		if keeps {
			look = func() (ok bool) { kept, ok = a.cache.Get(r.RequestURI); return ok }
		}
		res, err := a.invoke(w, r, op, fields, network, visitor, look)
		if res.Caller.Standing == protocol.Signed {
			head.Del("Accept-Signature") // as it is now
		} else if err == nil && op.ReadOnly && httpsig.Signed(r.Header) {
			head.Set("Accept-Signature", httpsig.AcceptFor(r))
		}
		if err != nil {
			a.problem(w, r, op, network, err)
			return
		}
		if s, ok := res.Value.(protocol.Stream); ok {
			a.Table.Limits.Fields(head, network, op.ReadOnly)
			a.stream(w, r, op, s)
			return
		}
		if f, ok := res.Value.(protocol.File); ok {
			a.Table.Limits.Fields(head, network, op.ReadOnly)
			sendFile(w, op, f)
			return
		}
		ans := kept
		if !res.Kept {
			ans = answerOf(op, res.JSON)
		}
		if keeps && res.Open {
			a.cache.Put(r.RequestURI, version, ans, len(ans.body))
		}
		if !(unknown && hall.Open(op)) && ans.cacheControl != "no-store" { // an answer for one caller only is not kept
			own := *ans
			own.cacheControl, ans = "private, no-cache", &own
		}
		a.Table.Limits.Fields(head, network, op.ReadOnly)
		a.remember(head, op, visitor)
		if res.Replayed {
			head.Set("Idempotency-Replayed", "true")
		}
		ans.write(w, r)
	})
}

func (a *API) invoke(
	w http.ResponseWriter, r *http.Request, op *protocol.Operation, f *fields, network, visitor string, kept func() bool,
) (hall.Result, error) {
	var body []byte
	var upload io.Reader
	var err error
	if op.Upload > 0 {
		upload, err = uploaded(w, r, op)
	} else {
		body, err = readBody(w, r, op)
	}
	if err != nil {
		return hall.Result{}, err
	}
	args, faults, err := f.gather(r, body)
	if err != nil {
		return hall.Result{}, err
	}
	ev := identity.Evidence{Request: r, Body: body, Network: network, Visitor: visitor, Session: session.Of(r, a.Base), ActAs: r.Header.Get("Act-As")}
	if p := r.Header.Get("Proof-Of-Work"); p != "" {
		ev.Proof = []byte(p)
	}
	return a.Table.Invoke(r.Context(), hall.Request{
		Op: op.Name, Args: args, Evidence: ev, Faults: faults, Upload: upload, Kept: kept,
		IdempotencyKey: r.Header.Get("Idempotency-Key"), IfMatch: r.Header.Get("If-Match"), Door: "http", ID: w.Header().Get(RequestIDHeader),
	})
}

// readBody reads a JSON body within the limit of the operation, which is larger only for
// requests with credentials. Without a body it returns nil.
func readBody(w http.ResponseWriter, r *http.Request, op *protocol.Operation) ([]byte, error) {
	most := int64(MaxBody)
	if r.Header.Get("Authorization") != "" || r.Header.Get("Signature") != "" || r.Header.Get("Cookie") != "" {
		most = max(most, op.Body)
	}
	raw, err := hall.ReadBody(w, r, most)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return nil, protocol.Errorf(protocol.UnsupportedMediaType, "send the body as Content-Type: application/json")
	}
	return raw, nil
}
