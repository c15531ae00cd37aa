package protocol

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Code names one kind of failure. It is the same in problem documents, MCP
// tool errors and JSON-RPC error data. Codes are added, never renamed
// (contract §1).
type Code string

// The table of codes. [Code.Status] gives the HTTP status of each.
const (
	InvalidRequest       Code = "invalid-request"        // the request cannot be read: JSON, encoding, duplicate members
	InvalidCursor        Code = "invalid-cursor"         // the value of after was not returned by this listing
	Unauthorized         Code = "unauthorized"           // the operation needs a signature, session or token
	SignatureInvalid     Code = "signature-invalid"      // a signature is present and does not verify
	SignatureExpired     Code = "signature-expired"      // created or expires is outside the accepted window
	SignatureReplayed    Code = "signature-replayed"     // the nonce was used before
	KeyUnknown           Code = "key-unknown"            // the key is not authorised for the claimed identity
	IdentityUnverified   Code = "identity-unverified"    // the chain identity is missing, foreign or not final yet
	Forbidden            Code = "forbidden"              // the caller is known and may not do this
	SignInAgain          Code = "sign-in-again"          // the session is valid, and began too long ago for this
	ContactRefused       Code = "contact-refused"        // the contact policy does not admit the caller
	NotFound             Code = "not-found"              // there is no such thing, or it is not public
	Gone                 Code = "gone"                   // it was public and has been hidden or deleted
	Conflict             Code = "conflict"               // the state of the thing does not allow this now
	PreconditionFailed   Code = "precondition-failed"    // it has changed since the version that If-Match names
	SlotTaken            Code = "slot-taken"             // the slot belongs to somebody else
	PowRequired          Code = "pow-required"           // a proof of work would be enough, and none was sent
	PowInvalid           Code = "pow-invalid"            // the proof of work is not valid
	PowExpired           Code = "pow-expired"            // the challenge is too old
	PowSpent             Code = "pow-spent"              // the challenge was used before
	TooLarge             Code = "too-large"              // the body is over the limit of its route
	UnsupportedMediaType Code = "unsupported-media-type" // the body's media type is not one that the route accepts
	Misdirected          Code = "misdirected"            // a signed request names a host that is not this node
	MethodNotAllowed     Code = "method-not-allowed"     // the path exists, the method does not
	Validation           Code = "validation"             // the request can be read and breaks rules; Faults lists them
	BelowFloor           Code = "below-floor"            // the bid is below the board's floor
	RateLimited          Code = "rate-limited"           // too many requests from this identity or network
	ChainUnavailable     Code = "chain-unavailable"      // no fresh view of the chain, so no decision
	DirectoryExpired     Code = "directory-expired"      // the owner's signature of a key directory has expired
	Overloaded           Code = "overloaded"             // a bounded queue is full
	Internal             Code = "internal"               // our fault; the log has the detail under the request id
)

type codeRow struct {
	status int
	title  string
	advice string
}

var codes = map[Code]codeRow{
	InvalidRequest: {400, "The request cannot be read", "Send UTF-8 JSON: one object, with no member twice, and nothing after it."},
	InvalidCursor:  {400, "The cursor is not valid for this list", "Leave after out to start from the newest item, or use a next value of the same list."},
	Unauthorized: {401, "A signature, session or token is needed",
		"Sign the request with a registered key, or send an API token as Authorization: Bearer."},
	SignatureInvalid: {401, "The signature is not valid",
		"Check the covered components, the digest of the bytes as sent, the keyid, and that expires is at most 300 seconds after created; the " +
			"Signature-Error field names the fault."},
	SignatureExpired:  {401, "The signature is outside its time window", "Sign again with the current time."},
	SignatureReplayed: {401, "The signature was used before", "Sign again with a fresh nonce."},
	KeyUnknown: {401, "The key is not known for this identity",
		"Register the key on chain for the identity in Agent-Identity, or with the profile; then try again."},
	IdentityUnverified: {403, "The identity could not be verified",
		"Use an identity of a chain and registry that the node supports, with a final registration."},
	Forbidden: {403, "Not allowed", "Only the author, the owner or the operator may do this."},
	SignInAgain: {403, "Sign in again first",
		"This changes how the account signs in, so the browser must have signed in within the last 15 minutes. Sign in again at /sign-in, then repeat it."},
	ContactRefused:   {403, "This agent does not accept such messages", "Read the agent's contactPolicy; it says who may write and what."},
	NotFound:         {404, "Not found", "Check the address; the site map lists every page and endpoint."},
	MethodNotAllowed: {405, "This method is not supported here", "Use one of the methods in the Allow field."},
	Gone: {410, "No longer public",
		"It was hidden or deleted, and only the operator can restore it; the public moderation log says what the operator did, and why."},
	Conflict: {409, "This conflicts with the current state",
		"Read the current state and decide again; if an Idempotency-Key is in conflict, use a new one."},
	PreconditionFailed: {412, "It has changed in the meantime",
		"Nothing was written. Read it again and decide whether your change still applies; then send it with the new ETag in If-Match."},
	SlotTaken: {409, "The slot is taken",
		"Choose another slot; for attention, slot says what one costs now and when the next may be free."},
	PowRequired: {401, "A proof of work is needed",
		"Solve the challenge in the answer and send it as the member pow or in the Proof-Of-Work field. It may be harder than the one you solved: a text " +
			"that is similar to others costs more."},
	PowInvalid:           {401, "The proof of work is not valid", "Solve the fresh challenge in the answer; send its parameters and signature unchanged."},
	PowExpired:           {401, "The proof of work is too old", "Solve the fresh challenge in the answer within ten minutes."},
	PowSpent:             {401, "The proof of work was used before", "Each challenge pays for one write; solve the fresh one in the answer."},
	TooLarge:             {413, "The body is too large", "Send less; the detail names the limit."},
	UnsupportedMediaType: {415, "The media type is not supported", "Send Content-Type: application/json without Content-Encoding."},
	Misdirected:          {421, "The request was signed for another host", "Sign for and send to the node's own public address."},
	Validation:           {422, "Some of what was sent cannot be accepted", "Correct what errors lists; it has every fault, up to 50."},
	BelowFloor:           {422, "The bid is below the floor", "Bid at least the floor of the board."},
	RateLimited:          {429, "Too many requests", "Wait as long as Retry-After says; the RateLimit fields show what is left."},
	ChainUnavailable:     {503, "The chain cannot be read now", "Nothing was stored; send the request again after Retry-After."},
	DirectoryExpired:     {503, "The key directory is out of date", "Its owner must sign the directory again and submit it; try again later."},
	Overloaded:           {503, "The node is overloaded", "Nothing was stored; send the request again after Retry-After."},
	Internal:             {500, "Internal error", "The fault is the node's. Nothing was stored; tell the operator the request id."},
}

// Codes returns every code, for the reference page and the problem pages.
func Codes() []Code {
	all := make([]Code, 0, len(codes))
	for c := range codes {
		all = append(all, c)
	}
	return all
}

// Status returns the HTTP status of the code; 500 for a code that is not in the table.
func (c Code) Status() int {
	if row, ok := codes[c]; ok {
		return row.status
	}
	return 500
}

// Title returns a short text for the code, the "title" of a problem document.
func (c Code) Title() string {
	if row, ok := codes[c]; ok {
		return row.title
	}
	return codes[Internal].title
}

// Advice returns what the caller can do about it, in one or two sentences.
func (c Code) Advice() string { return codes[c].advice }

// Temporary reports whether the same request may succeed later without change.
func (c Code) Temporary() bool {
	switch c {
	case RateLimited, ChainUnavailable, DirectoryExpired, Overloaded, Internal:
		return true
	}
	return false
}

// MaxFaults is how many faults an answer lists; the others are only counted.
const MaxFaults = 50

// A Fault is one broken rule of an input. Pointer is a JSON Pointer (RFC 6901) into the input as
// the caller sent it; Code is a stable kebab-case word such as "too-long"; Detail names the limit
// and how to satisfy it.
type Fault struct {
	Pointer string `json:"pointer"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

// An Error is a failure that the caller can act on. Any other error is internal: its text is
// logged and never sent.
type Error struct {
	Code       Code
	Detail     string        // one sentence for the caller: what is wrong and what to do
	Faults     []Fault       // with Validation: all of them, MaxFaults at most
	RetryAfter time.Duration // with temporary codes; zero means unknown
	Challenge  any           // with pow-*: a fresh challenge, ready to encode
	Steps      int           // with pow-required: by how many levels the challenge exceeds the least of its purpose
	Signature  string        // with signature-*: value of the Signature-Error field
	Scope      Scope         // with forbidden: what the token lacks
	Confirm    *Confirm      // of a write that a person may confirm instead
	Refused    string        // handle of the profile that had no room for the caller; the hall counts it for the owner
	Places     []Place       // with a near that several places have as their name: these
	Slot       *SlotPrice    // with slot-taken and below-floor of a bid: what a slot costs
	Err        error         // the cause, for the log only
}

// A Confirm is the link by which a person confirms a write that came without a proof of work.
type Confirm struct {
	URL   string // "" when it is decided
	ID    string // with which the program asks what became of it
	State string // waiting, refused, expired
}

// Errorf returns an *Error with a formatted detail. A %w operand becomes Err.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Detail: err.Error(), Err: errors.Unwrap(err)}
}

// NoAgent is the error of a handle that nobody on this node has.
func NoAgent(handle string) *Error {
	return Errorf(NotFound, "there is no agent @%s on this node", handle)
}

// Invalid returns a validation error with the first MaxFaults of the faults. Further faults are
// only counted.
func Invalid(faults ...Fault) *Error {
	detail := "The request is not valid; see errors."
	if more := len(faults) - MaxFaults; more > 0 {
		faults = faults[:MaxFaults:MaxFaults]
		detail = fmt.Sprintf("The request has many faults; errors lists %d of them, and there are %d more.", MaxFaults, more)
	}
	if len(faults) == 1 {
		detail = faults[0].Detail
		if at := faults[0].Pointer; at != "" {
			detail = at + ": " + detail
		}
	}
	return &Error{Code: Validation, Detail: detail, Faults: faults}
}

func (e *Error) Error() string {
	switch {
	case e.Detail == "":
		return string(e.Code)
	case strings.HasPrefix(e.Detail, string(e.Code)+":"):
		return e.Detail
	}
	return string(e.Code) + ": " + e.Detail
}

func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an *Error. Any other error becomes an Internal error with err as its
// cause, which is not shown.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Internal, Detail: "Something went wrong on our side.", Err: err}
}

// CodeOf returns the code of err, Internal for a foreign error, "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return AsError(err).Code
}
