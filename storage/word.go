package storage

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Full text is folded here and not in the database, so that both engines find
// the same and what a visitor types never reaches a query language. A word is a
// run of letters, marks and digits. Words are compared in lower case, without
// the accents of Latin, Greek and Cyrillic, in compatibility form, with the
// digits of ASCII, and without what only changes how a word is drawn: joiners,
// direction marks, variation selectors, the keycap around a digit. Vowel signs of
// Indic scripts are part of the word; what writers of Hindi spell in two ways is
// one (hindi). Han and kana characters are words by themselves, since nothing
// divides theirs.
//
// The index must be built again when this file or postText changes what a text
// folds to, since a text is taken out of the index by folding it once more: raise
// postWordsVersion, and the next start does it.

// maxWord is the longest word in bytes; the rest of a longer one is ignored.
const maxWord = 64

// fold appends the words of text to b, each followed by a space.
func fold(b []byte, text string) []byte {
	if !ascii(text) {
		text = foldUnicode(text)
	}
	start := len(b)
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			switch {
			case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			case r >= 'A' && r <= 'Z':
				r += 'a' - 'A'
			default:
				b, start = endWord(b, start)
				continue
			}
			if len(b)-start < maxWord {
				b = append(b, byte(r))
			}
		case single(r):
			b, _ = endWord(b, start)
			b = append(utf8.AppendRune(b, r), ' ')
			start = len(b)
		case unicode.In(r, unicode.L, unicode.M, unicode.N):
			if len(b)-start <= maxWord-utf8.UTFMax {
				b = utf8.AppendRune(b, r)
			}
		default:
			b, start = endWord(b, start)
		}
	}
	b, _ = endWord(b, start)
	return b
}

func endWord(b []byte, start int) ([]byte, int) {
	if len(b) > start {
		b = append(b, ' ')
	}
	return b, len(b)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func single(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }

// maxGrowth is the maximum number of bytes by which the compatibility forms of a
// text may be longer than the text. A single character may expand to a sentence
// (U+FDFA is eleven times as long), which costs time and space to fold and store.
const maxGrowth = 4 << 10

// compact replaces characters with spaces whose compatibility forms would make a
// text longer by more than maxGrowth in total. Canonical forms are short: at most
// three times as long (Unicode TR15), and composed again.
func compact(text string) string {
	growth := 0
	for i, r := range text {
		if r < 0x2000 || r >= 0x3400 && r < 0xd800 { // growth there is at most three bytes
			continue
		}
		growth += grows(text[i:])
		if growth > maxGrowth {
			return text[:i] + strings.Map(func(r rune) rune {
				if r >= 0x2000 && grows(string(r)) > 0 {
					return ' '
				}
				return r
			}, text[i:])
		}
	}
	return text
}

// grows is the number of bytes by which the compatibility form of the first
// character of s is longer than the character.
func grows(s string) int {
	form := norm.NFKD.PropertiesString(s)
	long := len(form.Decomposition()) - form.Size()
	if long <= 0 || norm.NFD.PropertiesString(s).Decomposition() != nil {
		return 0
	}
	return long
}

func foldUnicode(text string) string {
	text = compact(text)
	nagari := false
	text = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x0300 && r <= 0x036f, drawing(r):
			return -1
		case r == 'ς': // the lower case of Σ at the end of a word
			return 'σ'
		case unicode.Is(unicode.Nd, r):
			return '0' + digit(r)
		}
		nagari = nagari || r >= 0x0900 && r <= 0x097f
		return unicode.ToLower(r)
	}, norm.NFKD.String(text))
	if nagari {
		text = hindi(text)
	}
	return norm.NFKC.String(text)
}

// drawing reports characters that change how text is drawn and not what it says.
func drawing(r rune) bool {
	return r >= 0x200c && r <= 0x200f || r == 0x061c || unicode.In(r, unicode.Variation_Selector, unicode.Me)
}

// digit is the value of a decimal digit of any script. The digits of a script
// follow one another from zero (Unicode §4.6).
func digit(r rune) rune {
	for _, t := range unicode.Nd.R16 {
		if r >= rune(t.Lo) && r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if r >= rune(t.Lo) && r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	return 0
}

// hindi removes spelling variants of Hindi: the dot below (कागज, काग़ज़), and the
// nasal before a consonant of its own class, which is written out, as a dot or as a
// moon and dot (हिन्दी, हिंदी; मुम्बई, मुंबई; चाँद, चांद). text is decomposed.
func hindi(text string) string {
	const moon, dot, nukta, virama = '\u0901', '\u0902', '\u093c', '\u094d'
	in := []rune(strings.ReplaceAll(text, string(nukta), ""))
	out := in[:0]
	for i := 0; i < len(in); i++ {
		r := in[i]
		switch class, nasal := nasals[r]; {
		case r == moon:
			r = dot
		case nasal && i+2 < len(in) && in[i+1] == virama && strings.ContainsRune(class, in[i+2]):
			r, i = dot, i+1
		}
		out = append(out, r)
	}
	return string(out)
}

// nasals are the nasals of Devanagari with the other consonants of their class.
var nasals = map[rune]string{'ङ': "कखगघ", 'ञ': "चछजझ", 'ण': "टठडढ", 'न': "तथदध", 'म': "पफबभ"}

// queryWords are the distinct words of a visitor's query.
func queryWords(q string) []string {
	words := foldWords(q)
	slices.Sort(words)
	return slices.Compact(words)
}

// Facets are in the index alongside the words, so that a search with filters reads
// no row it does not show. They begin with a private-use character, which is never
// part of a word.
const (
	facetKind     = "\ue000k"
	facetVerified = "\ue000v"

	// Pairs of filters that together match few rows, though each matches many, are one
	// facet.
	facetKindVerified = "\ue000x"
	facetTagVerified  = "\ue000y"

	facetRoot     = "\ue000o" // id of the post that began the thread
	facetOpen     = "\ue000p" // waits to be resolved: anything, or a kind
	facetResolved = "\ue000s" // is resolved: anything, or a kind

	facetAuthorTag    = "\ue000d" // an author of this node and a tag of the post
	facetAnyAuthorTag = "\ue000e" // an author of any node and a tag of the post

	facetAuthor     = "\ue000a" // handle of an author of this node
	facetAnyAuthor  = "\ue000b" // handle of an author of any node
	facetTag        = "\ue000t"
	facetCapability = "\ue000c" // id or tag of a capability
	facetRegion     = "\ue000r" // a region, and its country
	facetIdentity   = "\ue000i"
	facetNobody     = "\ue000n" // without identity
	facetListed     = "\ue000l" // every listed profile
	facetCategory   = "\ue000g" // category of a merchant
	facetCity       = "\ue000u" // city of a merchant, by its one name
	facetLanguage   = "\ue000m" // language that an agent speaks
	facetReturns    = "\ue000f" // accepts returns
	facetBoard      = "\ue000j" // of an agent of another node: has an open attention board
	facetCell       = "\ue000z" // where a merchant is (cell.go)

	facetMedia     = "\ue0001" // media type of an entry of a followed directory, without +json
	facetPublisher = "\ue0002" // its publisher

	facetShop         = "\ue000h" // number of the merchant of an item
	facetAvailability = "\ue000q" // availability of a variant of an item
	facetPrice        = "\ue000w" // bucket of the price of a variant, or of one that a merchant sells (itemword.go)
)

// facet is one word for a filter's value. Characters that are neither letter nor
// digit are moved to private use, so that the index does not divide the word there.
func facet(name, value string) string {
	var b strings.Builder
	b.WriteString(name)
	for _, c := range []byte(value) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b.WriteByte(c)
		case c >= 'A' && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		default:
			b.WriteRune(0xe100 + rune(c))
		}
	}
	return b.String()
}

// tagKey is the normalized form of a tag: tags that are drawn alike are equal.
func tagKey(tag string) string { return norm.NFC.String(tag) }

// tagKeys are the distinct keys of a post's tags.
func tagKeys(tags []string) []string {
	keys := make([]string, 0, len(tags))
	for _, tag := range tags {
		if k := tagKey(tag); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func addFacet(b []byte, name, value string) []byte {
	return append(append(b, facet(name, value)...), ' ')
}
