package federation

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
)

// person adds an actor of a server.
func (s *correspondence) person(id string) string {
	s.t.Helper()
	s.actors[id] = &actorKeys{id: id, keys: nodeKeys(105)}
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.net.hosts[hostOf(id)] = http.HandlerFunc(s.remote)
	return id
}

// What its author changes is changed, the newest only; what its author deletes has no text any more. Nobody else can.
func TestMessage_Changes(t *testing.T) {
	eachCorrespondence(t, func(s *correspondence) {
		s.person("https://peer.example/u/mate")
		at := func(d time.Duration) string { return s.tick.now().Add(d).Format(time.RFC3339) }
		uri := s.create(carol, "Forty sheets", nil)
		update := func(actor, text, updated string) {
			s.say("Update", actor, text, map[string]any{"id": uri, "updated": updated, "published": "2026-11-20T10:00:00Z", "attributedTo": actor})
		}
		update(carol, "Fifty sheets", at(time.Second))
		m := s.thread().Messages.Items[0]
		require.Equal(s.t, "Fifty sheets", m.Text)
		require.NotNil(s.t, m.EditedAt)
		update(carol, "An older change", "2026-11-20T10:00:01Z")
		update(carol, "From the future", at(time.Hour))
		s.say("Update", "https://peer.example/u/mate", "Another's", map[string]any{"id": uri, "updated": at(2 * time.Second), "published": "2026-11-20T10:00:00Z"})
		s.say("Update", carol, "Not known here", map[string]any{"updated": at(2 * time.Second), "published": "2026-11-20T10:00:00Z"})
		require.Equal(s.t, []string{"writer: Fifty sheets"}, texts(s.thread()))
		for i := range protocol.MaxRevisions + 5 {
			update(carol, fmt.Sprintf("Change %d", i+2), at(0))
		}
		require.Equal(s.t, fmt.Sprintf("Change %d", protocol.MaxRevisions), s.thread().Messages.Items[0].Text)

		remove := func(actor, object string) {
			s.n++
			require.Equal(s.t, 202, s.deliver(actor, asJSON(s.t, map[string]any{"@context": "https://www.w3.org/ns/activitystreams", "type": "Delete",
				"id": fmt.Sprintf("https://%s/a/%d", hostOf(actor), s.n), "actor": actor, "object": object})))
			settle(s.t, s.node)
		}
		remove("https://peer.example/u/mate", uri)
		require.False(s.t, s.thread().Messages.Items[0].Withdrawn)
		remove(carol, uri)
		m = s.thread().Messages.Items[0]
		require.True(s.t, m.Withdrawn)
		require.Equal(s.t, protocol.WithdrawnText, m.Text)
		update(carol, "Back again", at(0))
		s.create(carol, "Back again", map[string]any{"id": uri})
		require.Equal(s.t, []string{"writer: " + protocol.WithdrawnText}, texts(s.thread()))

		// A Delete that is faster than its Create.
		remove(carol, "https://peer.example/m/late")
		s.create(carol, "late", map[string]any{"id": "https://peer.example/m/late"})
		require.Len(s.t, s.threads("asha"), 1)

		// The end of an account takes all texts, and what still comes from it.
		s.create(carol, "second", map[string]any{"inReplyTo": uri})
		remove(carol, carol)
		s.create(carol, "third", nil)
		require.Equal(s.t, []string{"writer: " + protocol.WithdrawnText, "writer: " + protocol.WithdrawnText}, texts(s.thread()))
	})
}

// People of one server, and of many, have few threads that wait; whom the agent has answered still has one more.
func TestMessage_Bounds(t *testing.T) {
	eachCorrespondence(t, func(s *correspondence) {
		conversations := 0
		write := func(actor string, agents ...string) {
			conversations++
			more := map[string]any{"context": fmt.Sprintf("https://x.example/c/%d", conversations)}
			if len(agents) > 0 {
				more["to"], more["tag"] = agents, []any{}
			}
			s.create(actor, "Hello", more)
		}
		open := func() int { return len(s.threads("asha")) }
		write(carol)
		s.reply(s.thread().ThreadID, "Hello")
		for range protocol.MaxOpenThreads + 2 {
			write(mallory)
		}
		require.Equal(s.t, protocol.MaxOpenThreads, open()-1, "of one person with one agent")

		// One person writes to at most so many agents within a day.
		var agents []string
		for i := range protocol.MaxBegunOfActor {
			handle := fmt.Sprintf("agent-%d", i)
			s.profile(handle, welcoming)
			agents = append(agents, "https://u.example/ap/agents/"+handle)
		}
		write(mallory, agents...)
		require.Len(s.t, s.threads("agent-4"), 1)
		require.Empty(s.t, s.threads("agent-5"), "a Note is given to five agents")
		begun := protocol.MaxOpenThreads + protocol.MaxNamedAgents
		for i := 5; i < len(agents); i++ {
			write(mallory, agents[i])
			if begun < protocol.MaxBegunOfActor {
				begun++
				require.Len(s.t, s.threads(fmt.Sprintf("agent-%d", i)), 1)
			} else {
				require.Empty(s.t, s.threads(fmt.Sprintf("agent-%d", i)))
			}
		}

		for i := range 4 {
			other := s.person(fmt.Sprintf("https://u%d.evil.example/u/x", i))
			for range protocol.MaxOpenThreads {
				write(other)
			}
		}
		require.Equal(s.t, protocol.MaxOpenOfDomain, open()-1, "of one registrable domain with one agent, with its subdomains")

		for i := range 12 {
			other := s.person(fmt.Sprintf("https://far%d.example/u/x", i))
			for range protocol.MaxOpenThreads {
				write(other)
			}
		}
		require.Equal(s.t, protocol.SharedRemote.Strangers(), open()-1, "of all other servers with one agent")
		write(carol)
		require.Equal(s.t, protocol.SharedRemote.Strangers(), open()-2, "whom the agent has answered")
		for range protocol.MaxUnanswered + 3 {
			s.create(carol, "And?", map[string]any{"context": fmt.Sprintf("https://x.example/c/%d", conversations)})
		}
		require.Len(s.t, s.threads("asha")[0].Messages.Items, protocol.MaxUnanswered)
	})
}

// A blocked actor, host or agent is dropped, and so is a silenced host; a closed thread gets nothing more.
func TestMessage_Blocked(t *testing.T) {
	t.Parallel()
	s := newCorrespondence(t, storage.Config{})
	uri := s.create(carol, "Hello", nil)
	owner := protocol.Caller{Standing: protocol.Session, Account: "acc_1", Handle: "asha", Handles: []string{"asha"}}
	first := s.thread().ThreadID
	require.NoError(t, s.write(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(s.room.Close(ctx, tx, owner, protocol.ThreadRef{ThreadID: first}))
	}))
	s.say("Update", carol, "Changed", map[string]any{"id": uri, "updated": s.tick.now().Add(time.Second).Format(time.RFC3339)})
	s.create(carol, "On", map[string]any{"inReplyTo": uri})
	all := s.threads("asha")
	require.Len(t, all, 2, "a new thread")
	require.Equal(t, []string{"writer: Hello"}, texts(all[1]))

	deliveries := func(block func(ctx context.Context, tx *storage.Tx) error, undo func(ctx context.Context, tx *storage.Tx) error) {
		t.Helper()
		s.n++
		body := asJSON(t, map[string]any{"@context": "https://www.w3.org/ns/activitystreams", "id": fmt.Sprintf("https://peer.example/a/%d", s.n), "type": "Create",
			"actor": carol, "object": map[string]any{"id": fmt.Sprintf("https://peer.example/m/%d", s.n), "type": "Note", "attributedTo": carol, "content": "x",
				"published": "2026-11-20T10:00:00Z", "to": asha}})
		require.Equal(t, 202, s.deliver(carol, body))
		require.NoError(t, s.write(block)) // while it waits
		settle(t, s.node)
		require.Len(t, s.threads("asha"), 2)
		require.NoError(t, s.write(undo))
	}
	for kind, value := range map[protocol.BlockKind]string{protocol.BlockActor: carol, protocol.BlockHost: "peer.example", protocol.BlockHandle: "asha"} {
		b := nodeBlock(kind, value)
		deliveries(func(ctx context.Context, tx *storage.Tx) error { return tx.Blocks().Put(ctx, b) },
			func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Blocks().Delete(ctx, b.ID)) })
	}
	deliveries(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "peer.example", Policy: storage.PolicySilence})
	}, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "peer.example"})
	})
	last := s.create(carol, "Free again", nil)
	require.Len(t, s.threads("asha"), 3)

	// With the profile goes all that was written to it, and what it wrote.
	s.reply(s.threads("asha")[0].ThreadID, "Farewell")
	note := s.sent(1)["id"].(string)
	require.NoError(t, s.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "asha") }))
	require.Equal(t, 404, s.fetchAs(carol, schemeCavage, note, func(*http.Request) {}))
	s.read(func(ctx context.Context, tx *storage.Tx) error {
		require.Empty(t, must.Get(tx.RemoteThreads().OfNote(ctx, last))(t))
		return nil
	})
	s.create(carol, "Still there?", nil)
	require.Len(t, s.got, 1, "nobody is there to refuse")
}

// An answer waits for a server that is away, and is not sent to one that is blocked meanwhile.
func TestMessage_HostAway(t *testing.T) {
	t.Parallel()
	s := newCorrespondence(t, storage.Config{})
	s.create(carol, "Hello", nil)
	s.status = 503
	s.reply(s.thread().ThreadID, "Hello, Carol")
	require.Empty(t, s.got)
	s.status = 0
	for range 3 {
		s.tick.pass(time.Minute)
		settle(t, s.node)
	}
	require.Len(t, s.got, 1)
}

func (n *node) has(uri string) bool {
	return reads(n, func(ctx context.Context, tx *storage.Tx) (bool, error) { return tx.Posts().Has(ctx, uri) })
}

// A public Note that mentions the board and answers nothing is a post there, with its origin, in the log and on the nodes that
// follow; its author changes and deletes it. One domain begins a few at a time.
func TestMessage_BoardMention(t *testing.T) {
	eachCorrespondence(t, func(s *correspondence) {
		follower := newNode(s.t, s.net, s.tick, 5, nil)
		follower.follow(s.node)
		board := s.base + "/ap/board"
		more := map[string]any{"to": []string{activity.Public}, "cc": []string{board}, "tag": []any{map[string]any{"type": "Hashtag", "name": "#offer"}}}
		uri := s.create(carol, "Looms for sale.</p><p>In Jaipur.", more)
		p := s.held(uri)
		require.NotNil(s.t, p)
		require.Equal(s.t, []any{"Looms for sale.", "Looms for sale.\n\nIn Jaipur.", protocol.Offer, "", board, "peer.example", false, protocol.Visible},
			[]any{p.Title, p.Body, p.Kind, p.ReplyTo, p.Board, *p.Node, p.Author.Verified, p.State})
		// until waits for the numbers of the log, which come after the commit on PostgreSQL.
		until := func(done func() bool, what string) {
			s.t.Helper()
			require.Eventually(s.t, func() bool { settle(s.t, s.node, follower); return done() }, time.Minute, 5*time.Millisecond, what)
		}
		until(func() bool { return follower.has(uri) }, "on the nodes that follow")
		require.Empty(s.t, s.threads("asha"))

		more["id"], more["updated"], more["published"] = uri, s.tick.now().Add(2*time.Second).Format(time.RFC3339), p.CreatedAt.Format(time.RFC3339)
		more["cc"] = []string{}
		s.say("Update", carol, "Sold.", more)
		require.Equal(s.t, "Sold.", s.held(uri).Body)
		until(func() bool { return follower.held(uri).Body == "Sold." }, "changed there too")

		s.create(carol, "Not for all", map[string]any{"to": []string{board}, "tag": []any{}})
		s.create(carol, "An answer", map[string]any{"to": []string{activity.Public, board}, "tag": []any{}, "inReplyTo": "https://peer.example/n/0"})
		for range 30 {
			s.create(carol, "Again", map[string]any{"to": []string{activity.Public, board}, "tag": []any{}})
		}
		n := 0
		for _, got := range s.node.room.got {
			if strings.HasPrefix(got, "https://peer.example/") {
				n++
			}
		}
		require.Equal(s.t, int(mentionRate.Burst), n)
		require.NoError(s.t, s.node.write(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "peer.example", Policy: storage.PolicyTrusted})
		}))
		require.NotNil(s.t, s.held(s.create(carol, "Trusted", map[string]any{"to": []string{activity.Public, board}, "tag": []any{}})))
	})
}
