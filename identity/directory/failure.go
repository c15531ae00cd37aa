package directory

import (
	"time"

	"stoa/identity/httpsig"
	"stoa/protocol"
)

// A Failure says why a directory or a key of it is not used. errors.Is matches
// its Code: directory-unreachable, directory-status, directory-redirect,
// directory-media-type, directory-too-large, directory-malformed,
// directory-address-refused; for one key key-unknown, key-expired,
// key-not-yet-valid, key-weak, or what is wrong with its proof; for the
// reference agent-missing and agent-malformed.
//
// It is not an *httpsig.Error on purpose: the verifier would take the code out
// of it and lose when to try again.
type Failure struct {
	Code   httpsig.Code
	Detail string // for the caller; contains nothing that the directory sent
	Err    error  // cause, for the log

	gone bool // the document is gone for good (410), which ends its keys
}

func (f *Failure) Error() string {
	text := string(f.Code) + ": " + f.Detail
	if f.Err != nil {
		text += ": " + f.Err.Error()
	}
	return text
}

func (f *Failure) Unwrap() error { return f.Err }

// Is matches the failure's Code.
func (f *Failure) Is(target error) bool {
	c, ok := target.(httpsig.Code)
	return ok && c == f.Code
}

// answer returns the failure for the caller. wait is when a retry may succeed; 0: never.
func (f *Failure) answer(wait time.Duration) *protocol.Error {
	return &protocol.Error{
		Code: protocol.KeyUnknown, Detail: string(f.Code) + ": " + f.Detail, RetryAfter: wait,
		Signature: (&httpsig.Error{Code: f.Code}).SignatureError(), Err: f,
	}
}

func (s source) underWay() *protocol.Error {
	f := &Failure{Code: httpsig.CodeKeyUnknown, Detail: "the key directory " + s.url + " is being fetched; send the request again"}
	return f.answer(fetchSoon)
}

func (s source) crowded() *protocol.Error {
	f := &Failure{Code: httpsig.CodeKeyUnknown, Detail: "too many key directories are waiting to be fetched; send the request again later"}
	return f.answer(busyWait)
}
