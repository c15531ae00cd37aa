package web_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
)

// longLines are the lines of text on a page that have more than 75 characters, other than code and fields.
const longLines = `(() => {
	const long = [], range = document.createRange();
	for (const e of document.querySelectorAll("main p, main li, main dd, main .text")) {
		if (!e.checkVisibility() || e.closest("pre, code, .meta, .crumbs, nav, table, .feed, .row")) continue;
		const lines = new Map();
		const texts = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
		while (texts.nextNode()) {
			const node = texts.currentNode;
			if (!node.parentElement.checkVisibility()) continue;
			for (const word of node.data.matchAll(/\S+\s?/g)) {
				range.setStart(node, word.index);
				range.setEnd(node, word.index + word[0].length);
				const top = Math.round(range.getBoundingClientRect().top / 8);
				lines.set(top, (lines.get(top) ?? "") + word[0]);
			}
		}
		for (const line of lines.values()) if (line.trim().length > 75) long.push(line);
	}
	return long;
})()`

// TestBrowser_Wide: on a desk and on a very wide screen lists have columns that use the width, pages of an account have theirs next to
// their navigation, and no line of text is longer than can be read.
func TestBrowser_Wide(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	for i := range 5 {
		w.Business(strings.Repeat("s", i+1)+"-shop", "")
		w.Hosted(strings.Repeat("p", i+1) + "-person")
	}
	b := nodetest.OpenBrowser(t, w.Base)
	signedIn(b, w.cookie)
	columns := func(selector string) int {
		return nodetest.Look[int](b, `new Set([...document.querySelectorAll(`+nodetest.Quoted(selector)+`)]
			.map(e => Math.round(e.getBoundingClientRect().left))).size`)
	}
	for _, size := range []struct{ width, height int64 }{{1440, 900}, {2560, 1440}} {
		do(b, chromedp.EmulateViewport(size.width, size.height))
		for path, items := range map[string]string{
			"/board": "main > .posts > *", "/feed": "main > .feed > *", "/merchants": ".list > .card", "/agents": ".list > .card",
			"/account": "main > section li > a, .rooms", "/@rao-tiffins": ".profile > *", "/moderation": "main", "/privacy": "main", "/terms": "main",
			"/how-we-know": "main", "/account/attention?handle=asha": ".rooms, main > section", "/@asha": ".profile > *", "/@asha/meet": ".columns > *",
		} {
			b.Open(path)
			n := columns(items)
			least := 2
			if items == "main" {
				least = 1
			} else if size.width > 2000 && strings.Contains(items, "> *") && !strings.Contains(items, "profile") && !strings.Contains(items, "columns") {
				least = 3
			}
			require.GreaterOrEqual(t, n, least, "%s at %d: columns of %s", path, size.width, items)
			require.LessOrEqual(t, nodetest.Look[int](b, "document.documentElement.scrollWidth"), int(size.width), path)
			if least > 1 && !slices.Contains([]string{"/@asha", "/@asha/meet"}, path) {
				used := nodetest.Look[int](b, `document.querySelector("main").getBoundingClientRect().width`)
				require.Greater(t, float64(used)/float64(size.width), 0.7, path)
			}
			if strings.HasPrefix(path, "/account") {
				apart := `document.querySelector(".rooms").getBoundingClientRect().right < document.querySelector("h1").getBoundingClientRect().left`
				require.True(t, nodetest.Look[bool](b, apart), "%s at %d: the navigation is next to the page", path, size.width)
			}
			require.Empty(t, nodetest.Look[[]string](b, longLines), "%s at %d", path, size.width)
		}
	}
}
