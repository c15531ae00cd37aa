package httpsig

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"stoa/protocol/netx"
)

// Target is the node's address, from configuration or a trusted proxy, never from the message.
// Make it with NewTarget or ParseTarget, which normalise.
type Target struct {
	Scheme    string // "https" or "http"
	Authority string // lower case, without the scheme's default port
}

// NewTarget normalises a scheme and an authority (RFC 9421 §2.2.3).
func NewTarget(scheme, authority string) Target {
	scheme = strings.ToLower(scheme)
	return Target{Scheme: scheme, Authority: normalAuthority(scheme, authority)}
}

// ParseTarget returns the scheme and authority of an absolute URL such as public_url.
func ParseTarget(base string) (Target, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return Target{}, fail(CodeTargetInvalid, "not an absolute http or https URL")
	}
	return NewTarget(u.Scheme, u.Host), nil
}

// Loopback reports whether the target names this machine, the only place where
// signed plain http makes sense.
func (t Target) Loopback() bool { return netx.IsLoopback(hostOnly(t.Authority)) }

func normalAuthority(scheme, a string) string {
	a = lower(a)
	switch {
	case scheme == "https":
		return strings.TrimSuffix(a, ":443")
	case scheme == "http":
		return strings.TrimSuffix(a, ":80")
	}
	return a
}

// lower is strings.ToLower for ASCII; it does not allocate for lower case.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return strings.ToLower(s)
		}
	}
	return s
}

func hostOnly(authority string) string {
	if h, _, err := net.SplitHostPort(authority); err == nil {
		return h
	}
	return strings.Trim(authority, "[]")
}

// Message is a view of a request, or of a response when Status is set. Nothing is copied: the
// header must not change while the message is in use.
type Message struct {
	Method   string // as sent; "" in responses
	RawPath  string // as sent, percent-encoding untouched; "" counts as "/"
	RawQuery string // after the first '?'
	HasQuery bool   // the target had a '?', even with nothing after it
	Target   Target
	Host     string // Host as received, for a covered "host"; "" falls back to the header, then to Target
	Status   int    // 100..599 makes the message a response
	Header   http.Header
	Related  *Message // for responses: the request that they answer (RFC 9421 §2.4)
}

func (m *Message) response() bool { return m.Status != 0 }

// FromRequest views a request that a server received. It reads r.RequestURI and r.Host, because
// r.URL has been decoded and rewritten. A request that is about to be sent, whose RequestURI is
// empty, is viewed as http.Client would send it.
//
// The error is CodeHostUnknown when Host is not t's authority (absolute-form targets included), to
// be answered with 421 before anything else; and CodeTargetInvalid for CONNECT, a fragment, or
// bytes outside printable ASCII in the target.
func FromRequest(r *http.Request, t Target) (Message, error) {
	m := Message{Method: r.Method, Target: t, Host: r.Host, Header: r.Header}
	target := r.RequestURI
	if target == "" {
		if r.URL == nil || r.URL.Opaque != "" {
			return Message{}, fail(CodeTargetInvalid, "request without a URL")
		}
		target = r.URL.RequestURI()
		if m.Method == "" {
			m.Method = http.MethodGet
		}
		if m.Host == "" {
			m.Host = r.URL.Host
		}
	}
	if normalAuthority(t.Scheme, m.Host) != t.Authority {
		return Message{}, fail(CodeHostUnknown, "Host")
	}
	if target[0] != '/' { // absolute-form, asterisk-form, authority-form
		rest, ok := cutScheme(target)
		if !ok {
			return Message{}, fail(CodeTargetInvalid, "form of the request target")
		}
		if i := strings.IndexAny(rest, "/?#"); i >= 0 {
			target = rest[i:]
		} else {
			target = "/"
		}
	}
	for i := 0; i < len(target); i++ {
		if c := target[i]; c <= 0x20 || c >= 0x7f || c == '#' {
			return Message{}, fail(CodeTargetInvalid, "character in the request target")
		}
	}
	m.RawPath, m.RawQuery, m.HasQuery = strings.Cut(target, "?")
	return m, nil
}

func cutScheme(s string) (rest string, ok bool) {
	for _, scheme := range []string{"https://", "http://"} {
		if len(s) >= len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return s[len(scheme):], true
		}
	}
	return "", false
}

// values returns the lines of a field by its lower-case name.
func (m *Message) values(name string) ([]string, bool) {
	if name == "host" && m.Host != "" {
		return []string{m.Host}, true
	}
	v, ok := m.Header[canonicalName(name)]
	if !ok && name == "host" && m.Target.Authority != "" {
		return []string{m.Target.Authority}, true // net/http keeps Host out of the header
	}
	return v, ok
}

// canonicalName is http.CanonicalHeaderKey without its allocation for the most common names.
func canonicalName(name string) string {
	switch name {
	case "content-digest":
		return "Content-Digest"
	case "content-type":
		return "Content-Type"
	case "signature-agent":
		return "Signature-Agent"
	case "agent-identity":
		return "Agent-Identity"
	case "idempotency-key":
		return "Idempotency-Key"
	case "date":
		return "Date"
	}
	return http.CanonicalHeaderKey(name)
}
