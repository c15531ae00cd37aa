package httpsig

import (
	"strings"
	"unicode/utf8"
)

// appendDerived appends the value of a derived component (RFC 9421 §2.2).
func appendDerived(b []byte, m *Message, c *component) ([]byte, *Error) {
	from := len(b)
	switch c.name {
	case "@method":
		b = append(b, m.Method...)
		for _, ch := range b[from:] {
			if !isTchar(ch) {
				return b, fail(CodeComponentValueInvalid, c.name)
			}
		}
	case "@target-uri":
		b = append(append(append(b, m.Target.Scheme...), "://"...), m.Target.Authority...)
		b = appendTarget(b, m)
	case "@authority":
		b = append(b, m.Target.Authority...)
	case "@scheme":
		b = append(b, m.Target.Scheme...)
	case "@request-target":
		b = appendTarget(b, m)
	case "@path":
		b = appendPath(b, m)
	case "@query":
		b = append(append(b, '?'), m.RawQuery...) // only "?" when there is no query (§2.2.7)
	case "@query-param":
		return appendQueryParam(b, m.RawQuery, c.arg)
	case "@status":
		if m.Status < 100 || m.Status > 999 {
			return b, fail(CodeComponentValueInvalid, c.name)
		}
		b = appendInt(b, int64(m.Status))
	}
	for _, ch := range b[from:] {
		if ch <= 0x20 || ch >= 0x7f {
			return b, fail(CodeComponentValueInvalid, c.name)
		}
	}
	if len(b) == from {
		return b, fail(CodeComponentValueInvalid, c.name+" is empty")
	}
	return b, nil
}

func appendPath(b []byte, m *Message) []byte {
	if m.RawPath == "" {
		return append(b, '/')
	}
	return append(b, m.RawPath...)
}

func appendTarget(b []byte, m *Message) []byte {
	b = appendPath(b, m)
	if m.HasQuery {
		b = append(append(b, '?'), m.RawQuery...)
	}
	return b
}

// appendQueryParam finds the one parameter whose re-encoded name is want. A repeated name is
// refused: handlers differ on which value counts (RFC 9421 §2.2.8).
func appendQueryParam(b []byte, query, want string) ([]byte, *Error) {
	var value string
	found := 0
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, ok := formDecode(rawName)
		if !ok {
			return b, fail(CodeComponentValueInvalid, "@query-param: encoding of the query")
		}
		if string(appendFormEncoded(nil, name)) == want {
			found++
			value = rawValue
		}
	}
	if found != 1 {
		return b, fail(CodeComponentMissing, "@query-param: the name must occur once")
	}
	text, ok := formDecode(value)
	if !ok {
		return b, fail(CodeComponentValueInvalid, "@query-param: encoding of the value")
	}
	return appendFormEncoded(b, text), nil
}

// formDecode decodes application/x-www-form-urlencoded text. It refuses broken escapes and invalid
// UTF-8, where a browser would guess.
func formDecode(s string) (string, bool) {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '+':
			out = append(out, ' ')
		case '%':
			if i+2 >= len(s) {
				return "", false
			}
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi > 15 || lo > 15 {
				return "", false
			}
			out = append(out, hi<<4|lo)
			i += 2
		default:
			out = append(out, c)
		}
	}
	return string(out), utf8.Valid(out)
}

func unhex(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// appendFormEncoded uses the urlencoded percent-encode set, with %20 for a blank.
func appendFormEncoded(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		c := s[i]
		if isAlpha(c) || isDigit(c) || c == '*' || c == '-' || c == '.' || c == '_' {
			b = append(b, c)
			continue
		}
		b = append(b, '%', hex[c>>4], hex[c&15])
	}
	return b
}
