package federation

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A mailbox is an inbox of the fediverse, personal or shared, that keeps what it is sent.
type mailbox struct {
	w   *world
	got []activity.Activity
}

func (w *world) mailbox(inbox string) *mailbox {
	m := &mailbox{w: w}
	w.net.hosts[hostOf(inbox)] = http.HandlerFunc(w.remote)
	w.served[inbox] = func(rw http.ResponseWriter, r *http.Request) {
		body := must.Get(io.ReadAll(r.Body))(w.t)
		a := must.JSON[activity.Activity](body)(w.t)
		m.got = append(m.got, a)
		rw.WriteHeader(202)
	}
	return m
}

// take returns what came since, as types with the last part of their actors.
func (m *mailbox) take() string {
	settle(m.w.t, m.w.node)
	var list []string
	for _, a := range m.got {
		actor := a.Actor.One()
		list = append(list, a.Type.String()+" "+actor[strings.LastIndexByte(actor, '/')+1:])
	}
	m.got = nil
	return strings.Join(list, ", ")
}

// sharing makes an actor of a server with a shared inbox.
func (w *world) sharing(id, shared string) string {
	w.actors[id] = &actorKeys{id: id, keys: nodeKeys(103)}
	w.net.hosts[hostOf(id)] = http.HandlerFunc(w.remote)
	w.served[id] = func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", activity.MediaType)
		doc := strings.Replace(string(w.actors[id].document(w.t)), "{", `{"endpoints":{"sharedInbox":"`+shared+`"},`, 1)
		_, _ = rw.Write([]byte(doc))
	}
	return id
}

const adaActor = "https://u.example/ap/agents/ada"

// withAda has ada's profile.
func (w *world) withAda() *world {
	require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "ada", Name: "Ada", Kind: protocol.Person}}))
	}))
	return w
}

func onEachWorld(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) { fn(t, newWorldOn(t, c).withAda()) })
}

func (w *world) followers(local string) int {
	return reads(w, func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Followers().Count(ctx, local) })
}

// Who follows an agent gets its posts from the agent, each once, also where the inbox follows the board; who follows only the board gets the
// board's boost. alice follows the board.
func TestFollowAgent(t *testing.T) {
	onEachWorld(t, func(t *testing.T, w *world) {
		al, bo := w.mailbox(alice+"/inbox"), w.mailbox(bob+"/inbox")
		w.says(bob, "Follow", 1, quoted(adaActor))
		w.says(bob, "Follow", 1, quoted(adaActor))
		require.Equal(t, "Accept ada", bo.take())
		_, o := w.fetched(adaActor + "/followers")
		require.Equal(t, []any{1.0, nil}, []any{o["totalItems"], o["orderedItems"]})

		p := w.node.post(known)
		settle(t, w.node)
		require.Equal(t, p.URI, bo.got[0].ObjectID())
		require.True(t, bo.got[0].Embedded())
		require.Equal(t, []string{"Create ada", "Announce board"}, []string{bo.take(), al.take()})
		w.node.post(nil)
		other := "eve"
		w.node.post(func(p *protocol.StoredPost) { known(p); p.Author.Handle = &other })
		require.Equal(t, []string{"", "Announce board"}, []string{bo.take(), al.take()}, "posts of others")

		w.says(alice, "Follow", 2, quoted(adaActor))
		require.Equal(t, "Accept ada", al.take())
		q := w.node.post(known)
		require.Equal(t, []string{"Create ada", "Create ada"}, []string{bo.take(), al.take()}, "once")
		w.change(q, protocol.Hidden, "hide")
		require.Equal(t, []string{"Delete ada", "Delete ada"}, []string{bo.take(), al.take()})
		w.change(q, protocol.Visible, "restore")
		require.Equal(t, []string{"Create ada", "Create ada"}, []string{bo.take(), al.take()})
		require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error { return w.tell(ctx, tx, q, "update") }))
		require.Equal(t, []string{"Update ada", "Update ada"}, []string{bo.take(), al.take()})
		w.change(p, protocol.Deleted, "delete")
		require.Equal(t, []string{"Delete ada", "Delete ada"}, []string{bo.take(), al.take()})

		w.says(mallory, "Undo", 3, w.said(bob, "Follow", 1, quoted(adaActor)))
		require.Equal(t, 2, w.followers(adaActor), "not its own")
		w.says(alice, "Undo", 4, w.said(alice, "Follow", 2, quoted(adaActor)))
		w.node.post(known)
		require.Equal(t, []string{"Create ada", "Announce board"}, []string{bo.take(), al.take()})
		w.says(bob, "Delete", 5, quoted(bob))
		require.Zero(t, w.followers(adaActor), "its account is deleted")
		w.node.post(known)
		require.Equal(t, []string{"", "Announce board"}, []string{bo.take(), al.take()})
		w.counted()
	})
}

// A shared inbox is sent a post once for all of its followers. It is boosted to it too when somebody there follows only the board.
func TestFollowAgent_SharedInbox(t *testing.T) {
	onEachWorld(t, func(t *testing.T, w *world) {
		const shared = "https://big.example/inbox"
		m := w.mailbox(shared)
		board := protocol.BoardID(w.base)
		var people []string
		for i := range 5 {
			people = append(people, w.sharing(fmt.Sprintf("https://big.example/u/%d", i), shared))
			w.says(people[i], "Follow", i, quoted(adaActor))
		}
		for i := range 2 {
			w.says(people[i], "Follow", 10+i, quoted(board))
		}
		m.take()
		w.node.post(known)
		require.Equal(t, "Create ada", m.take(), "everyone who follows the board follows the agent too")
		six := w.sharing("https://big.example/u/6", shared)
		w.says(six, "Follow", 20, quoted(board))
		m.take()
		p := w.node.post(known)
		got := m.take()
		require.ElementsMatch(t, []string{"Create ada", "Announce board"}, strings.Split(got, ", "), "the only thing that shows it to the sixth")
		w.change(p, protocol.Hidden, "hide")
		require.ElementsMatch(t, []string{"Delete ada", "Undo board"}, strings.Split(m.take(), ", "))
		w.says(people[0], "Undo", 30, w.said(people[0], "Follow", 0, quoted(adaActor)))
		w.says(six, "Undo", 31, w.said(six, "Follow", 20, quoted(board)))
		w.node.post(known)
		require.ElementsMatch(t, []string{"Create ada", "Announce board"}, strings.Split(m.take(), ", "))
		for i, one := range people[1:] {
			w.says(one, "Undo", 32+i, w.said(one, "Follow", 0, quoted(adaActor)))
		}
		w.node.post(known)
		require.Equal(t, "Announce board", m.take())
	})
}

// A profile that is deleted has no followers any more, nor has a new one of its handle.
func TestFollowAgent_Deleted(t *testing.T) {
	onEachWorld(t, func(t *testing.T, w *world) {
		m := w.mailbox(bob + "/inbox")
		w.says(bob, "Follow", 1, quoted(adaActor))
		m.take()
		require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Profiles().Delete(ctx, "ada"); err != nil {
				return err
			}
			return tx.Followers().EnqueueDrop(ctx, storage.GoneArgs{Actor: adaActor})
		}))
		settle(t, w.node)
		w.withAda()
		w.node.post(known)
		require.Empty(t, m.take())
		require.Equal(t, []int{0, 1}, []int{w.followers(adaActor), w.followers("")})
		w.counted()
	})
}

// The servers of the followers of an agent are told that it is gone.
func TestGone_Followers(t *testing.T) {
	onEachWorld(t, func(t *testing.T, w *world) {
		m := w.mailbox(bob + "/inbox")
		w.says(bob, "Follow", 1, quoted(adaActor))
		m.take()
		require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Profiles().Delete(ctx, "ada"); err != nil {
				return err
			}
			return tx.Followers().EnqueueDrop(ctx, storage.GoneArgs{Actor: adaActor, Board: adaActor})
		}))
		require.Equal(t, "Delete ada", m.take())
		require.Zero(t, w.followers(adaActor))
	})
}

// The follows of agents have limits: an agent's, where dead ones make room, and a host's.
func TestAttack_FollowersOfAgents(t *testing.T) {
	w := newWorld(t).withAda()
	w.f.maxFollowersOfHost = 3
	m := w.mailbox("https://big.example/inbox")
	for i := range 4 {
		w.says(w.sharing(fmt.Sprintf("https://big.example/u/%d", i), "https://big.example/inbox"), "Follow", i, quoted(adaActor))
	}
	w.says("https://big.example/u/0", "Follow", 0, quoted(protocol.BoardID(w.base)))
	require.Equal(t, 3, w.followers(adaActor))
	m.take()
	w.f.maxFollowers = 3
	bo := w.mailbox(bob + "/inbox")
	w.says(bob, "Follow", 1, quoted(adaActor))
	require.Equal(t, "Reject ada", bo.take())
	w.net.set("big.example", true)
	w.node.post(known)
	for range 30 {
		settle(t, w.node)
		w.tick.pass(16 * time.Hour)
	}
	w.says(bob, "Follow", 2, quoted(adaActor))
	require.Equal(t, "Accept ada", bo.take(), "the inbox of the others is given up")
	require.Equal(t, 1, w.followers(adaActor))
	for _, actor := range []string{"nobody", "ADA", "", "ada/", "ada#main-key"} {
		w.says(bob, "Follow", 9, quoted(w.f.site.Agent(actor)))
		require.Zero(t, w.followers(w.f.site.Agent(actor)), actor)
	}
}

// A reply is sent once to an inbox that follows its author, though it also mentions someone there.
func TestFollowAgent_Mentioned(t *testing.T) {
	w := newWorld(t).withAda()
	al := w.mailbox(alice + "/inbox")
	w.says(alice, "Follow", 1, quoted(adaActor))
	al.take()
	p := w.node.post(func(p *protocol.StoredPost) { known(p); p.ReplyTo = w.reply })
	require.Equal(t, "Create ada", al.take())
	w.change(p, protocol.Deleted, "delete")
	require.Equal(t, "Delete ada", al.take())
}

// A follower that the owner removes is told so, and gets nothing more.
func TestFollowAgent_Removed(t *testing.T) {
	onEachWorld(t, func(t *testing.T, w *world) {
		bo := w.mailbox(bob + "/inbox")
		w.says(bob, "Follow", 1, quoted(adaActor))
		bo.take()
		require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Followers().Reject(ctx, adaActor, bob) }))
		w.node.post(known)
		settle(t, w.node)
		require.Len(t, bo.got, 1)
		follow := must.JSON[activity.Activity](bo.got[0].Object)(t)
		require.Equal(t, "https://victim.example/a/Follow/1", string(follow.ID))
		require.Equal(t, "Reject ada", bo.take())
		w.says(bob, "Follow", 2, quoted(adaActor))
		require.Equal(t, "Accept ada", bo.take(), "it may follow again")
		require.Equal(t, 1, w.followers(adaActor))
	})
}

// Many followers cost what their inboxes cost: a request each.
func TestFollowAgent_Many(t *testing.T) {
	onEachWorld(t, func(t *testing.T, w *world) {
		boxes := []*mailbox{}
		for i := range 4 {
			boxes = append(boxes, w.mailbox(fmt.Sprintf("https://s%d.example/inbox", i)))
		}
		require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			for i := range 1000 {
				host := fmt.Sprintf("s%d.example", i%4)
				f := storage.Follower{Actor: fmt.Sprintf("https://%s/u/%d", host, i), SharedInbox: "https://" + host + "/inbox", Host: host}
				for _, f.LocalActor = range []string{adaActor, protocol.BoardID(w.base)} {
					if err := tx.Followers().Put(ctx, f); err != nil {
						return err
					}
					if i >= 4 {
						continue
					}
					_, head, err := w.f.logOf(ctx, tx, f.LocalActor)
					if err != nil {
						return err
					}
					if err := w.f.openOutlet(ctx, tx, f.LocalActor, f.SharedInbox, host, false, head); err != nil {
						return err
					}
				}
			}
			return nil
		}))
		w.tick.pass(time.Millisecond)
		w.node.post(known)
		settle(t, w.node)
		for _, m := range boxes {
			require.Equal(t, "Create ada", m.take(), "all of them follow both")
		}
	})
}

// What was posted before somebody followed the agent, and still waits for the inbox, is boosted to it.
func TestFollowAgent_Late(t *testing.T) {
	w := newWorld(t).withAda()
	al := w.mailbox(alice + "/inbox")
	w.net.set("victim.example", true)
	w.node.post(known)
	settle(t, w.node)
	w.tick.pass(time.Second)
	w.net.set("victim.example", false)
	require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, head, err := w.f.logOf(ctx, tx, adaActor)
		if err != nil {
			return err
		}
		f := storage.Follower{LocalActor: adaActor, Actor: alice, Inbox: alice + "/inbox", Host: "victim.example"}
		if err := tx.Followers().Put(ctx, f); err != nil {
			return err
		}
		return w.f.openOutlet(ctx, tx, adaActor, f.Inbox, f.Host, false, head)
	}))
	w.tick.pass(time.Hour)
	w.node.post(known)
	require.ElementsMatch(t, []string{"Announce board", "Create ada"}, strings.Split(al.take(), ", "))
}
