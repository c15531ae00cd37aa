package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

// directory makes small directories in tests.
type directory struct {
	t  *testing.T
	db *storage.DB
}

func (d directory) put(p protocol.ProfileDraft) {
	d.t.Helper()
	if p.Name == "" {
		p.Name = "N"
	}
	if p.Kind == "" {
		p.Kind = protocol.Business
	}
	write(d.t, d.db, func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: p}))
	})
}

func (d directory) merchant(handle string, m protocol.MerchantDraft) (stored *storage.StoredMerchant) {
	d.t.Helper()
	require.Empty(d.t, m.Check())
	write(d.t, d.db, func(ctx context.Context, tx *storage.Tx) (err error) {
		stored, _, err = tx.Merchants().Put(ctx, handle, m)
		return err
	})
	return stored
}

func (d directory) alive(handle string, l protocol.Liveness) {
	d.t.Helper()
	write(d.t, d.db, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Profiles().SetLiveness(ctx, handle, l, time.Time{})
	})
}

// page reads one page; next is "" on the last.
func (d directory) page(q protocol.AgentQuery) (handles []string, next string, err error) {
	err = d.db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
		p, err := tx.Profiles().List(ctx, q)
		for _, i := range p.Items {
			handles = append(handles, i.Draft.Handle)
		}
		if p.Next != nil {
			next = *p.Next
		}
		return err
	})
	return handles, next, err
}

// walk reads a whole list, page by page.
func (d directory) walk(q protocol.AgentQuery) (handles []string) {
	d.t.Helper()
	for {
		some, next, err := d.page(q)
		require.NoError(d.t, err)
		handles = append(handles, some...)
		if next == "" {
			return handles
		}
		q.After = next
	}
}

func (d directory) find(q string) []string {
	d.t.Helper()
	return d.walk(protocol.AgentQuery{Q: q, Paging: protocol.Paging{Limit: 2}})
}

func TestListProfiles_Operators(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		d.put(protocol.ProfileDraft{Handle: "a1", Name: "Hand Made Paper", Kind: protocol.Person, Tags: []string{"paper", "craft"}})
		d.put(protocol.ProfileDraft{Handle: "b2", Headline: "Made by hand: paper", Tags: []string{"paper"}})
		d.put(protocol.ProfileDraft{Handle: "c3", Description: "हिन्दी में काग़ज़ घर", Needs: []protocol.Need{{ID: "n", Description: "hand made. Paper bags"}}})
		d.put(protocol.ProfileDraft{Handle: "d4", Description: "made paper hand, hand paper, paper hand made", Kind: protocol.Person})
		d.put(protocol.ProfileDraft{Handle: "e5", Headline: "hand", Description: "made"})
		for _, tt := range []struct {
			q    string
			want []string // in any order
		}{
			{"hand made", []string{"a1", "b2", "c3", "d4", "e5"}}, {`"hand made"`, []string{"a1", "c3", "d4"}}, {`"made hand"`, nil},
			{`"HAND-made"`, []string{"a1", "c3", "d4"}},
			{`"hand made paper"`, []string{"a1", "c3"}}, {`"made paper hand"`, []string{"d4"}}, {`"paper hand made"`, []string{"d4"}},
			{`"hand made paper bags"`, []string{"c3"}}, {`"made paper bags hand"`, nil},
			{`"made by hand"`, []string{"b2"}}, {`"hand"`, []string{"a1", "b2", "c3", "d4", "e5"}},
			{"hand -paper", []string{"e5"}}, {"-paper", []string{"e5"}}, {`hand -"hand made"`, []string{"b2", "e5"}}, {`-"hand made" -made`, nil},
			{"-hand-made", []string{"b2", "e5"}},
			{`-"hand made paper"`, []string{"b2", "d4", "e5"}}, {"-hand-made-paper", []string{"b2", "d4", "e5"}},
			{`hand -"hand made paper" -"made by hand"`, []string{"d4", "e5"}}, {`"hand made paper" -"made paper bags"`, []string{"a1"}},
			{`"hand made" -"hand made paper"`, []string{"d4"}}, {`-"no such words"`, []string{"a1", "b2", "c3", "d4", "e5"}},
			{hans(200), nil}, {`"` + hans(198) + `"`, nil}, {"-" + hans(199), []string{"a1", "b2", "c3", "d4", "e5"}}, {strings.Repeat("﷽", 200), nil},
			{`"` + strings.Repeat("﷽", 198) + `"`, nil},
			{"tag:paper", []string{"a1", "b2"}}, {"tag:PAPER -tag:craft", []string{"b2"}}, {"-tag:paper", []string{"c3", "d4", "e5"}},
			{"tag:paper tag:craft", []string{"a1"}},
			{"kind:person", []string{"a1", "d4"}}, {"kind:business hand", []string{"b2", "c3", "e5"}}, {"-kind:business", []string{"a1", "d4"}},
			{"kind:person kind:business", nil},
			{"काग़ज़", []string{"a1", "b2", "c3", "d4"}}, {`"में काग़ज़"`, []string{"c3"}}, {`"काग़ज़ में"`, nil},
			{"काग", nil}, {"कागज", []string{"a1", "b2", "c3", "d4"}},
			{`"हिंदी में कागज"`, []string{"c3"}}, {"-कागज -paper", []string{"e5"}}, {"hand -काग़ज़ -paper", []string{"e5"}}, {"हिन्\u200dदी", []string{"c3"}},
			{"schedule", nil}, {"?!", nil}, {"paper ?!", []string{"a1", "b2", "c3", "d4"}}, {`"?!"`, nil},
		} {
			require.ElementsMatch(t, tt.want, d.find(tt.q), "%q", tt.q)
		}
		for _, q := range []string{`"open`, `""`, "-", "kind:robot", "tag:"} {
			_, _, err := d.page(protocol.AgentQuery{Q: q})
			require.Equal(t, protocol.Validation, protocol.CodeOf(err), "%q", q)
			require.Equal(t, "/q", protocol.AsError(err).Faults[0].Pointer)
		}
	})
}

// The text's class first, then liveness, then the last change.
func TestListProfiles_Order(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		now := start
		c.Now = func() time.Time { now = now.Add(time.Second); return now }
		db := storagetest.OpenConfig(t, c)
		d := directory{t, db}
		d.put(protocol.ProfileDraft{Handle: "in-name", Name: "Indigo Dyes"})
		d.put(protocol.ProfileDraft{Handle: "indigo-dyes"})
		d.put(protocol.ProfileDraft{Handle: "in-head", Headline: "dyes with indigo"})
		d.put(protocol.ProfileDraft{Handle: "in-caps", Capabilities: []protocol.Capability{{ID: "dyes", Name: "Dyes", Description: "Indigo"}}})
		d.put(protocol.ProfileDraft{Handle: "in-both", Name: "Indigo", Headline: "dyes"})
		d.put(protocol.ProfileDraft{Handle: "in-text", Description: "indigo dyes"})
		d.put(protocol.ProfileDraft{Handle: "in-need", Needs: []protocol.Need{{ID: "n", Description: "indigo dyes"}}})
		d.put(protocol.ProfileDraft{Handle: "in-none", Description: "indigo"})
		require.Equal(t, []string{"in-name", "indigo-dyes", "in-both", "in-caps", "in-head", "in-need", "in-text"}, d.find("indigo dyes"))
		d.alive("in-name", protocol.LivenessAlive)
		d.alive("indigo-dyes", protocol.LivenessDead)
		d.alive("in-text", protocol.LivenessAlive)
		d.alive("in-both", protocol.LivenessDead)
		require.Equal(t, []string{"in-name", "indigo-dyes", "in-both", "in-caps", "in-head", "in-text", "in-need"}, d.find("indigo dyes"))
		d.put(protocol.ProfileDraft{Handle: "in-head", Headline: "dyes with indigo"})
		require.Equal(t, []string{"in-name", "indigo-dyes", "in-both", "in-head", "in-caps", "in-text", "in-need"}, d.find("indigo dyes"))
		d.merchant("in-caps", protocol.MerchantDraft{})
		require.Equal(t, []string{"in-name", "indigo-dyes", "in-both", "in-caps", "in-head", "in-text", "in-need"}, d.find("indigo dyes"), "a record is a change too")
		require.Equal(t, []string{"in-text", "in-name", "in-caps", "in-head", "in-none", "in-need", "in-both", "indigo-dyes"}, d.find(""))
		d.alive("in-name", protocol.LivenessDead)
		d.alive("in-name", protocol.LivenessAlive)
		require.Equal(t, []string{"in-name", "indigo-dyes"}, d.find("indigo dyes")[:2], "back to where it was")
		require.NoError(t, db.Check(t.Context()))
	})
}

// A walk shows what was listed when it began, once each and, unless it is by relevance, in that order,
// however ranks, words and listings change under it.
func TestListProfiles_WalkWhileChanging(t *testing.T) {
	t.Parallel()
	const profiles, writers = 60, 4
	seed, rounds := storagetest.Seed(t), storagetest.Rounds(t, 12)
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		d := directory{t, db}
		handle := func(n int) string { return fmt.Sprintf("p%d-x", n) }
		for n := range profiles {
			d.put(protocol.ProfileDraft{Handle: handle(n), Description: "indigo", Tags: []string{"keep"}})
		}
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), seed))
				for ctx.Err() == nil {
					err := db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
						h := handle(r.IntN(profiles))
						switch r.IntN(4) {
						case 0:
							return tx.Profiles().SetLiveness(ctx, h, []protocol.Liveness{protocol.LivenessAlive, protocol.LivenessDead, protocol.LivenessUnknown}[r.IntN(3)], tx.Now)
						case 1: // out of the class, the words and the filter
							return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: h, Name: "Else", Kind: protocol.Business}}))
						case 2:
							return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: h, Name: "Indigo", Kind: protocol.Person,
								Description: "indigo", Tags: []string{"keep"}}}))
						}
						return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: fmt.Sprintf("new-%d-%d", w, r.IntN(1000)),
							Name: "Indigo", Kind: protocol.Business, Description: "indigo", Tags: []string{"keep"}}}))
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for round := range rounds {
			for _, q := range []protocol.AgentQuery{{}, {Q: "indigo"}, {Tag: "keep"}, {Q: "indigo -else", Tag: "keep"}} {
				// A first page of one carries its moment. From there the list is
				// read twice, in large steps and in small ones.
				q.Limit = 1
				first, after, err := d.page(q)
				require.NoError(t, err)
				seen := slices.Clone(first)
				if after == "" {
					continue
				}
				q.Limit, q.After = 100, after
				rest, more, err := d.page(q)
				require.NoError(t, err)
				want := append(slices.Clone(first), rest...)
				for more != "" {
					q.After = more
					rest, more, err = d.page(q)
					require.NoError(t, err)
					want = append(want, rest...)
				}
				q.Limit, q.After = 7, after
				for q.After != "" {
					some, next, err := d.page(q)
					require.NoError(t, err)
					seen = append(seen, some...)
					q.After = next
				}
				if q.Q == "" {
					require.Equal(t, want, seen, "round %d %+v", round, q)
				}
				require.ElementsMatch(t, want, seen, "round %d %+v", round, q)
				require.Len(t, seen, len(unique(seen)), "none twice")
			}
		}
		stop()
		group.Wait()
	})
}

func unique(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return slices.Compact(s)
}

// What leaves the lists leaves walks under way; a walk older than the versions
// that are kept is refused, as is one of another future.
func TestListProfiles_Cursor(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		now := start
		c.Now = func() time.Time { now = now.Add(time.Second); return now }
		db := storagetest.OpenConfig(t, c)
		d := directory{t, db}
		for _, h := range []string{"e5", "d4", "c3", "b2", "a1"} {
			d.put(protocol.ProfileDraft{Handle: h, Headline: "indigo"})
		}
		one := protocol.Paging{Limit: 1}
		got, next, err := d.page(protocol.AgentQuery{Q: "indigo", Paging: one})
		require.NoError(t, err)
		require.Equal(t, []string{"a1"}, got)
		list := func(listed bool) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				p := must.Get(tx.Profiles().ForUpdate(ctx, "b2"))(t)
				p.Unlisted = !listed
				return must.Err(tx.Profiles().Put(ctx, p))
			})
		}
		list(false)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "c3") })
		d.put(protocol.ProfileDraft{Handle: "e5", Headline: "woad"})
		require.Equal(t, []string{"d4", "e5"}, d.walk(protocol.AgentQuery{Q: "indigo", Paging: protocol.Paging{Limit: 1, After: next}}),
			"as it was, without what is gone")
		require.Equal(t, []string{"a1", "d4"}, d.walk(protocol.AgentQuery{Q: "indigo"}))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.True(t, must.Get(tx.Profiles().ByHandle(ctx, "b2"))(t).Unlisted)
			return nil
		})
		list(true)
		require.Equal(t, []string{"b2", "a1", "d4"}, d.walk(protocol.AgentQuery{Q: "indigo"}))

		prune := func(before time.Time) int {
			return writes(t, db, func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Profiles().PruneRanks(ctx, before) })
		}
		require.Zero(t, prune(start))
		require.Equal(t, 3, prune(now.Add(time.Hour)))
		require.Zero(t, prune(now.Add(time.Hour)))
		require.Equal(t, []string{"b2", "a1", "d4"}, d.walk(protocol.AgentQuery{Q: "indigo", Paging: one}))
		for _, after := range []string{
			next, *protocol.Cursor("agents", "999.0.5"), *protocol.Cursor("agents", "9.3.5"), *protocol.Cursor("agents", "9.0.-5"),
			*protocol.Cursor("agents", "9.0"), *protocol.Cursor("agents", " 9.0.1"), *protocol.Cursor("people", "9.0.5"),
		} {
			_, _, err = d.page(protocol.AgentQuery{Q: "indigo", Paging: protocol.Paging{After: after}})
			require.Equal(t, protocol.InvalidCursor, protocol.CodeOf(err), after)
		}
		require.NoError(t, db.Check(t.Context()))
	})
}

func TestListMerchants(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		now := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC) // 11:30 in India, 07:00 in Berlin
		c.Now = func() time.Time { return now }
		db := storagetest.OpenConfig(t, c)
		d := directory{t, db}
		daily := func(opens, closes string) (h []protocol.DayHours) {
			for _, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
				h = append(h, protocol.DayHours{Day: day, Opens: opens, Closes: closes})
			}
			return h
		}
		for _, h := range []string{"day", "night", "berlin", "bare", "none"} {
			d.put(protocol.ProfileDraft{Handle: h + "-shop", Timezone: "Asia/Kolkata"})
		}
		d.put(protocol.ProfileDraft{Handle: "person", Kind: protocol.Person})
		d.merchant("day-shop", protocol.MerchantDraft{Category: "Bakery", City: "Bombay", Hours: daily("09:00", "18:00"),
			Items: []protocol.ItemDraft{{SKU: "pav", Name: "Ladi pav", Price: &protocol.MoneyDraft{Currency: "INR", Amount: "30"}}}})
		d.merchant("night-shop", protocol.MerchantDraft{Category: "bakery", City: "मुंबई", Hours: daily("22:00", "04:00")})
		d.merchant("berlin-shop", protocol.MerchantDraft{Category: "bäckerei", City: "Berlin", Timezone: "Europe/Berlin", Hours: daily("06:30", "12:00")})
		d.merchant("bare-shop", protocol.MerchantDraft{City: "Bengaluru"})
		list := func(q protocol.MerchantQuery) (handles []string) {
			t.Helper()
			q.Limit = 1
			for {
				p := reads(t, db, func(ctx context.Context, tx *storage.Tx) (storage.AgentPage, error) {
					return tx.Profiles().ListMerchants(ctx, q)
				})
				for _, i := range p.Items {
					handles = append(handles, i.Draft.Handle)
				}
				if p.Next == nil {
					return handles
				}
				q.After = *p.Next
			}
		}
		check := func(q protocol.MerchantQuery, want ...string) {
			t.Helper()
			require.ElementsMatch(t, want, list(q), "%+v", q)
		}
		check(protocol.MerchantQuery{}, "day-shop", "night-shop", "berlin-shop", "bare-shop", "none-shop")
		for _, city := range []string{"Mumbai", "mumbai", "BOMBAY", "मुम्बई", "  Mumbai "} {
			check(protocol.MerchantQuery{City: city}, "day-shop", "night-shop")
		}
		check(protocol.MerchantQuery{City: "Bangalore"}, "bare-shop")
		check(protocol.MerchantQuery{City: "berlin", Category: "BACKEREI"}, "berlin-shop")
		check(protocol.MerchantQuery{City: "Atlantis"})
		check(protocol.MerchantQuery{Category: "bakery", City: "Bombay"}, "day-shop", "night-shop")
		check(protocol.MerchantQuery{Q: "pav"}, "day-shop")
		check(protocol.MerchantQuery{Q: "mumbai"}, "day-shop", "night-shop")
		checkConditions(t, d, check)

		open := protocol.MerchantQuery{OpenNow: true}
		check(open, "day-shop", "berlin-shop")
		for _, refresh := range []bool{false, true, false} { // with kept spans that are stale, and with fresh ones
			now = now.Add(11 * time.Hour) // 22:30 in India
			if refresh {
				write(t, db, func(ctx context.Context, tx *storage.Tx) error {
					require.Positive(t, must.Get(tx.Merchants().RefreshHours(ctx))(t))
					return nil
				})
			}
			check(open, "night-shop")
			now = now.Add(13 * time.Hour) // 11:30 in India on the next day
			check(open, "day-shop", "berlin-shop")
			check(protocol.MerchantQuery{OpenNow: true, City: "Mumbai", Q: "bakery"}, "day-shop")
		}
		// The zone of the profile is that of the hours where the record names none.
		d.put(protocol.ProfileDraft{Handle: "day-shop", Timezone: "America/New_York"})
		check(open, "berlin-shop")
		d.put(protocol.ProfileDraft{Handle: "day-shop", Timezone: "Asia/Kolkata"})

		// An item keeps its id for its SKU, also while it is away.
		item := func(sku, name string) protocol.ItemDraft { return protocol.ItemDraft{SKU: sku, Name: name} }
		first := d.merchant("bare-shop", protocol.MerchantDraft{Items: []protocol.ItemDraft{item("a", "A"), item("b", "B")}})
		second := d.merchant("bare-shop", protocol.MerchantDraft{Items: []protocol.ItemDraft{item("b", "B2")}})
		third := d.merchant("bare-shop", protocol.MerchantDraft{Items: []protocol.ItemDraft{item("b", "B2"), item("a", "A")}})
		require.Equal(t, first.Items[1].ID, second.Items[0].ID)
		require.Equal(t, []string{first.Items[1].ID, first.Items[0].ID}, []string{third.Items[0].ID, third.Items[1].ID})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			_, m, err := tx.Merchants().ByHandle(ctx, "bare-shop")
			require.Equal(t, third.Items, m.Items)
			return err
		})
		check(protocol.MerchantQuery{Q: "b2"}, "bare-shop")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "bare-shop") })
		check(protocol.MerchantQuery{Q: "b2"})
		require.NoError(t, db.Check(t.Context()))
	})
}

// checkConditions asks for merchants by distance, by prices and by returns.
func checkConditions(t *testing.T, d directory, check func(protocol.MerchantQuery, ...string)) {
	shops := []string{"dateline", "pole", "corner", "far"}
	places := []protocol.Geo{{Latitude: -16.8, Longitude: 179.999}, {Latitude: 89.99, Longitude: 10}, {Latitude: 12.9756, Longitude: 77.605},
		{Latitude: 13.0827, Longitude: 80.2707}}
	for i, at := range places {
		returns := &protocol.ReturnsPolicy{AcceptsReturns: i%2 == 0}
		d.put(protocol.ProfileDraft{Handle: shops[i], Timezone: "Asia/Kolkata", Returns: returns})
		inr := func(amount string) *protocol.MoneyDraft {
			return &protocol.MoneyDraft{Currency: "INR", Amount: protocol.Decimal(amount)}
		}
		d.merchant(shops[i], protocol.MerchantDraft{Geo: &at, Items: []protocol.ItemDraft{
			{SKU: "a", Name: "Thing", Price: inr(fmt.Sprint(1000 + i))},
			{SKU: "b", Name: "Thing", Options: []protocol.ItemOption{{Name: "Size", Values: []string{"S", "L"}}}, Variants: []protocol.VariantDraft{
				{Options: []string{"S"}, Price: inr("5000.50")}, {Options: []string{"L"}, Price: inr(fmt.Sprint(90_000 + i))}}},
		}})
	}
	near := func(place string, radius int, want ...string) {
		t.Helper()
		check(protocol.MerchantQuery{PlaceFilter: protocol.PlaceFilter{Near: place, Radius: radius}}, want...)
	}
	near("12.97,77.6", 0, "corner")
	near("12.9756,77.605", 1, "corner")
	near("12.9756,77.605", 291_000, "corner", "far") // 290 km on the ellipsoid
	near("12.9756,77.605", 289_000, "corner")
	near("-16.8,-179.999", 300, "dateline") // across the meridian of 180 degrees
	near("-16.8,-179.999", 200)
	near("89.99,-170", 2300, "pole") // across the pole
	near("0,0", 21_000_000, shops...)
	check(protocol.MerchantQuery{PlaceFilter: protocol.PlaceFilter{Near: "12.97,77.6"}, City: "Bengaluru"})
	check(protocol.MerchantQuery{AcceptsReturns: true}, "dateline", "corner")
	check(protocol.MerchantQuery{AcceptsReturns: true, Q: "thing", PlaceFilter: protocol.PlaceFilter{Near: "13,78", Radius: 1_000_000}}, "corner")
	price := func(least, most protocol.Decimal, want ...string) {
		t.Helper()
		check(protocol.MerchantQuery{PriceFilter: protocol.PriceFilter{MinPrice: least, MaxPrice: most}}, want...)
	}
	price("1001", "1002", "pole", "corner")
	price("1001.01", "1001.99")
	price("5000.5", "5000.50", shops...)
	price("5000.51", "89999.99")
	price("90003", "", "far")
	price("", "30", "day-shop")
	check(protocol.MerchantQuery{PriceFilter: protocol.PriceFilter{MinPrice: "1", Currency: "EUR"}})
	check(protocol.MerchantQuery{Q: "thing", PlaceFilter: protocol.PlaceFilter{Near: "12.97,77.6"},
		PriceFilter: protocol.PriceFilter{MaxPrice: "1002"}, AcceptsReturns: true}, "corner")
	d.merchant("corner", protocol.MerchantDraft{}) // sells nothing any more, and is nowhere
	near("12.97,77.6", 0)
	price("1001", "1002", "pole")
	for _, handle := range shops {
		write(t, d.db, func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, handle) })
	}
}

// A database whose index was made by other rules is indexed again when opened.
func TestDirectory_Reindex(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		db := must.Get(storage.Open(t.Context(), c))(t)
		d := directory{t, db}
		for n := range 7 {
			d.put(protocol.ProfileDraft{Handle: fmt.Sprintf("p%d-x", n), Headline: "indigo"})
		}
		_, next, err := d.page(protocol.AgentQuery{Q: "indigo", Paging: protocol.Paging{Limit: 3}})
		require.NoError(t, err)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Settings().Put(ctx, "words of profiles", "0")
		})
		want := d.find("indigo")
		require.NoError(t, db.Close())
		d.db = must.Get(storage.Open(t.Context(), c))(t)
		defer d.db.Close()
		require.ElementsMatch(t, want, d.find("indigo"))
		_, _, err = d.page(protocol.AgentQuery{Q: "indigo", Paging: protocol.Paging{After: next}})
		require.Equal(t, protocol.InvalidCursor, protocol.CodeOf(err))
	})
}
