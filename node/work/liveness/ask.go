package liveness

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stoa/node/out/outbound"
)

const (
	askTimeout = 8 * time.Second // for each request
	readMost   = 1024            // bytes of an answer; only the status matters
)

// askHTTP asks an address: first for robots.txt, then with HEAD, and with GET if HEAD was not
// understood.
func (p *Prober) askHTTP(ctx context.Context, target, domain string) Outcome {
	u, err := url.Parse(target)
	if err != nil {
		return Unreachable
	}
	rules, outcome := p.rules(ctx, u, domain)
	if outcome != Answered {
		return outcome
	}
	if !rules.allows(u) {
		return Disallowed
	}
	status, err := p.request(ctx, http.MethodHead, u)
	if err == nil && (status < 400 || status == http.StatusUnauthorized || status == http.StatusPaymentRequired ||
		status == http.StatusForbidden || status == http.StatusTooManyRequests) {
		return Answered
	}
	if failed := failure(err); failed != Answered {
		return failed
	}
	if status, err = p.request(ctx, http.MethodGet, u); err != nil {
		return failure(err)
	}
	switch {
	case status == http.StatusNotFound || status == http.StatusGone:
		return Missing
	case status >= 500:
		return Failing
	}
	// 400, 405, 406 and the like come from a server that wants another method or body, as
	// endpoints of agents do.
	return Answered
}

// request sends a request without a body and returns the status. It follows redirects only within
// the origin, because other hosts did not list themselves. A redirect to another origin counts as
// an answer.
func (p *Prober) request(ctx context.Context, method string, u *url.URL) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	resp, err := p.send(ctx, method, u, func(req *http.Request, via []*http.Request) error {
		if req.URL.Scheme != u.Scheme || req.URL.Host != u.Host || len(via) > outbound.MaxRedirects {
			return http.ErrUseLastResponse
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	// A short answer is read to its end, so that the connection can be used again.
	_, _ = io.CopyN(io.Discard, resp.Body, readMost)
	return resp.StatusCode, nil
}

func (p *Prober) send(ctx context.Context, method string, u *url.URL, redirect func(*http.Request, []*http.Request) error) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", p.Agent)
	req.Header.Set("Accept", "*/*")
	client := *p.Client
	client.CheckRedirect = redirect
	return client.Do(req)
}

func failure(err error) Outcome {
	if err == nil {
		return Answered
	}
	if refused, ok := errors.AsType[*outbound.Refused](err); ok {
		if refused.Form {
			return Unasked
		}
		return Refused
	}
	return Unreachable
}

// errAway ends a redirect of a robots.txt to another domain.
var errAway = errors.New("redirect to another domain")

// inDomain allows redirects of a robots.txt within its domain, as from example.org to
// www.example.org. RFC 9309 §2.3.1.2 would follow them anywhere, but then anyone who lists an
// address could make this node ask any other.
func inDomain(domain string) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		host := req.URL.Hostname()
		if req.URL.Scheme != via[0].URL.Scheme || host != domain && !strings.HasSuffix(host, "."+domain) || len(via) > outbound.MaxRedirects {
			return errAway
		}
		return nil
	}
}

// rules returns the rules that the robots.txt of the address's origin has for this node. The
// outcome is Answered when there are rules, or none because the file is missing (RFC 9309 §2.3.1).
func (p *Prober) rules(ctx context.Context, u *url.URL, domain string) (rules, Outcome) {
	p.begin()
	origin := u.Scheme + "://" + u.Host
	if r, ok := p.robots.Get(origin, time.Now()); ok {
		return r, Answered
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	resp, err := p.send(ctx, http.MethodGet, &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}, inDomain(domain))
	if errors.Is(err, errAway) {
		return nil, Disallowed
	}
	if err != nil {
		return nil, failure(err)
	}
	defer resp.Body.Close()
	var r rules
	switch {
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return nil, Failing // §2.3.1.4: as if all were disallowed
	case resp.StatusCode < 300:
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxRobots))
		if err != nil {
			return nil, Unreachable
		}
		r = parseRobots(text, product)
	}
	p.robots.Put(origin, r, 0, time.Now().Add(robotsAge))
	return r, Answered
}

const (
	robotsAge  = 20 * time.Hour // within the day of RFC 9309 §2.4
	robotsMost = 256
)
