package strictjson

import (
	"bytes"
	"math"
	"unicode/utf8"
)

// Bounds of what a scanner takes on; documents beyond them are read by the decoder.
const (
	quickDepth = 32
	quickNames = 128 // of all objects that are open
)

// A scanner reads a document once, without allocating memory. What it accepts is
// a document that Check lets pass; where it is not sure it gives up, and the
// decoder decides and names the fault.
type scanner struct {
	raw       []byte
	at        int
	tokens    int
	depth     int
	maxDepth  int
	canonical bool                                 // so far the form of RFC 8785
	names     [quickNames]struct{ from, to int32 } // of the objects that are open, where they are in raw
	open      int                                  // names in use
}

// quick reports whether raw is a document within lim that keeps every rule of
// Check, and whether it is in canonical form already. False means that the
// scanner cannot tell.
func quick(raw []byte, lim Limits) (ok, canonical bool) {
	s := scanner{raw: raw, maxDepth: min(lim.MaxDepth, quickDepth), canonical: true}
	if len(raw) > min(lim.MaxBytes, math.MaxInt32) || !utf8.Valid(raw) {
		return false, false
	}
	s.blanks()
	ok = s.value()
	s.blanks()
	return ok && s.at == len(raw) && s.tokens <= lim.MaxTokens, s.canonical
}

func (s *scanner) blanks() {
	for s.at < len(s.raw) && s.raw[s.at] <= ' ' {
		switch s.raw[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at, s.canonical = s.at+1, false
		default:
			return
		}
	}
}

// take moves past c where it is next.
func (s *scanner) take(c byte) bool {
	if s.at < len(s.raw) && s.raw[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) value() bool {
	s.tokens++
	if s.at >= len(s.raw) {
		return false
	}
	switch c := s.raw[s.at]; {
	case c == '"':
		return s.text()
	case c == '{':
		return s.object()
	case c == '[':
		return s.array()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.number()
}

func (s *scanner) literal(word string) bool {
	if !bytes.HasPrefix(s.raw[s.at:], []byte(word)) {
		return false
	}
	s.at += len(word)
	return true
}

// object reads members. A name is kept until its object ends, to be compared with
// the others; one with an escape is not read here, so bytes are enough. While names
// ascend, as in the canonical form, the last one is enough.
func (s *scanner) object() bool {
	if s.depth++; s.depth > s.maxDepth {
		return false
	}
	s.at++
	first, ascending := s.open, true
	for s.blanks(); !s.take('}'); s.blanks() {
		if s.open > first && !s.take(',') {
			return false
		}
		s.blanks()
		s.tokens++
		from := s.at + 1
		if s.open == len(s.names) || !s.text() || !s.plain(from, s.at-1) {
			return false
		}
		if ascending = ascending && (s.open == first || bytes.Compare(s.name(s.open-1), s.raw[from:s.at-1]) < 0); !ascending {
			s.canonical = false
			for i := first; i < s.open; i++ {
				if bytes.Equal(s.name(i), s.raw[from:s.at-1]) {
					return false
				}
			}
		}
		s.names[s.open].from, s.names[s.open].to = int32(from), int32(s.at-1)
		s.open++
		if s.blanks(); !s.take(':') {
			return false
		}
		if s.blanks(); !s.value() {
			return false
		}
	}
	s.open = first
	s.depth--
	s.tokens++
	return true
}

func (s *scanner) name(i int) []byte { return s.raw[s.names[i].from:s.names[i].to] }

// plain reports whether a name has no escape. RFC 8785 §3.2.3 sorts names by UTF-16:
// beyond ASCII the order of bytes may be another.
func (s *scanner) plain(from, to int) bool {
	for _, c := range s.raw[from:to] {
		if c == '\\' {
			return false
		}
		if c >= utf8.RuneSelf {
			s.canonical = false
		}
	}
	return true
}

func (s *scanner) array() bool {
	if s.depth++; s.depth > s.maxDepth {
		return false
	}
	s.at++
	n := 0
	for s.blanks(); !s.take(']'); s.blanks() {
		if n > 0 && !s.take(',') {
			return false
		}
		if s.blanks(); !s.value() {
			return false
		}
		n++
	}
	s.depth--
	s.tokens++
	return true
}

func (s *scanner) text() bool {
	if !s.take('"') {
		return false
	}
	for s.at < len(s.raw) {
		switch c := s.raw[s.at]; {
		case c == '"':
			s.at++
			return true
		case c < ' ':
			return false
		case c == '\\':
			if !s.escape() {
				return false
			}
		default:
			s.at++
		}
	}
	return false
}

// escape reads an escape, not those of U+0000 and of surrogates.
func (s *scanner) escape() bool {
	if s.at+1 >= len(s.raw) {
		return false
	}
	switch s.raw[s.at+1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return true
	case '/':
		s.at, s.canonical = s.at+2, false
		return true
	case 'u':
	default:
		return false
	}
	if s.at+6 > len(s.raw) {
		return false
	}
	code := 0
	for _, c := range s.raw[s.at+2 : s.at+6] {
		switch {
		case c >= '0' && c <= '9':
			code = code<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			code = code<<4 | int(c-'a'+10)
		case c >= 'A' && c <= 'F':
			code = code<<4 | int(c-'A'+10)
		default:
			return false
		}
	}
	s.at, s.canonical = s.at+6, false
	return code != 0 && (code < 0xd800 || code > 0xdfff)
}

// number reads a number (RFC 8259 §6). A whole one of at most 15 digits is
// canonical as it is.
func (s *scanner) number() bool {
	start := s.at
	negative := s.take('-')
	if s.at < len(s.raw) && s.raw[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return false
	}
	if s.at-start > 15 || negative {
		s.canonical = false
	}
	if s.take('.') {
		if s.canonical = false; !s.digits() {
			return false
		}
	}
	if s.take('e') || s.take('E') {
		s.canonical = false
		if !s.take('+') {
			s.take('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.raw) && s.raw[s.at] >= '0' && s.raw[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}
