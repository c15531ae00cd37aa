package a2aapi

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

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
	Type       string              `json:"@type"`
	Code       protocol.Code       `json:"code"`
	Detail     string              `json:"detail"`
	Advice     string              `json:"advice,omitempty"`
	Errors     []protocol.Fault    `json:"errors,omitempty"`
	Challenge  any                 `json:"challenge,omitempty"`
	ConfirmURL string              `json:"confirmUrl,omitempty"` // where a person confirms it
	ConfirmID  string              `json:"confirmId,omitempty"`
	Confirm    string              `json:"confirm,omitempty"` // waiting, refused, expired
	Slot       *protocol.SlotPrice `json:"slot,omitempty"`
	Accepts    []protocol.Way      `json:"accepts,omitempty"`  // with 401: what would admit the caller
	Instead    []way               `json:"instead,omitempty"`  // with 401: the same at other doors
	Identity   string              `json:"identity,omitempty"` // with 401: how an agent gets an identity
	Instance   string              `json:"instance,omitempty"`
}

// legacyData is the data of an error in 0.3.
type legacyData struct {
	Reason   string            `json:"reason"`
	Domain   string            `json:"domain"`
	Metadata map[string]string `json:"metadata,omitempty"`
	problem
}

const rpcTypes = "type.googleapis.com/google.rpc."

// describe returns the members of the JSON-RPC error for a failure. In 1.0 its data are typed objects, in 0.3 one object.
func (a *API) describe(v *visit, err error) (code int, text string, data any) {
	var info errorInfo
	var broken []a2a.Violation
	var about problem
	var wait time.Duration
	if e, ok := errors.AsType[*a2a.Error](err); ok {
		info = errorInfo{rpcTypes + "ErrorInfo", e.Reason, a2a.ErrorDomain, e.Metadata}
		// The advice of the node's codes is about HTTP; here the text says what to do.
		code, text, broken, about = e.Code, e.Text, e.Violations, problem{Code: codeOf(e), Errors: e.Faults()}
	} else {
		e := protocol.AsError(err)
		info = errorInfo{rpcTypes + "ErrorInfo", strings.ToUpper(strings.ReplaceAll(string(e.Code), "-", "_")), ourDomain, nil}
		code, text, broken, wait, about = classOf(e.Code).Code, e.Detail, violations(e.Faults), e.RetryAfter, a.detail(v, e)
		if limit, ok := errors.AsType[protocol.LimitReached](e.Err); ok {
			// The advice of a conflict is about idempotency keys; the text says what to do.
			info.Reason, about.Advice = limit.Reason, ""
			info.Metadata = map[string]string{"limit": strconv.Itoa(limit.Most), "of": limit.Of}
		}
	}
	about.Type, about.Detail, about.Instance = a.c.Base+"/problems/"+string(about.Code), text, v.w.Header().Get(requestIDHeader)
	if v.m.version == a2a.Legacy {
		return code, text, legacyData{info.Reason, info.Domain, info.Metadata, about}
	}
	all := []any{info}
	if len(broken) > 0 {
		all = append(all, badRequest{rpcTypes + "BadRequest", broken})
	}
	if wait > 0 {
		all = append(all, retryInfo{rpcTypes + "RetryInfo", strconv.Itoa(netx.Seconds(wait)) + "s"})
	}
	return code, text, append(all, about)
}

// detail returns what an error of the node tells beside its text: the one place for what a refusal of the hall has for the caller,
// as problem documents and tool errors show it at the other doors.
func (a *API) detail(v *visit, e *protocol.Error) problem {
	p := problem{Code: e.Code, Advice: e.Code.Advice(), Errors: e.Faults, Challenge: e.Challenge, Slot: e.Slot}
	if c := e.Confirm; c != nil {
		p.ConfirmURL, p.ConfirmID, p.Confirm = c.URL, c.ID, c.State
	}
	if e.Code == protocol.Unauthorized || e.Code == protocol.IdentityUnverified {
		p.Advice = "" // which may recommend what is not enough here
	}
	if status := statusOf(e); v.op != nil && (status == http.StatusUnauthorized || e.Code == protocol.IdentityUnverified) {
		served := &protocol.Operation{Access: a.needs(v).Access | protocol.Signed}
		p.Accepts = served.Ways(a.c.Base, a.c.Table.Gate.Chain != nil)
		if a.c.Callers == a2a.ChainCallers {
			p.Accepts = slices.DeleteFunc(p.Accepts, func(w protocol.Way) bool {
				return w.Level == string(protocol.ByDirectory) || w.Level == string(protocol.ByProfileKey)
			})
		}
		if a.c.Callers != a2a.AnyCallers {
			p.Instead, p.Identity = a.instead(v), a.c.Base+"/SKILL.md"
		}
	}
	return p
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
