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

// ListMerchants returns listed businesses, as [Profiles.List] does. The last word of a q may be the
// beginning of one. Hours and prices are those of tx.Now, for each page.
func (ps Profiles) ListMerchants(ctx context.Context, q protocol.MerchantQuery) (AgentPage, error) {
	a, err := merchantsAsked(q)
	if err != nil {
		return AgentPage{}, err
	}
	page, err := ps.find(ctx, a)
	if err != nil {
		return page, err
	}
	return page, ps.tx.Merchants().readPrices(ctx, page.Items, q.In())
}

// readPrices reads the lowest and the highest price of what the businesses of a list sell, in a currency.
func (ms Merchants) readPrices(ctx context.Context, profiles []ListedProfile, currency string) error {
	sellers := map[int64]*StoredMerchant{}
	for _, p := range profiles {
		if p.Remote == nil && p.Merchant != nil && p.Merchant.ItemCount > 0 {
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

// merchantsAsked is a query of businesses: what their index decides, and the rest.
func merchantsAsked(q protocol.MerchantQuery) (*agentList, error) {
	a := &agentList{name: listMerchants, q: q.Q, sort: q.Sort, local: q.Local, paging: q.Paging, tables: []string{profileTerms, itemTerms}}
	if err := a.ask(true, facet(facetKind, string(protocol.Business))); err != nil {
		return nil, err
	}
	f := &shopFilter{open: q.OpenNow, prices: ItemQuery{Currency: q.In()}}
	f.near, f.radius, _ = q.Place()
	f.prices.Min, f.prices.Max, _ = q.Prices()
	a.shop = f
	s := &a.search
	s.facets = slices.Clip(s.facets)
	if q.Category != "" {
		s.facets = append(s.facets, facet(facetCategory, categoryName(q.Category)))
	}
	if q.City != "" {
		s.facets = append(s.facets, facet(facetCity, cityName(q.City)))
	}
	if q.AcceptsReturns {
		s.facets = append(s.facets, facet(facetReturns, ""))
	}
	if f.near != nil {
		s.groups = append(s.groups, cellsAround(*f.near, f.radius))
	}
	a.filter("category", q.Category != "")
	a.filter("city", q.City != "")
	a.filter("near", f.near != nil)
	a.filter("minPrice", f.prices.Min != nil)
	a.filter("maxPrice", f.prices.Max != nil)
	a.filter("acceptsReturns", q.AcceptsReturns)
	a.filter("openNow", q.OpenNow)
	return a, nil
}

// priced is a search for businesses of this node with their prices, which are not in the index of others.
func (f *shopFilter) priced(s search) search {
	if f != nil && f.prices.priced() {
		least, most := f.prices.bounds()
		s.groups = append(slices.Clip(s.groups), priceFacets(f.prices.Currency, least, most, shopPriceLevels))
	}
	return s
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
