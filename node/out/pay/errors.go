package pay

import (
	"errors"
	"fmt"
	"time"

	"stoa/protocol"
)

// Kinds of failure, for errors.Is. Only ErrTemporary is worth another attempt of the same request.
var (
	ErrTemporary   = errors.New("the payment provider cannot answer now")              // network, 408, 409, 425, 429, 5xx, an unreadable answer
	ErrRefused     = errors.New("the payment provider refused the request")            // final, and none of those below
	ErrCredentials = errors.New("the payment provider does not accept the keys")       // 401, 403: the owner must act
	ErrUnknown     = errors.New("the payment provider does not know this")             // no such link, payment or refund
	ErrRefUsed     = errors.New("the reference belongs to another or a closed link")   // try the next attempt number
	ErrExpiry      = errors.New("the provider takes no link that expires then")        // begin a new hold
	ErrAmount      = errors.New("the provider does not take this amount or currency")  //
	ErrPaid        = errors.New("the link has a payment")                              // of CancelLink
	ErrUnsupported = errors.New("the provider cannot do this")                         // Caps says so too
	ErrSignature   = errors.New("the signature of the payment provider is not valid")  // of a webhook or callback
	ErrMalformed   = errors.New("the payment provider's message cannot be read")       // signed, and not what is documented
	ErrDisabled    = errors.New("the sandbox is not enabled in the node's settings")   // of sandbox.New
	ErrAccount     = errors.New("the account at the payment provider is not complete") // of constructors
)

// A Failure is an answer of a provider that is not a success, or no answer. It is one of the kinds.
type Failure struct {
	Kind       error
	Status     int           // of the answer; 0 when there was none
	RetryAfter time.Duration // with ErrTemporary: what the provider asked for; 0 for nothing
	Text       string        // for the owner and the log, without secrets; bidders are shown Kind
	Err        error         // the cause; may be nil
}

func (f *Failure) Error() string { return f.Text }

// Unwrap makes errors.Is find the kind and the cause.
func (f *Failure) Unwrap() []error { return []error{f.Kind, f.Err} }

// Fail returns a failure of a kind with a text.
func Fail(kind error, format string, a ...any) *Failure {
	return &Failure{Kind: kind, Text: fmt.Sprintf(format, a...)}
}

// RetryAfter returns how long the provider asked to wait, 0 when it did not.
func RetryAfter(err error) time.Duration {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.RetryAfter
	}
	return 0
}

// Admit returns why a provider with these abilities cannot make a link, nil when it can.
func (c Caps) Admit(r LinkRequest, now time.Time) error {
	if !validRef(r.Ref) {
		return Fail(ErrRefused, "the reference must have 1 to %d letters, digits, _ or -", MaxRef)
	}
	if r.Currency != protocol.Rupee {
		return Fail(ErrAmount, "currency %q: only %s is taken", r.Currency, protocol.Rupee)
	}
	if err := c.admitPaise(r.AmountPaise); err != nil {
		return err
	}
	switch left := r.ExpiresAt.Sub(now); {
	case left <= 0:
		return Fail(ErrExpiry, "the link would be expired already")
	case left < c.MinExpiry:
		return Fail(ErrExpiry, "the link would expire in %s; the provider's least is %s", left.Round(time.Second), c.MinExpiry)
	case c.MaxExpiry > 0 && left > c.MaxExpiry:
		return Fail(ErrExpiry, "the link would expire in %s; the provider's most is %s", left.Round(time.Second), c.MaxExpiry)
	}
	return nil
}

// AdmitRefund returns why a provider with these abilities cannot make a refund, nil when it can.
func (c Caps) AdmitRefund(paise int64) error {
	if !c.Refunds {
		return ErrUnsupported
	}
	return c.admitPaise(paise)
}

func (c Caps) admitPaise(paise int64) error {
	if paise < max(1, c.MinPaise) {
		return Fail(ErrAmount, "%s is less than the provider's least amount, %s", protocol.FormatRupees(paise), protocol.FormatRupees(max(1, c.MinPaise)))
	}
	if most := c.MaxPaise; paise > protocol.MaxMinor || most > 0 && paise > most {
		return Fail(ErrAmount, "%s is more than the provider takes", protocol.FormatRupees(paise))
	}
	return nil
}
