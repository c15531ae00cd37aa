package mcpapi

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/netx"
)

// Codes of JSON-RPC 2.0 §5.1 and of MCP 2026-07-28.
const (
	parseError         = -32700
	invalidRequest     = -32600
	methodNotFound     = -32601
	badParams          = -32602
	internalError      = -32603
	headerMismatch     = -32020
	versionUnsupported = -32022
)

// An rpcError is an error of the protocol itself: the message cannot be served, whatever operation
// it names. An error of an operation is a toolError.
type rpcError struct {
	status int
	code   int
	text   string
	data   any
	retry  time.Duration
	always bool // the status is also used on the legacy wire, whose other errors have status 200
}

func (e *rpcError) Error() string { return strconv.Itoa(e.code) + " " + e.text }

// errorData adds the node's own code to that of JSON-RPC (contract §1).
type errorData struct {
	Code       protocol.Code `json:"code"`
	Detail     string        `json:"detail,omitempty"`
	RetryAfter int           `json:"retryAfter,omitempty"` // seconds
}

// transport returns the error for a request whose message was not read.
func transport(status int, code protocol.Code, text string) error {
	return &rpcError{status: status, code: invalidRequest, text: text, data: errorData{Code: code}, always: true}
}

func invalid(text string) error {
	return &rpcError{status: http.StatusBadRequest, code: invalidRequest, text: text, data: errorData{Code: protocol.InvalidRequest}, always: true}
}

func invalidParams(text string) error {
	return &rpcError{status: http.StatusBadRequest, code: badParams, text: text, data: errorData{Code: protocol.InvalidRequest}}
}

func mismatch(header, member string) error {
	return &rpcError{status: http.StatusBadRequest, code: headerMismatch, text: "the header " + header + " must be sent once and equal " + member,
		data: errorData{Code: protocol.InvalidRequest}}
}

func unsupported(version string) error {
	type data struct {
		Supported []string `json:"supported"`
		Requested string   `json:"requested"`
	}
	return &rpcError{status: http.StatusBadRequest, code: versionUnsupported, text: "this server does not support that protocol version",
		data: data{versions, clip(version)}, always: true}
}

// A toolError is what the caller of a tool reads when the operation failed. It is sent as text
// only, because some clients check structured content against the output schema even for an error.
type toolError struct {
	Code       protocol.Code       `json:"code"`
	Detail     string              `json:"detail"`
	Advice     string              `json:"advice,omitempty"`
	Errors     []protocol.Fault    `json:"errors,omitempty"`
	RetryAfter int                 `json:"retryAfter,omitempty"` // seconds
	Challenge  any                 `json:"challenge,omitempty"`
	Slot       *protocol.SlotPrice `json:"slot,omitempty"`
	How        string              `json:"how,omitempty"`
	Retry      string              `json:"retry,omitempty"`
	Accepts    []protocol.Way      `json:"accepts,omitempty"` // with 401: what would admit the caller
	Instance   string              `json:"instance,omitempty"`
}

// solving explains a challenge to an agent that has never seen one.
var solving = protocol.GetChallenge.Description

const retrying = `Call the tool again with the same arguments and pow: {"challenge": the challenge as you got it, "solution": {"counter": n}}, ` +
	`as an object or as a JSON string.`

func newToolError(err error, accepts []protocol.Way, requestID string) ([]byte, error) {
	e := protocol.AsError(err)
	t := toolError{Code: e.Code, Detail: e.Detail, Advice: e.Code.Advice(), Errors: e.Faults, Challenge: e.Challenge, Slot: e.Slot, Accepts: accepts,
		Instance: requestID}
	if e.RetryAfter > 0 || e.Code == protocol.RateLimited || e.Code.Status() == http.StatusServiceUnavailable {
		t.RetryAfter = netx.Seconds(e.RetryAfter)
	}
	if e.Challenge != nil {
		t.How, t.Retry, t.Advice = solving, retrying, ""
	}
	text, err := hall.JSON(t)
	return bytes.TrimSpace(text), err
}

// credentialRefused reports whether a credential of the request was refused. Such an error also sets
// the HTTP status, as MCP's authorization requires (2026-07-28, "Error Handling": 401 for an invalid
// token, 403 for one that allows too little), so that a client renews the credential. One that is missing does so at the owners'
// door, where clients then sign in; at the public one they show the error of the tool.
func (a *API) credentialRefused(r *http.Request, e *protocol.Error) bool {
	switch e.Code {
	case protocol.SignatureInvalid, protocol.SignatureExpired, protocol.SignatureReplayed, protocol.KeyUnknown, protocol.Misdirected:
		return true
	case protocol.Unauthorized:
		return a.c.For == protocol.Owners || r.Header["Authorization"] != nil
	}
	return protocol.ByOAuth(e.Scope) && a.c.For == protocol.Owners
}

// clip shortens a value that is repeated to the caller, and makes it printable.
func clip(s string) string { return protocol.CleanText(protocol.Clip(s, 64)) }
