package storage_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// testdata/search has items as shops sell them and questions as people ask them. The items of a line are
// one for each maker and size; a second grocer writes the same goods otherwise, and clothes come in colours.

// A question is a search with the patterns of the keys that answer it.
type question struct {
	kind, q string
	wanted  []string
	unseen  bool // was not looked at while the search was made
}

func dataLines(t testing.TB, name string, columns int) (all [][]string) {
	t.Helper()
	raw := must.Get(os.ReadFile("testdata/search/" + name))(t)
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		row := strings.Split(line, "|")
		require.Len(t, row, columns, line)
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		all = append(all, row)
	}
	return all
}

func questions(t testing.TB) (all []question) {
	for _, row := range dataLines(t, "questions.txt", 3) {
		kind, unseen := strings.CutPrefix(row[0], "*")
		all = append(all, question{kind, row[1], strings.Fields(row[2]), unseen})
	}
	return all
}

// someOf are the values of a cell; one empty one for "-".
func someOf(cell string) []string {
	if cell == "-" {
		return []string{""}
	}
	all := strings.Split(cell, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

var colours = []string{"Black", "Navy Blue", "Maroon"}

// A ware is an item of the questions with its key.
type ware struct {
	key, shop string
	draft     protocol.ItemDraft
}

func wares(t testing.TB) (all []ware) {
	for _, row := range dataLines(t, "items.txt", 8) {
		key, name, category, price := row[0], row[1], row[2], row[3]
		for _, maker := range someOf(row[4]) {
			for _, size := range someOf(row[5]) {
				id := key + keyPart(maker) + keyPart(size)
				d := protocol.ItemDraft{Category: category, Price: rupees(price), Tags: tagsOf(row[6]), Description: row[7]}
				add := func(shop, id string, words ...string) {
					d.Name, d.SKU = strings.Join(strings.Fields(strings.Join(words, " ")), " "), fmt.Sprintf("%d", 1000+len(all))
					all = append(all, ware{id, shop, d})
				}
				switch category {
				case "Clothing", "Footwear":
					for _, colour := range colours {
						add("clothes", id+keyPart(colour), maker, name, colour, size)
					}
				case "Grocery", "Spices", "Packaged food", "Household", "Personal care", "Beverages", "Dairy", "Snacks":
					add("grocer", id, maker, name, size)
					if size != "" {
						add("mart", id+".mart", maker, name, "("+strings.ReplaceAll(size, " ", "")+")")
					}
				default:
					add("bazaar", id, maker, name, size)
				}
			}
		}
	}
	return all
}

func tagsOf(cell string) (tags []string) {
	for _, tag := range someOf(cell) {
		if tag = strings.ReplaceAll(strings.ToLower(tag), " ", "-"); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

func keyPart(s string) string {
	if s == "" {
		return ""
	}
	if s[0] >= '0' && s[0] <= '9' {
		return "." + strings.ReplaceAll(s, " ", "")
	}
	return "." + strings.ReplaceAll(strings.ToLower(s), " ", "-")
}

// fillWares puts the items of the questions into a database, in an order that has nothing to do with
// the questions, and returns the keys by SKU.
func fillWares(t testing.TB, db *storage.DB) map[string]string {
	keys, shops := map[string]string{}, map[string][]protocol.ItemDraft{}
	for _, w := range wares(t) {
		require.Empty(t, w.draft.Check(), w.draft.Name)
		keys[w.draft.SKU] = w.key
		shops[w.shop] = append(shops[w.shop], w.draft)
	}
	require.Greater(t, len(keys), 3000)
	for _, shop := range []string{"bazaar", "grocer", "clothes", "mart"} {
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: shop, Name: shop, Kind: protocol.Business}}))
		}))
		must.Get(db.ImportItems(t.Context(), imported(shop, shops[shop], nil)))(t)
	}
	return keys
}

// A tally counts answers of one kind: those with a wanted item among the first three, and the sum of
// 1/rank of the first wanted one of ten.
type score struct {
	asked, hits int
	reciprocal  float64
}

func (s *score) add(rank int) {
	s.asked++
	if rank > 0 {
		s.reciprocal += 1 / float64(rank)
	}
	if rank > 0 && rank <= 3 {
		s.hits++
	}
}

func (s *score) hit() float64 { return 100 * float64(s.hits) / float64(s.asked) }

// answers are the scores of questions: by kind, and of those that were seen before the code and not.
type answers struct {
	kinds        map[string]*score
	seen, unseen score
	missed       func(q question, rank int, found []string) // is called for those without a wanted one among the first three
}

// add counts what a question of some kinds found.
func (a *answers) add(q question, found []string, kinds ...string) {
	rank := 1 + slices.IndexFunc(found, func(key string) bool {
		return slices.ContainsFunc(q.wanted, func(pattern string) bool { ok, _ := path.Match(pattern, key); return ok })
	})
	for _, kind := range kinds {
		if a.kinds[kind] == nil {
			a.kinds[kind] = &score{}
		}
		a.kinds[kind].add(rank)
	}
	if q.unseen {
		a.unseen.add(rank)
	} else {
		a.seen.add(rank)
	}
	if rank == 0 || rank > 3 {
		a.missed(q, rank, found[:min(3, len(found))])
	}
}

// ask asks all questions of items.
func ask(t testing.TB, db *storage.DB, missed func(q question, rank int, found []string)) *answers {
	keys := fillWares(t, db)
	all := &answers{kinds: map[string]*score{}, missed: missed}
	for _, q := range questions(t) {
		var found []string
		require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			page, err := tx.Items().Search(ctx, storage.ItemQuery{Q: q.q, Paging: protocol.Paging{Limit: 10}})
			for _, i := range page.Items {
				found = append(found, keys[i.Draft.SKU])
			}
			return err
		}))
		all.add(q, found, q.kind)
	}
	return all
}

// BenchmarkQuestions asks the questions and reports, by kind, how many of a hundred have a wanted item among
// the first three (hit@3), and the mean reciprocal rank among the first ten (mrr).
func BenchmarkQuestions(b *testing.B) {
	onEngines(b, func(b *testing.B, db *storage.DB) { ask(b, db, func(question, int, []string) {}).report(b) })
}

// report reports figures, which are no times.
func (a *answers) report(b *testing.B) {
	for b.Loop() {
	}
	all := a.seen
	all.asked, all.hits, all.reciprocal = all.asked+a.unseen.asked, all.hits+a.unseen.hits, all.reciprocal+a.unseen.reciprocal
	a.kinds["all"], a.kinds["unseen"] = &all, &a.unseen
	for kind, s := range a.kinds {
		b.ReportMetric(s.hit(), kind+"-hit@3")
		b.ReportMetric(s.reciprocal/float64(s.asked), kind+"-mrr")
	}
}

// onEngines runs a benchmark on SQLite, and on PostgreSQL where there is one.
func onEngines(b *testing.B, run func(b *testing.B, db *storage.DB)) {
	b.Run("sqlite", func(b *testing.B) { run(b, storagetest.Open(b)) })
	b.Run("postgres", func(b *testing.B) {
		db := must.Get(storage.Open(b.Context(), storage.Config{URL: storagetest.PostgresURL(b)}))(b)
		defer db.Close()
		run(b, db)
	})
}

// TestItems_Questions: what the questions must find.
func TestItems_Questions(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		all := ask(t, db, func(q question, rank int, found []string) {
			t.Logf("%s: %q has rank %d after %v", q.kind, q.q, rank, found)
		})
		require.Len(t, all.kinds, 8)
		require.GreaterOrEqual(t, all.seen.asked+all.unseen.asked, 150)
		require.GreaterOrEqual(t, 3*all.unseen.asked, all.seen.asked+all.unseen.asked)
		require.GreaterOrEqual(t, all.seen.hit(), 90.0)
		require.GreaterOrEqual(t, all.unseen.hit(), 90.0)
		for kind, s := range all.kinds {
			require.GreaterOrEqual(t, s.asked, 15, kind)
			require.GreaterOrEqual(t, s.hit(), 75.0, kind)
		}
	})
}
