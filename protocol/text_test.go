package protocol

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var fit = map[string]string{
	"plain":                   "plain",
	"lines and tab":           "two\nlines\tand tab",
	"Hindi":                   "हिन्दी में दो करघे",
	"conjunct with a joiner":  "क्\u200dष",
	"eyelash ra":              "र्\u200dया",
	"Malayalam chillu at end": "അവന്\u200d",
	"Persian non-joiner":      "می\u200cخواهم",
	"family":                  "👩\u200d👩\u200d👧",
	"heart on fire":           "❤\ufe0f\u200d🔥",
	"keycap":                  "1\ufe0f\u20e3",
	"skin and hair":           "👩🏽\u200d🦰",
	"ideograph variant":       "葛\U000e0100城",
	"Mongolian variant":       "ᠠ\u180bᠡ",
	"Mongolian separator":     "ᠠ\u180eᠠ",
	"Wales":                   "🏴\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f!",
	"information":             "ℹ\ufe0f",
	"slashed zero":            "0\ufe00",
	"comma in a corner":       "、\ufe00",
	"script capital":          "ℬ\ufe00",
	"couple":                  "👩🏽\u200d❤\ufe0f\u200d💋\u200d👨🏿",
	"rainbow":                 "🏳\ufe0f\u200d🌈",
	"wheelchair to the right": "🧑\u200d🦽\u200d➡\ufe0f",
	"Sinhala":                 "ශ්\u200dරී",
	"direction mark":          "\u200eleft mark",
	"Hebrew":                  "שלום \u200f(עולם)",
	"money":                   "₹2,400",
	"combining":               "e\u0301",
	"Tibetan":                 "ཧྐྵྨླྺྼྻྂ",
	"a stack":                 "a" + strings.Repeat("\u0301", 16) + "b" + strings.Repeat("\u0301", 16),
	"private use":             "\ue000",
	"no-break space":          "5\u00a0kg",
}

var unfit = map[string]struct {
	text  string
	clean string
}{
	"NUL":                 {"a\x00b", "ab"},
	"bell":                {"bell\a", "bell"},
	"escape":              {"\x1b[31mred", "[31mred"},
	"delete":              {"a\x7fb", "ab"},
	"carriage return":     {"a\r\nb\rc", "a\nb\nc"},
	"next line":           {"nel\u0085x", "nel\nx"},
	"override":            {"\u202eevil", "evil"},
	"embedding":           {"\u202aevil\u202c", "evil"},
	"isolate":             {"\u2066isolate\u2069", "isolate"},
	"line separator":      {"a\u2028b", "a\nb"},
	"paragraph separator": {"a\u2029b", "a\n\nb"},
	"zero width space":    {"zero\u200bwidth", "zerowidth"},
	"word joiner":         {"a\u2060b", "ab"},
	"invisible plus":      {"a\u2064b", "ab"},
	"deprecated format":   {"a\u206fb", "ab"},
	"byte order mark":     {"\ufeffbom", "bom"},
	"soft hyphen":         {"soft\u00adhyphen", "softhyphen"},
	"grapheme joiner":     {"a\u034fb", "ab"},
	"Hangul filler":       {"a\u3164b", "ab"},
	"half-width filler":   {"a\uffa0b", "ab"},
	"Hangul jamo filler":  {"a\u115fb", "ab"},
	"annotation":          {"a\ufff9b", "ab"},
	"musical":             {"a\U0001d173b", "ab"},
	"tags behind a flag":  {"🏴\U000e0061\U000e007f", "🏴"},
	"tags behind Wales": {"🏴\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f\U000e0061",
		"🏴\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"},
	"half of Wales":              {"🏴\U000e0067\U000e0062", "🏴"},
	"tag":                        {"tag\U000e0041", "tag"},
	"noncharacter":               {"a\ufffe", "a"},
	"noncharacter of plane 16":   {"a\U0010ffff", "a"},
	"noncharacter block":         {"a\ufdd0", "a"},
	"bytes":                      {"broken\xff", "broken"},
	"half of a surrogate":        {"a\xed\xa0\x80b", "ab"},
	"replacement":                {"a\ufffd", "a"},
	"three joiners":              {"a\u200d\u200d\u200db", "a\u200d\u200db"},
	"a tower":                    {"a" + strings.Repeat("\u0301", 40) + "b", "a" + strings.Repeat("\u0301", 16) + "b"},
	"a tower with joiners":       {"a" + strings.Repeat("\u0301\u200d", 17) + "b", "a" + strings.Repeat("\u0301\u200d", 16) + "\u200db"},
	"a tower on a line":          {"a\n" + strings.Repeat("\u0489", 17), "a\n" + strings.Repeat("\u0489", 16)},
	"marks that carry bits":      {"a" + strings.Repeat("\u200e\u200f", 8) + "b", "a\u200e\u200fb"},
	"selector at the beginning":  {"\ufe0fa", "a"},
	"selector behind a selector": {"0\ufe00\ufe01\ufe02", "0\ufe00"},
	"bytes in selectors":         {"葛\U000e0101\U000e0102\U000e0103b", "葛\U000e0101b"},
	"a byte behind each letter":  {"h\U000e0101e\U000e0102", "he"},
	"a nibble behind letters":    {"h\ufe00é\ufe01अ\ufe02", "héअ"},
	"selector behind an accent":  {"e\u0301\ufe0f", "e\u0301"},
	"Mongolian's behind Latin":   {"a\u180bb\u180ec", "abc"},
	"selector behind a space":    {"a \ufe0fb", "a b"},
}

func TestText_Rule(t *testing.T) {
	t.Parallel()
	for name, s := range fit {
		_, why, bad := Unfit(s)
		require.False(t, bad, "%s: %s", name, why)
		require.Equal(t, s, CleanText(s), "%s stays as it is", name)
		require.False(t, Blank(s), name)
	}
	for name, c := range unfit {
		_, why, bad := Unfit(c.text)
		require.True(t, bad, name)
		require.NotEmpty(t, why, name)
		require.Equal(t, c.clean, CleanText(c.text), name)
	}
}

func TestText_EveryCharacter(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		s := "a" + string(r) + "a"
		switch {
		case r >= 0xE0100:
			s = "葛" + string(r)
		case r >= 0x180B && r <= 0x180F:
			s = "ᠠ" + string(r)
		case unicode.Is(unicode.Variation_Selector, r):
			s = "☎" + string(r)
		}
		_, _, bad := Unfit(s)
		shown := unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs)
		hidden := unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point, unicode.Other_Default_Ignorable_Code_Point)
		switch {
		case r == '\n', r == '\t', passes(r), selects(r):
			require.False(t, bad, "U+%04X", r)
		case r == utf8.RuneError, hidden:
			require.True(t, bad, "U+%04X", r)
		case shown:
			require.False(t, bad, "U+%04X", r)
		}
	}
}

func TestBlank(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", " ", "\n\t", "\u00a0", "\u3000", "\u200d", "\u200e\u200f", "\u2800", "\u3164"} {
		require.True(t, Blank(s), "%q", s)
	}
}

func TestCheckText_Pointers(t *testing.T) {
	t.Parallel()
	nested := ProfileDraft{Needs: []Need{{ID: "a", Description: "fine"}, {ID: "b", Description: "\u202e"}}}
	faults := CheckText("", nested)
	require.Len(t, faults, 1)
	require.Equal(t, "/needs/1/description", faults[0].Pointer)
	require.Equal(t, "contains U+202E, a bidirectional override or isolate; remove it", faults[0].Detail)
}

func FuzzCleanText(f *testing.F) {
	for _, s := range fit {
		f.Add(s)
	}
	for _, c := range unfit {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clean := CleanText(s)
		_, why, bad := Unfit(clean)
		require.False(t, bad, "%q becomes %q: %s", s, clean, why)
		require.Equal(t, clean, CleanText(clean), "cleaning twice changes nothing more")
	})
}

func TestHandlesOf(t *testing.T) {
	t.Parallel()
	const host = "n1.example:8443"
	for _, tt := range []struct {
		text       string
		here, away []string // in a post of this node, and of another
	}{
		{"@asha and (@ravi-2): @asha again, @RAO!", []string{"asha", "ravi-2", "rao"}, nil},
		{"@asha@n1.example:8443. @rao@N1.example:8443", []string{"asha", "rao"}, []string{"asha", "rao"}},
		{"asha@n1.example:8443 x@rao /@rao @rao@n2.example @rao.example @rao_1 @rao-", nil, nil},
		{"@rao... @a @-b @asha.", []string{"rao", "asha"}, nil},
		{"@a1 @a2 @a3 @a4 @a5 @a6", []string{"a1", "a2", "a3", "a4", "a5"}, nil},
		{"", nil, nil},
	} {
		require.Equal(t, tt.here, HandlesOf(tt.text, host, true), tt.text)
		require.Equal(t, tt.away, HandlesOf(tt.text, host, false), tt.text)
	}
}
