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
	rows, err := is.tx.query(ctx, `SELECT p.currency, p.minor FROM item_price p JOIN item i ON i.pos = p.pos
		WHERE p.seq = ? AND i.since <= ? AND i.until > ?`, seq, catalog, catalog)
	return collect(rows, err, func(s scanner) (p price, err error) { return p, s.Scan(&p.currency, &p.minor) })
}

type price struct {
	currency string
	minor    int64
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
			t.put(priceFacet(p.currency, bucketOf(p.minor), level))
		}
	}
}
