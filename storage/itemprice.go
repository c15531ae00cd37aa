package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Each price of an indexed item is a row of item_price, once, so that the items and the
// merchants of an exact range are index ranges. It is written and deleted with the words
// of the item.

// addPrices adds the prices of rows that are not in the index.
func (is Items) addPrices(ctx context.Context, rows []newRow) error {
	var args []any
	for _, r := range rows {
		var seen []int64
		for _, v := range r.item.Variants() {
			if v.Currency != "" && !slices.Contains(seen, v.Minor) {
				seen = append(seen, v.Minor)
				args = append(args, r.item.row.seq, v.Currency, v.Minor, r.item.row.pos)
			}
		}
	}
	if len(args) == 0 {
		return nil
	}
	if _, err := is.tx.write(ctx, `INSERT INTO item_price (seq, currency, minor, pos) VALUES (?, ?, ?, ?)`+
		strings.Repeat(`, (?, ?, ?, ?)`, len(args)/4-1), args...); err != nil {
		return fmt.Errorf("store prices of items: %w", err)
	}
	return nil
}

// pricesOf are the prices of all items on sale of a business.
func (is Items) pricesOf(ctx context.Context, seq, catalog int64) ([]price, error) {
	return list[price](ctx, is.tx, `SELECT p.currency, p.minor FROM item_price p JOIN item i ON i.pos = p.pos
		WHERE p.seq = ? AND i.since <= ? AND i.until > ?`, seq, catalog, catalog)
}

type price struct {
	Currency string
	Minor    int64
}

// shopPriceLevels is how many sizes of buckets of prices a merchant has in the directory;
// one of the smallest is at most 1.6 % of an amount.
const shopPriceLevels = priceLevels - 1

// maxPriceText is the size limit of these buckets, in bytes; those of one currency need less.
const maxPriceText = 64 << 10

// prices adds the buckets of prices, up to a size.
func (t *text) prices(all []price) {
	end := len(t.b) + maxPriceText
	for _, p := range all {
		for level := 0; level < shopPriceLevels && len(t.b) < end; level++ {
			t.put(priceFacet(p.Currency, bucketOf(p.Minor), level))
		}
	}
}

// Sizes of a search by price on PostgreSQL: see findPriced.
const (
	fewPrices    = 6000   // up to so many rows of a range are gathered and sorted
	nextPrices   = 60_000 // numbers, newest first, among which those of a larger range are looked for
	pricesLooked = 1000   // rows whose words are compared one by one
)

// findPriced looks for the next rows of a walk with a price in a range and with all else that
// was asked. The index of words would gather every row of the range, or of
// the words, from pages all over the table. Here a narrow index has the rows of a range,
// if they are few, and those of a larger one among the newest; in the order of the walk,
// their words are compared until the page is full. It is not whole when that was not
// enough: then the words are rare.
func (is Items) findPriced(ctx context.Context, q *ItemQuery, rest []condition, w itemWalk, after int64, limit int) (found []int64, whole bool, err error) {
	least, most := q.bounds()
	where, args, order := ` AND pos > ?`, []any{q.Currency, least, most, after}, ``
	if !w.up {
		where, order = ` AND pos < ?`, ` DESC`
	}
	if w.seqs != nil {
		where, args = where+` AND seq IN (`+marks(len(w.seqs))+`)`, append(args, anyOf(w.seqs)...)
	}
	at, err := list[int64](ctx, is.tx, pricedRows+where+` ORDER BY minor LIMIT ?`, append(args, fewPrices+1)...)
	if err != nil {
		return nil, false, err
	}
	whole = len(at) <= fewPrices
	if !whole && w.up {
		return nil, false, nil // a large part of a shop: there are some among its next items
	}
	if !whole {
		if at, err = list[int64](ctx, is.tx, pricedRows+` AND pos < ? AND pos > LEAST(?, (SELECT max(pos) FROM item)) - ? ORDER BY pos DESC LIMIT ?`,
			append(args, after, nextPrices, pricesLooked)...); err != nil {
			return nil, false, err
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	if !w.up {
		slices.Reverse(at)
	}
	if len(rest) == 0 {
		return at[:min(limit, len(at))], whole || len(at) >= limit, nil
	}
	query := allOf(rest...)(tsquery)
	for size := 4 * limit; len(at) > 0; size *= 2 {
		some := at[:min(size, pricesLooked, len(at))]
		at = at[len(some):]
		fit, err := list[int64](ctx, is.tx, `SELECT seq FROM item_word WHERE seq IN (`+marks(len(some))+`) AND words @@ ?::tsquery ORDER BY seq`+order,
			append(anyOf(some), query)...)
		if err != nil {
			return nil, false, err
		}
		if found = append(found, fit...); len(found) >= limit {
			return found[:limit], true, nil
		}
		if size >= pricesLooked {
			break
		}
	}
	return found, whole && len(at) == 0, nil
}

const pricedRows = `SELECT pos FROM item_price WHERE currency = ? AND minor >= ? AND minor <= ?`
