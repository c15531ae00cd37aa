package storage_test

import (
	"context"
	"errors"
	"testing"

	"stoa/protocol"
	"stoa/storage"

	"github.com/stretchr/testify/require"
)

const growingShop = "growing-shop"

var growingPlace = protocol.Geo{Latitude: -33.86, Longitude: 151.21}

// skewItems fills a database with the items of a shop, all with other prices than the first, and with
// what the node did, hour by hour.
func skewItems(t *testing.T, db *storage.DB, scale int, fill func(full int, insert string, args ...any)) {
	t.Helper()
	directory{t, db}.put(protocol.ProfileDraft{Handle: growingShop})
	directory{t, db}.merchant(growingShop, protocol.MerchantDraft{Geo: &growingPlace})
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Items().PutQuietly(ctx, growingShop, growingItem("a"))
	})
	for table, set := range map[string]map[string]string{
		"item":       {"pos": "pos + 2 * s", "id": "id || CAST(s AS TEXT)", "sku": "sku || CAST(s AS TEXT)", "place": "place + s"},
		"item_price": {"pos": "pos + 2 * s", "minor": "minor + s"},
	} {
		require.NoError(t, storage.CopyRows(t.Context(), db, table, `seq = (SELECT seq FROM profile WHERE handle = '`+growingShop+`')`, 200*scale, set))
	}
	fill(20_000, `INSERT INTO traffic (hour, what, n) WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT))
		SELECT CAST(? AS BIGINT) - n * CAST(3600000 AS BIGINT), 'x', 1 FROM series`, start.UnixMilli())
}

func growingItem(sku string) protocol.ItemDraft {
	return protocol.ItemDraft{SKU: sku, Name: "Thing", Price: &protocol.MoneyDraft{Currency: "INR", Amount: "50"}}
}

// grownItems are the statements of items, of merchants by what they sell, and of traffic.
func grownItems(ctx context.Context, tx *storage.Tx) []call {
	return []call{
		{"newest items", looks, func() error { return some(tx.Items().Search(ctx, storage.ItemQuery{})) }},
		{"items of a shop", looks, func() error { return some(tx.Items().Search(ctx, storage.ItemQuery{Handles: []string{growingShop}})) }},
		{"items near a place", looks, func() error {
			all, err := tx.Items().Search(ctx, storage.ItemQuery{Near: &growingPlace})
			word, e := tx.Items().Search(ctx, storage.ItemQuery{Near: &growingPlace, Q: "thing"})
			return found(len(all.Items)*len(word.Items), errors.Join(err, e))
		}},
		{"items at a price", looks, func() error {
			price := int64(5000)
			all, err := tx.Items().Search(ctx, storage.ItemQuery{Currency: "INR", Min: &price, Max: &price})
			word, e := tx.Items().Search(ctx, storage.ItemQuery{Q: "thing", Currency: "INR", Min: &price, Max: &price, Handles: []string{growingShop}})
			return found(len(all.Items)*len(word.Items), errors.Join(err, e))
		}},
		{"merchants that sell at a price", looks, func() error {
			return some(tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{Local: true, PriceFilter: protocol.PriceFilter{MinPrice: "50", MaxPrice: "50"}}))
		}},
		{"item by its sku", looks, func() error {
			i, err := tx.Items().BySKU(ctx, growingShop, "a")
			if err != nil {
				return err
			}
			p, err := tx.Items().ByIDs(ctx, []string{i.ID})
			return found(len(p), err)
		}},
		{"put an item", undone, func() error { return tx.Items().PutQuietly(ctx, growingShop, growingItem("new"), growingItem("a")) }},
		{"traffic of a day", looks, func() error { return some(tx.Traffic().Since(ctx, start.AddDate(0, 0, -1))) }},
	}
}
