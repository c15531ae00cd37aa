package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"stoa/node/door/web/markdown"
	"stoa/node/door/web/words"
	"stoa/protocol"
)

// Each page is also Markdown (RFC 7763): at its own address for a client that names text/markdown, and at the
// address with .md at its end. It is made of the page's HTML.

const (
	markdownMedia  = "text/markdown"
	markdownEnding = ".md"
)

// inMarkdown returns the path at which a page is Markdown: /index.md for /.
func inMarkdown(path string) string {
	if path == "/" {
		return "/index" + markdownEnding
	}
	return path + markdownEnding
}

// withoutEnding returns the request of the page that a path with .md is about, and that ending; "" for another path.
func withoutEnding(r *http.Request) (of *http.Request, ending string) {
	path, found := strings.CutSuffix(r.URL.Path, markdownEnding)
	if !found {
		return r, ""
	}
	of = r.Clone(r.Context())
	of.URL.Path, of.URL.RawPath = path, ""
	if path == "/index" {
		of.URL.Path = "/"
	}
	for _, name := range []string{"at", "id", "code"} {
		of.SetPathValue(name, strings.TrimSuffix(r.PathValue(name), markdownEnding))
	}
	return of, markdownEnding
}

// likesMarkdown reports whether a client names Markdown, and likes it as much as HTML.
func likesMarkdown(r *http.Request) bool {
	likes := r.Header.Get("Accept")
	html, _ := quality(likes, "text/html")
	q, named := quality(likes, markdownMedia)
	return named && q > 0 && q >= html
}

// markdown writes a page as Markdown, after a front part of YAML (JSON strings are such).
func (s *Web) markdown(ctx context.Context, v view, to *bytes.Buffer) error {
	var b bytes.Buffer
	if err := v.Body.Render(ctx, &b); err != nil {
		return err
	}
	address := cmp.Or(v.Address, s.Base+v.Start)
	text, err := markdown.From(b.Bytes(), markdown.Page{Base: s.Base, Address: address, Form: s.formInWords})
	if err != nil {
		return err
	}
	to.WriteString("---\n")
	for _, x := range [][2]string{{"title", markdown.Plain(v.heading(s))}, {"url", address}, {"json", v.JSON}, {"language", words.Of(ctx).Code}} {
		if x[1] != "" {
			value, err := json.Marshal(x[1])
			if err != nil {
				return err
			}
			fmt.Fprintf(to, "%s: %s\n", x[0], value)
		}
	}
	to.WriteString("untrusted_content: true\n---\n\n" + text)
	return nil
}

// formInWords says in place of a form how a program does the same.
func (s *Web) formInWords(f markdown.Form) string {
	if f.Get {
		if len(f.Fields) == 0 {
			return ""
		}
		return "*To select, add to the address:* `" + s.Base + f.Action + "?" + strings.Join(f.Fields, "=…&") + "=…`"
	}
	var ways []string
	for _, do := range f.Do {
		if op := protocol.Lookup(do); op != nil && op.Doors&protocol.HTTP != 0 {
			ways = append(ways, "`"+op.Name+"`, over HTTP `"+op.HTTP.Method+" "+op.HTTP.Path+"`")
		}
	}
	if len(ways) == 0 {
		return ""
	}
	return "*A form for people is here. For programs:* " + strings.Join(ways, "; or ") + ". See [the skill description](" + s.Base + "/SKILL.md)."
}
