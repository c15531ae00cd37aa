package federation

import (
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
)

// shopSummary is that of a business, which more may change.
func shopSummary(handle, name string, more ...func(p *protocol.ProfileDraft, s *protocol.ShopSummary)) protocol.AgentSummary {
	sum := protocol.AgentSummary{Profile: protocol.ProfileDraft{Handle: handle, Name: name, Kind: protocol.Business}, Shop: &protocol.ShopSummary{}}
	for _, change := range more {
		change(&sum.Profile, sum.Shop)
	}
	return sum
}

// summary tells of the shop, with a statement if it has a key.
func (s shop) summary(name string, more ...func(p *protocol.ProfileDraft, s *protocol.ShopSummary)) {
	s.n.t.Helper()
	s.tells(shopSummary(s.name, name, more...))
}

func (s shop) tells(sum protocol.AgentSummary) {
	s.n.t.Helper()
	s.n.tick.pass(time.Second)
	now, raw := s.n.tick.now(), asJSON(s.n.t, sum)
	digest, err := integrity.Digest(raw)
	require.NoError(s.n.t, err)
	var statement json.RawMessage
	if !s.pair.IsZero() {
		statement, err = integrity.SignStatement(integrity.Statement{Author: agentID, Actor: *s.author().Actor, Board: protocol.BoardID(s.n.base), Kind: "agent",
			Title: sum.Profile.Name, Body: digest, Created: now.Format(time.RFC3339), Nonce: "n"}, s.pair.Signer(), now)
		require.NoError(s.n.t, err)
	}
	require.NoError(s.n.t, s.n.write(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Profiles().Tell(ctx, protocol.BoardID(s.n.base), s.name, digest, func() ([]byte, error) {
			return s.n.f.site.OfferAgent(s.author(), s.n.base+"/@"+s.name, raw, statement, now).Bytes()
		}))
	}))
}

// elsewhere lists the shops of other nodes that a node knows.
func (n *node) elsewhere(q protocol.MerchantQuery) []string {
	return n.remote(func(ctx context.Context, tx *storage.Tx, at protocol.Paging) (storage.AgentPage, error) {
		q.Paging = at
		return tx.Profiles().ListMerchants(ctx, q)
	})
}

// remote lists agents of other nodes.
func (n *node) remote(list func(context.Context, *storage.Tx, protocol.Paging) (storage.AgentPage, error)) (names []string) {
	n.t.Helper()
	for at := (protocol.Paging{Limit: 2}); ; {
		page := reads(n, func(ctx context.Context, tx *storage.Tx) (storage.AgentPage, error) { return list(ctx, tx, at) })
		for _, p := range page.Items {
			if p.Remote != nil {
				names = append(names, p.Draft.Name)
			}
		}
		if page.Next == nil {
			return names
		}
		at.After = *page.Next
	}
}

// The shops of a followed node are found by words, category, city, place and price, newest first, and no longer when they
// close, their host is refused, or the node is not followed any more.
func TestShopsElsewhere(t *testing.T) {
	onEach(t, func(t *testing.T, a, b *node, board string) {
		cloth, tea := shop{n: a, name: "cloth"}, shop{n: a, name: "tea"}
		cloth.summary("Cloth House", func(p *protocol.ProfileDraft, s *protocol.ShopSummary) {
			p.Tags = []string{"loom"}
			s.Record = protocol.MerchantDraft{Category: "clothing", City: "Bombay", Geo: &protocol.Geo{Latitude: 12.97, Longitude: 77.6}}
			s.Words, s.Items, s.Prices = "khadi shawl", 2, []protocol.PriceSpan{{Currency: "INR", Low: 10_000, High: 90_000}}
		})
		tea.summary("Tea & More", func(p *protocol.ProfileDraft, s *protocol.ShopSummary) {
			p.Headline, s.Words = "Leaves from Assam.", "darjeeling assam"
			s.Record = protocol.MerchantDraft{City: "Pune", Timezone: "Asia/Kolkata"}
			for _, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
				s.Record.Hours = append(s.Record.Hours, protocol.DayHours{Day: day, Opens: "00:00", Closes: "24:00"})
			}
		})
		settle(t, a, b)
		both := []string{"Tea & More", "Cloth House"}
		price := func(least, most string) protocol.PriceFilter {
			f := must.JSON[protocol.PriceFilter](fmt.Appendf(nil, `{"minPrice":%q,"maxPrice":%q}`, least, most))(t)
			return f
		}
		for name, c := range map[string]struct {
			q    protocol.MerchantQuery
			want []string
		}{
			"all":               {protocol.MerchantQuery{}, both},
			"word of an item":   {protocol.MerchantQuery{Q: "khadi"}, both[1:]},
			"beginning":         {protocol.MerchantQuery{Q: "Darj"}, both[:1]},
			"two words":         {protocol.MerchantQuery{Q: "tea assam"}, both[:1]},
			"not":               {protocol.MerchantQuery{Q: "-khadi"}, both[:1]},
			"tag":               {protocol.MerchantQuery{Q: "tag:loom"}, both[1:]},
			"nothing":           {protocol.MerchantQuery{Q: "khadi assam"}, nil},
			"category":          {protocol.MerchantQuery{Category: "clothing"}, both[1:]},
			"city, other name":  {protocol.MerchantQuery{City: "Mumbai"}, both[1:]},
			"near":              {protocol.MerchantQuery{PlaceFilter: protocol.PlaceFilter{Near: "12.971,77.601"}}, both[1:]},
			"far":               {protocol.MerchantQuery{PlaceFilter: protocol.PlaceFilter{Near: "48.1,11.5"}}, nil},
			"price":             {protocol.MerchantQuery{PriceFilter: price("50", "200")}, both[1:]},
			"dear":              {protocol.MerchantQuery{PriceFilter: price("5000", "9000")}, nil},
			"open now":          {protocol.MerchantQuery{OpenNow: true}, both[:1]},
			"accepts returns":   {protocol.MerchantQuery{AcceptsReturns: true}, nil},
			"beginning of name": {protocol.MerchantQuery{Q: "hou"}, both[1:]},
		} {
			require.Equal(t, c.want, b.elsewhere(c.q), name)
		}
		require.Empty(t, a.elsewhere(protocol.MerchantQuery{}), "they are its own")

		cloth.summary("Cloth House", func(_ *protocol.ProfileDraft, s *protocol.ShopSummary) { s.Words = "cotton" })
		settle(t, a, b)
		require.Empty(t, b.elsewhere(protocol.MerchantQuery{Q: "khadi"}))
		require.Equal(t, []string{"Cloth House", "Tea & More"}, b.elsewhere(protocol.MerchantQuery{}))
		seqs, kinds := entriesOf(t, func() logPage { _, p := a.page("?after=0"); return p }())
		require.Len(t, seqs, 3)
		require.Equal(t, "Tombstone", kinds[0], "the older summary is not in the log any more")

		require.Equal(t, 200, a.statusOf("/ap/summaries/tea"))
		require.Equal(t, 404, a.statusOf("/ap/summaries/@"))
		tea.open(false)
		settle(t, a, b)
		require.Equal(t, 404, a.statusOf("/ap/summaries/tea"))
		require.Equal(t, []string{"Cloth House"}, b.elsewhere(protocol.MerchantQuery{}))
		c := newNode(t, a.net, a.tick, 2, nil)
		c.follow(a)
		require.Equal(t, []string{"Cloth House"}, c.elsewhere(protocol.MerchantQuery{}))
		tea.open(true)
		tea.summary("Tea & More")
		settle(t, a, b)
		require.Len(t, b.elsewhere(protocol.MerchantQuery{}), 2)

		// A node that is gone is noted, and forgotten after 30 days.
		seen := func() (at time.Time) {
			b.read(func(ctx context.Context, tx *storage.Tx) error {
				page, err := tx.Profiles().ListMerchants(ctx, protocol.MerchantQuery{})
				at = page.Items[len(page.Items)-1].Remote.SeenAt
				return err
			})
			return at
		}
		last := seen()
		require.WithinDuration(t, a.tick.now(), last, time.Hour)
		a.net.set("a.example", true)
		prune := func() {
			require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.RemoteAgents().Prune(ctx)) }))
		}
		for range 29 {
			a.tick.pass(24 * time.Hour)
			settle(t, b)
		}
		prune()
		require.Equal(t, last, seen())
		a.tick.pass(25 * time.Hour)
		settle(t, b)
		prune()
		require.Empty(t, b.elsewhere(protocol.MerchantQuery{}))

		require.NoError(t, c.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Subscriptions().Delete(ctx, board) }))
		require.Empty(t, c.elsewhere(protocol.MerchantQuery{}))
	})
}

// within is a member of the summary in an object.
func within(object map[string]any, path ...string) map[string]any {
	m := object["stoa:summary"].(map[string]any)
	for _, name := range path {
		m = m[name].(map[string]any)
	}
	return m
}

// What a node says of shops of others, what is too long, and what was changed after the shop signed it is refused; who a shop is
// is checked here.
func TestShopsElsewhere_Verdicts(t *testing.T) {
	t.Parallel()
	pair := must.Get(key.GenerateEd25519())(t)
	a, b := two(t, &registry{id: agentID, keys: map[string]crypto.PublicKey{pair.Thumbprint(): pair.Public()}})
	b.follow(a)
	signed, plain := shop{a, "cloth", pair}, shop{n: a, name: "tea"}
	signed.summary("Cloth House")
	plain.summary("Tea")
	settle(t, a, b)
	with := func(identity bool) []string {
		return b.remote(func(ctx context.Context, tx *storage.Tx, at protocol.Paging) (storage.AgentPage, error) {
			return tx.Profiles().List(ctx, protocol.AgentQuery{HasIdentity: &identity, Paging: at})
		})
	}
	require.Equal(t, []string{"Cloth House"}, with(true))
	require.Equal(t, []string{"Tea"}, with(false))

	var offer activity.Activity
	_, page := a.page("?after=0")
	e := must.JSON[activity.Activity](page.OrderedItems[0])(t)
	s := new(b.subscription(protocol.BoardID(a.base)))
	for name, change := range map[string]func(shop map[string]any){
		"text": func(m map[string]any) {
			within(m, "profile")["headline"] = "Buy now!"
		},
		"name": func(m map[string]any) {
			within(m, "profile")["name"] = "Other House"
		},
		"page":      func(m map[string]any) { m["url"] = "https://evil.example/" },
		"author":    func(m map[string]any) { m["attributedTo"] = b.base + "/ap/agents/cloth" },
		"no author": func(m map[string]any) { delete(m, "attributedTo") },
		"many words": func(m map[string]any) {
			within(m, "shop")["words"] = strings.Repeat("cloth ", 500)
		},
		"large": func(m map[string]any) {
			within(m, "shop")["prices"] = []any{map[string]any{"currency": strings.Repeat("x", 20_000)}}
		},
		"off the map": func(m map[string]any) {
			within(m, "shop", "record")["geo"] = map[string]any{"latitude": 500, "longitude": 1}
		},
		"handle": func(m map[string]any) {
			within(m, "profile")["handle"] = "tea"
		},
		"kind": func(m map[string]any) {
			within(m, "profile")["kind"] = "robot"
		},
		"person": func(m map[string]any) {
			within(m, "profile")["kind"] = "person"
		},
		"long name": func(m map[string]any) {
			within(m, "profile")["name"] = strings.Repeat("n", 81)
		},
		"tag": func(m map[string]any) {
			within(m, "profile")["tags"] = []any{"A b"}
		},
		"capability": func(m map[string]any) {
			within(m, "profile")["capabilities"] = []any{map[string]any{"id": "x1", "name": "X", "description": "x", "endpoint": "http://a.example/"}}
		},
		"hours": func(m map[string]any) {
			within(m, "shop", "record")["hours"] = []any{map[string]any{"day": "monday", "opens": "25:00", "closes": "26:00"}}
		},
		"no shop": func(m map[string]any) { delete(m, "stoa:summary") },
		"direction": func(m map[string]any) {
			within(m, "shop", "record")["city"] = "a \u202e b"
		},
	} {
		require.NoError(t, json.Unmarshal(e.Object, &offer))
		object := must.JSON[map[string]any](offer.Object)(t)
		change(object)
		offer.Object = asJSON(t, object)
		_, err := b.f.readOffer(t.Context(), s, &offer)
		require.True(t, isRefused(err), "%s: %v", name, err)
	}
	require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.RemoteAgents().DropOf(ctx, protocol.BlockAgent, agentID)
	}))
	require.Equal(t, []string{"Tea"}, b.elsewhere(protocol.MerchantQuery{}))
	require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error { return tx.RemoteAgents().DropUnder(ctx, "example") }))
	require.Empty(t, b.elsewhere(protocol.MerchantQuery{}))
}
