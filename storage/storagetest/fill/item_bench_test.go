package fill

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// catalogQueries are searches of every form: words that are frequent, rare and absent, one
// shop of many items, categories, prices.
func catalogQueries() map[string]storage.ItemQuery {
	minor := func(n int64) *int64 { return &n }
	large := []string{Handle(0)}
	return map[string]storage.ItemQuery{
		"newest":                  {},
		"frequent word":           {Q: Word(0)},
		"middling word":           {Q: Word(150)},
		"rare word":               {Q: Word(30_000)},
		"absent word":             {Q: "absentword"},
		"two words":               {Q: Word(2) + " " + Word(300)},
		"newest of two words":     {Q: Word(2) + " " + Word(300), Sort: protocol.SortNew},
		"frequent word, by price": {Q: Word(0), Sort: protocol.SortPrice},
		"rare word, dearest":      {Q: Word(9000), Sort: protocol.SortDearest},
		"typo, frequent word":     {Q: "indgo"},
		"typo of two, frequent":   {Q: "furnitrue " + Word(0)},
		"words of no item":        {Q: Word(30_000) + " " + Word(20_000) + " " + Word(0)},
		"long question":           {Q: "a " + Word(1) + " with " + Word(7) + " for " + Word(90) + " and " + Word(400) + " " + Word(3000)},
		"beginning of a word":     {Q: Word(5) + " " + Word(40)[:3]},
		"category":                {Categories: []string{"Furniture"}},
		"two categories, price":   {Categories: []string{"Toys", "Books"}, Currency: "INR", Min: minor(20_000), Max: minor(25_000)},
		"word, price":             {Q: Word(1), Currency: "INR", Min: minor(300_000), Max: minor(310_000)},
		"exact price":             {Currency: "INR", Min: minor(123_456), Max: minor(123_456)},
		"out of stock":            {Availabilities: []protocol.Availability{protocol.OutOfStock}, Q: Word(3)},
		"large shop":              {Handles: large},
		"large shop, word":        {Handles: large, Q: Word(0)},
		"large shop, rare word":   {Handles: large, Q: Word(9000)},
		"large shop, category":    {Handles: large, Categories: []string{"Hardware"}},
		"large shop, price":       {Handles: large, Currency: "INR", Min: minor(100_000), Max: minor(110_000)},
		"large shop, all but few": {Handles: large, Availabilities: []protocol.Availability{protocol.InStock}},
	}
}

// BenchmarkCatalog searches a node with STOA_BENCH_ITEMS items, a million by default, and
// reports the slowest of each form at the 95th percentile of its pages.
func BenchmarkCatalog(b *testing.B) {
	items := 1_000_000
	if n, err := strconv.Atoi(os.Getenv("STOA_BENCH_ITEMS")); err == nil {
		items = n
	}
	for _, c := range []storage.Config{{Path: filepath.Join(b.TempDir(), "stoa.db")}, {URL: os.Getenv(storagetest.PostgresEnv)}} {
		engine := "sqlite"
		if c.Path == "" {
			if engine = "postgres"; c.URL == "" {
				continue
			}
			c.URL = storagetest.PostgresURL(b)
		}
		b.Run(engine, func(b *testing.B) {
			db := must.Get(storage.Open(b.Context(), c))(b)
			defer db.Close()
			start := time.Now()
			require.NoError(b, Fill(b.Context(), db, Config{Base: base, Posts: 0, Profiles: max(20, items/500), Items: items, Seed: 1}))
			b.Logf("filled in %s", time.Since(start).Round(time.Second))
			if c.URL != "" {
				raw := must.Get(sql.Open("pgx", c.URL))(b)
				_, err := raw.ExecContext(b.Context(), `VACUUM ANALYZE item, item_word, item_term, merchant, profile`) // as it does by itself in time
				require.NoError(b, errors.Join(err, raw.Close()))
			}
			for name, q := range catalogQueries() {
				b.Run(name, func(b *testing.B) {
					var took []time.Duration
					found := 0
					for b.Loop() {
						q.After = ""
						for range 5 { // the first pages
							begin := time.Now()
							var page storage.ItemPage
							require.NoError(b, db.Read(b.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
								page, err = tx.Items().Search(ctx, q)
								return err
							}))
							took = append(took, time.Since(begin))
							if found += len(page.Items); page.Next == nil {
								break
							}
							q.After = *page.Next
						}
					}
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
					b.ReportMetric(float64(found)/float64(len(took)), "items/page")
				})
			}
		})
	}
}
