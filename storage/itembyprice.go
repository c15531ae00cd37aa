package storage

import (
	"context"
	"fmt"
	"math"
	"slices"

	"stoa/protocol"
)

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
			return out, errListCursor()
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
