package storage

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeyOf: the spellings of a line have one key, and lines have different ones.
func TestKeyOf(t *testing.T) {
	t.Parallel()
	lines := map[string]string{}
	for _, line := range []string{
		"चावल chawal chaval chaawal", "नमकीन namkeen namkin", "अदरक adrak", "मसाला masala masaala", "दूध doodh dudh", "घी ghee ghi",
		"आलू aloo alu", "चाय chai chay", "मूंगफली moongfali moongphali mungfali", "पनीर paneer panir", "बनारसी banarsi banarsee",
		"सरसों sarson", "हल्दी haldi", "अगरबत्ती agarbatti agarbati", "छोले chhole chole", "कपड़े kapde", "धनिया dhaniya dhania",
		"tomato tomatoes", "box boxes", "berry berries", "knife knives", "cookie cookies", "shoe shoes", "bake baking baked", "service services servicing",
		"clothes cloth clothing", "dosa dosas डोसा", "glass glasses", "chutney chutni", "fry fried", "leaf leaves",
	} {
		words := strings.Fields(line)
		first := keysOf(foldWords(words[0])[0])
		key := keyOf(foldWords(words[len(words)-1])[0])
		require.Contains(t, first, key, words[0])
		for _, w := range words[1:] {
			require.Equal(t, key, keyOf(foldWords(w)[0]), w)
		}
		require.Empty(t, lines[key], line)
		lines[key] = line
	}
	for _, w := range []string{"gas", "bus", "glass", "8901234567894", "a4"} {
		require.NotEmpty(t, keyOf(w))
	}
}

// TestMeasures: spellings of one measure are one token; numbers without a unit, and units in words, are none.
func TestMeasures(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"5kg", "5 kg", "5 Kgs", "5000 g", "5,000 gm", "५ किलो", "(5KG)"}, {"1 l", "1L", "1 litre", "1000ml", "१ लीटर"}, {"1/2 kg", "0.5 kg", "500 grams"},
		{"9w", "9 watt"}, {"128gb", "128 GB"}, {"30 cm", "300mm"}, {"1 dozen", "12 pcs"}, {"180-page", "180 pages"},
	} {
		var all []string
		for _, s := range same {
			rest := measures("rice "+s+" of it", func(token string) { all = append(all, token) })
			require.Equal(t, "rice of it", strings.Join(foldWords(rest), " "), s)
		}
		require.Len(t, all, len(same), "%q", same)
		for _, token := range all {
			require.Equal(t, all[0], token)
		}
	}
	for _, s := range []string{"", "5", "24/6", "a4 paper", "5kgx", "kg", "iphone13 l", "3 musketeers", "1.", "99999999999999999999kg"} {
		require.Equal(t, s, measures(s, func(token string) { t.Errorf("%q has %q", s, token) }))
	}
}

func FuzzMeasures(f *testing.F) {
	for _, s := range []string{"5kg", "1/2 l", "1,2,.3 g", "५ किलो", "1/0 kg", "\xff5kg"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		rest := measures(s, func(token string) {
			require.Len(t, strings.Fields(token), 1)
			require.NotContains(t, token, `"`)
			require.NotContains(t, token, "'")
		})
		require.LessOrEqual(t, len(rest), len(s)+1)
		for _, w := range foldWords(s) {
			for _, token := range append(variants(w, keyOf(w)), keyOf(w)) {
				require.NotContains(t, token, " ")
				require.NotContains(t, token, `"`)
				require.NotContains(t, token, "'")
			}
		}
	})
}

func TestApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"rice", "rice", 0}, {"rcie", "rice", 1}, {"basmti", "basmati", 1}, {"detergant", "detergent", 1}, {"refridgerator", "refrigerator", 1},
		{"shampo", "shampoo", 1}, {"abcdefgh", "abxdefgy", 2}, {"abc", "xyz", 3}, {"", "ab", 2},
	} {
		require.Equal(t, min(c.want, 3), apart(c.a, c.b, 2), c.a)
	}
}
