package node

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/stretchr/testify/require"

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
func (f formRow) showsFaults(d *pageDoc, faults []protocol.Fault, form sentForm, about string) {
	d.t.Helper()
	marked := map[string]bool{}
	for _, n := range d.nodes() {
		if attr(n, "aria-invalid") != "true" {
			continue
		}
		note := d.find("p", "id", attr(n, "aria-describedby"))
		require.NotNil(d.t, note, "%s: %s has a fault without words", about, attr(n, "name"))
		require.NotEmpty(d.t, strings.TrimSpace(textOf(note)), about)
		marked[attr(note, "id")] = true
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
		require.True(d.t, here || !form.has(field) && d.text() != "", "%s: the fault of %s (%s) is not at its field %s; marked are %v; %s", about, x.Pointer,
			x.Detail, field,
			marked, d.alerts())
	}
	for name := range marked {
		require.True(d.t, shown[name], "%s: %s is marked", about, name)
	}
}

// kept checks that a refused form is shown again with what was typed.
func (f formRow) kept(d *pageDoc, about, typed map[string]string, said string) {
	d.t.Helper()
	form := f.find(d, about)
	require.NotNil(d.t, form, "%s: the form is gone: %s", said, d.text())
	now := sentForm{form: form, values: valuesOf(form)}
	for n := range form.Descendants() {
		name := attr(n, "name")
		text, is := typed[name]
		if kind := attr(n, "type"); !is || n.Data == "select" || n.Data == "button" || kind == "password" || kind == "file" {
			continue
		}
		if attr(n, "type") == "checkbox" || attr(n, "type") == "radio" {
			require.Equal(d.t, slices.Contains(listOf(text), attr(n, "value")), has(n, "checked"), "%s: the tick of %s=%s", said, name, attr(n, "value"))
			continue
		}
		if strings.TrimSpace(text) != "" || now.values.Get(name) != "" { // spaces alone are nothing
			require.Equal(d.t, text, now.values.Get(name), "%s: what was typed into %s", said, name)
		}
	}
}

// speaksHindi checks that the faults on a page are in the reader's language.
func (f formRow) speaksHindi(a answer) {
	a.t.Helper()
	d := parsePage(a.t, f.page, a.Body.String())
	d.plain("in Hindi")
	d.spaced()
	for _, n := range d.all("p") {
		if attr(n, "class") == "wrong" || n.Parent != nil && attr(n.Parent, "role") == "alert" {
			require.True(a.t, strings.ContainsFunc(textOf(n), func(r rune) bool { return unicode.Is(unicode.Devanagari, r) }), "%s: %s", f.page, textOf(n))
		}
	}
}
