package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// TestQuarantine: where all hosts are silenced, a reply of a new one is stored hidden; it is shown, here and on the nodes that follow,
// when the operator admits the host. Nodes that are followed, and this one, are never among all hosts.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	home, away, third := nodetest.Start(t), nodetest.Start(t), nodetest.Start(t)
	ctx := t.Context()
	ada, eve, bob := home.Hosted("ada"), away.Hosted("eve"), third.Hosted("bob")
	for _, n := range []*nodetest.House{away, third} {
		require.NoError(t, n.Admin().Follow(ctx, home.Base))
	}
	require.NoError(t, home.Admin().Follow(ctx, third.Base))
	host := func(n *nodetest.House) string { return strings.TrimPrefix(n.Base, "http://") }
	policy := func(host, policy string) error {
		_, err := node.Do(ctx, home.Node.Admin(), protocol.SetPeerPolicy, protocol.PolicyChange{Host: host, Policy: policy})
		return err
	}
	require.Error(t, policy("*", "trusted"))
	require.NoError(t, policy("*", "silence"))

	posts := func(n *nodetest.House) (found map[string]protocol.Post) {
		found = map[string]protocol.Post{}
		for _, p := range nodetest.As[protocol.Page[protocol.Post]](n.Ask("GET", "/api/public/board?limit=50", "")).Items {
			found[p.Title] = p
		}
		return found
	}
	await := func(n *nodetest.House, title string) protocol.Post {
		t.Helper()
		require.Eventually(t, func() bool { return posts(n)[title].ID != "" }, time.Minute, 50*time.Millisecond, title)
		return posts(n)[title]
	}
	write := func(n *nodetest.House, pair key.Pair, title, parent string) {
		t.Helper()
		if parent != "" {
			parent = `,"inReplyTo":"` + parent + `"`
		}
		n.AskSigned(pair, "POST", "/api/public/board", `{"kind":"question","title":"`+title+`","body":"Where?"`+parent+`}`).Is(201)
	}
	write(home, ada, "First", "")
	write(away, eve, "Quarantined", await(away, "First").ID)
	write(third, bob, "Followed", await(third, "First").ID)
	await(home, "Followed")
	held := func() (ids []string) {
		require.NoError(t, home.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			ids, err = tx.Posts().Held(ctx, host(away), 10)
			return err
		}))
		return ids
	}
	require.Eventually(t, func() bool { return len(held()) == 1 }, time.Minute, 50*time.Millisecond)
	require.NotContains(t, posts(home), "Quarantined")

	require.NoError(t, policy(host(away), "none"))
	require.Len(t, held(), 1, "it is still among all hosts")
	require.NoError(t, policy(host(away), "allow"))
	require.Contains(t, posts(home), "Quarantined")
	require.Empty(t, held())
	await(third, "Quarantined")
	write(away, eve, "Admitted", await(away, "First").ID)
	await(home, "Admitted")

	require.NoError(t, policy(host(away), "none"))
	write(away, eve, "Held by all", await(away, "First").ID)
	require.Eventually(t, func() bool { return len(held()) == 1 }, time.Minute, 50*time.Millisecond)
	require.NoError(t, policy(host(away), "silence"))
	require.NoError(t, policy("*", "none"))
	require.Len(t, held(), 1, "its own policy holds it")
	require.NoError(t, policy("*", "silence"))
	require.NoError(t, policy(host(away), "none"))
	require.Len(t, held(), 1)
	require.NoError(t, policy("*", "none"))
	require.Empty(t, held(), "nothing holds it")
	await(third, "Held by all")

	require.NoError(t, policy("*", "reject"))
	require.NoError(t, policy(host(away), "none"))
	write(home, ada, "Second", "")
	write(third, bob, "Still followed", await(third, "Second").ID)
	await(home, "Still followed")
	var all protocol.PeersView
	all, err := node.Do(ctx, home.Node.Admin(), protocol.ListPeers, protocol.PeersQuery{})
	require.NoError(t, err)
	require.Equal(t, []protocol.PeerPolicy{{Host: "*", Policy: "reject"}}, all.Policies)
}

// TestForwardReport: the operator reports a post of another server to it, once; the operator there sees it in the queue, without who
// reported it here.
func TestForwardReport(t *testing.T) {
	t.Parallel()
	home, away := nodetest.Start(t), nodetest.Start(t)
	eve := away.Hosted("eve")
	require.NoError(t, home.Admin().Follow(t.Context(), away.Base))
	away.AskSigned(eve, "POST", "/api/public/board", `{"kind":"offer","title":"Tickets","body":"Cheap."}`).Is(201)
	var here protocol.Page[protocol.Post]
	require.Eventually(t, func() bool {
		home.Ask("GET", "/api/public/board", "").Into(&here)
		return len(here.Items) == 1
	}, time.Minute, 50*time.Millisecond)
	id := here.Items[0].ID
	forward := func(id string) error {
		_, err := node.Do(t.Context(), home.Node.Admin(), protocol.ForwardReport, protocol.ReportForward{ID: id, Comment: "Sells counterfeit tickets."})
		return err
	}
	require.NoError(t, forward(id))
	require.Equal(t, protocol.Conflict, protocol.CodeOf(forward(id)))
	var queue protocol.Page[protocol.ReviewItem]
	require.Eventually(t, func() bool {
		var err error
		queue, err = node.Do(t.Context(), away.Node.Admin(), protocol.ListReviewQueue, protocol.ReviewQuery{})
		return err == nil && len(queue.Items) == 1
	}, time.Minute, 50*time.Millisecond)
	item := queue.Items[0]
	require.Equal(t, "Tickets", item.Post.Title)
	require.Len(t, item.Reports, 1)
	require.Equal(t, "Sells counterfeit tickets.", item.Reports[0].Reason)
	own := nodetest.As[protocol.Post](home.Signed(home.Hosted("asha"), nodetest.GoodPost, nil).Is(201))
	require.Equal(t, protocol.Conflict, protocol.CodeOf(forward(own.ID)), "a post of this node")
}
