package node_test

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// fieldOf returns the field that shows the faults of a pointer; * is the rest of its name.
func (f formRow) fieldOf(pointer string) string {
	for name, member := range f.to {
		if path := "/" + strings.ReplaceAll(member, ".", "/"); member != "" && (pointer == path || strings.HasPrefix(pointer, path+"/")) {
			return name
		}
	}
	for _, x := range f.at {
		if re := regexp.MustCompile("^" + x[0] + "$"); re.MatchString(pointer) {
			return re.ReplaceAllString(pointer, x[1])
		}
	}
	return strings.Split(strings.TrimPrefix(pointer, "/"), "/")[0]
}

// showsFaults checks that each fault of an input is described at its field, or above the form when the form has no such field, and
// that no other field is marked.
func (f formRow) showsFaults(d *nodetest.Page, faults []protocol.Fault, form sentForm, about string) {
	d.T.Helper()
	marked := map[string]bool{}
	for _, n := range d.Nodes() {
		if nodetest.Attr(n, "aria-invalid") != "true" {
			continue
		}
		note := d.Find("p", "id", nodetest.Attr(n, "aria-describedby"))
		require.NotNil(d.T, note, "%s: %s has a fault without words", about, nodetest.Attr(n, "name"))
		require.NotEmpty(d.T, strings.TrimSpace(nodetest.TextOf(note)), about)
		marked[nodetest.Attr(note, "id")] = true
	}
	is := func(field, id string) bool {
		prefix, rest := strings.CutSuffix(field, "*")
		return strings.HasSuffix(id, "-"+field) || rest && strings.Contains(id, "-"+prefix)
	}
	shown := map[string]bool{}
	for _, x := range faults {
		field, here := f.fieldOf(x.Pointer), false
		for name := range marked {
			if is(field, name) {
				here, shown[name] = true, true
			}
		}
		require.True(d.T, here || !form.has(field) && d.Text() != "", "%s: the fault of %s (%s) is not at its field %s; marked are %v; %s", about, x.Pointer,
			x.Detail, field,
			marked, d.Alerts())
	}
	if slices.ContainsFunc(faults, func(x protocol.Fault) bool { return x.Code == "too-long" || x.Code == "too-many" }) {
		return // then HTTP checks no more than the schema, and what cannot be read as an amount is a fault of that in a form alone
	}
	for name := range marked {
		require.True(d.T, shown[name], "%s: %s is marked", about, name)
	}
}

// kept checks that a refused form is shown again with what was typed.
func (f formRow) kept(d *nodetest.Page, about, typed map[string]string, said string) {
	d.T.Helper()
	form := f.find(d, about)
	require.NotNil(d.T, form, "%s: the form is gone: %s", said, d.Text())
	now := sentForm{form: form, values: nodetest.ValuesOf(form)}
	for n := range form.Descendants() {
		name := nodetest.Attr(n, "name")
		text, is := typed[name]
		if kind := nodetest.Attr(n, "type"); !is || n.Data == "select" || n.Data == "button" || kind == "password" || kind == "file" {
			continue
		}
		if nodetest.Attr(n, "type") == "checkbox" || nodetest.Attr(n, "type") == "radio" {
			value := nodetest.Attr(n, "value")
			require.Equal(d.T, slices.Contains(listOf(text), value), nodetest.Has(n, "checked"), "%s: the tick of %s=%s", said, name, value)
			continue
		}
		if strings.TrimSpace(text) != "" || now.values.Get(name) != "" { // spaces alone are nothing
			require.Equal(d.T, text, now.values.Get(name), "%s: what was typed into %s", said, name)
		}
	}
}

// speaksHindi checks that the faults on a page are in the reader's language.
func (f formRow) speaksHindi(a nodetest.Answer) {
	a.T.Helper()
	d := nodetest.ParsePage(a.T, f.page, a.Body.String())
	d.Plain("in Hindi")
	d.Spaced()
	for _, n := range d.All("p") {
		if nodetest.Attr(n, "class") == "wrong" || n.Parent != nil && nodetest.Attr(n.Parent, "role") == "alert" {
			text := nodetest.TextOf(n)
			require.True(a.T, strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Devanagari, r) }), "%s: %s", f.page, text)
		}
	}
}
