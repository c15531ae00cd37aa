package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
)

// says delivers an activity of an actor, whose id is its number, and lets it be processed. object is JSON.
func (w *world) says(actor, kind string, n int, object string, more ...string) {
	w.t.Helper()
	body := fmt.Sprintf(`{"@context":"https://www.w3.org/ns/activitystreams","id":"https://%s/a/%s/%d","type":%q,"actor":%q,"object":%s%s}`,
		hostOf(actor), kind, n, kind, actor, object, strings.Join(more, ""))
	require.Equal(w.t, 202, w.deliver(actor, []byte(body)))
	settle(w.t, w.node)
	w.tick.pass(time.Millisecond)
}

func (w *world) said(actor, kind string, n int, object string) string {
	return fmt.Sprintf(`{"id":"https://%s/a/%s/%d","type":%q,"actor":%q,"object":%s}`, hostOf(actor), kind, n, kind, actor, object)
}

func quoted(s string) string { return `"` + s + `"` }

// counts are the likes, boosts and quotes of a post.
func (w *world) counts(p *protocol.StoredPost) [3]int {
	q := w.held(p.URI)
	return [3]int{q.Likes, q.Shares, q.Quotes}
}

// document is what the node serves at an address of its own.
func (w *world) fetched(id string) (status int, o map[string]any) {
	w.t.Helper()
	rw := httptest.NewRecorder()
	w.f.Handler().ServeHTTP(rw, httptest.NewRequest("GET", strings.TrimPrefix(id, w.base), nil))
	require.NoError(w.t, json.Unmarshal(rw.Body.Bytes(), &o))
	return rw.Code, o
}

func (w *world) head() (head int64) {
	w.read(func(ctx context.Context, tx *storage.Tx) (err error) {
		_, head, err = tx.Logs().Head(ctx, protocol.BoardID(w.base))
		return err
	})
	return head
}

// An actor's like and boost count once, are undone by nobody but the actor, and change neither log nor Create.
func TestReactions(t *testing.T) {
	onEachFollower(t, func(t *testing.T, f *follower) {
		w := f.w
		p := w.node.post(known)
		settle(t, w.node)
		object, head := quoted(p.URI), w.head()
		_, created := w.fetched(p.URI + "/activity")
		w.says(alice, "Like", 1, object)
		w.says(alice, "Like", 1, object)
		w.says(alice, "EmojiReact", 2, object)
		w.says(bob, "Like", 3, `{"id":`+object+`}`)
		w.says(bob, "Announce", 4, object)
		w.says(bob, "Announce", 5, object)
		w.says(mallory, "Dislike", 6, object)
		require.Equal(t, [3]int{2, 1, 0}, w.counts(p))
		for part, n := range map[string]float64{"likes": 2, "shares": 1} {
			_, o := w.fetched(p.URI + "/" + part)
			require.Equal(t, []any{p.URI + "/" + part, n, nil}, []any{o["id"], o["totalItems"], o["items"]})
			_, o = w.fetched(p.URI)
			require.Equal(t, n, o[part].(map[string]any)["totalItems"])
		}
		_, again := w.fetched(p.URI + "/activity")
		require.Equal(t, created, again)
		require.Equal(t, p.URI+"/likes", again["object"].(map[string]any)["likes"])
		require.Equal(t, head, w.head())
		require.Nil(t, w.held(p.URI).EditedAt)

		w.says(mallory, "Undo", 10, quoted("https://victim.example/a/Like/1"))
		w.says(bob, "Undo", 11, w.said(alice, "Like", 1, object))
		w.says(bob, "Undo", 12, quoted("https://victim.example/a/Like/1"))
		require.Equal(t, [3]int{2, 1, 0}, w.counts(p), "undone by who did not do it")
		w.says(alice, "Undo", 13, quoted("https://victim.example/a/Like/1"))
		w.says(alice, "Undo", 13, quoted("https://victim.example/a/Like/1"))
		require.Equal(t, [3]int{1, 1, 0}, w.counts(p))
		w.says(bob, "Undo", 14, w.said(bob, "Like", 99, object))
		w.says(bob, "Undo", 15, w.said(bob, "Announce", 4, object))
		require.Equal(t, [3]int{0, 0, 0}, w.counts(p), "one has forgotten the id of its like")
		w.says(alice, "Like", 20, object)
		require.Equal(t, [3]int{1, 0, 0}, w.counts(p))
		w.counted()
	})
}

// What is not a visible post of this node is not counted, nor what a stoa node's actor boosts, nor a silenced or blocked one; what was
// counted goes with its actor, or with a block of it.
func TestReactions_Whose(t *testing.T) {
	onEachFollower(t, func(t *testing.T, f *follower) {
		w := f.w
		p, hidden := w.node.post(known), w.node.post(known)
		w.change(hidden, protocol.Hidden, "hide")
		w.says(alice, "Like", 1, quoted(hidden.URI))
		w.says(alice, "Like", 2, quoted(w.reply))
		w.says(alice, "Like", 3, quoted("https://u.example/ap/board"))
		require.Equal(t, [3]int{}, w.counts(hidden))
		require.Zero(t, w.held(w.reply).Likes, "a copy")

		const board = "https://evil.example/ap/board"
		w.actors[board] = &actorKeys{id: board, keys: nodeKeys(103)}
		w.served[board] = func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", activity.MediaType)
			doc := strings.Replace(string(w.actors[board].document(t)), "{", `{"generator":{"implements":"urn:stoa:ns:v1#log"},`, 1)
			_, _ = rw.Write([]byte(doc))
		}
		w.says(board, "Announce", 4, quoted(p.URI))
		require.Equal(t, [3]int{}, w.counts(p), "it told its followers")

		for i, actor := range []string{alice, bob, mallory} {
			w.says(actor, "Like", 10+i, quoted(p.URI))
			w.says(actor, "Announce", 10+i, quoted(p.URI))
		}
		require.Equal(t, [3]int{3, 3, 0}, w.counts(p))
		w.says(alice, "Delete", 20, quoted(alice))
		require.Equal(t, [3]int{2, 2, 0}, w.counts(p))
		block := func(kind protocol.BlockKind, value string) {
			require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
				b := protocol.Block{ID: protocol.NewID(protocol.BlockID, tx.Now), Kind: kind, Value: value, CreatedAt: tx.Now}
				if err := tx.Blocks().Put(ctx, b); err != nil {
					return err
				}
				return tx.Reactions().DropOf(ctx, kind, value)
			}))
			settle(t, w.node)
		}
		block(protocol.BlockActor, bob)
		require.Equal(t, [3]int{1, 1, 0}, w.counts(p))
		block(protocol.BlockHost, "evil.example")
		require.Equal(t, [3]int{}, w.counts(p))
		w.counted()
	})
}

// Strangers cannot grow the table without bound: it has a limit a post, a domain and in all.
func TestAttack_Reactions(t *testing.T) {
	w := newWorld(t)
	w.f.growth.caps = map[storage.Stock]storage.Cap{storage.StockReactions: {Rows: 8, Bytes: 1 << 20}}
	p := w.node.post(known)
	for i := range 20 {
		require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			r := storage.Reaction{PostID: p.ID, Actor: fmt.Sprintf("https://h%d.example/u", i), Kind: storage.Like, URI: fmt.Sprintf("https://h%d.example/l", i)}
			require.True(t, must.Get(w.f.react(ctx, tx, r))(t))
			return nil
		}))
		w.tick.pass(time.Second)
		settle(t, w.node)
	}
	require.LessOrEqual(t, w.counts(p)[0], 9)
	require.Positive(t, w.counts(p)[0])
	w.counted()
}

// quoteOf is the instrument of a QuoteRequest.
func quoteOf(n int, author, to, of string) string {
	return fmt.Sprintf(`,"instrument":{"id":"https://victim.example/q/%d","type":"Note","attributedTo":%q,"to":[%q],"quote":%q}`, n, author, to, of)
}

// A public post may be quoted: the request is answered with a permission that is served until the post is hidden or deleted.
func TestQuotes(t *testing.T) {
	onEachFollower(t, func(t *testing.T, f *follower) {
		w := f.w
		p, q := w.node.post(known), w.node.post(known)
		settle(t, w.node)
		_, note := w.fetched(p.URI)
		require.Equal(t, map[string]any{"canQuote": map[string]any{"automaticApproval": []any{activity.Public}}}, note["interactionPolicy"])
		require.Contains(t, string(asJSON(t, note["@context"])), `"interactionPolicy":{"@id":"gts:interactionPolicy","@type":"@id"}`)
		f.got = nil
		ask := func(n int, object, instrument string) (kind, result string) {
			f.got = nil
			w.says(alice, "QuoteRequest", n, quoted(object), instrument)
			if len(f.got) == 0 {
				return "", ""
			}
			require.Len(t, f.got, 1)
			require.Equal(t, w.f.site.Agent("ada"), f.got[0].Actor.One(), "the post's author answers")
			request := must.JSON[activity.Activity](f.got[0].Object)(t)
			require.Equal(t, fmt.Sprintf("https://victim.example/a/QuoteRequest/%d", n), string(request.ID))
			return f.got[0].Type.String(), f.result
		}
		kind, stamp := ask(1, p.URI, quoteOf(1, alice, activity.Public, p.URI))
		require.Equal(t, "Accept", kind)
		status, o := w.fetched(stamp)
		require.Equal(t, 200, status)
		require.Equal(t, []any{"QuoteAuthorization", stamp, w.f.site.Agent("ada"), "https://victim.example/q/1", p.URI},
			[]any{o["type"], o["id"], o["attributedTo"], o["interactingObject"], o["interactionTarget"]})
		_, again := ask(2, p.URI, quoteOf(1, alice, activity.Public, p.URI))
		require.Equal(t, stamp, again, "one permission a quote")
		_, quiet := ask(3, p.URI, `,"instrument":"https://victim.example/q/3"`)
		require.NotEmpty(t, quiet)
		_, other := ask(4, q.URI, quoteOf(4, alice, activity.Public, q.URI))
		require.NotEmpty(t, other)
		require.Equal(t, [3]int{0, 0, 1}, w.counts(p), "what is not known to be public is not counted")
		for n, instrument := range []string{quoteOf(5, bob, activity.Public, p.URI), quoteOf(5, alice, activity.Public, q.URI)} {
			kind, result := ask(5+n, p.URI, instrument)
			require.Equal(t, []string{"Reject", ""}, []string{kind, result})
		}
		kind, _ = ask(8, p.URI, `,"instrument":"https://evil.example/q/3"`)
		require.Empty(t, kind, "not a post of who asks")
		status, _ = w.fetched(q.URI + strings.TrimPrefix(stamp, p.URI))
		require.Equal(t, 404, status, "of another post")

		f.got = nil
		w.change(p, protocol.Hidden, "hide")
		settle(t, w.node)
		require.Equal(t, "Undo Delete Delete", f.types())
		require.ElementsMatch(t, []string{stamp, quiet}, []string{f.got[1].ObjectID(), f.got[2].ObjectID()})
		status, _ = w.fetched(stamp)
		require.Equal(t, 404, status)
		kind, _ = ask(9, p.URI, quoteOf(9, alice, activity.Public, p.URI))
		require.Equal(t, "Reject", kind)
		w.change(p, protocol.Visible, "restore")
		settle(t, w.node)
		status, _ = w.fetched(stamp)
		require.Equal(t, 404, status, "revoked for good")
		require.Equal(t, [3]int{}, w.counts(p))

		f.got = nil
		w.change(q, protocol.Deleted, "delete")
		settle(t, w.node)
		require.Equal(t, "Delete Delete", f.types())
		status, _ = w.fetched(other)
		require.Equal(t, 410, status)
		_, last := ask(10, p.URI, quoteOf(10, alice, activity.Public, p.URI))
		require.NotEmpty(t, last)
		w.says(alice, "Delete", 11, quoted("https://victim.example/q/10"))
		require.Equal(t, [3]int{}, w.counts(p), "the quoting post is gone")
		w.counted()
	})
}

// counted checks that posts count what is stored; the room of these tests has no feed, which the rest of the check is about.
func (w *world) counted() {
	w.t.Helper()
	if err := w.db.Check(w.t.Context()); err != nil {
		require.NotContains(w.t, err.Error(), "reactions")
	}
}
