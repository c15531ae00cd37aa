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
	"stoa/storage/storagetest/fill"
)

// TestListMerchants_Words finds merchants by what a customer types: words of the
// descriptions and tags of items, the beginning of the last word, singular and
// plural.
func TestListMerchants_Words(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		d.put(protocol.ProfileDraft{Handle: "tiffins", Name: "Rao Tiffins"})
		d.put(protocol.ProfileDraft{Handle: "press", Name: "Jaipur Press"})
		d.put(protocol.ProfileDraft{Handle: "unsold", Name: "Nothing"})
		d.merchant("tiffins", protocol.MerchantDraft{Items: []protocol.ItemDraft{
			{SKU: "dosa", Name: "Masala dosa", Description: "With sambar and coconut chutney. मसाला डोसा, गरम.", Tags: []string{"vegan"}},
			{SKU: "idli", Name: "Idli", Description: "Two in a plate, with cherry tomatoes."},
		}})
		d.merchant("press", protocol.MerchantDraft{Items: []protocol.ItemDraft{{SKU: "p", Name: "Paper", Description: "A box of sheets, boxed by hand."}}})
		find := func(q string) (handles []string) {
			t.Helper()
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				p, err := tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{Q: q})
				for _, i := range p.Items {
					handles = append(handles, i.Draft.Handle)
				}
				return err
			})
			return handles
		}
		for q, want := range map[string]string{
			"sambar": "tiffins", "coconut": "tiffins", "मसाला": "tiffins", "गर": "tiffins", "vegan": "tiffins", "dos": "tiffins", "dosas": "tiffins",
			"idlis": "tiffins", "plates": "tiffins", "cherries": "tiffins", "masala chut": "tiffins", `"coconut chutney"`: "tiffins",
			"papers": "press", "boxes": "press", "sheet": "press", "hands": "press", "pap": "press", "paper -vegan": "press",
			"do": "", "sam dosa": "tiffins", "papers vegan": "press tiffins", "glass": "", "paper -boxed": "", `"coconut chut"`: "",
		} {
			require.Equal(t, strings.Fields(want), append([]string{}, find(q)...), q)
		}
		require.ElementsMatch(t, []string{"tiffins"}, find("tiffin"), "a name, in the singular")
	})
}

// TestPutMerchant_TextIsBounded: a record of the most that may be written is found
// by what its items are called.
func TestPutMerchant_TextIsBounded(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		d.put(protocol.ProfileDraft{Handle: "large", Name: "Large"})
		var items []protocol.ItemDraft
		for i := range 100 {
			var b strings.Builder
			for n := 0; b.Len() < 2700; n++ {
				fmt.Fprintf(&b, "मसाला%dडोसा ", i*1000+n)
			}
			items = append(items, protocol.ItemDraft{SKU: fmt.Sprint("s", i), Name: fmt.Sprintf("Thing%d", i), Description: b.String()})
		}
		d.merchant("large", protocol.MerchantDraft{Items: items})
		for _, q := range []string{"thing99", "मसाला0डोसा"} {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				require.Len(t, must.Get(tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{Q: q}))(t).Items, 1, q)
				return nil
			})
		}
	})
}

// plansOfMerchantWords: beginnings and plurals of words are looked up in the index of
// words.
func plansOfMerchantWords(t *testing.T, db *storage.DB, index string) {
	var plans []string
	storage.ExplainQueries(db, func(query string, plan []string, err error) {
		require.NoError(t, err, query)
		require.Empty(t, walks(plan), query)
		plans = append(plans, strings.Join(plan, "\n"))
	})
	// What is rare is asked of the index alone.
	for _, q := range []protocol.MerchantQuery{
		{Q: "zzz"}, {Q: "rice zzzs"}, {PlaceFilter: protocol.PlaceFilter{Near: "12.97,77.6", Radius: 5000}}, {AcceptsReturns: true},
	} {
		plans = nil
		read(t, db, func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Profiles().ListMerchants(ctx, q)) })
		require.Contains(t, strings.Join(plans, "\n"), index, "%+v", q)
	}
	// An exact price is looked up in each shop.
	plans = nil
	read(t, db, func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{PriceFilter: protocol.PriceFilter{MinPrice: "100", MaxPrice: "5000"}}))
	})
	require.Regexp(t, `(?s)item_price_pkey.*seq = m.seq|PRIMARY KEY \(seq=\? AND currency=\? AND minor>\? AND minor<\?\)`, strings.Join(plans, "\n"))
}

// plansOfPrices looks at the plans of searches of items by price: few, many, and of one shop. On SQLite
// prices are words.
func plansOfPrices(t *testing.T, db *storage.DB, postgres bool) {
	var plans []string
	storage.ExplainQueries(db, func(query string, plan []string, err error) {
		require.NoError(t, err, query)
		require.Empty(t, walks(plan), query)
		plans = append(plans, strings.Join(plan, "\n"))
	})
	for _, tt := range []struct {
		least, most int64
		shop        bool
		index       string
	}{
		{123_456, 123_456, false, "item_price_range"}, {0, 500_000, false, "item_price_newest"}, {100_000, 200_000, true, "item_price_pkey|item_price_range"},
	} {
		q := storage.ItemQuery{Currency: "INR", Min: &tt.least, Max: &tt.most, Q: fill.Word(0), Sort: protocol.SortNew}
		if tt.shop {
			q.Handles = []string{fill.Handle(0)}
		}
		search := func(q storage.ItemQuery) storage.ItemPage {
			return reads(t, db, func(ctx context.Context, tx *storage.Tx) (storage.ItemPage, error) { return tx.Items().Search(ctx, q) })
		}
		plans = nil
		var got, all []string
		for _, i := range search(q).Items {
			got = append(got, i.ID)
		}
		want := tt.index
		if !postgres {
			want = "SCAN item_word VIRTUAL TABLE INDEX"
		}
		require.Regexp(t, want, strings.Join(plans, "\n"), "%+v", tt)
		// The page is that of a walk over all items that compares prices.
		for q.Min, q.Max = nil, nil; tt.least < tt.most && len(all) < len(got); {
			p := search(q)
			for _, i := range p.Items {
				if i.Low >= tt.least && i.High <= tt.most && len(all) < len(got) {
					all = append(all, i.ID)
				}
			}
			require.NotNil(t, p.Next)
			q.After = *p.Next
		}
		require.True(t, tt.least == tt.most || slices.Equal(all, got), "%+v", tt)
	}
}
