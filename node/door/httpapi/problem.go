package httpapi

import (
	"net/http"
	"strconv"

	"stoa/identity/httpsig"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/netx"
)

// A Problem is an RFC 9457 problem document (contract §1).
type Problem struct {
	Type       string              `json:"type" format:"uri" doc:"The page that explains the code."`
	Title      string              `json:"title"`
	Status     int                 `json:"status"`
	Detail     string              `json:"detail"`
	Code       protocol.Code       `json:"code" doc:"Stable kebab-case code."`
	Instance   string              `json:"instance" doc:"Request id, for the operator."`
	Errors     []protocol.Fault    `json:"errors,omitempty" doc:"With validation: all faults, up to 50; detail says how many more there are."`
	Challenge  any                 `json:"challenge,omitempty" doc:"With pow-*: a fresh challenge."`
	ConfirmURL string              `json:"confirmUrl,omitempty" doc:"Where a person confirms the write, in place of a proof."`
	ConfirmID  string              `json:"confirmId,omitempty" doc:"Send the same request with it, to learn what became of it."`
	Confirm    string              `json:"confirm,omitempty" enum:"waiting,refused,expired"`
	Slot       *protocol.SlotPrice `json:"slot,omitempty" doc:"With slot-taken and below-floor of a bid: what a slot costs now."`
	Accepts    []protocol.Way      `json:"accepts,omitempty" doc:"With 401: what would admit the caller."`
	ErrorCode  string              `json:"errorCode,omitempty" doc:"In ARD operations: the code that ARD defines."`
	Message    string              `json:"message,omitempty" doc:"In ARD operations: the detail."`
}

// RequestIDHeader carries the id of a request; the router sets it.
const RequestIDHeader = "Request-Id"

// WriteProblem renders an error in a dialect. An error that is not a *protocol.Error becomes
// internal and shows only the request id.
func WriteProblem(w http.ResponseWriter, base string, dialect protocol.Dialect, err error) {
	writeProblem(w, base, dialect, err, nil)
}

func writeProblem(w http.ResponseWriter, base string, dialect protocol.Dialect, err error, accepts []protocol.Way) {
	e := protocol.AsError(err)
	head := w.Header()
	p := Problem{
		Type: base + "/problems/" + string(e.Code), Title: e.Code.Title(), Status: dialect.Status(e.Code),
		Detail: e.Detail, Code: e.Code, Instance: head.Get(RequestIDHeader), Errors: e.Faults, Challenge: e.Challenge, Slot: e.Slot,
		Accepts: accepts,
	}
	if c := e.Confirm; c != nil {
		p.ConfirmURL, p.ConfirmID, p.Confirm = c.URL, c.ID, c.State
	}
	if dialect == protocol.DialectARD {
		p.ErrorCode, p.Message = ardCode(p.Status), e.Detail
	}
	if e.Signature != "" {
		head.Set("Signature-Error", e.Signature)
	}
	if s := p.Status; e.RetryAfter > 0 || s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable {
		head.Set("Retry-After", strconv.Itoa(netx.Seconds(e.RetryAfter)))
	}
	body, err := hall.JSON(p)
	if err != nil {
		body = []byte(`{"code":"internal","status":500}`)
	}
	head.Set("Content-Type", "application/problem+json")
	head.Set("Cache-Control", "no-store")
	head.Del("Etag")
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	w.Write(body)
}

// problem renders an error of an operation, with what helps the caller to fix it.
func (a *API) problem(w http.ResponseWriter, r *http.Request, op *protocol.Operation, network string, err error) {
	head := w.Header()
	var accepts []protocol.Way
	if protocol.AsError(err).Code.Status() == http.StatusUnauthorized {
		accepts = op.Ways(a.Base, a.Table.Gate.Chain != nil)
		if op.Access&protocol.Proof != 0 {
			head.Add("WWW-Authenticate", `ProofOfWork purpose="`+op.Purpose+`"`)
		}
		if op.TakesToken() || op.Browser || op.Private() {
			head.Add("WWW-Authenticate", `Bearer realm="stoa"`)
		}
		if op.Access&protocol.Signed != 0 || op.Private() || op == protocol.DeletePost.Operation { // which its author signs
			head.Set("Accept-Signature", httpsig.AcceptFor(r))
		}
	}
	a.Table.Limits.Fields(head, network, op.ReadOnly)
	writeProblem(w, a.Base, op.Dialect, err, accepts)
}

// ardCode returns the code of ARD 0.9 for a status.
func ardCode(status int) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "UNAUTHENTICATED"
	case status == http.StatusNotFound || status == http.StatusGone:
		return "NOT_FOUND"
	case status == http.StatusTooManyRequests:
		return "RATE_LIMIT_EXCEEDED"
	case status < 500:
		return "INVALID_ARGUMENT"
	}
	return "INTERNAL_ERROR"
}
