package web_test

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"stoa/node/nodetest"
)

func TestZZHindi(t *testing.T) {
	if os.Getenv("LOOKDIR") == "" {
		t.Skip()
	}
	w := newTown(t)
	b := nodetest.OpenBrowser(t, w.Base)
	do(b, chromedp.EmulateViewport(1440, 900))
	seen := map[string]bool{}
	check := func(path string) {
		b.Open(path)
		inHindi(b, true)
		b.Open(path)
		for _, s := range nodetest.Look[[]string](b, `(() => { const out = []; const w = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
			while (w.nextNode()) { const e = w.currentNode.parentElement; if (e.closest("script, style, pre, code, [lang=''], [translate=no], bdi, textarea, .said")) continue;
			const s = w.currentNode.data.trim(); if (/[A-Za-z]{3,} [A-Za-z]{2,}/.test(s)) out.push(e.tagName + ": " + s); } return out; })()`) {
			if !seen[s] {
				seen[s] = true
				t.Log(path, s)
			}
		}
	}
	for _, p := range w.public {
		check(p)
	}
	signedIn(b, w.cookie)
	accountPages(b, check)
	signedIn(b, w.kiran)
	accountPages(b, check)
}
