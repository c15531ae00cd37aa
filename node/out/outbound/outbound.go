// Package outbound makes the one *http.Client that the node dials out with.
//
// Addresses come from strangers: actors, inboxes, callbacks, chain endpoints. The client refuses
// every address that is not public, and it does so when a socket is about to connect, on the
// resolved address, so that neither a changing DNS answer nor a redirect avoids the check
// (server-side request forgery). It also bounds headers, body, time and redirects.
//
// Nothing else in the project dials; other packages are given an *http.Client.
package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"syscall"
	"time"

	"stoa/protocol/trace"
)

// Limits of a client. Those in Options are defaults.
const (
	DefaultTimeout = 15 * time.Second // one whole exchange, redirects and body included
	DefaultMaxBody = 1 << 20          // bytes of a body, after decompression
	MaxRedirects   = 3

	maxHeader    = 64 << 10
	connsPerHost = 4
	dialTimeout  = 5 * time.Second
)

// Options of a client. The zero value is right for strangers' addresses.
type Options struct {
	// AllowPrivate also allows loopback, RFC 1918 and unique local addresses, with any port and
	// plain http. Link-local addresses, where clouds serve credentials, are still refused.
	AllowPrivate bool

	Ports     []uint16       // ports of public addresses; default 443
	UserAgent string         // sent where a request has none; default "stoa"
	Timeout   time.Duration  // of a whole exchange; default DefaultTimeout
	MaxBody   int64          // bytes of a body; default DefaultMaxBody
	Resolver  *net.Resolver  // nil: the system's
	RootCAs   *x509.CertPool // nil: the system's
}

// New returns a guarded client. It is safe for concurrent use, keeps at most four connections per
// host, ignores proxy settings of the environment and speaks HTTP/2 and TLS 1.2 or newer.
//
// A request that it refuses fails with a *[Refused]; reading a body beyond MaxBody fails with
// [ErrBodyTooLarge]. GET and HEAD follow up to MaxRedirects redirects, never from https to http;
// for other methods the redirect is the answer.
func New(o Options) *http.Client {
	if len(o.Ports) == 0 {
		o.Ports = []uint16{443}
	}
	if o.UserAgent == "" {
		o.UserAgent = "stoa"
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	g := &guard{o: o, secure: transport(o, rules{ports: o.Ports, private: o.AllowPrivate, public: true})}
	if o.AllowPrivate {
		g.plain = transport(o, rules{private: true})
	}
	return &http.Client{Transport: g, CheckRedirect: redirect, Timeout: o.Timeout}
}

func transport(o Options, r rules) *http.Transport {
	dialer := &net.Dialer{
		Timeout:  dialTimeout,
		Resolver: o.Resolver,
		// Called for each resolved address before it is dialled.
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return r.check(network, address)
		},
	}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
		TLSHandshakeTimeout:    dialTimeout,
		MaxConnsPerHost:        connsPerHost,
		MaxIdleConnsPerHost:    connsPerHost / 2,
		MaxIdleConns:           256,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// guard checks a request before a transport sends it and bounds the body afterwards.
type guard struct {
	o      Options
	secure *http.Transport
	plain  *http.Transport // private addresses only; nil without AllowPrivate
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	_, span := trace.Start(req.Context(), "request", trace.Client)
	if span == nil {
		return g.roundTrip(req)
	}
	defer span.End()
	// No path; and no header: nobody else learns of the trace.
	span.Set(trace.Text("http.request.method", req.Method), trace.Text("server.address", req.URL.Hostname()))
	resp, err := g.roundTrip(req)
	if err != nil {
		span.Fail()
		return nil, err
	}
	span.Set(trace.Number("http.response.status_code", resp.StatusCode))
	if resp.StatusCode >= http.StatusBadRequest {
		span.Fail()
	}
	return resp, nil
}

func (g *guard) roundTrip(req *http.Request) (*http.Response, error) {
	t, err := g.pick(req.URL)
	if err != nil {
		if req.Body != nil {
			req.Body.Close() // RoundTripper must close it, also on errors
		}
		return nil, err
	}
	if req.Header.Get("User-Agent") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("User-Agent", g.o.UserAgent)
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	left := g.o.MaxBody
	if resp.ContentLength > left && req.Method != http.MethodHead {
		left = -1 // the first read fails; status and headers are still an answer
	}
	resp.Body = &body{rc: resp.Body, left: left}
	return resp, nil
}

// CloseIdleConnections makes http.Client.CloseIdleConnections work.
func (g *guard) CloseIdleConnections() {
	g.secure.CloseIdleConnections()
	if g.plain != nil {
		g.plain.CloseIdleConnections()
	}
}

func (g *guard) pick(u *url.URL) (*http.Transport, error) {
	switch {
	case u.Hostname() == "":
		return nil, &Refused{u.Redacted(), "no host", true}
	case u.User != nil:
		return nil, &Refused{u.Redacted(), "user name in the address", true}
	case u.Scheme == "https" && !g.o.AllowPrivate && !slices.Contains(g.o.Ports, port(u)):
		return nil, &Refused{u.Host, "port " + u.Port(), true} // before the name is looked up
	case u.Scheme == "https":
		return g.secure, nil
	case u.Scheme == "http" && g.plain != nil:
		return g.plain, nil
	}
	return nil, &Refused{u.Redacted(), "scheme " + strconv.Quote(u.Scheme) + ", want https", true}
}

// port returns the port of an https address, 0 for any other scheme.
func port(u *url.URL) uint16 {
	if u.Port() == "" {
		return 443
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}

var errRedirects = errors.New("outbound: more than 3 redirects")

func redirect(req *http.Request, via []*http.Request) error {
	first, last := via[0], via[len(via)-1]
	if first.Method != http.MethodGet && first.Method != http.MethodHead {
		return http.ErrUseLastResponse
	}
	if len(via) > MaxRedirects {
		return errRedirects
	}
	if last.URL.Scheme == "https" && req.URL.Scheme != "https" {
		return &Refused{req.URL.Redacted(), "redirect from https to " + req.URL.Scheme, true}
	}
	// A signature is bound to its target, and the target of a redirect must not learn the page
	// that redirected to it.
	for _, name := range []string{"Signature", "Signature-Input", "Referer"} {
		req.Header.Del(name)
	}
	return nil
}
