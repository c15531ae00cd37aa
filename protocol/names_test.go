package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// TestNames: the names are those of CLDR, of which the program has these two languages; the package has all, a megabyte of them.
func TestNames(t *testing.T) {
	t.Parallel()
	compared := 0
	for code, names := range codesNamed() {
		for i, in := range []*display.Dictionary{display.English, display.Hindi} {
			if r, err := language.ParseRegion(code); err == nil && len(code) == 2 && code < "a" {
				require.Equal(t, in.Regions().Name(r), names[i], code)
			} else {
				require.Equal(t, in.Tags().Name(language.MustParse(code)), names[i], code)
			}
			compared++
		}
	}
	require.Greater(t, compared, 1500)
	for tag, want := range map[string]string{"hi": "Hindi", "pt-BR": "Brazilian Portuguese", "en-IN": "English (India)", "hi-Latn": "Hindi (Latn)",
		"sr-Latn-RS": "Serbian (Latn-RS)", "qaa": ""} {
		require.Equal(t, want, LanguageName(tag, "en"), tag)
	}
	require.Equal(t, "भारत", CountryName("IN", "hi"))
	require.Empty(t, CountryName("ZZ", "en"))
}
