package reputation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// TestReviews_Told: the news of a review names its feedback, which another node finds on a real chain, and nothing else does.
func TestReviews_Told(t *testing.T) {
	t.Parallel()
	m := newMarket(t, "", func(*node.Config) {})
	shop, token := m.shop("rao", 0, 5)
	m.index()
	file := m.file(shop, 1, 90, fmt.Sprintf(`,"orderReceipt":%q`, m.receipt(token, "R-1", 1).Receipt))
	m.give(shop, 1, 90, dataURI(file), erc8004.FeedbackHash(file))
	m.Chain.Do("final")
	m.index()
	feed := nodetest.As[protocol.Page[protocol.FeedItem]](m.Ask("GET", "/api/public/feed?types=review", ""))
	require.Len(t, feed.Items, 1)
	var e protocol.NewsEvidence
	require.NoError(t, m.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		item, err := tx.Feed().Published(ctx, feed.Items[0].ID)
		require.NoError(t, err)
		return json.Unmarshal(item.Evidence, &e)
	}))
	require.Equal(t, feed.Items[0].Summary, e.Review.Summary(feed.Items[0].Actor.Name))
	check := func(change func(*protocol.NewsReview)) protocol.Code {
		r := *e.Review
		change(&r)
		err := m.House.Chain.Review(t.Context(), r)
		if err == nil {
			return ""
		}
		return protocol.CodeOf(err)
	}
	require.Empty(t, check(func(*protocol.NewsReview) {}))
	for name, change := range map[string]func(*protocol.NewsReview){
		"rating":         func(r *protocol.NewsReview) { r.Rating = 10_000 },
		"client":         func(r *protocol.NewsReview) { r.Client = strings.ToLower(m.Chain.Accounts[2].Address) },
		"index":          func(r *protocol.NewsReview) { r.Index++ },
		"transaction":    func(r *protocol.NewsReview) { r.Tx = "0x" + strings.Repeat("12", 32) },
		"no transaction": func(r *protocol.NewsReview) { r.Tx = "latest" },
		"agent":          func(r *protocol.NewsReview) { r.Agent = r.Agent[:strings.LastIndex(r.Agent, ":")] + ":999" },
		"no agent":       func(r *protocol.NewsReview) { r.Agent = "rao" },
	} {
		require.Equal(t, protocol.NotFound, check(change), name)
	}
	require.Equal(t, protocol.IdentityUnverified, check(func(r *protocol.NewsReview) { r.Agent = strings.Replace(r.Agent, "eip155:", "eip155:9", 1) }))
}
