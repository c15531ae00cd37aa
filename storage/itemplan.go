package storage

import (
	"context"
	"maps"
	"slices"
	"sort"

	"stoa/protocol"
)

// A plan is how far an import is.
type plan struct {
	ItemChanges
	shop   *shop
	whole  bool
	feed   *ItemFeed
	rows   map[string]known // of the SKUs that the catalog has, or had
	seen   map[string]bool
	places map[string]int64
	items  int
	bytes  int64
}

// copy is for a transaction that may run twice.
func (p *plan) copy() plan {
	next := *p
	next.Cheaper = slices.Clip(p.Cheaper)
	return next
}

func (db *DB) planOf(ctx context.Context, h *shop, im ItemImport) (*plan, error) {
	p := &plan{shop: h, whole: im.Whole, feed: im.Feed, rows: map[string]known{}, seen: map[string]bool{}, items: h.items, bytes: h.bytes}
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		length := "octet_length(doc)"
		if db.engine == engineSQLite {
			length = "length(CAST(doc AS BLOB))"
		}
		type named struct {
			SKU string
			known
		}
		found, err := list[named](ctx, tx, `SELECT sku, pos, until, place, digest, fed, `+length+` AS size FROM item WHERE seq = ? AND since <= ?`, h.seq, h.catalog)
		for _, n := range found {
			if other, ok := p.rows[n.SKU]; !ok || other.Until < n.Until {
				p.rows[n.SKU] = n.known
			}
		}
		return err
	})
	p.places = p.order(im.SKUs)
	return p, err
}

func (p *plan) onSale(sku string) (known, bool) {
	k, ok := p.rows[sku]
	return k, ok && k.Until > p.shop.catalog
}

// order gives each SKU its place. Of a whole catalog as many items as possible keep
// theirs: those of a longest sequence that is in order already.
func (p *plan) order(skus []string) map[string]int64 {
	places := make(map[string]int64, len(skus))
	if !p.whole {
		end := int64(0)
		for _, k := range p.rows {
			end = max(end, k.Place)
		}
		for _, sku := range skus {
			if k, ok := p.onSale(sku); ok {
				places[sku] = k.Place
				continue
			}
			end += placeStep
			places[sku] = end
		}
		return places
	}
	kept := p.inSequence(skus)
	last := int64(0)
	for at := 0; at < len(skus); {
		run := at
		for run < len(skus) && !kept[run] {
			run++
		}
		next := last + int64(run-at+1)*placeStep
		if run < len(skus) {
			k, _ := p.onSale(skus[run])
			next = k.Place
		}
		gap := (next - last) / int64(run-at+1)
		if gap == 0 { // no room between two that stay
			for n, sku := range skus {
				places[sku] = int64(n+1) * placeStep
			}
			return places
		}
		for n := at; n < run; n++ {
			last += gap
			places[skus[n]] = last
		}
		if run < len(skus) {
			places[skus[run]], last = next, next
		}
		at = run + 1
	}
	return places
}

// inSequence marks a longest sequence of items on sale whose places increase.
func (p *plan) inSequence(skus []string) []bool {
	var ends []int // by length, index of the item with the least place that ends such a sequence
	before := make([]int, len(skus))
	place := func(n int) int64 { k, _ := p.onSale(skus[n]); return k.Place }
	for n, sku := range skus {
		k, ok := p.onSale(sku)
		if !ok || k.Place <= 0 {
			continue
		}
		at := sort.Search(len(ends), func(i int) bool { return place(ends[i]) >= k.Place })
		if before[n] = -1; at > 0 {
			before[n] = ends[at-1]
		}
		if at == len(ends) {
			ends = append(ends, n)
		} else {
			ends[at] = n
		}
	}
	kept := make([]bool, len(skus))
	if len(ends) > 0 {
		for n := ends[len(ends)-1]; n >= 0; n = before[n] {
			kept[n] = true
		}
	}
	return kept
}

// note counts a draft, and reports whether it must be written.
func (p *plan) note(d protocol.ItemDraft) bool {
	p.seen[d.SKU] = true
	k, onSale := p.onSale(d.SKU)
	switch {
	case onSale && k.Digest == digestOfItem(&d):
		p.Unchanged++
		return k.Place != p.places[d.SKU] || p.feed != nil && k.Fed != k.Digest
	case p.feed != nil && p.feed.Keep && !p.feed.First && k.own(onSale):
		p.Kept++
		return false
	case !onSale:
		p.Added++
		p.items++
	default:
		p.Changed++
	}
	return true
}

// others are the SKUs on sale that a whole import leaves out, which it counts as removed.
func (p *plan) others() (skus []string) {
	if !p.whole {
		return nil
	}
	for _, sku := range slices.Sorted(maps.Keys(p.rows)) {
		if k, onSale := p.onSale(sku); onSale && !p.seen[sku] && !p.spares(k) {
			skus = append(skus, sku)
			p.bytes -= int64(k.Size)
		}
	}
	p.Removed = len(skus)
	p.items -= len(skus)
	return skus
}

// own reports whether an item is as the owner wrote it, or removed it, since the address of the catalog had it.
func (k known) own(onSale bool) bool {
	return onSale && k.Fed != k.Digest || !onSale && k.Fed == takenOff
}

// spares reports whether an item stays although the address of the catalog has none of it: the owner added it.
func (p *plan) spares(k known) bool { return p.feed != nil && p.feed.Keep && k.Fed == 0 }

// falls reports whether too much of what is on sale is not in a file of the address of the catalog.
func (p *plan) falls(skus []string) bool {
	if p.feed == nil || p.feed.Falls || !p.whole {
		return false
	}
	named := make(map[string]bool, len(skus))
	for _, sku := range skus {
		named[sku] = true
	}
	all, gone := 0, 0
	for sku := range p.rows {
		if k, onSale := p.onSale(sku); onSale && !p.spares(k) {
			if all++; !named[sku] {
				gone++
			}
		}
	}
	return 2*gone > all
}

func (p *plan) fits() error {
	if p.items > protocol.MaxItems || p.bytes > protocol.MaxCatalogBytes {
		return ErrFull
	}
	return nil
}
