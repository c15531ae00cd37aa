package storage

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"stoa/protocol"
)

// A search by relevance reads the index in stages, the better place first, and of each in blocks of its order; a block is read,
// ranked and shown whole. So the best come first among all that match when these are few, and among the next
// ones of the best stage when they are many, and a page costs what a block does.

// blockRows is how many rows are ranked at once: on PostgreSQL, which reads the newest rows of a common word one by one, more cost more.
const blockRows = 60

// Ways in which a question was understood.
const (
	withAll   = 'a' // as it was asked
	withMeant = 'm' // and words may be what they were meant for
	withKnown = 'k' // those that items have
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

// understand finds a way in which a question finds something; with a way, that of an earlier page.
func (is Items) understand(ctx context.Context, q *ItemQuery, s asked, terms []*term, w itemWalk, way string) (u understood, err error) {
	u.terms = terms
	try := func(as byte, whole condition, stages []condition) (bool, error) {
		if way != "" {
			if way[0] == as {
				u.way, u.whole, u.stages = as, whole, stages
			}
			return way[0] == as, nil
		}
		at, err := is.find(ctx, q, s.with(whole), w, blockRows+1)
		if err == nil && len(at) > 0 {
			u.way, u.whole, u.stages, u.few, u.first = as, whole, stages, len(at) <= blockRows, at
		}
		return len(at) > sureMatch, err
	}
	sure, err := try(withAll, allOf(eachTerm(terms, formPlain)...), inPlaces(terms))
	if err != nil || sure {
		return u, err
	}
	changed, err := is.interpret(ctx, terms)
	if err != nil {
		return u, err
	}
	if changed {
		before := u
		if sure, err = try(withMeant, allOf(eachTerm(terms, formPlain)...), inPlaces(terms)); err != nil {
			return u, err
		}
		if len(u.first) > len(before.first) || way != "" && sure {
			u.DidYouMean = asMeantToBe(q.Q, terms)
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
		u.DidYouMean = asMeantToBe(q.Q, terms)
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
func (is Items) interpret(ctx context.Context, terms []*term) (changed bool, err error) {
	var keys []string
	for _, t := range terms {
		if t.word != "" {
			keys = append(append(append(keys, t.key), sortedKeys(t.others)...), t.joined...)
		}
	}
	known, err := is.known(ctx, keys)
	if err != nil {
		return false, err
	}
	for _, t := range terms {
		if t.word == "" || strings.ContainsAny(t.word, "0123456789") {
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
		if t.absent = n == 0; n > rareSeller {
			continue
		}
		if t.meaning, err = is.meant(ctx, t.word); err != nil {
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

// A rankedWalk is a position in a search by relevance: a block of a stage, and an item in it.
type rankedWalk struct {
	way      byte
	few      int // 1: one stage is enough
	stage    int
	from, to int64 // numbers around the block, from the last before it to the last in it; -1 when it is not begun
	score    int   // of the last item that was shown
	at       int64
}

const rankedForm = "r%c%d.%d.%d.%d.%d.%d"

func (w rankedWalk) String() string {
	return fmt.Sprintf(rankedForm, w.way, w.few, w.stage, w.from, w.to, w.score, w.at)
}

func resumeRanked(after string) (w rankedWalk, err error) {
	at, err := protocol.ParseCursor(listItems, after)
	if err != nil || at == "" {
		return w, err
	}
	var way rune
	if _, err := fmt.Sscanf(at, rankedForm, &way, &w.few, &w.stage, &w.from, &w.to, &w.score, &w.at); err != nil || way > 'z' {
		return w, errItemCursor()
	}
	if w.way = byte(way); w.String() != at || w.stage < 0 || w.from < -1 || w.to < -1 || !strings.ContainsRune("amkso", way) {
		return w, errItemCursor()
	}
	return w, nil
}

// relevant is a search by relevance.
func (is Items) relevant(ctx context.Context, q *ItemQuery, s asked, terms []*term, by itemWalk) (out ItemPage, err error) {
	out.Items = []CatalogItem{}
	w, err := resumeRanked(q.After)
	if err != nil {
		return out, err
	}
	way := ""
	if q.After != "" {
		way = string(w.way)
	}
	u, err := is.understand(ctx, q, s, terms, by, way)
	if out.Finding = u.Finding; err != nil || u.whole == nil {
		if err == nil && way == "" {
			out.Finding, err = is.advise(ctx, q, terms, u.Finding)
		}
		return out, err
	}
	again := w.to >= 0 && q.After != ""
	if q.After == "" {
		w = rankedWalk{way: u.way, from: by.at, score: math.MaxInt32}
		if u.few {
			w.few = 1
		}
	}
	if u.few || w.few == 1 {
		u.stages = []condition{u.whole}
	}
	if w.stage >= len(u.stages) {
		return out, errItemCursor()
	}
	r := newRanker(terms, u.way == withSome || u.way == withOne)
	limit := bounded(q.Limit)
	var found []StoredItem
	for looked := 0; ; {
		by.at = w.from
		at, more := u.first, false
		if again || len(at) == 0 || !u.few {
			want := blockRows
			if again {
				want += blockRows // some may match now that did not
			}
			if at, err = is.find(ctx, q, s.with(u.stages[w.stage]), by, want); err != nil {
				return out, err
			}
			more = len(at) == want
		}
		if again {
			at, more = within(at, w.to, by.up), true
		} else if len(at) > 0 {
			w.to = at[len(at)-1] / 2
			if w.from == math.MaxInt64 { // newer ones are not in the block
				w.from = at[0]/2 + 1
			}
		}
		looked += len(at)
		items, err := is.onSale(ctx, q, at)
		if err != nil {
			return out, err
		}
		for _, i := range r.rank(items) {
			number := i.row.pos / 2
			if again && (i.score > w.score || i.score == w.score && (number == w.at || (number < w.at) == by.up)) {
				continue // shown
			}
			if len(found) == limit {
				out.Next = protocol.Cursor(listItems, w.String())
				out.Items, err = is.ofMerchants(ctx, found)
				return out, err
			}
			found = append(found, i.StoredItem)
			w.score, w.at = i.score, number
		}
		again = false
		switch {
		case more:
			w.from, w.score, w.at = w.to, math.MaxInt32, 0
		case w.stage+1 < len(u.stages):
			if w.stage, w.from, w.score, w.at = w.stage+1, math.MaxInt64, math.MaxInt32, 0; by.up {
				w.from = -1
			}
		default:
			out.Items, err = is.ofMerchants(ctx, found)
			return out, err
		}
		if looked > mostLooked {
			w.to = -1
			out.Next = protocol.Cursor(listItems, w.String())
			out.Items, err = is.ofMerchants(ctx, found)
			return out, err
		}
	}
}

// within are the rows of a block up to its last number.
func within(at []int64, to int64, up bool) []int64 {
	return slices.DeleteFunc(slices.Clone(at), func(pos int64) bool { return (pos/2 > to) == up && pos/2 != to })
}

// advise says what of a question without answers could be left out.
func (is Items) advise(ctx context.Context, q *ItemQuery, terms []*term, f protocol.Finding) (protocol.Finding, error) {
	var named []string
	for _, c := range []struct {
		name  string
		given bool
	}{{"handle", q.Handles != nil}, {"category", len(q.Categories) > 0}, {"availability", len(q.Availabilities) > 0},
		{"minPrice", q.Min != nil}, {"maxPrice", q.Max != nil}} {
		if c.given {
			named = append(named, c.name)
		}
	}
	if len(named) == 0 {
		return f, nil
	}
	u, err := is.understand(ctx, &ItemQuery{Q: q.Q}, asked{}, terms, itemWalk{at: math.MaxInt64}, "")
	if err == nil && u.whole != nil {
		f.Without = append(f.Without, named...)
	}
	return f, err
}

// fitting are those of some rows that the index of PostgreSQL finds, in their order.
func (is Items) fitting(ctx context.Context, s asked, at []int64) ([]int64, error) {
	if s.plain() || len(at) == 0 {
		return at, nil
	}
	fit, err := list[int64](ctx, is.tx, `SELECT seq FROM item_word WHERE seq IN (`+marks(len(at))+`) AND words @@ ?::tsquery`,
		append(anyOf(at), s.whole()(tsquery))...)
	if err != nil {
		return nil, err
	}
	fits := map[int64]bool{}
	for _, pos := range fit {
		fits[pos] = true
	}
	return slices.DeleteFunc(at, func(pos int64) bool { return !fits[pos] }), nil
}
