package storage

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// How well a row matches is computed from its texts, among those that the index finds.

// Weights of the places of a word.
const (
	weightName   = 10
	weightLabel  = 7
	weightTag    = 5
	weightPlain  = 2
	weightSecond = 4 // part of the next best place that counts too
)

// A ranker computes scores for one question.
type ranker struct {
	terms []*term
	some  bool // not all terms need to match
	keys  map[string][]string
}

func newRanker(terms []*term, some bool) *ranker {
	return &ranker{terms, some, map[string][]string{}}
}

func (r *ranker) keysOf(w string) []string {
	k, ok := r.keys[w]
	if !ok {
		k = keysOf(w)
		r.keys[w] = k
	}
	return k
}

// A field is the words of a text of an item.
type field struct {
	words    []string
	measures []string
	weight   int
}

func newField(weight int, texts ...string) (f field) {
	f.weight = weight
	for _, s := range texts {
		f.words = append(f.words, foldWords(measures(s, func(token string) { f.measures = append(f.measures, token) }))...)
	}
	return f
}

// match is the quality of the best match of a term in a field, of a hundred, and where it is.
func (r *ranker) match(t *term, f *field) (best, at int) {
	at = -1
	switch {
	case t.phrase != nil:
		for i := range f.words {
			if len(f.words)-i >= len(t.phrase) && slices.Equal(f.words[i:i+len(t.phrase)], t.phrase) {
				return asTyped, i
			}
		}
		return 0, -1
	case t.word == "":
		if slices.Contains(f.measures, t.key) {
			return asTyped, -1
		}
		return 0, -1
	}
	for i, w := range f.words {
		if q := r.quality(t, w); q > best {
			best, at = q, i
		}
		if best == asTyped {
			return best, at
		}
		if i > 0 && best < asJoined && r.together(t, f.words[i-1]+w) {
			best, at = asJoined, i
		}
	}
	return best, at
}

// together reports whether two words written as one are the term, or the term with a neighbour is one word.
func (r *ranker) together(t *term, two string) bool {
	return len(two) >= len(t.word)-2 && slices.Contains(r.keysOf(two), t.key)
}

func (r *ranker) quality(t *term, w string) (best int) {
	if w == t.word {
		return asTyped
	}
	if t.exact {
		return 0
	}
	for _, k := range r.keysOf(w) {
		switch {
		case k == t.key && ascii(w) && ascii(t.word) && stem(w) == stem(t.word):
			best = max(best, asStem)
		case k == t.key:
			best = max(best, asHeard)
		case slices.Contains(t.joined, k):
			best = max(best, asJoined)
		default:
			best = max(best, t.others[k])
		}
	}
	if t.last && best < asBegun && strings.HasPrefix(w, t.word) {
		best = asBegun + 28*utf8.RuneCountInString(t.word)/utf8.RuneCountInString(w)
	}
	return best
}

// fields are the searched texts of an item, its name first; its description only when not all terms need to match.
func (i *StoredItem) fields(some bool) []field {
	d := &i.Draft
	label := field{weight: weightLabel}
	for _, v := range d.Variants {
		f := newField(weightLabel, v.Options...)
		label.words, label.measures = append(label.words, f.words...), append(label.measures, f.measures...)
		label.words = append(label.words, foldWords(v.SKU+" "+v.Barcode)...)
	}
	label.words = append(label.words, foldWords(d.SKU+" "+d.Barcode)...)
	var names []string
	for _, c := range d.AllCategories() {
		names = append(names, c, categoryName(c))
	}
	fields := []field{newField(weightName, d.Name), label, newField(weightTag, append(names, d.Tags...)...)}
	if some {
		fields = append(fields, newField(weightPlain, d.Description))
	}
	return fields
}

// score is how well something with fields matches, the first of which is its name.
func (r *ranker) score(fields []field) int {
	name := &fields[0]
	total, inName, adjacent, before := 0, map[int]bool{}, 0, -2
	for _, t := range r.terms {
		var best, second int
		for n := range fields {
			q, at := r.match(t, &fields[n])
			if n == 0 && at >= 0 {
				inName[at] = true
				if at == before+1 {
					adjacent++
				}
				before = at
			}
			if q *= fields[n].weight; q > best {
				best, second = q, best
			} else {
				second = max(second, q)
			}
		}
		if best == 0 && !r.some && !t.absent { // in its description, where the index found it
			best = weightPlain * asHeard
		}
		total += t.weight * (best + second/weightSecond)
	}
	// Of equal matches, that whose name says less besides, and has the words next to each other, and last.
	most := 0
	for _, t := range r.terms {
		most += t.weight * weightName * asTyped
	}
	if len(name.words) > 0 {
		total += most * 12 / 100 * len(inName) / len(name.words)
		if inName[len(name.words)-1] {
			total += most * 4 / 100
		}
	}
	return total + most*4/100*adjacent/max(1, len(r.terms)-1)
}

// rank orders n rows by their texts, the best first; of equal ones in the order in which they came. The first numbers are the scores,
// negative, the second the rows.
func (r *ranker) rank(n int, fields func(row int, some bool) []field) [][2]int64 {
	places := make([][2]int64, n)
	for i := range n {
		places[i] = [2]int64{int64(-r.score(fields(i, r.some))), int64(i)}
	}
	inOrder(places)
	return places
}

// inOrder sorts pairs by the first number and then the second.
func inOrder(pairs [][2]int64) {
	slices.SortFunc(pairs, func(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
}
