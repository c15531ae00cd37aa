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

func (d directory) search(q storage.ItemQuery) storage.ItemPage {
	d.t.Helper()
	return reads(d.t, d.db, func(ctx context.Context, tx *storage.Tx) (storage.ItemPage, error) { return tx.Items().Search(ctx, q) })
}

func skus(p storage.ItemPage) string {
	var all []string
	for _, i := range p.Items {
		all = append(all, i.Draft.SKU)
	}
	return strings.Join(all, " ")
}

// TestItems_Relevance: the better match comes first, whatever is newer.
func TestItems_Relevance(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		d.put(protocol.ProfileDraft{Handle: "shop", Name: "Shop"})
		d.items("shop",
			protocol.ItemDraft{SKU: "large", Name: "Basmati rice 5 kg", Price: rupees("500")},
			protocol.ItemDraft{SKU: "small", Name: "Basmati rice 1kg", Price: rupees("120")},
			protocol.ItemDraft{SKU: "sold", Name: "Ponni", Category: "Rice", Price: rupees("60")},
			protocol.ItemDraft{SKU: "fried", Name: "Murukku", Description: "Spirals of rice flour", Price: rupees("80")},
			protocol.ItemDraft{SKU: "begun", Name: "Ricebran oil", Price: rupees("200")},
			protocol.ItemDraft{SKU: "brush", Name: "Tooth brush"}, protocol.ItemDraft{SKU: "paste", Name: "Toothpaste"},
			protocol.ItemDraft{SKU: "cafe", Name: "Café au lait"})
		for q, want := range map[string]string{
			"rice":              "small large sold begun fried",
			"basmati rice 5kg":  "large",
			"rice 1000 g":       "small",
			"बासमती":            "small large",
			"toothbrush":        "brush",
			"tooth paste":       "paste",
			"cafe":              "cafe",
			"rice for the 5 kg": "large",
		} {
			require.Equal(t, want, skus(d.search(storage.ItemQuery{Q: q})), q)
		}
		for sort, want := range map[protocol.ItemSort]string{
			protocol.SortNew: "begun fried sold small large", protocol.SortPrice: "sold fried small begun large",
			protocol.SortDearest: "large begun small fried sold", protocol.SortRelevance: "small large sold begun fried",
		} {
			require.Equal(t, want, skus(d.search(storage.ItemQuery{Q: "rice", Sort: sort})), sort)
			var walked []string
			for _, at := range d.onSale(storage.ItemQuery{Q: "rice", Sort: sort}, 2) {
				walked = append(walked, strings.TrimPrefix(at, "shop/"))
			}
			require.Equal(t, want, strings.Join(walked, " "), sort)
		}
	})
}

// TestItems_Finding: what a search says when it does more than was asked, and less.
func TestItems_Finding(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := catalogOfTwo(t, db)
		minor := func(n int64) *int64 { return &n }
		for name, c := range map[string]struct {
			q    storage.ItemQuery
			want string
			says protocol.Finding
		}{
			"as it is":         {storage.ItemQuery{Q: "masala dosa"}, "dosa", protocol.Finding{}},
			"misspelled":       {storage.ItemQuery{Q: "masla dosa"}, "dosa", protocol.Finding{DidYouMean: "masala dosa"}},
			"two edits":        {storage.ItemQuery{Q: "breakfats"}, "idli dosa", protocol.Finding{DidYouMean: "breakfast"}},
			"an unknown word":  {storage.ItemQuery{Q: "printed kurta zzyzx"}, "kurta", protocol.Finding{Partly: true, Without: []string{"zzyzx"}}},
			"of no item":       {storage.ItemQuery{Q: "zzyzx qwrty"}, "", protocol.Finding{Without: []string{"zzyzx", "qwrty"}}},
			"most of them":     {storage.ItemQuery{Q: "printed kurta sambar"}, "kurta", protocol.Finding{Partly: true}},
			"a filter too few": {storage.ItemQuery{Q: "kurta", Currency: "INR", Max: minor(100)}, "", protocol.Finding{Without: []string{"maxPrice"}}},
		} {
			p := d.search(c.q)
			require.Equal(t, c.want, skus(p), name)
			require.Equal(t, c.says, p.Finding, name)
		}
	})
}

// TestMerchants_Spelled: a shop is found by what it sells in other spellings too, and by a misspelled word when none has it.
func TestMerchants_Spelled(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		for n := range 5 {
			handle := fmt.Sprint("shop", n)
			d.put(protocol.ProfileDraft{Handle: handle, Name: "Kirana", Kind: protocol.Business})
			d.items(handle, protocol.ItemDraft{SKU: "a", Name: "चावल"}, protocol.ItemDraft{SKU: "b", Name: "Turmeric"})
		}
		d.put(protocol.ProfileDraft{Handle: "chavel", Name: "Chavel Turmerics", Kind: protocol.Business})
		for q, want := range map[string]int{"chaval": 5, "chawal": 5, "turmric": 6, "turmeric": 6, "turmerics": 6, "chavel": 1, "qwrtyu": 0} {
			seen := map[string]bool{}
			for at := (protocol.Paging{Limit: 2}); ; {
				var p storage.AgentPage
				read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
					p, err = tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{Q: q, Paging: at})
					return err
				})
				for _, i := range p.Items {
					require.False(t, seen[i.Draft.Handle], q)
					seen[i.Draft.Handle] = true
				}
				if p.Next == nil {
					break
				}
				at.After = *p.Next
			}
			require.Len(t, seen, want, q)
		}
	})
}

// TestItems_LargeWalks: walks through more than is ranked or sorted at once show each item once, in every order,
// while items are added.
func TestItems_LargeWalks(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		d.put(protocol.ProfileDraft{Handle: "shop", Name: "Shop"})
		var all []protocol.ItemDraft
		for n := range 700 {
			i := protocol.ItemDraft{SKU: fmt.Sprint("s", n), Name: "Plain thing", Price: rupees(fmt.Sprint(10 + n*7%100))}
			switch n % 3 {
			case 0:
				i.Name, i.Category = "Other", "Thing"
			case 1:
				i.Name, i.Description = "Some", "A thing"
			}
			all = append(all, i)
		}
		for some := range slices.Chunk(all, 100) {
			d.items("shop", some...)
		}
		for _, sort := range []protocol.ItemSort{"", protocol.SortNew, protocol.SortPrice, protocol.SortDearest} {
			for _, handles := range [][]string{nil, {"shop"}} {
				q := storage.ItemQuery{Q: "thing", Sort: sort, Handles: handles, Paging: protocol.Paging{Limit: 90}}
				seen := map[string]int{}
				for n := 0; ; n++ {
					p := d.search(q)
					for _, i := range p.Items {
						seen[i.Draft.SKU]++
					}
					if p.Next == nil {
						break
					}
					q.After = *p.Next
					d.items("shop", protocol.ItemDraft{SKU: fmt.Sprint("n", len(seen), sort, n, len(handles)), Name: "New thing"})
				}
				for n := range all {
					require.Equal(t, 1, seen[all[n].SKU], "%q %s", sort, all[n].SKU)
				}
			}
		}
	})
}

// TestItems_Terms: the words of items are counted while they are on sale, and gone with the last item that has them.
func TestItems_Terms(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		d.put(protocol.ProfileDraft{Handle: "shop", Name: "Shop"})
		had := func(word string) string { return d.search(storage.ItemQuery{Q: word}).DidYouMean }
		d.items("shop", protocol.ItemDraft{SKU: "a", Name: "Turmeric"}, protocol.ItemDraft{SKU: "b", Name: "Turmeric", Description: "Saffron"})
		require.Equal(t, "turmeric", had("turmric"))
		require.Equal(t, "saffron", had("safran"))
		d.items("shop", protocol.ItemDraft{SKU: "b", Name: "Turmeric"})
		require.Empty(t, had("safran"))
		require.Equal(t, "turmeric", had("turmric"))
		must.Get(db.ImportItems(t.Context(), imported("shop", []protocol.ItemDraft{{SKU: "a", Name: "Turmeric"}, {SKU: "c", Name: "Cardamom"}}, nil)))(t)
		require.Equal(t, "cardamom", had("cardmom"))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Items().Remove(ctx, "shop", "a")) })
		require.Empty(t, had("turmric"))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "shop") })
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Zero(t, must.Get(storage.Count(ctx, tx, "item_term"))(t))
			return nil
		})
	})
}
