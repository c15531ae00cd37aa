package cavage

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/identity/httpsig"
)

// covers checks the list of signed headers: the target, the host and a time on every request, the
// digest whenever a body counts.
func (s *signature) covers(method string, body bool) *httpsig.Error {
	need := []string{"(request-target)", "host"}
	if body || method != http.MethodGet && method != http.MethodHead {
		need = append(need, "digest")
	}
	for _, h := range need {
		if !slices.Contains(s.headers, h) {
			return fail(httpsig.CodeCoverageInsufficient, h)
		}
	}
	if !slices.Contains(s.headers, "date") && !slices.Contains(s.headers, "(created)") {
		return fail(httpsig.CodeCoverageInsufficient, "date or (created)")
	}
	return nil
}

// times checks every covered time and returns the earliest.
func (s *signature) times(m *httpsig.Message, now time.Time, window time.Duration) (time.Time, *httpsig.Error) {
	var signedAt []time.Time
	if slices.Contains(s.headers, "(created)") {
		signedAt = append(signedAt, time.Unix(s.created, 0))
	}
	if slices.Contains(s.headers, "date") {
		lines := m.Header["Date"]
		if len(lines) == 0 {
			return time.Time{}, fail(httpsig.CodeComponentMissing, "date")
		}
		at, err := http.ParseTime(lines[0])
		if err != nil || len(lines) > 1 {
			return time.Time{}, fail(httpsig.CodeComponentValueInvalid, "date")
		}
		signedAt = append(signedAt, at)
	}
	for _, at := range signedAt {
		if at.After(now.Add(window)) {
			return time.Time{}, fail(httpsig.CodeNotYetValid, "date or (created)")
		}
		if at.Before(now.Add(-window)) {
			return time.Time{}, fail(httpsig.CodeExpired, "date or (created)")
		}
	}
	// Applied even when it is not covered: stripping it gains nothing.
	if s.hasExpires && now.After(time.Unix(s.expires, 0).Add(skew)) {
		return time.Time{}, fail(httpsig.CodeExpired, "expires")
	}
	return slices.MinFunc(signedAt, time.Time.Compare), nil
}

// base returns the signing string (draft-cavage-12 §2.3).
func (s *signature) base(m *httpsig.Message, query bool) ([]byte, *httpsig.Error) {
	var b []byte
	for i, h := range s.headers {
		if i > 0 {
			b = append(b, '\n')
		}
		b = append(append(b, h...), ": "...)
		from := len(b)
		switch h {
		case "(request-target)":
			b = append(append(append(b, strings.ToLower(m.Method)...), ' '), m.RawPath...)
			if query && m.HasQuery {
				b = append(append(b, '?'), m.RawQuery...)
			}
		case "(created)":
			b = strconv.AppendInt(b, s.created, 10)
		case "(expires)":
			b = strconv.AppendInt(b, s.expires, 10)
		case "host":
			host, e := hostOf(m)
			if e != nil {
				return nil, e
			}
			b = append(b, host...)
		default:
			lines, ok := m.Header[http.CanonicalHeaderKey(h)]
			if !ok {
				return nil, fail(httpsig.CodeComponentMissing, h)
			}
			for j, l := range lines {
				if j > 0 {
					b = append(b, ", "...)
				}
				b = append(b, strings.Trim(l, " \t")...)
			}
		}
		if bytes.ContainsAny(b[from:], "\r\n\x00") { // a second line in a value would forge a header
			return nil, fail(httpsig.CodeComponentValueInvalid, h)
		}
	}
	return b, nil
}

// hostOf returns Host as sent, which must be the node's own.
func hostOf(m *httpsig.Message) (string, *httpsig.Error) {
	host := m.Host
	if host == "" {
		host = m.Header.Get("Host")
	}
	if host == "" {
		host = m.Target.Authority
	}
	if httpsig.NewTarget(m.Target.Scheme, host) != m.Target {
		return "", fail(httpsig.CodeHostUnknown, "Host")
	}
	return host, nil
}

// checkDigest verifies Digest (RFC 3230): SHA-256 and SHA-512 are supported, and each one present
// must match.
func checkDigest(lines []string, body []byte) *httpsig.Error {
	if len(lines) == 0 {
		return fail(httpsig.CodeDigestMissing, "Digest")
	}
	known := 0
	for part := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		alg, value, ok := strings.Cut(strings.Trim(part, " \t"), "=")
		if !ok {
			return fail(httpsig.CodeDigestMalformed, "Digest")
		}
		var sum []byte
		switch strings.ToUpper(alg) {
		case "SHA-256":
			s := sha256.Sum256(body)
			sum = s[:]
		case "SHA-512":
			s := sha512.Sum512(body)
			sum = s[:]
		default:
			continue
		}
		known++
		want, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(want) != len(sum) {
			return fail(httpsig.CodeDigestMalformed, alg)
		}
		if !bytes.Equal(want, sum) {
			return fail(httpsig.CodeDigestMismatch, alg)
		}
	}
	if known == 0 {
		return fail(httpsig.CodeDigestUnsupported, "want SHA-256 or SHA-512")
	}
	return nil
}
