package storage

import (
	"context"
	"math"
	"slices"
)

// question is a query's words, with what finds items by them.
func (is Items) question(q *ItemQuery, s asked, w itemWalk) *question {
	a := &question{tx: is.tx, q: q.Q, terms: termsAsked(q.Q), tables: []string{itemTerms}, sure: sureMatch, rare: rareSeller}
	a.find = func(ctx context.Context, c condition, limit int) ([]int64, int, error) {
		at, err := is.find(ctx, q, s.with(c), w, limit)
		return at, 0, err
	}
	a.any = func(ctx context.Context, c condition) (bool, error) {
		at, err := is.find(ctx, &ItemQuery{}, asked{}.with(c), itemWalk{at: math.MaxInt64}, 1)
		return len(at) > 0, err
	}
	for _, c := range []struct {
		name  string
		given bool
	}{{"handle", q.Handles != nil}, {"near", q.Near != nil}, {"category", len(q.Categories) > 0}, {"availability", len(q.Availabilities) > 0},
		{"minPrice", q.Min != nil}, {"maxPrice", q.Max != nil}} {
		if c.given {
			a.filters = append(a.filters, c.name)
		}
	}
	return a
}

// relevant is a search by relevance.
func (is Items) relevant(ctx context.Context, q *ItemQuery, s asked, by itemWalk) (out ItemPage, err error) {
	out.Items = []CatalogItem{}
	w, err := resumeRanked(listItems, q.After)
	if err != nil {
		return out, err
	}
	way := ""
	if q.After != "" {
		way = string(w.way)
	}
	u, err := is.question(q, s, by).understand(ctx, way)
	if out.Finding = u.Finding; err != nil || u.whole == nil {
		return out, err
	}
	if q.After == "" {
		w = beginRanked(&u, by.at, 0)
	}
	var rows, found []StoredItem
	l := rankedList{
		limit: bounded(q.Limit), up: by.up, most: mostLooked, begin: math.MaxInt64,
		number: func(pos int64) int64 { return pos / 2 },
		find: func(ctx context.Context, c condition, from int64, limit int) ([]int64, error) {
			by.at = from
			return is.find(ctx, q, s.with(c), by, limit)
		},
		read: func(ctx context.Context, at []int64) (int, error) {
			rows, err = is.onSale(ctx, q, at)
			return len(rows), err
		},
		fields: func(row int, some bool) []field { return rows[row].fields(some) },
		place:  func(row int) int64 { return rows[row].row.pos / 2 },
		show:   func(row int) { found = append(found, rows[row]) },
	}
	if by.up {
		l.begin = -1
	}
	next, err := l.walk(ctx, &u, w, q.After != "")
	if err != nil {
		return out, err
	}
	out.Next = cursorTo(listItems, next)
	out.Items, err = is.ofMerchants(ctx, found)
	return out, err
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
