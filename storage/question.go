package storage

import (
	"context"
	"slices"
	"strings"

	"stoa/protocol"
)

// A question is the words that a list is asked for, and what finds rows of the list by them.
type question struct {
	tx     *Tx
	q      string
	terms  []*term
	tables []string // where the words of its rows are counted
	sure   int      // up to so many rows that have all words, a word that few have may be misspelled
	rare   int64    // and few are so many
	// find finds rows by a condition; more are those that other lists have, which are looked for when it finds none.
	find func(ctx context.Context, c condition, limit int) (at []int64, more int, err error)
	// late: words are counted some time after the rows that have them are stored.
	late bool
	// filters are the names of other conditions, and any reports whether something is found without these.
	filters []string
	any     func(ctx context.Context, c condition) (bool, error)
}

// Ways in which a question was understood.
const (
	withAll   = 'a' // as it was asked
	withMeant = 'm' // and words may be what they were meant for
	withKnown = 'k' // those that rows have
	withSome  = 's' // most of them
	withOne   = 'o' // any of them
)

// An understood question.
type understood struct {
	protocol.Finding
	way    byte
	terms  []*term
	whole  condition // nil: nothing is found
	stages []condition
	few    bool // the first rows are all
	first  []int64
}

// partial reports whether not all terms need to match.
func (u *understood) partial() bool { return u.way == withSome || u.way == withOne }

// understand finds a way in which a question finds something; with a way, that of an earlier page.
func (a *question) understand(ctx context.Context, way string) (u understood, err error) {
	u, err = a.interpreted(ctx, way)
	if err != nil || u.whole != nil || way != "" || len(a.filters) == 0 {
		return u, err
	}
	free := *a
	free.filters, free.terms = nil, slices.Clone(a.terms)
	free.find = func(ctx context.Context, c condition, _ int) ([]int64, int, error) {
		found, err := a.any(ctx, c)
		if found {
			return nil, a.sure + 1, err
		}
		return nil, 0, err
	}
	without, err := free.interpreted(ctx, "")
	if err == nil && without.whole != nil {
		u.Without = append(u.Without, a.filters...)
	}
	return u, err
}

func (a *question) interpreted(ctx context.Context, way string) (u understood, err error) {
	terms, most := a.terms, 0
	u.terms = terms
	try := func(as byte, whole condition, stages []condition) (bool, error) {
		if way != "" {
			if way[0] == as {
				u.way, u.whole, u.stages = as, whole, stages
			}
			return way[0] == as, nil
		}
		at, more, err := a.find(ctx, whole, blockRows+1)
		n := len(at) + more
		if err == nil && n > 0 {
			u.way, u.whole, u.stages, u.few, u.first, most = as, whole, stages, len(at) <= blockRows, at, n
		}
		return n > a.sure, err
	}
	sure, err := try(withAll, allOf(eachTerm(terms, formPlain)...), inPlaces(terms))
	if err != nil || sure {
		return u, err
	}
	changed, err := a.interpret(ctx)
	if err != nil {
		return u, err
	}
	if changed {
		before := most
		if sure, err = try(withMeant, allOf(eachTerm(terms, formPlain)...), inPlaces(terms)); err != nil {
			return u, err
		}
		if most > before || way != "" && sure {
			u.DidYouMean = asMeantToBe(a.q, terms)
		}
		if way != "" && sure {
			return u, nil
		}
	}
	if u.whole != nil {
		return u, nil
	}
	present := slices.DeleteFunc(slices.Clone(terms), func(t *term) bool { return t.absent })
	for _, t := range terms {
		if t.absent && t.word != "" {
			u.Without = append(u.Without, t.word)
		}
	}
	if len(present) > 0 && changed {
		u.DidYouMean = asMeantToBe(a.q, terms)
	}
	if len(present) > 0 && len(present) < len(terms) {
		if _, err = try(withKnown, allOf(eachTerm(present, formPlain)...), inPlaces(present)); err != nil || u.whole != nil {
			u.Partly = true
			return u, err
		}
	}
	if len(present) > 1 {
		stages, whole := mostOf(present, false)
		if _, err = try(withSome, whole, stages); err == nil && u.whole == nil {
			stages, whole = mostOf(present, true)
			_, err = try(withOne, whole, stages)
		}
	}
	if u.Partly = u.whole != nil; !u.Partly {
		u.DidYouMean = ""
	}
	return u, err
}

// interpret weighs terms by their rarity and finds what rare and unknown ones may have been meant for.
func (a *question) interpret(ctx context.Context) (changed bool, err error) {
	var keys []string
	for _, t := range a.terms {
		if t.word != "" {
			keys = append(append(append(keys, t.key), sortedKeys(t.others)...), t.joined...)
		}
	}
	known, err := a.tx.known(ctx, a.tables, keys)
	if err != nil {
		return false, err
	}
	for _, t := range a.terms {
		if t.word == "" || t.exact || strings.ContainsAny(t.word, "0123456789") {
			continue // those are not counted
		}
		n := known[t.key]
		for k := range t.others {
			n += known[k]
		}
		for _, k := range t.joined {
			n += known[k]
		}
		t.weigh(n)
		if n == 0 && a.late {
			if n, err = a.uncounted(ctx, t); err != nil {
				return false, err
			}
		}
		if t.absent = n == 0; n > a.rare {
			continue
		}
		if t.meaning, err = a.tx.meant(ctx, a.tables, t.word); err != nil {
			return false, err
		}
		if n > 0 && len(t.meaning) > 0 && t.meaning[0].N <= 4*n {
			t.meaning = nil // as rare as what was typed
		}
		for _, s := range t.meaning {
			t.add(s.Key, asMeant)
			t.weigh(s.N)
			for _, k := range synonyms()[s.Key] {
				t.add(k, asMeant-10)
			}
			changed = true
		}
		t.absent = t.absent && len(t.meaning) == 0
	}
	return changed, nil
}

// uncounted is 1 for a word that a row has and nobody has counted yet.
func (a *question) uncounted(ctx context.Context, t *term) (n int64, err error) {
	found, err := a.any(ctx, t.in(formPlain))
	if found {
		n = 1
	}
	return n, err
}

// asMeantToBe is a question with the likeliest spelling of each word.
func asMeantToBe(q string, terms []*term) string {
	words := strings.Fields(q)
	for i, w := range words {
		folded := strings.Join(foldWords(w), "")
		for _, t := range terms {
			if t.word == folded && len(t.meaning) > 0 {
				words[i] = t.meaning[0].Word
			}
		}
	}
	return strings.Join(words, " ")
}
