package board

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// notices returns who is to be told of what by the notices that wait, and ends those.
func (b bench) notices() (told []protocol.Notice) {
	b.t.Helper()
	for {
		jobs, _, err := b.db.ClaimJobs(b.t.Context(), "test", 20, time.Minute)
		require.NoError(b.t, err)
		for _, j := range jobs {
			require.NoError(b.t, write(b.t, b.db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Finish(ctx, j.ID) }))
			if j.Kind == storage.NoticeJob {
				n := must.JSON[protocol.Notice](j.Args)(b.t)
				told = append(told, n)
			}
		}
		if len(jobs) == 0 {
			return told
		}
	}
}

// TestNamed: who a post names is told, by posts of this node as @handle and by those of others with the host; never the author, who blocked the
// author, or more than five of a post. A flood of strangers ends, and does not keep verified authors out.
func TestNamed(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		b := bench{&Board{Base: base}, db, t}
		var all []string
		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i := range 8 {
				all = append(all, "@named-"+fmt.Sprint(i))
			}
			for _, handle := range append([]string{"asha", "ravi", "mehta", "silent"}, strings.Split(strings.ReplaceAll(strings.Join(all, " "), "@", ""), " ")...) {
				draft := protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Person}
				if _, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: draft}); err != nil {
					return err
				}
				if handle == "silent" {
					continue
				}
				if err := tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: handle, Webhook: "https://hook.example/n"}); err != nil {
					return err
				}
			}
			return tx.ContactBlocks().Insert(ctx, &storage.ContactBlock{ID: "blk_1", Handle: "mehta", Writer: "handle:asha", Names: []string{"handle:asha"}})
		}))
		post := func(c protocol.Caller, body, parent string) (p protocol.MadePost) {
			require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				p, err = b.Post(ctx, tx, c, protocol.NewPost{Kind: protocol.Offer, Title: "Yarn", Body: body, InReplyTo: parent})
				return err
			}))
			return p
		}
		told := func() (handles []string) {
			for _, n := range b.notices() {
				require.Equal(t, protocol.ProfileNamed, n.Event)
				handles = append(handles, n.Handle)
			}
			return handles
		}
		first := post(asha, "Hello @ravi, @mehta, @silent, @asha and @nobody. Not a@ravi.example, https://n1.example/@ravi or @ravi@m.example.", "")
		got := b.notices()
		require.Len(t, got, 1)
		require.Equal(t, protocol.Notice{Handle: "ravi", Event: protocol.ProfileNamed, Subject: first.ID, Title: "Asha: Yarn", At: got[0].At}, got[0])

		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(b.Edit(ctx, tx, asha, protocol.PostEdit{ID: first.ID, Kind: protocol.Offer, Title: "Yarn", Body: "@ravi and @named-0"}))
		}))
		require.Equal(t, []string{"named-0"}, told(), "only who is new in the text")
		post(asha, strings.Join(all, " "), "")
		require.Len(t, told(), protocol.MaxMentions)
		reply := post(visitor, "@Asha@N1.example: yes", first.ID)
		require.Equal(t, []string{"asha"}, told())

		n := 0
		receive := func(parent, body string, named ...string) {
			n++
			actor, host, uri := "https://m.example/u/carol", "m.example", fmt.Sprint("https://m.example/", n)
			require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(b.ReceivePost(ctx, tx, &protocol.StoredPost{Board: b.ID(), ReplyTo: parent, Named: named, Post: protocol.Post{
					ID: protocol.RemoteID(protocol.PostID, tx.Now, uri), URI: uri, Kind: protocol.Announcement, Title: "t", Body: body, CreatedAt: tx.Now,
					Author: protocol.Author{Name: "Carol", Node: &host, Actor: &actor, Method: protocol.ByFederation}, Node: &host,
				}}))
			}))
		}
		receive(first.URI, "@ravi is one of that server", protocol.ActorID(base, "asha"), "https://m.example/u/x")
		require.Empty(t, told(), "whom a reply answers is not named by that")
		receive(reply.URI, "@ravi@n1.example", protocol.ActorID(base, "asha"))
		require.ElementsMatch(t, []string{"ravi", "asha"}, told())

		for range 2 * namedStrangers {
			post(visitor, "@ravi look", "")
		}
		require.Len(t, told(), namedStrangers-1, "one was told of before")
		post(asha, "@ravi look", "")
		require.Equal(t, []string{"ravi"}, told())
		for range namedKnown {
			post(asha, "@ravi look", "")
		}
		require.Len(t, told(), namedKnown-2)
	})
}
