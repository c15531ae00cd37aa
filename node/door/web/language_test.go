package web_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	pagewords "stoa/node/door/web/words"
	"stoa/node/nodetest"
	"stoa/protocol/must"
)

// untranslated are the pages whose texts are not in the catalogue yet. To take one off: show its texts by
// tr and say, add them to node/door/web/words/hi.json, and delete its line here.
var untranslated = []string{}

// readAttributes are the attributes that people read or hear.
var readAttributes = []string{"aria-label", "aria-description", "title", "placeholder", "alt"}

// unwrapped returns the texts of a page that no catalogue has had: in the pseudo language every text of the
// interface is between ⟦ and ⟧. What people wrote has lang="", and names and code have translate="no" or their
// element.
func unwrapped(page *html.Node, path string) (found []string) {
	subject := strings.HasPrefix(path, "/board/") || strings.HasPrefix(path, "/@") && strings.Count(path, "/") == 1 // in the title
	depth := 0
	letters := func(text string) bool {
		for _, r := range text {
			switch {
			case r == '⟦':
				depth++
			case r == '⟧':
				depth--
			case depth == 0 && unicode.IsLetter(r):
				return true
			}
		}
		return false
	}
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch n.Type {
		case html.TextNode:
			if letters(n.Data) {
				found = append(found, strings.TrimSpace(n.Data))
				depth = 0
			}
			return
		case html.ElementNode:
			if n.Data == "title" {
				title := strings.TrimSuffix(n.FirstChild.Data, "Stoa of Bengaluru") // the name of the node
				if !subject && letters(title) {
					found = append(found, title)
				}
				return
			}
			if n.Data == "link" { // names of formats
				return
			}
			own := nodetest.Has(n, "lang") && nodetest.Attr(n, "lang") == "" && n.Data != "html" || nodetest.Attr(n, "translate") == "no" ||
				nodetest.TextOf(n) != "" && (nodetest.TextOf(n) == nodetest.Attr(n, "href") || nodetest.TextOf(n) == nodetest.Attr(n, "value"))
			if own || slices.Contains([]string{"script", "style", "code", "pre", "bdi", "textarea"}, n.Data) {
				return
			}
			for _, a := range n.Attr {
				if name := nodetest.Attr(n, "name"); a.Key == "content" && !subject && (name == "description" || nodetest.Attr(n, "property") == "og:description") ||
					slices.Contains(readAttributes, a.Key) {
					if !strings.HasPrefix(a.Val, "⟦") && letters(a.Val) {
						found = append(found, a.Key+"="+a.Val)
					}
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(page)
	return found
}

// TestTranslated shows every page of a filled node in the pseudo language: no text of the interface is left
// in English.
func TestTranslated(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.Web.Words = pagewords.NewSet(pagewords.Pseudo())
	met, postID := map[string]bool{}, regexp.MustCompile(`post_[0-9a-z]{26}`)
	see := func(path string, headers ...string) (links []string) {
		a := w.Ask("GET", path, "", append(headers, "Accept", nodetest.Accept)...)
		page := must.Get(html.ParseWithOptions(strings.NewReader(a.Body.String()), html.ParseOptionEnableScripting(false)))(t)
		d := &nodetest.Page{Root: page}
		found := unwrapped(page, path)
		path = postID.ReplaceAllString(path, "{id}")
		met[path] = true
		if slices.Contains(untranslated, path) {
			if len(found) == 0 {
				t.Errorf("%s is translated: take it off the list", path)
			}
		} else if len(found) > 0 {
			t.Errorf("%s has texts that no catalogue has:\n\t%s", path, strings.Join(found, "\n\t"))
		}
		for _, link := range d.All("a") {
			path, _, _ := strings.Cut(nodetest.Attr(link, "href"), "?")
			if path, _, _ = strings.Cut(path, "#"); strings.HasPrefix(path, "/account") {
				links = append(links, path)
			}
		}
		return links
	}
	for _, path := range w.public {
		see(path)
	}
	queue, seen := []string{"/account"}, map[string]bool{}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if !seen[path] && !strings.Contains(path, "export") && !strings.Contains(path, "archive") && !strings.Contains(path, ".csv") {
			seen[path] = true
			queue = append(queue, see(path, "Cookie", "stoa_session="+w.cookie)...)
		}
	}
	require.Greater(t, len(seen), 5)
	for _, path := range []string{"", "/queue", "/peers", "/blocks", "/health", "/jobs", "/numbers", "/audit"} {
		see("/account/node"+path, "Cookie", "stoa_session="+w.kiran)
	}
	for _, path := range untranslated {
		require.True(t, met[path], "%s is no page", path)
	}
}

// TestLanguage is about how a reader gets a language: by Accept-Language, and by the switch, which returns to
// the page. Kept pages are kept in each.
func TestLanguage(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	lang := func(headers ...string) string {
		t.Helper()
		a := h.Ask("GET", "/board?kind=offer", "", append(headers, "Accept", nodetest.Accept)...).Is(200)
		page := must.Get(html.Parse(strings.NewReader(a.Body.String())))(t)
		d := &nodetest.Page{Root: page}
		code := nodetest.Attr(d.All("html")[0], "lang")
		require.Equal(t, code, a.Header().Get("Content-Language"))
		require.Subset(t, a.Header().Values("Vary"), []string{"Accept", "Accept-Language", "Cookie"})
		require.Equal(t, "/board?kind=offer", nodetest.Attr(d.Find("input", "name", "to"), "value"), "the switch returns here")
		require.Equal(t, 304, h.Ask("GET", "/board?kind=offer", "", append(headers, "Accept", nodetest.Accept, "If-None-Match", a.Header().Get("ETag"))...).Code)
		return code
	}
	for range 2 { // the second time from what is kept
		require.Equal(t, "en", lang())
		require.Equal(t, "hi", lang("Accept-Language", "hi-IN,hi;q=0.9,en;q=0.8"))
		require.Equal(t, "en", lang("Accept-Language", "fr"))
		require.Equal(t, "hi", lang("Accept-Language", "en", "Cookie", "stoa_language=hi"))
		require.Equal(t, "en", lang("Accept-Language", "hi", "Cookie", "stoa_language=en; other=1"))
	}
	choose := func(form, site string) nodetest.Answer {
		return h.Ask("POST", "/language", form, "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", site, "Accept", nodetest.Accept)
	}
	a := choose("language=hi&to=%2Fboard%3Fkind%3Doffer", "same-origin")
	require.Equal(t, http.StatusSeeOther, a.Code)
	require.Equal(t, "/board?kind=offer", a.Header().Get("Location"))
	require.Contains(t, a.Header().Get("Set-Cookie"), "stoa_language=hi; Path=/; Max-Age=34560000; HttpOnly")
	for _, to := range []string{"", "https://example.org/", "//example.org/x", `/\example.org`, "javascript:alert(1)", "/%09/example.org\n"} {
		a := choose("language=hi&to="+strings.NewReplacer("%", "%25", "\n", "%0A").Replace(to), "same-origin")
		require.Equal(t, http.StatusSeeOther, a.Code, to)
		require.True(t, a.Header().Get("Location") == "/" || strings.HasPrefix(a.Header().Get("Location"), "/%09"), "%s: %s", to, a.Header().Get("Location"))
	}
	require.Equal(t, 400, choose("language=xx&to=%2F", "same-origin").Code)
	require.Equal(t, 403, choose("language=hi&to=%2F", "cross-site").Code)
	require.Equal(t, 200, h.Ask("GET", "/api/public/board", "", "Accept-Language", "hi").Code)
	require.Empty(t, h.Ask("GET", "/api/public/board", "", "Accept-Language", "hi").Header().Get("Content-Language"), "data has no language")
}
