package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
)

// ErrImporting is the error of a change of a catalog while an import prepares its next version.
var ErrImporting = errors.New("storage: an import of the catalog is running")

// ErrFull is the error of a change after which a list, such as a catalog, would be longer than it may be.
var ErrFull = errors.New("storage: the list is full")

// A shop is the merchant row of a catalog that is being changed, locked.
type shop struct {
	seq, catalog, news, importAt int64
	items                        int
	bytes                        int64
	toldAt                       int64
	toldN                        int
	importID                     string
	profile                      *profileRow
}

const shopColumns = `seq, catalog, items, item_bytes, news, told_at, told_n, import_id, import_at`

func scanShop(s scanner) (h *shop, err error) {
	h = &shop{}
	return h, s.Scan(&h.seq, &h.catalog, &h.items, &h.bytes, &h.news, &h.toldAt, &h.toldN, &h.importID, &h.importAt)
}

// importSilence is how long a running import may say nothing before others may change
// the catalog.
const importSilence = time.Minute

func (h *shop) importing(now time.Time) bool {
	return h.importID != "" && now.Sub(moment(h.importAt)) < importSilence
}

// lock locks the catalog of a business; one without a record gets an empty one.
func (is Items) lock(ctx context.Context, handle string) (*shop, error) {
	r, err := is.tx.Profiles().lock(ctx, handle)
	if err != nil {
		return nil, err
	}
	return is.shopOf(ctx, r)
}

func (is Items) shopOf(ctx context.Context, r *profileRow) (*shop, error) {
	find := func() (*shop, error) {
		return scanShop(is.tx.row(ctx, `SELECT `+shopColumns+` FROM merchant WHERE seq = ?`+is.tx.db.engine.ForUpdate(), r.Seq))
	}
	h, err := find()
	if err == ErrNotFound {
		var p *StoredProfile
		if p, err = r.profile(); err == nil {
			_, err = is.tx.Merchants().store(ctx, r.Seq, p, protocol.MerchantDraft{}, is.tx.Now)
		}
		if err == nil {
			h, err = find()
		}
	}
	if err != nil {
		return nil, err
	}
	h.profile = r
	return h, nil
}

// ItemChanges are what a change of a catalog did.
type ItemChanges struct {
	Added, Changed, Unchanged, Removed int
	Kept                               int          // as the owner wrote them, not as the catalog's address has them
	Items                              []StoredItem // as written, of a change of some items
	Cheaper                            []Cheaper    // whose least price fell, the first of them
}

// A Cheaper is an item whose price fell.
type Cheaper struct {
	StoredItem
	Before protocol.Money
}

// note keeps the price of an item that replaces old, which may be nil.
func (c *ItemChanges) note(i, old *StoredItem) {
	if old != nil && old.row.awayAt == 0 && old.Currency == i.Currency && i.Currency != "" && i.Low < old.Low && len(c.Cheaper) < newsAtOnce {
		c.Cheaper = append(c.Cheaper, Cheaper{*i, protocol.MoneyOf(old.Currency, old.Low)})
	}
}

// Put writes items of a business: a new one at the end, another, and one that was removed, in its place. There
// may be 1000. ErrNotFound when there is no such profile,
// [ErrImporting], [ErrFull].
func (is Items) Put(ctx context.Context, handle string, drafts ...protocol.ItemDraft) (*ItemChanges, error) {
	h, err := is.lock(ctx, handle)
	if err != nil {
		return nil, err
	}
	c, err := is.put(ctx, h, drafts, false)
	if err != nil {
		return nil, err
	}
	return c, is.changed(ctx, h)
}

// PutQuietly is Put for items that the feed does not announce.
func (is Items) PutQuietly(ctx context.Context, handle string, drafts ...protocol.ItemDraft) error {
	h, err := is.lock(ctx, handle)
	if err != nil {
		return err
	}
	c, err := is.put(ctx, h, drafts, false)
	if err != nil {
		return err
	}
	for n := range c.Items {
		h.news = max(h.news, c.Items[n].row.pos/2)
	}
	return is.changed(ctx, h)
}

// Each calls one for every item on sale of a business, in its order.
func (is Items) Each(ctx context.Context, handle string, one func(*StoredItem) error) error {
	seq, catalog, err := is.catalogOf(ctx, handle)
	if err != nil {
		return orNothing(err)
	}
	for after := (placed{}); ; {
		some, err := is.inOrder(ctx, seq, catalog, after, 500)
		if err != nil || len(some) == 0 {
			return err
		}
		for n := range some {
			if err := one(&some[n]); err != nil {
				return err
			}
			after = placed{some[n].row.place, some[n].row.pos}
		}
	}
}

// Remove removes items of a business by their SKUs and returns how many were on sale.
// An item keeps its id for its SKU for some time.
func (is Items) Remove(ctx context.Context, handle string, skus ...string) (*ItemChanges, error) {
	h, err := is.lock(ctx, handle)
	if err != nil {
		return nil, err
	}
	if h.importing(is.tx.Now) {
		return nil, ErrImporting
	}
	old, err := is.bySKU(ctx, h, skus)
	if err != nil {
		return nil, err
	}
	c := &ItemChanges{}
	if c.Removed, err = is.remove(ctx, h, old); err != nil || c.Removed == 0 {
		return c, err
	}
	return c, is.changed(ctx, h)
}

func (is Items) remove(ctx context.Context, h *shop, items map[string]*StoredItem) (n int, err error) {
	var gone []int64
	for _, i := range items {
		if i.row.until <= h.catalog {
			continue
		}
		gone = append(gone, i.row.pos)
		h.items, h.bytes = h.items-1, h.bytes-int64(i.row.size)
	}
	slices.Sort(gone)
	for some := range slices.Chunk(gone, rowsAtOnce) {
		if err := is.dropWords(ctx, some); err != nil {
			return 0, err
		}
		if _, err := is.tx.write(ctx, `UPDATE item SET until = ?, away_at = ?, indexed = FALSE,
			fed = CASE fed WHEN 0 THEN 0 ELSE ? END WHERE pos IN (`+marks(len(some))+`)`,
			append([]any{h.catalog, millis(is.tx.Now), takenOff}, anyOf(some)...)...); err != nil {
			return 0, err
		}
	}
	return len(gone), is.forgetAway(ctx, h)
}

func anyOf(numbers []int64) []any {
	all := make([]any, len(numbers))
	for i, n := range numbers {
		all[i] = n
	}
	return all
}

// put writes items; with whole, they are all that the business sells, in this order.
func (is Items) put(ctx context.Context, h *shop, drafts []protocol.ItemDraft, whole bool) (*ItemChanges, error) {
	if h.importing(is.tx.Now) {
		return nil, ErrImporting
	}
	skus := make([]string, len(drafts))
	for n := range drafts {
		skus[n] = drafts[n].SKU
	}
	old, err := is.bySKU(ctx, h, skus)
	if err != nil {
		return nil, err
	}
	end, fresh := int64(0), 0
	if !whole {
		if err := is.tx.row(ctx, `SELECT COALESCE(max(place), 0) FROM item WHERE seq = ?`, h.seq).Scan(&end); err != nil {
			return nil, err
		}
	}
	for _, sku := range skus {
		if old[sku] == nil {
			fresh++
		}
	}
	numbers, err := is.numbers(ctx, fresh)
	if err != nil {
		return nil, err
	}
	c := &ItemChanges{Items: make([]StoredItem, 0, len(drafts))}
	var rows []newRow
	for n, d := range drafts {
		before := old[d.SKU]
		i, doc, err := newItem(is.tx.Now, d, before)
		if err != nil {
			return nil, err
		}
		onSale := before != nil && before.row.until > h.catalog
		r := &i.row
		r.seq, r.since, r.until, r.indexed = h.seq, h.catalog, forever, true
		switch {
		case before == nil:
			r.pos, numbers = 2*numbers[0], numbers[1:]
			c.Added++
		case !onSale:
			c.Added++
			fallthrough
		default:
			r.pos, r.place, r.told, r.fed = before.row.pos, before.row.place, before.row.told, before.row.fed
			if onSale {
				r.since = before.row.since
			}
		}
		if whole {
			r.place = int64(n+1) * placeStep
		} else if before == nil {
			end += placeStep
			r.place = end
		}
		c.Items = append(c.Items, *i)
		if onSale && before.row.digest == r.digest {
			if c.Unchanged++; before.row.place == r.place && before.row.until == forever {
				continue
			}
		} else if onSale {
			c.Changed++
		}
		if onSale {
			h.bytes -= int64(before.row.size)
			h.items--
		}
		h.bytes += int64(r.size)
		h.items++
		c.note(i, before)
		rows = append(rows, newRow{i, doc, before != nil && before.row.indexed})
	}
	if whole {
		if c.Removed, err = is.removeOthers(ctx, h, skus); err != nil {
			return nil, err
		}
	}
	if h.items > protocol.MaxItems || h.bytes > protocol.MaxCatalogBytes {
		return nil, ErrFull
	}
	return c, is.write(ctx, rows)
}

// removeOthers removes what is on sale and not named. The catalog is a small one.
func (is Items) removeOthers(ctx context.Context, h *shop, skus []string) (int, error) {
	rows, err := is.tx.query(ctx, `SELECT `+itemColumns+` FROM item i WHERE i.seq = ? AND i.since <= ? AND i.until > ?`, h.seq, h.catalog, h.catalog)
	found, err := collect(rows, err, scanItem)
	if err != nil {
		return 0, err
	}
	others := map[string]*StoredItem{}
	for n := range found {
		if !slices.Contains(skus, found[n].Draft.SKU) {
			others[found[n].Draft.SKU] = &found[n]
		}
	}
	return is.remove(ctx, h, others)
}

// bySKU returns the rows that items of those SKUs have, or had.
func (is Items) bySKU(ctx context.Context, h *shop, skus []string) (map[string]*StoredItem, error) {
	all := map[string]*StoredItem{}
	for some := range slices.Chunk(skus, 500) {
		rows, err := is.tx.query(ctx, `SELECT `+itemColumns+` FROM item i WHERE i.seq = ? AND i.sku IN (`+marks(len(some))+`) AND i.since <= ?`,
			append(append([]any{h.seq}, toAny(some)...), h.catalog)...)
		found, err := collect(rows, err, scanItem)
		if err != nil {
			return nil, fmt.Errorf("read items: %w", err)
		}
		for n := range found {
			i := &found[n]
			if other := all[i.Draft.SKU]; other == nil || other.row.until < i.row.until {
				all[i.Draft.SKU] = i
			}
		}
	}
	return all, nil
}

// numbers takes numbers for new items.
func (is Items) numbers(ctx context.Context, n int) ([]int64, error) {
	if n == 0 {
		return nil, nil
	}
	if err := is.tx.dirty(); err != nil {
		return nil, err
	}
	if is.tx.db.engine == enginePostgres {
		return list[int64](ctx, is.tx, `SELECT nextval('item_number') FROM generate_series(1, CAST(? AS BIGINT))`, n)
	}
	var last int64
	if err := is.tx.row(ctx, `SELECT COALESCE(max(pos), 0) FROM item`).Scan(&last); err != nil {
		return nil, err
	}
	all := make([]int64, n)
	for i := range all {
		all[i] = last/2 + int64(i) + 1
	}
	return all, nil
}

// A newRow is a row of item to be written.
type newRow struct {
	item  *StoredItem
	doc   string
	stale bool // words of another content are in the index
}

// rowsAtOnce is how many rows one statement writes.
const rowsAtOnce = 50

const itemValues = `(?, ?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''), ?, ?, TRUE, ?, 0, ?)`

// write writes rows with their words; a row of the same pos is replaced.
func (is Items) write(ctx context.Context, rows []newRow) error {
	for some := range slices.Chunk(rows, rowsAtOnce) {
		args := make([]any, 0, 14*len(some))
		var stale []int64
		for _, r := range some {
			i := r.item
			var low, high any
			if i.Currency != "" {
				low, high = i.Low, i.High
			}
			args = append(args, i.row.pos, i.row.seq, i.Draft.SKU, i.ID, i.row.since, i.row.until, i.row.place, r.doc, i.row.digest, i.Currency, low, high, i.row.told,
				i.row.fed)
			if r.stale {
				stale = append(stale, i.row.pos)
			}
		}
		if err := is.dropWords(ctx, stale); err != nil {
			return err
		}
		if _, err := is.tx.write(ctx, `INSERT INTO item (pos, seq, sku, id, since, until, place, doc, digest, currency, low, high,
			indexed, told, away_at, fed) VALUES `+
			itemValues+strings.Repeat(`, `+itemValues, len(some)-1)+`
			ON CONFLICT (pos) DO UPDATE SET since = EXCLUDED.since, until = EXCLUDED.until, place = EXCLUDED.place, doc = EXCLUDED.doc, digest = EXCLUDED.digest,
				currency = EXCLUDED.currency, low = EXCLUDED.low, high = EXCLUDED.high, indexed = TRUE, away_at = 0, fed = EXCLUDED.fed`, args...); err != nil {
			return fmt.Errorf("store items: %w", err)
		}
		if err := is.addWords(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// Removed items keep their id for their SKU for so long, and so many.
const (
	keepAway = 90 * 24 * time.Hour
	maxAway  = 1000
)

// forgetAway deletes removed items that are kept no longer, some at a time.
func (is Items) forgetAway(ctx context.Context, h *shop) error {
	return is.tx.exec(ctx, `DELETE FROM item WHERE pos IN (SELECT pos FROM item WHERE seq = ? AND until <= ? AND NOT indexed AND (away_at < ? OR
		pos NOT IN (SELECT pos FROM item WHERE seq = ? AND until <= ? ORDER BY away_at DESC, pos LIMIT ?)) LIMIT ?)`,
		h.seq, h.catalog, millis(is.tx.Now.Add(-keepAway)), h.seq, h.catalog, maxAway, forgetAtOnce)
}

const forgetAtOnce = 500

// changed stores what a change did to the catalog as a whole: its counts, whether the
// profile has a catalog, and what the directory finds the merchant by.
func (is Items) changed(ctx context.Context, h *shop) error {
	if _, err := is.tx.write(ctx, `UPDATE merchant SET catalog = ?, items = ?, item_bytes = ?, news = ?, updated_at = ? WHERE seq = ?`,
		h.catalog, h.items, h.bytes, h.news, millis(is.tx.Now), h.seq); err != nil {
		return err
	}
	if err := is.openRoom(ctx, h); err != nil {
		return err
	}
	if h.items > protocol.MaxRecordItems {
		return is.enqueueWords(ctx, h.profile.Handle)
	}
	first, err := is.first(ctx, h.seq, h.catalog)
	if err != nil {
		return err
	}
	return is.rerank(ctx, h.profile, shopText(first))
}

// openRoom notes at the profile whether it has a catalog.
func (is Items) openRoom(ctx context.Context, h *shop) error {
	_, err := is.tx.writeAside(ctx, `UPDATE profile SET catalog = ? WHERE seq = ? AND catalog <> ?`, h.items > 0, h.seq, h.items > 0)
	return err
}

// first are the first items on sale, in the shop's order.
func (is Items) first(ctx context.Context, seq, catalog int64) ([]StoredItem, error) {
	return is.inOrder(ctx, seq, catalog, placed{}, protocol.MaxRecordItems)
}

// A placed is a position in the order of a shop.
type placed struct{ place, pos int64 }

func (is Items) inOrder(ctx context.Context, seq, catalog int64, after placed, limit int) ([]StoredItem, error) {
	rows, err := is.tx.query(ctx, `SELECT `+itemColumns+` FROM item i WHERE i.seq = ? AND (i.place, i.pos) > (?, ?) AND i.since <= ? AND i.until > ?
		ORDER BY i.place, i.pos LIMIT ?`, seq, after.place, after.pos, catalog, catalog, limit)
	return collect(rows, err, scanItem)
}
