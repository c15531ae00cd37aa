package web_test

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
)

func alternate(d *nodetest.Page, media string) string {
	for _, n := range d.All("link") {
		if nodetest.Attr(n, "rel") == "alternate" && nodetest.Attr(n, "type") == media {
			return nodetest.Attr(n, "href")
		}
	}
	return ""
}

func hrefs(d *nodetest.Page) (all []string) {
	for _, a := range d.All("a") {
		all = append(all, nodetest.Attr(a, "href"))
	}
	return all
}

// items are the headings of what a listing lists.
func listItems(d *nodetest.Page) []string {
	titles := []string{}
	for _, card := range d.All("article") {
		for c := range card.Descendants() {
			if c.Data == "h2" {
				titles = append(titles, nodetest.TextOf(c))
			}
		}
	}
	return titles
}

// values are what the page's forms were sent with.
func values(d *nodetest.Page) (all []string) {
	for _, n := range d.All("input", "option") {
		kind := nodetest.Attr(n, "type")
		chosen := n.Data == "option" && nodetest.Has(n, "selected") || kind == "checkbox" && nodetest.Has(n, "checked") || kind == "search"
		if v := nodetest.Attr(n, "value"); chosen && v != "" {
			all = append(all, v)
		}
	}
	return all
}

// internal are the paths on this node that the page leads to or loads.
func internal(d *nodetest.Page, base string) (paths []string) {
	for _, n := range d.Nodes() {
		for _, key := range []string{"href", "src", "action"} {
			target, _, _ := strings.Cut(strings.TrimPrefix(nodetest.Attr(n, key), base), "#")
			if strings.HasPrefix(target, "/") {
				paths = append(paths, target)
			}
		}
	}
	return paths
}

// harmless checks that nothing on the page runs but files of ours, that all it
// loads is ours, and that links to elsewhere are over http and vouched for by nobody.
// Only a form with a proof of work writes, and those of the page to sign in.
func harmless(d *nodetest.Page, base string) {
	d.T.Helper()
	require.Empty(d.T, d.All("style", "iframe", "object", "embed", "base", "svg"), d.Path)
	for _, n := range d.Nodes() {
		for _, a := range n.Attr {
			require.False(d.T, strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc", "%s: attribute %s", d.Path, a.Key)
		}
		ours := func(u string) bool {
			return strings.HasPrefix(u, "/") && !strings.HasPrefix(u, "//") || strings.HasPrefix(u, "#") || strings.HasPrefix(u, base+"/")
		}
		switch n.Data {
		case "img":
			require.True(d.T, ours(nodetest.Attr(n, "src")), d.Path)
		case "form":
			require.True(d.T, ours(nodetest.Attr(n, "action")), d.Path)
			require.True(d.T, nodetest.Attr(n, "method") == "get" || nodetest.Has(n, "data-proof") || nodetest.Attr(n, "action") == "/language" ||
				slices.Contains([]string{"/sign-in", "/join"}, d.Path) || nodetest.Attr(n, "id") == "delete",
				"%s: a form that writes", d.Path)
		case "script":
			file := ours(nodetest.Attr(n, "src")) && nodetest.TextOf(n) == ""
			require.True(d.T, file || nodetest.Attr(n, "type") == "application/ld+json", "%s: a script that is no file of ours", d.Path)
		case "link":
			if rel := nodetest.Attr(n, "rel"); rel == "stylesheet" || rel == "icon" {
				require.True(d.T, ours(nodetest.Attr(n, "href")), d.Path)
			}
		case "a":
			if href := nodetest.Attr(n, "href"); !ours(href) && !strings.HasPrefix(href, "tel:+") {
				require.True(d.T, strings.HasPrefix(href, "http://") || strings.HasPrefix(href, "https://"), "%s: link to %s", d.Path, href)
				require.Equal(d.T, "nofollow noopener noreferrer ugc", nodetest.Attr(n, "rel"), "%s: link to %s", d.Path, href)
			}
		}
	}
}
