package trace

import (
	"encoding/hex"
	"net/http"
	"strings"
)

// A Context names a span, here or elsewhere (W3C Trace Context level 1). The zero value names none.
type Context struct {
	Trace   [16]byte
	Span    [8]byte
	Sampled bool // its sender keeps the trace (the flag sampled)
}

// Valid reports whether the context names a span.
func (c Context) Valid() bool { return c.Trace != [16]byte{} && c.Span != [8]byte{} }

// ID is the id of the trace in hexadecimal, "" for none.
func (c Context) ID() string {
	if !c.Valid() {
		return ""
	}
	return hex.EncodeToString(c.Trace[:])
}

// Bytes returns the two ids as they are stored, 24 bytes; nil for none.
func (c Context) Bytes() []byte {
	if !c.Valid() {
		return nil
	}
	return append(c.Trace[:], c.Span[:]...)
}

// Stored parses what Bytes returned, which has no Sampled; any other length gives the zero value.
func Stored(ids []byte) (c Context) {
	if len(ids) == len(c.Trace)+len(c.Span) {
		copy(c.Span[:], ids[copy(c.Trace[:], ids):])
	}
	return c
}

// Parent parses the field traceparent of a request; the zero value when it is missing, repeated or not valid (W3C Trace Context §3.2).
func Parent(head http.Header) (c Context) {
	all := head["Traceparent"]
	if len(all) != 1 {
		return Context{}
	}
	s := all[0]
	known := strings.HasPrefix(s, "00-") && len(s) == 55
	later := !strings.HasPrefix(s, "00") && !strings.HasPrefix(s, "ff") && (len(s) == 55 || len(s) > 55 && s[55] == '-')
	if !known && !later || strings.ToLower(s[:55]) != s[:55] || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return Context{}
	}
	var version, flags [1]byte
	for _, part := range []struct {
		into []byte
		text string
	}{{version[:], s[:2]}, {c.Trace[:], s[3:35]}, {c.Span[:], s[36:52]}, {flags[:], s[53:55]}} {
		if _, err := hex.Decode(part.into, []byte(part.text)); err != nil {
			return Context{}
		}
	}
	if c.Sampled = flags[0]&1 == 1; !c.Valid() {
		return Context{}
	}
	return c
}
