package razorpay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"
	"unicode"

	"stoa/node/out/pay"
	"stoa/protocol/netx"
)

const (
	callTimeout   = 10 * time.Second
	maxAnswer     = 256 << 10 // bytes
	maxReason     = 200       // characters of the vendor's description that are kept
	maxRetryAfter = 6 * time.Hour
)

// call makes one request and decodes a 2xx answer into out. Any other outcome is a *pay.Failure. An
// answer that cannot be read says nothing about what was done, so it is temporary: each request that
// changes something carries a reference or key with which it can be sent again.
func (p *Provider) call(ctx context.Context, method, path string, header http.Header, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("razorpay: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, p.a.Base+path, body)
	if err != nil {
		return fmt.Errorf("razorpay: %w", err)
	}
	maps.Copy(r.Header, header)
	r.Header.Set("Accept", "application/json")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.SetBasicAuth(p.a.KeyID, p.a.KeySecret)
	res, err := p.a.Client.Do(r)
	if err != nil {
		return unreachable(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // an object that is cut is no JSON
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return failure(res, raw, p.a.Now())
	}
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		return &pay.Failure{Kind: pay.ErrTemporary, Status: res.StatusCode, Text: "razorpay: the answer cannot be read", Err: err}
	}
	return nil
}

// unreachable is the failure of a request without an answer. One that the client refused because of
// its address is refused for ever.
func unreachable(err error) error {
	var f interface{ Final() bool }
	if errors.As(err, &f) && f.Final() {
		return &pay.Failure{Kind: pay.ErrRefused, Text: "razorpay: the address is not allowed", Err: err}
	}
	return &pay.Failure{Kind: pay.ErrTemporary, Text: "razorpay: no answer", Err: err}
}

// failure classifies an answer by its HTTP status. The code in the body is not used: a 503 may say
// BAD_REQUEST_ERROR.
func failure(res *http.Response, raw []byte, now time.Time) *pay.Failure {
	var body struct {
		Error struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	_ = json.Unmarshal(raw, &body) // a proxy's page has no description
	f := &pay.Failure{Status: res.StatusCode, Text: fmt.Sprintf("razorpay answered %d", res.StatusCode)}
	if reason := printable(body.Error.Description); reason != "" {
		f.Text += ": " + reason
	}
	switch s := res.StatusCode; {
	case s >= 500 || s == http.StatusRequestTimeout || s == http.StatusConflict || s == http.StatusTooEarly || s == http.StatusTooManyRequests:
		f.Kind, f.RetryAfter = pay.ErrTemporary, netx.RetryAfter(res.Header.Get("Retry-After"), now, maxRetryAfter)
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		f.Kind = pay.ErrCredentials
	case s == http.StatusNotFound || strings.Contains(f.Text, "does not exist"):
		f.Kind = pay.ErrUnknown // the vendor answers 400 for ids that do not exist
	default:
		f.Kind = pay.ErrRefused
	}
	return f
}

// refused reports whether the vendor refused a request that may be right for another state.
func refused(err error) bool { return errors.Is(err, pay.ErrRefused) }

// says reports whether the vendor refused a request with a description that has these words: it has
// no code of its own for them.
func says(err error, words string) bool {
	return refused(err) && strings.Contains(strings.ToLower(err.Error()), words)
}

// printable returns the beginning of a text of the vendor on one line.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, pay.Clip(s, maxReason))
	return strings.TrimSpace(s)
}
