package a2aapi

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/netx"
)

// A refusal is an error with the HTTP status of its answer. Errors after authentication have
// status 200, since clients discard the body of any other status. Errors before it, and those of
// limits, have the status that HTTP defines.
type refusal struct {
	err    error
	status int
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// transport returns the error for a request whose message was not read.
func transport(code protocol.Code, text string) error {
	return &refusal{protocol.Errorf(code, "%s", text), code.Status()}
}

// statusOf returns the HTTP status of a refusal.
func statusOf(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status
	}
	if _, ok := errors.AsType[*a2a.Error](err); ok {
		return http.StatusOK
	}
	switch status := protocol.CodeOf(err).Status(); status {
	case http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return status
	}
	return http.StatusOK
}

// classOf maps one of the node's error codes to an error of A2A or JSON-RPC.
func classOf(code protocol.Code) *a2a.Error {
	switch code.Status() {
	case http.StatusUnauthorized, http.StatusMisdirectedRequest:
		return a2a.ErrUnauthenticated
	case http.StatusForbidden:
		return a2a.ErrForbidden
	case http.StatusUnsupportedMediaType:
		return a2a.ErrContentType
	case http.StatusRequestEntityTooLarge:
		return a2a.ErrInvalidRequest
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusConflict:
		return a2a.ErrServer
	case http.StatusInternalServerError:
		return a2a.ErrInternal
	}
	return a2a.ErrInvalidParams
}

// ourDomain is the domain of errors of the node, as opposed to those of the protocol.
const ourDomain = "stoa"

// The members of error.data are objects with a type (A2A 1.0 §9.5).
type errorInfo struct {
	Type     string            `json:"@type"`
	Reason   string            `json:"reason"`
	Domain   string            `json:"domain"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

type badRequest struct {
	Type       string          `json:"@type"`
	Violations []a2a.Violation `json:"fieldViolations"`
}

type retryInfo struct {
	Type  string `json:"@type"`
	Delay string `json:"retryDelay"`
}

// A problem is the node's description of an error, with its code (contract §1).
type problem struct {
	Type     string           `json:"@type"`
	Code     protocol.Code    `json:"code"`
	Detail   string           `json:"detail"`
	Advice   string           `json:"advice,omitempty"`
	Errors   []protocol.Fault `json:"errors,omitempty"`
	Instance string           `json:"instance,omitempty"`
}

const rpcTypes = "type.googleapis.com/google.rpc."

// describe returns the members of the JSON-RPC error for a failure.
func (a *API) describe(err error, requestID string) (code int, text string, data []any) {
	if e, ok := errors.AsType[*a2a.Error](err); ok {
		data = append(data, errorInfo{rpcTypes + "ErrorInfo", e.Reason, a2a.ErrorDomain, e.Metadata})
		if len(e.Violations) > 0 {
			data = append(data, badRequest{rpcTypes + "BadRequest", e.Violations})
		}
		// The advice of the node's codes is about HTTP; here the text says what to do.
		return e.Code, e.Text, append(data, a.problem(codeOf(e), e.Text, "", e.Faults(), requestID))
	}
	e := protocol.AsError(err)
	reason := strings.ToUpper(strings.ReplaceAll(string(e.Code), "-", "_"))
	advice := e.Code.Advice()
	if e.Code == protocol.Unauthorized {
		advice = "" // the advice recommends a token, which is not enough here
	}
	var metadata map[string]string
	if limit, ok := errors.AsType[protocol.LimitReached](e.Err); ok {
		// The advice of a conflict is about idempotency keys; the text says what to do.
		reason, advice, metadata = limit.Reason, "", map[string]string{"limit": strconv.Itoa(limit.Most), "of": limit.Of}
	}
	data = append(data, errorInfo{rpcTypes + "ErrorInfo", reason, ourDomain, metadata})
	if len(e.Faults) > 0 {
		data = append(data, badRequest{rpcTypes + "BadRequest", violations(e.Faults)})
	}
	if wait := e.RetryAfter; wait > 0 {
		data = append(data, retryInfo{rpcTypes + "RetryInfo", strconv.Itoa(netx.Seconds(wait)) + "s"})
	}
	return classOf(e.Code).Code, e.Detail, append(data, a.problem(e.Code, e.Detail, advice, e.Faults, requestID))
}

func (a *API) problem(code protocol.Code, detail, advice string, faults []protocol.Fault, requestID string) problem {
	return problem{a.c.Base + "/problems/" + string(code), code, detail, advice, faults, requestID}
}

// codeOf returns the code of contract §1 for an error of the protocol.
func codeOf(e *a2a.Error) protocol.Code {
	switch e.Code {
	case a2a.ErrInvalidParams.Code, a2a.ErrPushNotSupported.Code, a2a.ErrUnsupportedOperation.Code, a2a.ErrTaskNotCancelable.Code:
		if e.Code == a2a.ErrInvalidParams.Code {
			return protocol.Validation
		}
		return protocol.Conflict
	case a2a.ErrTaskNotFound.Code, a2a.ErrMethodNotFound.Code:
		return protocol.NotFound
	case a2a.ErrContentType.Code:
		return protocol.UnsupportedMediaType
	case a2a.ErrInternal.Code:
		return protocol.Internal
	}
	return protocol.InvalidRequest
}

func violations(faults []protocol.Fault) []a2a.Violation {
	list := make([]a2a.Violation, len(faults))
	for i, f := range faults {
		list[i] = a2a.Violation{Field: f.Pointer, Description: f.Detail}
	}
	return list
}
