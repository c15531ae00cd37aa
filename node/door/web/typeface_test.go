package web_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
)

// TestBrowser_Typeface: headings, text, fields and buttons have one family of faces, which has Latin and Devanagari of the large systems
// before what a system without a desktop would choose; codes alone have another one. Headings in Devanagari have room for its signs.
func TestBrowser_Typeface(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t)
	nearShop(h)
	b := nodetest.OpenBrowser(t, h.Base)
	mono := regexp.MustCompile(`^ui-monospace`)
	for _, hindi := range []bool{false, true} {
		inHindi(b, hindi)
		for _, path := range []string{"/", "/merchants", "/@rao-tiffins", "/board", "/join"} {
			require.Equal(t, 200, b.Open(path))
			var families []string
			for _, f := range nodetest.Look[[]string](b, `[...new Set([...document.body.querySelectorAll("*")].filter(e => e.checkVisibility())
				.map(e => getComputedStyle(e).fontFamily))]`) {
				if !mono.MatchString(f) {
					families = append(families, f)
				}
			}
			require.Len(t, families, 1, path)
			require.Regexp(t, `Segoe UI.*Roboto.*"Noto Sans", .*"Liberation Sans", "Noto Sans Devanagari", "Nirmala UI", .* system-ui, sans-serif$`,
				families[0])
		}
	}
	const room = `(s => parseFloat(s.lineHeight) / parseFloat(s.fontSize))(getComputedStyle(document.querySelector("h1")))`
	require.GreaterOrEqual(t, nodetest.Look[float64](b, room), 1.39)
}
