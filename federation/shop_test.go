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
	"stoa/storage"
	"stoa/storage/storagetest"
)

// summary tells of the shop, with a statement if it has a key.
func (s shop) summary(sum protocol.ShopSummary) {
	s.n.t.Helper()
	s.n.tick.pass(time.Second)
	now, raw := s.n.tick.now(), asJSON(s.n.t, sum)
	digest, err := integrity.Digest(raw)
	require.NoError(s.n.t, err)
	var statement json.RawMessage
	if !s.pair.IsZero() {
		statement, err = integrity.SignStatement(integrity.Statement{Author: agentID, Actor: *s.author().Actor, Board: protocol.BoardID(s.n.base), Kind: "shop",
			Title: sum.Name, Body: digest, Created: now.Format(time.RFC3339), Nonce: "n"}, s.pair.Signer(), now)
		require.NoError(s.n.t, err)
	}
	require.NoError(s.n.t, s.n.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Merchants().Tell(ctx, protocol.BoardID(s.n.base), s.name, digest, func() ([]byte, error) {
			return s.n.f.site.OfferShop(s.author(), s.n.base+"/@"+s.name, raw, statement, now).Bytes()
		})
		return err
	}))
}

// elsewhere lists the shops of other nodes that a node knows.
func (n *node) elsewhere(q protocol.MerchantQuery) (names []string) {
	n.t.Helper()
	for after := ""; ; {
		var page protocol.Page[storage.RemoteShop]
		n.read(func(ctx context.Context, tx *storage.Tx) (err error) {
			page, err = tx.RemoteShops().List(ctx, q, 2, after)
			return err
		})
		for _, s := range page.Items {
			names = append(names, s.Summary.Name)
		}
		if page.Next == nil {
			return names
		}
		after = *page.Next
	}
}

// The shops of a followed node are found by words, category, city, place and price, newest first, and no longer when they
// close, their host is refused, or the node is not followed any more.
func TestShopsElsewhere(t *testing.T) {
	onEach(t, func(t *testing.T, a, b *node, board string) {
		cloth, tea := shop{n: a, name: "cloth"}, shop{n: a, name: "tea"}
		cloth.summary(protocol.ShopSummary{Name: "Cloth House", Category: "clothing", City: "Bombay", Words: "khadi shawl", Items: 2, Tags: []string{"loom"},
			Prices: []protocol.PriceSpan{{Currency: "INR", Low: 10_000, High: 90_000}}, Geo: &protocol.Geo{Latitude: 12.97, Longitude: 77.6}})
		tea.summary(protocol.ShopSummary{Name: "Tea & More", Headline: "Leaves from Assam.", City: "Pune", Words: "darjeeling assam"})
		settle(t, a, b)
		both := []string{"Tea & More", "Cloth House"}
		price := func(least, most string) protocol.PriceFilter {
			var f protocol.PriceFilter
			require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"minPrice":%q,"maxPrice":%q}`, least, most), &f))
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
			"near":              {protocol.MerchantQuery{Near: "12.971,77.601"}, both[1:]},
			"far":               {protocol.MerchantQuery{Near: "48.1,11.5"}, nil},
			"price":             {protocol.MerchantQuery{PriceFilter: price("50", "200")}, both[1:]},
			"dear":              {protocol.MerchantQuery{PriceFilter: price("5000", "9000")}, nil},
			"open, not known":   {protocol.MerchantQuery{OpenNow: true}, nil},
			"accepts returns":   {protocol.MerchantQuery{AcceptsReturns: true}, nil},
			"beginning of name": {protocol.MerchantQuery{Q: "hou"}, both[1:]},
		} {
			require.Equal(t, c.want, b.elsewhere(c.q), name)
		}
		require.Empty(t, a.elsewhere(protocol.MerchantQuery{}), "they are its own")

		cloth.summary(protocol.ShopSummary{Name: "Cloth House", Words: "cotton"})
		settle(t, a, b)
		require.Empty(t, b.elsewhere(protocol.MerchantQuery{Q: "khadi"}))
		require.Equal(t, []string{"Cloth House", "Tea & More"}, b.elsewhere(protocol.MerchantQuery{}))
		seqs, kinds := entriesOf(t, func() logPage { _, p := a.page("?after=0"); return p }())
		require.Len(t, seqs, 3)
		require.Equal(t, "Tombstone", kinds[0], "the older summary is not in the log any more")

		require.Equal(t, 200, a.statusOf("/ap/shops/tea"))
		require.Equal(t, 404, a.statusOf("/ap/shops/@"))
		tea.open(false)
		settle(t, a, b)
		require.Equal(t, 404, a.statusOf("/ap/shops/tea"))
		require.Equal(t, []string{"Cloth House"}, b.elsewhere(protocol.MerchantQuery{}))
		c := newNode(t, a.net, a.tick, 2, nil)
		c.follow(a)
		require.Equal(t, []string{"Cloth House"}, c.elsewhere(protocol.MerchantQuery{}))
		tea.open(true)
		tea.summary(protocol.ShopSummary{Name: "Tea & More"})
		settle(t, a, b)
		require.Len(t, b.elsewhere(protocol.MerchantQuery{}), 2)

		// A node that is gone is noted, and forgotten after 30 days.
		seen := func() (at time.Time) {
			b.read(func(ctx context.Context, tx *storage.Tx) error {
				page, err := tx.RemoteShops().List(ctx, protocol.MerchantQuery{}, 1, "")
				at = page.Items[0].SeenAt
				return err
			})
			return at
		}
		last := seen()
		require.WithinDuration(t, a.tick.now(), last, time.Hour)
		a.net.set("a.example", true)
		prune := func() {
			require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error { _, err := tx.RemoteShops().Prune(ctx); return err }))
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

// What a node says of shops of others, what is too long, and what was changed after the shop signed it is refused; who a shop is
// is checked here.
func TestShopsElsewhere_Verdicts(t *testing.T) {
	t.Parallel()
	pair, err := key.GenerateEd25519()
	require.NoError(t, err)
	a, b := two(t, &registry{id: agentID, keys: map[string]crypto.PublicKey{pair.Thumbprint(): pair.Public()}})
	b.follow(a)
	signed, plain := shop{a, "cloth", pair}, shop{n: a, name: "tea"}
	signed.summary(protocol.ShopSummary{Name: "Cloth House", HasIdentity: true})
	plain.summary(protocol.ShopSummary{Name: "Tea", HasIdentity: true})
	settle(t, a, b)
	of := func(name string) (s protocol.ShopSummary) {
		b.read(func(ctx context.Context, tx *storage.Tx) error {
			page, err := tx.RemoteShops().List(ctx, protocol.MerchantQuery{Q: name}, 10, "")
			require.Len(t, page.Items, 1)
			s = page.Items[0].Summary
			return err
		})
		return s
	}
	require.True(t, of("Cloth").HasIdentity)
	require.False(t, of("Tea").HasIdentity, "what its node claims")

	var offer activity.Activity
	_, page := a.page("?after=0")
	var e activity.Activity
	require.NoError(t, json.Unmarshal(page.OrderedItems[0], &e))
	s := new(b.subscription(protocol.BoardID(a.base)))
	for name, change := range map[string]func(shop map[string]any){
		"text":       func(m map[string]any) { m["stoa:shop"].(map[string]any)["headline"] = "Buy now!" },
		"name":       func(m map[string]any) { m["stoa:shop"].(map[string]any)["name"] = "Other House" },
		"page":       func(m map[string]any) { m["url"] = "https://evil.example/" },
		"author":     func(m map[string]any) { m["attributedTo"] = b.base + "/ap/agents/cloth" },
		"no author":  func(m map[string]any) { delete(m, "attributedTo") },
		"many words": func(m map[string]any) { m["stoa:shop"].(map[string]any)["words"] = strings.Repeat("cloth ", 500) },
		"large": func(m map[string]any) {
			m["stoa:shop"].(map[string]any)["prices"] = []any{map[string]any{"currency": strings.Repeat("x", 20_000)}}
		},
		"off the map": func(m map[string]any) {
			m["stoa:shop"].(map[string]any)["geo"] = map[string]any{"latitude": 500, "longitude": 1}
		},
		"no shop":   func(m map[string]any) { delete(m, "stoa:shop") },
		"direction": func(m map[string]any) { m["stoa:shop"].(map[string]any)["city"] = "a \u202e b" },
	} {
		require.NoError(t, json.Unmarshal(e.Object, &offer))
		var object map[string]any
		require.NoError(t, json.Unmarshal(offer.Object, &object))
		change(object)
		offer.Object = asJSON(t, object)
		_, err := b.f.readOffer(t.Context(), s, &offer)
		require.True(t, isRefused(err), "%s: %v", name, err)
	}
	require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.RemoteShops().DropOf(ctx, protocol.BlockAgent, agentID)
	}))
	require.Equal(t, []string{"Tea"}, b.elsewhere(protocol.MerchantQuery{}))
	require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error { return tx.RemoteShops().DropUnder(ctx, "example") }))
	require.Empty(t, b.elsewhere(protocol.MerchantQuery{}))
}

// A host has room for so many shops.
func TestShopsElsewhere_Bound(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		put := func(host string, n int) (kept bool) {
			require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
				kept, err = tx.RemoteShops().Put(ctx, storage.RemoteShop{Actor: fmt.Sprintf("https://%s/ap/agents/s%d", host, n), Host: host,
					Summary: protocol.ShopSummary{Name: "S"}})
				return err
			}))
			return kept
		}
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for n := range storage.MaxRemoteShops {
				if _, err := tx.RemoteShops().Put(ctx, storage.RemoteShop{Actor: fmt.Sprintf("https://x.example/ap/agents/s%d", n), Host: "x.example",
					Summary: protocol.ShopSummary{Name: "S"}}); err != nil {
					return err
				}
			}
			return nil
		}))
		require.False(t, put("x.example", storage.MaxRemoteShops))
		require.True(t, put("x.example", 7), "what is known is replaced")
		require.True(t, put("y.example", 1))
	})
}
