package federation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/integrity"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// proven is an activity of alice with her proof.
func (w *world) proven(body []byte) []byte {
	w.t.Helper()
	return must.Get(integrity.Sign(body, w.actors[alice].keys.Ed25519.Signer(), alice+"#ed25519-key", w.tick.now()))(w.t)
}

// TestReply_Unlisted: a reply whose author wants it in no public list is on the board, here and on the nodes that follow, and
// is boosted by neither: not to followers, and not in the outbox.
func TestReply_Unlisted(t *testing.T) {
	f := newFollower(t)
	w := f.w
	a := newNode(t, w.net, w.tick, 0, nil)
	a.follow(w.node)
	body := strings.ReplaceAll(string(w.note(30, "")), `"to":["as:Public"]`, `"to":["https://victim.example/users/alice/followers"],"cc":["as:Public"]`)
	require.NotContains(t, body, `"to":["as:Public"]`)
	require.Equal(t, 202, w.deliver(alice, w.proven([]byte(body))))
	require.Equal(t, 202, w.deliver(alice, w.note(31, "")))
	settle(t, w.node, a)
	require.True(t, w.held("https://victim.example/n/30").Unlisted)
	require.False(t, w.held("https://victim.example/n/31").Unlisted)
	require.Equal(t, "Announce", f.types())
	require.Equal(t, "https://victim.example/n/31", f.got[0].ObjectID())
	outbox := string(asJSON(t, w.node.get("https://u.example/ap/board/outbox?before=first")))
	require.Contains(t, outbox, "/n/31")
	require.NotContains(t, outbox, "/n/30")
	require.True(t, a.held("https://victim.example/n/30").Unlisted, "on the next node too")
}

// TestReply_Kept: what a post of the fediverse has beside its text is kept, or named as left out.
func TestReply_Kept(t *testing.T) {
	w := newWorld(t)
	a := newNode(t, w.net, w.tick, 0, nil)
	a.follow(w.node)
	prove := func(n int, more string) *protocol.StoredPost {
		t.Helper()
		require.Equal(t, 202, w.deliver(alice, w.proven(w.note(n, more))))
		settle(t, w.node, a)
		id := fmt.Sprint("https://victim.example/n/", n)
		here, there := w.held(id), a.held(id)
		require.NotNil(t, here)
		require.Equal(t, []any{here.Title, here.Body, here.Warning, here.Sensitive, here.Language},
			[]any{there.Title, there.Body, there.Warning, there.Sensitive, there.Language})
		return here
	}
	p := prove(40, `,"summary":"about <b>food</b>","sensitive":true,"contentMap":{"hi-IN":"<p>hi</p>"},"attachment":[
		{"type":"Document","mediaType":"image/png","url":"https://victim.example/ए b.png","name":"A paper\nkite"},
		{"type":"PropertyValue","name":"x","value":"y"},{"type":"Image","url":"javascript:alert(1)","name":"no"}]`)
	require.Equal(t, "about <b>food</b>", p.Warning)
	require.True(t, p.Sensitive)
	require.Equal(t, "hi-IN", p.Language)
	require.True(t, strings.HasPrefix(p.Title, "Re: "), p.Title)
	require.Equal(t, "hi\n\n[image: A paper kite] https://victim.example/%E0%A4%8F%20b.png\n(Attachments left out: 1)", p.Body)

	poll := strings.Replace(string(w.note(41, `,"oneOf":[{"type":"Note","name":"Tea"},{"type":"Note","name":"Coffee\u202e"}]`)),
		`"type":"Note"`, `"type":"Question"`, 1)
	require.Equal(t, 202, w.deliver(alice, []byte(poll)))
	many := strings.Repeat(fmt.Sprintf(`{"type":"Image","url":"https://victim.example/a.png","name":%q},`, strings.Repeat("é", 400)), 30)
	long := strings.Replace(string(w.note(42, `,"attachment":[`+many[:len(many)-1]+`]`)), "<p>hi</p>", "<p>"+strings.Repeat("long ", 1000)+"</p>", 1)
	require.Equal(t, 202, w.deliver(alice, []byte(long)))
	settle(t, w.node)
	require.Equal(t, "hi\n\n- Tea\n- Coffee", w.held("https://victim.example/n/41").Body)
	p = w.held("https://victim.example/n/42")
	require.LessOrEqual(t, len([]rune(p.Body)), 4000)
	require.Contains(t, p.Body, "long…\n\n[image: ééé")
	require.Contains(t, p.Body, "…] https://victim.example/a.png\n(Attachments left out: 26)")
}

// edit is an Update of a note of alice.
func (w *world) edit(n int, updated, content, more string) []byte {
	w.t.Helper()
	body := strings.Replace(string(w.note(n, `,"updated":"`+updated+`"`+more)), `"type":"Create"`, `"type":"Update"`, 1)
	return w.proven([]byte(strings.Replace(body, "<p>hi</p>", "<p>"+content+"</p>", 1)))
}

// TestUpdate: a reply changes with its author's Update, here and on the nodes that follow; the log no longer has the earlier text,
// and the board keeps it as a revision.
func TestUpdate(t *testing.T) {
	w := newWorld(t)
	a := newNode(t, w.net, w.tick, 0, nil)
	a.follow(w.node)
	const uri = "https://victim.example/n/50"
	require.Equal(t, 202, w.deliver(alice, w.proven(w.note(50, ""))))
	settle(t, w.node, a)
	require.Equal(t, "hi", a.held(uri).Body)

	w.tick.pass(time.Minute)
	at := func(s int) string { return w.tick.now().Add(time.Duration(s) * time.Second).UTC().Format(time.RFC3339) }
	require.Equal(t, 202, w.deliver(alice, w.edit(50, at(-5), "changed", `,"tag":[{"type":"Hashtag","name":"#Offer"},{"type":"Hashtag","name":"#tea"}]`)))
	require.Equal(t, 202, w.deliver(alice, w.edit(50, at(-9), "older, later", "")))
	require.Equal(t, 202, w.deliver(alice, w.edit(50, at(3600), "of the future", "")))
	require.Equal(t, 202, w.deliver(alice, w.edit(50, "", "without a time", "")))
	settle(t, w.node, a)
	for _, n := range []*node{w.node, a} {
		p := n.held(uri)
		require.Equal(t, []any{"changed", []string{"tea"}, 1, protocol.Announcement}, []any{p.Body, p.Tags, p.Revisions, p.Kind})
		require.NotNil(t, p.EditedAt)
		n.read(func(ctx context.Context, tx *storage.Tx) error {
			all, err := tx.Posts().Revisions(ctx, p.ID)
			require.Len(t, all, 1)
			require.Equal(t, "hi", all[0].Body)
			require.Equal(t, p.CreatedAt, all[0].WrittenAt)
			found, err2 := tx.Posts().List(ctx, protocol.BoardQuery{Q: "changed"})
			require.Len(t, found.Items, 1)
			require.NoError(t, err2)
			return err
		})
	}
	for _, e := range w.logged() {
		require.NotContains(t, string(e.Activity), ">hi<")
	}
	// A node that reads the log from its beginning has the text of today.
	b := newNode(t, w.net, w.tick, 1, nil)
	b.follow(w.node)
	require.Equal(t, "changed", b.held(uri).Body)

	// Nobody else changes it, and not for ever.
	require.NotEqual(t, 202, w.deliver(mallory, []byte(strings.ReplaceAll(string(w.edit(50, at(10), "forged", "")), alice, mallory))))
	stolen := strings.Replace(string(w.note(50, `,"updated":"`+at(11)+`"`)), `"type":"Create"`, `"type":"Update"`, 1)
	stolen = strings.ReplaceAll(stolen, "https://victim.example/a/50", "https://victim.example/b/50")
	stolen = strings.ReplaceAll(strings.ReplaceAll(stolen, alice, bob), "<p>hi</p>", "<p>stolen</p>")
	w.deliver(bob, []byte(stolen))
	for i := range protocol.MaxRevisions + 3 {
		w.tick.pass(time.Minute)
		require.Equal(t, 202, w.deliver(alice, w.edit(50, at(0), fmt.Sprint("text ", i), "")))
		settle(t, w.node, a)
	}
	require.Equal(t, protocol.MaxRevisions, w.held(uri).Revisions)
	require.Equal(t, fmt.Sprint("text ", protocol.MaxRevisions-2), w.held(uri).Body)
	require.Equal(t, w.held(uri).Body, a.held(uri).Body)

	// Deleted, nothing of any text is left.
	require.Equal(t, 202, w.deliver(alice, fmt.Appendf(nil, `{"id":"%s#d","type":"Delete","actor":%q,"object":%q}`, uri, alice, uri)))
	settle(t, w.node, a)
	w.read(func(ctx context.Context, tx *storage.Tx) error {
		require.Empty(t, must.Get(tx.Posts().Revisions(ctx, w.held(uri).ID))(t))
		return nil
	})
	for _, n := range []*node{w.node, a} {
		require.Equal(t, []any{protocol.Deleted, ""}, []any{n.held(uri).State, n.held(uri).Body})
	}
}
