package federation

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
)

// bid tells of a live bid, as the room of attention boards does.
func (n *node) bid(author protocol.Author) protocol.FeedItem {
	n.t.Helper()
	now := n.tick.now()
	item := protocol.FeedItem{
		ID: protocol.NewID(protocol.FeedID, now), Type: protocol.FeedAttentionBid, At: now, Actor: author,
		Summary: "Ada bids INR 1500.00 for the attention of @asha.",
		Subject: protocol.Subject{Kind: "bid", ID: protocol.NewID(protocol.BidID, now), URL: n.base + "/@asha/board", Title: "Yarn <b>from</b> Panipat"},
	}
	require.NoError(n.t, n.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Bids().Publish(ctx, protocol.BoardID(n.base), "", item)
	}))
	return item
}

func (n *node) bidsInFeed() (items []protocol.FeedItem) {
	n.t.Helper()
	n.read(func(ctx context.Context, tx *storage.Tx) error {
		page, err := tx.Feed().List(ctx, []protocol.FeedType{protocol.FeedAttentionBid}, false, 50, "")
		items = page.Items
		return err
	})
	return items
}

func (n *node) statusOf(path string) int {
	rec := httptest.NewRecorder()
	n.f.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, n.base+path, nil))
	return rec.Code
}

// A bid is in the feed of a following node with its origin, unverified, and leaves it when it leaves
// that of its own node; also at a node that follows later, or reads the log again.
func TestBidReachesTheFollower(t *testing.T) {
	t.Parallel()
	a, b := two(t, nil)
	early := a.bid(protocol.Author{Name: "Zed"})
	a.tick.pass(time.Second)
	b.follow(a)
	verified := protocol.Author{Name: "Ada", Handle: new("ada"), Verified: true, KeyID: new("k"), ERC8004: new(agentID)}
	told := a.bid(verified)
	a.post(nil)
	settle(t, a, b)

	got := b.bidsInFeed()
	require.Len(t, got, 2)
	require.Equal(t, []any{"a.example", told.Summary, told.Subject.Title, told.Subject.URL, "Ada", "ada"},
		[]any{*got[0].Node, got[0].Summary, got[0].Subject.Title, got[0].Subject.URL, got[0].Actor.Name, *got[0].Actor.Handle})
	require.False(t, got[0].Actor.Verified)
	require.Nil(t, got[0].Actor.ERC8004)
	require.NotEqual(t, told.Subject.ID, got[0].Subject.ID, "an id of this node is never that of another's bid")
	require.Equal(t, 200, a.statusOf("/ap/bids/"+told.Subject.ID))
	require.Equal(t, 404, b.statusOf("/ap/bids/"+got[0].Subject.ID))

	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Bids().Retract(ctx, protocol.BoardID(a.base), told.Subject.ID)
	}))
	settle(t, a, b)
	require.Len(t, b.bidsInFeed(), 1)
	require.Equal(t, early.Subject.Title, b.bidsInFeed()[0].Subject.Title)
	require.Equal(t, 404, a.statusOf("/ap/bids/"+told.Subject.ID))

	c := newNode(t, a.net, a.tick, 2, nil)
	c.follow(a)
	settle(t, a, c)
	require.Len(t, c.bidsInFeed(), 1, "what has left the feed is not in the log any more")

	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Logs().NewEpoch(ctx, protocol.BoardID(a.base)))
	}))
	require.NoError(t, b.f.pullAll(t.Context()))
	settle(t, a, b)
	require.Len(t, b.bidsInFeed(), 1, "read again, shown once")
}

// What a node says about bids of others, or in another's name, has no effect.
func TestBidOfAnotherOrigin(t *testing.T) {
	a, b := pairOf(t)
	here := b.bid(protocol.Author{Name: "Bo"})
	board := protocol.BoardID(a.base)
	s := new(b.subscription(board))
	for name, change := range map[string]func(offer, bid activity.Object){
		"sound":         func(activity.Object, activity.Object) {},
		"id":            func(_, bid activity.Object) { bid["id"] = b.base + "/ap/bids/" + here.Subject.ID },
		"page":          func(_, bid activity.Object) { bid["url"] = "https://evil.example/" },
		"script":        func(_, bid activity.Object) { bid["url"] = "javascript:alert(1)" },
		"author":        func(_, bid activity.Object) { bid["attributedTo"] = b.base + "/ap/agents/bo" },
		"actor":         func(offer, _ activity.Object) { offer["actor"] = a.base + "/ap/agents/x" },
		"no time":       func(_, bid activity.Object) { delete(bid, "published") },
		"long":          func(_, bid activity.Object) { bid["summary"] = string(make([]byte, 4000)) },
		"direction":     func(_, bid activity.Object) { bid["stoa:title"] = "yarn \u202e nray" },
		"another thing": func(_, bid activity.Object) { bid["type"] = "Note" },
		"no context":    func(offer, _ activity.Object) { delete(offer, "@context") },
	} {
		item := protocol.FeedItem{At: a.tick.now(), Actor: protocol.Author{Name: "Ada"}, Summary: "A bid.",
			Subject: protocol.Subject{ID: protocol.NewID(protocol.BidID, a.tick.now()), URL: a.base + "/@asha/board", Title: "Yarn"}}
		want := len(b.bidsInFeed())
		offer := a.f.site.Offer(item)
		change(offer, offer["object"].(activity.Object))
		raw, err := json.Marshal(offer)
		require.NoError(t, err, name)
		var act activity.Activity
		require.NoError(t, json.Unmarshal(raw, &act), name)
		effect, err := b.f.readOffer(t.Context(), s, &act)
		if err == nil {
			require.NoError(t, b.write(effect), name)
		} else {
			require.True(t, isRefused(err), "%s: %v", name, err)
		}
		if name == "sound" {
			want++
		}
		require.Len(t, b.bidsInFeed(), want, name)
	}
	undo := func(bid, actor string) {
		o := b.f.site.Withdrawn("", 9, a.tick.now())
		o["actor"], o["object"].(activity.Object)["object"] = actor, bid
		raw := must.Get(json.Marshal(o))(t)
		act := must.JSON[activity.Activity](raw)(t)
		require.NoError(t, b.write(must.Get(b.f.readUndo(s, &act))(t)))
	}
	theirs, others := a.bid(protocol.Author{Name: "Ada"}), "https://c.example/ap/bids/"+protocol.NewID(protocol.BidID, a.tick.now())
	settle(t, a, b)
	require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error {
		at := a.tick.now()
		item := protocol.FeedItem{At: at, Type: protocol.FeedAttentionBid, ID: protocol.RemoteID(protocol.FeedID, at, others), Node: new("c.example"),
			Subject: protocol.Subject{Kind: "bid", ID: protocol.RemoteID(protocol.BidID, at, others), Title: "Silk"}}
		return tx.Bids().Publish(ctx, "", others, item)
	}))
	all := b.bidsInFeed()
	own, theirURI := b.base+"/ap/bids/"+here.Subject.ID, a.base+"/ap/bids/"+theirs.Subject.ID
	for bid, actors := range map[string][]string{
		own: {board}, others: {board, protocol.BoardID("https://c.example")},
		theirURI: {protocol.BoardID(b.base), protocol.BoardID("https://c.example"), a.base + "/ap/agents/ada"},
	} {
		for _, actor := range actors {
			undo(bid, actor)
			require.Equal(t, all, b.bidsInFeed(), "%s takes back %s", actor, bid)
		}
	}
	undo(theirURI, board)
	require.Len(t, b.bidsInFeed(), len(all)-1)

	// What others told is offered to nobody, whatever the log says.
	for _, item := range b.bidsInFeed() {
		b.read(func(ctx context.Context, tx *storage.Tx) error {
			raw, err := b.f.bidEntry(ctx, tx, storage.LogEntry{Seq: 9, Kind: storage.LogCreate, ObjectID: item.Subject.ID, At: a.tick.now()})
			require.Equal(t, item.Node == nil, raw != nil, item.Subject.Title)
			return err
		})
	}
}

// TestBidOfASilencedNode: the feed has nothing of a node that the operator silenced or refuses.
func TestBidOfASilencedNode(t *testing.T) {
	t.Parallel()
	for policy, want := range map[storage.Policy]int{"": 1, storage.PolicyTrusted: 1, storage.PolicySilence: 0, storage.PolicyReject: 0} {
		a, b := two(t, nil)
		b.follow(a)
		require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error {
			if policy == "" {
				return nil
			}
			return tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "a.example", Policy: policy})
		}))
		a.bid(protocol.Author{Name: "Ada"})
		settle(t, a, b)
		require.Len(t, b.bidsInFeed(), want, policy)
	}
}
