// Package activity is the ActivityStreams 2.0 of this node: what it reads from others, what it
// writes, and the mapping of posts and profiles to both.
//
// There is no JSON-LD processing. Members are read by their literal names, and members of this
// service ("stoa:kind") only when the @context has the inline entry "stoa": "urn:stoa:ns:v1#".
// Reading accepts what real software sends (one value for a list, null anywhere, objects for ids);
// the caller has checked size, depth and duplicate members before.
package activity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Addresses and names on the wire.
const (
	Public    = "https://www.w3.org/ns/activitystreams#Public"
	Namespace = "urn:stoa:ns:v1#"
	MediaType = "application/activity+json"
	Profile   = `application/ld+json; profile="https://www.w3.org/ns/activitystreams"`
)

// Limits of one activity, checked before anything is looked up.
const (
	MaxBody        = 256 << 10 // inbox (contract §1)
	MaxAddressees  = 500       // to and cc together
	MaxTags        = 100
	MaxAttachments = 32
	MaxContent     = 128 << 10
	MaxID          = 2048 // length of an id or URL in bytes
)

// ErrShape wraps every refusal of this package.
var ErrShape = errors.New("activity: shape refused")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrShape}, args...)...)
}

// Refs are ids in any form: a string, an object with an id, or a list of either. Null and objects
// without id give none. Numbers are refused: an actor that is "1" is a database key, not an actor.
type Refs []string

// One returns the only id, "" when there is none or more than one.
func (r Refs) One() string {
	if len(r) == 1 {
		return r[0]
	}
	return ""
}

// Has reports whether id is among them.
func (r Refs) Has(id string) bool { return slices.Contains(r, id) }

func (r *Refs) UnmarshalJSON(b []byte) error {
	*r = nil
	return r.read(b, true)
}

func (r *Refs) read(b []byte, list bool) error {
	switch first(b) {
	case '"':
		s, err := text(b)
		if err != nil {
			return err
		}
		return r.add(s)
	case '{':
		var m map[string]json.RawMessage
		if err := json.Unmarshal(b, &m); err != nil {
			return refused("%w", err)
		}
		for _, name := range []string{"id", "href"} { // a Link has no id
			if first(m[name]) == '"' {
				return r.read(m[name], false)
			}
		}
		return nil
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(b, &items); err != nil || !list {
			return refused("a list inside a list of ids")
		}
		if len(items) > MaxAddressees {
			return refused("more than %d ids", MaxAddressees)
		}
		for _, item := range items {
			if err := r.read(item, false); err != nil {
				return err
			}
		}
		return nil
	case 'n':
		return nil
	}
	return refused("an id must be a string")
}

func (r *Refs) add(s string) error {
	if len(s) > MaxID {
		return refused("an id of %d bytes, at most %d", len(s), MaxID)
	}
	if s != "" {
		*r = append(*r, s)
	}
	return nil
}

// Types is a type or a list of types.
type Types []string

func (t *Types) UnmarshalJSON(b []byte) error {
	*t = nil
	if one, err := text(b); err == nil {
		if one != "" {
			*t = Types{one}
		}
		return nil
	}
	var many []string
	if err := json.Unmarshal(b, &many); err != nil || len(many) > 8 {
		return refused("type must be a string or a short list of strings")
	}
	*t = many
	return nil
}

// Is reports whether one of the types is among names.
func (t Types) Is(names ...string) bool {
	return slices.ContainsFunc(t, func(s string) bool { return slices.Contains(names, s) })
}

// String returns the first type.
func (t Types) String() string {
	if len(t) == 0 {
		return ""
	}
	return t[0]
}

// Text is a string; null and values of another type give "".
type Text string

func (t *Text) UnmarshalJSON(b []byte) error {
	*t = ""
	if first(b) != '"' {
		return nil
	}
	s, err := text(b)
	*t = Text(s)
	return err
}

// text decodes a JSON string. One of plain ASCII is what is between its quotes.
func text(b []byte) (string, error) {
	if n := len(b); n >= 2 && b[0] == '"' && b[n-1] == '"' && !bytes.ContainsFunc(b[1:n-1], func(c rune) bool {
		return c < ' ' || c > '~' || c == '"' || c == '\\'
	}) {
		return string(b[1 : n-1]), nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return "", refused("%w", err)
	}
	return s, nil
}

// Flag is a boolean; values of another type are false.
type Flag bool

func (f *Flag) UnmarshalJSON(b []byte) error {
	*f = string(b) == "true"
	return nil
}

// Time is a point in time with a zone; null and "" give the zero time. A time without a zone is
// refused: it would be a different time on every node.
type Time struct{ time.Time }

func (t *Time) UnmarshalJSON(b []byte) error {
	var s Text
	if err := s.UnmarshalJSON(b); err != nil || s == "" {
		t.Time = time.Time{}
		return err
	}
	at, err := time.Parse(time.RFC3339, string(s))
	if err != nil || at.Year() < 1 || at.Year() > 9999 {
		return refused("%q is not a time with a zone", s)
	}
	t.Time = at.UTC()
	return nil
}

// An Activity is the envelope of what arrives in an inbox or is in a log. Object is kept as
// received, because proofs are verified over it.
type Activity struct {
	Context    json.RawMessage `json:"@context"`
	ID         Text            `json:"id"`
	Type       Types           `json:"type"`
	Actor      Refs            `json:"actor"`
	Object     json.RawMessage `json:"object"`
	Target     Refs            `json:"target"`
	Instrument json.RawMessage `json:"instrument"` // of a QuoteRequest
	To         Refs            `json:"to"`
	CC         Refs            `json:"cc"`
	Audience   Refs            `json:"audience"`
	Published  Time            `json:"published"`
	Summary    Text            `json:"summary"`
	Content    Text            `json:"content"`
	Proof      json.RawMessage `json:"proof"`

	Seq   *int64 `json:"stoa:seq"`
	Epoch Text   `json:"stoa:epoch"`
	Head  *int64 `json:"stoa:head"`
	Hash  Text   `json:"stoa:hash"` // of a Tombstone in a log, and of a LogHead

	Conflict json.RawMessage `json:"stoa:conflict"` // of a Flag of a log

	// Members that rearrange a document for readers with JSON-LD.
	Graph    json.RawMessage `json:"@graph"`
	Reverse  json.RawMessage `json:"@reverse"`
	Included json.RawMessage `json:"@included"`
	AtType   json.RawMessage `json:"@type"`
	AtID     json.RawMessage `json:"@id"`
}

// Check refuses what no valid activity has: several actors, no id or type, too many addressees,
// JSON-LD rearrangement.
func (a *Activity) Check() error {
	switch {
	case a.Graph != nil || a.Reverse != nil || a.Included != nil || a.AtType != nil || a.AtID != nil:
		return refused("JSON-LD keywords other than @context are not read")
	case remaps(a.Context):
		return refused("@context gives another meaning to a member that decides who speaks")
	case len(a.Type) == 0:
		return refused("no type")
	case a.ID == "" || len(a.ID) > MaxID:
		return refused("no id, or one that is too long")
	case len(a.Actor) != 1:
		return refused("exactly one actor")
	case len(a.To)+len(a.CC) > MaxAddressees:
		return refused("more than %d addressees", MaxAddressees)
	}
	return nil
}

// ObjectRefs returns the ids of the object, embedded or not.
func (a *Activity) ObjectRefs() Refs {
	var r Refs
	if a.Object != nil && r.UnmarshalJSON(a.Object) != nil {
		return nil
	}
	return r
}

// ObjectID returns the id of the only object, "" when there is none or more than one.
func (a *Activity) ObjectID() string { return a.ObjectRefs().One() }

// Embedded reports whether the object is embedded, and not only its id.
func (a *Activity) Embedded() bool { return first(a.Object) == '{' }

// IsPublic reports whether Public is among the addressees, in any of its three
// spellings.
func IsPublic(r Refs) bool { return r.Has(Public) || r.Has("as:Public") || r.Has("Public") }

// HasStoa reports whether an @context maps the prefix stoa to this service's namespace, so that
// "stoa:kind" has this service's meaning.
func HasStoa(context json.RawMessage) bool {
	var m map[string]json.RawMessage
	switch first(context) {
	case '{':
		if json.Unmarshal(context, &m) != nil {
			return false
		}
		var ns Text
		return ns.UnmarshalJSON(m["stoa"]) == nil && ns == Namespace
	case '[':
		if ownContexts[string(context)] {
			return true
		}
		var items []json.RawMessage
		if json.Unmarshal(context, &items) != nil || len(items) > 32 {
			return false
		}
		found := false
		for _, item := range items {
			if first(item) != '{' {
				continue
			}
			// A later entry may remove the prefix.
			if strings.Contains(string(item), `"stoa"`) {
				found = HasStoa(item)
			}
		}
		return found
	}
	return false
}

// remaps reports whether an inline @context redefines actor, object or another member that decides
// who is the author. A reader with JSON-LD would then see a different document (CVE-2022-24307).
func remaps(context json.RawMessage) bool {
	items, err := list(context, 200)
	if err != nil {
		return true
	}
	for _, item := range items {
		var m map[string]json.RawMessage
		if first(item) != '{' || json.Unmarshal(item, &m) != nil {
			continue
		}
		for _, name := range []string{"id", "type", "actor", "object", "attributedTo", "to", "cc", "proof"} {
			switch string(m[name]) {
			case "", `"@` + name + `"`, `"as:` + name + `"`:
			default:
				return true
			}
		}
	}
	return false
}

// first returns the first byte of a JSON value, 0 for none.
func first(b []byte) byte {
	for _, c := range b {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}
