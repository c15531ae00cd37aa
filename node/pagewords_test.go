package node

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// forPrograms matches what a fault says to programs: a JSON Pointer, a regular expression, a member of a problem document.
var forPrograms = regexp.MustCompile(`(^|[\s“(])/[a-z]\w*(/[\w-]+)*\b:?|\^\S|\\[a-z]|\[[0-9A-Za-z!]-|\bmust match\b|\{\d+(,\d*)?\}|(^|\s)errors\b`)

// plain checks that no fault on the page speaks to programs.
func (d *pageDoc) plain(about string) {
	d.t.Helper()
	for _, n := range d.nodes() {
		if attr(n, "class") != "wrong" && attr(n, "role") != "alert" {
			continue
		}
		if found := forPrograms.FindString(textOf(n)); found != "" {
			d.t.Errorf("%s: %s: a fault has %q, which is for programs: %s", d.path, about, found, textOf(n))
		}
	}
}

// inline are the elements that begin no new line.
var inline = map[string]bool{"a": true, "strong": true, "em": true, "b": true, "i": true, "span": true, "bdi": true, "code": true, "time": true,
	"abbr": true, "small": true, "q": true}

// spaced checks that a blank follows each sentence that another one follows in the same line.
func (d *pageDoc) spaced() {
	d.t.Helper()
	before := "" // the text of the line so far
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			first, _ := utf8.DecodeRuneInString(n.Data)
			if last, _ := utf8.DecodeLastRuneInString(before); before != "" && strings.ContainsRune(".!?।", last) && unicode.IsLetter(first) {
				d.t.Errorf("%s: no blank between %q and %q", d.path, before, n.Data)
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
	walk(d.root)
}
