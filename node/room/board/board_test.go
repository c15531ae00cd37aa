package board

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

const (
	base  = "https://n1.example"
	agent = "eip155:1337:0x5fbdb2315678afecb367f032d93f642f64180aa3:17"
)

func write(t *testing.T, db *storage.DB, fn func(ctx context.Context, tx *storage.Tx) error) error {
	t.Helper()
	return db.Write(context.Background(), fn)
}

func TestAuthor(t *testing.T) {
	t.Parallel()
	b := &Board{Base: base}
	some := func(s string) *string { return &s }
	at := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	actor, none := base+"/ap/agents/asha", protocol.AuthorProof{Level: protocol.ByNothing}
	chain := protocol.AuthorProof{Level: protocol.ByChainKey, Subject: some(agent), Chain: some(agent[:strings.LastIndex(agent, ":0x")]),
		Block: new(int64(7)), Owner: some("0xa"), CheckedAt: &at}
	for _, tt := range []struct {
		name   string
		caller protocol.Caller
		given  string
		want   protocol.Author
	}{
		{"nobody", protocol.Caller{Standing: protocol.Proof}, "", protocol.Author{Name: "Anonymous", Method: protocol.ByProof, Proof: none}},
		{"a claimed name", protocol.Caller{Standing: protocol.Proof}, "Meera", protocol.Author{Name: "Meera", Method: protocol.ByProof, Proof: none}},
		{"a profile", protocol.Caller{Standing: protocol.Signed, Handle: "asha", Name: "Asha", KeyID: "k",
			Proof: protocol.AuthorProof{Level: protocol.ByProfileKey}}, "Somebody else",
			protocol.Author{Name: "Asha", Handle: some("asha"), Actor: some(base + "/ap/agents/asha"), KeyID: some("k"), Verified: true, Method: protocol.BySignature,
				ClaimedName: "Somebody else", Proof: protocol.AuthorProof{Level: protocol.ByProfileKey, Subject: &actor, CheckedAt: &at}}},
		{"an agent from outside", protocol.Caller{Standing: protocol.Signed, Agent: agent, Owner: "0xa", KeyID: "k",
			Proof: protocol.AuthorProof{Level: protocol.ByChainKey, Block: new(int64(7))}}, "",
			protocol.Author{Name: "Agent 17", ERC8004: some(agent), KeyID: some("k"), Verified: true, Method: protocol.BySignature, Proof: chain}},
		{"an agent that says its name", protocol.Caller{Standing: protocol.Signed, Agent: agent, Owner: "0xa",
			Proof: protocol.AuthorProof{Level: protocol.ByChainKey, Block: new(int64(7))}}, "Visitor",
			protocol.Author{Name: "Agent 17", ClaimedName: "Visitor", ERC8004: some(agent), Verified: true, Method: protocol.BySignature, Proof: chain}},
		{"a site", protocol.Caller{Standing: protocol.Signed, ClaimedName: "Bot", KeyID: "k",
			Proof: protocol.AuthorProof{Level: protocol.ByDirectory, Subject: some("https://bot.example")}}, "Asha",
			protocol.Author{Name: "bot.example", ClaimedName: "Asha", KeyID: some("k"), Verified: true, Method: protocol.BySignature,
				Proof: protocol.AuthorProof{Level: protocol.ByDirectory, Subject: some("https://bot.example"), CheckedAt: &at}}},
		{"an owner", protocol.Caller{Standing: protocol.Session, Handle: "asha", Name: "Asha", Agent: agent, Account: "acc"}, "",
			protocol.Author{Name: "Asha", Handle: some("asha"), Actor: some(base + "/ap/agents/asha"), ERC8004: some(agent), Verified: true, Method: protocol.BySession,
				Proof: protocol.AuthorProof{Level: protocol.BySignIn, Subject: &actor, CheckedAt: &at}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tt.caller.Author(b.Base, tt.given, at))
		})
	}
}

func TestDelete_OnlyTheAuthor(t *testing.T) {
	t.Parallel()
	db := storagetest.Open(t)
	b := &Board{Base: base}
	asha := protocol.Caller{Standing: protocol.Signed, Handle: "asha", Name: "Asha", KeyID: "key-a"}
	anonymous := protocol.Caller{Standing: protocol.Proof, Network: "net"}
	var mine, theirs protocol.MadePost
	require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
		if mine, err = b.Post(ctx, tx, asha, protocol.NewPost{Kind: protocol.Offer, Title: "Mine", Body: "b"}); err != nil {
			return err
		}
		theirs, err = b.Post(ctx, tx, anonymous, protocol.NewPost{Kind: protocol.Offer, Title: "Nobody's", Body: "b"})
		return err
	}))
	del := func(c protocol.Caller, id string) protocol.Code {
		return protocol.CodeOf(write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(b.Delete(ctx, tx, c, protocol.PostRef{ID: id}))
		}))
	}
	require.Equal(t, protocol.Forbidden, del(protocol.Caller{Standing: protocol.Signed, Handle: "ravi", KeyID: "key-r"}, mine.ID))
	require.Equal(t, protocol.Forbidden, del(anonymous, theirs.ID), "an unverified author is nobody")
	require.Equal(t, protocol.Forbidden, del(asha, theirs.ID))
	require.Equal(t, protocol.NotFound, del(asha, protocol.NewID(protocol.PostID, time.Now())))
	require.Empty(t, del(asha, mine.ID))
	require.Equal(t, protocol.Gone, del(asha, mine.ID), "a deletion is final")
	require.Empty(t, del(protocol.Caller{Standing: protocol.Operator}, theirs.ID))
	require.NoError(t, db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
		entries, err := tx.Logs().After(ctx, b.ID(), 0, 10)
		var kinds []string
		for _, e := range entries {
			kinds = append(kinds, string(e.Kind))
		}
		require.Equal(t, []string{"create", "create", "delete", "delete"}, kinds)
		return err
	}))
	require.NoError(t, db.Check(context.Background()))
}

// TestReceived is a post of another node: it keeps its URI, is stored once, and a
// reply to it made here is handed in at the board it belongs to.
func TestReceived(t *testing.T) {
	t.Parallel()
	db := storagetest.Open(t)
	b := &Board{Base: base}
	host, now := "n2.example", time.Now().UTC().Truncate(time.Millisecond)
	uri := "https://n2.example/ap/posts/post_01k9y3v6k8e5w9q2x4z7c1m0ad"
	receive := func() (id string) {
		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
			id, err = b.ReceivePost(ctx, tx, &protocol.StoredPost{Board: "https://n2.example/ap/board", Post: protocol.Post{
				ID: protocol.RemoteID(protocol.PostID, now, uri), URI: uri, Kind: protocol.QuestionPost, Title: "Far away", Body: "b",
				Author: protocol.Author{Name: "Ada", Node: &host, Method: protocol.ByFederation}, Node: &host, CreatedAt: now,
			}})
			return err
		}))
		return id
	}
	id := receive()
	require.Equal(t, id, receive(), "known by its URI")
	require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		reply, err := b.Post(ctx, tx, protocol.Caller{Standing: protocol.Proof}, protocol.NewPost{Kind: protocol.Resolution, Title: "Near", Body: "b", InReplyTo: id})
		require.Equal(t, id, *reply.InReplyTo)
		return err
	}))
	require.NoError(t, db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
		jobs, err := tx.Jobs().List(ctx, "waiting", "", 10, "")
		require.Len(t, jobs.Items, 1)
		require.Equal(t, storage.SubmitJob, jobs.Items[0].Kind)
		require.Equal(t, "to:n2.example", jobs.Items[0].Lane)
		_, _, err2 := tx.Logs().Head(ctx, b.ID())
		require.ErrorIs(t, err2, storage.ErrNotFound, "our own log says nothing of other boards' posts")
		return err
	}))
	require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error { return b.HidePost(ctx, tx, uri) }))
	require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error { return b.RestorePost(ctx, tx, uri) }))
	require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error { return b.DeletePost(ctx, tx, uri) }))
	require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		require.Equal(t, protocol.Gone, protocol.CodeOf(must.Err(b.Get(ctx, tx, protocol.Caller{}, protocol.PostInput{ID: id}))))
		return nil
	}))
	require.NoError(t, db.Check(context.Background()))
}
