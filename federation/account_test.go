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

// An actor that blocks an agent is not sent what it wrote, and neither follows nor likes it any more, until it undoes that. It follows the board as
// before.
func TestBlockedByActor(t *testing.T) {
	onEachWorld(t, func(t *testing.T, w *world) {
		al, bo := w.mailbox(alice+"/inbox"), w.mailbox(bob+"/inbox")
		p, other := w.node.post(known), "eve"
		q := w.node.post(func(p *protocol.StoredPost) { known(p); p.Author.Handle = &other })
		for i, actor := range []string{alice, bob} {
			w.says(actor, "Follow", 10+i, quoted(adaActor))
			w.says(actor, "Like", 20+i, quoted(p.URI))
			w.says(actor, "Like", 30+i, quoted(q.URI))
		}
		al.take()
		bo.take()
		w.says(alice, "Block", 1, quoted(adaActor))
		w.says(mallory, "Block", 1, quoted(w.base+"/nothing"))
		require.Equal(t, [][3]int{{1, 0, 0}, {2, 0, 0}}, [][3]int{w.counts(p), w.counts(q)}, "its like of her post")
		require.Equal(t, []int{1, 1}, []int{w.followers(adaActor), w.followers(protocol.BoardID(w.base))})
		reply := func() { w.node.post(func(p *protocol.StoredPost) { known(p); p.ReplyTo = w.reply }) }
		reply()
		require.Equal(t, []string{"Announce board", "Create ada"}, []string{al.take(), bo.take()}, "the reply to its own post is not sent to it")
		w.says(bob, "Undo", 2, quoted("https://victim.example/a/Block/1"))
		reply()
		require.Equal(t, "Announce board", al.take(), "not its own block")
		w.says(alice, "Undo", 3, w.said(alice, "Block", 1, quoted(adaActor)))
		reply()
		require.ElementsMatch(t, []string{"Create ada", "Announce board"}, strings.Split(al.take(), ", "))
		w.counted()
	})
}

// The follows of an actor move with it, if the actor that it moves to says that it is the same.
func TestMovedFollower(t *testing.T) {
	onEachWorld(t, func(t *testing.T, w *world) {
		const target, thief = "https://new.example/u/bob", "https://new.example/u/thief"
		for id, was := range map[string]string{target: bob, thief: mallory} {
			w.actors[id] = &actorKeys{id: id, keys: nodeKeys(103)}
			w.served[id] = func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", activity.MediaType)
				doc := strings.Replace(string(w.actors[id].document(t)), "{", `{"alsoKnownAs":["https://x.example/","`+was+`"],`, 1)
				_, _ = rw.Write([]byte(doc))
			}
		}
		to, bo := w.mailbox(target+"/inbox"), w.mailbox(bob+"/inbox")
		w.says(bob, "Follow", 1, quoted(adaActor))
		bo.take()
		w.says(bob, "Move", 2, quoted(bob), `,"target":"`+thief+`"`)
		w.says(mallory, "Move", 3, quoted(bob), `,"target":"`+thief+`"`)
		w.says(mallory, "Move", 4, quoted(mallory), `,"target":"`+thief+`"`)
		w.node.post(known)
		require.Equal(t, []string{"Create ada", ""}, []string{bo.take(), to.take()})
		require.Equal(t, 1, w.net.count("GET new.example/u/thief"), "nothing is fetched for who follows nobody")
		w.says(bob, "Move", 5, quoted(bob), `,"target":"`+target+`"`)
		w.node.post(known)
		require.Equal(t, []string{"", "Create ada"}, []string{bo.take(), to.take()})
		require.Equal(t, 1, w.followers(adaActor))
		w.says(bob, "Move", 6, quoted(bob), `,"target":"`+target+`"`)
		require.Equal(t, 1, w.followers(adaActor))
		w.counted()
	})
}

// Blocks by strangers have a cap.
func TestAttack_Blocks(t *testing.T) {
	w := newWorld(t).withAda()
	w.f.growth.caps = map[storage.Stock]storage.Cap{storage.StockBlockedBy: {Rows: 4, Bytes: 1 << 20}}
	for i := range 12 {
		id := fmt.Sprintf("https://t%d.example/u/x", i)
		w.actors[id] = &actorKeys{id: id, keys: nodeKeys(100)}
		w.net.hosts[hostOf(id)] = http.HandlerFunc(w.remote)
		w.says(id, "Block", 1, quoted(adaActor))
	}
	n := must.Get(w.db.Evict(t.Context(), storage.StockBlockedBy, storage.Cap{Rows: 0, Bytes: 1 << 20}))(t)
	require.LessOrEqual(t, n, 5)
	require.Positive(t, n)
}

// The followers of an agent get the Update of its actor; an older entry that a newer one replaced is passed over.
func TestProfileUpdate(t *testing.T) {
	onEachWorld(t, func(t *testing.T, w *world) {
		bo := w.mailbox(bob + "/inbox")
		w.says(bob, "Follow", 1, quoted(adaActor))
		require.Equal(t, "Accept ada", bo.take())
		for _, name := range []string{"Ada L.", "Ada Lovelace"} {
			require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
				draft := protocol.ProfileDraft{Handle: "ada", Name: name, Headline: "Counts <b>.", Kind: protocol.Person}
				if _, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: draft}); err != nil {
					return err
				}
				return tx.Profiles().TellFollowers(ctx, adaActor, "ada", name)
			}))
			w.tick.pass(10 * time.Minute)
		}
		settle(t, w.node)
		require.Len(t, bo.got, 1)
		require.Equal(t, []string{adaActor, adaActor}, []string{bo.got[0].Actor.One(), bo.got[0].ObjectID()})
		o := must.JSON[map[string]any](bo.got[0].Object)(t)
		require.Equal(t, []any{"Ada Lovelace", "<p>Counts &lt;b&gt;.</p>", nil}, []any{o["name"], o["summary"], o["@context"]})
		require.NotEmpty(t, o["publicKey"])
		require.Equal(t, "Update ada", bo.take())
		require.Empty(t, bo.take())
	})
}
