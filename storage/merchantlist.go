package storage

import (
	"context"
	"maps"
	"slices"

	"stoa/protocol"
)

// A shopFilter is what the index decides only roughly about a business of a list: it is asked again of
// those that the index finds.
type shopFilter struct {
	open   bool
	near   *protocol.Geo
	radius float64 // metres
	prices ItemQuery
}

// ListMerchants returns listed businesses, in the order of [Profiles.List]. A
// word of q also matches its singular and plural, the last word also longer words
// that begin with it. Hours and prices are those of tx.Now, for each page.
func (ps Profiles) ListMerchants(ctx context.Context, q protocol.MerchantQuery) (protocol.Page[ListedProfile], error) {
	s, f, err := merchantSearch(q)
	if err != nil {
		return protocol.Page[ListedProfile]{}, err
	}
	if f.prices.priced() {
		least, most := f.prices.bounds()
		s.groups = append(s.groups, priceFacets(f.prices.Currency, least, most, shopPriceLevels))
	}
	page, err := ps.listSpelled(ctx, s, q.Paging, &f)
	if err != nil {
		return page, err
	}
	return page, ps.tx.Merchants().readPrices(ctx, page.Items, q.In())
}

// listSpelled lists the businesses that have the words of a search, as they or their items spell them; when there are none, those
// that have what the words may have been meant for.
func (ps Profiles) listSpelled(ctx context.Context, s search, paging protocol.Paging, f *shopFilter) (protocol.Page[ListedProfile], error) {
	missing, err := ps.tx.Items().spell(ctx, &s)
	if err != nil {
		return protocol.Page[ListedProfile]{}, err
	}
	first := paging
	if len(missing) > 0 && paging.After != "" {
		first = protocol.Paging{Limit: 1} // whether the walk is that of the words as they are
	}
	page, err := ps.list(ctx, listMerchants, s, first, f)
	if err != nil || len(missing) == 0 || len(page.Items) > 0 && paging.After == "" {
		return page, err
	}
	if len(page.Items) == 0 && page.Next == nil {
		for _, w := range missing {
			meant, err := ps.tx.Items().meant(ctx, w)
			if err != nil {
				return page, err
			}
			for _, m := range meant {
				s.spelled[w] = append(s.spelled[w], m.Word)
			}
		}
	}
	return ps.list(ctx, listMerchants, s, paging, f)
}

// readPrices reads the lowest and the highest price of what the businesses of a list sell, in a currency.
func (ms Merchants) readPrices(ctx context.Context, profiles []ListedProfile, currency string) error {
	sellers := map[int64]*StoredMerchant{}
	for _, p := range profiles {
		if p.Merchant != nil && p.Merchant.ItemCount > 0 {
			sellers[p.Merchant.seq] = p.Merchant
		}
	}
	if len(sellers) == 0 {
		return nil
	}
	type row struct {
		Seq       int64
		Low, High *int64
	}
	text, args := spansQuery(slices.Collect(maps.Keys(sellers)), currency)
	found, err := list[row](ctx, ms.tx, text, args...)
	for _, r := range found {
		if r.Low != nil && r.High != nil {
			sellers[r.Seq].Prices = &protocol.PriceSpan{Currency: currency, Low: *r.Low, High: *r.High}
		}
	}
	return err
}

// spansQuery looks at both ends of the prices of each business, so that a large catalog costs what a small one does.
func spansQuery(seqs []int64, currency string) (string, []any) {
	in, args := inSeqs(seqs)
	const end = `(SELECT p.minor FROM item_price p JOIN item i ON i.pos = p.pos
		WHERE p.seq = m.seq AND p.currency = ? AND i.since <= m.catalog AND i.until > m.catalog ORDER BY p.minor`
	return `SELECT m.seq, ` + end + ` LIMIT 1) AS low, ` + end + ` DESC LIMIT 1) AS high FROM merchant m WHERE m.` + in, append([]any{currency, currency}, args...)
}

// merchantSearch is a query of businesses: what their index decides, but for prices, and the rest.
func merchantSearch(q protocol.MerchantQuery) (search, shopFilter, error) {
	facets := []string{facet(facetKind, string(protocol.Business))}
	if q.Category != "" {
		facets = append(facets, facet(facetCategory, categoryName(q.Category)))
	}
	if q.City != "" {
		facets = append(facets, facet(facetCity, cityName(q.City)))
	}
	if q.AcceptsReturns {
		facets = append(facets, facet(facetReturns, ""))
	}
	s, err := newSearch(q.Q, facets...)
	s.near, s.starts = true, true
	f := shopFilter{open: q.OpenNow, prices: ItemQuery{Currency: q.In()}}
	if f.near, f.radius, _ = q.Place(); f.near != nil {
		s.groups = append(s.groups, cellsAround(*f.near, f.radius))
	}
	f.prices.Min, f.prices.Max, _ = q.Prices()
	return s, f, err
}

// rough reports whether there is more to decide than the index does; nil is for lists of all profiles.
func (f *shopFilter) rough() bool { return f != nil && (f.near != nil || f.prices.priced()) }

// admits decides about a business, whose number is among sellers when it sells something at such a price.
func (f *shopFilter) admits(tx *Tx, p *ListedProfile, sells bool) bool {
	if f == nil {
		return true
	}
	return (!f.open || p.Merchant.open(p.Draft.Timezone, tx.Now)) && (!f.prices.priced() || sells) &&
		(f.near == nil || p.Merchant != nil && p.Merchant.Draft.Geo != nil && f.near.Distance(*p.Merchant.Draft.Geo) <= f.radius)
}

// sellers are the businesses of versions that sell something at a price of the filter.
func (f *shopFilter) sellers(ctx context.Context, tx *Tx, found []version) (map[int64]bool, error) {
	if f == nil || !f.prices.priced() || len(found) == 0 {
		return nil, nil
	}
	text, args := sellersQuery(found, &f.prices)
	seqs, err := list[int64](ctx, tx, text, args...)
	sells := map[int64]bool{}
	for _, seq := range seqs {
		sells[seq] = true
	}
	return sells, err
}

// sellersQuery looks for one such item of each business, so that a large catalog costs what a small one does.
func sellersQuery(found []version, q *ItemQuery) (string, []any) {
	seqs := make([]int64, len(found))
	for i, v := range found {
		seqs[i] = v.Seq
	}
	in, args := inSeqs(seqs)
	least, most := q.bounds()
	return `SELECT seq FROM merchant m WHERE ` + in + ` AND (SELECT i.pos FROM item_price p JOIN item i ON i.pos = p.pos
		WHERE p.seq = m.seq AND p.currency = ? AND p.minor >= ? AND p.minor <= ? AND i.since <= m.catalog AND i.until > m.catalog LIMIT 1) IS NOT NULL`,
		append(args, q.Currency, least, most)
}
