package node

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// pageDoc is a parsed page.
type pageDoc struct {
	t    testing.TB
	path string
	raw  string
	root *html.Node
}

func parsePage(t testing.TB, path, raw string) *pageDoc {
	t.Helper()
	root, err := html.Parse(strings.NewReader(raw))
	require.NoError(t, err)
	return &pageDoc{t, path, raw, root}
}

func (d *pageDoc) nodes() (all []*html.Node) {
	for n := range d.root.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return all
}

// all returns the elements of one of the names, in order.
func (d *pageDoc) all(names ...string) (found []*html.Node) {
	for _, n := range d.nodes() {
		for _, name := range names {
			if n.Data == name {
				found = append(found, n)
			}
		}
	}
	return found
}

// find returns the first element of a name whose attribute has the value, nil
// when there is none.
func (d *pageDoc) find(name, key, value string) *html.Node {
	for _, n := range d.all(name) {
		if attr(n, key) == value {
			return n
		}
	}
	return nil
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, key string) bool {
	for _, a := range n.Attr {
		if a.Key == key {
			return true
		}
	}
	return false
}

func textOf(n *html.Node) string {
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

func (d *pageDoc) text() string { return textOf(d.root) }

func (d *pageDoc) alternate(media string) string {
	for _, n := range d.all("link") {
		if attr(n, "rel") == "alternate" && attr(n, "type") == media {
			return attr(n, "href")
		}
	}
	return ""
}

func (d *pageDoc) hrefs() (all []string) {
	for _, a := range d.all("a") {
		all = append(all, attr(a, "href"))
	}
	return all
}

// items are the headings of what a listing lists.
func (d *pageDoc) items() []string {
	titles := []string{}
	for _, card := range d.all("article") {
		for c := range card.Descendants() {
			if c.Data == "h2" {
				titles = append(titles, textOf(c))
			}
		}
	}
	return titles
}

// values are what the page's forms were sent with.
func (d *pageDoc) values() (all []string) {
	for _, n := range d.all("input", "option") {
		chosen := n.Data == "option" && has(n, "selected") || attr(n, "type") == "checkbox" && has(n, "checked") || attr(n, "type") == "search"
		if v := attr(n, "value"); chosen && v != "" {
			all = append(all, v)
		}
	}
	return all
}

// internal are the paths on this node that the page leads to or loads.
func (d *pageDoc) internal(base string) (paths []string) {
	for _, n := range d.nodes() {
		for _, key := range []string{"href", "src", "action"} {
			target, _, _ := strings.Cut(strings.TrimPrefix(attr(n, key), base), "#")
			if strings.HasPrefix(target, "/") {
				paths = append(paths, target)
			}
		}
	}
	return paths
}

var void = map[string]bool{"meta": true, "link": true, "img": true, "input": true, "br": true, "hr": true}

// wellFormed checks what a validator and a reader without eyes would: tags that
// nest, landmarks, headings in order, labels, and ids that are there once.
func (d *pageDoc) wellFormed() {
	d.t.Helper()
	require.True(d.t, strings.HasPrefix(strings.ToLower(d.raw), "<!doctype html>"), d.path)
	var open []string
	elements := 0
	for z := html.NewTokenizer(strings.NewReader(d.raw)); z.Next() != html.ErrorToken; {
		switch token := z.Token(); token.Type {
		case html.StartTagToken:
			elements++
			if !void[token.Data] {
				open = append(open, token.Data)
			}
		case html.SelfClosingTagToken:
			d.t.Errorf("%s: <%s/>", d.path, token.Data)
		case html.EndTagToken:
			require.NotEmpty(d.t, open, "%s: </%s> closes nothing", d.path, token.Data)
			require.Equal(d.t, open[len(open)-1], token.Data, "%s: tags nest", d.path)
			open = open[:len(open)-1]
		}
	}
	require.Empty(d.t, open, d.path)
	require.Len(d.t, d.nodes(), elements, "%s: the parser had to add or drop elements", d.path)

	require.Equal(d.t, "en", attr(d.all("html")[0], "lang"))
	require.NotEmpty(d.t, textOf(d.all("title")[0]))
	require.Contains(d.t, attr(d.find("meta", "name", "viewport"), "content"), "width=device-width")
	for _, name := range []string{"h1", "main", "title"} {
		require.Len(d.t, d.all(name), 1, "%s: %s", d.path, name)
	}
	require.NotNil(d.t, d.find("nav", "aria-label", "Pages"))
	require.NotNil(d.t, d.find("a", "href", "#main"), "a way past the navigation")
	require.Len(d.t, d.all("footer"), 1)
	level := 0
	for _, n := range d.all("h1", "h2", "h3", "h4") {
		now := int(n.Data[1] - '0')
		require.LessOrEqual(d.t, now, level+1, "%s: %s under a heading of level %d", d.path, n.Data, level)
		require.NotEmpty(d.t, strings.TrimSpace(textOf(n)), "%s: empty %s", d.path, n.Data)
		level = now
	}
	d.references()
	d.spaced()
	d.plain("")
}

// references checks ids, labels and the texts of links.
func (d *pageDoc) references() {
	d.t.Helper()
	ids := map[string]bool{}
	for _, n := range d.nodes() {
		if id := attr(n, "id"); id != "" {
			require.False(d.t, ids[id], "%s: id %s is there twice", d.path, id)
			ids[id] = true
		}
	}
	labelled := map[string]bool{}
	for _, n := range d.all("label") {
		labelled[attr(n, "for")] = true
	}
	for _, n := range d.nodes() {
		for _, key := range []string{"for", "aria-labelledby", "aria-describedby"} {
			if target := attr(n, key); target != "" {
				require.True(d.t, ids[target], "%s: %s=%s leads nowhere", d.path, key, target)
			}
		}
		switch n.Data {
		case "input", "select":
			require.True(d.t, attr(n, "type") == "hidden" || labelled[attr(n, "id")] && has(n, "id") || n.Parent.Data == "label", "%s: %s has no label",
				d.path, attr(n, "name"))
		case "a":
			require.NotEmpty(d.t, attr(n, "href"), "%s: a link to nothing", d.path)
			require.NotEmpty(d.t, strings.TrimSpace(textOf(n)), "%s: %s has no text", d.path, attr(n, "href"))
		case "img":
			require.True(d.t, has(n, "alt"), d.path)
		}
	}
}

// harmless checks that nothing on the page runs but files of ours, that all it
// loads is ours, and that links to elsewhere are over http and vouched for by nobody.
// Only a form with a proof of work writes, and those of the page to sign in.
func (d *pageDoc) harmless(base string) {
	d.t.Helper()
	require.Empty(d.t, d.all("style", "iframe", "object", "embed", "base", "svg"), d.path)
	for _, n := range d.nodes() {
		for _, a := range n.Attr {
			require.False(d.t, strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc", "%s: attribute %s", d.path, a.Key)
		}
		ours := func(u string) bool {
			return strings.HasPrefix(u, "/") && !strings.HasPrefix(u, "//") || strings.HasPrefix(u, "#") || strings.HasPrefix(u, base+"/")
		}
		switch n.Data {
		case "img":
			require.True(d.t, ours(attr(n, "src")), d.path)
		case "form":
			require.True(d.t, ours(attr(n, "action")), d.path)
			require.True(d.t, attr(n, "method") == "get" || has(n, "data-proof") || attr(n, "action") == "/language" || d.path == "/sign-in",
				"%s: a form that writes", d.path)
		case "script":
			require.True(d.t, ours(attr(n, "src")) && textOf(n) == "" || attr(n, "type") == "application/ld+json", "%s: a script that is no file of ours", d.path)
		case "link":
			if rel := attr(n, "rel"); rel == "stylesheet" || rel == "icon" {
				require.True(d.t, ours(attr(n, "href")), d.path)
			}
		case "a":
			if href := attr(n, "href"); !ours(href) && !strings.HasPrefix(href, "tel:+") {
				require.True(d.t, strings.HasPrefix(href, "http://") || strings.HasPrefix(href, "https://"), "%s: link to %s", d.path, href)
				require.Equal(d.t, "nofollow noopener noreferrer ugc", attr(n, "rel"), "%s: link to %s", d.path, href)
			}
		}
	}
}
