package storage_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
	"stoa/storage/storagetest/fill"

	"github.com/stretchr/testify/require"
)

// large are the tables that grow with a node. No listing may read one from end to
// end, or sort what it did not find by an index.
var large = regexp.MustCompile(`\b(?:Seq Scan on|SCAN) ` +
	`(post|post_tag|post_word|feed|log|profile|profile_rank|profile_word|merchant|merchant_place|item|item_word|item_price|thread|thread_message)\b`)

// byTime is the walk over posts in the order of their numbers that looks at each.
// On SQLite it calls itself a search; on PostgreSQL it filters what it finds.
var byTime = regexp.MustCompile(`SEARCH post USING INTEGER PRIMARY KEY \(rowid[<>]|using post_pkey on post\b`)

// walks is the step of a plan that reads a large table from end to end, "" without.
func walks(plan []string) string {
	for i, step := range plan {
		if large.MatchString(step) && !strings.Contains(step, "VIRTUAL TABLE INDEX") {
			return step
		}
		if !byTime.MatchString(step) {
			continue
		}
		if strings.HasPrefix(step, "SEARCH") {
			return step
		}
		for _, more := range plan[i+1:] {
			if strings.Contains(more, "->") {
				break
			}
			if strings.Contains(more, " Filter:") {
				return step + more
			}
		}
	}
	return ""
}

// TestPlans_Filled looks at the plans of lists as the engine makes them on a filled
// database, which is filled once for all of them: on PostgreSQL with the statistics of
// ANALYZE. A page costs there what one in memory does: for the default of a disk the scan of a few hundred
// merchants may be the better plan, by how full their pages happen to be.
func TestPlans_Filled(t *testing.T) {
	storagetest.SkipPooled(t) // it sets what a pooler refuses
	eachConfig(t, func(t *testing.T, c storage.Config) {
		if c.URL != "" {
			c.URL += "&random_page_cost=1.1"
		}
		db := storagetest.OpenConfig(t, c)
		size := fill.Config{Base: base, Posts: 6_000, Profiles: 1000, Threads: 3000, Items: 6000, Seed: 1}
		if c.URL == "" { // whose plans do not follow the sizes of tables
			size.Posts, size.Profiles, size.Threads, size.Items = size.Posts/2, size.Profiles/2, size.Threads/2, size.Items/2
		}
		require.NoError(t, fill.Fill(t.Context(), db, size))
		fillAccounts(t, db)
		words := "SCAN profile_word VIRTUAL TABLE INDEX"
		if c.URL != "" {
			words = "Bitmap Index Scan on profile_rank_words"
			fillOther(t, c.URL)
		}
		t.Run("lists", func(t *testing.T) { plansOfLists(t, db) })
		t.Run("private", func(t *testing.T) { plansPrivate(t, db) })
		t.Run("merchant words", func(t *testing.T) { plansOfMerchantWords(t, db, words) })
		t.Run("prices of items", func(t *testing.T) { plansOfPrices(t, db, c.URL != "") })
		t.Run("prices of shops", func(t *testing.T) { plansOfShopPrices(t, db) })
	})
}

// plansOfLists runs every listing with every combination of filters, first pages and
// later ones, and looks at the plan of each query for these arguments.
func plansOfLists(t *testing.T, db *storage.DB) {
	seen, asking := map[string]bool{}, ""
	storage.ExplainQueries(db, func(query string, plan []string, err error) {
		require.NoError(t, err, query)
		require.NotEmpty(t, plan)
		if why := walks(plan); why != "" {
			t.Errorf("%s: %s\n%s\n%s", asking, why, query, strings.Join(plan, "\n"))
		}
		seen[query] = true
	})
	askEverything(t, db, &asking)
	require.Greater(t, len(seen), 10)
}

// askEverything asks for two pages of each listing with each combination.
func askEverything(t *testing.T, db *storage.DB, asking *string) {
	ask := func(what any, list func(tx *storage.Tx, ctx context.Context, after string) (*string, error)) {
		*asking = fmt.Sprintf("%T %+v", what, what)
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			next, err := list(tx, ctx, "")
			if err == nil && next != nil {
				_, err = list(tx, ctx, *next)
			}
			return err
		})
	}
	for _, q := range boardQueries(t, db) {
		ask(q, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			q.After = after
			p, err := tx.Posts().List(ctx, q)
			return p.Next, err
		})
	}
	for _, q := range agentQueries() {
		ask(q, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			q.After = after
			p, err := tx.Profiles().List(ctx, q)
			return p.Next, err
		})
	}
	for _, text := range []string{"", fill.Word(0), fill.Word(9000)} {
		ask(protocol.PeopleQuery{Q: text}, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Profiles().ListPeople(ctx, protocol.PeopleQuery{Q: text, Paging: protocol.Paging{After: after}})
			return p.Next, err
		})
		for _, q := range []protocol.MerchantQuery{
			{}, {Category: fill.Categories[0]}, {City: fill.Cities[7]}, {OpenNow: true}, {PlaceFilter: protocol.PlaceFilter{Near: "12.97,77.6"}, AcceptsReturns: true},
			{PriceFilter: protocol.PriceFilter{MinPrice: "50", MaxPrice: "90"}}, {Category: fill.Categories[6], City: fill.Cities[0], OpenNow: true},
		} {
			q.Q = text
			ask(q, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
				q.After = after
				p, err := tx.Profiles().ListMerchants(ctx, q)
				return p.Next, err
			})
		}
	}
	for _, name := range []string{"lane 7", "lane", "Hyderabad"} {
		ask(name, func(tx *storage.Tx, ctx context.Context, _ string) (*string, error) {
			_, err := tx.FindPlaces(ctx, name)
			return nil, err
		})
	}
	minor := func(n int64) *int64 { return &n }
	for _, text := range []string{"", fill.Word(0), fill.Word(9000)} {
		for _, q := range []storage.ItemQuery{
			{}, {Categories: []string{fill.Categories[0], fill.Categories[3]}}, {Currency: "INR", Min: minor(5000), Max: minor(9000)},
			{Handles: []string{fill.Handle(0)}}, {Handles: []string{fill.Handle(0)}, Availabilities: []protocol.Availability{protocol.InStock}},
			{Handles: []string{fill.Handle(0), fill.Handle(1)}},
		} {
			q.Q, q.Limit = text, 2
			ask(q, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
				q.After = after
				p, err := tx.Items().Search(ctx, q)
				return p.Next, err
			})
		}
	}
	for _, types := range [][]protocol.FeedType{nil, {protocol.FeedBoardPost}, {protocol.FeedReview, protocol.FeedMerchantJoined}} {
		ask(types, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
			p, err := tx.Feed().List(ctx, types, false, 20, after)
			return p.Next, err
		})
	}
	root := busiest(t, db)
	ask(root, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
		p, err := tx.Posts().ListThread(ctx, root, 20, after)
		return p.Next, err
	})
	ask(root, func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
		p, err := tx.Posts().ListReplies(ctx, root, 20, after)
		return p.Next, err
	})
	ask(fill.Handle(0), func(tx *storage.Tx, ctx context.Context, after string) (*string, error) {
		p, err := tx.Posts().ListOwn(ctx, fill.Handle(0), 20, after)
		return p.Next, err
	})
}

// busiest is the root of a thread.
func busiest(t *testing.T, db *storage.DB) (root string) {
	read(t, db, func(ctx context.Context, tx *storage.Tx) error {
		p, err := tx.Posts().List(ctx, protocol.BoardQuery{Kind: protocol.Resolution, Paging: protocol.Paging{Limit: 100}})
		for _, post := range p.Items {
			if post.Root != nil {
				root = *post.Root
			}
		}
		return err
	})
	require.NotEmpty(t, root)
	return root
}

func boardQueries(t *testing.T, db *storage.DB) (all []protocol.BoardQuery) {
	root := busiest(t, db)
	for _, kind := range []protocol.PostKind{"", protocol.QuestionPost} {
		for _, tag := range []string{"", fill.Tag(0)} {
			for _, text := range []string{"", fill.Word(0), fill.Word(9000)} {
				for _, author := range []string{"", fill.Handle(0)} {
					for _, verified := range []bool{false, true} {
						for _, resolved := range []*bool{nil, ptr(true), ptr(false)} {
							for _, root := range []string{"", root} {
								all = append(all, protocol.BoardQuery{Kind: kind, Tag: tag, Q: text, Author: author, VerifiedOnly: verified, Resolved: resolved, Root: root})
							}
						}
					}
				}
			}
		}
	}
	return all
}

func agentQueries() (all []protocol.AgentQuery) {
	for _, text := range []string{"", fill.Word(0), fill.Word(9000), `"` + fill.Word(0) + " " + fill.Word(1) + `"`, fill.Word(0) + " -" + fill.Word(1)} {
		for _, kind := range []protocol.ProfileKind{"", protocol.Business} {
			for _, tag := range []string{"", fill.Tag(0)} {
				for _, region := range []string{"", "IN"} {
					for _, identity := range []*bool{nil, ptr(true)} {
						all = append(all, protocol.AgentQuery{Q: text, Kind: kind, Tag: tag, Region: region, HasIdentity: identity},
							protocol.AgentQuery{Q: text, Kind: kind, Tag: tag, Region: region, HasIdentity: identity, Capability: "scheduling"})
					}
				}
			}
		}
	}
	return all
}
