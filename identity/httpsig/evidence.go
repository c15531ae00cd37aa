package httpsig

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"stoa/identity/strictjson"
)

// Limits of an Evidence, in bytes.
const (
	MaxEvidenceBody   = 64 << 10
	maxEvidenceFields = 32 << 10 // names and values of Components together
	maxEvidenceText   = 8 << 10  // each of the other members
	MaxEvidence       = 160 << 10
)

// EvidenceType is the value of Evidence.Type.
const EvidenceType = "HttpMessageSignature"

// Evidence is a signed request that is stored so that another node can verify it later: the one
// verified signature, the fields that it covers, and the body. It proves only what the signature
// covers.
type Evidence struct {
	Type           string            `json:"type"`
	Method         string            `json:"method"`
	TargetURI      string            `json:"targetUri"`
	SignatureInput string            `json:"signatureInput"`
	Signature      string            `json:"signature"`
	Components     map[string]string `json:"components"` // covered fields by lower-case name, lines joined
	Body           string            `json:"body"`       // base64url without padding; "" unless content-digest is covered
}

// Capture returns the evidence of a request that was just verified with result res. The error is
// an *Error with CodeEvidenceMalformed when the request cannot be represented: a response, a body
// over MaxEvidenceBody, a ;bs component of several lines, or a scheme that the reader could not
// know (see Open).
func Capture(m *Message, body []byte, res *Result) (Evidence, error) {
	if m.response() {
		return Evidence{}, fail(CodeEvidenceMalformed, "not a request")
	}
	p := pool.Get().(*parse)
	defer p.release()
	p.limits = Limits{}.orDefault()
	if e := p.read(m.Header["Signature-Input"], m.Header["Signature"]); e != nil {
		return Evidence{}, e
	}
	sig := p.find(res.Label)
	if sig == nil {
		return Evidence{}, fail(CodeEvidenceMalformed, "label")
	}
	e := Evidence{Type: EvidenceType, Method: m.Method, Components: make(map[string]string)}
	e.TargetURI = string(appendTarget([]byte(m.Target.Scheme+"://"+m.Target.Authority), m))
	e.SignatureInput, e.Signature = p.memberText(sig)
	comps := p.comps[sig.compFrom:sig.compTo]
	if m.RawQuery == "" && coverageOf(comps)&coverTargetURI == 0 {
		e.TargetURI = strings.TrimSuffix(e.TargetURI, "?") // a lone '?' is not covered by @query
	}
	for _, c := range comps {
		if strings.HasPrefix(c.name, "@") {
			continue
		}
		value, err := fieldEvidence(m, comps, c.name)
		if err != nil {
			return Evidence{}, err
		}
		e.Components[c.name] = value
	}
	if res.BodyBound {
		e.Body = base64.RawURLEncoding.EncodeToString(body)
	}
	if _, _, err := e.Open(); err != nil { // never write what no reader accepts
		return Evidence{}, err
	}
	return e, nil
}

// fieldEvidence returns the value of a field as far as the signature covers it: when only members
// of a dictionary are covered, only those.
func fieldEvidence(m *Message, comps []component, name string) (string, *Error) {
	lines, ok := m.values(name)
	if !ok {
		return "", fail(CodeEvidenceMalformed, "components: covered field absent")
	}
	var members []byte
	for i := range comps {
		c := &comps[i]
		switch {
		case c.name != name:
		case c.flags&flagKey == 0:
			if c.flags&flagBS != 0 && len(lines) != 1 {
				return "", fail(CodeEvidenceMalformed, name+": several lines")
			}
			return string(appendLines(nil, lines)), nil
		default:
			if members != nil {
				members = append(members, ", "...)
			}
			members = append(append(members, c.arg...), '=')
			var e *Error
			if members, e = appendMember(members, name, lines, c.arg); e != nil {
				return "", e
			}
		}
	}
	return string(members), nil
}

// memberText re-serialises one signature as fields that contain nothing else.
func (p *parse) memberText(sig *member) (input, signature string) {
	return sig.label + "=" + string(p.canon[sig.canonFrom:sig.canonTo]),
		sig.label + "=:" + base64.StdEncoding.EncodeToString(p.sigs[sig.sigFrom:sig.sigTo]) + ":"
}

// ParseEvidence decodes one JSON evidence of at most MaxEvidence bytes. Unknown and repeated
// members are refused. Open checks the rest.
func ParseEvidence(b []byte) (Evidence, error) {
	var e Evidence
	if len(b) > MaxEvidence {
		return Evidence{}, fail(CodeEvidenceMalformed, "too large")
	}
	if err := strictjson.Decode(b, &e); err != nil {
		return Evidence{}, &Error{Code: CodeEvidenceMalformed, Detail: "JSON", Err: err}
	}
	return e, nil
}

// Open rebuilds the request for Verifier.Verify, with Policy.At set to the time of capture or to
// its own created time. The caller must still check whether Message.Target is the node that it
// should have been sent to.
//
// It returns nothing that the signature does not cover: it refuses an uncovered field, a body
// without covered digest, an uncovered method, path or query, plain http, and every form but the
// canonical one. The scheme may be uncovered when it is https, or when the target is a loopback
// address, where it proves nothing. The error is an *Error.
func (e Evidence) Open() (Message, []byte, error) {
	bad := func(why string) (Message, []byte, error) {
		return Message{}, nil, fail(CodeEvidenceMalformed, why)
	}
	if e.Type != EvidenceType {
		return bad("type")
	}
	for _, s := range []string{e.Method, e.TargetURI, e.SignatureInput, e.Signature} {
		if s == "" || len(s) > maxEvidenceText {
			return bad("member missing or too long")
		}
	}
	if len(e.Body) > base64.RawURLEncoding.EncodedLen(MaxEvidenceBody) {
		return bad("body: too large")
	}
	body, err := base64.RawURLEncoding.Strict().DecodeString(e.Body)
	if err != nil || strings.ContainsAny(e.Body, "\r\n") {
		return bad("body: base64url")
	}
	p := pool.Get().(*parse)
	defer p.release()
	p.limits = Limits{}.orDefault()
	if err := p.read([]string{e.SignatureInput}, []string{e.Signature}); err != nil {
		return Message{}, nil, err
	}
	if len(p.members) != 1 {
		return bad("not one signature")
	}
	if input, signature := p.memberText(&p.members[0]); input != e.SignatureInput || signature != e.Signature {
		return bad("signature: not canonical")
	}
	m, ok := openTarget(e.TargetURI)
	if !ok {
		return bad("targetUri")
	}
	m.Method = e.Method
	if err := e.fields(&m, p.comps); err != nil {
		return Message{}, nil, err
	}
	if why := uncovered(&m, body, p.comps); why != "" {
		return bad(why)
	}
	m.Header["Signature-Input"], m.Header["Signature"] = []string{e.SignatureInput}, []string{e.Signature}
	return m, body, nil
}

// uncovered names the part of a rebuilt request that its signature does not cover.
func uncovered(m *Message, body []byte, comps []component) string {
	cov := coverageOf(comps)
	uri := cov&coverTargetURI != 0
	scheme := slices.ContainsFunc(comps, func(c component) bool { return c.name == "@scheme" })
	switch {
	case cov&coverMethod == 0:
		return "method: not covered"
	case !uri && cov&(coverAuthority|coverPath) != coverAuthority|coverPath:
		return "targetUri: not covered"
	case !uri && m.HasQuery && (cov&coverQuery == 0 || m.RawQuery == ""):
		return "targetUri: query not covered"
	case !uri && !scheme && m.Target.Scheme != "https" && !m.Target.Loopback():
		return "targetUri: scheme not covered"
	case len(body) > 0 && cov&coverDigest == 0:
		return "body: not covered"
	}
	return ""
}

// fields moves Components into the header: all covered fields and no others.
func (e Evidence) fields(m *Message, comps []component) *Error {
	total := 0
	m.Header = make(http.Header, len(e.Components)+2)
	for name, value := range e.Components {
		if total += len(name) + len(value); total > maxEvidenceFields {
			return fail(CodeEvidenceMalformed, "components: too large")
		}
		if !isFieldName(name) || !slices.ContainsFunc(comps, func(c component) bool { return c.name == name }) {
			return fail(CodeEvidenceMalformed, "components: field not covered")
		}
		if value != unfold(value) {
			return fail(CodeEvidenceMalformed, "components: blanks")
		}
		m.Header[canonicalName(name)] = []string{value}
	}
	for i := range comps {
		name := comps[i].name
		if strings.HasPrefix(name, "@") {
			continue
		}
		want, ok := e.Components[name]
		if !ok {
			return fail(CodeEvidenceMalformed, "components: covered field absent")
		}
		if got, err := fieldEvidence(m, comps, name); err != nil || got != want {
			return fail(CodeEvidenceMalformed, "components: more than is covered")
		}
	}
	m.Host = e.Components["host"]
	return nil
}

// openTarget parses an absolute target URI in canonical form.
func openTarget(s string) (Message, bool) {
	scheme, rest, ok := strings.Cut(s, "://")
	slash := strings.IndexByte(rest, '/')
	if !ok || scheme != "https" && scheme != "http" || slash <= 0 {
		return Message{}, false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= 0x20 || c >= 0x7f || c == '#' {
			return Message{}, false
		}
	}
	authority := rest[:slash]
	m := Message{Target: NewTarget(scheme, authority)}
	if m.Target.Authority != authority || strings.ContainsAny(authority, "@?\\") {
		return Message{}, false
	}
	m.RawPath, m.RawQuery, m.HasQuery = strings.Cut(rest[slash:], "?")
	return m, true
}
