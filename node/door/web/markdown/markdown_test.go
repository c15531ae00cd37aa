package markdown

import (
	"bytes"
	"html"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	gtext "github.com/yuin/goldmark/text"
)

var from = Page{Base: "https://node.example", Address: "https://node.example/board"}

func written(t testing.TB, body string) string {
	t.Helper()
	text, err := From([]byte(body), from)
	require.NoError(t, err)
	return strings.TrimSuffix(text, "\n")
}

func TestFrom(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`<h1>Board</h1><p>New  and
			old.</p>`: "# Board\n\nNew and old.",
		`<p><a href="/feed">Feed</a>, <a href="#a">here</a>, <a href="tel:+91805">call</a></p>`: "[Feed](https://node.example/feed), " +
			"[here](https://node.example/board#a), [call](tel:+91805)",
		`<a href="javascript:alert(1)">a</a> <a href="//evil.example">b</a> <a href="https://x.example/a(b) c">c</a>`: "a b [c](https://x.example/a%28b%29%20c)",
		`<ul><li>One</li><li>Two <strong>now</strong></li></ul><ol><li>A<ul><li>B</li></ul></li></ol>`:                "- One\n- Two **now**\n\n1. A\n\n   - B",
		`<p class="meta"><span>Offer</span> <time datetime="2026-11-23T10:00:00Z">today</time></p>`:                   "Offer · 2026-11-23T10:00:00Z",
		`<dl><div><dt>Where</dt><dd>Bengaluru</dd></div></dl>`:                                                        "- **Where:** Bengaluru",
		`<pre><code>a  b
  c</code></pre>`: "```\na  b\n  c\n```",
		`<details><summary>More</summary><p>x</p></details>`: "**More**\n\nx",
		`<div class="said"><h2 lang=""><a href="/x">T</a></h2><div lang="">a<br>b</div></div><p>by <bdi lang="">Kim</bdi></p>`: "> " + Label +
			"\n>\n> ## [T](https://node.example/x)\n>\n> a  \n> b\n\nby “Kim”",
		`<script>a</script><noscript>b</noscript><p hidden>c</p><form method="post"><input name="x"></form><p>d</p>`: "d",
	} {
		require.Equal(t, want, written(t, body))
	}
}

// hostile are texts that would be something else than text in Markdown.
var hostile = []string{
	"# A heading", "Title\n===", "Title\n---", "---", "***", "```\ncode", "~~~", "    code", "> quote",
	"- item", "+ item", "* item", "1. item", "2) item", "&lt;b&gt;",
	"<script>alert(1)</script>", "<!-- -->", "[a](javascript:alert(1))", "![i](https://evil.example/i)",
	"[a]: https://evil.example", "`code`", "| a | b |\n|---|---|",
	"\u202eevil\u202c", "a\u200b#\u200b b", "*" + Label + "*", "\\# a", "&#35; a", "a\r\n# b",
	"a\u2028# b", "a\u0085# b", "\t# b", "<https://evil.example>", "$x$", "{#id}",
}

// TestFrom_Hostile: what others wrote never leaves its quote, and is text there, as another reader of CommonMark
// with GitHub's extensions sees it.
func TestFrom_Hostile(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		for _, line := range []string{"\n", "<br>"} {
			said := strings.ReplaceAll(html.EscapeString(text), "\n", line)
			got := written(t, `<p>before</p><div class="said"><div class="text" lang="">`+said+`</div></div><p>after</p>`)
			require.Equal(t, []string{"Paragraph", "Blockquote(Paragraph(Emphasis) Paragraph)", "Paragraph"}, outline(got), got)
			require.NotRegexp(t, "[\u200b\u202a-\u202e\u2028\u2029\u0085]", got)
			harmless(t, text)
		}
	}
}

// outline returns the blocks of a text, each with what it holds but for text and line breaks.
func outline(text string) (blocks []string) {
	parsed := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList, extension.Footnote, extension.DefinitionList)).
		Parser().Parse(gtext.NewReader([]byte(text)))
	var name func(n ast.Node) string
	name = func(n ast.Node) string {
		var within []string
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if c.Kind() != ast.KindText {
				within = append(within, name(c))
			}
		}
		if within == nil {
			return n.Kind().String()
		}
		return n.Kind().String() + "(" + strings.Join(within, " ") + ")"
	}
	for n := parsed.FirstChild(); n != nil; n = n.NextSibling() {
		blocks = append(blocks, name(n))
	}
	return blocks
}

// harmless checks that an escaped text is one paragraph with the text in it.
func harmless(t testing.TB, text string) {
	t.Helper()
	escaped := tidy(Escape(text))
	if escaped == "" {
		return
	}
	require.Equal(t, []string{"Paragraph"}, outline(escaped), "%q", escaped)
	var shown bytes.Buffer
	require.NoError(t, goldmark.Convert([]byte(escaped), &shown))
	inside := strings.TrimSuffix(strings.TrimPrefix(shown.String(), "<p>"), "</p>\n")
	require.Equal(t, Plain(text), html.UnescapeString(inside))
}

func FuzzEscape(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if utf8.ValidString(text) {
			harmless(t, text)
		}
	})
}
