package storage

import (
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// mostTerms is how many words of a question count; of a longer one the first.
const mostTerms = 12

// A term is a word, a measure or a phrase of a question.
type term struct {
	word    string   // as it was typed, folded; "" for a measure and a phrase
	key     string   // or the token of a measure
	phrase  []string // words next to each other
	exact   bool     // spelled so, and not otherwise
	last    bool     // may be the beginning of a word
	others  map[string]int
	joined  []string // keys of it with a neighbour
	weight  int
	absent  bool // nothing has it
	meaning []spelling
}

// Qualities of a match, of a hundred.
const (
	asTyped    = 100
	asStem     = 95
	asHeard    = 85
	asJoined   = 80
	asVariant  = 70
	asSynonym  = 55
	asMeant    = 50 // by a word that is spelled nearly so
	asBegun    = 20 // and more, the more of the word was typed, but in a name less than a whole word among the tags
	usualTerm  = 10 // weight of a term when nothing is known of its rarity
	leastTerm  = 2
	mostTerm   = 20
	unitTerm   = 12
	sureMatch  = 2 // up to so many items that have all words, a word that few have may be misspelled
	rareSeller = 2
)

// termsAsked are the terms of a question for items.
func termsAsked(q string) []*term {
	var measured []*term
	rest := measures(q, func(token string) { measured = append(measured, &term{key: token, weight: unitTerm}) })
	return append(termsOf(foldWords(rest), len(measured) > 0), measured...)
}

// termsOf are the terms of words; of those that say nothing only when there are no others.
func termsOf(words []string, others bool) (all []*term) {
	if others || slices.ContainsFunc(words, func(w string) bool { return !idle()[w] }) {
		words = slices.DeleteFunc(words, func(w string) bool { return idle()[w] })
	}
	if len(words) > mostTerms {
		words = words[:mostTerms]
	}
	for i, w := range words {
		if slices.ContainsFunc(all, func(t *term) bool { return t.word == w }) {
			continue
		}
		t := &term{word: w, key: keyOf(w), others: map[string]int{}, weight: usualTerm, last: i == len(words)-1 && len(w) >= shortestStart}
		for _, k := range keysOf(w)[1:] {
			t.others[k] = asHeard
		}
		for _, k := range variants(w, t.key) {
			t.add(k, asVariant)
		}
		for _, k := range synonyms()[t.key] {
			t.add(k, asSynonym)
		}
		if i > 0 {
			t.joined = append(t.joined, keyOf(words[i-1]+w))
		}
		if i+1 < len(words) {
			t.joined = append(t.joined, keyOf(w+words[i+1]))
		}
		all = append(all, t)
	}
	return all
}

func (t *term) add(key string, quality int) {
	if key != t.key && t.others[key] < quality {
		t.others[key] = quality
	}
}

// tokens are those of the index that match the term in a form.
func (t *term) tokens(form string) []string {
	if t.word == "" {
		return []string{t.key}
	}
	all := []string{form + t.key}
	if t.exact {
		all[0] = form + t.word
	}
	for _, k := range sortedKeys(t.others) {
		all = append(all, form+k)
	}
	if form == formHead { // or in the name
		for _, token := range all {
			all = append(all, formName+strings.TrimPrefix(token, formHead))
		}
	}
	if form == formPlain {
		all = append(all, t.joined...)
	}
	return all
}

func sortedKeys(m map[string]int) []string {
	all := make([]string, 0, len(m))
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// in is the condition that a row has the term in a form.
func (t *term) in(form string) condition {
	if t.phrase != nil {
		var pairs []condition
		for i, w := range t.phrase[1:] {
			pairs = append(pairs, (&term{word: t.phrase[i] + pairOf + w, exact: true}).in(form))
		}
		return allOf(pairs...)
	}
	return func(l language) string {
		all := l.quoted(t.tokens(form))
		if t.last && form != formName {
			if utf8.RuneCountInString(t.word) <= longestStart {
				all = append(all, l.quote+formPlain+startOf+t.word+l.quote)
			} else {
				all[0] += l.begins
			}
		}
		return "(" + strings.Join(all, l.or) + ")"
	}
}

// A condition is a part of a query of an index, in the syntax of an engine.
type condition func(l language) string

func oneOf(tokens []string) condition {
	return func(l language) string { return "(" + strings.Join(l.quoted(tokens), l.or) + ")" }
}

func allOf(parts ...condition) condition {
	return joined(parts, func(l language) string { return l.and })
}
func anyOne(parts ...condition) condition {
	return joined(parts, func(l language) string { return l.or })
}

func joined(parts []condition, by func(l language) string) condition {
	if len(parts) == 1 {
		return parts[0]
	}
	return func(l language) string {
		texts := make([]string, len(parts))
		for i, p := range parts {
			texts[i] = p(l)
		}
		return "(" + strings.Join(texts, by(l)) + ")"
	}
}

// without is what meets c and does not meet not.
func without(c, not condition) condition {
	return func(l language) string { return "(" + c(l) + l.not + "(" + not(l) + "))" }
}

func eachTerm(terms []*term, form string) []condition {
	all := make([]condition, len(terms))
	for i, t := range terms {
		all[i] = t.in(form)
	}
	return all
}

// inPlaces are the stages of a search for all terms: in the name, in name, categories or tags, anywhere.
func inPlaces(terms []*term) (stages []condition) {
	for i, form := range forms {
		c := allOf(eachTerm(terms, form)...)
		if i > 0 {
			c = without(c, allOf(eachTerm(terms, forms[i-1])...))
		}
		stages = append(stages, c)
	}
	return stages
}

// mostMissed is how many terms are looked for where not all need to match: each more doubles the ways to leave some out.
const mostMissed = 4

// mostOf are the stages of a search for some of the terms: all but one, all but two, down to half of them; or with one, any. whole
// is what meets one of these.
func mostOf(terms []*term, one bool) (stages []condition, whole condition) {
	if len(terms) > mostMissed { // the rarest
		places := make([][2]int64, len(terms))
		for i, t := range terms {
			places[i] = [2]int64{int64(-t.weight), int64(i)}
		}
		inOrder(places)
		rarest := make([]*term, mostMissed)
		for i := range rarest {
			rarest[i] = terms[places[i][1]]
		}
		terms = rarest
	}
	places := eachTerm(terms, formPlain)
	if one {
		whole = anyOne(places...)
		return []condition{whole}, whole
	}
	for size := len(terms) - 1; size >= (len(terms)+1)/2; size-- {
		var some []condition
		for set := uint(0); set < 1<<len(terms); set++ {
			if bits.OnesCount(set) != size {
				continue
			}
			var parts []condition
			for i, p := range places {
				if set>>i&1 == 1 {
					parts = append(parts, p)
				}
			}
			some = append(some, allOf(parts...))
		}
		c := anyOne(some...)
		if whole != nil {
			stages = append(stages, without(c, whole))
		} else {
			stages = append(stages, c)
		}
		whole = c // what has fewer of them includes what has more
	}
	return stages, whole
}

// weigh gives terms the weight of their rarity.
func (t *term) weigh(n int64) {
	t.weight = min(max(mostTerm-bits.Len64(uint64(n)), leastTerm), mostTerm)
}
