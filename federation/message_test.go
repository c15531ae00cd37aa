package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/room/contact"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A correspondence is carol, of a server that follows nothing, and the agent asha here.
type correspondence struct {
	*stranger
	room *contact.Contact
	n    int
}

var welcoming = &protocol.PolicyDraft{Anonymous: true, OutsideAgentsWithIdentity: true}

const asha = "https://u.example/ap/agents/asha"

func newCorrespondence(t *testing.T, c storage.Config) *correspondence {
	t.Helper()
	s := &correspondence{stranger: strangerIn(newWorldOn(t, c))}
	s.room = &contact.Contact{Base: s.base, DB: s.db}
	s.profile("asha", welcoming)
	return s
}

// eachCorrespondence runs fn on both engines.
func eachCorrespondence(t *testing.T, fn func(s *correspondence)) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) { fn(newCorrespondence(t, c)) })
}

func (s *correspondence) profile(handle string, policy *protocol.PolicyDraft) {
	s.t.Helper()
	require.NoError(s.t, s.write(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: strings.ToUpper(handle),
			Kind: protocol.Person, ContactPolicy: policy}}))
	}))
}

// say delivers an activity about a Note of an actor, and has it processed. It returns the id of the Note.
func (s *correspondence) say(kind, actor, text string, more map[string]any) (uri string) {
	s.t.Helper()
	s.n++
	s.tick.pass(time.Second)
	host := "https://" + hostOf(actor)
	note := map[string]any{
		"id": fmt.Sprintf("%s/m/%d", host, s.n), "type": "Note", "attributedTo": actor, "content": "<p>" + text + "</p>",
		"published": s.tick.now().Format(time.RFC3339), "to": []string{asha}, "cc": []string{},
		"tag": []any{map[string]any{"type": "Mention", "href": asha, "name": "@asha@u.example"}},
	}
	for name, value := range more {
		note[name] = value
	}
	s.served[note["id"].(string)] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", activity.MediaType)
		_, _ = w.Write(asJSON(s.t, note))
	}
	require.Equal(s.t, 202, s.deliver(actor, asJSON(s.t, map[string]any{
		"@context": "https://www.w3.org/ns/activitystreams", "id": fmt.Sprintf("%s/a/%d", host, s.n), "type": kind, "actor": actor,
		"to": note["to"], "cc": note["cc"], "object": note,
	})))
	settle(s.t, s.node)
	return note["id"].(string)
}

func (s *correspondence) create(actor, text string, more map[string]any) string {
	s.t.Helper()
	return s.say("Create", actor, text, more)
}

// threads are those of an agent, the newest first, each with its messages.
func (s *correspondence) threads(handle string) (all []protocol.Conversation) {
	s.t.Helper()
	owner := protocol.Caller{Standing: protocol.Session, Account: "acc_1", Handle: handle, Handles: []string{handle}}
	s.read(func(ctx context.Context, tx *storage.Tx) error {
		for after := new(string); after != nil; {
			page, err := s.room.List(ctx, tx, owner, protocol.ThreadQuery{Paging: protocol.Paging{Limit: 50, After: *after}})
			if err != nil {
				return err
			}
			for _, t := range page.Items {
				c, err := s.room.Get(ctx, tx, owner, protocol.ThreadPage{ThreadRef: protocol.ThreadRef{ThreadID: t.ThreadID}, Paging: protocol.Paging{Limit: 50}})
				if err != nil {
					return err
				}
				all = append(all, c)
			}
			after = page.Next
		}
		return nil
	})
	return all
}

// thread is the only one of asha's.
func (s *correspondence) thread() protocol.Conversation {
	s.t.Helper()
	all := s.threads("asha")
	require.Len(s.t, all, 1)
	return all[0]
}

// reply answers a thread as its owner does, and has the answer sent.
func (s *correspondence) reply(threadID, text string) (said protocol.Said) {
	s.t.Helper()
	owner := protocol.Caller{Standing: protocol.Session, Account: "acc_1", Handle: "asha", Handles: []string{"asha"}}
	require.NoError(s.t, s.node.write(func(ctx context.Context, tx *storage.Tx) (err error) {
		said, err = s.room.Answer(ctx, tx, owner, protocol.NewAnswer{ThreadRef: protocol.ThreadRef{ThreadID: threadID}, Message: text})
		return err
	}))
	settle(s.t, s.node)
	return said
}

// sent is the Note of the last activity that carol was sent.
func (s *correspondence) sent(n int) (note map[string]any) {
	s.t.Helper()
	require.Len(s.t, s.got, n)
	last := s.got[n-1]
	require.Equal(s.t, "Create", last.Type.String())
	require.NoError(s.t, json.Unmarshal(last.Object, &note))
	return note
}

func texts(c protocol.Conversation) (all []string) {
	for _, m := range c.Messages.Items {
		all = append(all, string(m.From)+": "+m.Text)
	}
	return all
}

// A direct Note to an agent is a thread; the answer arrives with a mention, in the same conversation, and so on.
func TestMessage_Conversation(t *testing.T) {
	eachCorrespondence(t, func(s *correspondence) {
		first := s.create(carol, `<span class="h-card"><a href="`+asha+`" class="u-url mention">@<span>asha</span></a></span> Do you deliver to Jaipur?`,
			map[string]any{"context": "https://peer.example/c/1", "conversation": "tag:peer.example,2026:c1"})
		c := s.thread()
		require.Equal(s.t, []string{"writer: Do you deliver to Jaipur?"}, texts(c))
		by := c.Messages.Items[0].Author
		require.Equal(s.t, []any{false, protocol.ByFederation, carol, "carol", "peer.example", protocol.ByNothing},
			[]any{by.Verified, by.Method, *by.Actor, *by.Handle, *by.Node, by.Proof.Level})
		require.False(s.t, c.Messages.Items[0].Public)

		said := s.reply(c.ThreadID, "Yes, within <a week>.\n\nAsha")
		note := s.sent(1)
		require.Equal(s.t, "https://u.example/ap/messages/"+said.Message.ID, note["id"])
		require.Equal(s.t, []any{asha, first, "https://peer.example/c/1", "tag:peer.example,2026:c1"},
			[]any{note["attributedTo"], note["inReplyTo"], note["context"], note["conversation"]})
		require.Equal(s.t, []any{[]any{carol}, []any{}}, []any{note["to"], note["cc"]})
		require.Equal(s.t, []any{map[string]any{"type": "Mention", "href": carol, "name": "@carol@peer.example"}}, note["tag"])
		require.Equal(s.t, `<p><span class="h-card"><a href="`+carol+`" class="u-url mention">@<span>carol</span></a></span>`+
			` Yes, within &lt;a week&gt;.</p><p>Asha</p>`, note["content"])
		require.Equal(s.t, []string{carol}, []string(s.got[0].To))
		require.Empty(s.t, s.got[0].CC)

		// She answers our Note without naming anybody; then in the same conversation, without answering a Note.
		s.create(carol, "How much?", map[string]any{"inReplyTo": note["id"], "to": []string{}, "tag": []any{}})
		s.create(carol, "For 40.", map[string]any{"context": "https://peer.example/c/1"})
		last := s.create(carol, "And for 50?", map[string]any{"conversation": "tag:peer.example,2026:c1"})
		require.Equal(s.t, []string{"writer: Do you deliver to Jaipur?", "agent: Yes, within <a week>.\n\nAsha", "writer: How much?", "writer: For 40.",
			"writer: And for 50?"}, texts(s.thread()))
		s.reply(c.ThreadID, "INR 6 each.")
		require.Equal(s.t, last, s.sent(2)["inReplyTo"])

		// Another conversation is another thread, and nobody else joins one.
		s.create(carol, "Something else", map[string]any{"context": "https://peer.example/c/2"})
		s.create(alice, "Me too", map[string]any{"inReplyTo": note["id"], "context": "https://peer.example/c/1"})
		s.create(alice, "Not for you", map[string]any{"inReplyTo": note["id"], "to": []string{carol}, "tag": []any{}})
		all := s.threads("asha")
		require.Len(s.t, all, 3)
		require.Equal(s.t, []string{"writer: Me too"}, texts(all[0]))
	})
}

// The Note of a private answer is given to its addressee, by the addressee's own key or another one of its server, and to nobody
// else; nobody learns whether there is one.
func TestMessage_PrivateNote(t *testing.T) {
	t.Parallel()
	s := newCorrespondence(t, storage.Config{})
	s.create(carol, "Hello", nil)
	note := s.sentAfter("Hello, Carol")
	s.actors["https://peer.example/actor"] = &actorKeys{id: "https://peer.example/actor", keys: nodeKeys(104)}
	straight := func(*http.Request) {}
	unsigned := func(r *http.Request) { r.Header.Del("Signature") }
	forged := func(r *http.Request) { r.Header.Set("Date", "Fri, 20 Nov 2026 10:20:01 GMT") }
	unknown := "https://u.example/ap/messages/" + protocol.NewID(protocol.MessageID, s.tick.now())
	for name, c := range map[string]struct {
		actor, scheme, uri string
		bend               func(*http.Request)
		want               int
	}{
		"addressee":               {carol, schemeCavage, note, straight, 200},
		"addressee by RFC 9421":   {carol, schemeRSA, note, straight, 200},
		"its server":              {"https://peer.example/actor", schemeCavage, note, straight, 200},
		"another server":          {alice, schemeCavage, note, straight, 404},
		"unsigned":                {carol, schemeCavage, note, unsigned, 401},
		"forged":                  {carol, schemeCavage, note, forged, 401},
		"what is not there":       {carol, schemeCavage, unknown, straight, 404},
		"unsigned, what is not":   {carol, schemeCavage, unknown, unsigned, 401},
		"unsigned, what is no id": {carol, schemeCavage, "https://u.example/ap/messages/x", unsigned, 401},
	} {
		require.Equal(t, c.want, s.fetchAs(c.actor, c.scheme, c.uri, c.bend), name)
	}
}

// sentAfter answers asha's only thread and returns the id of the Note that carol was sent.
func (s *correspondence) sentAfter(text string) string {
	s.t.Helper()
	n := len(s.got)
	s.reply(s.thread().ThreadID, text)
	return s.sent(n + 1)["id"].(string)
}

// A public mention is a thread whose messages are marked as public, and so is the answer; what its writer then says in private
// makes the answers private.
func TestMessage_PublicMention(t *testing.T) {
	eachCorrespondence(t, func(s *correspondence) {
		public := map[string]any{"to": []string{activity.Public}, "cc": []string{carol + "/followers", asha}, "context": "https://peer.example/c/1"}
		s.create(carol, "@asha is she open?", public)
		c := s.thread()
		require.True(s.t, c.Messages.Items[0].Public)
		require.True(s.t, s.reply(c.ThreadID, "Until six.").Message.Public)
		note := s.sent(1)
		require.Equal(s.t, []any{[]any{activity.Public}, []any{carol}}, []any{note["to"], note["cc"]})
		require.NotNil(s.t, s.get(note["id"].(string)), "everyone may read it")
		for _, e := range s.logged() {
			require.NotContains(s.t, string(e.Activity), "is she open", "it is in no log")
		}

		s.create(carol, "unlisted", map[string]any{"to": []string{carol + "/followers"}, "cc": []string{activity.Public, asha}, "context": public["context"]})
		s.reply(c.ThreadID, "Quietly.")
		require.Equal(s.t, []any{activity.Public}, s.sent(2)["cc"])

		s.create(carol, "My address is secret", map[string]any{"inReplyTo": note["id"]})
		require.False(s.t, s.reply(c.ThreadID, "I keep it").Message.Public)
		require.Equal(s.t, []any{[]any{carol}, []any{}}, []any{s.sent(3)["to"], s.sent(3)["cc"]})
		s.create(carol, "In public again", map[string]any{"to": []string{activity.Public}, "inReplyTo": note["id"]})
		require.False(s.t, s.reply(c.ThreadID, "Still kept").Message.Public)
		require.Len(s.t, s.threads("asha"), 1)

		// Followers only is private.
		s.create(alice, "for my followers", map[string]any{"to": []string{alice + "/followers"}, "cc": []string{asha}})
		require.False(s.t, s.threads("asha")[0].Messages.Items[0].Public)
	})
}

// Whom the policy does not admit is told so, once a day, and told nothing else; whom the owner has blocked is told nothing.
func TestMessage_Refused(t *testing.T) {
	eachCorrespondence(t, func(s *correspondence) {
		s.profile("asha", &protocol.PolicyDraft{OutsideAgentsWithIdentity: true})
		s.profile("ravi", &protocol.PolicyDraft{Anonymous: true, Kinds: []string{"support"}})
		first := s.create(carol, "Hello", map[string]any{"context": "https://peer.example/c/1"})
		note := s.sent(1)
		require.Contains(s.t, note["content"], "does not accept anonymous messages")
		require.Contains(s.t, note["content"], "https://u.example/agents/asha")
		require.Equal(s.t, []any{[]any{carol}, []any{}, first, "https://peer.example/c/1", asha},
			[]any{note["to"], note["cc"], note["inReplyTo"], note["context"], note["attributedTo"]})
		require.Equal(s.t, 200, s.fetchAs(carol, schemeCavage, note["id"].(string), func(*http.Request) {}))
		require.Equal(s.t, 404, s.fetchAs(alice, schemeCavage, note["id"].(string), func(*http.Request) {}))
		ravi := []string{"https://u.example/ap/agents/ravi"}
		s.create(carol, "Again", nil)
		s.create(carol, "To another", map[string]any{"to": ravi, "tag": []any{}})
		require.Len(s.t, s.got, 1, "once a day")
		require.Empty(s.t, s.threads("asha"))
		s.create(carol, "My loom is broken", map[string]any{"to": ravi, "tag": map[string]any{"type": "Hashtag", "name": "#Support"}})
		require.Equal(s.t, protocol.Support, s.threads("ravi")[0].Kind)

		s.tick.pass(25 * time.Hour)
		s.create(carol, "The next day", nil)
		require.Len(s.t, s.got, 2)
		s.tick.pass(25 * time.Hour)
		require.NoError(s.t, s.node.write(func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.PruneExpired(ctx)) }))
		require.Equal(s.t, 404, s.fetchAs(carol, schemeCavage, s.sent(2)["id"].(string), func(*http.Request) {}))

		owner := protocol.Caller{Standing: protocol.Session, Account: "acc_2", Handle: "ravi", Handles: []string{"ravi"}}
		require.NoError(s.t, s.node.write(func(ctx context.Context, tx *storage.Tx) error {
			b, err := s.room.Block(ctx, tx, owner, protocol.NewBlock{ThreadRef: protocol.ThreadRef{ThreadID: s.threads("ravi")[0].ThreadID}})
			require.Equal(s.t, protocol.ByActor, b.KnownBy)
			return err
		}))
		s.create(carol, "After the block", map[string]any{"to": ravi, "tag": []any{}})
		s.create(carol, "#support", map[string]any{"to": ravi, "tag": map[string]any{"type": "Hashtag", "name": "#Support"}})
		require.Len(s.t, s.got, 2)
		require.Len(s.t, s.threads("ravi"), 1)
		require.Len(s.t, s.threads("ravi")[0].Messages.Items, 1)
	})
}
