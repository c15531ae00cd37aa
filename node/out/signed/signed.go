// Package signed signs what the node asks other hosts in its own name (RFC 9421, Web Bot Auth): documents that it fetches, and callbacks.
// It remembers which form of Signature-Agent a host takes, because verifiers implement several drafts.
package signed

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"stoa/identity/httpsig"
	"stoa/identity/key"
)

// A Form is a way to write and cover Signature-Agent. No form suits all verifiers: the npm package web-bot-auth 0.1.3 refuses FormMember,
// which newer drafts require.
type Form string

const (
	FormField  Form = "field"  // sig1="https://node", covered as a field
	FormMember Form = "member" // sig1="https://node", covered with ;key="sig1"
	FormString Form = "string" // "https://node", covered as a field
	formNone   Form = "none"   // nothing is signed: the host refused all forms
)

// Forms are all forms, in the order in which they are tried with a host that refuses one.
var Forms = []Form{FormField, FormMember, FormString}

const (
	ttl       = 5 * time.Minute // how long a signature is valid
	maxForms  = 1000            // hosts remembered by the process
	maxAnswer = 16 << 10        // bytes of a refusal that are read, so that the connection can be reused
)

// A Memory keeps the form that a host took beyond the process. Errors are treated as nothing known.
type Memory interface {
	Form(ctx context.Context, host string) (string, error) // "" for none
	Keep(ctx context.Context, host, form string) error
}

// A Signer signs as one node. It is safe for concurrent use.
type Signer struct {
	Key    key.Pair // the node's own; its key directory publishes it
	Base   string   // public address of the node, where the key directory is
	First  Form     // for hosts of which nothing is known; "" is FormField
	Memory Memory   // nil: the process forgets when it ends
	Now    func() time.Time

	mu    sync.Mutex      // guards forms
	forms map[string]Form // by host: what to send next
}

// Form returns the form to send to a host.
func (s *Signer) Form(ctx context.Context, host string) Form {
	if f := s.known(ctx, host); f != formNone {
		return f
	}
	return s.first()
}

func (s *Signer) first() Form { return cmp.Or(s.First, FormField) }

// known is Form, or formNone for a host that refused all of them.
func (s *Signer) known(ctx context.Context, host string) Form {
	s.mu.Lock()
	f, ok := s.forms[host]
	s.mu.Unlock()
	if ok {
		return f
	}
	f = s.first()
	if s.Memory != nil {
		if text, err := s.Memory.Form(ctx, host); err == nil && (Form(text) == formNone || slices.Contains(Forms, Form(text))) {
			f = Form(text)
		} else if err != nil {
			return f
		}
	}
	s.hold(host, f)
	return f
}

func (s *Signer) hold(host string, f Form) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forms == nil || len(s.forms) >= maxForms {
		s.forms = map[string]Form{}
	}
	s.forms[host] = f
}

// keep stores what a host takes.
func (s *Signer) keep(ctx context.Context, host string, f Form) {
	s.hold(host, f)
	if s.Memory != nil {
		_ = s.Memory.Keep(ctx, host, string(f)) // it is found out again
	}
}

// next is the form after one that was refused.
func next(f Form) Form { return Forms[(slices.Index(Forms, f)+1)%len(Forms)] }

// Refused records that a host answered 401 or 403 to a form: the next request has another.
func (s *Signer) Refused(ctx context.Context, host string, f Form) { s.keep(ctx, host, next(f)) }

// Sign sets Signature-Agent and signs the request. extra are header fields that are covered too.
func (s *Signer) Sign(r *http.Request, body []byte, f Form, extra ...string) error {
	agent := `"` + s.Base + `"`
	if f != FormString {
		agent = "sig1=" + agent
	}
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	r.Header.Set("Signature-Agent", agent)
	return httpsig.SignRequest(r, httpsig.NewTarget(r.URL.Scheme, r.URL.Host), body, httpsig.SignOptions{
		Key: s.Key.Signer(), Created: now(), TTL: ttl, Extra: extra, WholeAgent: f == FormField,
	})
}

// Client returns a client whose reads are signed. A host that answers 401 or 403 is asked again at once, with each other form and at last
// without a signature, and what it took is remembered: one that refuses everything costs three requests more, once.
func (s *Signer) Client(c *http.Client) *http.Client {
	own := *c
	own.Transport = transport{s, cmp.Or(c.Transport, http.DefaultTransport)}
	return &own
}

type transport struct {
	signer *Signer
	next   http.RoundTripper
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Body != nil || r.Header.Get("Authorization") != "" || r.Header.Get("Signature") != "" {
		return t.next.RoundTrip(r)
	}
	ctx, host := r.Context(), r.URL.Host
	was := t.signer.known(ctx, host)
	for f := was; ; {
		asked := r
		if f != formNone {
			asked = r.Clone(ctx)
			if err := t.signer.Sign(asked, nil, f); err != nil {
				return nil, fmt.Errorf("sign a read of %s: %w", host, err)
			}
		}
		res, err := t.next.RoundTrip(asked)
		if err != nil {
			return nil, err
		}
		if refused := res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden; !refused || f == formNone {
			if f != was {
				t.signer.keep(ctx, host, f)
			}
			return res, nil
		}
		io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
		res.Body.Close()
		if f = next(f); f == was {
			f = formNone
		}
	}
}
