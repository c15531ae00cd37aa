package storage

import (
	"strings"
	"unicode/utf8"
)

// People write one word in many ways: चावल, chawal and chaval; 5kg and 5 kg; tomatoes and tomato. The
// index has the key of a word, which these share: English endings are cut (stem), Devanagari is
// written in Latin letters as people type it (romanise), and letters that are heard alike are one (sound).
// Which spelling is meant exactly is decided among what the index finds (itemrank.go).

// keyOf is the key of a folded word.
func keyOf(w string) string {
	if ascii(w) {
		if !hasLetter(w) {
			return w
		}
		return sound(stem(w))
	}
	if r, ok := romanise(w, false); ok {
		return sound(r)
	}
	return w
}

// keysOf are the key of a folded word and the other one that it may have.
func keysOf(w string) []string {
	all := []string{keyOf(w)}
	if !ascii(w) {
		if r, ok := romanise(w, true); ok && sound(r) != all[0] {
			all = append(all, sound(r))
		}
	}
	return all
}

func hasLetter(w string) bool {
	return strings.ContainsFunc(w, func(r rune) bool { return r >= 'a' && r <= 'z' })
}

// irregular are English words that have no regular singular, and those whose ending is none.
var irregular = map[string]string{
	"men": "man", "women": "woman", "children": "child", "kids": "kid", "knives": "knife", "leaves": "leaf", "shelves": "shelf",
	"loaves": "loaf", "scarves": "scarf", "wives": "wife", "feet": "foot", "teeth": "tooth", "mice": "mouse", "clothes": "cloth",
	"halves": "half", "cakes": "cake", "broken": "break", "written": "write", "glasses": "glass", "cooling": "cool",
}

// stem cuts an English ending of a plural, -ing or -ed.
func stem(w string) string {
	if one, ok := irregular[w]; ok {
		return one
	}
	n := len(w)
	switch {
	case n > 4 && strings.HasSuffix(w, "iyan"), n > 4 && strings.HasSuffix(w, "iyon"): // plurals of Hindi words in -i
		return w[:n-3]
	case n > 4 && strings.HasSuffix(w, "ies"):
		return w[:n-3] + "y"
	case n > 4 && ends(w, "sses", "shes", "ches", "xes", "oes"):
		return w[:n-2]
	case n > 3 && w[n-1] == 's' && !ends(w, "ss", "us", "is"):
		return w[:n-1]
	case n > 5 && strings.HasSuffix(w, "ing") && hasVowel(w[:n-3]):
		return softened(w[:n-3])
	case n > 4 && strings.HasSuffix(w, "ied"):
		return w[:n-3] + "y"
	case n > 4 && strings.HasSuffix(w, "ed") && w[n-3] != 'e' && hasVowel(w[:n-2]):
		return softened(w[:n-2])
	}
	return w
}

// softened writes out the e that an ending replaced, where a c is soft before it.
func softened(w string) string {
	if w[len(w)-1] == 'c' {
		return w + "e"
	}
	return w
}

func ends(w string, all ...string) bool {
	for _, end := range all {
		if strings.HasSuffix(w, end) {
			return true
		}
	}
	return false
}

func hasVowel(w string) bool { return strings.ContainsAny(w, "aeiouy") }

func vowel(c byte) bool { return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u' }

// sound writes letters that are heard alike, or that writers of Hindi in Latin letters do not tell apart, in one way.
func sound(w string) string {
	b := make([]byte, 0, len(w))
	put := func(c byte) {
		if n := len(b); n == 0 || b[n-1] != c || c <= '9' {
			b = append(b, c)
		}
	}
	for i := 0; i < len(w); i++ {
		next := byte(0)
		if i+1 < len(w) {
			next = w[i+1]
		}
		switch c := w[i]; c {
		case 'c':
			switch {
			case next == 'h':
				put('c')
			case next == 'e' || next == 'i' || next == 'y':
				put('s')
			default:
				put('k')
			}
		case 'q':
			put('k')
		case 'x':
			put('k')
			put('s')
		case 'w':
			put('v')
		case 'z':
			put('j')
		case 'p':
			if next == 'h' {
				c = 'f'
			}
			put(c)
		case 'h': // of an aspirate, or at the end
			if i == 0 || i+1 < len(w) && (vowel(w[i-1]) || w[i-1] == 'h' && i > 1 && vowel(w[i-2])) {
				put(c)
			}
		case 'e':
			switch {
			case next == 'e':
				put('i')
				i++
			case next == 'y' && i+2 == len(w):
				put('i')
				i++
			case i+1 == len(w) && len(w) > 3 && (!vowel(w[i-1]) || w[i-1] == 'o'): // not heard
			default:
				put(c)
			}
		case 'o':
			if next == 'o' {
				c = 'u'
				i++
			}
			put(c)
		case 'i':
			put(c)
			if next == 'y' && i+2 < len(w) || next == 'e' && i+2 == len(w) && len(w) > 4 {
				i++
			}
		case 'y':
			switch {
			case i == 0:
				put(c)
			default:
				put('i')
			}
		default:
			put(c)
		}
	}
	return string(b)
}

// Letters of Devanagari as people type them.
var consonants = map[rune]string{
	'क': "k", 'ख': "kh", 'ग': "g", 'घ': "gh", 'ङ': "n", 'च': "ch", 'छ': "chh", 'ज': "j", 'झ': "jh", 'ञ': "n",
	'ट': "t", 'ठ': "th", 'ड': "d", 'ढ': "dh", 'ण': "n", 'त': "t", 'थ': "th", 'द': "d", 'ध': "dh", 'न': "n",
	'प': "p", 'फ': "ph", 'ब': "b", 'भ': "bh", 'म': "m", 'य': "y", 'र': "r", 'ल': "l", 'व': "v", 'ळ': "l",
	'श': "sh", 'ष': "sh", 'स': "s", 'ह': "h",
}

var vowelSigns = map[rune]string{
	'अ': "a", 'आ': "a", 'इ': "i", 'ई': "i", 'उ': "u", 'ऊ': "u", 'ऋ': "ri", 'ए': "e", 'ऐ': "ai", 'ओ': "o", 'औ': "au", 'ऑ': "o", 'ऍ': "e",
	'ा': "a", 'ि': "i", 'ी': "i", 'ु': "u", 'ू': "u", 'ृ': "ri", 'े': "e", 'ै': "ai", 'ो': "o", 'ौ': "au", 'ॉ': "o", 'ॅ': "e",
}

// A syllable is a consonant of Devanagari and what follows it.
type syllable struct {
	head, vowel string
	inherent    bool // the vowel is not written
	nasal       bool
}

// romanise writes a folded word of Devanagari in Latin letters. The vowel that a consonant has by itself is
// left out where it is not spoken: at the end, and between two syllables with a vowel, from the right
// (नमकीन is namkin), or in a compound from the left (मूंगफली is mungphali).
func romanise(w string, left bool) (string, bool) {
	var all []syllable
	for _, r := range w {
		last := len(all) - 1
		if c, ok := consonants[r]; ok {
			all = append(all, syllable{c, "a", true, false})
			continue
		}
		v, ok := vowelSigns[r]
		switch {
		case ok && (r < 'ा' || last < 0):
			all = append(all, syllable{"", v, false, false})
		case ok:
			all[last].vowel, all[last].inherent = v, false
		case r == '\u094d' && last >= 0:
			all[last].vowel, all[last].inherent = "", false
		case r == '\u0902' && last >= 0:
			all[last].nasal = true
		case r == '\u0903' || r == '\u093c':
		case r < utf8.RuneSelf && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z'):
			all = append(all, syllable{string(r), "", false, false})
		default:
			return "", false
		}
	}
	if n := len(all); n > 1 && all[n-1].inherent && !all[n-1].nasal {
		all[n-1].vowel = ""
	}
	for n := 1; n < len(all)-1; n++ {
		i := len(all) - 1 - n
		if left {
			i = n
		}
		if s := &all[i]; s.inherent && !s.nasal && all[i-1].vowel != "" && all[i+1].vowel != "" && all[i+1].head != "" {
			s.vowel = ""
		}
	}
	var b strings.Builder
	for i, s := range all {
		b.WriteString(s.head + s.vowel)
		if s.nasal {
			if i+1 < len(all) && strings.HasPrefix(all[i+1].head, "b") || i+1 < len(all) && strings.HasPrefix(all[i+1].head, "p") {
				b.WriteByte('m')
			} else {
				b.WriteByte('n')
			}
		}
	}
	return b.String(), true
}

// latin is a folded word in Latin letters.
func latin(w string) string {
	if r, ok := romanise(w, false); ok && !ascii(w) {
		return r
	}
	return w
}

// variants are the keys that a word may have as well: Hindi has ड़ for d and r, and -a in the plural is -e.
func variants(w, key string) (all []string) {
	for i := 1; i+1 < len(key); i++ {
		other := byte(0)
		switch c := key[i]; {
		case c == 'd':
			other = 'r'
		case c == 'r':
			other = 'd'
		}
		if other != 0 && vowel(key[i-1]) && vowel(key[i+1]) {
			all = append(all, key[:i]+string(other)+key[i+1:])
		}
	}
	w = latin(w)
	switch {
	case len(w) > 3 && len(key) > 2 && w[len(w)-1] == 'e' && !vowel(key[len(key)-1]):
		all = append(all, key+"a")
	case len(w) > 3 && len(key) > 3 && w[len(w)-1] == 'a' && key[len(key)-1] == 'a':
		all = append(all, key[:len(key)-1])
	}
	if n := len(w); ascii(w) && n > 6 && strings.HasSuffix(w, "er") { // who does what is -ing
		all = append(all, sound(softened(w[:n-2])))
	}
	return all
}

// apart is the number of edits between two words, counting letters that changed places as one; more than
// most is most+1.
func apart(a, b string, most int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) > most || len(y)-len(x) > most {
		return most + 1
	}
	before, last, now := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		now[0] = i
		least := i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
			least = min(least, now[j])
		}
		if least > most {
			return most + 1
		}
		before, last, now = last, now, before
	}
	return min(last[len(y)], most+1)
}

// editsIn is how many edits a word of that many letters may have.
func editsIn(letters int) int {
	switch {
	case letters < 4:
		return 0
	case letters < 8:
		return 1
	}
	return 2
}
