package httpsig

import (
	"encoding/base64"
	"strings"

	"github.com/dunglas/httpsfv"
)

// appendValue appends the value of a component that passed check. m is the message with the
// signature; with ;req the value is that of the related request.
func (p *parse) appendValue(b []byte, m *Message, c *component) ([]byte, *Error) {
	if c.flags&flagReq != 0 {
		if m = m.Related; m == nil {
			return b, fail(CodeComponentMissing, "no related request for "+c.name)
		}
	}
	if c.name[0] == '@' {
		return appendDerived(b, m, c)
	}
	lines, ok := m.values(c.name)
	if !ok {
		return b, fail(CodeComponentMissing, c.name)
	}
	from := len(b)
	var e *Error
	switch {
	case c.flags&flagBS != 0:
		b, e = appendWrapped(b, lines)
	case c.flags&flagKey != 0:
		b, e = appendMember(b, c.name, lines, c.arg)
	case c.flags&flagSF != 0:
		b, e = appendStrict(b, c.name, lines)
	default:
		b, e = appendLines(b, lines), nil
	}
	if e != nil {
		return b, e
	}
	for _, ch := range b[from:] { // RFC 9421 §2.5: the base is ASCII without line breaks
		if ch < 0x20 && ch != '\t' || ch >= 0x7f {
			return b, fail(CodeComponentValueInvalid, c.name)
		}
	}
	return b, nil
}

// appendLines joins the lines of a field (RFC 9421 §2.1).
func appendLines(b []byte, lines []string) []byte {
	for i, l := range lines {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, unfold(l)...)
	}
	return b
}

// unfold trims a line and replaces obsolete line folding with one blank. net/http unfolds before a
// handler sees the line; other transports may not.
func unfold(l string) string {
	l = strings.Trim(l, " \t")
	if !strings.Contains(l, "\n") {
		return l
	}
	parts := strings.Split(l, "\n")
	for i := range parts {
		if i > 0 {
			if parts[i] == "" || parts[i][0] != ' ' && parts[i][0] != '\t' {
				return l // no fold but a line break, which the caller refuses
			}
			parts[i] = strings.TrimLeft(parts[i], " \t")
		}
		parts[i] = strings.TrimRight(strings.TrimSuffix(parts[i], "\r"), " \t")
	}
	return strings.Join(parts, " ")
}

// appendWrapped is ;bs: each line as a byte sequence (RFC 9421 §2.1.3).
func appendWrapped(b []byte, lines []string) ([]byte, *Error) {
	for i, l := range lines {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, ':')
		b = base64.StdEncoding.AppendEncode(b, []byte(unfold(l)))
		b = append(b, ':')
	}
	return b, nil
}

// appendMember is ;key: one member of a dictionary (RFC 9421 §2.1.2).
func appendMember(b []byte, name string, lines []string, key string) ([]byte, *Error) {
	if text, ok := singleString(lines, key); ok {
		return append(b, text...), nil
	}
	d, err := httpsfv.UnmarshalDictionary(trimmed(lines))
	if err != nil {
		return b, unparsable(name)
	}
	v, ok := d.Get(key)
	if !ok {
		return b, fail(CodeComponentMissing, name+": no such member")
	}
	var text string
	switch v := v.(type) {
	case httpsfv.Item:
		text, err = httpsfv.Marshal(v)
	case httpsfv.InnerList:
		text, err = httpsfv.Marshal(httpsfv.List{v})
	}
	if err != nil {
		return b, unparsable(name)
	}
	return append(b, text...), nil
}

// singleString splits `key="text"`, the usual Signature-Agent, and returns `"text"`. It reports
// false for everything that needs a parser.
func singleString(lines []string, key string) (string, bool) {
	if len(lines) != 1 {
		return "", false
	}
	s := strings.Trim(lines[0], " \t")
	if len(s) < len(key)+3 || s[:len(key)] != key || s[len(key)] != '=' || s[len(key)+1] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	if key == "" || !isLower(key[0]) {
		return "", false
	}
	text := s[len(key)+1:]
	for i := 1; i < len(text)-1; i++ {
		if c := text[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return "", false
		}
	}
	return text, true
}

// Structured types of the fields that ;sf may name (RFC 9421 §2.1.1). Without the type a value
// cannot be re-serialised.
func structuredType(name string) string {
	switch name {
	case "content-digest", "repr-digest", "want-content-digest", "want-repr-digest", "signature-input", "signature",
		"accept-signature", "priority", "signature-error", "cdn-cache-control",
		"example-dict": // RFC 9421's own example
		return "dictionary"
	case "accept-ch", "cache-status", "proxy-status", "client-cert-chain":
		return "list"
	case "client-cert":
		return "item"
	case "signature-agent":
		return "agent" // a Dictionary, in older drafts an Item
	}
	return ""
}

func appendStrict(b []byte, name string, lines []string) ([]byte, *Error) {
	lines = trimmed(lines)
	typ := structuredType(name)
	if typ == "agent" {
		typ = "dictionary"
		if len(lines) > 0 && strings.HasPrefix(lines[0], `"`) {
			typ = "item"
		}
	}
	var v httpsfv.StructuredFieldValue
	var err error
	switch typ {
	case "dictionary":
		v, err = httpsfv.UnmarshalDictionary(lines)
	case "list":
		v, err = httpsfv.UnmarshalList(lines)
	case "item":
		v, err = httpsfv.UnmarshalItem(lines)
	default:
		return b, fail(CodeComponentUnsupported, name+": structured type not known")
	}
	if err != nil {
		return b, unparsable(name)
	}
	text, err := httpsfv.Marshal(v)
	if err != nil {
		return b, unparsable(name)
	}
	return append(b, text...), nil
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = unfold(l)
	}
	return out
}

func unparsable(name string) *Error {
	if name == "signature-agent" {
		return malformed(CodeAgentMalformed, "Signature-Agent does not parse")
	}
	return fail(CodeComponentValueInvalid, name+" does not parse")
}
