package node

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// find returns the form of the row on a page, nil for none: of several the one that is about what was made.
func (f formRow) find(d *pageDoc, about map[string]string) (found *html.Node) {
	best := -100
	for _, form := range d.all("form") {
		names, part, score := f.id != "" && attr(form, "id") == f.id, "", 0
		if names {
			score = 100 // others may have a field of that name
		}
		for n := range form.Descendants() {
			switch name, value := attr(n, "name"), attr(n, "value"); {
			case name == "do" && value == f.op.Name && f.id == "", name == f.id && name != "":
				names = true
			case name == "part":
				part = value
			case attr(n, "type") == "hidden" && about[name] != "" && about[name] == value:
				score++
			case attr(n, "type") == "hidden" && about[name] != "" && value != "":
				score--
			}
		}
		if attr(form, "method") == "post" && names && part == f.part && score > best {
			found, best = form, score
		}
	}
	return found
}

// keys name a form, for each operation that it does: the route that it is sent to, and the operation, or else its fields.
func (s *formSide) keys(form *html.Node, values url.Values) (all []string) {
	part := ""
	var do, names []string
	for n := range form.Descendants() {
		switch name := attr(n, "name"); {
		case name == "do":
			do = append(do, attr(n, "value"))
		case name == "part":
			part = "-" + attr(n, "value")
		case name != "" && !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	at := s.routeOf(attr(form, "action")) + " "
	if len(do) == 0 {
		return []string{at + strings.Join(slices.Sorted(slices.Values(names)), " ")}
	}
	for _, x := range do {
		if values == nil || values.Get("do") == x {
			all = append(all, at+x+part)
		}
	}
	return all
}

// routeOf returns the pattern of the route that an address of a form has.
func (s *formSide) routeOf(address string) string {
	path, _, _ := strings.Cut(address, "?")
	path, _, _ = strings.Cut(path, "#")
	for _, r := range s.routes {
		if r.path.MatchString(path) {
			return r.pattern
		}
	}
	return address
}

// parse reads a page and notes its forms.
func (s *formSide) parse(path string, a answer) *pageDoc {
	d := parsePage(s.t, path, a.Body.String())
	for _, form := range d.all("form") {
		if attr(form, "method") == "post" {
			for _, key := range s.keys(form, nil) {
				s.shown[key] = path
			}
		}
	}
	return d
}

// A sentForm is a form as it is sent.
type sentForm struct {
	form   *html.Node
	action string
	values url.Values
	upload string // the field of its file
	file   string // the bytes of that
}

// open opens the page that has the form.
func (f formRow) open(s *formSide, about map[string]string) sentForm {
	s.t.Helper()
	var d *pageDoc
	if f.show != nil {
		d = f.show(s, about)
	} else {
		path := filled(f.page, about)
		d = s.parse(path, s.ask("GET", path, "", append(s.who(f.page, about), "Accept", browser)...))
	}
	form := f.find(d, about)
	require.NotNil(s.t, form, "%s has no form of %s: %s", d.path, f.op.Name, d.text())
	return f.found(form, about)
}

// found is a form of a page as it would be sent with nothing typed.
func (f formRow) found(form *html.Node, about map[string]string) sentForm {
	x := sentForm{form: form, action: attr(form, "action"), values: valuesOf(form)}
	for n := range form.Descendants() {
		switch name := attr(n, "name"); {
		case name == "do" && attr(n, "value") == f.op.Name:
			x.values.Set("do", f.op.Name) // the button that is pressed
		case about[name] != "" && attr(n, "value") == "":
			x.values.Set(name, about[name]) // what a script fills in
		}
	}
	return x
}

// fill types into the fields of the form, which is going to be sent.
func (x *sentForm) fill(s *formSide, f formRow, typed map[string]string) {
	for name, text := range typed {
		x.values.Set(name, text)
		for n := range x.form.Descendants() {
			switch {
			case attr(n, "name") != name:
			case attr(n, "type") == "checkbox":
				x.values[name] = listOf(text)
			case attr(n, "type") == "file":
				x.values.Del(name)
				x.file, x.upload = text, name
			}
		}
	}
	s.does[s.routeOf(x.action)+" "+f.op.Name] = true
	for _, key := range s.keys(x.form, x.values) {
		s.sent[key] = true
	}
}

// press sends the form with nothing typed, and returns the page that answers.
func (f formRow) press(s *formSide, about map[string]string) *pageDoc {
	s.t.Helper()
	x := f.open(s, about)
	x.fill(s, f, nil)
	return s.parse(f.page, x.send(s, f, about))
}

// visit makes the form that of another visit of its page, without the version of what that showed.
func (x *sentForm) visit(n int) {
	x.values.Del("version")
	if x.values.Has("once") {
		x.values.Set("once", fmt.Sprint("visit ", n))
	}
}

// send sends the form as a browser does.
func (x sentForm) send(s *formSide, f formRow, about map[string]string, more ...string) answer {
	s.t.Helper()
	action, _, _ := strings.Cut(x.action, "#")
	if has(x.form, "data-proof") && !f.op.ReadOnly {
		x.values.Set("altcha", s.proof(f.op.Purpose))
	}
	media, body := "application/x-www-form-urlencoded", x.values.Encode()
	if attr(x.form, "enctype") != "" {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for name := range x.values {
			require.NoError(s.t, w.WriteField(name, x.values.Get(name)))
		}
		part, err := w.CreateFormFile(x.upload, "a.file")
		require.NoError(s.t, err)
		_, err = part.Write([]byte(x.file))
		require.NoError(s.t, err)
		require.NoError(s.t, w.Close())
		media, body = w.FormDataContentType(), b.String()
	}
	headers := append(s.who(f.page, about), "Content-Type", media, "Accept", browser)
	return s.ask("POST", action, body, append(headers, more...)...)
}

// has reports whether the form has a field to fill in; * is the rest of its name.
func (x sentForm) has(name string) bool {
	prefix, rest := strings.CutSuffix(name, "*")
	for n := range x.form.Descendants() {
		if n.Data != "button" && attr(n, "type") != "hidden" && (attr(n, "name") == name || rest && strings.HasPrefix(attr(n, "name"), prefix)) {
			return true
		}
	}
	return false
}
