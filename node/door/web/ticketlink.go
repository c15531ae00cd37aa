package web

import (
	"net/http"

	"github.com/a-h/templ"
)

// The pages of links in mails and notices. Opening one does nothing, because link previews and mail scanners open it too; its
// buttons do, once.

// A button is one of such a page.
type button struct{ label, class string }

// linkForm is a form of such a page, with a button for each of what it does.
func linkForm[D ~string](path, id string, keys hiddenPairs, do []D, buttons map[D]button, note templ.Component) templ.Component {
	row := inside(`div class="send"`)
	for _, d := range do {
		row.in = append(row.in, element{`<button class="` + buttons[d].class + `" type="submit" name="do" value="` + string(d) + `">`, "</button>",
			buttons[d].label, nil})
	}
	return posted("form", id, path, keys, row, note)
}

// linkTitle is the title of such a page, in the reader's language.
func linkTitle(title string) templ.Component { return inside(`div class="lead"`, in("h1", title)) }

// signInLink leads to a page of the account.
func signInLink(path, key string) templ.Component {
	return inside("p", link(path, key).spaced(), say("(you may have to sign in)"))
}

// linkEnded is the page of a link that does nothing any more.
func linkEnded(title, why string, leads templ.Component) templ.Component {
	return all{linkTitle(title), in("p", why), leads}
}

func (s *Web) writeLink(w http.ResponseWriter, r *http.Request, status int, path, title string, body templ.Component) {
	s.writePrivate(w, r, status, view{Title: title, Path: path, Secret: true, Body: body})
}
