package httpsig

import (
	"strings"

	"github.com/dunglas/httpsfv"
)

// span is the scanned value of a parameter.
type span struct {
	kind byte   // 's' string, 'i' integer, 'b' boolean, 'o' any other type
	text string // string, unescaped
	num  int64  // integer, or 1 for true
}

// bareItem reads a value and appends "=" and its canonical form, or nothing for
// true (RFC 9651 §4.1.1.2).
func (p *parse) bareItem() (span, bool) {
	if p.i >= len(p.s) {
		return span{}, false
	}
	mark := len(p.canon)
	p.canon = append(p.canon, '=')
	switch c := p.s[p.i]; {
	case c == '"':
		text, ok := p.quoted()
		return span{kind: 's', text: text}, ok
	case c == '-' || isDigit(c):
		return p.number()
	case c == '?':
		if p.i+1 >= len(p.s) || p.s[p.i+1] != '0' && p.s[p.i+1] != '1' {
			return span{}, false
		}
		on := p.s[p.i+1] == '1'
		p.i += 2
		if on {
			p.canon = p.canon[:mark]
			return span{kind: 'b', num: 1}, true
		}
		p.canon = append(p.canon, "?0"...)
		return span{kind: 'b'}, true
	case c == '*' || isAlpha(c):
		from := p.i
		for p.i < len(p.s) && (isTchar(p.s[p.i]) || p.s[p.i] == ':' || p.s[p.i] == '/') {
			p.i++
		}
		p.canon = append(p.canon, p.s[from:p.i]...)
		return span{kind: 'o'}, true
	}
	return p.rare()
}

// number reads an Integer (RFC 9651 §4.2.4). Decimals take the slow path.
func (p *parse) number() (span, bool) {
	from, digits, negative := p.i, 0, p.s[p.i] == '-'
	if negative {
		p.i++
	}
	var n int64
	for ; p.i < len(p.s) && isDigit(p.s[p.i]); p.i++ {
		if digits++; digits > 15 {
			return span{}, false
		}
		n = n*10 + int64(p.s[p.i]-'0')
	}
	if digits == 0 {
		return span{}, false
	}
	if p.i < len(p.s) && p.s[p.i] == '.' {
		p.i = from
		return p.rare()
	}
	if negative {
		n = -n
	}
	p.canon = appendInt(p.canon, n)
	return span{kind: 'i', num: n}, true
}

// rare scans the types that no known parameter has, Decimal, Byte Sequence, Date and Display
// String: it finds the end of the value and leaves the rest to httpsfv.
func (p *parse) rare() (span, bool) {
	from := p.i
	switch c := p.s[p.i]; {
	case c == ':':
		end := strings.IndexByte(p.s[from+1:], ':')
		if end < 0 {
			return span{}, false
		}
		p.i = from + 1 + end + 1
	case c == '%':
		if !strings.HasPrefix(p.s[from:], `%"`) {
			return span{}, false
		}
		end := strings.IndexByte(p.s[from+2:], '"') // quotes inside are percent-encoded
		if end < 0 {
			return span{}, false
		}
		p.i = from + 2 + end + 1
	case c == '@' || c == '-' || isDigit(c):
		for p.i++; p.i < len(p.s) && (isDigit(p.s[p.i]) || p.s[p.i] == '.' || p.s[p.i] == '-'); p.i++ {
		}
	default:
		return span{}, false
	}
	item, err := httpsfv.UnmarshalItem([]string{p.s[from:p.i]})
	if err != nil {
		return span{}, false
	}
	text, err := httpsfv.Marshal(item)
	p.canon = append(p.canon, text...)
	return span{kind: 'o'}, err == nil
}

// key reads an RFC 9651 key.
func (p *parse) key() (string, bool) {
	from := p.i
	if p.i >= len(p.s) || !isLower(p.s[p.i]) && p.s[p.i] != '*' {
		return "", false
	}
	for p.i < len(p.s) {
		c := p.s[p.i]
		if !isLower(c) && !isDigit(c) && c != '_' && c != '-' && c != '.' && c != '*' {
			break
		}
		p.i++
	}
	return p.s[from:p.i], true
}

// quoted reads an sf-string, appends it unchanged, which is its canonical form, and returns the
// unescaped text. It allocates only when there are escapes.
func (p *parse) quoted() (string, bool) {
	from := p.i
	if !p.take('"') {
		return "", false
	}
	escapes := false
	for p.i < len(p.s) {
		c := p.s[p.i]
		p.i++
		switch {
		case c == '"':
			p.canon = append(p.canon, p.s[from:p.i]...)
			text := p.s[from+1 : p.i-1]
			if escapes {
				text = unescape(text)
			}
			return text, true
		case c == '\\':
			if p.i >= len(p.s) || p.s[p.i] != '"' && p.s[p.i] != '\\' {
				return "", false
			}
			escapes = true
			p.i++
		case c < 0x20 || c >= 0x7f:
			return "", false
		}
	}
	return "", false
}

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (p *parse) take(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *parse) skipSP() {
	for p.i < len(p.s) && p.s[p.i] == ' ' {
		p.i++
	}
}

func (p *parse) skipOWS() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t') {
		p.i++
	}
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlpha(c byte) bool { return isLower(c) || 'A' <= c && c <= 'Z' }

// isTchar is RFC 9110 §5.6.2.
func isTchar(c byte) bool {
	return isAlpha(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
