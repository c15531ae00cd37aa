package protocol

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsTag(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"paper", "हिन्दी", "தமிழ்", "日本語", "עברית", "русский", "ink.blue_2", "a:b-c", "2026", "é", "e\u0301", strings.Repeat("क", 32)} {
		require.True(t, IsTag(good), good)
	}
	for _, bad := range []string{
		"", "two words", "#paper", "_x", ".", "-x", "a/b", "a,b", "a\u200bb", "\u0301a", "a\u202eb", "👍", strings.Repeat("क", 33), "a" + strings.Repeat("\u0301", 17),
	} {
		require.False(t, IsTag(bad), bad)
	}
}

// The published pattern refuses what it can of what is no tag, and no tag.
func TestPostTagPattern(t *testing.T) {
	t.Parallel()
	for _, in := range []reflect.Type{reflect.TypeFor[NewPost](), reflect.TypeFor[BoardQuery]()} {
		f, ok := in.FieldByNameFunc(func(name string) bool { return name == "Tag" || name == "Tags" })
		require.True(t, ok)
		require.Equal(t, PostTagPattern, PatternOf(f.Tag))
	}
	shape := regexp.MustCompile(PostTagPattern)
	for c := range rune(0x180) {
		for _, s := range []string{string(c), "a" + string(c)} {
			if IsTag(s) || c < 0x80 {
				require.Equal(t, IsTag(s), shape.MatchString(s), "%q", s)
			}
		}
	}
	require.True(t, shape.MatchString(strings.Repeat("क", 32)))
	require.False(t, shape.MatchString(strings.Repeat("क", 33)))
	require.False(t, shape.MatchString(""))
}

func TestFoldTags(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"paper", "हिन्दी", "привет", "میخواهم"}, FoldTags([]string{"Paper", "हिन्दी", "PAPER", "ПРИВЕТ", "می\u200cخواهم"}))
	require.Empty(t, FoldTags(nil))
}

func TestFold(t *testing.T) {
	t.Parallel()
	post := NewPost{Title: "Paper", Tags: []string{"Paper", "paper", "INK"}}
	Fold(&post)
	require.Equal(t, NewPost{Title: "Paper", Tags: []string{"paper", "ink"}}, post)
	own := OwnNeed{Owned{"@Asha"}, Need{ID: "x", Tags: []string{"A"}}}
	Fold(&own)
	require.Equal(t, OwnNeed{Owned{"asha"}, Need{ID: "x", Tags: []string{"A"}}}, own, "the tags of needs keep the specification's pattern")
	open := AccountRef{Account: "@Rao-Tiffins"}
	Fold(&open)
	require.Equal(t, "rao-tiffins", open.Account)
	var plain string
	Fold(&plain)
}

func TestRuleOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tag             reflect.StructTag
		good, bad, code string
	}{
		{`line:"true"`, "one line", "two\nlines", "not-one-line"},
		{`line:"true"`, " ", "a\ttab", "not-one-line"},
		{`visible:"true"`, "a\nb", " \u200d", "blank"},
		{`shape:"language"`, "pt-BR", "xx-Nope", "unknown-language"},
		{`shape:"region"`, "IN-KA", "IN-ZZ", "unknown-region"},
		{`shape:"country"`, "IN", "ZX", "unknown-region"},
		{`shape:"mail"`, "asha@example.org", "asha", "not-an-address"},
		{`shape:"address"`, "https://a.example/", "https://u:p@a.example/", "wrong-shape"},
		{`shape:"callback"`, "https://a.example/", "https://a.example:8443/", "callback-address"},
	} {
		require.Empty(t, RuleOf(tt.tag).Faults("/x", tt.good), tt.tag)
		require.Empty(t, RuleOf(tt.tag).Faults("/x", ""), tt.tag)
		faults := RuleOf(tt.tag).Faults("/x", tt.bad)
		require.Len(t, faults, 1, tt.tag)
		require.Equal(t, []string{"/x", tt.code}, []string{faults[0].Pointer, faults[0].Code})
	}
	require.Nil(t, RuleOf(`shape:"tag" maxLength:"3"`))
}
