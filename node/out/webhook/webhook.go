// Package webhook sends one JSON document to an address that a user chose, signed with the
// node's key (RFC 9421, Web Bot Auth), and returns the outcome. It makes one attempt, and After
// says what follows a failed one. It does not follow redirects and never connects to an address
// that is not public (node/out/outbound checks each address that is dialled).
package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"stoa/node/out/outbound"
	"stoa/node/out/signed"
	"stoa/protocol"
	"stoa/protocol/netx"
)

const (
	timeout       = 10 * time.Second // for the whole exchange
	maxAnswer     = 16 << 10         // bytes of an answer that are read, so that the connection can be reused
	maxRetryAfter = 6 * time.Hour
)

// lanes is how many documents a deployment sends at once: half of a worker, so that receivers that
// do not answer leave the other half to other jobs.
const lanes = 4

// Lane returns the lane of the job that sends to an address. Each receiver gets one connection at
// a time, and all receivers together a few.
func Lane(address string) string {
	h := fnv.New32a()
	if u, err := url.Parse(address); err == nil {
		h.Write([]byte(u.Hostname()))
	}
	return "webhook:" + strconv.Itoa(int(h.Sum32()%lanes))
}

// Kinds of failure, for errors.Is.
var (
	ErrGone    = errors.New("the receiver answered 410: it wants no more deliveries")
	ErrRefused = errors.New("the address is not a public https address")
	ErrRetry   = errors.New("try again later")
)

// A Failure is the outcome of a document that was not accepted. Text may be shown to the user who
// chose the address: it reveals nothing about the node's own network. It is one of ErrGone,
// ErrRefused and ErrRetry.
type Failure struct {
	Status     int           // of the answer; 0 when there was none
	RetryAfter time.Duration // with ErrRetry: the receiver's Retry-After, at most six hours; 0 without one
	Kind       error         // one of the three
	Text       string        // a short description
	Err        error         // the cause, for the log only; may be nil
}

func (f *Failure) Error() string   { return f.Text }
func (f *Failure) Unwrap() []error { return []error{f.Kind, f.Err} }

// A Sender sends as one node. It is safe for concurrent use.
type Sender struct {
	Client  *http.Client   // of node/out/outbound
	Sign    *signed.Signer // whose form of Signature-Agent changes with each 401 or 403 of a host
	Private bool           // allow loopback addresses and plain http to them: development
	Now     func() time.Time
}

// Send posts body to address, with id as its Webhook-Id, and returns nil when the receiver
// answered 2xx. Any other outcome is a *Failure, except an error of this node such as a key that
// cannot sign.
func (s *Sender) Send(ctx context.Context, address, id string, body []byte) error {
	return s.SendWith(ctx, address, id, body, nil)
}

// SendWith is Send with further header fields, among them the media type of a body that is not application/json.
func (s *Sender) SendWith(ctx context.Context, address, id string, body []byte, fields http.Header) error {
	if why := protocol.CallbackFault(address, s.Private); why != "" {
		return &Failure{Kind: ErrRefused, Text: "the address " + why}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, form, err := s.request(ctx, address, id, body, fields)
	if err != nil {
		return err
	}
	res, err := s.Client.Do(r)
	if err != nil {
		return failureOf(err)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		s.Sign.Refused(ctx, r.URL.Host, form)
	}
	switch {
	case res.StatusCode >= 200 && res.StatusCode <= 299:
		return nil
	case res.StatusCode == http.StatusGone:
		return &Failure{Status: res.StatusCode, Kind: ErrGone, Text: ErrGone.Error()}
	case res.StatusCode >= 300 && res.StatusCode <= 399:
		return &Failure{Status: res.StatusCode, Kind: ErrRetry, Text: fmt.Sprintf("the receiver answered %d; redirects are not followed", res.StatusCode)}
	}
	return &Failure{
		Status: res.StatusCode, Kind: ErrRetry, Text: fmt.Sprintf("the receiver answered %d", res.StatusCode),
		RetryAfter: netx.RetryAfter(res.Header.Get("Retry-After"), s.now(), maxRetryAfter),
	}
}

// request returns the signed request. The signature covers method, address, media type, digest,
// the key directory that it names, and the id; for a platform of UCP also what UCP asks for.
func (s *Sender) request(ctx context.Context, address, id string, body []byte, fields http.Header) (*http.Request, signed.Form, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, "", &Failure{Kind: ErrRefused, Text: "the address is not valid", Err: err}
	}
	r.Header.Set("Content-Type", "application/json")
	maps.Copy(r.Header, fields)
	r.Header.Set(protocol.WebhookID, id)
	form := s.Sign.Form(ctx, r.URL.Host)
	covered := []string{"webhook-id"}
	if r.Header.Get("Ucp-Agent") != "" { // UCP 2026-08-25, REST Request Signing
		if covered = append(covered, "webhook-timestamp", "ucp-agent", "@authority", "@path"); r.URL.RawQuery != "" {
			covered = append(covered, "@query")
		}
	}
	if err := s.Sign.Sign(r, body, form, covered...); err != nil {
		return nil, "", fmt.Errorf("sign webhook %s: %w", id, err)
	}
	return r, form, nil
}

func (s *Sender) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// failureOf returns the failure for an exchange without an answer. It does not reveal the address
// that a name resolved to, which may be in this node's own network.
func failureOf(err error) error {
	if _, refused := errors.AsType[*outbound.Refused](err); refused {
		return &Failure{Kind: ErrRefused, Text: ErrRefused.Error(), Err: err}
	}
	text := "the receiver could not be reached"
	if errors.Is(err, context.DeadlineExceeded) {
		text = "the receiver did not answer in time"
	}
	return &Failure{Kind: ErrRetry, Text: text, Err: err}
}
