package protocol

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed codes/names.txt.gz
var codeNames packed

// codesNamed are the English and the Hindi name of each code: of a country in capital letters, of a language as BCP 47 has it.
var codesNamed = sync.OnceValue(func() map[string][2]string {
	all := map[string][2]string{}
	for line := range strings.Lines(codeNames.text()) {
		if code, names, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			english, hindi, _ := strings.Cut(names, "\t")
			all[code] = [2]string{english, hindi}
		}
	}
	return all
})

func named(code, in string) string {
	if in == "hi" && codesNamed()[code][1] != "" {
		return codesNamed()[code][1]
	}
	return codesNamed()[code][0]
}

// CountryName is the name of a country, by its code of ISO 3166-1, in English or in Hindi (hi); "" when it has none.
func CountryName(code, in string) string { return named(code, in) }

// LanguageName is the name of a language, by its canonical tag, in English or in Hindi (hi): Hindi, Brazilian Portuguese, "Hindi (Latn)"; ""
// when it has none.
func LanguageName(tag, in string) string {
	if name := named(tag, in); name != "" {
		return name
	}
	base, rest, _ := strings.Cut(tag, "-")
	name := named(base, in)
	if name == "" || rest == "" {
		return name
	}
	if country := CountryName(rest, in); country != "" {
		rest = country
	}
	return name + " (" + rest + ")"
}
