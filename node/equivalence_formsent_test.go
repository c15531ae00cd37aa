package node_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"stoa/node/nodetest"
)

// find returns the form of the row on a page, nil for none: of several the one that is about what was made.
func (f formRow) find(d *nodetest.Page, about map[string]string) (found *html.Node) {
	best := -100
	for _, form := range d.All("form") {
		names, part, score := f.id != "" && nodetest.Attr(form, "id") == f.id, "", 0
		if names {
			score = 100 // others may have a field of that name
		}
		for n := range form.Descendants() {
			switch name, value := nodetest.Attr(n, "name"), nodetest.Attr(n, "value"); {
			case name == "do" && value == f.op.Name && f.id == "", name == f.id && name != "":
				names = true
			case name == "part":
				part = value
			case nodetest.Attr(n, "type") == "hidden" && about[name] != "" && about[name] == value:
				score++
			case nodetest.Attr(n, "type") == "hidden" && about[name] != "" && value != "":
				score--
			}
		}
		if nodetest.Attr(form, "method") == "post" && names && part == f.part && score > best {
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
		switch name := nodetest.Attr(n, "name"); {
		case name == "do":
			do = append(do, nodetest.Attr(n, "value"))
		case name == "part":
			part = "-" + nodetest.Attr(n, "value")
		case name != "" && !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	at := s.routeOf(nodetest.Attr(form, "action")) + " "
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
func (s *formSide) parse(path string, a nodetest.Answer) *nodetest.Page {
	d := nodetest.ParsePage(s.T, path, a.Body.String())
	for _, form := range d.All("form") {
		if nodetest.Attr(form, "method") == "post" {
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
	s.T.Helper()
	var d *nodetest.Page
	if f.show != nil {
		d = f.show(s, about)
	} else {
		path := filled(f.page, about)
		d = s.parse(path, s.Ask("GET", path, "", append(s.who(f.page, about), "Accept", nodetest.Accept)...))
	}
	form := f.find(d, about)
	require.NotNil(s.T, form, "%s has no form of %s: %s", d.Path, f.op.Name, d.Text())
	return f.found(form, about)
}

// found is a form of a page as it would be sent with nothing typed.
func (f formRow) found(form *html.Node, about map[string]string) sentForm {
	x := sentForm{form: form, action: nodetest.Attr(form, "action"), values: nodetest.ValuesOf(form)}
	for n := range form.Descendants() {
		switch name := nodetest.Attr(n, "name"); {
		case name == "do" && nodetest.Attr(n, "value") == f.op.Name:
			x.values.Set("do", f.op.Name) // the button that is pressed
		case about[name] != "" && nodetest.Attr(n, "value") == "":
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
			case nodetest.Attr(n, "name") != name:
			case nodetest.Attr(n, "type") == "checkbox":
				x.values[name] = listOf(text)
			case nodetest.Attr(n, "type") == "file":
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
func (f formRow) press(s *formSide, about map[string]string) *nodetest.Page {
	s.T.Helper()
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
func (x sentForm) send(s *formSide, f formRow, about map[string]string, more ...string) nodetest.Answer {
	s.T.Helper()
	action, _, _ := strings.Cut(x.action, "#")
	if nodetest.Has(x.form, "data-proof") && !f.op.ReadOnly {
		x.values.Set("altcha", s.Proof(f.op.Purpose))
	}
	media, body := "application/x-www-form-urlencoded", x.values.Encode()
	if nodetest.Attr(x.form, "enctype") != "" {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for name := range x.values {
			require.NoError(s.T, w.WriteField(name, x.values.Get(name)))
		}
		part, err := w.CreateFormFile(x.upload, "a.file")
		require.NoError(s.T, err)
		_, err = part.Write([]byte(x.file))
		require.NoError(s.T, err)
		require.NoError(s.T, w.Close())
		media, body = w.FormDataContentType(), b.String()
	}
	headers := append(s.who(f.page, about), "Content-Type", media, "Accept", nodetest.Accept)
	return s.Ask("POST", action, body, append(headers, more...)...)
}

// has reports whether the form has a field to fill in; * is the rest of its name.
func (x sentForm) has(name string) bool {
	prefix, rest := strings.CutSuffix(name, "*")
	for n := range x.form.Descendants() {
		is := nodetest.Attr(n, "name")
		if n.Data != "button" && nodetest.Attr(n, "type") != "hidden" && (is == name || rest && strings.HasPrefix(is, prefix)) {
			return true
		}
	}
	return false
}
