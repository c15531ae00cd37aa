package storage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// testdata/search has shops, people and posts, too, and questions for these. They are among others that answer none of them.

var (
	others = [4][]string{{"Anil", "Bela", "Chirag", "Divya", "Esha", "Farhan", "Gita", "Harish", "Indu", "Jaya"},
		{"Agarwal", "Bhat", "Chavan", "Dixit", "Fernandes", "Ghosh", "Hegde", "Jadhav", "Kulkarni", "Menon"},
		{"Weaver", "Beekeeper", "Journalist", "Welder", "Librarian", "Mason", "Potter's apprentice", "Surveyor", "Chess coach", "Dancer"},
		{"Agra", "Bhopal", "Cuttack", "Dehradun", "Erode"}}
	trades = []string{"Opticians", "Travels", "Handicrafts", "Cement", "Tyres", "Watches", "Umbrellas", "Honey", "Incense", "Batteries"}
)

// fillDirectory writes the profiles, and 250 others.
func fillDirectory(t testing.TB, db *storage.DB) {
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		for _, row := range dataLines(t, "profiles.txt", 9) {
			d := protocol.ProfileDraft{Handle: row[1], Kind: protocol.ProfileKind(row[0]), Name: row[2], Headline: row[3], Tags: tagsOf(row[6]), Description: row[7]}
			require.Empty(t, d.Check(), d.Handle)
			if _, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: d}); err != nil {
				return err
			}
			if d.Kind != protocol.Business {
				continue
			}
			m := protocol.MerchantDraft{Category: row[4], City: row[5]}
			for n, name := range someOf(row[8]) {
				m.Items = append(m.Items, protocol.ItemDraft{SKU: fmt.Sprint("i", n), Name: name})
			}
			if _, _, err := tx.Merchants().Put(ctx, d.Handle, m); err != nil {
				return err
			}
		}
		for n := range 250 {
			name, work, city := others[0][n%10]+" "+others[1][n/10%10], others[2][n*7%10], others[3][n%5]
			d := protocol.ProfileDraft{Handle: fmt.Sprint("other-", n), Kind: protocol.Person, Name: name, Headline: work, Description: work + " in " + city + "."}
			if n%5 < 2 {
				d.Kind, d.Name, d.Headline = protocol.Business, name+" "+trades[n*3%10], trades[n*3%10]+" of all kinds"
			}
			if _, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: d}); err != nil {
				return err
			}
		}
		return nil
	})
}

// fillBoard writes the posts among 200 others, and returns the keys by id.
func fillBoard(t testing.TB, db *storage.DB) map[string]string {
	keys, rows := map[string]string{}, dataLines(t, "posts.txt", 4)
	for n := range 200 {
		p := samplePost(start.Add(time.Duration(n)*time.Minute), int64(n))
		p.Tags, p.Title = nil, others[2][n%10]+" from "+others[3][n%5]
		p.Body = fmt.Sprintf("%s %s asks for news of the %s, day %d.", others[0][n%10], others[1][n/10%10], strings.ToLower(trades[n*3%10]), n)
		if n%6 == 0 && n/6 < len(rows) {
			row := rows[n/6]
			p.Title, p.Tags, p.Body = row[1], tagsOf(row[2]), row[3]
			keys[p.ID] = row[0]
		}
		store(t, db, p)
	}
	for n := 1; n > 0; {
		write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
			n, err = tx.Posts().CountFresh(ctx)
			return err
		})
	}
	require.Len(t, keys, len(rows))
	return keys
}

// askLists asks the questions of shops, people and posts, as ask does those of items.
func askLists(t testing.TB, db *storage.DB, missed func(q question, rank int, found []string)) *answers {
	fillDirectory(t, db)
	keys := fillBoard(t, db)
	all := &answers{kinds: map[string]*score{}, missed: missed}
	for _, row := range dataLines(t, "asked.txt", 4) {
		list, blind := strings.CutPrefix(row[0], "*")
		q, at := question{list + " " + row[1], row[2], strings.Fields(row[3]), blind}, protocol.Paging{Limit: 10}
		var found []string
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			if list == "posts" {
				page, err := tx.Posts().List(ctx, protocol.BoardQuery{Q: q.q, Paging: at})
				for _, p := range page.Items {
					found = append(found, keys[p.ID])
				}
				return err
			}
			page, err := tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{Q: q.q, Paging: at})
			if list == "people" {
				page, err = tx.Profiles().ListPeople(ctx, protocol.PeopleQuery{Q: q.q, Paging: at})
			}
			for _, p := range page.Items {
				found = append(found, p.Draft.Handle)
			}
			return err
		})
		all.add(q, found, list, row[1])
	}
	return all
}

// BenchmarkAsked reports what BenchmarkQuestions does, for shops, people and posts.
func BenchmarkAsked(b *testing.B) {
	onEngines(b, func(b *testing.B, db *storage.DB) { askLists(b, db, func(question, int, []string) {}).report(b) })
}

// TestLists_Questions: what the questions must find.
func TestLists_Questions(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		all := askLists(t, db, func(q question, rank int, found []string) {
			t.Logf("%s: %q has rank %d after %v", q.kind, q.q, rank, found)
		})
		require.GreaterOrEqual(t, all.seen.asked+all.unseen.asked, 80)
		require.GreaterOrEqual(t, 3*all.unseen.asked, all.seen.asked)
		require.GreaterOrEqual(t, all.seen.hit(), 90.0)
		require.GreaterOrEqual(t, all.unseen.hit(), 85.0)
		for kind, s := range all.kinds {
			require.GreaterOrEqual(t, s.hit(), 75.0, kind)
		}
	})
}

// TestTerms_Fresh: a post is found beside a misspelled word before anybody has counted its words, and what is misspelled after.
func TestTerms_Fresh(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		p := samplePost(start, 1)
		p.Title, p.Body = "Marbled paper", "For the endpapers of books."
		store(t, db, p)
		asked := func(q string) (got protocol.List[protocol.Post]) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				got, err = tx.Posts().List(ctx, protocol.BoardQuery{Q: q})
				return err
			})
			return got
		}
		got := asked("papr marbled")
		require.Len(t, got.Items, 1)
		require.True(t, got.Partly)
		require.Equal(t, []string{"papr"}, got.Without)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			fresh, err := tx.Posts().Fresh(ctx)
			require.True(t, fresh)
			require.NoError(t, err)
			return must.Err(tx.Posts().CountFresh(ctx))
		})
		got = asked("papr marbled")
		require.Len(t, got.Items, 1)
		require.Equal(t, "paper marbled", got.DidYouMean)
		require.False(t, got.Partly)
	})
}

// TestTerms_Leave: the words of a profile and of a post are counted while others see them, however often they change.
func TestTerms_Leave(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		counted := func() (n [3]int) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				for i, table := range []string{"profile_term", "profile_said", "post_term"} {
					if n[i], err = storage.Count(ctx, tx, table); err != nil {
						return err
					}
				}
				return nil
			})
			return n
		}
		d := directory{t, db}
		d.put(protocol.ProfileDraft{Handle: "asha", Name: "Asha Verma", Headline: "Weaves cotton"})
		d.put(protocol.ProfileDraft{Handle: "asha", Name: "Asha Verma", Headline: "Dyes cotton"})
		require.Equal(t, [3]int{4, 1, 0}, counted())
		p := samplePost(start, 0)
		p.Title, p.Body, p.Tags = "Cotton", "Bales of cotton", nil
		store(t, db, p)
		require.Zero(t, counted()[2])
		count := func() {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Posts().CountFresh(ctx)) })
		}
		count()
		require.Equal(t, 2, counted()[2])
		setState(t, db, p.ID, protocol.Hidden)
		require.Zero(t, counted()[2])
		setState(t, db, p.ID, protocol.Visible)
		setState(t, db, p.ID, protocol.Hidden)
		count()
		require.Zero(t, counted()[2], "hidden before it was counted")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "asha") })
		require.Equal(t, [3]int{}, counted())
	})
}

// TestListMerchants_Near: the nearest first, in pages, with words too.
func TestListMerchants_Near(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		var want []string
		for n, metres := range []float64{40_000, 90, 700, 3_000, 12_000} {
			handle := fmt.Sprint("shop-", n)
			d.put(protocol.ProfileDraft{Handle: handle, Name: "Tea", Kind: protocol.Business})
			d.merchant(handle, protocol.MerchantDraft{City: "Bengaluru", Geo: &protocol.Geo{Latitude: 12.97 + metres/111_000, Longitude: 77.6}})
		}
		for _, n := range []int{1, 2, 3, 4} {
			want = append(want, fmt.Sprint("shop-", n))
		}
		for _, q := range []string{"", "tee"} {
			var got []string
			for at := (protocol.Paging{Limit: 2}); ; {
				var p storage.AgentPage
				read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
					p, err = tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{Q: q, Sort: protocol.SortNear, Paging: at,
						PlaceFilter: protocol.PlaceFilter{Near: "12.97,77.6", Radius: 20_000}})
					return err
				})
				for _, i := range p.Items {
					got = append(got, i.Draft.Handle)
				}
				if p.Next == nil {
					break
				}
				at.After = *p.Next
			}
			if q == "tee" {
				require.Empty(t, got, "three letters are too short for a typo")
				continue
			}
			require.Equal(t, want, got)
		}
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			p, err := tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{Q: "teas", Sort: protocol.SortNear,
				PlaceFilter: protocol.PlaceFilter{Near: "12.97,77.6", Radius: 1000}})
			require.Len(t, p.Items, 2)
			return err
		})
	})
}
