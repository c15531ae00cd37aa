package nodetest

import (
	"context"
	_ "image/png"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"stoa/protocol"
	"stoa/storage"
)

// A Page is a parsed page.
type Page struct {
	T    testing.TB
	Path string
	Raw  string
	Root *html.Node
}

// ParsePage parses the HTML of a path.
func ParsePage(t testing.TB, path, raw string) *Page {
	t.Helper()
	root, err := html.Parse(strings.NewReader(raw))
	require.NoError(t, err)
	return &Page{t, path, raw, root}
}

// Nodes lists all elements, in order.
func (d *Page) Nodes() (all []*html.Node) {
	for n := range d.Root.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return all
}

// All returns the elements of one of the names, in order.
func (d *Page) All(names ...string) (found []*html.Node) {
	for _, n := range d.Nodes() {
		for _, name := range names {
			if n.Data == name {
				found = append(found, n)
			}
		}
	}
	return found
}

// Find returns the first element of a name whose attribute has the value, nil
// when there is none.
func (d *Page) Find(name, key, value string) *html.Node {
	for _, n := range d.All(name) {
		if Attr(n, key) == value {
			return n
		}
	}
	return nil
}

// Attr is an attribute, "" where there is none.
func Attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// Has reports whether an element has an attribute.
func Has(n *html.Node, key string) bool {
	for _, a := range n.Attr {
		if a.Key == key {
			return true
		}
	}
	return false
}

// TextOf is the text in an element, with a line feed for each br.
func TextOf(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
		if c.Data == "br" {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Text is the text of the whole page.
func (d *Page) Text() string { return TextOf(d.Root) }

var void = map[string]bool{"meta": true, "link": true, "img": true, "input": true, "br": true, "hr": true}

// WellFormed checks what a validator and a reader without eyes would: tags that
// nest, landmarks, headings in order, labels, and ids that are there once.
func (d *Page) WellFormed() {
	d.T.Helper()
	require.True(d.T, strings.HasPrefix(strings.ToLower(d.Raw), "<!doctype html>"), d.Path)
	var open []string
	elements := 0
	for z := html.NewTokenizer(strings.NewReader(d.Raw)); z.Next() != html.ErrorToken; {
		switch token := z.Token(); token.Type {
		case html.StartTagToken:
			elements++
			if !void[token.Data] {
				open = append(open, token.Data)
			}
		case html.SelfClosingTagToken:
			d.T.Errorf("%s: <%s/>", d.Path, token.Data)
		case html.EndTagToken:
			require.NotEmpty(d.T, open, "%s: </%s> closes nothing", d.Path, token.Data)
			require.Equal(d.T, open[len(open)-1], token.Data, "%s: tags nest", d.Path)
			open = open[:len(open)-1]
		}
	}
	require.Empty(d.T, open, d.Path)
	require.Len(d.T, d.Nodes(), elements, "%s: the parser had to add or drop elements", d.Path)

	require.Equal(d.T, "en", Attr(d.All("html")[0], "lang"))
	require.NotEmpty(d.T, TextOf(d.All("title")[0]))
	require.Contains(d.T, Attr(d.Find("meta", "name", "viewport"), "content"), "width=device-width")
	for _, name := range []string{"h1", "main", "title"} {
		require.Len(d.T, d.All(name), 1, "%s: %s", d.Path, name)
	}
	require.NotNil(d.T, d.Find("nav", "aria-label", "Pages"))
	require.NotNil(d.T, d.Find("a", "href", "#main"), "a way past the navigation")
	require.Len(d.T, d.All("footer"), 1)
	level := 0
	for _, n := range d.All("h1", "h2", "h3", "h4") {
		now := int(n.Data[1] - '0')
		require.LessOrEqual(d.T, now, level+1, "%s: %s under a heading of level %d", d.Path, n.Data, level)
		require.NotEmpty(d.T, strings.TrimSpace(TextOf(n)), "%s: empty %s", d.Path, n.Data)
		level = now
	}
	d.references()
	d.Spaced()
	d.Plain("")
}

// references checks ids, labels and the texts of links.
func (d *Page) references() {
	d.T.Helper()
	ids := map[string]bool{}
	for _, n := range d.Nodes() {
		if id := Attr(n, "id"); id != "" {
			require.False(d.T, ids[id], "%s: id %s is there twice", d.Path, id)
			ids[id] = true
		}
	}
	labelled := map[string]bool{}
	for _, n := range d.All("label") {
		labelled[Attr(n, "for")] = true
	}
	for _, n := range d.Nodes() {
		for _, key := range []string{"for", "aria-labelledby", "aria-describedby"} {
			if target := Attr(n, key); target != "" {
				require.True(d.T, ids[target], "%s: %s=%s leads nowhere", d.Path, key, target)
			}
		}
		switch n.Data {
		case "input", "select":
			require.True(d.T, Attr(n, "type") == "hidden" || labelled[Attr(n, "id")] && Has(n, "id") || n.Parent.Data == "label", "%s: %s has no label",
				d.Path, Attr(n, "name"))
		case "a":
			require.NotEmpty(d.T, Attr(n, "href"), "%s: a link to nothing", d.Path)
			require.NotEmpty(d.T, strings.TrimSpace(TextOf(n)), "%s: %s has no text", d.Path, Attr(n, "href"))
		case "img":
			require.True(d.T, Has(n, "alt"), d.Path)
		}
	}
}

// ValuesOf are the values that a browser sends when nothing of the form is changed.
func ValuesOf(form *html.Node) url.Values {
	sent := url.Values{}
	for n := range form.Descendants() {
		name := Attr(n, "name")
		switch {
		case name == "":
		case n.Data == "textarea":
			sent.Add(name, strings.TrimPrefix(TextOf(n), "\n"))
		case n.Data == "select":
			for o := range n.Descendants() {
				if o.Data == "option" && (Has(o, "selected") || sent[name] == nil) {
					sent.Set(name, Attr(o, "value"))
				}
			}
		case n.Data == "input" && (Attr(n, "type") != "checkbox" && Attr(n, "type") != "radio" || Has(n, "checked")):
			sent.Add(name, Attr(n, "value"))
		}
	}
	return sent
}

// forPrograms matches what a fault says to programs: a JSON Pointer, a regular expression, a member of a problem document.
var forPrograms = regexp.MustCompile(`(^|[\s“(])/[a-z]\w*(/[\w-]+)*\b:?|\^\S|\\[a-z]|\[[0-9A-Za-z!]-|\bmust match\b|\{\d+(,\d*)?\}|(^|\s)errors\b`)

// Plain checks that no fault on the page speaks to programs.
func (d *Page) Plain(about string) {
	d.T.Helper()
	for _, n := range d.Nodes() {
		if Attr(n, "class") != "wrong" && Attr(n, "role") != "alert" {
			continue
		}
		if found := forPrograms.FindString(TextOf(n)); found != "" {
			d.T.Errorf("%s: %s: a fault has %q, which is for programs: %s", d.Path, about, found, TextOf(n))
		}
	}
}

// inline are the elements that begin no new line.
var inline = map[string]bool{"a": true, "strong": true, "em": true, "b": true, "i": true, "span": true, "bdi": true, "code": true, "time": true,
	"abbr": true, "small": true, "q": true}

// Spaced checks that a blank follows each sentence that another one follows in the same line.
func (d *Page) Spaced() {
	d.T.Helper()
	before := "" // the text of the line so far
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			first, _ := utf8.DecodeRuneInString(n.Data)
			if last, _ := utf8.DecodeLastRuneInString(before); before != "" && strings.ContainsRune(".!?।", last) && unicode.IsLetter(first) {
				d.T.Errorf("%s: no blank between %q and %q", d.Path, before, n.Data)
			}
			before = n.Data
		case n.Type == html.ElementNode && (n.Data == "script" || n.Data == "style"):
			return
		case n.Type == html.ElementNode && !inline[n.Data]:
			before = ""
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
		if n.Type == html.ElementNode && !inline[n.Data] {
			before = ""
		}
	}
	walk(d.Root)
}

// Alerts is what the page says first: that something is wrong, or done.
func (d *Page) Alerts() (text string) {
	for _, class := range []string{"alert", "wrong"} {
		for _, name := range []string{"div", "p"} {
			if n := d.Find(name, "class", class); n != nil {
				text += TextOf(n) + " "
			}
		}
	}
	return text
}

// Accept is what a browser sends in that field.
const Accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// Receive puts a post of another node on the board, as federation does.
func (h *House) Receive(uri string, author protocol.Author, title, body string) (id string) {
	h.T.Helper()
	require.NoError(h.T, h.DB.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
		id, err = h.Board.ReceivePost(ctx, tx, &protocol.StoredPost{
			Post: protocol.Post{ID: protocol.NewID(protocol.PostID, tx.Now), URI: uri, Kind: protocol.Announcement, Title: title, Body: body, Author: author,
				Node: author.Node, CreatedAt: tx.Now},
			Board: "https://b.example/ap/board",
		})
		return err
	}))
	return id
}
