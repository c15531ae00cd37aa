package storage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func write(t testing.TB, db *storage.DB, fn func(ctx context.Context, tx *storage.Tx) error) {
	t.Helper()
	require.NoError(t, db.Write(t.Context(), fn))
	require.NoError(t, db.Numbered(t.Context()))
}

func read(t testing.TB, db *storage.DB, fn func(ctx context.Context, tx *storage.Tx) error) {
	t.Helper()
	require.NoError(t, db.Read(t.Context(), fn))
}

// each runs a test with a database of each engine, beside other tests.
func each(t *testing.T, fn func(t *testing.T, db *storage.DB)) {
	t.Parallel()
	storagetest.Each(t, fn)
}

func eachConfig(t *testing.T, fn func(t *testing.T, c storage.Config)) {
	t.Parallel()
	storagetest.EachConfig(t, fn)
}

// reads gives what a read returns.
func reads[T any](t testing.TB, db *storage.DB, fn func(ctx context.Context, tx *storage.Tx) (T, error)) (v T) {
	t.Helper()
	read(t, db, func(ctx context.Context, tx *storage.Tx) error {
		var err error
		v, err = fn(ctx, tx)
		return err
	})
	return v
}

// writes gives what a write returns.
func writes[T any](t testing.TB, db *storage.DB, fn func(ctx context.Context, tx *storage.Tx) (T, error)) (v T) {
	t.Helper()
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		var err error
		v, err = fn(ctx, tx)
		return err
	})
	return v
}

// store writes posts as a room does, and returns them.
func store(t testing.TB, db *storage.DB, posts ...*protocol.StoredPost) {
	t.Helper()
	for _, p := range posts {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return publish(ctx, tx, p) })
	}
}

// remotePost is a post of another node.
func remotePost(at time.Time, name string) *protocol.StoredPost {
	p := samplePost(at, 1)
	p.URI, p.Node = "https://far.example/notes/"+name, ptr("far.example")
	p.Author.Node, p.Author.Handle, p.Author.Verified, p.Author.Method = ptr("far.example"), ptr("asha"), false, protocol.ByFederation
	p.Object = []byte(`{"type":"Note"}`)
	return p
}

func TestPost_RoundTrip(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		local, remote := samplePost(start, 1), remotePost(start.Add(time.Second), "1")
		remote.Statement, remote.Tags = []byte(`{"a":1}`), []string{}
		store(t, db, local, remote)
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, want := range []*protocol.StoredPost{local, remote} {
				got := must.Get(tx.Posts().ByID(ctx, want.ID))(t)
				require.Equal(t, want, got)
				got = must.Get(tx.Posts().ByURI(ctx, want.URI))(t)
				require.Equal(t, want, got)
			}
			for _, absent := range []string{"", "post_x", protocol.NewID(protocol.PostID, start), "post_" + strings.Repeat("0", 26), "post_" + strings.Repeat("!", 26)} {
				require.ErrorIs(t, must.Err(tx.Posts().ByID(ctx, absent)), storage.ErrNotFound, absent)
				require.ErrorIs(t, must.Err(tx.Posts().ByURI(ctx, base+"/ap/posts/"+absent)), storage.ErrNotFound)
			}
			require.Equal(t, 1, must.Get(tx.Posts().Count(ctx))(t))
			return nil
		})
		require.NoError(t, db.Check(t.Context()))
	})
}

func TestInsertPost_Conflicts(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		local, remote := samplePost(start, 1), remotePost(start, "1")
		store(t, db, local, remote)
		again := func(p *protocol.StoredPost) error {
			return db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Posts().Insert(ctx, p) })
		}
		require.ErrorIs(t, again(local), storage.ErrExists, "same id, another transaction")
		copied := *remote
		copied.ID = protocol.NewID(protocol.PostID, start)
		require.ErrorIs(t, again(&copied), storage.ErrExists, "same uri, another id")

		fresh := samplePost(start, 2)
		err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			require.NoError(t, tx.Posts().Insert(ctx, fresh))
			return tx.Posts().Insert(ctx, fresh)
		})
		require.ErrorIs(t, err, storage.ErrExists, "same id, same transaction")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Posts().SetState(ctx, remote.ID, protocol.Deleted, "origin")
		})
		require.ErrorIs(t, again(&copied), storage.ErrExists, "a deleted post does not return")
		bad := samplePost(start, 3)
		bad.ID = "nonsense"
		require.Error(t, again(bad))
	})
}

// Two ids that share their first 63 bits exist next to each other.
func TestInsertPost_NeighbouringIDs(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		first := protocol.NewID(protocol.PostID, start)
		var posts []*protocol.StoredPost
		for _, end := range "0123456789" {
			p := samplePost(start, 1)
			p.ID = first[:len(first)-1] + string(end)
			p.URI = base + "/ap/posts/" + p.ID
			posts = append(posts, p)
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, p := range posts[:5] {
				if err := tx.Posts().Insert(ctx, p); err != nil {
					return err
				}
			}
			return nil
		})
		for _, p := range posts[5:] {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Posts().Insert(ctx, p) })
		}
		require.Len(t, walkBoard(t, db, protocol.BoardQuery{Paging: protocol.Paging{Limit: 3}}), 10)
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, p := range posts {
				require.Equal(t, p.ID, must.Get(tx.Posts().ByURI(ctx, p.URI))(t).ID)
			}
			return nil
		})
	})
}

// walkBoard follows a listing to its end and returns the ids.
func walkBoard(t testing.TB, db *storage.DB, q protocol.BoardQuery) (ids []string) {
	t.Helper()
	for {
		p := reads(t, db, func(ctx context.Context, tx *storage.Tx) (protocol.List[protocol.Post], error) {
			return tx.Posts().List(ctx, q)
		})
		for _, post := range p.Items {
			ids = append(ids, post.ID)
		}
		if p.Next == nil {
			return ids
		}
		q.After = *p.Next
	}
}

func TestListPosts_FiltersCombine(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "Asha", Kind: protocol.Person}}))
		})
		var all []*protocol.StoredPost
		for n := range 120 {
			p := samplePost(start.Add(time.Duration(n)*time.Second), int64(n))
			if n%3 == 0 {
				p = remotePost(start.Add(time.Duration(n)*time.Second), fmt.Sprint(n))
				p.Kind = protocol.PostKinds[n%7]
			}
			p.Author.Verified = n%2 == 0
			p.Tags = []string{"paper"}
			if n%5 == 0 {
				p.Tags = []string{"ink.blue_2"}
			}
			p.Body = []string{"indigo vat", "madder root and indigo", "lac"}[n%4%3]
			if n%4 == 1 {
				p.Author.Handle = ptr("ben")
			}
			all = append(all, p)
		}
		store(t, db, all...)
		match := func(p *protocol.StoredPost, q protocol.BoardQuery) bool {
			byAuthor := q.Author == "" || *p.Author.Handle == q.Author && (q.Author != "asha" || p.Author.Node == nil)
			return (q.Kind == "" || p.Kind == q.Kind) && (q.Tag == "" || p.Tags[0] == q.Tag) && byAuthor &&
				(!q.VerifiedOnly || p.Author.Verified) && (q.Q == "" || strings.Contains(p.Body, q.Q))
		}
		for _, kind := range []protocol.PostKind{"", protocol.Offer} {
			for _, tag := range []string{"", "ink.blue_2", "none"} {
				for _, q := range []string{"", "indigo"} {
					for _, author := range []string{"", "asha", "ben", "nobody"} {
						for _, verified := range []bool{false, true} {
							query := protocol.BoardQuery{Kind: kind, Tag: tag, Q: q, Author: author, VerifiedOnly: verified, Paging: protocol.Paging{Limit: 7}}
							var want []string
							for i := len(all) - 1; i >= 0; i-- {
								if match(all[i], query) {
									want = append(want, all[i].ID)
								}
							}
							require.Equal(t, want, walkBoard(t, db, query), "%+v", query)
						}
					}
				}
			}
		}
	})
}

func TestListings_RefuseForeignCursors(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		for _, after := range []string{"x", "????", *protocol.Cursor("feed", "12"), *protocol.Cursor("board", "post_1"), *protocol.Cursor("board", "-4")} {
			err := db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(tx.Posts().List(ctx, protocol.BoardQuery{Paging: protocol.Paging{After: after}}))
			})
			require.Equal(t, protocol.InvalidCursor, protocol.CodeOf(err), after)
		}
	})
}

func TestReplies(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		root := samplePost(start, 1)
		store(t, db, root)
		var replies []*protocol.StoredPost
		for n := range 5 {
			r := samplePost(start.Add(time.Duration(n+1)*time.Second), int64(n))
			r.InReplyTo, r.ReplyTo = ptr(root.ID), root.URI
			replies = append(replies, r)
		}
		store(t, db, replies...)
		early := remotePost(start.Add(time.Minute), "child")
		early.ReplyTo = "https://far.example/notes/parent"
		store(t, db, early)
		parent := remotePost(start.Add(2*time.Minute), "parent")
		store(t, db, parent)
		late := remotePost(start.Add(3*time.Minute), "late")
		late.ReplyTo = parent.URI
		store(t, db, late)
		require.Equal(t, ptr(parent.ID), late.InReplyTo)

		list := func(id string, limit int) (ids []string) {
			after := ""
			for {
				var p protocol.Page[protocol.Post]
				read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
					p, err = tx.Posts().ListReplies(ctx, id, limit, after)
					return err
				})
				for _, r := range p.Items {
					ids = append(ids, r.ID)
				}
				if p.Next == nil {
					return ids
				}
				after = *p.Next
			}
		}
		count := func(id string) (n int) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				p, err := tx.Posts().ByID(ctx, id)
				n = p.ReplyCount
				return err
			})
			return n
		}
		require.Equal(t, []string{replies[0].ID, replies[1].ID, replies[2].ID, replies[3].ID, replies[4].ID}, list(root.ID, 2))
		require.Equal(t, 5, count(root.ID))
		require.Equal(t, []string{early.ID, late.ID}, list(parent.ID, 20), "a reply that came before its parent joins it")
		require.Equal(t, 2, count(parent.ID))

		setState(t, db, replies[1].ID, protocol.Hidden)
		setState(t, db, replies[2].ID, protocol.Deleted)
		require.Equal(t, 3, count(root.ID))
		require.Equal(t, []string{replies[0].ID, replies[3].ID, replies[4].ID}, list(root.ID, 20))
		setState(t, db, replies[1].ID, protocol.Visible)
		require.Equal(t, 4, count(root.ID))
		require.NoError(t, db.Check(t.Context()))
	})
}

func setState(t testing.TB, db *storage.DB, id string, s protocol.PostState) {
	t.Helper()
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Posts().SetState(ctx, id, s, "because"); err != nil || s != protocol.Deleted {
			return err
		}
		return tx.Logs().Redact(ctx, boardID, id)
	})
}

func feedSubjects(t testing.TB, db *storage.DB, types ...protocol.FeedType) (ids []string) {
	t.Helper()
	after := ""
	for {
		var p protocol.Page[protocol.FeedItem]
		read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
			p, err = tx.Feed().List(ctx, types, false, 3, after)
			return err
		})
		for _, i := range p.Items {
			ids = append(ids, i.Subject.ID)
		}
		if p.Next == nil {
			return ids
		}
		after = *p.Next
	}
}

func TestSetPostState_HideAndRestore(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		p, other := samplePost(start, 1), samplePost(start.Add(time.Second), 2)
		store(t, db, p, other)
		everywhere := func() [][]string {
			var lists [][]string
			for _, q := range []protocol.BoardQuery{{}, {Kind: p.Kind}, {Tag: "jaipur"}, {Author: "asha"}, {VerifiedOnly: true}, {Q: "rag"}, {Q: "rag", Tag: "paper"}} {
				lists = append(lists, walkBoard(t, db, q))
			}
			return append(lists, feedSubjects(t, db))
		}
		before := everywhere()
		require.Contains(t, before[0], p.ID)
		setState(t, db, p.ID, protocol.Hidden)
		for _, list := range everywhere() {
			require.NotContains(t, list, p.ID)
		}
		require.NoError(t, db.Check(t.Context()))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			hidden, err := tx.Posts().ListHidden(ctx, 10, "")
			require.Len(t, hidden.Items, 1)
			require.Equal(t, p.Body, hidden.Items[0].Body)
			reason, _, e := tx.Posts().Standing(ctx, p.ID)
			require.NoError(t, e)
			require.Equal(t, "because", reason)
			return err
		})
		setState(t, db, p.ID, protocol.Hidden) // twice is once
		setState(t, db, p.ID, protocol.Visible)
		require.Equal(t, before, everywhere())
		require.NoError(t, db.Check(t.Context()))
	})
}

func TestSetPostState_Delete(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		p := samplePost(start, 1)
		p.Statement = []byte(`{}`)
		store(t, db, p)
		setState(t, db, p.ID, protocol.Deleted)
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			got := must.Get(tx.Posts().ByID(ctx, p.ID))(t)
			require.Equal(t, protocol.Deleted, got.State)
			require.Equal(t, []string{"", "", ""}, []string{got.Title, got.Body, got.Author.Name})
			require.Empty(t, got.Tags)
			require.Nil(t, got.Evidence)
			require.Nil(t, got.Statement)
			require.Nil(t, got.Object)
			require.True(t, must.Get(tx.Logs().After(ctx, boardID, 0, 10))(t)[0].Redacted)
			return nil
		})
		require.Empty(t, walkBoard(t, db, protocol.BoardQuery{Q: "rag"}))
		require.Empty(t, feedSubjects(t, db))
		err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Posts().SetState(ctx, p.ID, protocol.Visible, "")
		})
		require.Equal(t, protocol.Gone, protocol.CodeOf(err))
		require.NoError(t, db.Check(t.Context()))
		err = db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Posts().SetState(ctx, protocol.NewID(protocol.PostID, start), protocol.Hidden, "")
		})
		require.ErrorIs(t, err, storage.ErrNotFound)
	})
}

func TestSetPostVerdict(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		p := samplePost(start, 1)
		p.Author.Handle = nil // by its chain identity alone
		store(t, db, p)
		verdict := func(ok bool) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				proof := protocol.AuthorProof{Level: protocol.ByNothing}
				if ok {
					proof = protocol.AuthorProof{Level: protocol.ByChainKey, Block: ptr(int64(9))}
				}
				return tx.Posts().SetVerdict(ctx, p.ID, proof, "thumb", "why")
			})
		}
		for _, ok := range []bool{false, false, true} {
			verdict(ok)
			for _, q := range []protocol.BoardQuery{{VerifiedOnly: true}, {VerifiedOnly: true, Q: "rag"}, {VerifiedOnly: true, Tag: "paper"}} {
				require.Equal(t, ok, len(walkBoard(t, db, q)) == 1, "%v %+v", ok, q)
			}
			require.Len(t, walkBoard(t, db, protocol.BoardQuery{Q: "rag", Tag: "paper"}), 1)
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				found, err := tx.Posts().ByID(ctx, p.ID)
				if !ok {
					require.Equal(t, []string{"Asha", ""}, []string{found.Author.Name, found.Author.ClaimedName})
				}
				return err
			})
		}
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			found := must.Get(tx.Posts().ByID(ctx, p.ID))(t)
			require.Equal(t, "thumb", *found.Author.KeyID)
			require.Equal(t, []string{"Agent 7", "Asha"}, []string{found.Author.Name, found.Author.ClaimedName}, "what it was called is its own word")
			require.Equal(t, int64(9), *found.Author.Proof.Block)
			require.NotNil(t, found.Author.Proof.CheckedAt)
			_, note, e := tx.Posts().Standing(ctx, p.ID)
			require.NoError(t, e)
			require.Equal(t, "why", note)
			return nil
		})
	})
}

// TestPost_Proof: what an author rests on is kept with the post, and for posts of
// before it was kept is what it must have been.
func TestPost_Proof(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		checked := start.UTC().Truncate(time.Millisecond)
		chain, actor, site := "eip155:1337:0x5fbdb2315678afecb367f032d93f642f64180aa3:7", "https://n1.example/ap/agents/asha", "https://bot.example"
		for n, tt := range []struct {
			change func(*protocol.Author)
			node   bool
			kept   protocol.AuthorProof // of a row that says it
			old    protocol.AuthorProof // of one that does not
		}{
			{func(a *protocol.Author) { a.Proof.Level, a.Proof.Block = protocol.ByChainKey, ptr(int64(41)) }, false,
				protocol.AuthorProof{Level: protocol.ByChainKey, Subject: &chain, Chain: ptr("eip155:1337"), Block: ptr(int64(41))},
				protocol.AuthorProof{Level: protocol.ByChainKey, Subject: &chain, Chain: ptr("eip155:1337")}},
			{func(a *protocol.Author) { a.Proof.Level, a.Proof.Block = protocol.ByChainKey, ptr(int64(41)) }, true,
				protocol.AuthorProof{Level: protocol.ByChainKey, Subject: &chain, Chain: ptr("eip155:1337"), Block: ptr(int64(41))},
				protocol.AuthorProof{Level: protocol.ByChainKey, Subject: &chain, Chain: ptr("eip155:1337")}},
			{func(a *protocol.Author) { a.ERC8004, a.Actor, a.Proof.Level = nil, &actor, protocol.ByProfileKey }, false,
				protocol.AuthorProof{Level: protocol.ByProfileKey, Subject: &actor}, protocol.AuthorProof{Level: protocol.ByProfileKey, Subject: &actor}},
			{func(a *protocol.Author) {
				a.ERC8004, a.Handle, a.Proof = nil, nil, protocol.AuthorProof{Level: protocol.ByDirectory, Subject: &site}
			}, false,
				protocol.AuthorProof{Level: protocol.ByDirectory, Subject: &site}, protocol.AuthorProof{Level: protocol.ByDirectory}},
			{func(a *protocol.Author) { a.Method, a.Actor = protocol.BySession, &actor }, false,
				protocol.AuthorProof{Level: protocol.BySignIn, Subject: &actor}, protocol.AuthorProof{Level: protocol.BySignIn, Subject: &actor}},
			{func(a *protocol.Author) {
				a.Verified, a.Method = false, protocol.ByFederation
				a.Proof = protocol.AuthorProof{Level: protocol.ByChainKey, Subject: &chain, Block: ptr(int64(41))} // a claim
			}, true, protocol.AuthorProof{Level: protocol.ByNothing}, protocol.AuthorProof{Level: protocol.ByNothing}},
		} {
			p := samplePost(start.Add(time.Duration(n)*time.Second), int64(n))
			if tt.node {
				p.Node = ptr("other.example")
				p.URI = "https://other.example/ap/posts/" + p.ID
			}
			tt.change(&p.Author)
			if p.Author.Proof.Level != "" {
				p.Author.Proof.CheckedAt = &checked
			}
			store(t, db, p)
			proof := func() (got protocol.AuthorProof) {
				t.Helper()
				read(t, db, func(ctx context.Context, tx *storage.Tx) error {
					stored, err := tx.Posts().ByID(ctx, p.ID)
					if err == nil {
						got = stored.Author.Proof
					}
					return err
				})
				return got
			}
			got := proof()
			if tt.kept.Level != protocol.ByNothing {
				require.NotNil(t, got.CheckedAt)
				if tt.kept.Level != protocol.BySignIn { // whose time is that of the transaction
					require.Equal(t, checked, *got.CheckedAt)
				}
			}
			got.CheckedAt = nil
			require.Equal(t, tt.kept, got)
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return storage.ForgetProof(ctx, tx, p.ID) })
			got = proof()
			if tt.old.Level != protocol.ByNothing && !tt.node {
				require.Equal(t, p.CreatedAt, *got.CheckedAt, "it was checked when it was written")
			} else {
				require.Nil(t, got.CheckedAt, "nobody knows when")
			}
			got.CheckedAt = nil
			require.Equal(t, tt.old, got)
		}
	})
}

// spec §3: five distinct reports; contract §4: a restored post is not hidden
// again by the same reporters.
func TestReports(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		p := samplePost(start, 1)
		store(t, db, p)
		report := func(who string) (fresh bool, distinct int) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				fresh, distinct, err = tx.Moderation().InsertReport(ctx, p.ID, who, "spam")
				return err
			})
			return fresh, distinct
		}
		for n := range 5 {
			fresh, distinct := report(fmt.Sprint("net:", n))
			require.True(t, fresh)
			require.Equal(t, n+1, distinct)
			fresh, distinct = report(fmt.Sprint("net:", n))
			require.False(t, fresh)
			require.Equal(t, n+1, distinct)
		}
		setState(t, db, p.ID, protocol.Hidden)
		setState(t, db, p.ID, protocol.Visible)
		fresh, distinct := report("net:0")
		require.False(t, fresh)
		require.Zero(t, distinct)
		fresh, distinct = report("net:new")
		require.True(t, fresh)
		require.Equal(t, 1, distinct)
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			reports, err := tx.Moderation().ListReports(ctx, p.ID, 100)
			require.Len(t, reports, 6)
			require.Equal(t, 6, must.Get(tx.Posts().ByID(ctx, p.ID))(t).Reports)
			return err
		})
	})
}
