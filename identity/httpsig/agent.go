package httpsig

import (
	"net/netip"
	"strings"

	"stoa/protocol/netx"

	"github.com/dunglas/httpsfv"
)

// AgentForm says what the URL of a Signature-Agent is.
type AgentForm uint8

const (
	AgentNone     AgentForm = iota // the signature names no agent
	AgentOrigin                    // an origin; its key directory is at the well-known path
	AgentJWKS                      // the URL of a JWK Set
	AgentCard                      // the URL of a client metadata document (type=cimd)
	AgentMetadata                  // the URL of a document with issuer and jwks_uri (Signature-Key, scheme jwks_uri); keys are named by kid
)

// DirectoryPath is the well-known path of a key directory.
const DirectoryPath = "/.well-known/http-message-signatures-directory"

// MaxAgentURL bounds a Signature-Agent URL in bytes.
const MaxAgentURL = 512

// AgentRef is the covered Signature-Agent of a signature. Only the form of the URL has been
// checked: https, no userinfo, no fragment, no IP literal, at most MaxAgentURL bytes. A fetcher
// must also check the resolved address and the port.
type AgentRef struct {
	Form   AgentForm
	Member string // dictionary key, "" in the String form
	URL    string // as sent
}

// ID returns the URL as an identifier: lower-case host, no default port, no query (RFC 3986
// §6.2.2, §6.2.3). An origin has no path.
func (a AgentRef) ID() string {
	scheme, rest, ok := strings.Cut(a.URL, "://")
	if !ok {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "?")
	host, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if path == "/" {
		path = ""
	}
	return scheme + "://" + normalAuthority(scheme, host) + path
}

// KeySetURL returns where the agent's JWK Set is: the well-known directory of an origin, or the
// URL itself. It is "" for AgentNone, AgentCard and AgentMetadata.
func (a AgentRef) KeySetURL() string {
	switch a.Form {
	case AgentOrigin:
		return strings.TrimSuffix(a.URL, "/") + DirectoryPath
	case AgentJWKS:
		return a.URL
	}
	return ""
}

// agentOf reads the Signature-Agent that the signature covers. Four forms are in use in 2026; the
// form of the value decides.
func agentOf(m *Message, label string, comps []component, loopback bool) (AgentRef, *Error) {
	var c *component
	for i := range comps {
		d := &comps[i]
		if d.name != "signature-agent" || d.flags&(flagBS|flagReq) != 0 {
			continue
		}
		// With several, the one whose key is the label belongs to this signature.
		if c == nil || d.flags&flagKey != 0 && d.arg == label {
			c = d
		} else if !(c.flags&flagKey != 0 && c.arg == label) {
			return AgentRef{}, fail(CodeAgentMalformed, "several signature-agent components")
		}
	}
	if c == nil {
		return AgentRef{}, nil
	}
	lines, _ := m.values("signature-agent")
	keyed := c.flags&flagKey != 0
	if keyed {
		if text, ok := singleString(lines, c.arg); ok {
			return newAgent(c.arg, text[1:len(text)-1], "", loopback)
		}
	}
	lines = trimmed(lines)
	if !keyed && len(lines) > 0 && strings.HasPrefix(lines[0], `"`) {
		item, err := httpsfv.UnmarshalItem(lines)
		u, ok := item.Value.(string)
		if err != nil || !ok {
			return AgentRef{}, unparsable("signature-agent")
		}
		return newAgent("", u, "", loopback) // architecture-00..03: an origin
	}
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return AgentRef{}, unparsable("signature-agent")
	}
	name := c.arg
	if !keyed {
		name = label
		if _, ok := d.Get(name); !ok && len(d.Names()) == 1 {
			name = d.Names()[0]
		}
	}
	v, ok := d.Get(name)
	if !ok {
		return AgentRef{}, fail(CodeAgentMalformed, "no member for this signature")
	}
	item, _ := v.(httpsfv.Item)
	u, ok := item.Value.(string)
	if !ok {
		return AgentRef{}, fail(CodeAgentMalformed, "member is not a string")
	}
	var typ string
	switch t, _ := item.Params.Get("type"); t := t.(type) {
	case httpsfv.Token:
		typ = string(t)
	case string:
		typ = t
	}
	return newAgent(name, u, typ, loopback)
}

func newAgent(member, u, typ string, loopback bool) (AgentRef, *Error) {
	ref := AgentRef{Member: member, URL: u}
	bare, e := checkAgentURL(u, loopback)
	if e != nil {
		return AgentRef{}, e
	}
	switch typ {
	case "jwks_uri":
		ref.Form = AgentJWKS
	case "cimd":
		ref.Form = AgentCard
	case "directory":
		if !bare { // protocol-02: a directory value with a path is ignored
			return AgentRef{}, nil
		}
		ref.Form = AgentOrigin
	case "":
		ref.Form = AgentJWKS
		if bare {
			ref.Form = AgentOrigin
		}
	default: // unknown type: ignore the member
		return AgentRef{}, nil
	}
	return ref, nil
}

// checkAgentURL checks the form and reports whether the URL is a bare origin.
func checkAgentURL(u string, loopback bool) (bare bool, e *Error) {
	bad := func(why string) (bool, *Error) { return false, fail(CodeAgentMalformed, why) }
	if len(u) > MaxAgentURL {
		return bad("URL: at most 512 bytes")
	}
	for i := 0; i < len(u); i++ {
		if c := u[i]; c <= 0x20 || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}#", c) >= 0 {
			return bad("URL: character or fragment")
		}
	}
	scheme, rest, ok := strings.Cut(u, "://")
	plain := lower(scheme) == "http"
	if !ok || lower(scheme) != "https" && !(plain && loopback) {
		return bad("URL: https only")
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority := lower(rest[:end])
	if strings.IndexByte(authority, '@') >= 0 {
		return bad("URL: userinfo")
	}
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
		if port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "" {
			return bad("URL: port")
		}
	}
	if loopback && netx.IsLoopback(strings.Trim(host, "[]")) {
		return rest[end:] == "" || rest[end:] == "/", nil
	}
	if plain {
		return bad("URL: https only")
	}
	if ipLiteral(host) { // SSRF: the fetcher checks resolved addresses too
		return false, fail(CodeDirectoryAddressRefused, "URL: IP literal")
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return bad("URL: host")
		}
	}
	return rest[end:] == "" || rest[end:] == "/", nil
}

// ipLiteral also recognises forms that some resolvers read as IPv4: 127.1, 2130706433, 0x7f.1.
func ipLiteral(host string) bool {
	if strings.HasPrefix(host, "[") {
		return true
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	last := strings.TrimSuffix(host, ".")
	last = last[strings.LastIndexByte(last, '.')+1:]
	return last != "" && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"))
}
