package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for code, name := range map[string]string{
		"IN": "India", "IN-KA": "Karnataka", "IN-TG": "Telangana", "DE": "Germany", "DE-BY": "Germany (DE-BY)", "": "", "NOWHERE": "NOWHERE",
	} {
		require.Equal(t, name, regionName(t.Context(), code), code)
	}
	for typed, code := range map[string]string{
		"india": "IN", " Tamil  Nadu ": "IN-TN", "telangana": "IN-TS", "in-ka": "IN-KA", "Germany": "DE", "Orissa": "IN-OD", "Atlantis": "Atlantis",
	} {
		require.Equal(t, code, regionCode(typed), typed)
	}
	for division := range states {
		require.True(t, protocol.IsRegion("IN-"+division), division)
		require.Equal(t, "IN-"+division, regionCode(regionName(t.Context(), "IN-"+division)))
	}
	for typed, code := range map[string]string{
		"Hindi": "hi", "हिन्दी": "hi", "chinese": "zh", "pt-BR": "pt-BR", "ga": "ga", "Konkani": "kok", "Klingonese": "Klingonese",
	} {
		require.Equal(t, code, languageCode(typed), typed)
	}
	for _, l := range words.All().Languages { // a form shows no name that it would read as something else
		ctx := words.With(t.Context(), l)
		for field, codes := range map[string]map[string]string{"languages": languageCodes(), "regions": regionCodes()} {
			for _, code := range codes {
				require.Equal(t, []string{code, code}, codings[field].codes(field, codings[field].texts(ctx, []string{code, code})))
			}
		}
	}
	require.Equal(t, "Hindi, pt-BR, Konkani", languageCoding.texts(t.Context(), []string{"hi", "pt-BR", "kok"}))
	require.Equal(t, "English, Hindi, Kannada", namesOf(t.Context(), []string{"kn", "en", "hi"}, languageName))
	require.Equal(t, "Brazilian Portuguese", languageName(t.Context(), "pt-BR"))
	for want, m := range map[string][2]string{
		"₹1,20,000.50": {"INR", "120000.50"}, "₹40": {"INR", "40.00"}, "$1,234": {"USD", "1234.00"}, "JPY 1,000,000": {"JPY", "1000000"}, "€0.05": {"EUR", "0.05"},
	} {
		require.Equal(t, want, money(m[0], m[1]))
	}
	require.Equal(t, "tel:+918026500000", string(telephone("+91 80 2650-0000")))
	require.Equal(t, "12,34,567 posts", tr(t.Context(), "%d posts", 1234567))
}

// TestBranches: a reply is below the one it answers, in whatever order they came, and none is lost.
func TestBranches(t *testing.T) {
	t.Parallel()
	post := func(id, to string) protocol.Post { return protocol.Post{ID: id, InReplyTo: &to} }
	var list []protocol.Post
	for i, to := range []string{"root", "a", "b", "c", "d", "e", "f", "g", "h", "root", "later"} {
		list = append(list, post(string(rune('a'+i)), to))
	}
	depth, n := 0, 0
	var walk func(all []branch, level int)
	walk = func(all []branch, level int) {
		for _, b := range all {
			depth, n = max(depth, level), n+1
			walk(b.below, level+1)
		}
	}
	tree := branches(list)
	walk(tree, 1)
	require.Equal(t, len(list), n)
	require.Equal(t, 8, depth, "no thread is deeper on a page")
	require.Len(t, tree, 3, "two answers to the post, and one to a reply that is not here")
	circle := branches([]protocol.Post{post("x", "y"), post("y", "x")})
	require.Len(t, circle, 1)
	require.Equal(t, "y", circle[0].below[0].ID)
}

func TestJoinLike(t *testing.T) {
	t.Parallel()
	item := func(kind protocol.FeedType, handle string) protocol.FeedItem {
		return protocol.FeedItem{Type: kind, Actor: protocol.Author{Handle: &handle}}
	}
	groups := joinLike([]protocol.FeedItem{
		item(protocol.FeedListing, "rao"), item(protocol.FeedListing, "rao"), item(protocol.FeedListing, "asha"),
		item(protocol.FeedBoardPost, "asha"), item(protocol.FeedBoardPost, "asha"), item(protocol.FeedListing, "rao"),
	})
	var sizes []int
	for _, g := range groups {
		sizes = append(sizes, len(g))
	}
	require.Equal(t, []int{2, 1, 1, 1, 1}, sizes, "what a shop lists at once, and nothing else")
}
