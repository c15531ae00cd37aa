package protocol

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The rule of text: which characters a text may hold, wherever it comes from.
// The hall applies it to every text of every operation's input; what other
// nodes sent goes through it as well. SECURITY.md, "Stored text", has it as a
// table.

// maxInvisible is how many characters that are not seen may follow one another:
// a joiner behind a variation selector stands in many emoji, and a longer run
// carries nothing but hidden bits.
const maxInvisible = 2

// Unfit finds the first character of s that no text may hold, and says what is
// wrong with it. Joiners (U+200C, U+200D) and direction marks (U+061C, U+200E,
// U+200F) stay, for Indic scripts, emoji and right-to-left text; variation
// selectors stay behind a character that is seen.
func Unfit(s string) (r rune, why string, bad bool) {
	seen, run := false, 0
	for i := 0; i < len(s); {
		if c := s[i]; c >= 0x20 && c < 0x7f {
			seen, run = c != ' ', 0
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if why := refused(r); why != "" {
			return r, why, true
		}
		switch {
		case unicode.Is(unicode.Variation_Selector, r):
			if !seen {
				return r, "a variation selector without a character before it", true
			}
			seen, run = false, run+1
		case passes(r):
			if run++; run > maxInvisible {
				return r, "more than two invisible characters in a row", true
			}
			seen = false
		default:
			seen, run = !unicode.IsSpace(r), 0
		}
	}
	return 0, "", false
}

// refused says why a character is refused wherever it stands, "" when it is not.
func refused(r rune) string {
	switch {
	case r == '\n', r == '\t':
		return ""
	case r == utf8.RuneError: // also what bytes that are no UTF-8 and unpaired surrogates become
		return "not valid Unicode"
	case unicode.Is(unicode.Cc, r):
		return "a control character"
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069: // make a text read otherwise than it is stored
		return "a bidirectional override or isolate"
	case r == 0x2028, r == 0x2029:
		return "a line or paragraph separator; use a line feed"
	case r >= 0xE0000 && r <= 0xE007F:
		return "a tag character"
	case r&0xFFFE == 0xFFFE, r >= 0xFDD0 && r <= 0xFDEF:
		return "a noncharacter"
	case passes(r), unicode.Is(unicode.Variation_Selector, r):
		return ""
	case unicode.Is(ignorable, r):
		return "an invisible character"
	}
	return ""
}

// passes reports the invisible characters that text is written with.
func passes(r rune) bool {
	return r == 0x200C || r == 0x200D || r == 0x200E || r == 0x200F || r == 0x061C
}

// ignorable are the characters that show nothing: Unicode's Default_Ignorable_
// Code_Point (Unicode 17, DerivedCoreProperties), and the interlinear
// annotations.
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

// TextFault is the fault of the text at a pointer, nil when it is fit.
func TextFault(at, s string) *Fault {
	r, why, bad := Unfit(s)
	if !bad {
		return nil
	}
	return &Fault{at, "forbidden-character", fmt.Sprintf("contains U+%04X, %s; remove it", r, why)}
}

// Blank reports whether a text shows nothing: spaces and invisible characters.
func Blank(s string) bool {
	for _, r := range s {
		if !unicode.IsSpace(r) && r != 0x2800 && !unicode.Is(ignorable, r) {
			return false
		}
	}
	return true
}

// CleanText drops what [Unfit] refuses and makes every line break a line feed.
// It is for texts whose writer cannot be asked to mend them: those of the
// fediverse. Space around the text goes too.
func CleanText(s string) string {
	s = lineBreaks.Replace(strings.ToValidUTF8(s, ""))
	if _, _, bad := Unfit(s); !bad {
		return strings.TrimSpace(s)
	}
	var b strings.Builder
	seen, run := false, 0
	for _, r := range s {
		selector := unicode.Is(unicode.Variation_Selector, r)
		switch hidden := selector || passes(r); {
		case refused(r) != "", selector && !seen, hidden && run == maxInvisible:
			continue
		case hidden:
			seen, run = false, run+1
		default:
			seen, run = !unicode.IsSpace(r), 0
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n\n")

// CheckText applies the rule of text to every string in v, a struct or what one
// holds, and returns a fault for each that breaks it. It is for what comes by
// federation; no input needs it, the hall looks at them all.
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

// oneLine returns a fault for each text, by its pointer, that holds a line break
// or a tab.
func oneLine(texts map[string]string) []Fault {
	var faults []Fault
	for at, s := range texts {
		if strings.ContainsAny(s, "\n\t") {
			faults = append(faults, Fault{at, "not-one-line", "must be one line, without breaks and tabs"})
		}
	}
	return faults
}
