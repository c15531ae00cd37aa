// Package ics writes and reads iCalendar objects (RFC 5545): invitations, moves and cancellations
// for mail (iMIP, RFC 6047), the copy that a calendar server stores, the owner's feed, and the
// answers of mail programs.
//
// It is pure. What it writes holds one event without recurrence, in UTC, so that no time zone is
// sent. What it reads comes from strangers: sizes, counts and depth are bounded, and every text is
// cleaned.
package ics

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of an object that is read.
const (
	maxDepth = 5
	maxLines = 200_000
)

// A component is a part of an object: BEGIN, its properties, the components in it, END.
type component struct {
	name     string
	props    []property
	children []*component
}

// A property is one line of a component. Names are in upper case; a parameter with several values
// has the first.
type property struct {
	name   string
	params map[string]string
	value  string
}

// get returns the first property of a name, nil when there is none.
func (c *component) get(name string) *property {
	for i := range c.props {
		if c.props[i].name == name {
			return &c.props[i]
		}
	}
	return nil
}

// text returns the first property of a name as text, "" when there is none.
func (c *component) text(name string) string {
	if p := c.get(name); p != nil {
		return unescaped.Replace(p.value)
	}
	return ""
}

// upper returns the first property of a name, which is a word without case.
func (c *component) upper(name string) string {
	return strings.ToUpper(strings.TrimSpace(c.text(name)))
}

var (
	escaped   = strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\n", `\n`)
	unescaped = strings.NewReplacer(`\\`, `\`, `\;`, ";", `\,`, ",", `\n`, "\n", `\N`, "\n")
)

// A writer writes content lines.
type writer struct{ strings.Builder }

// line writes a property whose value needs no escape: name is the name with its parameters.
func (w *writer) line(name, value string) { w.fold(name + ":" + value) }

// text writes a property that is text; none when it is empty.
func (w *writer) text(name, value string) {
	if value != "" {
		w.line(name, escaped.Replace(value))
	}
}

// fold writes a content line as lines of 75 bytes at most, without cutting a character (RFC 5545
// §3.1).
func (w *writer) fold(line string) {
	for most := 75; len(line) > most; most = 74 { // with the space that the next line begins with
		n := most
		for n > 0 && !utf8.RuneStart(line[n]) {
			n--
		}
		w.WriteString(line[:n])
		w.WriteString("\r\n ")
		line = line[n:]
	}
	w.WriteString(line)
	w.WriteString("\r\n")
}

var errShape = errors.New("not an iCalendar object")

// decode reads one VCALENDAR. Lines end with CR LF or LF.
func decode(data string) (*component, error) {
	var open []*component
	lines := 0
	for data != "" {
		var line string
		line, data = unfolded(data)
		if line == "" {
			continue
		}
		if lines++; lines > maxLines {
			return nil, errShape
		}
		p, ok := parseLine(line)
		if !ok {
			return nil, errShape
		}
		name := strings.ToUpper(strings.TrimSpace(p.value))
		switch {
		case p.name == "BEGIN":
			c := &component{name: name}
			if len(open) == maxDepth || len(open) == 0 && name != "VCALENDAR" {
				return nil, errShape
			}
			if len(open) > 0 {
				in := open[len(open)-1]
				in.children = append(in.children, c)
			}
			open = append(open, c)
		case len(open) == 0:
			return nil, errShape
		case p.name == "END":
			c := open[len(open)-1]
			if c.name != name {
				return nil, errShape
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return c, nil
			}
		default:
			c := open[len(open)-1]
			c.props = append(c.props, p)
		}
	}
	return nil, fmt.Errorf("%w: it has no end", errShape)
}

// unfolded cuts the first content line off. A line that begins with a space or a tab continues the
// one before.
func unfolded(data string) (line, rest string) {
	var b strings.Builder
	for first := true; ; first = false {
		part, after, _ := strings.Cut(data, "\n")
		part = strings.TrimSuffix(part, "\r")
		folded := after != "" && (after[0] == ' ' || after[0] == '\t')
		if first && !folded {
			return part, after
		}
		b.WriteString(part)
		if !folded {
			return b.String(), after
		}
		data = after[1:]
	}
}

// parseLine reads NAME;PARAM=value;PARAM="value":value.
func parseLine(line string) (property, bool) {
	i := strings.IndexAny(line, ";:")
	if i <= 0 {
		return property{}, false
	}
	p := property{name: strings.ToUpper(line[:i])}
	for line[i] == ';' {
		line = line[i+1:]
		name, rest, found := strings.Cut(line, "=")
		if !found || strings.ContainsAny(name, ":;") {
			return property{}, false
		}
		name, line, i = strings.ToUpper(name), rest, -1
		for begin := 0; ; begin = i + 1 { // the values, parted by commas
			value, end, ok := paramValue(line, begin)
			if !ok {
				return property{}, false
			}
			if p.params == nil {
				p.params = map[string]string{}
			}
			if _, seen := p.params[name]; !seen {
				p.params[name] = value
			}
			if i = end; line[i] != ',' {
				break
			}
		}
	}
	p.value = line[i+1:]
	return p, true
}

// paramValue returns the value that begins at an index, and the index of the character after it.
func paramValue(line string, begin int) (value string, end int, ok bool) {
	if begin < len(line) && line[begin] == '"' {
		n := strings.IndexByte(line[begin+1:], '"')
		if n < 0 {
			return "", 0, false
		}
		value, end = line[begin+1:begin+1+n], begin+n+2
		return value, end, end < len(line) && strings.IndexByte(",;:", line[end]) >= 0
	}
	n := strings.IndexAny(line[begin:], ",;:")
	if n < 0 {
		return "", 0, false
	}
	return line[begin : begin+n], begin + n, true
}

// Identify returns the UID and the SEQUENCE of the first event of an object; ok is false when there
// is none.
func Identify(object string) (uid string, sequence int, ok bool) {
	c, err := decode(object)
	if err != nil {
		return "", 0, false
	}
	for _, e := range c.children {
		if e.name == "VEVENT" {
			sequence, _ = strconv.Atoi(strings.TrimSpace(e.text("SEQUENCE")))
			uid = strings.TrimSpace(e.text("UID"))
			return uid, sequence, uid != ""
		}
	}
	return "", 0, false
}
