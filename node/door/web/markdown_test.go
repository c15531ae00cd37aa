package web_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
)

// TestMarkdown: every public page is Markdown too, for a client that names it and at an address that the page
// and its Link field name; what others wrote is in quotes.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	evil := "Sold out\n---\n# Heading\n</main><script>alert(1)</script>\n[pay](javascript:alert(1)) > not a quote"
	a := w.Ask("POST", "/api/public/board", string(nodetest.Encoded(map[string]string{"kind": "offer", "title": "# Title of an attacker", "body": evil})),
		"Proof-Of-Work", w.Proof("board")).Is(201)
	var bad struct{ ID string }
	a.Into(&bad)
	read := func(path, accept string) string {
		t.Helper()
		a := w.Ask("GET", path, "", "Accept", accept)
		require.Equal(t, 200, a.Code, "%s: %s", path, a.Body)
		require.Equal(t, "text/markdown; charset=utf-8", a.Header().Get("Content-Type"), path)
		require.Contains(t, a.Header().Values("Vary"), "Accept", path)
		require.NotEmpty(t, a.Header().Get("ETag"))
		return a.Body.String()
	}
	seen := 0
	for _, path := range append(w.public, "/board/"+bad.ID, "/board?kind=offer&limit=5") {
		page := w.Ask("GET", path, "", "Accept", nodetest.Accept)
		if path == "/sign-in" || page.Code != 200 {
			continue
		}
		seen++
		require.Equal(t, "text/html; charset=utf-8", page.Header().Get("Content-Type"))
		d := nodetest.ParsePage(t, path, page.Body.String())
		twin := strings.TrimPrefix(alternate(d, "text/markdown"), w.Base)
		require.NotEmpty(t, twin, path)
		require.Contains(t, strings.Join(page.Header().Values("Link"), ", "), "<"+w.Base+twin+`>; rel="alternate"; type="text/markdown"`)
		require.Contains(t, hrefs(d), twin, "a link in the footer")

		text := read(path, "text/markdown, text/html;q=0.9, */*;q=0.1")
		require.Equal(t, text, read(twin, nodetest.Accept), "at its own address for anyone")
		front, rest, found := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
		require.True(t, found, path)
		facts := map[string]any{}
		for line := range strings.SplitSeq(front, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			var v any
			require.NoError(t, json.Unmarshal([]byte(value), &v), line)
			facts[name] = v
		}
		require.Equal(t, nodetest.TextOf(d.All("title")[0]), facts["title"], path)
		require.Equal(t, true, facts["untrusted_content"])
		if twin := alternate(d, "application/json"); twin != "" {
			require.Equal(t, twin, facts["json"])
		}
		require.Contains(t, rest, "# ", "it has headings")
		require.NotContains(t, rest, "](/", "links are absolute")
		require.NotRegexp(t, `[^\\]\]\(javascript:`, rest)
		for line := range strings.SplitSeq(rest, "\n") {
			require.NotContains(t, []string{"---", "===", "# Heading"}, line)
		}
		var current struct{ Markdown string }
		got := w.Ask("GET", "/api/public/page?format=markdown&path="+url.QueryEscape(path), "").Is(200)
		got.Into(&current)
		require.Equal(t, rest, strings.SplitN(strings.TrimPrefix(current.Markdown, "---\n"), "\n---\n", 2)[1], "and as a tool gives it")
	}
	require.Greater(t, seen, 15)
	text := read("/board/"+bad.ID, "text/markdown")
	require.Contains(t, text, "> # \\# Title of an attacker\n")
	require.Contains(t, text, "\\[pay\\]")
	require.Contains(t, text, "`post_to_board`, over HTTP `POST /api/public/board`")
	require.Contains(t, read("/@rao-tiffins.md", "text/html"), "Opening hours")
	for accept, media := range map[string]string{
		"*/*": "text/html", "text/html, text/markdown;q=0.5": "text/html", "text/markdown": "text/markdown", "text/*": "text/html",
		"text/markdown;q=0.5, text/html;q=0.4": "text/markdown", "text/markdown;q=0, text/html": "text/html",
	} {
		a := w.Ask("GET", "/board", "", "Accept", accept)
		require.Equal(t, media+"; charset=utf-8", a.Header().Get("Content-Type"), accept)
	}
	require.Equal(t, 303, w.Ask("GET", "/board", "", "Accept", "application/json, text/markdown;q=0.9").Code)
	for _, path := range []string{"/nothing.md", "/@nobody.md", "/board/post_x.md", "/problems/none.md", "/.md"} {
		require.Equal(t, 404, w.Ask("GET", path, "", "Accept", "text/markdown").Code, path)
	}
	require.Equal(t, 422, w.Ask("GET", "/board.md?kind=rumour", "", "Accept", "text/markdown").Code)
	require.Equal(t, "/@asha.md", w.Ask("GET", "/@Asha.md", "").Header().Get("Location"))
	require.Equal(t, 304, w.Ask("GET", "/board.md", "", "If-None-Match", w.Ask("GET", "/board.md", "").Header().Get("ETag")).Code)
}
