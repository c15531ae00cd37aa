package storage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// imported makes an import of drafts; at is called before each draft, when it is not nil.
func imported(handle string, drafts []protocol.ItemDraft, at func(n int) error) storage.ItemImport {
	im := storage.ItemImport{Handle: handle, Whole: true}
	for _, d := range drafts {
		im.SKUs = append(im.SKUs, d.SKU)
	}
	im.Drafts = func(yield func(protocol.ItemDraft, error) bool) {
		for n, d := range drafts {
			var err error
			if at != nil {
				err = at(n)
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
	return im
}

// counts are what an import says it did.
func counts(c *storage.ItemChanges) [4]int { return [4]int{c.Added, c.Changed, c.Unchanged, c.Removed} }

// TestImportItems: at every moment of an import readers see the whole old catalog, and then
// the whole new one, on PostgreSQL those of another process; an import that fails leaves nothing.
func TestImportItems(t *testing.T) {
	eachConfig(t, func(t *testing.T, config storage.Config) {
		db := storagetest.OpenConfig(t, config)
		other := db
		if config.URL != "" {
			other = storagetest.OpenConfig(t, config)
		}
		d := directory{t, other}
		d.put(protocol.ProfileDraft{Handle: "shop", Name: "Shop"})
		things := func(from, to int, price string) (all []protocol.ItemDraft) {
			for n := from; n < to; n++ {
				all = append(all, protocol.ItemDraft{SKU: fmt.Sprint("s", n), Name: fmt.Sprint("Thing of ", price), Price: rupees(price)})
			}
			return all
		}
		onSale := func(q string) []string { return d.onSale(storage.ItemQuery{Handles: []string{"shop"}, Q: q}, 100) }
		names := func(drafts []protocol.ItemDraft) (all []string) {
			for _, d := range drafts {
				all = append(all, "shop/"+d.SKU)
			}
			return all
		}
		first := things(0, 450, "10")
		c, err := db.ImportItems(t.Context(), imported("shop", first, func(n int) error {
			if n%200 == 199 {
				require.Empty(t, onSale(""))
				require.Empty(t, d.onSale(storage.ItemQuery{Q: "thing"}, 100))
			}
			return nil
		}))
		require.NoError(t, err)
		require.Equal(t, [4]int{450, 0, 0, 0}, counts(c))
		require.Equal(t, names(first), onSale(""))
		require.Len(t, onSale("thing 10"), 450)
		require.NoError(t, db.Check(t.Context()))

		// The next one changes, removes, adds and moves.
		second := slices.Concat(things(400, 420, "20"), things(0, 300, "10"), things(900, 1000, "5"))
		var ids map[string]string
		look := func() map[string]string {
			ids := map[string]string{}
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				for _, sku := range []string{"s0", "s299", "s405"} {
					i := must.Get(tx.Items().BySKU(ctx, "shop", sku))(t)
					ids[sku] = i.ID
				}
				return nil
			})
			return ids
		}
		ids = look()
		dry := imported("shop", second, nil)
		dry.DryRun = true
		c = must.Get(db.ImportItems(t.Context(), dry))(t)
		require.Equal(t, [4]int{100, 20, 300, 130}, counts(c))
		refuse := errors.New("the line of somebody else")
		for _, fails := range []bool{true, false} {
			c, err = db.ImportItems(t.Context(), imported("shop", second, func(n int) error {
				if n%150 == 149 {
					require.Equal(t, names(first), onSale(""))
					require.Len(t, onSale("thing 10"), 450)
					require.Len(t, onSale("20"), 0)
					require.ErrorIs(t, other.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
						return must.Err(tx.Items().Put(ctx, "shop", second[0]))
					}), storage.ErrImporting, "another change waits")
				}
				if fails && n == 410 {
					return refuse
				}
				return nil
			}))
			if fails {
				require.ErrorIs(t, err, refuse)
				require.Equal(t, names(first), onSale(""))
			}
		}
		require.NoError(t, err)
		require.Equal(t, [4]int{100, 20, 300, 130}, counts(c))
		require.Equal(t, names(second), onSale(""), "in the order of the file")
		require.Len(t, onSale("thing 10"), 300)
		require.Len(t, onSale("thing 20"), 20)
		require.Equal(t, ids, look(), "an item keeps its id")
		require.NoError(t, db.Check(t.Context()))

		// Nothing to do, then a merge, then the removed ones with their ids.
		c = must.Get(db.ImportItems(t.Context(), imported("shop", second, nil)))(t)
		require.Equal(t, [4]int{0, 0, 420, 0}, counts(c))
		merge := imported("shop", things(299, 301, "7"), nil)
		merge.Whole = false
		c = must.Get(db.ImportItems(t.Context(), merge))(t)
		require.Equal(t, [4]int{1, 1, 0, 0}, counts(c))
		require.Len(t, onSale(""), 421)
		must.Get(db.ImportItems(t.Context(), imported("shop", first, nil)))(t)
		require.Equal(t, ids, look())
		require.Equal(t, names(first), onSale(""))
		require.Len(t, onSale("thing 10"), 450)
		require.NoError(t, db.Check(t.Context()))
	})
}

// TestImportItems_AnyOrder: catalogs in any order, with single changes in between, are
// listed in the order of the last import.
func TestImportItems_AnyOrder(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		d.put(protocol.ProfileDraft{Handle: "shop", Name: "Shop"})
		r := rand.New(rand.NewPCG(1, 2))
		for range 12 {
			var drafts []protocol.ItemDraft
			var want []string
			for _, n := range r.Perm(40)[:5+r.IntN(30)] {
				drafts = append(drafts, protocol.ItemDraft{SKU: fmt.Sprint("s", n), Name: "Thing", Price: rupees(fmt.Sprint(1 + r.IntN(2)))})
				want = append(want, fmt.Sprint("shop/s", n))
			}
			must.Get(db.ImportItems(t.Context(), imported("shop", drafts, nil)))(t)
			require.Equal(t, want, d.onSale(storage.ItemQuery{Handles: []string{"shop"}}, 7))
			require.Len(t, d.onSale(storage.ItemQuery{Q: "thing"}, 7), len(want))
			d.items("shop", protocol.ItemDraft{SKU: fmt.Sprint("s", r.IntN(40)), Name: "Other"})
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(tx.Items().Remove(ctx, "shop", fmt.Sprint("s", r.IntN(40))))
			})
			require.NoError(t, db.Check(t.Context()))
		}
	})
}
