package protocol

import (
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckText walks every string in v (a struct, or what one holds) and returns
// a fault for each that carries characters no reader can see or trust:
// controls other than newline and tab, U+0000, bidirectional overrides and
// isolates (which make text read otherwise than it is stored), unpaired or
// private noncharacters, and tags. Joiners (U+200C, U+200D) stay: Indic
// scripts and emoji need them.
func CheckText(at string, v any) []Fault {
	var faults []Fault
	checkText(at, reflect.ValueOf(v), &faults)
	return faults
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

func checkText(at string, v reflect.Value, faults *[]Fault) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			checkText(at, v.Elem(), faults)
		}
	case reflect.String:
		if r, bad := unfit(v.String()); bad {
			*faults = append(*faults, Fault{at, "forbidden-character",
				"contains U+" + strings.ToUpper(strconv.FormatInt(int64(r), 16)) + ", which is not allowed in text; remove it"})
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

func unfit(s string) (rune, bool) {
	for _, r := range s {
		if r < 0x80 && r >= 0x20 && r != 0x7f {
			continue
		}
		switch {
		case r == '\n' || r == '\t':
		case r == utf8.RuneError, unicode.Is(unicode.Cc, r):
			return r, true
		case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069: // bidi embeddings, overrides, isolates
			return r, true
		case r == 0x200B, r == 0x2060, r == 0xFEFF, r == 0x00AD, r >= 0x2028 && r <= 0x2029:
			return r, true
		case r >= 0xE0000 && r <= 0xE007F, r&0xFFFE == 0xFFFE, r >= 0xFDD0 && r <= 0xFDEF: // tags, noncharacters
			return r, true
		}
	}
	return 0, false
}
