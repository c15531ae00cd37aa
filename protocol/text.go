package protocol

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The rule of text: which characters a text may contain, wherever it comes from. The hall applies
// it to every text of every operation's input, and texts of other nodes are checked by it too.
// docs/DESIGN.md, "Stored text", has it as a table.

// maxInvisible is how many invisible characters may follow one another: many emoji contain a
// joiner after a variation selector, and a longer run only carries hidden bits.
const maxInvisible = 2

// maxMarks is how many combining marks one character may have: more than the highest stacks of
// Tibetan, and too few to cover the lines around it.
const maxMarks = 16

// Unfit returns the first character of s that no text may contain, and why. Joiners (U+200C,
// U+200D) and direction marks (U+061C, U+200E, U+200F) are allowed, for Indic scripts, emoji and
// right-to-left text; variation selectors are allowed after a character that has variants.
func Unfit(s string) (r rune, why string, bad bool) {
	var base rune // the character that a selector would apply to; 0 for none
	run, marks := 0, 0
	for i := 0; i < len(s); {
		if c := s[i]; c >= 0x20 && c < 0x7f {
			base, run, marks = rune(c), 0, 0
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if why := refused(r); why != "" {
			return r, why, true
		}
		switch {
		case selects(r):
			if !varies(base, r) {
				return r, "a variation selector after a character that has no such variant", true
			}
			base, run = 0, run+1
		case passes(r):
			if run++; run > maxInvisible {
				return r, "more than two invisible characters in a row", true
			}
			base = 0
		default:
			if marks++; !unicode.Is(unicode.M, r) {
				marks = 0
			}
			if marks > maxMarks {
				return r, "more than 16 combining marks on one character", true
			}
			base, run = r, 0
			i += flag(r, s[i:])
		}
	}
	return 0, "", false
}

// refused returns why a character is refused everywhere, "" when it is not.
func refused(r rune) string {
	switch {
	case r == '\n', r == '\t':
		return ""
	case r == utf8.RuneError: // invalid UTF-8 and unpaired surrogates become this too
		return "not valid Unicode"
	case unicode.Is(unicode.Cc, r):
		return "a control character"
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069: // they make a text read differently from what is stored
		return "a bidirectional override or isolate"
	case r == 0x2028, r == 0x2029:
		return "a line or paragraph separator; use a line feed"
	case r >= 0xE0000 && r <= 0xE007F:
		return "a tag character"
	case r&0xFFFE == 0xFFFE, r >= 0xFDD0 && r <= 0xFDEF:
		return "a noncharacter"
	case passes(r), selects(r):
		return ""
	case unicode.Is(ignorable, r):
		return "an invisible character"
	}
	return ""
}

// flags are the tag sequences that may follow a black flag: the emoji of England, Scotland and
// Wales, the only ones with tags (Unicode's RGI_Emoji_Tag_Sequence).
var flags = [...]string{
	"\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F",
	"\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F",
	"\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F",
}

// flag returns how many bytes of rest make r one of those flags.
func flag(r rune, rest string) int {
	if r == 0x1F3F4 {
		for _, f := range flags {
			if strings.HasPrefix(rest, f) {
				return len(f)
			}
		}
	}
	return 0
}

// passes reports whether an invisible character is one that texts need.
func passes(r rune) bool {
	return r == 0x200C || r == 0x200D || r == 0x200E || r == 0x200F || r == 0x061C
}

// selects reports whether a character chooses a variant of the one before it, including
// Mongolian's vowel separator.
func selects(r rune) bool { return r == 0x180E || unicode.Is(unicode.Variation_Selector, r) }

// variable are the scripts with letters that have variants (Unicode's Standardized Variants).
// After letters of other scripts a selector shows nothing and carries a hidden byte.
var variable = []*unicode.RangeTable{
	unicode.Common, unicode.Han, unicode.Mongolian, unicode.Myanmar, unicode.Phags_Pa, unicode.Manichaean, unicode.Egyptian_Hieroglyphs,
}

// varies reports whether a selector has a meaning after a character: those of the supplement after
// ideographs, Mongolian's after Mongolian, the others after symbols, digits, punctuation and the
// letters of some scripts.
func varies(base, selector rune) bool {
	switch {
	case base == 0 || unicode.IsSpace(base):
		return false
	case selector >= 0xE0100:
		return unicode.Is(unicode.Han, base)
	case selector < 0xFE00:
		return unicode.Is(unicode.Mongolian, base)
	case unicode.In(base, unicode.L, unicode.M):
		return unicode.In(base, variable...)
	}
	return true
}

// Shown reports whether a character is visible.
func Shown(r rune) bool {
	return !unicode.IsSpace(r) && r != 0x2800 && !unicode.Is(ignorable, r)
}

// AddressFault returns the fault of an address (URL) at a pointer, nil when it contains no
// invisible character. Even the invisible characters that texts need are misleading there (RFC
// 3987 §4.1).
func AddressFault(at, s string) *Fault {
	for _, r := range s {
		if passes(r) || selects(r) {
			return &Fault{at, "forbidden-character", fmt.Sprintf("contains U+%04X, which is invisible in an address; remove it, or percent-encode it", r)}
		}
	}
	return nil
}

// ignorable are the characters without a visible form: Unicode's Default_Ignorable_Code_Point
// (Unicode 17, DerivedCoreProperties), and the interlinear annotations.
var ignorable = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00AD, Hi: 0x00AD, Stride: 1}, {Lo: 0x034F, Hi: 0x034F, Stride: 1}, {Lo: 0x061C, Hi: 0x061C, Stride: 1},
		{Lo: 0x115F, Hi: 0x1160, Stride: 1}, {Lo: 0x17B4, Hi: 0x17B5, Stride: 1}, {Lo: 0x180B, Hi: 0x180F, Stride: 1},
		{Lo: 0x200B, Hi: 0x200F, Stride: 1}, {Lo: 0x202A, Hi: 0x202E, Stride: 1}, {Lo: 0x2060, Hi: 0x206F, Stride: 1},
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, {Lo: 0xFE00, Hi: 0xFE0F, Stride: 1}, {Lo: 0xFEFF, Hi: 0xFEFF, Stride: 1},
		{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1}, {Lo: 0xFFF0, Hi: 0xFFFB, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1BCA0, Hi: 0x1BCA3, Stride: 1}, {Lo: 0x1D173, Hi: 0x1D17A, Stride: 1}, {Lo: 0xE0000, Hi: 0xE0FFF, Stride: 1},
	},
}

// TextFault returns the fault of the text at a pointer, nil when there is none.
func TextFault(at, s string) *Fault {
	r, why, bad := Unfit(s)
	if !bad {
		return nil
	}
	return &Fault{at, "forbidden-character", fmt.Sprintf("contains U+%04X, %s; remove it", r, why)}
}

// Blank reports whether a text has no visible character.
func Blank(s string) bool {
	for _, r := range s {
		if Shown(r) {
			return false
		}
	}
	return true
}

// CleanText removes what [Unfit] refuses, makes every line break a line feed, and trims white
// space. It is for texts whose writer cannot be asked to correct them: those of the fediverse.
func CleanText(s string) string {
	s = lineBreaks.Replace(strings.ToValidUTF8(s, ""))
	if _, _, bad := Unfit(s); !bad {
		return strings.TrimSpace(s)
	}
	var b strings.Builder
	var base rune
	run, marks, done := 0, 0, 0
	for i, r := range s {
		if i < done {
			continue
		}
		switch hidden := selects(r) || passes(r); {
		case refused(r) != "", selects(r) && !varies(base, r), hidden && run == maxInvisible:
			continue
		case hidden:
			base, run = 0, run+1
		case unicode.Is(unicode.M, r):
			if marks == maxMarks {
				continue
			}
			base, run, marks = r, 0, marks+1
		default:
			base, run, marks = r, 0, 0
		}
		done = i + utf8.RuneLen(r)
		done += flag(r, s[done:])
		b.WriteString(s[i:done])
	}
	return strings.TrimSpace(b.String())
}

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n\n")

// CheckText applies the rule of text to every string in v, a struct or its members, and returns a
// fault for each string that breaks it. It is for federation only; the hall checks every input.
func CheckText(at string, v any) []Fault {
	var faults []Fault
	checkText(at, reflect.ValueOf(v), &faults)
	return faults
}

func checkText(at string, v reflect.Value, faults *[]Fault) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			checkText(at, v.Elem(), faults)
		}
	case reflect.String:
		if f := TextFault(at, v.String()); f != nil {
			*faults = append(*faults, *f)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			checkText(at+"/"+strconv.Itoa(i), v.Index(i), faults)
		}
	case reflect.Struct:
		t := v.Type()
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-":
			case f.Anonymous && name == "":
				checkText(at, v.Field(i), faults)
			default:
				checkText(at+"/"+name, v.Field(i), faults)
			}
		}
	}
}

// IsLine reports whether a text has neither line breaks nor tabs.
func IsLine(s string) bool { return !strings.ContainsAny(s, "\n\t") }

// OrNil returns nil for an empty text.
func OrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Shorten returns at most so many characters of a text, and … when it cut. A mark that belongs to the last one is
// kept off with it.
func Shorten(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	n := most - 1
	for n > 0 && (unicode.In(r[n], unicode.M, unicode.Sk) || r[n] == 0x200D || r[n-1] == 0x200D) { // Sk: skin tones
		n--
	}
	return strings.TrimSpace(CleanText(string(r[:n]))) + "…" // a cut emoji flag would not be a fit text
}

// OneLine replaces each run of spaces and line breaks with one space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Clip returns at most the first n bytes of a text, and … when it was cut.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
