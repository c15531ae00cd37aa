package web

import (
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// A formTable is a form that does an operation, or changes a part of what that writes: its fields, in their order. A
// field is declared here once: what it shows is read from a value of the same members, what is typed is written to the
// operation's input, and a fault of that is shown at the field (formvalues.go). Its limits are those of the input's tags.
type formTable struct {
	op       *protocol.Operation
	part     string // of what the operation writes, "" for all
	controls []control
	finish   func(form url.Values, args map[string]any) // makes of the form what no field alone does; nil for nothing
}

// A control is a field of a form, or some of them in a group.
type control struct {
	as      controlKind
	name    string           // of the field
	label   string           // key of its label, or of the legend or summary of a group
	member  string           // of the input, with dots between names
	options [][2]string      // values to choose from, with the keys of their words
	parts   []control        // of a group
	usual   string           // what it holds unless somebody chose something else, where no tag says it
	most    int              // longest text in characters, where no tag says it
	more    templ.Attributes // beyond those that follow from the tags
	text    *writing         // how it is written, nil for the way of its type
	secret  bool             // it is never shown
	named   bool             // it names the thing: a hidden field once that is there
	said    bool             // its label is no key: it is shown as it is
	spoken  bool             // its options are no keys
	foreign bool             // its options are names that somebody chose
}

type controlKind int

const (
	aLine controlKind = iota
	aBox              // several lines
	aTick
	ticks
	aChoice
	aGroup // a fieldset
	aPart  // a div, whose class is the label
	aFold
	aHint
	aFault  // of a member that several fields are for
	aHidden // whose text is the label
)

// A writing is how a member is written in a field.
type writing struct {
	show func(v any) string
	mean func(text string) any // nil for nothing; what cannot be read stays a text, and the check of the schema refuses it
}

// The constructors take the key of the label; with noLabel the label is elsewhere.

const noLabel = ""

func line(name, label string) control { return control{name: name, label: label, member: name} }
func box(name, label string) control {
	return control{as: aBox, name: name, label: label, member: name}
}
func tickBox(name, label string) control {
	return control{as: aTick, name: name, label: label, member: name}
}
func several(name, label string, options [][2]string) control {
	return control{as: ticks, name: name, label: label, member: name, options: options}
}
func choose(name, label string, options [][2]string) control {
	return control{as: aChoice, name: name, label: label, member: name, options: options}
}
func group(label string, parts ...control) control {
	return control{as: aGroup, label: label, parts: parts}
}
func sideBySide(parts ...control) control { return part("pair", parts...) }
func remark(label string) control         { return control{as: aHint, label: label} }
func holds(name, text string) control     { return control{as: aHidden, name: name, label: text} }
func faultOf(name string) control         { return control{as: aFault, name: name} }

// boxFrom is how long a text may be, in characters, that is written in several lines.
const boxFrom = 500

// labelledFields are those of an operation's input that have the tag label, whose text is a key, in their order.
func labelledFields(op *protocol.Operation) (all []control) {
	for _, f := range reflect.VisibleFields(op.In) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		c := line(name, f.Tag.Get("label"))
		if c.limit(member{typ: f.Type, tag: f.Tag}) >= boxFrom {
			c.as = aBox
		}
		if c.label != "" {
			all = append(all, c)
		}
	}
	return all
}

// part is a group without a label, of a class.
func part(class string, parts ...control) control {
	return control{as: aPart, label: class, parts: parts}
}

// fold is a group of what is changed seldom. It is open when one of its fields is refused, or holds something else than its default.
func fold(label string, parts ...control) control {
	return control{as: aFold, label: label, parts: parts}
}

// usually says what the field holds when nobody chose anything, where that depends on other fields.
func (c control) usually(text string) control { c.usual = text; return c }

// of names the member of the input that the field is for, with dots between names; "" for none.
func (c control) of(member string) control { c.member = member; return c }

// upTo bounds a text whose member has no such tag: a list, or several words that mean a code.
func (c control) upTo(characters int) control { c.most = characters; return c }

// with adds attributes: names and values in turn, "" for an attribute without one.
func (c control) with(pairs ...string) control {
	c.more = maps.Clone(c.more)
	if c.more == nil {
		c.more = templ.Attributes{}
	}
	for i := 0; i < len(pairs); i += 2 {
		if c.more[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
			c.more[pairs[i]] = true
		}
	}
	return c
}

// spelled says how the member is written, where its type does not.
func spelled[T any](c control, show func(T) string, mean func(text string) any) control {
	c.text = &writing{func(v any) string { return show(v.(T)) }, mean}
	return c
}

// trimmed is a text without the spaces around it, which some keyboards add.
func trimmed(c control) control {
	return spelled(c, func(s string) string { return s }, func(text string) any { return strings.TrimSpace(text) })
}

// hiddenText is for a secret, which is not shown again.
func (c control) hiddenText() control { c.secret = true; return c.with("type", "password") }

// key says that the field names the thing that the form is about.
func (c control) key() control { c.named = true; return c }

// from gives the values to choose from.
func (c control) from(options [][2]string) control { c.options = options; return c }

// verbatim says that the label is no key, worded that the words of the options are none, chosen that somebody chose them.
func (c control) verbatim() control { c.said = true; return c }
func (c control) worded() control   { c.spoken = true; return c }
func (c control) chosen() control   { c.foreign = true; return c }

// each calls do for every field of a list of controls, also those in groups.
func each(list []control, do func(control)) {
	for _, c := range list {
		if c.parts != nil {
			each(c.parts, do)
		} else if c.name != "" {
			do(c)
		}
	}
}

// has reports whether the table has a field; a nil one has none.
func (t *formTable) has(name string) (found bool) {
	if t != nil {
		each(t.controls, func(c control) { found = found || c.name == name })
	}
	return found
}

// without returns the table without a field.
func (t *formTable) without(name string) *formTable {
	other := *t
	other.controls = slices.DeleteFunc(slices.Clone(t.controls), func(c control) bool { return c.name == name })
	return &other
}

// choosable returns the table without the fields whose values to choose from only the page knows.
func (t *formTable) choosable() *formTable {
	other := *t
	other.controls = slices.DeleteFunc(slices.Clone(t.controls), func(c control) bool { return (c.as == ticks || c.as == aChoice) && c.options == nil })
	return &other
}

// change returns the table with a field changed.
func (t *formTable) change(name string, do func(control) control) *formTable {
	other := *t
	other.controls = changedControls(t.controls, name, do)
	return &other
}

func changedControls(list []control, name string, do func(control) control) []control {
	if list == nil {
		return nil
	}
	list = slices.Clone(list)
	for i, c := range list {
		if c.name == name {
			list[i] = do(c)
		}
		list[i].parts = changedControls(c.parts, name, do)
	}
	return list
}

// stored is shows of what an id names, nothing for what is new.
func (t *formTable) stored(id string, v any) url.Values {
	if id == "" {
		return nil
	}
	return t.shows(v)
}

// tableOf returns the table of a form, nil for one whose fields are all members of the input.
func tableOf(op *protocol.Operation, part string) *formTable {
	n := slices.IndexFunc(formTables, func(t *formTable) bool { return t.op == op && t.part == part })
	if n < 0 {
		return nil
	}
	return formTables[n]
}
