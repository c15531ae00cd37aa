package web

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// TestTakeFilters: words that mean a filter become one; others stay words, and so do those of a field that is filled.
func TestTakeFilters(t *testing.T) {
	t.Parallel()
	for q, want := range map[string]string{
		"tea under 500":            "maxPrice=500&q=tea",
		"under ₹1,200 shoes":       "maxPrice=1200&q=shoes",
		"₹200 तक चाय":              "maxPrice=200&q=चाय",
		"चाय 200 रुपये से कम":      "maxPrice=200&q=चाय",
		"chai Rs. 50 tak":          "maxPrice=50&q=chai",
		"saree above 2000 rupees":  "minPrice=2000&q=saree",
		"cake over 300 under 900":  "maxPrice=900&minPrice=300&q=cake",
		"tiffin open now":          "openNow=true&q=tiffin",
		"अभी खुली बेकरी":           "openNow=true&q=बेकरी",
		"under 500":                "maxPrice=500",
		"under 5kg rice":           "q=under 5kg rice",
		"room 500":                 "q=room 500",
		"open now under construct": "openNow=true&q=under construct",
		"blunder 500":              "q=blunder 500",
	} {
		f := &form{values: url.Values{"q": {q}}, args: map[string]any{"q": q}}
		f.takeFilters()
		require.Equal(t, want, must.Get(url.QueryUnescape(f.values.Encode()))(t), q)
		for name := range f.values {
			require.Contains(t, f.args, name)
		}
	}
	f := &form{values: url.Values{"q": {"tea under 500"}, "maxPrice": {"40"}}, args: map[string]any{}}
	f.takeFilters()
	require.Equal(t, "tea under 500", f.get("q"))
	require.Empty(t, f.taken)
}
