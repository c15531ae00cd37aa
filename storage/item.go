package storage

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
)

// An item of a merchant is a row of item. Owners change items in place: one, or some
// with one transaction. An import of a whole catalog prepares the next version of it
// in many short transactions and makes it current in one (itemimport.go), so rows are
// valid for versions of the merchant's catalog. A row keeps the number of its item in
// pos, so a walk by number neither skips nor repeats what exists.

// A StoredItem is an item that a merchant sells.
type StoredItem struct {
	ID        string
	Draft     protocol.ItemDraft // in its normal form
	Currency  string             // of its prices; "" when all are on request
	Low, High int64              // its variants' least and greatest price, in minor units
	Numbers   []int              // of its variants, which their ids contain
	Picture   *Picture           // nil for none; only Pictures changes it
	row       itemRow
}

// An itemRow is a row of item without its document.
type itemRow struct {
	pos, seq, since, until, place, digest, awayAt int64
	told, indexed                                 bool
	fed                                           int64 // digest of the content that the catalog's address had for it, 0 for none; takenOff
	size                                          int   // of the document, in bytes
}

// placeStep is the distance between the places of items that are written in order.
const placeStep = 1 << 20

// itemDoc is the document of an item. Those of before variants have no price in it.
type itemDoc struct {
	protocol.ItemDraft
	Numbers []int    `json:"n,omitempty"`
	Last    int      `json:"m,omitempty"` // greatest number that a variant had
	Picture *Picture `json:"p,omitempty"`
}

// VariantID is the id of a variant: the item's with another prefix, and the variant's
// number in the last ten bits. 0 is the only variant of an item without variants.
func VariantID(item string, number int) string {
	const digits = "0123456789abcdefghjkmnpqrstvwxyz"
	return protocol.VariantID + item[len(protocol.ItemID):len(item)-2] + string([]byte{digits[number>>5&31], digits[number&31]})
}

// maxVariantNumber is the greatest number of a variant; after it, numbers are used again.
const maxVariantNumber = 1023

// A StoredVariant is one form of an item with what it takes from the item.
type StoredVariant struct {
	ID           string
	SKU          string
	Options      []protocol.SelectedOption
	Currency     string // "" on request
	Minor, List  int64  // price, and price before a reduction; List 0 for none
	UnitPrice    *protocol.UnitPrice
	Availability protocol.Availability
	Barcode      string
}

// Variants are the variants of an item, at least one.
func (i *StoredItem) Variants() []StoredVariant {
	d := &i.Draft
	whole := protocol.VariantDraft{SKU: d.SKU, Barcode: d.Barcode}
	drafts, numbers := d.Variants, i.Numbers
	if len(drafts) == 0 {
		drafts, numbers = []protocol.VariantDraft{whole}, []int{0}
	}
	all := make([]StoredVariant, len(drafts))
	for n, v := range drafts {
		price, list, unit := v.Price, v.ListPrice, v.UnitPrice
		if price == nil {
			price, list = d.Price, d.ListPrice
		}
		if unit == nil {
			unit = d.UnitPrice
		}
		out := StoredVariant{ID: VariantID(i.ID, numbers[n]), SKU: v.SKU, Barcode: v.Barcode, Availability: v.Availability, Options: []protocol.SelectedOption{}}
		if out.SKU == "" {
			out.SKU = d.SKU
		}
		for o, label := range v.Options {
			out.Options = append(out.Options, protocol.SelectedOption{Name: d.Options[o].Name, Label: label})
		}
		if price != nil {
			out.Currency = price.Currency
			out.Minor, _ = price.Minor()
			out.UnitPrice = protocol.NewUnitPrice(out.Currency, out.Minor, unit)
		}
		if price != nil && list != nil {
			out.List, _ = list.Minor()
		}
		if out.Availability == "" {
			out.Availability = d.Availability
		}
		if out.Availability == "" {
			out.Availability = protocol.InStock
		}
		all[n] = out
	}
	return all
}

// Price is the item's least price, nil when it is on request.
func (i *StoredItem) Price() *protocol.Money {
	if i.Currency == "" {
		return nil
	}
	return new(protocol.MoneyOf(i.Currency, i.Low))
}

// Available is the best availability of its variants.
func (i *StoredItem) Available() protocol.Availability {
	best := len(protocol.Availabilities) - 1
	for _, v := range i.Variants() {
		best = min(best, slices.Index(protocol.Availabilities, v.Availability))
	}
	return protocol.Availabilities[max(best, 0)]
}

// newItem makes the item of a checked draft that replaces old, which may be nil.
func newItem(now time.Time, draft protocol.ItemDraft, old *StoredItem) (i *StoredItem, doc string, err error) {
	i = &StoredItem{Draft: draft.Normal()}
	if old != nil {
		i.ID, i.Picture = old.ID, old.Picture
	} else {
		i.ID = protocol.NewID(protocol.ItemID, now)
	}
	d := itemDoc{ItemDraft: i.Draft, Picture: i.Picture}
	before := map[string]int{}
	if old != nil {
		for n, v := range old.Draft.Variants {
			before[variantKey(v)], d.Last = old.Numbers[n], max(d.Last, old.Numbers[n])
		}
	}
	used := map[int]bool{}
	for _, v := range i.Draft.Variants {
		used[before[variantKey(v)]] = true
	}
	for _, v := range i.Draft.Variants {
		n := before[variantKey(v)]
		for n == 0 || n > maxVariantNumber {
			if d.Last++; d.Last > maxVariantNumber {
				d.Last = 1
			}
			if !used[d.Last] {
				n = d.Last
			}
		}
		used[n] = true
		d.Numbers = append(d.Numbers, n)
	}
	i.Numbers = d.Numbers
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, "", fmt.Errorf("encode item: %w", err)
	}
	i.row.size = len(raw)
	i.row.digest = digestOfItem(&i.Draft)
	i.prices()
	return i, string(raw), nil
}

// variantKey is what a variant keeps its number by.
func variantKey(v protocol.VariantDraft) string {
	if v.SKU != "" {
		return "s" + v.SKU
	}
	return "o" + strings.Join(v.Options, "\x00")
}

// digestOfItem tells contents apart; it is never 0.
func digestOfItem(d *protocol.ItemDraft) int64 {
	raw, _ := json.Marshal(d)
	sum := sha256.Sum256(raw)
	return int64(binary.BigEndian.Uint64(sum[:8]) | 1)
}

// prices computes currency and range.
func (i *StoredItem) prices() {
	first := true
	for _, v := range i.Variants() {
		if v.Currency == "" {
			continue
		}
		if i.Currency = v.Currency; first {
			i.Low, i.High, first = v.Minor, v.Minor, false
		}
		i.Low, i.High = min(i.Low, v.Minor), max(i.High, v.Minor)
	}
}

const itemColumns = `i.pos, i.seq, i.id, i.since, i.until, i.place, i.doc, i.digest, COALESCE(i.currency, ''), COALESCE(i.low, 0), COALESCE(i.high, 0),
	i.indexed, i.told, i.away_at, i.fed`

func scanItem(s scanner) (i StoredItem, err error) {
	var doc []byte
	r := &i.row
	if err := s.Scan(&r.pos, &r.seq, &i.ID, &r.since, &r.until, &r.place, &doc, &r.digest,
		&i.Currency, &i.Low, &i.High, &r.indexed, &r.told, &r.awayAt, &r.fed); err != nil {
		return i, err
	}
	var d itemDoc
	if err := json.Unmarshal(doc, &d); err != nil {
		return i, err
	}
	i.Draft, i.Numbers, i.Picture, r.size = d.ItemDraft, d.Numbers, d.Picture, len(doc)
	if d.Price == nil && i.Currency != "" && len(d.Variants) == 0 {
		price := protocol.MoneyOf(i.Currency, i.Low)
		i.Draft.Price = &protocol.MoneyDraft{Currency: price.Currency, Amount: protocol.Decimal(price.Amount)}
	}
	return i, nil
}

// Items reads and writes the items of merchants.
type Items struct{ tx *Tx }

func (tx *Tx) Items() Items { return Items{tx} }
