package protocol

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a post's tags. Those of capabilities and needs are narrower (spec §2.8, §2.9).
const (
	MaxPostTags = 12
	MaxTagChars = 32
)

// PostTagPattern is as much of a tag's form as every dialect of regular expressions can express:
// of ASCII, only letters, digits and _ . : -. IsTag checks the rest.
const PostTagPattern = `^[^\x00-/:-@\[-\x60{-\x7f][^\x00-,/;-@\[-^\x60{-\x7f]{0,31}$`

// TagRule describes the tag of a post.
const TagRule = "1 to 32 letters, marks, digits and _ . : - of any script, a letter or digit first"

// IsTag reports whether s, folded, is a tag of a post: 1 to 32 letters, marks, digits and _ . : -
// of any script, beginning with a letter or digit.
func IsTag(s string) bool {
	first := true
	for _, r := range s {
		word := unicode.In(r, unicode.L, unicode.Nd)
		if !word && (first || !unicode.Is(unicode.M, r) && !strings.ContainsRune("_.:-", r)) {
			return false
		}
		first = false
	}
	_, _, unfit := Unfit(s)
	return !first && !unfit && utf8.RuneCountInString(s) <= MaxTagChars
}

// FoldTag returns a tag in the form that is stored, compared and shown: lower case, without
// joiners that only change how it is drawn.
func FoldTag(s string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == '\u200c' || r == '\u200d' {
			return -1
		}
		return r
	}, s))
}

// FoldTags folds each tag and removes duplicates.
func FoldTags(tags []string) []string { return foldEach(tags, FoldTag) }

func foldEach(list []string, one func(string) string) []string {
	var out []string
	for _, s := range list {
		if s = one(s); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// Fold converts the handles and tags of an input, a pointer to a struct, to the form that is
// stored, by the shapes of its fields.
func Fold(in any) {
	if v := reflect.ValueOf(in).Elem(); v.Kind() == reflect.Struct {
		foldStruct(v)
	}
}

func foldStruct(v reflect.Value) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			foldStruct(v.Field(i))
			continue
		}
		one := textShapes[f.Tag.Get("shape")].fold
		if one == nil {
			continue
		}
		switch at := v.Field(i).Addr().Interface().(type) {
		case *string:
			*at = one(*at)
		case *[]string:
			*at = foldEach(*at, one)
		}
	}
}
