package federation

import (
	"context"
	"crypto"
	"fmt"
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

// A shop is a business on a node, as the rooms announce its news.
type shop struct {
	n    *node
	name string
	pair key.Pair // zero: the node keeps no key of it
}

func (s shop) author() protocol.Author {
	actor := protocol.ActorID(s.n.base, s.name)
	a := protocol.Author{Name: "Bazaar", Handle: &s.name, Actor: &actor, Verified: true, Method: protocol.BySession}
	if !s.pair.IsZero() {
		a.ERC8004 = new(agentID)
	}
	a.Complete(s.n.tick.now())
	return a
}

// news is a feed item of the shop, signed if it has a key.
func (s shop) news(kind protocol.FeedType, title, summary string, review *protocol.NewsReview) protocol.FeedItem {
	s.n.t.Helper()
	now := s.n.tick.now()
	item := protocol.FeedItem{ID: protocol.NewID(protocol.FeedID, now), Type: kind, At: now, Actor: s.author(), Summary: summary,
		Subject: protocol.Subject{Kind: "item", ID: protocol.NewID(protocol.ItemID, now), URL: s.n.base + "/@" + s.name, Title: title}}
	switch kind {
	case protocol.FeedMerchantJoined:
		item.Subject.Kind, item.Subject.ID = "profile", s.name
	case protocol.FeedReview:
		item.Subject.Kind, item.Subject.ID = "review", protocol.NewID(protocol.ReviewID, now)
	}
	e := protocol.NewsEvidence{Review: review}
	if !s.pair.IsZero() {
		e.Statement = must.Get(integrity.SignStatement(integrity.Statement{Author: agentID, Actor: *item.Actor.Actor, Board: protocol.BoardID(s.n.base),
			Kind: string(kind), Title: title, Body: summary, Created: now.Format(time.RFC3339), Nonce: item.ID}, s.pair.Signer(), now))(s.n.t)
	}
	item.Evidence = asJSON(s.n.t, e)
	return item
}

func (s shop) tell(kind protocol.FeedType, title, summary string, review *protocol.NewsReview) protocol.FeedItem {
	s.n.t.Helper()
	item := s.news(kind, title, summary, review)
	require.NoError(s.n.t, s.n.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Feed().Publish(ctx, protocol.BoardID(s.n.base), item)
	}))
	return item
}

// open says whether the shop is listed.
func (s shop) open(open bool, subjects ...string) {
	s.n.t.Helper()
	require.NoError(s.n.t, s.n.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Feed().ShowAgent(ctx, protocol.BoardID(s.n.base), s.name, "", subjects, open)
	}))
}

// summaries is the feed of the node, newest first.
func (n *node) summaries(local bool) (all []string) {
	for _, i := range n.feed(local) {
		all = append(all, i.Summary)
	}
	return all
}

func (n *node) feed(local bool) (items []protocol.FeedItem) {
	n.read(func(ctx context.Context, tx *storage.Tx) error {
		page, err := tx.Feed().List(ctx, nil, local, 100, "")
		items = page.Items
		return err
	})
	return items
}

// The news of a shop are in the feed of a following node with its origin, as one item for a day's listings, and leave
// it and come back as they do at the origin, also when the log is read again.
func TestNewsReachTheFollower(t *testing.T) {
	onEach(t, func(t *testing.T, a, b *node, board string) {
		s := shop{n: a, name: "bazaar"}
		joined := s.tell(protocol.FeedMerchantJoined, "Bazaar", "Bazaar joined. Cloth.", nil)
		var subjects []string
		var listed []protocol.FeedItem
		for i := range 5 {
			a.tick.pass(time.Minute)
			listed = append(listed, s.tell(protocol.FeedListing, fmt.Sprintf("Cloth %d", i), fmt.Sprintf("Bazaar offers Cloth %d.", i), nil))
			subjects = append(subjects, listed[i].Subject.ID)
		}
		settle(t, a, b)
		all := []string{"Bazaar offers Cloth 4. And 4 more within a day.", "Bazaar joined. Cloth."}
		require.Equal(t, all, b.summaries(false))
		require.Empty(t, b.summaries(true), "nothing of it happened here")
		require.Len(t, a.summaries(true), 6)
		got := b.feed(false)[1]
		require.Equal(t, []any{"a.example", "bazaar@a.example", joined.Subject.URL, "bazaar", false},
			[]any{*got.Node, got.Subject.ID, got.Subject.URL, *got.Actor.Handle, got.Actor.Verified})
		require.Equal(t, 200, a.statusOf("/ap/news/"+joined.ID))
		require.Equal(t, 404, b.statusOf("/ap/news/"+got.ID))

		require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Feed().Retract(ctx, board, listed[4].ID) }))
		settle(t, a, b)
		require.Equal(t, []string{"Bazaar offers Cloth 3. And 3 more within a day.", all[1]}, b.summaries(false))

		_, warm := a.page("?after=0")
		require.Contains(t, string(asJSON(t, warm.OrderedItems)), "Bazaar joined")
		s.open(false, subjects...)
		settle(t, a, b)
		require.Empty(t, b.summaries(false), "it closed")
		_, page := a.page("?after=0")
		require.NotContains(t, string(asJSON(t, page.OrderedItems)), "Bazaar joined", "the log says nothing of it either")
		require.Equal(t, 404, a.statusOf("/ap/news/"+joined.ID))
		c := newNode(t, a.net, a.tick, 2, nil)
		c.follow(a)
		require.Empty(t, c.summaries(false))

		s.open(true, subjects[:4]...)
		settle(t, a, b, c)
		all[0] = "Bazaar offers Cloth 3. And 3 more within a day."
		require.Equal(t, all, b.summaries(false))
		require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Logs().NewEpoch(ctx, board)) }))
		require.NoError(t, b.f.pullAll(t.Context()))
		require.NoError(t, c.f.pullAll(t.Context()))
		settle(t, a, b, c)
		require.Equal(t, all, b.summaries(false), "read again, shown once")
		require.Equal(t, all, c.summaries(false))
	})
}

// A shop that closes is in no page of the log that was made before, however long ago it joined.
func TestNews_OldPages(t *testing.T) {
	t.Parallel()
	a, _ := two(t, nil)
	s := shop{n: a, name: "bazaar"}
	s.tell(protocol.FeedMerchantJoined, "Bazaar", "Bazaar joined.", nil)
	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
		for range maxLogPage {
			if err := tx.Logs().Append(ctx, protocol.BoardID(a.base), storage.LogCreate, protocol.NewID(protocol.PostID, tx.Now), nil); err != nil {
				return err
			}
		}
		return nil
	}))
	old := func() string { _, p := a.page("?after=0"); return string(asJSON(t, p.OrderedItems)) }
	require.Contains(t, old(), "Bazaar joined")
	s.open(false)
	require.NotContains(t, old(), "Bazaar joined")
	s.open(true)
	require.Contains(t, old(), "Bazaar joined")
}

// Whatever order deliveries come in, and however often, the feed is that of the log.
func TestNews_RepeatsAndReordering(t *testing.T) {
	onEach(t, func(t *testing.T, a, b *node, _ string) {
		s := shop{n: a, name: "bazaar"}
		b.net.set("b.example", true)
		joined := s.tell(protocol.FeedMerchantJoined, "Bazaar", "Bazaar joined.", nil)
		a.tick.pass(time.Second)
		s.open(false)
		s.open(true)
		s.tell(protocol.FeedListing, "Cloth", "Bazaar offers Cloth.", nil)
		b.net.set("b.example", false)
		entries := a.entries()
		require.Len(t, entries, 4)
		for _, at := range []int{3, 1, 0, 2, 3, 0, 1} {
			a.push(b, entries[at])
			settle(t, b)
		}
		settle(t, a, b)
		require.Equal(t, []string{"Bazaar offers Cloth.", joined.Summary}, b.summaries(false))
	})
}

// A node verifies by itself who a shop is, by the shop's own statement and the chain, and refuses what was forged.
func TestNews_Verdicts(t *testing.T) {
	t.Parallel()
	pair := must.Get(key.GenerateEd25519())(t)
	other := must.Get(key.GenerateEd25519())(t)
	chain := &registry{id: agentID, keys: map[string]crypto.PublicKey{pair.Thumbprint(): pair.Public()}}
	a, b := two(t, chain)
	b.follow(a)
	board := protocol.BoardID(a.base)
	rated := map[int64]bool{}
	b.f.c.Reviews = func(_ context.Context, r protocol.NewsReview) error {
		if !rated[r.Rating] {
			return protocol.Errorf(protocol.NotFound, "no such feedback")
		}
		return nil
	}
	rated[9000] = true
	signed, plain := shop{a, "bazaar", pair}, shop{n: a, name: "stall"}
	review := func(rating int64) *protocol.NewsReview {
		return &protocol.NewsReview{Agent: agentID, Client: "0x01", Index: 1, Tx: "0x02", Rating: rating, Receipt: true}
	}
	s := new(b.subscription(board))
	read := func(item protocol.FeedItem, change func(offer, news activity.Object)) (err error) {
		a.tick.pass(time.Second)
		news := must.Get(a.f.site.NewsObject(item))(t)
		offer := a.f.site.OfferNews(news)
		if change != nil {
			change(offer, news)
		}
		act := must.JSON[activity.Activity](asJSON(t, offer))(t)
		effect, err := b.f.readOffer(t.Context(), s, &act)
		if err == nil {
			require.NoError(t, b.write(effect))
		}
		return err
	}
	joined := func(s shop) protocol.FeedItem {
		return s.news(protocol.FeedMerchantJoined, "Bazaar", "Bazaar joined.", nil)
	}
	require.NoError(t, read(joined(signed), nil))
	require.True(t, b.feed(false)[0].Actor.Verified)
	require.Equal(t, agentID, *b.feed(false)[0].Actor.ERC8004)
	require.Equal(t, protocol.ByChainKey, b.feed(false)[0].Actor.Proof.Level)
	require.NoError(t, read(joined(plain), nil))
	require.False(t, b.feed(false)[0].Actor.Verified)
	require.Nil(t, b.feed(false)[0].Actor.ERC8004, "what its node claims")
	stars := review(9000).Summary("Bazaar")
	require.NoError(t, read(signed.news(protocol.FeedReview, "Bazaar", stars, review(9000)), nil))
	require.Equal(t, "Bazaar has a review of 4.5 of 5, with a receipt of the shop.", b.feed(false)[0].Summary)
	require.True(t, b.feed(false)[0].Actor.Verified)

	held := len(b.feed(false))
	for name, c := range map[string]struct {
		item   protocol.FeedItem
		change func(offer, news activity.Object)
	}{
		"text": {joined(signed), func(_, news activity.Object) { news["summary"] = "Bazaar joined. Buy now!" }},
		"kind": {joined(signed), func(_, news activity.Object) { news["stoa:kind"] = "listing" }},
		"another shop": {joined(signed), func(_, news activity.Object) {
			news["attributedTo"] = a.base + "/ap/agents/stall"
			news["stoa:author"].(activity.Object)["handle"] = "stall"
		}},
		"another identity": {joined(signed), func(_, news activity.Object) {
			news["stoa:author"].(activity.Object)["erc8004"] = agentID[:len(agentID)-2] + "18"
		}},
		"much later":     {joined(signed), func(_, news activity.Object) { news["published"] = a.tick.now().Add(time.Hour) }},
		"page elsewhere": {joined(plain), func(_, news activity.Object) { news["url"] = "https://evil.example/" }},
		"id elsewhere":   {joined(plain), func(_, news activity.Object) { news["id"] = "https://c.example/ap/news/1" }},
		"no profile":     {joined(plain), func(_, news activity.Object) { news["stoa:author"].(activity.Object)["handle"] = "" }},
		"direction":      {joined(plain), func(_, news activity.Object) { news["stoa:title"] = "cloth \u202e htolc" }},
		"stars":          {signed.news(protocol.FeedReview, "Bazaar", review(10_000).Summary("Bazaar"), review(10_000)), nil},
		"shown stars":    {signed.news(protocol.FeedReview, "Bazaar", stars, review(9000)), func(_, news activity.Object) { news["stoa:review"] = review(8000) }},
		"of another":     {plain.news(protocol.FeedReview, "Stall", review(9000).Summary("Bazaar"), review(9000)), nil},
		"no review":      {signed.news(protocol.FeedReview, "Bazaar", stars, nil), nil},
	} {
		err := read(c.item, c.change)
		require.True(t, isRefused(err), "%s: %v", name, err)
		require.Len(t, b.feed(false), held, name)
	}
	require.NoError(t, read(joined(plain), func(offer, _ activity.Object) { offer["actor"] = a.base + "/ap/agents/stall" }))
	require.Len(t, b.feed(false), held, "offered by another than the board")

	// A statement is good for one piece of news.
	item := joined(signed)
	require.NoError(t, read(item, nil))
	require.NoError(t, read(item, nil))
	require.Len(t, b.feed(false), held+1)
	require.NoError(t, read(item, func(_, news activity.Object) {
		news["id"] = a.f.site.News(protocol.NewID(protocol.FeedID, a.tick.now()))
	}))
	require.Len(t, b.feed(false), held+1)

	// A key that the chain does not grant proves nothing.
	wrong := shop{a, "bazaar", other}
	require.NoError(t, read(joined(wrong), nil))
	require.False(t, b.feed(false)[0].Actor.Verified)

	// The operator blocks the identity.
	require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.FeedOrigins().RetractOf(ctx, protocol.BlockAgent, agentID)
	}))
	for _, i := range b.feed(false) {
		require.False(t, i.Actor.Verified, i.Summary)
	}
	require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.FeedOrigins().RetractOf(ctx, protocol.BlockHost, "example")
	}))
	require.Empty(t, b.feed(false))
	require.NoError(t, read(item, nil))
	require.Empty(t, b.feed(false), "it does not come back")
}

// A node brings so much news a day, and so much of it is kept.
func TestNews_Bounds(t *testing.T) {
	onEach(t, func(t *testing.T, _, b *node, _ string) {
		receive := func(host string, day, items int) (kept int) {
			at := b.tick.now().Add(time.Duration(day) * 48 * time.Hour)
			require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error {
				kept = 0
				for n := range items {
					uri := fmt.Sprintf("https://%s/ap/news/%d-%d", host, at.Unix(), n)
					item := protocol.FeedItem{ID: protocol.RemoteID(protocol.FeedID, at, uri), Type: protocol.FeedMerchantJoined, At: at, Node: &host, Summary: "joined",
						Actor:   protocol.Author{Name: "S", Handle: new("s"), Actor: new("https://" + host + "/ap/agents/s")},
						Subject: protocol.Subject{Kind: "profile", ID: uri, URL: "https://" + host, Title: "S"}}
					if must.Get(tx.FeedOrigins().Receive(ctx, storage.FeedOrigin{URI: uri, Host: host, Item: item}))(t) {
						kept++
					}
				}
				return nil
			}))
			return kept
		}
		for day := range 11 {
			require.Equal(t, storage.MaxFeedADay, receive("x.example", day, storage.MaxFeedADay+1))
		}
		require.Equal(t, 1, receive("y.example", 0, 1), "another host")
		b.read(func(ctx context.Context, tx *storage.Tx) error {
			n, after := 0, ""
			for {
				page := must.Get(tx.Feed().List(ctx, nil, false, 100, after))(t)
				n += len(page.Items)
				if page.Next == nil {
					break
				}
				after = *page.Next
			}
			require.Equal(t, storage.MaxFeedKept+1, n)
			return nil
		})
	})
}
