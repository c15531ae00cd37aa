package web

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/node/door/web/words"
)

// TextPages are the pages whose texts the operator writes, in the order of the footer.
var TextPages = []string{"contact", "terms", "privacy"}

// Texts are what the operator writes about the node: by page, then by language, "" for every reader. They are Markdown, of
// which headings, paragraphs and addresses are shown as such.
type Texts map[string]map[string]string

// Set adds a text.
func (t Texts) Set(page, language, text string) {
	if t[page] == nil {
		t[page] = map[string]string{}
	}
	t[page][language] = strings.TrimSpace(text)
}

// in returns the text of a page for readers of a language: the one in it, that for every reader, or what there is; "" for none.
func (t Texts) in(page, language string) string {
	text := cmp.Or(t[page][language], t[page][""])
	if languages := slices.Sorted(maps.Keys(t[page])); text == "" && len(languages) > 0 {
		return t[page][languages[0]]
	}
	return text
}

// says reports whether the operator says something on a page.
func (c Config) says(page string) bool {
	return len(c.Texts[page]) > 0 || page == "contact" && c.Contact+c.GrievanceOfficer != ""
}

// Written are the pages on which the operator says something.
func (c Config) Written() (pages []string) {
	for _, page := range TextPages {
		if c.says(page) {
			pages = append(pages, page)
		}
	}
	return pages
}

func (s *Web) contact(r *http.Request) (view, error) {
	return s.contactWith(r, nil)
}

// contactWith is the page with the form that was refused; f is nil for none.
func (s *Web) contactWith(r *http.Request, f *sent) (view, error) {
	v, err := s.textView(r, "contact", "Contact", "How to reach the operator of this node.")
	v.Body = all{v.Body, complaintFields(f)}
	return v, err
}

func (s *Web) terms(r *http.Request) (view, error) {
	return s.textView(r, "terms", "Terms", "On what terms this node may be used.")
}

func (s *Web) privacy(r *http.Request) (view, error) {
	return s.textView(r, "privacy", "Privacy", "What the operator of this node says about personal data.")
}

func (s *Web) textView(r *http.Request, page, title, about string) (view, error) {
	return view{Title: tr(r.Context(), title), Description: tr(r.Context(), about), Body: textPage(s, page, title)}, bare(r)
}

// operatorText shows a text of the operator: what follows a line that begins with # is a section.
func operatorText(ctx context.Context, text string) templ.Component {
	var all []templ.Component
	var body strings.Builder
	end := func() {
		if part := strings.TrimSpace(body.String()); part != "" {
			all = append(all, userText(part))
		}
		body.Reset()
	}
	for line := range strings.Lines(text) {
		name := strings.TrimLeft(line, "#")
		if level := len(line) - len(name); level == 0 || level > 6 || !strings.HasPrefix(name, " ") {
			body.WriteString(line)
			continue
		}
		end()
		all = append(all, in(`h2 lang="" dir="auto"`, strings.TrimSpace(name)))
	}
	end()
	return inside(`section class="prose"`, all...)
}

// readerText is the text of a page for the reader.
func (s *Web) readerText(ctx context.Context, page string) string {
	return s.Texts.in(page, words.Of(ctx).Code)
}

// textPage is a page whose text the operator writes; its name is a key.
func textPage(s *Web, page, name string) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		shown := all{inside(`div class="lead"`, title(name), when(!s.says(page), para("The operator of this node has not written anything here.")))}
		if text := s.readerText(ctx, page); text != "" {
			shown = append(shown, operatorText(ctx, text))
		}
		if page != "contact" {
			return shown
		}
		return append(shown,
			when(s.GrievanceOfficer != "", titled("grievance", "Grievance officer", userText(s.GrievanceOfficer))),
			when(s.Contact != "", titled("security", "Vulnerabilities",
				para("Faults that endanger others are reported to %s.", linkText("", s.Contact, strings.TrimPrefix(s.Contact, "mailto:"))))),
			titled("reports", "Posts", para("A post is reported with the form on its own page; what was hidden and why is in the %s.",
				link("/moderation", "moderation log"))))
	})
}
