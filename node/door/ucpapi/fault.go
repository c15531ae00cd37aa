package ucpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/netx"
)

// A fault is a transport error of UCP: the request was not served. Business outcomes are answers.
type fault struct {
	status int
	rpc    int    // code in the MCP binding
	code   string // snake_case, as UCP writes codes
	text   string
	retry  time.Duration
	cause  error // for Signature-Error; nil for none
}

func (f *fault) Error() string { return f.code + ": " + f.text }

// Codes of JSON-RPC that UCP gives to kinds of errors (UCP 2026-08-25, Error Codes).
const (
	rpcDiscovery = -32001
	rpcRefused   = -32000
	rpcRequest   = -32600
	rpcParams    = -32602
	rpcInternal  = -32603
)

func badRequest(text string) *fault {
	return &fault{status: http.StatusBadRequest, rpc: rpcParams, code: "invalid_request", text: text}
}

func tooLarge(text string) *fault {
	return &fault{status: http.StatusBadRequest, rpc: rpcParams, code: "request_too_large", text: text}
}

func discovery(status int, code, text string) *fault {
	return &fault{status: status, rpc: rpcDiscovery, code: code, text: text}
}

// faultOf converts an error of the hall.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	e := protocol.AsError(err)
	f := &fault{status: e.Code.Status(), rpc: rpcRefused, code: underscored(e.Code), text: e.Detail, retry: e.RetryAfter}
	switch {
	case errors.Is(err, hall.ErrKeyReused):
		f.code = "idempotency_key_reused"
	case e.Code == protocol.Validation && len(e.Faults) > 0:
		f.text = e.Faults[0].Pointer + ": " + e.Faults[0].Detail
		fallthrough
	case e.Code == protocol.InvalidRequest, e.Code == protocol.InvalidCursor, e.Code == protocol.TooLarge, e.Code == protocol.UnsupportedMediaType:
		f.rpc = rpcParams
		if f.status == http.StatusUnprocessableEntity {
			f.status = http.StatusBadRequest
		}
		if e.Code == protocol.Validation {
			f.code = "invalid_request"
		}
		if e.Code == protocol.TooLarge {
			f.code = "request_too_large"
		}
	case f.status == http.StatusInternalServerError:
		f.rpc = rpcInternal
	}
	return f
}

func underscored(c protocol.Code) string {
	b := []byte(c)
	for i := range b {
		if b[i] == '-' {
			b[i] = '_'
		}
	}
	return string(b)
}

// a transportError is the body of an answer with the status of an error.
type transportError struct {
	Code     string `json:"code"`
	Content  string `json:"content"`
	Continue string `json:"continue_url,omitempty"` // where a person can go on
}

// body returns the error's members. A negotiation that failed names a page.
func (f *fault) body(base string) transportError {
	t := transportError{Code: f.code, Content: f.text}
	if f.rpc == rpcDiscovery {
		t.Continue = base + "/merchants"
	}
	return t
}

// refuse answers a request with an error.
func (a *API) refuse(w http.ResponseWriter, err error) {
	f := faultOf(err)
	head := w.Header()
	open(head)
	if f.retry > 0 || f.status == http.StatusTooManyRequests || f.status == http.StatusServiceUnavailable {
		head.Set("Retry-After", strconv.Itoa(netx.Seconds(f.retry)))
	}
	if s := signatureError(f.cause); s != "" {
		head.Set("Signature-Error", s)
	}
	body, err := hall.JSON(f.body(a.c.Base))
	if err != nil {
		body = []byte(`{"code":"internal","content":"internal error"}`)
	}
	write(head, w, f.status, body)
}

// Refuse answers a request that the node has refused before it reaches this door.
func (a *API) Refuse(w http.ResponseWriter, _ *http.Request, err error) { a.refuse(w, err) }

func write(head http.Header, w http.ResponseWriter, status int, body []byte) {
	head["Content-Type"] = []string{"application/json"}
	head["Cache-Control"] = []string{"no-store"}
	head["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	w.Write(body)
}

// open lets any page read the answer, without credentials.
func open(head http.Header) {
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Access-Control-Expose-Headers", protocol.ExposedHeaders)
}
