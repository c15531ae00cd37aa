package httpsig

import (
	"errors"
	"net/http"
	"strings"
)

// Code says what is wrong with a signed message. It is stable, public, and an
// error itself: errors.Is(err, httpsig.CodeExpired).
type Code string

// Error makes a Code usable as a target of errors.Is, and as the error of a KeyResolver without
// further details.
func (c Code) Error() string { return string(c) }

const (
	// No signature for this node: the message counts as unsigned.
	CodeSignatureMissing      Code = "signature-missing"
	CodeNoAcceptableSignature Code = "no-acceptable-signature" // signed for another application

	// The message cannot be parsed by RFC 9421.
	CodeTargetInvalid           Code = "target-invalid" // request target with '#', non-ASCII, or no path
	CodeHostUnknown             Code = "host-unknown"   // Host is not the configured authority; answer 421
	CodeSignatureInputMalformed Code = "signature-input-malformed"
	CodeSignatureMalformed      Code = "signature-malformed"
	CodeLabelMismatch           Code = "label-mismatch"
	CodeLabelDuplicate          Code = "label-duplicate"
	CodeParameterDuplicate      Code = "parameter-duplicate"
	CodeComponentDuplicate      Code = "component-duplicate"
	CodeComponentUnsupported    Code = "component-unsupported"
	CodeComponentValueInvalid   Code = "component-value-invalid"
	CodeTooManySignatures       Code = "too-many-signatures"
	CodeSignatureTooLarge       Code = "signature-too-large"
	CodeEvidenceMalformed       Code = "evidence-malformed"

	// A check failed.
	CodeParameterInvalid     Code = "parameter-invalid" // malformed when the type is wrong, else invalid
	CodeParameterMissing     Code = "parameter-missing"
	CodeNotYetValid          Code = "not-yet-valid"
	CodeExpired              Code = "expired"
	CodeValidityTooLong      Code = "validity-too-long"
	CodeCoverageInsufficient Code = "coverage-insufficient"
	CodeComponentMissing     Code = "component-missing"
	CodeAgentNotCovered      Code = "agent-not-covered"
	CodeAgentMalformed       Code = "agent-malformed" // malformed when the field does not parse, else invalid
	CodeDigestMissing        Code = "digest-missing"
	CodeDigestMalformed      Code = "digest-malformed"
	CodeDigestUnsupported    Code = "digest-unsupported"
	CodeDigestMismatch       Code = "digest-mismatch"
	CodeAlgorithmUnsupported Code = "algorithm-unsupported"
	CodeAlgorithmMismatch    Code = "algorithm-mismatch"
	CodeSignatureInvalid     Code = "signature-invalid"
	CodeReplayed             Code = "replayed" // for the caller that spends NonceKey
	CodeKeyMalformed         Code = "key-malformed"
	CodeKeyWeak              Code = "key-weak"
	CodeTestKeyRefused       Code = "test-key-refused"
	CodeKeyExpired           Code = "key-expired"
	CodeKeyNotYetValid       Code = "key-not-yet-valid"

	// Nothing could be decided; most of these come from the KeyResolver.
	CodeKeyUnknown              Code = "key-unknown"
	CodeAgentMissing            Code = "agent-missing"
	CodeDirectoryUnreachable    Code = "directory-unreachable"
	CodeDirectoryStatus         Code = "directory-status"
	CodeDirectoryRedirect       Code = "directory-redirect"
	CodeDirectoryTooLarge       Code = "directory-too-large"
	CodeDirectoryMalformed      Code = "directory-malformed"
	CodeDirectoryMediaType      Code = "directory-media-type"
	CodeDirectoryAddressRefused Code = "directory-address-refused"
	CodeReplayStoreUnavailable  Code = "replay-store-unavailable"
	CodeAccountUnavailable      Code = "account-unavailable"
	CodeKeyUnavailable          Code = "key-unavailable" // the resolver failed without a reason
)

// Outcome is the class of an error. There is no Outcome for a verified message.
type Outcome string

const (
	OutcomeUnsigned   Outcome = "unsigned"   // treat as a message without signature
	OutcomeMalformed  Outcome = "malformed"  // 400
	OutcomeInvalid    Outcome = "invalid"    // 401; never fall back to anonymous silently
	OutcomeUnverified Outcome = "unverified" // could not decide; never treat as verified
)

// Error is every error of this package. Detail names the faulty part. Of the signature base it
// contains only derived components, so that a signer can find the one that differs (RFC 9421
// §7.5.6) without learning anything new.
type Error struct {
	Code   Code
	Label  string // label of the signature at fault, "" when the whole message is
	Detail string
	Err    error // cause, for the log; not for the peer

	malformed bool     // for the two codes that are malformed or invalid
	required  []string // components that a signature of this message must cover
}

// wanting records what a signature of the message would have to cover.
func (e *Error) wanting(m *Message, body []byte) *Error {
	if !m.response() {
		e.required = wanted(m.Header, m.HasQuery, len(body) > 0)
	}
	return e
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("httpsig: ")
	b.WriteString(string(e.Code))
	if e.Detail != "" {
		b.WriteString(": ")
		b.WriteString(e.Detail)
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Is matches the error's Code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Outcome classifies the error.
func (e *Error) Outcome() Outcome {
	switch e.Code {
	case CodeSignatureMissing, CodeNoAcceptableSignature:
		return OutcomeUnsigned
	case CodeTargetInvalid, CodeHostUnknown, CodeSignatureInputMalformed, CodeSignatureMalformed,
		CodeLabelMismatch, CodeLabelDuplicate, CodeParameterDuplicate, CodeComponentDuplicate,
		CodeComponentUnsupported, CodeComponentValueInvalid, CodeTooManySignatures,
		CodeSignatureTooLarge, CodeEvidenceMalformed:
		return OutcomeMalformed
	case CodeKeyUnknown, CodeAgentMissing, CodeDirectoryUnreachable, CodeDirectoryStatus, CodeDirectoryRedirect,
		CodeDirectoryTooLarge, CodeDirectoryMalformed, CodeDirectoryMediaType, CodeDirectoryAddressRefused,
		CodeReplayStoreUnavailable, CodeAccountUnavailable, CodeKeyUnavailable:
		return OutcomeUnverified
	}
	if e.malformed {
		return OutcomeMalformed
	}
	return OutcomeInvalid
}

// Status returns the HTTP status for a route that requires a signature.
func (e *Error) Status() int {
	switch e.Code {
	case CodeHostUnknown:
		return http.StatusMisdirectedRequest
	case CodeReplayStoreUnavailable, CodeAccountUnavailable, CodeKeyUnavailable:
		return http.StatusServiceUnavailable
	}
	if e.Outcome() == OutcomeMalformed {
		return http.StatusBadRequest
	}
	return http.StatusUnauthorized
}

// SignatureError returns the value of the Signature-Error response field
// (draft-hardt-httpbis-signature-key), or "" when the field must be absent.
func (e *Error) SignatureError() string {
	switch e.Code {
	case CodeReplayStoreUnavailable, CodeAccountUnavailable, CodeKeyUnavailable, CodeHostUnknown:
		return ""
	case CodeCoverageInsufficient, CodeComponentMissing, CodeAgentNotCovered, CodeDigestMissing:
		if e.required == nil {
			return "error=invalid_input"
		}
		return `error=invalid_input, required_input=("` + strings.Join(e.required, `" "`) + `")`
	case CodeAlgorithmUnsupported:
		return `error=unsupported_algorithm, supported_algorithms=("ed25519" "ecdsa-p256-sha256" "ecdsa-p384-sha384" "rsa-pss-sha512" "rsa-v1_5-sha256")`
	case CodeKeyMalformed, CodeKeyWeak, CodeTestKeyRefused, CodeKeyExpired, CodeKeyNotYetValid, CodeAgentMalformed:
		return "error=invalid_key"
	}
	if e.Outcome() == OutcomeUnverified {
		return "error=unknown_key"
	}
	return "error=invalid_signature"
}

func fail(c Code, detail string) *Error      { return &Error{Code: c, Detail: detail} }
func malformed(c Code, detail string) *Error { return &Error{Code: c, Detail: detail, malformed: true} }

// asError converts any error to an *Error, with fallback for one without a code. The caller may
// modify the result.
func asError(err error, fallback Code) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		own := *e
		return &own
	}
	if c, ok := errors.AsType[Code](err); ok {
		return &Error{Code: c}
	}
	return &Error{Code: fallback, Err: err}
}
