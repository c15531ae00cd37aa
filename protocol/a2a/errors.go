package a2a

import (
	"strings"

	"stoa/protocol"
)

// ErrorDomain is the domain of the errors that the specification defines.
const ErrorDomain = "a2a-protocol.org"

// An Error is one of the errors of A2A 1.0 §5.4 and of JSON-RPC 2.0 §5.1. With returns a modified
// copy; the values below never change.
type Error struct {
	Code       int
	Reason     string // of google.rpc.ErrorInfo, UPPER_SNAKE
	Text       string
	Metadata   map[string]string
	Violations []Violation
}

// A Violation is one broken rule of the parameters.
type Violation struct {
	Field       string         `json:"field"` // path such as message.parts[0].text
	Description string         `json:"description"`
	Fault       protocol.Fault `json:"-"` // of the operation's input; zero when the rule is the protocol's
}

// Faults returns the violations as faults with JSON pointers: into the input of an operation if
// the operation has a rule that is broken, otherwise into the parameters.
func (e *Error) Faults() []protocol.Fault {
	var list []protocol.Fault
	for _, v := range e.Violations {
		if v.Fault == (protocol.Fault{}) {
			v.Fault = protocol.Fault{Pointer: Pointer(v.Field), Code: "invalid", Detail: v.Description}
		}
		list = append(list, v.Fault)
	}
	return list
}

// Pointer converts a path such as message.parts[0].text to /message/parts/0/text.
func Pointer(field string) string {
	if field == "" {
		return ""
	}
	path, name, named := strings.Cut(field, `["`) // of a member whose name has dots
	path = "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(path)
	if !named {
		return path
	}
	name, rest, _ := strings.Cut(name, `"]`)
	return path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name) + strings.ReplaceAll(rest, ".", "/")
}

var (
	ErrParse                = &Error{Code: -32700, Reason: "PARSE_ERROR", Text: "the body cannot be read as JSON"}
	ErrInvalidRequest       = &Error{Code: -32600, Reason: "INVALID_REQUEST", Text: "not a JSON-RPC 2.0 request"}
	ErrMethodNotFound       = &Error{Code: -32601, Reason: "METHOD_NOT_FOUND", Text: "there is no such method"}
	ErrInvalidParams        = &Error{Code: -32602, Reason: "INVALID_PARAMS", Text: "the parameters are not valid"}
	ErrInternal             = &Error{Code: -32603, Reason: "INTERNAL", Text: "something went wrong on our side"}
	ErrServer               = &Error{Code: -32000, Reason: "UNAVAILABLE", Text: "the request cannot be served now"}
	ErrTaskNotFound         = &Error{Code: -32001, Reason: "TASK_NOT_FOUND", Text: "you have no such task with this agent"}
	ErrTaskNotCancelable    = &Error{Code: -32002, Reason: "TASK_NOT_CANCELABLE", Text: "the task cannot be canceled"}
	ErrPushNotSupported     = &Error{Code: -32003, Reason: "PUSH_NOTIFICATION_NOT_SUPPORTED", Text: "this has no push notifications; ask for the task"}
	ErrUnsupportedOperation = &Error{Code: -32004, Reason: "UNSUPPORTED_OPERATION", Text: "this is not supported"}
	ErrContentType          = &Error{Code: -32005, Reason: "CONTENT_TYPE_NOT_SUPPORTED", Text: "the content type is not supported"}
	ErrExtendedCard         = &Error{Code: -32007, Reason: "EXTENDED_AGENT_CARD_NOT_CONFIGURED", Text: "this agent has no extended card"}
	ErrVersionNotSupported  = &Error{Code: -32009, Reason: "VERSION_NOT_SUPPORTED", Text: "the version is not supported"}
	ErrUnauthenticated      = &Error{Code: -31401, Reason: "UNAUTHENTICATED", Text: "sign the request"}
	ErrForbidden            = &Error{Code: -31403, Reason: "FORBIDDEN", Text: "not allowed"}
)

func (e *Error) Error() string { return e.Text }

// Is makes errors.Is compare codes.
func (e *Error) Is(other error) bool {
	o, ok := other.(*Error)
	return ok && o.Code == e.Code
}

// With returns a copy with another text and further metadata, in pairs.
func (e *Error) With(text string, pairs ...string) *Error {
	c := *e
	c.Text = text
	for i := 0; i+1 < len(pairs); i += 2 {
		if c.Metadata == nil {
			c.Metadata = map[string]string{}
		}
		c.Metadata[pairs[i]] = pairs[i+1]
	}
	return &c
}

// Invalid returns the error for parameters that break rules.
func Invalid(v ...Violation) *Error {
	texts := make([]string, len(v))
	for i := range v {
		texts[i] = strings.TrimPrefix(v[i].Field+": "+v[i].Description, ": ")
	}
	c := *ErrInvalidParams
	c.Text, c.Violations = strings.Join(texts, "; "), v
	return &c
}
