package storage

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// texts of the longest body, by what they cost to fold.
var foldTexts = map[string]string{
	"latin":  strings.Repeat("Two hundred sheets. ", 200),
	"hindi":  strings.Repeat("हाथ से बना काग़ज़ ", 240),
	"han":    strings.Repeat("手作りの紙を二百枚。", 400),
	"hangul": strings.Repeat("수제종이이백장입니다 ", 364),
	"FDFA":   strings.Repeat("\ufdfa", 4000), // a sentence in one character
}

func BenchmarkFold(b *testing.B) {
	for name, text := range foldTexts {
		b.Run(name, func(b *testing.B) {
			var out []byte
			for b.Loop() {
				out = fold(out[:0], text)
			}
			b.ReportMetric(float64(len(out)), "B/folded")
		})
	}
}

// TestFold_Growth: what a text folds to is hardly longer than the text, and what is
// found of it stays what it was.
func TestFold_Growth(t *testing.T) {
	t.Parallel()
	for name, text := range foldTexts {
		require.LessOrEqual(t, len(fold(nil, text)), 2*len(text)+maxGrowth, name)
	}
	folded := string(fold(nil, strings.Repeat("\ufdfa", 4000)+" two looms"))
	require.LessOrEqual(t, len(folded), 16<<10)
	require.Contains(t, folded, "صلى الله عليه وسلم ", "the first are what they say")
	require.Contains(t, folded, "two looms ", "what follows is found as well")
	require.Equal(t, []string{"5kg", "1", "2", "fi", "office"}, foldWords("5㎏ ½ ﬁ oﬃce"), "usual texts fold in full")
}
