package web

import (
	"maps"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// A member is one of an operation's input.
type member struct {
	typ      reflect.Type // without pointers
	tag      reflect.StructTag
	index    []int // in its struct
	optional bool
}

var typeMembers sync.Map // by type: map[string]member

// membersOf returns the members of a struct by their names in JSON.
func membersOf(t reflect.Type) map[string]member {
	if known, ok := typeMembers.Load(t); ok {
		return known.(map[string]member)
	}
	all := map[string]member{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || f.Anonymous {
			continue
		}
		all[name] = member{pointed(f.Type), f.Tag, f.Index, protocol.Optional(f.Tag)}
	}
	typeMembers.Store(t, all)
	return all
}

// pointed returns a type without its pointers.
func pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// memberAt returns a member of a type by its path; ok is false when it has none.
func memberAt(t reflect.Type, path string) (m member, ok bool) {
	name, rest, deeper := strings.Cut(path, ".")
	if t.Kind() == reflect.Slice { // of what each element has
		t = pointed(t.Elem())
	}
	if t.Kind() != reflect.Struct {
		return m, false
	}
	if m, ok = membersOf(t)[name]; ok && deeper {
		inner, found := memberAt(m.typ, rest)
		inner.optional = inner.optional || m.optional
		return inner, found
	}
	if m.typ == reflect.TypeFor[protocol.MoneyDraft]() { // a form has the amount
		m.tag = membersOf(m.typ)["amount"].tag
	}
	return m, ok
}

const maxDecimal = 20 // characters of an amount, also one with spaces and commas

// attributes returns the attributes of a field for a member of an operation's input: those of its tags, and the control's own.
func (c control) attributes(m member) templ.Attributes {
	a := templ.Attributes{}
	number := m.typ != nil && m.typ.Kind() >= reflect.Int && m.typ.Kind() <= reflect.Int64
	switch {
	case m.typ == nil || c.as != aLine:
	case number:
		a["inputmode"] = "numeric"
	case m.tag.Get("decimal") != "" || m.typ.Kind() == reflect.Float64:
		a["inputmode"] = "decimal"
	case m.tag.Get("format") == "uri":
		a["type"] = "url"
	case m.tag.Get("format") == "date":
		a["type"] = "date"
	}
	if most := c.limit(m); most > 0 && c.as != aChoice {
		a["maxlength"] = strconv.Itoa(most)
	}
	if !m.optional && (number || m.tag.Get("minLength") > "0" || m.tag.Get("decimal") != "" || m.tag.Get("shape") != "") && c.as != aChoice {
		a["required"] = true
	}
	maps.Copy(a, c.more)
	maps.DeleteFunc(a, func(_ string, v any) bool { return v == false })
	return a
}

// limit returns how long the text of a field may be in characters, 0 for no limit.
func (c control) limit(m member) int {
	if c.most > 0 || m.typ == nil {
		return c.most
	}
	tagged := func(name string) int { n, _ := strconv.Atoi(m.tag.Get(name)); return n }
	switch {
	case m.tag.Get("decimal") != "" || m.typ.Kind() == reflect.Float64:
		return maxDecimal
	case m.typ.Kind() == reflect.String && tagged("maxLength") > 0:
		return tagged("maxLength")
	case m.typ.Kind() == reflect.String:
		return shapeLimits[m.tag.Get("shape")]
	case tagged("maximum") > 0:
		return 1 + int(math.Log10(float64(tagged("maximum"))))
	}
	return 0
}

// shapeLimits are the lengths of texts that only their form bounds.
var shapeLimits = map[string]int{"name": 40, "handle": 40, "currency": 3, "mail-code": 32, "utr": 2000, "moment": 40}
