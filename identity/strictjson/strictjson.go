// Package strictjson parses JSON that strangers wrote. It accepts only I-JSON (RFC 7493): valid
// UTF-8, no member twice, one value and nothing after it, within limits of size, depth and number
// of tokens that are checked before anything else. Member names are case-sensitive: "Title" is not
// "title".
//
// Two readers of one document then see the same document: what a signature was verified over is
// what the program acts on.
package strictjson

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits bound a document. A zero field means that of Default.
type Limits struct {
	MaxBytes  int
	MaxDepth  int // nested objects and arrays; the top-level object is depth 1
	MaxTokens int // brackets, names and values
}

// Default is the limit for Decode, DecodeLoose and Canonical. Canonicalising without a depth limit
// would be an attack surface.
var Default = Limits{MaxBytes: 1 << 20, MaxDepth: 32, MaxTokens: 20_000}

// A SyntaxError says where a document breaks which rule, for its author. Pointer is a JSON Pointer
// (RFC 6901), "" for the whole document.
type SyntaxError struct{ Pointer, Detail string }

func (e *SyntaxError) Error() string {
	if e.Pointer == "" {
		return "json: " + e.Detail
	}
	return "json: at " + e.Pointer + ": " + e.Detail
}

// Check reads the document once and returns the first violation, as a *SyntaxError. It stores and
// decodes nothing.
func Check(raw []byte, lim Limits) error {
	lim = lim.orDefault()
	if ok, _ := quick(raw, lim); ok {
		return nil
	}
	return check(raw, lim)
}

// check is Check by the decoder, which names the fault.
func check(raw []byte, lim Limits) error {
	if len(raw) > lim.MaxBytes {
		return &SyntaxError{Detail: fmt.Sprintf("%d bytes, at most %d", len(raw), lim.MaxBytes)}
	}
	nul := bytes.Contains(raw, []byte(`\u0000`)) // the only way to write it; may still be "\\u0000"
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	for tokens := 1; ; tokens++ {
		tok, err := dec.ReadToken()
		if err != nil {
			return plain(err)
		}
		if tokens > lim.MaxTokens {
			return &SyntaxError{at(dec), fmt.Sprintf("more than %d tokens", lim.MaxTokens)}
		}
		switch tok.Kind() {
		case '{', '[':
			if dec.StackDepth() > lim.MaxDepth {
				return &SyntaxError{at(dec), fmt.Sprintf("nested deeper than %d", lim.MaxDepth)}
			}
		case '"':
			if nul && strings.ContainsRune(tok.String(), 0) {
				return &SyntaxError{at(dec), "U+0000 is not allowed in text"}
			}
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return &SyntaxError{Detail: "there is data after the JSON value"}
	}
	return nil
}

// Decode checks raw against Default and decodes it into v. Unknown members are refused, so that a
// misspelled name is noticed. Every error is a *SyntaxError.
func Decode(raw []byte, v any) error {
	return Default.decode(raw, v, json.RejectUnknownMembers(true))
}

// DecodeLoose is Decode for documents whose authors may add members (activities, actors,
// registration documents).
func DecodeLoose(raw []byte, v any) error {
	return Default.decode(raw, v)
}

// DecodeLoose is DecodeLoose within other limits than Default.
func (l Limits) DecodeLoose(raw []byte, v any) error {
	return l.decode(raw, v)
}

// DecodeChecked is DecodeLoose for what Check let pass before, alone or as a part of a
// document.
func DecodeChecked(raw []byte, v any) error { return decodeChecked(raw, v) }

func (l Limits) decode(raw []byte, v any, opts ...json.Options) error {
	if err := Check(raw, l); err != nil {
		return err
	}
	return decodeChecked(raw, v, opts...)
}

// decodeChecked does not look again for what Check looked for.
func decodeChecked(raw []byte, v any, opts ...json.Options) error {
	opts = append(opts, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := json.Unmarshal(raw, v, opts...); err != nil {
		return plain(err)
	}
	return nil
}

// Canonical returns raw in the form of RFC 8785 (JCS), in new memory. It checks raw against
// Default first, and refuses numbers that no double can represent.
func Canonical(raw []byte) ([]byte, error) {
	ok, canonical := quick(raw, Default)
	if ok && canonical {
		return bytes.Clone(raw), nil
	}
	if !ok {
		if err := check(raw, Default); err != nil {
			return nil, err
		}
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	for {
		tok, err := dec.ReadToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, plain(err)
		}
		if tok.Kind() == '0' {
			if _, err := strconv.ParseFloat(tok.String(), 64); err != nil {
				return nil, &SyntaxError{at(dec), "number out of range"}
			}
		}
	}
	out := jsontext.Value(bytes.Clone(raw))
	if err := out.Canonicalize(); err != nil {
		return nil, plain(err)
	}
	return out, nil
}

// CanonicalObject is Canonical of an object with these members, each a JSON value that
// was read; nil is null. Members
// in canonical form are not read again one by one.
func CanonicalObject[V ~[]byte](members map[string]V) ([]byte, error) {
	raw := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			raw = append(raw, ',')
		}
		var err error
		if raw, err = jsontext.AppendQuote(raw, name); err != nil {
			return nil, plain(err)
		}
		raw = append(raw, ':')
		if value := members[name]; value != nil {
			raw = append(raw, value...)
		} else {
			raw = append(raw, "null"...)
		}
	}
	return Canonical(append(raw, '}'))
}

func (l Limits) orDefault() Limits {
	if l.MaxBytes == 0 {
		l.MaxBytes = Default.MaxBytes
	}
	if l.MaxDepth == 0 {
		l.MaxDepth = Default.MaxDepth
	}
	if l.MaxTokens == 0 {
		l.MaxTokens = Default.MaxTokens
	}
	return l
}
