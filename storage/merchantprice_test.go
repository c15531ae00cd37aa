package storage_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestListMerchants_Prices: a list of businesses has the lowest and the highest price of what each sells, in the asked currency; those
// that an import prepares are not among them.
func TestListMerchants_Prices(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		for _, handle := range []string{"bare", "asked", "shop"} {
			d.put(protocol.ProfileDraft{Handle: handle, Name: handle})
		}
		euro := &protocol.MoneyDraft{Currency: "EUR", Amount: "3"}
		d.merchant("bare", protocol.MerchantDraft{})
		d.merchant("asked", protocol.MerchantDraft{Items: []protocol.ItemDraft{{SKU: "a", Name: "On request"}, {SKU: "b", Name: "Abroad", Price: euro}}})
		d.items("shop", protocol.ItemDraft{SKU: "idli", Name: "Idli", Price: rupees("40")}, protocol.ItemDraft{SKU: "cake", Name: "Cake",
			Options:  []protocol.ItemOption{{Name: "Size", Values: []string{"S", "L"}}},
			Variants: []protocol.VariantDraft{{Options: []string{"S"}, Price: rupees("600")}, {Options: []string{"L"}, Price: rupees("1500.50")}}})
		check := func(currency string, want map[string]protocol.PriceSpan) {
			t.Helper()
			got := map[string]protocol.PriceSpan{}
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				page, err := tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{PriceFilter: protocol.PriceFilter{Currency: currency}})
				require.Len(t, page.Items, 3)
				for _, p := range page.Items {
					if p.Merchant != nil && p.Merchant.Prices != nil {
						got[p.Draft.Handle] = *p.Merchant.Prices
					}
				}
				return err
			})
			require.Equal(t, want, got)
		}
		check("", map[string]protocol.PriceSpan{"shop": {Currency: "INR", Low: 40_00, High: 1500_50}})
		check("EUR", map[string]protocol.PriceSpan{"asked": {Currency: "EUR", Low: 3_00, High: 3_00}})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.Items().Remove(ctx, "shop", "idli"))
		})
		check("INR", map[string]protocol.PriceSpan{"shop": {Currency: "INR", Low: 600_00, High: 1500_50}})

		next := []protocol.ItemDraft{{SKU: "tea", Name: "Tea", Price: rupees("10")}, {SKU: "feast", Name: "Feast", Price: rupees("90000")}}
		must.Get(db.ImportItems(t.Context(), imported("shop", next, func(int) error {
			check("INR", map[string]protocol.PriceSpan{"shop": {Currency: "INR", Low: 600_00, High: 1500_50}})
			return nil
		})))(t)
		check("INR", map[string]protocol.PriceSpan{"shop": {Currency: "INR", Low: 10_00, High: 90_000_00}})
	})
}

// TestRemoteAgent_Prices: of what another node says, what is no span of prices is not one.
func TestRemoteAgent_Prices(t *testing.T) {
	t.Parallel()
	var a storage.RemoteAgent
	a.Summary.Shop = &protocol.ShopSummary{Prices: []protocol.PriceSpan{{Currency: "EUR", Low: 1, High: 2}, {Currency: "INR", Low: -5, High: 7}}}
	require.Equal(t, &protocol.PriceSpan{Currency: "EUR", Low: 1, High: 2}, a.Prices("EUR"))
	require.Nil(t, a.Prices("USD"))
	for _, s := range [][2]int64{{-5, 7}, {7, 5}, {0, protocol.MaxMinor + 1}} {
		a.Summary.Shop.Prices[1] = protocol.PriceSpan{Currency: "INR", Low: s[0], High: s[1]}
		require.Nil(t, a.Prices("INR"), "%v", s)
	}
}

// plansOfShopPrices: a list reads both ends of the prices of each shop, whatever it sells.
func plansOfShopPrices(t *testing.T, db *storage.DB) {
	var plans []string
	storage.ExplainQueries(db, func(query string, plan []string, err error) {
		require.NoError(t, err, query)
		if strings.Contains(query, "AS low") {
			plans = append(plans, strings.Join(plan, "\n"))
		}
	})
	read(t, db, func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{}))
	})
	require.Len(t, plans, 1, "one statement for the shops of a page")
	const lite = `PRIMARY KEY \(seq=\? AND currency=\?`
	require.Regexp(t, `(?s)item_price_pkey.*seq = m.seq.*Backward.*item_price_pkey.*seq = m.seq|`+lite+`.*`+lite, plans[0])
	require.NotRegexp(t, `Sort|TEMP B-TREE`, plans[0])
	require.Empty(t, walks(strings.Split(plans[0], "\n")))
}
