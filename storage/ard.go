package storage

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"stoa/protocol"
)

// A ScoredProfile is a profile found by a search in natural language, with its
// score, 0 to 100.
type ScoredProfile struct {
	ListedProfile
	Score int
}

const (
	listARD    = "ard"
	listARDAny = "ard-any"
	// ardWindow is how many profiles are scored when none has all the words.
	ardWindow = 300
	ardWords  = 24
)

// stopWords are ignored in a search. A text of stop words only is used unchanged.
const stopWords = " a an and any are at by can for from has have help i in is it me my need of on or please some somebody someone something" +
	" that the their this to want we what which who with you your "

// plainWords are the words of a text without the stop words.
func plainWords(text string) []string {
	all := foldWords(text)
	slices.Sort(all)
	all = slices.Compact(all)
	some := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return strings.Contains(stopWords, " "+w+" ") })
	if len(some) == 0 {
		some = all
	}
	return some[:min(len(some), ardWords)]
}

// termFacets are the facets of a term, of which one must match; false where the
// index cannot decide and the caller checks the profiles.
func termFacets(t protocol.ARDTerm) (group []string, ok bool) {
	names := map[string][]string{
		protocol.ARDTags:         {facetTag, facetCapability}, // includes tags of capabilities
		protocol.ARDCapabilities: {facetCapability},
		protocol.ARDKind:         {facetKind},
		protocol.ARDLanguages:    {facetLanguage},
		protocol.ARDRegions:      {facetRegion},
	}[t.Path]
	for _, v := range t.Values {
		for _, name := range names {
			group = append(group, facet(name, v))
		}
		if t.Path == protocol.ARDHasIdentity {
			name := facetNobody
			if v == "true" {
				name = facetIdentity
			}
			group = append(group, facet(name, ""))
		}
	}
	return group, len(group) > 0
}

func newPlainSearch(text string, terms []protocol.ARDTerm) search {
	s := search{words: plainWords(text)}
	s.nothing = text != "" && len(s.words) == 0
	for _, t := range terms {
		if group, ok := termFacets(t); ok {
			s.groups = append(s.groups, group)
		}
	}
	return s
}

// Search finds listed profiles by a text in natural language: those that have all
// of its words, in the order of [Profiles.List], or if there are none, those that
// have most. The terms are applied only as far as the index can decide; the caller
// checks the rest.
func (ps Profiles) Search(ctx context.Context, text string, terms []protocol.ARDTerm, limit int, after string) (protocol.Page[ScoredProfile], error) {
	out := protocol.Page[ScoredProfile]{Items: []ScoredProfile{}}
	s := newPlainSearch(text, terms)
	if position, err := protocol.ParseCursor(listARDAny, after); err == nil && position != "" {
		return ps.searchAny(ctx, s, limit, position)
	}
	found, err := ps.list(ctx, listARD, s, protocol.Paging{Limit: limit, After: after}, nil)
	if err != nil {
		return out, err
	}
	if len(found.Items) == 0 && found.Next == nil && after == "" && len(s.words) > 1 {
		return ps.searchAny(ctx, s, limit, "")
	}
	for i := range found.Items {
		p := ScoredProfile{found.Items[i], 0}
		p.Score = max(s.score(&p.ListedProfile), 50) // it has all words, possibly in an item
		out.Items = append(out.Items, p)
	}
	slices.SortStableFunc(out.Items, func(a, b ScoredProfile) int { return cmp.Compare(b.Score, a.Score) })
	out.Next = found.Next
	return out, nil
}

// searchAny scores the profiles that have some of the words. A walk reads the same
// versions again and continues at its position.
func (ps Profiles) searchAny(ctx context.Context, s search, limit int, position string) (protocol.Page[ScoredProfile], error) {
	out := protocol.Page[ScoredProfile]{Items: []ScoredProfile{}}
	now, pruned, err := ps.clockNow(ctx)
	if err != nil {
		return out, err
	}
	clock, offset := now, 0
	if position != "" {
		if _, err := fmt.Sscanf(position, "%d.%d", &clock, &offset); err != nil || clock < pruned || clock > now || offset < 0 || offset > ardWindow {
			return out, protocol.Errorf(protocol.InvalidCursor, "pageToken is not one of this search; leave it out to start from the beginning")
		}
	}
	s.any = true
	var found []version
	for class := 0; class < s.classes() && len(found) < ardWindow; class++ {
		some, err := ps.findVersions(ctx, &s, walk{clock, class, math.MaxInt64}, ardWindow-len(found), false)
		if err != nil {
			return out, err
		}
		found = append(found, some...)
	}
	profiles, err := ps.ofVersions(ctx, found, true, true)
	if err != nil {
		return out, err
	}
	for _, v := range found {
		if p := profiles[v.Seq]; p != nil {
			out.Items = append(out.Items, ScoredProfile{*p, s.score(p)})
		}
	}
	slices.SortStableFunc(out.Items, func(a, b ScoredProfile) int { return cmp.Compare(b.Score, a.Score) })
	end := min(offset+limit, len(out.Items))
	if end < len(out.Items) {
		out.Next = protocol.Cursor(listARDAny, fmt.Sprintf("%d.%d", clock, end))
	}
	out.Items = out.Items[min(offset, end):end]
	return out, nil
}

// score is the share of the words that a profile has, each weighted by the best
// place in which it occurs.
func (s *search) score(p *ListedProfile) int {
	return s.scoreOf(func(field func(class int, text string)) { eachField(&p.StoredProfile, p.Merchant, field) })
}

// scoreOf is score for anything with texts in places.
func (s *search) scoreOf(each func(field func(class int, text string))) int {
	if len(s.words) == 0 {
		return 100
	}
	places := [...]int{100, 85, 70}
	best := map[string]int{}
	each(func(class int, text string) {
		for _, w := range foldWords(text) {
			best[w] = max(best[w], places[class])
		}
	})
	sum := 0
	for _, w := range s.words {
		sum += best[w]
	}
	return sum / len(s.words)
}

// A PlacedProfile is a profile with the place of its version, which is constant
// until the profile changes (rank.go).
type PlacedProfile struct {
	Pos int64
	StoredProfile
}

// ListedPlaces returns the places and the numbers of all listed profiles, in the
// order of places.
func (ps Profiles) ListedPlaces(ctx context.Context) (places, seqs []int64, err error) {
	text := `SELECT group_concat(pos || ' ' || seq, ' ') FROM profile_rank WHERE until = ?`
	if ps.tx.db.engine == enginePostgres {
		text = `SELECT string_agg(pos || ' ' || seq, ' ') FROM profile_rank WHERE until = ?`
	}
	both, err := ps.gather(ctx, text, int64(forever))
	if err != nil {
		return nil, nil, err
	}
	all := make([]version, 0, len(both)/2)
	for i := 0; i+1 < len(both); i += 2 {
		all = append(all, version{both[i], both[i+1]})
	}
	slices.SortFunc(all, func(a, b version) int { return cmp.Compare(a.Pos, b.Pos) })
	for _, v := range all {
		places, seqs = append(places, v.Pos), append(seqs, v.Seq)
	}
	return places, seqs, nil
}

// gather runs a query that returns all numbers in one text, which is many times
// faster than one row each.
func (ps Profiles) gather(ctx context.Context, query string, args ...any) ([]int64, error) {
	var text *string
	if err := ps.tx.row(ctx, query, args...).Scan(&text); err != nil || text == nil {
		return nil, err
	}
	numbers := make([]int64, 0, len(*text)/20+1)
	for field := range strings.FieldsSeq(*text) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("gather numbers: %w", err)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// gatherByIndex is gather for a condition on words. Where most rows match,
// PostgreSQL would scan the whole table and unpack the words of each row, which
// takes twenty times as long as using the index.
func (ps Profiles) gatherByIndex(ctx context.Context, query string, args ...any) ([]int64, error) {
	if err := ps.tx.raw(ctx, `SET LOCAL enable_seqscan = off`); err != nil {
		return nil, err
	}
	found, err := ps.gather(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return found, ps.tx.raw(ctx, `SET LOCAL enable_seqscan = on`)
}

// ListedBySeq returns the listed profiles among those numbers, of which there may
// be some hundred.
func (ps Profiles) ListedBySeq(ctx context.Context, seqs []int64) ([]PlacedProfile, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	in, args := inSeqs(seqs)
	return placedOf(list[profileRow](ctx, ps.tx, profileTable.from+`WHERE `+in+` AND listed`, args...))
}

// Match returns the places of the profiles that [Profiles.Search] finds for a
// text, in no order, including ended versions that are still stored.
func (ps Profiles) Match(ctx context.Context, text string) ([]int64, error) {
	s := newPlainSearch(text, nil)
	if s.nothing {
		return nil, nil
	}
	found, err := ps.match(ctx, &s)
	if err != nil || len(found) > 0 || len(s.words) < 2 {
		return found, err
	}
	s.any = true
	return ps.match(ctx, &s)
}

func (ps Profiles) match(ctx context.Context, s *search) ([]int64, error) {
	write := func(l language) string { // plainly, as every word is indexed
		if s.any {
			return matchAll(s.words, l.quote, l.or)
		}
		return matchAll(s.words, l.quote, l.and)
	}
	if ps.tx.db.engine == enginePostgres {
		return ps.gatherByIndex(ctx, `SELECT string_agg(pos::text, ' ') FROM profile_rank WHERE words @@ ?::tsquery`, write(tsquery))
	}
	return ps.gather(ctx, `SELECT group_concat(rowid, ' ') FROM profile_word WHERE profile_word MATCH ?`, write(fts5))
}
