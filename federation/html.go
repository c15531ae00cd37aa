package federation

import (
	"strings"

	"golang.org/x/net/html"
)

// plainText is the readable text of a post's HTML: paragraphs and list items on
// separate lines, the address of a link after a text that differs from it (so that
// a link cannot misrepresent its target), without scripts and styles. Leading
// mentions, which fediverse software adds, are dropped.
func plainText(content string) string {
	t := &texter{tokens: html.NewTokenizer(strings.NewReader(content)), leading: true}
	for {
		switch t.tokens.Next() {
		case html.ErrorToken:
			t.closeLink()
			return strings.TrimSpace(t.out.String())
		case html.TextToken:
			t.text(string(t.tokens.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			t.start()
		case html.EndTagToken:
			name, _ := t.tokens.TagName()
			t.end(string(name))
		}
	}
}

type texter struct {
	tokens  *html.Tokenizer
	out     strings.Builder
	skip    string // inside script, style, …: until its end tag
	href    string // of the current link
	mention bool   // the current link is a mention or a hashtag
	link    strings.Builder
	leading bool // only mentions so far
}

func (t *texter) text(s string) {
	if t.skip != "" {
		return
	}
	s = html.UnescapeString(s)
	if t.href != "" {
		t.link.WriteString(s)
		return
	}
	s = strings.Join(strings.Split(strings.ReplaceAll(s, "\r", ""), "\n"), " ")
	if t.leading && strings.Trim(s, " ,\u00a0") == "" {
		return
	}
	t.leading = false
	t.out.WriteString(s)
}

func (t *texter) start() {
	name, more := t.tokens.TagName()
	switch string(name) {
	case "script", "style", "noscript", "template", "iframe", "svg", "math", "head", "title", "textarea", "select", "object":
		if t.skip == "" {
			t.skip = string(name)
		}
	case "br":
		t.line("\n")
	case "p", "div", "blockquote", "ul", "ol", "pre", "h1", "h2", "h3", "h4", "h5", "h6":
		t.line("\n\n")
	case "li":
		t.line("\n")
	case "a":
		t.closeLink()
		for more {
			var key, value []byte
			key, value, more = t.tokens.TagAttr()
			switch string(key) {
			case "href":
				t.href = string(value)
			case "class":
				t.mention = strings.Contains(string(value), "mention") || strings.Contains(string(value), "hashtag")
			}
		}
	}
}

func (t *texter) end(name string) {
	switch {
	case name == t.skip:
		t.skip = ""
	case name == "a":
		t.closeLink()
	case name == "p" || name == "blockquote" || name == "div":
		t.line("\n\n")
	}
}

// line ends a line or paragraph; consecutive ends count as one.
func (t *texter) line(sep string) {
	if t.skip != "" || t.leading || t.href != "" {
		return
	}
	if s := t.out.String(); strings.HasSuffix(s, "\n\n") || sep == "\n" && strings.HasSuffix(s, "\n") {
		return
	} else if strings.HasSuffix(s, "\n") {
		sep = "\n"
	}
	t.out.WriteString(sep)
}

func (t *texter) closeLink() {
	if t.href == "" {
		return
	}
	text := strings.TrimSpace(t.link.String())
	href := t.href
	mention := t.mention
	t.href, t.mention = "", false
	t.link.Reset()
	if t.leading && mention && strings.HasPrefix(text, "@") {
		return
	}
	t.leading = false
	t.out.WriteString(text)
	web := strings.HasPrefix(href, "https://") || strings.HasPrefix(href, "http://")
	if web && !mention && text != href {
		if text != "" {
			t.out.WriteString(" ")
		}
		t.out.WriteString("(" + href + ")")
	}
}
