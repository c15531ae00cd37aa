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

// Sizes of a list by price.
const (
	sortedRows = 5000 // up to so many are sorted
	priceRows  = 1000 // prices whose items are looked at at once
)

// byPrice lists items by their least price, those without one at the end of the cheapest first.
func (is Items) byPrice(ctx context.Context, q *ItemQuery, s asked, w itemWalk) (out protocol.Page[CatalogItem], err error) {
	out.Items = []CatalogItem{}
	at, err := protocol.ParseCursor(listItems, q.After)
	if err != nil {
		return out, err
	}
	after := priced{minor: -1}
	if q.Sort == protocol.SortDearest {
		after.minor = math.MaxInt64
	}
	begun := at != ""
	if begun {
		if _, err := fmt.Sscanf(at, "p%d.%d", &after.minor, &after.pos); err != nil || after.String() != at {
			return out, errItemCursor()
		}
	}
	limit := bounded(q.Limit)
	w.up, w.at = false, math.MaxInt64
	all, err := is.find(ctx, q, s, w, sortedRows+1)
	if err != nil {
		return out, err
	}
	var found []StoredItem
	if len(all) <= sortedRows {
		found, err = is.sorted(ctx, q, all, after, limit+1, func(int64) bool { return true })
	} else {
		along := is.alongPrices
		if is.tx.db.engine == engineSQLite {
			along = is.alongBuckets
		}
		found, after, err = along(ctx, q, s, after, limit+1)
		if err == nil && len(found) <= limit && after.pos != 0 {
			out.Next = protocol.Cursor(listItems, after.String())
		}
	}
	if err != nil {
		return out, err
	}
	if len(found) > limit {
		found = found[:limit]
		out.Next = protocol.Cursor(listItems, pricedOf(&found[limit-1]).String())
	}
	out.Items, err = is.ofMerchants(ctx, found)
	return out, err
}

// A priced is a position in a list by price.
type priced struct{ minor, pos int64 }

// unpriced is the place of an item without a price.
const unpriced = math.MaxInt64 - 1

func (p priced) String() string { return fmt.Sprintf("p%d.%d", p.minor, p.pos) }

func pricedOf(i *StoredItem) priced {
	if i.Currency == "" {
		return priced{unpriced, i.row.pos}
	}
	return priced{i.Low, i.row.pos}
}

// before reports the order of a list by price.
func (p priced) before(o priced, dearest bool) bool {
	switch {
	case p.minor == o.minor:
		return p.pos < o.pos
	case dearest && (p.minor == unpriced || o.minor == unpriced):
		return o.minor == unpriced
	}
	return (p.minor < o.minor) != dearest
}

// sorted are the first items after a position, of all that match and whose least price is admitted; -1 for none.
func (is Items) sorted(ctx context.Context, q *ItemQuery, all []int64, after priced, limit int, admits func(low int64) bool) ([]StoredItem, error) {
	dearest := q.Sort == protocol.SortDearest
	type row struct {
		Pos int64
		Low *int64
	}
	var places [][2]int64
	for some := range slices.Chunk(all, 1000) {
		rows, err := list[row](ctx, is.tx, `SELECT pos, low FROM item WHERE pos IN (`+marks(len(some))+`)`, anyOf(some)...)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			p, low := priced{unpriced, r.Pos}, int64(-1)
			if r.Low != nil {
				p.minor, low = *r.Low, *r.Low
			}
			if !admits(low) {
				continue
			}
			if after.pos == 0 || after.before(p, dearest) {
				place := [2]int64{p.minor, p.pos}
				if dearest && p.minor != unpriced {
					place[0] = -p.minor
				}
				places = append(places, place)
			}
		}
	}
	inOrder(places)
	var found []StoredItem
	for some := range slices.Chunk(places, 2*limit) {
		at := make([]int64, len(some))
		for n := range some {
			at[n] = some[n][1]
		}
		items, err := is.onSale(ctx, q, at)
		if err != nil {
			return nil, err
		}
		if found = append(found, items...); len(found) >= limit {
			return found[:limit], nil
		}
	}
	return found, nil
}

// alongPrices reads prices in their order until enough of their items match; last is where it stopped, with pos 0 at the end.
func (is Items) alongPrices(ctx context.Context, q *ItemQuery, s asked, after priced, limit int) (found []StoredItem, last priced, err error) {
	least, most := q.bounds()
	text := `SELECT minor, pos FROM item_price WHERE currency = ? AND minor BETWEEN ? AND ? AND (minor, pos) > (?, ?) ORDER BY minor, pos LIMIT ?`
	args := func() []any { return []any{currencyOf(q), least, most, after.minor, after.pos, priceRows} }
	if q.Sort == protocol.SortDearest {
		text = `SELECT minor, pos FROM item_price WHERE currency = ? AND minor BETWEEN ? AND ? AND (minor, -pos) < (?, ?) ORDER BY minor DESC, pos LIMIT ?`
		args = func() []any {
			return []any{currencyOf(q), least, min(most, after.minor), after.minor, -after.pos, priceRows}
		}
	}
	type row struct{ Minor, Pos int64 }
	for looked := 0; looked < mostLooked; {
		rows, err := list[row](ctx, is.tx, text, args()...)
		if err != nil {
			return nil, after, err
		}
		prices, at := map[int64]int64{}, []int64(nil)
		for _, r := range rows {
			if _, twice := prices[r.Pos]; !twice {
				at, prices[r.Pos] = append(at, r.Pos), r.Minor
			}
		}
		fit, err := is.fitting(ctx, s, at)
		if err != nil {
			return nil, after, err
		}
		items, err := is.onSale(ctx, q, fit)
		if err != nil {
			return nil, after, err
		}
		for _, i := range items {
			if i.Low == prices[i.row.pos] { // by the least of its prices
				if found = append(found, i); len(found) == limit {
					return found, after, nil
				}
			}
		}
		if looked += len(rows); len(rows) < priceRows {
			return found, priced{}, nil
		}
		after = priced{rows[len(rows)-1].Minor, rows[len(rows)-1].Pos}
	}
	return found, after, nil
}

const wholeOctave = 1<<priceBits - 1

// alongBuckets is alongPrices for SQLite, whose index of words cannot be asked for single rows: it reads the items of one bucket of
// prices after the other (itemword.go), of the largest with few enough.
func (is Items) alongBuckets(ctx context.Context, q *ItemQuery, s asked, after priced, limit int) (found []StoredItem, last priced, err error) {
	least, most := q.bounds()
	dearest := q.Sort == protocol.SortDearest
	at, end := bucketOf(max(least, after.minor)), bucketOf(most)
	if dearest {
		at, end = bucketOf(least)&^wholeOctave, bucketOf(min(most, after.minor))
	} else {
		end |= wholeOctave
	}
	for looked := 0; at <= end; {
		level, size, bucket := 0, int64(1)<<priceBits, at
		var all []int64
		for ; ; level++ {
			if size = 1 << (priceBits - 3*level); dearest {
				bucket = end - size + 1
			}
			if level < priceLevels-1 && (bucket&(size-1) != 0 || bucket < at || bucket+size-1 > end) {
				continue
			}
			w := itemWalk{at: math.MaxInt64}
			in := asked{all: append(slices.Clip(s.all), oneOf([]string{priceFacet(currencyOf(q), bucket, level)})), shop: s.shop}
			if all, err = is.find(ctx, q, in, w, sortedRows+1); err != nil {
				return nil, after, err
			}
			if len(all) <= sortedRows || level == priceLevels-1 {
				break
			}
		}
		some, err := is.sorted(ctx, q, all, after, limit, func(low int64) bool { return low >= 0 && bucketOf(low)-bucket < size && bucketOf(low) >= bucket })
		if err != nil {
			return nil, after, err
		}
		if found = append(found, some...); len(found) >= limit {
			return found[:limit], after, nil
		}
		if looked += len(all); dearest {
			end = bucket - 1
		} else {
			at = bucket + size
		}
		if looked > 2*sortedRows && len(found) > 0 {
			return found, pricedOf(&found[len(found)-1]), nil
		}
	}
	return found, priced{}, nil
}

func currencyOf(q *ItemQuery) string {
	if q.Currency == "" {
		return protocol.Rupee
	}
	return q.Currency
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
