package fill

import (
	"context"
	"fmt"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// LargeShop is how many of the items the first business has, of a node with more.
const LargeShop = protocol.MaxItems - 10

// itemsAtOnce is how many items one transaction writes.
const itemsAtOnce = 500

// sections are the categories of items, in the order of how often they occur.
var sections = []string{"Grocery", "Snacks", "Clothing", "Books", "Stationery", "Spices", "Sweets", "Hardware", "Toys", "Furniture"}

// businesses is how many of so many profiles are one.
func businesses(profiles int) int { return profiles/10*3 + min(profiles%10, 3) }

// shopOf is the business that has an item, by its number among the businesses.
func (w *writer) shopOf(n int) int {
	if n < LargeShop {
		return 0
	}
	others := max(businesses(w.Profiles)-1, 1)
	each := (w.Items - LargeShop + others - 1) / others
	return 1 + (n-LargeShop)/each
}

// items writes the items of a batch.
func (w *writer) items(ctx context.Context, tx *storage.Tx, batch int) error {
	shop, some := -1, []protocol.ItemDraft(nil)
	put := func() error {
		if len(some) == 0 {
			return nil
		}
		return tx.Items().PutQuietly(ctx, Handle(shop/3*10+shop%3), some...)
	}
	for n := batch * itemsAtOnce; n < min((batch+1)*itemsAtOnce, w.Items); n++ {
		if of := w.shopOf(n); of != shop {
			if err := put(); err != nil {
				return err
			}
			shop, some = of, some[:0]
		}
		some = append(some, w.item(n))
	}
	return put()
}

func (w *writer) item(n int) protocol.ItemDraft {
	r := w.of(5, n)
	d := protocol.ItemDraft{
		SKU: fmt.Sprintf("i%d", n), Name: w.drawSentence(r, names), Description: w.text(r, 4, 10), Category: often(r, sections), Tags: w.drawTags(r, 2),
		Price: &protocol.MoneyDraft{Currency: "INR", Amount: protocol.Decimal(fmt.Sprintf("%d.%02d", 5+int(r.ExpFloat64()*800), r.IntN(100)))},
	}
	if r.IntN(8) == 0 {
		d.Availability = protocol.OutOfStock
	}
	if r.IntN(10) == 0 {
		d.Options = []protocol.ItemOption{{Name: "Size", Values: strings.Fields("S M L")}}
		for _, size := range d.Options[0].Values {
			d.Variants = append(d.Variants, protocol.VariantDraft{Options: []string{size}})
		}
	}
	return d
}
