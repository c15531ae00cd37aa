package a2a

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A reader collects the faults of one request's parameters.
type reader struct {
	faults      []Violation
	unsupported bool // a content type
	legacy      bool // it is of 0.3
}

// roles are the names of the caller's role and the agent's.
func (r *reader) roles() [2]string {
	if r.legacy {
		return [2]string{"user", "agent"}
	}
	return [2]string{string(RoleUser), string(RoleAgent)}
}

// maxFaults bounds the list of faults; more would only repeat.
const maxFaults = 20

func (r *reader) fault(field, text string) {
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, Violation{Field: field, Description: text})
	}
}

func (r *reader) err() error {
	switch {
	case len(r.faults) > 0:
		return Invalid(r.faults...)
	case r.unsupported:
		return ErrContentType.With("parts may be text/plain, application/json, or addresses; bytes and other types are not supported")
	}
	return nil
}

// An object is one JSON object of the parameters. The zero object has no members and reports
// nothing, so that a missing object is reported once.
type object struct {
	r       *reader
	path    string
	members map[string]json.RawMessage
}

func (r *reader) object(path string, raw json.RawMessage) *object {
	if path == "params" {
		path = ""
	}
	return (&object{r: r}).open(path, raw)
}

func (o *object) open(path string, raw json.RawMessage) *object {
	c := &object{r: o.r, path: path}
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &c.members) != nil {
		o.r.fault(path, "must be an object")
		return &object{}
	}
	return c
}

// child opens an object inside this one.
func (o *object) child(name string, raw json.RawMessage) *object { return o.open(o.at(name), raw) }

// object opens a required member.
func (o *object) object(name string) *object {
	if o.r == nil {
		return o
	}
	raw := o.take(name)
	if raw == nil {
		o.fault(name, "is required")
		return &object{}
	}
	return o.child(name, raw)
}

func (o *object) at(name string) string {
	return strings.Trim(o.path+"."+name, ".")
}

func (o *object) fault(name, text string) {
	if o.r != nil {
		o.r.fault(o.at(name), text)
	}
}

// take returns a member under its camelCase or snake_case name, nil when it is
// absent or null.
func (o *object) take(name string) json.RawMessage {
	raw, sent := o.members[name]
	if other := snake(name); other != name {
		if alias, both := o.members[other]; both {
			if sent {
				o.fault(name, "is there twice, also as "+other)
			}
			raw = alias
		}
	}
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// text returns a string of at most most characters, "" when it is absent.
func (o *object) text(name string, most int) string {
	raw := o.take(name)
	if raw == nil {
		return ""
	}
	var s string
	if !decodeText(raw, &s) {
		o.fault(name, "must be a string")
		return ""
	}
	if utf8.RuneCountInString(s) > most {
		o.fault(name, fmt.Sprintf("at most %d characters", most))
		return ""
	}
	return s
}

func (o *object) needed(name string, most int) string {
	before := 0
	if o.r != nil {
		before = len(o.r.faults)
	}
	s := o.text(name, most)
	if o.r != nil && s == "" && len(o.r.faults) == before {
		o.fault(name, "is required")
	}
	return s
}

// role reads the role by its name or, as ProtoJSON allows, its number.
func (o *object) role() Role {
	if o.r == nil {
		return ""
	}
	names := o.r.roles()
	switch raw := string(o.take("role")); {
	case raw == `"`+names[0]+`"`, raw == "1" && !o.r.legacy:
		return RoleUser
	case raw == `"`+names[1]+`"`, raw == "2" && !o.r.legacy:
		return RoleAgent
	}
	return ""
}

// numbered are the states by their numbers in ProtoJSON.
var numbered = []State{"", Submitted, Working, Completed, Failed, Canceled, InputRequired, Rejected, AuthRequired}

// state reads a state by its name or number; "" when it is absent or unspecified, as clients send it that leave it out.
func (o *object) state(name string) State {
	raw := o.take(name)
	s := strings.Trim(string(raw), `"`)
	switch s {
	case "", "0", "UNRECOGNIZED", "TASK_STATE_UNSPECIFIED":
		return ""
	}
	for i, known := range numbered {
		if s == string(known) || s == strconv.Itoa(i) {
			return known
		}
	}
	o.fault(name, "must be the name of a state, such as "+string(Completed))
	return ""
}

// length reads a non-negative count, which may also be a string of digits.
func (o *object) length(name string) *int {
	raw := o.take(name)
	if raw == nil {
		return nil
	}
	n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
	if err != nil || n < 0 {
		o.fault(name, "must be a whole number of 0 or more")
		return nil
	}
	return &n
}

func (o *object) boolean(name string) bool {
	switch raw := o.take(name); string(raw) {
	case "true":
		return true
	case "", "false":
	default:
		o.fault(name, "must be true or false")
	}
	return false
}

func (o *object) list(name string) []string {
	raw := o.take(name)
	if raw == nil {
		return nil
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil || len(list) > MaxList {
		o.fault(name, fmt.Sprintf("must be a list of at most %d strings", MaxList))
		return nil
	}
	for _, s := range list {
		if len(s) > MaxURL {
			o.fault(name, fmt.Sprintf("an entry has at most %d bytes", MaxURL))
			return nil
		}
	}
	return list
}

func (o *object) metadata(name string) json.RawMessage {
	raw := o.take(name)
	switch {
	case raw == nil:
	case raw[0] != '{':
		o.fault(name, "must be an object")
	case len(raw) > MaxMetadata:
		o.fault(name, fmt.Sprintf("at most %d bytes", MaxMetadata))
	default:
		return raw
	}
	return nil
}

func decodeText(raw json.RawMessage, into *string) bool {
	return len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, into) == nil
}
