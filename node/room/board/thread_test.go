package board

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/room/moderation"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

var (
	asha     = protocol.Caller{Standing: protocol.Signed, Handle: "asha", Name: "Asha", KeyID: "key-a"}
	ravi     = protocol.Caller{Standing: protocol.Signed, Agent: agent, Owner: "0xa", KeyID: "key-r", Proof: protocol.AuthorProof{Level: protocol.ByChainKey}}
	buyer    = protocol.Caller{Standing: protocol.Signed, Agent: agent, Owner: "0xb", KeyID: "key-r", Proof: protocol.AuthorProof{Level: protocol.ByChainKey}}
	operator = protocol.Caller{Standing: protocol.Operator}
	visitor  = protocol.Caller{Standing: protocol.Proof, Network: "net"}
)

// A bench is a board and its database.
type bench struct {
	*Board
	db *storage.DB
	t  *testing.T
}

func (b bench) post(c protocol.Caller, kind protocol.PostKind, inReplyTo string) (p protocol.Post) {
	b.t.Helper()
	require.NoError(b.t, write(b.t, b.db, func(ctx context.Context, tx *storage.Tx) error {
		made, err := b.Post(ctx, tx, c, protocol.NewPost{Kind: kind, Title: "t", Body: "b", InReplyTo: inReplyTo})
		p = made.Post
		return err
	}))
	return p
}

func (b bench) get(c protocol.Caller, in protocol.PostInput) (p protocol.PostWithReplies, code protocol.Code) {
	b.t.Helper()
	return p, protocol.CodeOf(b.db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
		p, err = b.Get(ctx, tx, c, in)
		return err
	}))
}

// spec §2.10: the author of a requirement, challenge or question marks it as
// resolved by a resolution in reply to it.
func TestResolved(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		b := bench{&Board{Base: base}, db, t}
		for _, tt := range []struct {
			name  string
			kind  protocol.PostKind
			asker protocol.Caller
			reply protocol.PostKind
			by    protocol.Caller
			want  bool
		}{
			{"own requirement", protocol.Requirement, asha, protocol.Resolution, asha, true},
			{"own challenge", protocol.Challenge, asha, protocol.Resolution, asha, true},
			{"own question, by chain identity", protocol.QuestionPost, ravi, protocol.Resolution,
				protocol.Caller{Standing: protocol.Signed, Agent: agent, Owner: "0xa", KeyID: "another"}, true},
			{"of the identity's former owner", protocol.QuestionPost, ravi, protocol.Resolution, buyer, false},
			{"of the identity's former owner, by its key alone", protocol.QuestionPost, ravi, protocol.Resolution,
				protocol.Caller{Standing: protocol.Signed, KeyID: "key-r"}, false},
			{"own question, by the very key", protocol.QuestionPost, asha, protocol.Resolution, protocol.Caller{Standing: protocol.Signed, KeyID: "key-a"}, true},
			{"own question, signed in", protocol.QuestionPost, asha, protocol.Resolution, protocol.Caller{Standing: protocol.Session, Handle: "asha"}, true},
			{"an offer waits for nothing", protocol.Offer, asha, protocol.Resolution, asha, false},
			{"an answer is no resolution", protocol.QuestionPost, asha, protocol.Announcement, asha, false},
			{"somebody else's", protocol.QuestionPost, asha, protocol.Resolution, ravi, false},
			{"a visitor's, by that visitor", protocol.QuestionPost, visitor, protocol.Resolution, visitor, false},
			{"by a visitor", protocol.QuestionPost, asha, protocol.Resolution, visitor, false},
		} {
			t.Run(tt.name, func(t *testing.T) {
				asked := b.post(tt.asker, tt.kind, "")
				require.False(t, asked.Resolved)
				reply := b.post(tt.by, tt.reply, asked.ID)
				deeper := b.post(tt.asker, protocol.Resolution, reply.ID) // answers the answer
				got, _ := b.get(visitor, protocol.PostInput{ID: asked.ID})
				require.Equal(t, tt.want, got.Post.Resolved)
				if !tt.want {
					require.Nil(t, got.Post.ResolvedBy)
					return
				}
				require.Equal(t, reply.ID, *got.Post.ResolvedBy)
				first, second := reply.ID, b.post(tt.by, protocol.Resolution, asked.ID).ID
				if second < first { // made within the same millisecond
					first, second = second, first
				}
				for _, step := range []struct{ deleted, left string }{{first, second}, {second, ""}} {
					require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
						return must.Err(b.Delete(ctx, tx, tt.by, protocol.PostRef{ID: step.deleted}))
					}))
					got, _ = b.get(visitor, protocol.PostInput{ID: asked.ID})
					require.Equal(t, step.left != "", got.Post.Resolved)
					if step.left != "" {
						require.Equal(t, step.left, *got.Post.ResolvedBy)
					}
				}
				require.Equal(t, asked.ID, *deeper.Root)
			})
		}
		require.NoError(t, db.Check(t.Context()))
	})
}

func TestGet_Thread(t *testing.T) {
	t.Parallel()
	now := time.Now()
	db := storagetest.OpenConfig(t, storage.Config{Now: func() time.Time { now = now.Add(time.Millisecond); return now }})
	b := bench{&Board{Base: base}, db, t}
	root := b.post(asha, protocol.QuestionPost, "")
	b.post(asha, protocol.QuestionPost, "") // another thread
	var want []string
	parent := root.ID
	for range 7 {
		p := b.post(ravi, protocol.Announcement, parent)
		require.Equal(t, root.ID, *p.Root)
		want, parent = append(want, p.ID), p.ID
	}
	for _, id := range []string{root.ID, want[3]} {
		var got []string
		in := protocol.PostInput{ID: id, Thread: true, Paging: protocol.Paging{Limit: 3}}
		for {
			page, code := b.get(visitor, in)
			require.Empty(t, code)
			require.Equal(t, id, page.Post.ID)
			for _, p := range page.Replies.Items {
				require.Equal(t, base+"/board/"+p.ID, p.URL)
				got = append(got, p.ID)
			}
			if page.Replies.Next == nil {
				break
			}
			in.After = *page.Replies.Next
			_, code = b.get(visitor, protocol.PostInput{ID: id, Paging: in.Paging})
			require.Equal(t, protocol.InvalidCursor, code, "the two listings do not mix")
		}
		require.Equal(t, want, got)
	}
	direct, _ := b.get(visitor, protocol.PostInput{ID: root.ID})
	require.Len(t, direct.Replies.Items, 1)
}

// TestReply_ParentNotPublic: nobody replies to a post that is hidden or deleted,
// its author included; a restored one takes replies again.
func TestReply_ParentNotPublic(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		b := bench{&Board{Base: base}, db, t}
		mod := &moderation.Moderation{Distribute: b.Distribute}
		reply := func(c protocol.Caller, to string) error {
			return write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(b.Post(ctx, tx, c, protocol.NewPost{Kind: protocol.Resolution, Title: "t", Body: "b", InReplyTo: to}))
			})
		}
		for name, hide := range map[string]func(ctx context.Context, tx *storage.Tx, id string) error{
			"hidden": func(ctx context.Context, tx *storage.Tx, id string) error {
				return must.Err(mod.Hide(ctx, tx, operator, protocol.Decision{ID: id, Reason: "spam"}))
			},
			"deleted": func(ctx context.Context, tx *storage.Tx, id string) error {
				return must.Err(b.Delete(ctx, tx, asha, protocol.PostRef{ID: id}))
			},
		} {
			parent := b.post(asha, protocol.Offer, "")
			require.NoError(t, reply(ravi, parent.ID), name)
			require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error { return hide(ctx, tx, parent.ID) }))
			for _, c := range []protocol.Caller{ravi, asha, visitor, operator} {
				e, ok := errors.AsType[*protocol.Error](reply(c, parent.ID))
				require.True(t, ok, name)
				require.Equal(t, protocol.Validation, e.Code, name)
				require.Equal(t, "/inReplyTo", e.Faults[0].Pointer, name)
			}
			if name == "hidden" {
				require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
					return must.Err(mod.Restore(ctx, tx, operator, protocol.Decision{ID: parent.ID, Reason: "fine"}))
				}))
				require.NoError(t, reply(ravi, parent.ID))
			}
		}
	})
}

// contract §4: the author and the operator see why a post is hidden; others
// find it gone.
func TestGet_Hidden(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		b := bench{&Board{Base: base}, db, t}
		mod := &moderation.Moderation{Distribute: b.Distribute}
		p, anonymous := b.post(asha, protocol.Offer, ""), b.post(visitor, protocol.Offer, "")
		hide := func(id string) {
			for n := range protocol.ReportsToHide {
				require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
					return must.Err(mod.Report(ctx, tx, protocol.Caller{Standing: protocol.Proof, Network: string(rune('a' + n))}, protocol.NewReport{ID: id}))
				}))
			}
		}
		hide(p.ID)
		hide(anonymous.ID)
		for _, tt := range []struct {
			name   string
			caller protocol.Caller
			id     string
			want   protocol.Code
		}{
			{"anybody", protocol.Caller{}, p.ID, protocol.Gone},
			{"another agent", ravi, p.ID, protocol.Gone},
			{"the author", asha, p.ID, ""},
			{"the author's token", protocol.Caller{Standing: protocol.Session, Handle: "asha"}, p.ID, ""},
			{"the owner of several", protocol.Caller{Standing: protocol.Session, Account: "acc", Handles: []string{"shop", "asha"}}, p.ID, ""},
			{"the owner of others", protocol.Caller{Standing: protocol.Session, Account: "acc", Handles: []string{"shop"}}, p.ID, protocol.Gone},
			{"the operator", protocol.Caller{Standing: protocol.Operator}, p.ID, ""},
			{"the same visitor", visitor, anonymous.ID, protocol.Gone},
		} {
			t.Run(tt.name, func(t *testing.T) {
				got, code := b.get(tt.caller, protocol.PostInput{ID: tt.id})
				require.Equal(t, tt.want, code)
				if code == "" {
					require.Equal(t, protocol.Hidden, got.State)
					require.Equal(t, "five distinct reports", *got.Reason)
					require.Equal(t, "b", got.Post.Body)
				}
			})
		}
		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(mod.Restore(ctx, tx, operator, protocol.Decision{ID: p.ID, Reason: "fine"}))
		}))
		got, code := b.get(visitor, protocol.PostInput{ID: p.ID})
		require.Empty(t, code)
		require.Equal(t, protocol.Visible, got.State)
		require.Nil(t, got.Reason)
		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for n := range protocol.ReportsToHide { // the reporters of before
				if _, err := mod.Report(ctx, tx, protocol.Caller{Standing: protocol.Proof, Network: string(rune('a' + n))}, protocol.NewReport{ID: p.ID}); err != nil {
					return err
				}
			}
			return nil
		}))
		_, code = b.get(visitor, protocol.PostInput{ID: p.ID})
		require.Empty(t, code)
	})
}

// A post that the operator here hid stays hidden, whatever its board says.
func TestRestorePost_OursStaysHidden(t *testing.T) {
	t.Parallel()
	db := storagetest.Open(t)
	b := bench{&Board{Base: base}, db, t}
	host := "n2.example"
	uri := "https://n2.example/ap/posts/post_01k9y3v6k8e5w9q2x4z7c1m0ad"
	var id string
	require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
		id, err = b.ReceivePost(ctx, tx, &protocol.StoredPost{Board: "https://n2.example/ap/board", Post: protocol.Post{
			ID: protocol.RemoteID(protocol.PostID, tx.Now, uri), URI: uri, Kind: protocol.Offer, Title: "t", Body: "b",
			Author: protocol.Author{Name: "Ada", Node: &host, Method: protocol.ByFederation}, Node: &host, CreatedAt: tx.Now,
		}})
		return err
	}))
	mod := &moderation.Moderation{Distribute: b.Distribute}
	do := func(fn func(ctx context.Context, tx *storage.Tx) error) { require.NoError(t, write(t, db, fn)) }
	state := func() protocol.Code {
		_, code := b.get(visitor, protocol.PostInput{ID: id})
		return code
	}
	do(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(mod.Hide(ctx, tx, operator, protocol.Decision{ID: id, Reason: "not here"}))
	})
	do(func(ctx context.Context, tx *storage.Tx) error { return b.HidePost(ctx, tx, uri) })
	do(func(ctx context.Context, tx *storage.Tx) error { return b.RestorePost(ctx, tx, uri) })
	require.Equal(t, protocol.Gone, state())
	do(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(mod.Restore(ctx, tx, operator, protocol.Decision{ID: id, Reason: "after all"}))
	})
	require.Empty(t, state())
	do(func(ctx context.Context, tx *storage.Tx) error { return b.HidePost(ctx, tx, uri) })
	require.Equal(t, protocol.Gone, state())
	do(func(ctx context.Context, tx *storage.Tx) error { return b.RestorePost(ctx, tx, uri) })
	require.Empty(t, state(), "its board takes back what its board did")
}
