package catalog

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/storagetest"
)

// TestRows: what is written of any item is read as that item, and no cell of it is a formula.
func TestRows(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(storagetest.Seed(t), 3))
	pick := func(values ...string) string { return values[dice.IntN(len(values))] }
	text := func() string {
		return pick("Dosa", "=1+2", "'=x", "''+1", "@SUM(A1)", "-5% off", "＝cmd", `"quoted", too`, "a|b", "two\nlines",
			"'apostrophe", "मसाला डोसा", "{\"a\":1}", "₹5")
	}
	line := func() string { return strings.ReplaceAll(text(), "\n", " ") }
	maybe := func(s string) string { return pick("", "", s) }
	money := func(n int) *protocol.MoneyDraft {
		if dice.IntN(3) == 0 {
			return nil
		}
		return &protocol.MoneyDraft{Currency: "INR", Amount: protocol.Decimal(fmt.Sprintf("%d.50", n))}
	}
	unit := func() *protocol.UnitPriceDraft {
		if dice.IntN(3) > 0 {
			return nil
		}
		return &protocol.UnitPriceDraft{Measure: protocol.Measure{Value: 750, Unit: "ml"}, Reference: protocol.Measure{Value: 100, Unit: "ml"}}
	}
	availability := func() protocol.Availability { return protocol.Availability(maybe("out_of_stock")) }
	c := New(Catalog{})
	var all []protocol.ItemDraft
	for n := range 600 {
		d := protocol.ItemDraft{SKU: fmt.Sprint("s", n), Name: line(), Description: maybe(text()), Price: money(10), UnitPrice: unit(),
			Unit: maybe("plate"), Category: maybe(line()), Categories: []string{line(), line()}[:dice.IntN(3)],
			Tags: []string{"vegan", "hot"}[:dice.IntN(3)], Availability: availability(),
			URL: maybe("https://shop.example/" + pick("a", "b,c", "d|e"))}
		if d.Price != nil && dice.IntN(2) == 0 {
			d.ListPrice = &protocol.MoneyDraft{Currency: "INR", Amount: "99"}
		}
		for i := range dice.IntN(3) {
			link := fmt.Sprint("https://shop.example/", i, pick("", "|", ".png"))
			d.Media = append(d.Media, protocol.Media{URL: link, Type: pick("", "image", "video"), Alt: maybe(line())})
		}
		for o := range []int{0, 0, 1, 2, 5}[dice.IntN(5)] {
			d.Options = append(d.Options, protocol.ItemOption{Name: fmt.Sprint(line(), o), Values: []string{"S", "M", pick("L", "=L", "X|Y")}})
		}
		for range 3 {
			v := protocol.VariantDraft{SKU: maybe("v-" + fmt.Sprint(dice.IntN(9))), Price: money(20), UnitPrice: unit(),
				Availability: availability(), Barcode: maybe("-1234")}
			for _, o := range d.Options {
				v.Options = append(v.Options, pick(o.Values...))
			}
			if len(d.Options) > 0 {
				d.Variants = append(d.Variants, v)
			}
		}
		if len(d.Check()) == 0 {
			all = append(all, d.Normal())
		}
	}
	require.Greater(t, len(all), 200)
	f := must.Get(os.CreateTemp(t.TempDir(), ""))(t)
	defer f.Close()
	w, asJSON := csv.NewWriter(f), 0
	require.NoError(t, w.Write(columns))
	for _, d := range all {
		rows := must.Get(rowsOf(d))(t)
		if rows[0]["json"] != "" {
			asJSON++
		}
		for _, r := range rows {
			for _, cell := range r.cells() {
				require.NotRegexp(t, "^[=+@＝＋－＠\\t\\r-]", cell)
			}
			require.NoError(t, w.Write(r.cells()))
		}
	}
	w.Flush()
	require.Greater(t, asJSON, 50)
	require.Greater(t, len(all)-asJSON, 50, "in columns")
	read := must.Get(c.open(f))(t)
	n := 0
	require.NoError(t, read.each(func(at int, d protocol.ItemDraft, faults []protocol.Fault) bool {
		require.Empty(t, faults, "line %d: %+v", at, all[n])
		require.JSONEq(t, written(t, all[n]), written(t, d.Normal()))
		n++
		return true
	}))
	require.Len(t, all, n)
}

func written(t *testing.T, d protocol.ItemDraft) string {
	raw := must.Get(json.Marshal(d))(t)
	return string(raw)
}
