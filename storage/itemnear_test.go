package storage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
)

// TestItems_Near: what businesses near a place sell, the nearest first, in pages of any size, and with every other condition.
func TestItems_Near(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		sells := func(handle string, metres float64) {
			d.put(protocol.ProfileDraft{Handle: handle, Name: "Tea", Kind: protocol.Business})
			d.merchant(handle, protocol.MerchantDraft{City: "Bengaluru", Geo: &protocol.Geo{Latitude: 12.97 + metres/111_195, Longitude: 77.6}})
			if handle != "empty" {
				d.items(handle, protocol.ItemDraft{SKU: "tea", Name: "Assam tea", Price: rupees("90")},
					protocol.ItemDraft{SKU: "rice", Name: "Basmati rice", Category: "Food", Price: rupees("1" + fmt.Sprint(len(handle)))})
			}
		}
		sells("far", 40_000)
		d.items("far", protocol.ItemDraft{SKU: "kurta", Name: "Kurta"})
		sells("town", 9_000)
		sells("beside", 700)
		sells("empty", 300)
		sells("corner", 90)
		sells("opposite", 90) // as far as corner, and later
		at := &protocol.Geo{Latitude: 12.97, Longitude: 77.6}
		nearest := []string{"corner/tea", "corner/rice", "opposite/tea", "opposite/rice", "beside/tea", "beside/rice"}
		for size := 1; size <= 7; size++ {
			require.Equal(t, nearest, d.onSale(storage.ItemQuery{Near: at}, size))
			require.Equal(t, append(nearest[:6:6], "town/tea", "town/rice"), d.onSale(storage.ItemQuery{Near: at, Radius: 10_000}, size))
			require.Equal(t, []string{"corner/tea", "opposite/tea", "beside/tea"}, d.onSale(storage.ItemQuery{Near: at, Q: "tea", Sort: protocol.SortNear}, size))
			require.ElementsMatch(t, []string{"corner/tea", "opposite/tea", "beside/tea"}, d.onSale(storage.ItemQuery{Near: at, Q: "tea"}, size))
			require.Equal(t, []string{"beside/rice", "corner/rice", "opposite/rice"},
				d.onSale(storage.ItemQuery{Near: at, Sort: protocol.SortPrice, Categories: []string{"food"}}, size))
			require.Equal(t, []string{"beside/tea"}, d.onSale(storage.ItemQuery{Near: at, Q: "tea", Handles: []string{"beside", "far"}}, size))
		}
		ask := func(q storage.ItemQuery) (p storage.ItemPage) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				p, err = tx.Items().Search(ctx, q)
				return err
			})
			return p
		}
		require.InDelta(t, 700, *ask(storage.ItemQuery{Near: at, Handles: []string{"beside"}}).Items[0].Distance, 10)
		require.Nil(t, ask(storage.ItemQuery{Q: "tea"}).Items[0].Distance)
		none := ask(storage.ItemQuery{Near: &protocol.Geo{Latitude: 48.1, Longitude: 11.5}, Q: "tea"})
		require.Empty(t, none.Items)
		require.Equal(t, []string{"near"}, none.Without, "what could be left out")
		require.Equal(t, []string{"near"}, ask(storage.ItemQuery{Near: at, Q: "kurta"}).Without)

		// A business that moves away or opens between two pages takes nothing from the rest of the list.
		first := ask(storage.ItemQuery{Near: at, Paging: protocol.Paging{Limit: 3}})
		d.merchant("opposite", protocol.MerchantDraft{City: "Bengaluru"})
		sells("new", 10)
		rest := ask(storage.ItemQuery{Near: at, Paging: protocol.Paging{Limit: 3, After: *first.Next}})
		require.Equal(t, "beside", rest.Items[0].Merchant.Draft.Handle)
		require.Len(t, rest.Items, 2)
		// The shops beside a place are not forgotten because a thousand businesses without a catalog, which a wider circle has too, changed later.
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for n := range 1050 {
				p := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: fmt.Sprint("office-", n), Name: "Office", Kind: protocol.Business}, CreatedAt: tx.Now}
				if _, err := tx.Profiles().Put(ctx, p); err != nil {
					return err
				}
				if _, _, err := tx.Merchants().Put(ctx, p.Draft.Handle, protocol.MerchantDraft{Geo: &protocol.Geo{Latitude: 12.99, Longitude: 77.6}}); err != nil {
					return err
				}
			}
			return nil
		})
		require.Equal(t, []string{"new/tea", "corner/tea", "beside/tea"}, d.onSale(storage.ItemQuery{Near: at, Q: "tea", Sort: protocol.SortNear}, 20))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			shops, err := tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{Sort: protocol.SortNear, Paging: protocol.Paging{Limit: 20},
				PlaceFilter: protocol.PlaceFilter{Near: at.String()}})
			require.Len(t, shops.Items, 20)
			for n, want := range []string{"new", "corner", "empty", "beside"} {
				require.Equal(t, want, shops.Items[n].Draft.Handle)
			}
			return err
		})

		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, bad := range []string{"n1.2", "n-1.2.3", "u3", "n1.2.3x"} {
				_, err := tx.Items().Search(ctx, storage.ItemQuery{Near: at, Paging: protocol.Paging{After: *protocol.Cursor("items", bad)}})
				require.Error(t, err, bad)
			}
			return nil
		})
	})
}
