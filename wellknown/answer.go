package wellknown

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/netx"
)

// A document is one answer.
type document struct {
	media  string
	body   []byte
	maxAge time.Duration
	header http.Header // further fields; nil for none
	fixed  bool        // the bytes are signed: no proxy may re-encode them
}

// A maker makes the document that a request asks for. An error is a *protocol.Error or internal.
type maker func(*http.Request) (document, error)

// serve makes a handler for GET and HEAD with the conventions of every public read: strong ETag,
// Cache-Control, conditional requests, CORS without credentials (contract §1).
func (w *WellKnown) serve(make maker) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h := rw.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", protocol.ExposedHeaders)
		d, err := make(r)
		if err != nil {
			w.problem(rw, r, err)
			return
		}
		for name, values := range d.header {
			h[name] = values
		}
		h.Set("Cache-Control", cacheControl(d))
		netx.Serve(rw, r, d.media, d.body)
	})
}

func cacheControl(d document) string {
	value := "public, max-age=" + strconv.Itoa(int(d.maxAge.Seconds()))
	if d.fixed {
		// RFC 9530 §2: the digest covers the content as it is transferred.
		value += ", no-transform"
	}
	return value
}

// jsonDocument encodes v without HTML escaping.
func jsonDocument(media string, maxAge time.Duration, v any) (document, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return document{}, err
	}
	return document{media: media, body: []byte(b.String()), maxAge: maxAge}, nil
}

// A problem is an RFC 9457 document (contract §1).
type problem struct {
	Type     string        `json:"type"`
	Title    string        `json:"title"`
	Status   int           `json:"status"`
	Detail   string        `json:"detail,omitempty"`
	Code     protocol.Code `json:"code"`
	Instance string        `json:"instance,omitempty"`
}

// requestID is the header in which the router has put the id of the request.
const requestID = "Request-Id"

func (w *WellKnown) problem(rw http.ResponseWriter, r *http.Request, err error) {
	e := protocol.AsError(err)
	p := problem{w.base + "/problems/" + string(e.Code), e.Code.Title(), e.Code.Status(), e.Detail, e.Code, rw.Header().Get(requestID)}
	if e.Code == protocol.Internal {
		w.c.Log.ErrorContext(r.Context(), "document failed", "path", r.URL.Path, "err", e.Err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		http.Error(rw, "internal error", http.StatusInternalServerError)
		return
	}
	h := rw.Header()
	switch p.Status {
	case http.StatusNotFound, http.StatusGone:
		h.Set("Cache-Control", "public, max-age=60")
	default:
		h.Set("Cache-Control", "no-store")
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(netx.Seconds(e.RetryAfter)))
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	rw.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		rw.Write(body)
	}
}
