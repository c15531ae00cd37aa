package storage

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"stoa/protocol"
)

// listItems is the name of the lists of items in cursors.
const listItems = "items"

// An ItemQuery selects items on sale. All conditions combine.
type ItemQuery struct {
	Q              string                  // what is looked for, as people ask
	Handles        []string                // of one of these businesses; nil: of any that is listed
	Near           *protocol.Geo           // of one of the 100 nearest businesses of this node with something on sale, at most Radius away
	Radius         int                     // metres
	Categories     []string                // in one of these, by any of its names
	Availabilities []protocol.Availability // a variant has one of these
	Currency       string                  // of Min and Max
	Min, Max       *int64                  // of prices in minor units; a variant's is between them
	Sort           protocol.ItemSort       // "" is by relevance with a Q, and otherwise as the list is
	protocol.Paging
}

func (q *ItemQuery) priced() bool { return q.Min != nil || q.Max != nil }

// A CatalogItem is an item on sale with the business that sells it.
type CatalogItem struct {
	StoredItem
	Merchant *StoredProfile
	Distance *int // metres from Near; nil without it
}

// An ItemPage is a page of items, and what the search did beyond the question.
type ItemPage struct {
	protocol.Page[CatalogItem]
	protocol.Finding
}

// Search lists items on sale. Those that a Q finds come the best match first. Without one, those near a place come by the distance
// of their business; those of one business without any other condition in the shop's order; those of named businesses with the oldest
// first; all others with the newest first, which is also the order of equal matches. A Q without any word finds nothing. A walk neither
// skips nor repeats an item that stays on sale while others are added or changed.
func (is Items) Search(ctx context.Context, q ItemQuery) (out ItemPage, err error) {
	if q.Near == nil {
		seqs, err := is.seqs(ctx, q.Handles)
		if err != nil {
			return out, err
		}
		return is.search(ctx, q, seqs, nil)
	}
	shops, err := is.near(ctx, &q)
	if err != nil {
		return out, err
	}
	if q.Q == "" && q.Sort == "" {
		q.Sort = protocol.SortNear
	}
	seqs, metres := []int64{}, map[int64]int{}
	for _, s := range shops {
		seqs, metres[s.seq] = append(seqs, s.seq), int(math.Round(float64(s.millimetres)/1000))
	}
	if out, err = is.search(ctx, q, seqs, shops); len(shops) == 0 {
		out.Without = []string{"near"}
	}
	for i := range out.Items {
		out.Items[i].Distance = new(metres[out.Items[i].row.seq])
	}
	return out, err
}

// search lists items of businesses, nil for all that are listed; shops are the same ones by distance, for the order by it.
func (is Items) search(ctx context.Context, q ItemQuery, seqs []int64, shops []nearShop) (out ItemPage, err error) {
	out.Items = []CatalogItem{}
	terms := termsAsked(q.Q)
	if q.Q != "" && len(terms) == 0 || seqs != nil && len(seqs) == 0 {
		return out, nil
	}
	s := is.conditions(&q, seqs)
	w := itemWalk{up: seqs != nil && q.Sort != protocol.SortNew, seqs: seqs}
	if len(seqs) == 1 {
		w.shop = seqs[0]
	}
	if w.at = math.MaxInt64; w.up {
		w.at = -1
	}
	switch {
	case len(terms) > 0 && (q.Sort == "" || q.Sort == protocol.SortRelevance):
		return is.relevant(ctx, &q, s, w)
	case len(terms) > 0:
		found, err := is.question(&q, s, w).understand(ctx, "")
		if err != nil || found.whole == nil {
			return ItemPage{out.Page, found.Finding}, err
		}
		s, out.Finding = s.with(found.whole), found.Finding
	}
	switch {
	case q.Sort == protocol.SortNear:
		out.Page, err = is.byDistance(ctx, q, s, shops)
	case q.Sort == protocol.SortPrice || q.Sort == protocol.SortDearest:
		out.Page, err = is.byPrice(ctx, &q, s, w)
	case len(seqs) == 1 && s.all == nil && s.rest == nil && q.Sort != protocol.SortNew:
		out.Page, err = is.listShop(ctx, q, seqs[0])
	default:
		if w, err = w.resume(q.After); err == nil {
			out.Page, err = is.walk(ctx, q, s, w)
		}
	}
	return out, err
}

// An asked is what the index decides of a query: rest are the conditions other than the business and the price.
type asked struct {
	rest, all []condition
	shop      condition
}

// with adds a condition.
func (a asked) with(c condition) asked {
	a.rest, a.all = append(slices.Clip(a.rest), c), append(slices.Clip(a.all), c)
	return a
}

func (a asked) plain() bool { return len(a.all) == 0 && a.shop == nil }

// whole are all conditions; there is one.
func (a asked) whole() condition {
	if a.shop != nil {
		return allOf(append(slices.Clip(a.all), a.shop)...)
	}
	return allOf(a.all...)
}

// conditions are those of a query, besides the words.
func (is Items) conditions(q *ItemQuery, seqs []int64) (a asked) {
	if len(q.Categories) > 0 {
		a.rest = append(a.rest, oneOf(each(q.Categories, func(c string) string { return facet(facetCategory, categoryName(c)) })))
	}
	if len(q.Availabilities) > 0 {
		a.rest = append(a.rest, oneOf(each(q.Availabilities, func(v protocol.Availability) string { return facet(facetAvailability, string(v)) })))
	}
	a.all = slices.Clone(a.rest)
	if len(seqs) > 0 {
		a.shop = facetShops(seqs)
	}
	if q.priced() {
		least, most := q.bounds()
		a.all = append(a.all, oneOf(priceFacets(q.Currency, least, most, priceLevels)))
	}
	return a
}

func facetShops(seqs []int64) condition {
	return oneOf(each(seqs, func(seq int64) string { return facet(facetShop, number(seq)) }))
}

// bounds are the ends of the range of prices.
func (q *ItemQuery) bounds() (least, most int64) {
	most = protocol.MaxMinor
	if q.Min != nil {
		least = min(max(*q.Min, 0), protocol.MaxMinor)
	}
	if q.Max != nil {
		most = min(max(*q.Max, 0), protocol.MaxMinor)
	}
	return least, most
}

func each[T any](list []T, one func(T) string) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = one(x)
	}
	return out
}

// seqs are the numbers of the businesses with a catalog among the handles; nil for nil.
func (is Items) seqs(ctx context.Context, handles []string) ([]int64, error) {
	if handles == nil {
		return nil, nil
	}
	if len(handles) == 0 {
		return []int64{}, nil
	}
	return list[int64](ctx, is.tx, `SELECT seq FROM profile WHERE handle IN (`+marks(len(handles))+`) AND catalog`, toAny(handles)...)
}

// An itemWalk is a position in a list by number.
type itemWalk struct {
	up   bool  // the oldest first
	at   int64 // number of the last item
	shop int64 // all are of this merchant; 0 for several
	seqs []int64
}

func (w itemWalk) String() string {
	if w.up {
		return "u" + number(w.at)
	}
	return "d" + number(w.at)
}

func (w itemWalk) resume(after string) (itemWalk, error) {
	at, err := protocol.ParseCursor(listItems, after)
	if err != nil || at == "" {
		return w, err
	}
	n := w
	if _, err := fmt.Sscanf(at[1:], "%d", &n.at); err != nil || n.String() != at || n.at < 0 {
		return w, errListCursor()
	}
	return n, nil
}

// mostLooked limits the rows of the index that are read for one page. Only what the
// index cannot decide makes a page read more than it shows: the exact price, rows that
// an import prepares, profiles that are not listed. A page then ends early and still
// has a next one.
const mostLooked = 5000

func (is Items) walk(ctx context.Context, q ItemQuery, s asked, w itemWalk) (out protocol.Page[CatalogItem], err error) {
	limit := bounded(q.Limit)
	out.Items = []CatalogItem{}
	var found []StoredItem
	for looked, want := 0, limit+1; ; want = min(4*want, 4000) {
		at, err := is.find(ctx, &q, s, w, want)
		if err != nil {
			return out, err
		}
		some, err := is.onSale(ctx, &q, at)
		if err != nil {
			return out, err
		}
		found = append(found, some...)
		if looked += len(at); len(found) > limit || len(at) < want || looked > mostLooked {
			if len(found) > limit {
				found = found[:limit]
				w.at = found[limit-1].row.pos / 2
				out.Next = protocol.Cursor(listItems, w.String())
			} else if len(at) == want {
				w.at = at[len(at)-1] / 2
				out.Next = protocol.Cursor(listItems, w.String())
			}
			out.Items, err = is.ofMerchants(ctx, found)
			return out, err
		}
		w.at = at[len(at)-1] / 2
	}
}

// find returns the next rows of a walk that the index finds.
func (is Items) find(ctx context.Context, q *ItemQuery, s asked, w itemWalk, limit int) ([]int64, error) {
	after, where, order := 2*w.at+1, " > ?", ""
	if !w.up {
		where, order = " < ?", " DESC"
		if after = math.MaxInt64; w.at < math.MaxInt64 {
			after = 2 * w.at
		}
	}
	switch {
	case s.plain():
		return list[int64](ctx, is.tx, `SELECT pos FROM item WHERE pos`+where+` ORDER BY pos`+order+` LIMIT ?`, after, limit)
	case is.tx.db.engine == engineSQLite:
		return list[int64](ctx, is.tx, `SELECT rowid FROM item_word WHERE item_word MATCH ? AND rowid`+where+` ORDER BY rowid`+order+` LIMIT ?`,
			s.whole()(fts5), after, limit)
	}
	index := itemWords
	if q.priced() {
		found, whole, err := is.findPriced(ctx, q, s.rest, w, after, limit)
		if err != nil || whole {
			return found, err
		}
		index.steps.near = 0 // it looked there
	}
	if !w.up {
		return index.findPostgres(ctx, is.tx, s.whole()(tsquery), after, limit)
	}
	// Businesses are named, so the matches are some thousand. Those of one are first looked
	// for among its next items, which is enough for what most of them have.
	if w.shop != 0 {
		found, whole, err := is.findNear(ctx, s, w.shop, after, limit)
		if err != nil || whole {
			return found, err
		}
	}
	// The planner does not know what reading a long text vector costs.
	if err := is.tx.raw(ctx, `SET LOCAL enable_seqscan = off`); err != nil {
		return nil, err
	}
	return list[int64](ctx, is.tx, `WITH m AS MATERIALIZED (SELECT seq FROM item_word WHERE words @@ ?::tsquery AND seq > ?)
		SELECT seq FROM m ORDER BY seq LIMIT ?`,
		s.whole()(tsquery), after, limit)
}

// nearItems is how many items of one shop are read one by one before the index is used.
const nearItems = 400

// findNear looks among the next rows of one shop; whole is true when that is enough, or
// there are no more.
func (is Items) findNear(ctx context.Context, s asked, shop, after int64, limit int) (found []int64, whole bool, err error) {
	last := int64(math.MaxInt64)
	err = is.tx.row(ctx, `SELECT pos FROM item WHERE seq = ? AND pos > ? ORDER BY pos OFFSET ? LIMIT 1`, shop, after, nearItems).Scan(&last)
	if err != nil && err != ErrNotFound {
		return nil, false, err
	}
	found, err = list[int64](ctx, is.tx, `SELECT i.pos FROM item i JOIN item_word w ON w.seq = i.pos WHERE i.seq = ? AND i.pos > ? AND i.pos <= ?
		AND w.words @@ ?::tsquery
		ORDER BY i.pos LIMIT ?`, shop, after, last, s.whole()(tsquery), limit)
	return found, len(found) == limit || last == math.MaxInt64, err
}

// onSale reads the rows that are on sale now and match exactly, in the given order.
func (is Items) onSale(ctx context.Context, q *ItemQuery, at []int64) ([]StoredItem, error) {
	places := map[int64]int{}
	for n, pos := range at {
		places[pos] = n
	}
	var all []StoredItem
	for some := range slices.Chunk(at, 500) {
		where, args := `i.pos IN (`+marks(len(some))+`)`, anyOf(some)
		if q.Handles == nil {
			where += ` AND (SELECT p.listed FROM profile p WHERE p.seq = i.seq)`
		}
		if q.priced() {
			least, most := q.bounds()
			where, args = where+` AND i.currency = ? AND i.low <= ? AND i.high >= ?`, append(args, q.Currency, most, least)
		}
		rows, err := is.tx.query(ctx, `SELECT `+itemColumns+` FROM item i WHERE `+where+
			` AND (SELECT i.since <= m.catalog AND i.until > m.catalog FROM merchant m WHERE m.seq = i.seq)`, args...)
		found, err := collect(rows, err, scanItem)
		if err != nil {
			return nil, fmt.Errorf("read items: %w", err)
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b StoredItem) int { return places[a.row.pos] - places[b.row.pos] })
	return all, nil
}

// ofMerchants adds the businesses of items.
func (is Items) ofMerchants(ctx context.Context, items []StoredItem) ([]CatalogItem, error) {
	out := make([]CatalogItem, 0, len(items))
	var seqs []int64
	for n := range items {
		if seq := items[n].row.seq; !slices.Contains(seqs, seq) {
			seqs = append(seqs, seq)
		}
	}
	if len(seqs) == 0 {
		return out, nil
	}
	in, args := inSeqs(seqs)
	found, err := list[profileRow](ctx, is.tx, profileTable.from+`WHERE `+in, args...)
	if err != nil {
		return nil, err
	}
	profiles := map[int64]*StoredProfile{}
	for n := range found {
		if profiles[found[n].Seq], err = found[n].profile(); err != nil {
			return nil, err
		}
	}
	for n := range items {
		if p := profiles[items[n].row.seq]; p != nil {
			out = append(out, CatalogItem{StoredItem: items[n], Merchant: p})
		}
	}
	return out, nil
}

// listShop lists all items of one business in its order.
func (is Items) listShop(ctx context.Context, q ItemQuery, seq int64) (out protocol.Page[CatalogItem], err error) {
	out.Items = []CatalogItem{}
	at, err := protocol.ParseCursor(listItems, q.After)
	if err != nil {
		return out, err
	}
	var after placed
	if at != "" {
		if _, err := fmt.Sscanf(at, "o%d.%d", &after.place, &after.pos); err != nil || after.String() != at {
			return out, errListCursor()
		}
	}
	var catalog int64
	if err := is.tx.row(ctx, `SELECT catalog FROM merchant WHERE seq = ?`, seq).Scan(&catalog); err != nil {
		return out, err
	}
	limit := bounded(q.Limit)
	found, err := is.inOrder(ctx, seq, catalog, after, limit+1)
	if err != nil {
		return out, err
	}
	p := page(found, limit, listItems, func(i StoredItem) string { return placed{i.row.place, i.row.pos}.String() })
	out.Next = p.Next
	out.Items, err = is.ofMerchants(ctx, p.Items)
	return out, err
}

func (p placed) String() string { return fmt.Sprintf("o%d.%d", p.place, p.pos) }

// ByIDs returns items on sale by their ids or by ids of their variants, of listed
// businesses and others. An unknown id is no error. There may be some hundred.
func (is Items) ByIDs(ctx context.Context, ids []string) ([]CatalogItem, error) {
	var where []string
	var args []any
	for _, id := range ids {
		switch {
		case protocol.IsID(protocol.ItemID, id):
			where, args = append(where, `i.id = ?`), append(args, id)
		case protocol.IsID(protocol.VariantID, id): // the item's id up to the variant's number
			prefix := protocol.ItemID + id[len(protocol.VariantID):len(id)-2]
			where, args = append(where, `i.id >= ? AND i.id < ?`), append(args, prefix, prefix+"~")
		}
	}
	var all []StoredItem
	for len(where) > 0 {
		n := min(len(where), 100)
		taken := strings.Count(strings.Join(where[:n], ""), "?")
		rows, err := is.tx.query(ctx, `SELECT `+itemColumns+` FROM item i JOIN merchant m ON m.seq = i.seq WHERE (`+strings.Join(where[:n], ` OR `)+
			`) AND i.since <= m.catalog AND i.until > m.catalog`, args[:taken]...)
		found, err := collect(rows, err, scanItem)
		if err != nil {
			return nil, fmt.Errorf("read items: %w", err)
		}
		where, args, all = where[n:], args[taken:], append(all, found...)
	}
	return is.ofMerchants(ctx, all)
}

// BySKU is an item on sale of a business; ErrNotFound when there is none.
func (is Items) BySKU(ctx context.Context, handle, sku string) (StoredItem, error) {
	seq, catalog, err := is.catalogOf(ctx, handle)
	if err != nil {
		return StoredItem{}, err
	}
	return scanItem(is.tx.row(ctx, `SELECT `+itemColumns+` FROM item i WHERE i.seq = ? AND i.sku = ? AND i.since <= ? AND i.until > ?`,
		seq, sku, catalog, catalog))
}

// IDsOfSKUs returns the ids of items of a business by their SKUs. An unknown one is missing.
func (is Items) IDsOfSKUs(ctx context.Context, handle string, skus []string) (map[string]string, error) {
	out := map[string]string{}
	if len(skus) == 0 {
		return out, nil
	}
	seq, catalog, err := is.catalogOf(ctx, handle)
	if err != nil {
		return out, orNothing(err)
	}
	args := []any{seq, catalog, catalog}
	for _, sku := range skus {
		args = append(args, sku)
	}
	found, err := list[struct{ SKU, ID string }](ctx, is.tx, idsOfSKUs(len(skus)), args...)
	for _, x := range found {
		out[x.SKU] = x.ID
	}
	return out, err
}

func idsOfSKUs(n int) string {
	return `SELECT i.sku, i.id FROM item i WHERE i.seq = ? AND i.since <= ? AND i.until > ? AND i.sku IN (` + marks(n) + `)`
}

// Count is how many items a business has on sale.
func (is Items) Count(ctx context.Context, handle string) (int, error) {
	return orZero(find[int](ctx, is.tx, `SELECT m.items FROM profile p JOIN merchant m ON m.seq = p.seq WHERE p.handle = ?`, handle))
}
