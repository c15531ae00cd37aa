package web

import (
	"github.com/a-h/templ"
)

// scriptOf loads a script of the node; words are its texts.
func scriptOf(path string, words templ.Attributes, pairs ...string) templ.Component {
	var d drawing
	d.put(`<script src="`, path, `"`)
	for i := 0; i < len(pairs); i += 2 {
		d.put(" "+pairs[i]+`="`, pairs[i+1], `"`)
	}
	d.attributes(words)
	d.WriteString(" defer></script>")
	return templ.Raw(d.String())
}

// heading returns the title of the window.
func (v view) heading(s *Web) string {
	if v.Title == "" {
		return s.Name
	}
	return v.Title + " · " + s.Name
}

// sort returns the type of a page (Open Graph protocol).
func (v view) sort() string {
	switch v.Path {
	case "/board/{id}":
		return "article"
	case "/@{handle}":
		return "profile"
	}
	return "website"
}

// current marks the link to the current page.
func current(here bool) templ.Attributes {
	if here {
		return templ.Attributes{"aria-current": "page"}
	}
	return nil
}
