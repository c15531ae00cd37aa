package board

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/room/moderation"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// Whom a reply answers is told directly, once, and never by what visitors write.
func TestTell_WhoIsAnswered(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		b := bench{&Board{Base: base}, db, t}
		mod := &moderation.Moderation{Distribute: b.Distribute, Delete: b.Delete}
		receive := func(uri, board, actor string) (id string) {
			host := "m.example"
			require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				id, err = b.ReceivePost(ctx, tx, &protocol.StoredPost{Board: board, Post: protocol.Post{
					ID: protocol.RemoteID(protocol.PostID, tx.Now, uri), URI: uri, Kind: protocol.Announcement, Title: "t", Body: "b",
					Author: protocol.Author{Name: "Carol", Node: &host, Actor: &actor, Method: protocol.ByFederation}, Node: &host, CreatedAt: tx.Now,
				}})
				return err
			}))
			return id
		}
		const carol = "https://m.example/u/carol"
		told := func() (list []submission) {
			jobs, _, err := db.ClaimJobs(t.Context(), "test", 20, time.Minute)
			require.NoError(t, err)
			for _, j := range jobs {
				require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Finish(ctx, j.ID) }))
				if j.Kind != "submit" {
					continue // a letter to the author's owner
				}
				s := must.JSON[submission](j.Args)(t)
				require.Equal(t, "to:"+must.Get(url.Parse(s.To))(t).Host, j.Lane)
				s.At = 0
				list = append(list, s)
			}
			return list
		}
		decide := func(do func(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Decision) (protocol.PostStanding, error), id string) {
			require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(do(ctx, tx, operator, protocol.Decision{ID: id}))
			}))
		}

		note := receive("https://m.example/n/1", b.ID(), carol)
		p := b.post(asha, protocol.Offer, note)
		require.Equal(t, []submission{{Post: p.ID, Kind: "create", To: carol, Direct: true}}, told())
		b.post(visitor, protocol.Offer, note)
		b.post(ravi, protocol.Offer, p.ID)
		require.Empty(t, told(), "by a visitor, and to a post of this node")
		decide(mod.Hide, p.ID)
		require.Equal(t, []submission{{Post: p.ID, Kind: "hide", To: carol, Direct: true}}, told())
		decide(mod.Restore, p.ID)
		require.Equal(t, []submission{{Post: p.ID, Kind: "restore", To: carol, Direct: true}}, told())
		decide(mod.Remove, p.ID)
		require.Equal(t, []submission{{Post: p.ID, Kind: "delete", To: carol, Direct: true}}, told())

		// Who fetched a post is told when it is withdrawn, once a server, and no
		// follower, which the log tells.
		fetched := func(post, host, actor string) (fresh bool) {
			require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				fresh, err = tx.Posts().PutReader(ctx, post, host, actor)
				return err
			}))
			return fresh
		}
		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Outlets().Put(ctx, storage.Outlet{Board: b.ID(), Inbox: "https://f.example/inbox", Host: "f.example"})
		}))
		anonymous, signed := b.post(visitor, protocol.Offer, ""), b.post(asha, protocol.Offer, note)
		told()
		const dave = "https://m.example/u/dave"
		for _, id := range []string{anonymous.ID, signed.ID} {
			require.True(t, fetched(id, "m.example", dave))
			require.False(t, fetched(id, "m.example", carol))
			require.False(t, fetched(id, "f.example", "https://f.example/u"))
		}
		decide(mod.Hide, anonymous.ID)
		require.Equal(t, []submission{{Post: anonymous.ID, Kind: "hide", To: dave, Direct: true}}, told())
		require.False(t, fetched(anonymous.ID, "g.example", "https://g.example/u"), "it is not shown")
		decide(mod.Restore, anonymous.ID)
		require.Empty(t, told())
		for _, id := range []string{anonymous.ID, signed.ID} {
			decide(mod.Remove, id)
			to := map[string]string{anonymous.ID: dave, signed.ID: carol}[id]
			require.Equal(t, []submission{{Post: id, Kind: "delete", To: to, Direct: true}}, told())
			require.NoError(t, db.Numbered(t.Context()))
			require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				require.Empty(t, must.Get(tx.Posts().Readers(ctx, id))(t))
				return nil
			}))
		}

		// On the board of another node: the board, and a third server's author.
		far := receive("https://m.example/n/2", "https://m.example/ap/board", carol)
		r := b.post(asha, protocol.Offer, far)
		require.Equal(t, []submission{{Post: r.ID, Kind: "create", To: "https://m.example/ap/board"}}, told(), "who is of the board's own node reads the board")
		third := receive("https://m.example/n/3", "https://m.example:8443/ap/board", carol)
		q := b.post(asha, protocol.Offer, third)
		require.ElementsMatch(t, []submission{{Post: q.ID, Kind: "create", To: "https://m.example:8443/ap/board"},
			{Post: q.ID, Kind: "create", To: carol, Direct: true}}, told())
	})
}

// A reply of another server that the operator deletes leaves our board's log,
// and the board's followers are told.
func TestDelete_ForeignReply(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		b := bench{&Board{Base: base}, db, t}
		host, uri := "m.example", "https://m.example/n/1"
		var id string
		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
			id, err = b.ReceivePost(ctx, tx, &protocol.StoredPost{Board: b.ID(), Post: protocol.Post{
				ID: protocol.RemoteID(protocol.PostID, tx.Now, uri), URI: uri, Kind: protocol.Announcement, Title: "t", Body: "b",
				Author: protocol.Author{Name: "Carol", Node: &host, Method: protocol.ByFederation}, Node: &host, CreatedAt: tx.Now,
			}})
			if err == nil {
				err = tx.Logs().Append(ctx, b.ID(), "create", id, []byte("what was received"))
			}
			return err
		}))
		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(b.Delete(ctx, tx, operator, protocol.PostRef{ID: id}))
		}))
		require.NoError(t, db.Numbered(t.Context()))
		require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			entries, err := tx.Logs().After(ctx, b.ID(), 0, 10)
			require.Len(t, entries, 2)
			require.True(t, entries[0].Redacted)
			require.Nil(t, entries[0].Activity)
			require.Equal(t, storage.LogHide, entries[1].Kind)
			return err
		}))
	})
}

// Who is named as @handle@host and wrote in the thread is mentioned, and told like
// the author who is answered.
func TestPost_Mentions(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		b := bench{&Board{Base: base}, db, t}
		root := b.post(asha, protocol.QuestionPost, "")
		reply := func(handle, host string) (actor, id string) {
			actor = "https://" + host + "/u/" + handle
			uri := actor + "/1"
			require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				id, err = b.ReceivePost(ctx, tx, &protocol.StoredPost{Board: b.ID(), ReplyTo: root.URI, Post: protocol.Post{
					ID: protocol.RemoteID(protocol.PostID, tx.Now, uri), URI: uri, Kind: protocol.Announcement, Title: "t", Body: "b",
					Author: protocol.Author{Name: handle, Handle: &handle, Node: &host, Actor: &actor, Method: protocol.ByFederation}, Node: &host, CreatedAt: tx.Now,
				}})
				return err
			}))
			return actor, id
		}
		carol, first := reply("carol", "m.example")
		dave, _ := reply("Dave_1", "f.example:8443")
		reply("erin", "m.example")
		post := func(c protocol.Caller, body, parent string) (p *protocol.StoredPost) {
			require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				made, err := b.Post(ctx, tx, c, protocol.NewPost{Kind: protocol.Offer, Title: "t", Body: body, InReplyTo: parent})
				if err == nil {
					p, err = tx.Posts().ByID(ctx, made.ID)
				}
				return err
			}))
			return p
		}
		told := func() (to []string) {
			jobs, _, err := db.ClaimJobs(t.Context(), "test", 20, time.Minute)
			require.NoError(t, err)
			for _, j := range jobs {
				s := must.JSON[submission](j.Args)(t)
				to = append(to, string(s.Kind)+" "+s.To)
				require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Finish(ctx, j.ID) }))
			}
			return to
		}
		text := "@carol@m.example and (@Dave_1@F.example:8443), @carol@m.example: not a@b@m.example, @nobody@m.example, @carol@other.example."
		p := post(asha, text, root.ID)
		require.Equal(t, []protocol.Mention{{Handle: "carol", Host: "m.example", Actor: carol}, {Handle: "Dave_1", Host: "f.example:8443", Actor: dave}}, p.Mentions)
		require.ElementsMatch(t, []string{"create " + carol, "create " + dave}, told())
		require.Empty(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(b.Delete(ctx, tx, asha, protocol.PostRef{ID: p.ID}))
		}))
		require.ElementsMatch(t, []string{"delete " + carol, "delete " + dave}, told())

		q := post(asha, "@carol@m.example @Dave_1@f.example:8443 @erin@m.example", first)
		require.Len(t, q.Mentions, 2, "the author who is answered is mentioned as such")
		require.ElementsMatch(t, []string{"create " + carol, "create " + dave}, told(), "once a server")
		require.Empty(t, post(visitor, text, root.ID).Mentions)
		require.Empty(t, post(asha, text, "").Mentions, "outside of the thread")
		require.Empty(t, told())
	})
}

// What an agent with followers posts, on whatever board, and what becomes of it, is in its own log; what others post is not.
func TestTell_Followers(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		b := bench{&Board{Base: base}, db, t}
		mod := &moderation.Moderation{Distribute: b.Distribute, Delete: b.Delete}
		before := b.post(asha, protocol.Offer, "")
		actor := protocol.ActorID(base, *before.Author.Handle)
		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			if _, err := tx.Logs().OpenAgent(ctx, actor); err != nil {
				return err
			}
			return tx.Followers().Put(ctx, storage.Follower{LocalActor: actor, Actor: "https://m.example/u/carol", Host: "m.example"})
		}))
		p := b.post(asha, protocol.Offer, "")
		b.post(visitor, protocol.Offer, "")
		b.post(ravi, protocol.Offer, "")
		decisions := []func(context.Context, *storage.Tx, protocol.Caller, protocol.Decision) (protocol.PostStanding, error){mod.Hide, mod.Restore}
		for _, decide := range decisions {
			require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(decide(ctx, tx, operator, protocol.Decision{ID: p.ID}))
			}))
		}
		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(b.Delete(ctx, tx, asha, protocol.PostRef{ID: p.ID}))
		}))
		require.NoError(t, db.Numbered(t.Context()))
		var kinds []storage.LogKind
		require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			entries, err := tx.Logs().After(ctx, actor, 0, 10)
			for _, e := range entries {
				require.Equal(t, p.ID, e.ObjectID)
				require.Equal(t, e.Kind != storage.LogDelete, e.Redacted, e.Kind)
				kinds = append(kinds, e.Kind)
			}
			return err
		}))
		require.Equal(t, []storage.LogKind{"create", "hide", "restore", "delete"}, kinds)
		require.NoError(t, db.Check(t.Context()))
	})
}
