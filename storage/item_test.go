package storage_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

func rupees(amount string) *protocol.MoneyDraft {
	return &protocol.MoneyDraft{Currency: "INR", Amount: protocol.Decimal(amount)}
}

// items puts items into the catalog of a business.
func (d directory) items(handle string, items ...protocol.ItemDraft) (c *storage.ItemChanges) {
	d.t.Helper()
	for _, i := range items {
		require.Empty(d.t, i.Check())
	}
	write(d.t, d.db, func(ctx context.Context, tx *storage.Tx) (err error) {
		c, err = tx.Items().Put(ctx, handle, items...)
		return err
	})
	return c
}

// onSale walks a search in pages of a size and returns "handle/sku" of each item.
func (d directory) onSale(q storage.ItemQuery, size int) (found []string) {
	d.t.Helper()
	q.Limit = size
	for range 100 {
		var next *string
		read(d.t, d.db, func(ctx context.Context, tx *storage.Tx) error {
			p, err := tx.Items().Search(ctx, q)
			for _, i := range p.Items {
				found = append(found, i.Merchant.Draft.Handle+"/"+i.Draft.SKU)
			}
			next = p.Next
			return err
		})
		if next == nil {
			return found
		}
		q.After = *next
	}
	d.t.Fatal("the walk does not end")
	return nil
}

func catalogOfTwo(t *testing.T, db *storage.DB) directory {
	d := directory{t, db}
	d.put(protocol.ProfileDraft{Handle: "tiffins", Name: "Rao Tiffins"})
	d.put(protocol.ProfileDraft{Handle: "cloth", Name: "Jaipur Cloth"})
	d.items("tiffins",
		protocol.ItemDraft{SKU: "dosa", Name: "Masala dosa", Description: "With sambar. मसाला डोसा",
			Price: rupees("85"), Category: "Breakfast", Tags: []string{"vegan"}},
		protocol.ItemDraft{SKU: "idli", Name: "Idli", Price: rupees("40.5"), Category: "नाश्ता", Availability: protocol.OutOfStock},
		protocol.ItemDraft{SKU: "feast", Name: "Feast", Categories: []string{"Events", "Meals"}})
	d.items("cloth",
		protocol.ItemDraft{SKU: "kurta", Name: "Kurta, block printed", Category: "Clothes", Price: rupees("1200"), Options: []protocol.ItemOption{
			{Name: "Size", Values: []string{"S", "M", "Long"}}}, Variants: []protocol.VariantDraft{
			{Options: []string{"S"}, SKU: "kurta-s"}, {Options: []string{"M"}, Availability: protocol.OutOfStock},
			{Options: []string{"Long"}, Price: rupees("1450"), Barcode: "8901234567894"}}},
		protocol.ItemDraft{SKU: "scarf", Name: "Scarf with mango dots", Price: rupees("450"), Category: "Clothing"})
	return d
}

// TestItems_Search finds items by every condition, and by several.
func TestItems_Search(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := catalogOfTwo(t, db)
		minor := func(n int64) *int64 { return &n }
		for name, c := range map[string]struct {
			q    storage.ItemQuery
			want string
		}{
			"everything, newest first":     {storage.ItemQuery{}, "cloth/scarf cloth/kurta tiffins/feast tiffins/idli tiffins/dosa"},
			"a word":                       {storage.ItemQuery{Q: "sambar"}, "tiffins/dosa"},
			"the beginning of the last":    {storage.ItemQuery{Q: "masala dos"}, "tiffins/dosa"},
			"not of the first, but most":   {storage.ItemQuery{Q: "mas dosa"}, "tiffins/dosa"},
			"Devanagari":                   {storage.ItemQuery{Q: "डोसा"}, "tiffins/dosa"},
			"a plural":                     {storage.ItemQuery{Q: "scarfs"}, "cloth/scarf"},
			"a label":                      {storage.ItemQuery{Q: "kurta long"}, "cloth/kurta"},
			"a barcode":                    {storage.ItemQuery{Q: "8901234567894"}, "cloth/kurta"},
			"no word":                      {storage.ItemQuery{Q: "?!"}, ""},
			"quotes are no syntax":         {storage.ItemQuery{Q: `"mango -dots`}, "cloth/scarf"},
			"a category by its other name": {storage.ItemQuery{Categories: []string{"breakfast"}}, "tiffins/idli tiffins/dosa"},
			"one of two categories":        {storage.ItemQuery{Categories: []string{"कपड़े", "events"}}, "cloth/scarf cloth/kurta tiffins/feast"},
			"the second category":          {storage.ItemQuery{Categories: []string{"खाना"}}, "tiffins/feast"},
			"of a shop, in its order":      {storage.ItemQuery{Handles: []string{"tiffins"}}, "tiffins/dosa tiffins/idli tiffins/feast"},
			"of a shop with a condition":   {storage.ItemQuery{Handles: []string{"tiffins"}, Categories: []string{"breakfast"}}, "tiffins/dosa tiffins/idli"},
			"of nobody":                    {storage.ItemQuery{Handles: []string{"nobody"}}, ""},
			"of two shops":                 {storage.ItemQuery{Handles: []string{"tiffins", "cloth"}, Q: "masala kurta"}, "cloth/kurta tiffins/dosa"},
			"in stock": {storage.ItemQuery{
				Availabilities: []protocol.Availability{protocol.InStock}, Categories: []string{"breakfast"}}, "tiffins/dosa"},
			"a variant is out of stock": {storage.ItemQuery{Availabilities: []protocol.Availability{protocol.OutOfStock}}, "cloth/kurta tiffins/idli"},
			"a price, to the paisa":     {storage.ItemQuery{Currency: "INR", Min: minor(4050), Max: minor(4050)}, "tiffins/idli"},
			"just above it":             {storage.ItemQuery{Currency: "INR", Min: minor(4051), Max: minor(8499)}, ""},
			"an open range":             {storage.ItemQuery{Currency: "INR", Min: minor(8500)}, "cloth/scarf cloth/kurta tiffins/dosa"},
			"the price of a variant":    {storage.ItemQuery{Currency: "INR", Min: minor(140000)}, "cloth/kurta"},
			"another currency":          {storage.ItemQuery{Currency: "EUR", Min: minor(1)}, ""},
			"words, category, price and shop": {storage.ItemQuery{
				Q: "kurta", Categories: []string{"clothing"}, Currency: "INR", Max: minor(120000), Handles: []string{"cloth"}}, "cloth/kurta"},
		} {
			for _, size := range []int{1, 2, 100} {
				require.Equal(t, strings.Fields(c.want), append([]string{}, d.onSale(c.q, size)...), "%s, pages of %d", name, size)
			}
		}
	})
}

// TestItems_Unlisted: items of a business that is in no list are only found in its own catalog.
func TestItems_Unlisted(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := catalogOfTwo(t, db)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			p := must.Get(tx.Profiles().ForUpdate(ctx, "cloth"))(t)
			p.Unlisted = true
			return must.Err(tx.Profiles().Put(ctx, p))
		})
		require.Empty(t, d.onSale(storage.ItemQuery{Q: "kurta"}, 10))
		require.Len(t, d.onSale(storage.ItemQuery{}, 1), 3)
		require.Len(t, d.onSale(storage.ItemQuery{Handles: []string{"cloth"}}, 1), 2)
	})
}

// TestItems_Ids: items and variants keep their ids, whatever else is written, and both find the item.
func TestItems_Ids(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := catalogOfTwo(t, db)
		get := func(handle, sku string) storage.StoredItem {
			return reads(t, db, func(ctx context.Context, tx *storage.Tx) (storage.StoredItem, error) {
				return tx.Items().BySKU(ctx, handle, sku)
			})
		}
		before := get("cloth", "kurta")
		was := before.Variants()
		require.Len(t, was, 3)
		for _, v := range was {
			require.True(t, protocol.IsID(protocol.VariantID, v.ID), v.ID)
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				found, err := tx.Items().ByIDs(ctx, []string{v.ID, "item_01hzzzzzzzzzzzzzzzzzzzzzzz", "nonsense"})
				require.Len(t, found, 1)
				require.Equal(t, before.ID, found[0].ID)
				require.Equal(t, "cloth", found[0].Merchant.Draft.Handle)
				return err
			})
		}
		// The first is renamed and keeps its SKU, the second is dropped, one is new.
		changed := before.Draft
		changed.Options = []protocol.ItemOption{{Name: "Size", Values: []string{"Small", "XL", "Long"}}}
		changed.Variants = []protocol.VariantDraft{{Options: []string{"XL"}}, {Options: []string{"Small"}, SKU: "kurta-s"}, {Options: []string{"Long"}}}
		require.Equal(t, 1, d.items("cloth", changed).Changed)
		after := get("cloth", "kurta")
		now := after.Variants()
		require.Equal(t, before.ID, after.ID)
		require.Equal(t, was[0].ID, now[1].ID)
		require.Equal(t, was[2].ID, now[2].ID)
		require.False(t, slices.ContainsFunc(was, func(v storage.StoredVariant) bool { return v.ID == now[0].ID }), "an id is not given twice")

		// Removed and written again.
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, 1, must.Get(tx.Items().Remove(ctx, "cloth", "kurta", "unknown"))(t).Removed)
			return nil
		})
		require.Equal(t, []string{"cloth/scarf"}, d.onSale(storage.ItemQuery{Handles: []string{"cloth"}}, 10))
		require.Empty(t, d.onSale(storage.ItemQuery{Q: "kurta"}, 10))
		require.Equal(t, 1, d.items("cloth", changed).Added)
		require.Equal(t, after.ID, get("cloth", "kurta").ID)
		require.Equal(t, []string{"cloth/kurta", "cloth/scarf"}, d.onSale(storage.ItemQuery{Handles: []string{"cloth"}}, 10), "where it was")
		require.Equal(t, []string{"cloth/kurta"}, d.onSale(storage.ItemQuery{Q: "kurta"}, 10))
		require.Equal(t, 1, d.items("cloth", changed).Unchanged)
		require.NoError(t, db.Check(t.Context()))
	})
}

// TestItems_WalkIsStable: a walk shows what existed when it began once, while items are
// added, changed and removed.
func TestItems_WalkIsStable(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		d.put(protocol.ProfileDraft{Handle: "shop", Name: "Shop"})
		var all []protocol.ItemDraft
		for n := range 30 {
			all = append(all, protocol.ItemDraft{SKU: fmt.Sprint("s", n), Name: "Thing", Price: rupees("10")})
		}
		d.items("shop", all...)
		for _, q := range []storage.ItemQuery{{Q: "thing"}, {}, {Handles: []string{"shop"}}, {Handles: []string{"shop"}, Q: "thing"}} {
			seen := map[string]int{}
			for q.Limit = 7; ; {
				var next *string
				read(t, db, func(ctx context.Context, tx *storage.Tx) error {
					p, err := tx.Items().Search(ctx, q)
					for _, i := range p.Items {
						seen[i.Draft.SKU]++
					}
					next = p.Next
					return err
				})
				for n := range 30 { // each is changed, some is new
					all[n].Price = rupees(fmt.Sprint(20 + n + len(seen)))
				}
				d.items("shop", append(all, protocol.ItemDraft{SKU: fmt.Sprint("new", len(seen)), Name: "Thing"})...)
				if next == nil {
					break
				}
				q.After = *next
			}
			for n := range 30 {
				require.Equal(t, 1, seen[fmt.Sprint("s", n)], "%+v s%d", q, n)
			}
		}
	})
}

// TestItems_LargeCatalog: a merchant record neither holds nor replaces a large catalog.
func TestItems_LargeCatalog(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		d.put(protocol.ProfileDraft{Handle: "shop", Name: "Shop"})
		var all []protocol.ItemDraft
		for n := range 150 {
			all = append(all, protocol.ItemDraft{SKU: fmt.Sprint("s", n), Name: fmt.Sprint("Thing", n)})
		}
		d.items("shop", all...)
		require.ErrorIs(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			_, _, err := tx.Merchants().Put(ctx, "shop", protocol.MerchantDraft{Items: all[:100]})
			return err
		}), storage.ErrLarge)
		require.Equal(t, 150, d.merchant("shop", protocol.MerchantDraft{City: "Pune"}).ItemCount)
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			_, m, err := tx.Merchants().ByHandle(ctx, "shop")
			require.Len(t, m.Items, 100)
			rest, err2 := tx.Items().Search(ctx, storage.ItemQuery{Handles: []string{"shop"}, Paging: protocol.Paging{Limit: 100, After: *m.ItemsNext()}})
			require.Len(t, rest.Items, 50)
			require.Equal(t, "s100", rest.Items[0].Draft.SKU)
			require.NoError(t, err2)
			return err
		})
		// The directory finds it by any item, once the job has run.
		words := reads(t, db, func(ctx context.Context, tx *storage.Tx) (string, error) { return tx.Items().ShopWords(ctx, "shop") })
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Items().PutShopWords(ctx, "shop", words) })
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Len(t, must.Get(tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{Q: "thing149"}))(t).Items, 1)
			return nil
		})
		require.NoError(t, db.Check(t.Context()))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "shop") })
		require.Empty(t, d.onSale(storage.ItemQuery{}, 10))
		require.NoError(t, db.Check(t.Context()))
	})
}
