package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

// A model is the board as it would be with everything in memory and no index:
// every rule of spec §2.10 and contract §5 is looked up again by scanning.
type model []*protocol.StoredPost

func (m model) byURI(uri string) *protocol.StoredPost {
	for _, p := range m {
		if p.URI == uri {
			return p
		}
	}
	return nil
}

// parent is what a post answers, nil where that is not here.
func (m model) parent(p *protocol.StoredPost) *protocol.StoredPost {
	if p.ReplyTo == "" {
		return nil
	}
	return m.byURI(p.ReplyTo)
}

func (m model) root(p *protocol.StoredPost) *protocol.StoredPost {
	for up := m.parent(p); up != nil; up = m.parent(p) {
		p = up
	}
	return p
}

// resolvedBy is the first visible resolution by the author of p.
func (m model) resolvedBy(p *protocol.StoredPost) *protocol.StoredPost {
	var first *protocol.StoredPost
	for _, r := range m {
		if m.parent(r) == p && r.State == protocol.Visible && r.Kind == protocol.Resolution && p.Kind.Resolvable() &&
			r.Author.Verified && p.Author.Verified && *r.Author.KeyID == *p.Author.KeyID && (first == nil || r.ID < first.ID) {
			first = r
		}
	}
	return first
}

// shows reports whether a query shows a post; least is how many of its words the post has to have.
func (m model) shows(p *protocol.StoredPost, q protocol.BoardQuery, least int) bool {
	text := strings.Fields(strings.ToLower(p.Title + " " + p.Body + " " + strings.Join(p.Tags, " ")))
	has := 0
	for _, word := range strings.Fields(strings.ToLower(q.Q)) {
		if slices.Contains(text, word) {
			has++
		}
	}
	if has < least {
		return false
	}
	if q.Resolved != nil && (!p.Kind.Resolvable() || (m.resolvedBy(p) != nil) != *q.Resolved) {
		return false
	}
	if q.Root != "" && (m.parent(p) == nil || m.root(p).ID != q.Root) {
		return false
	}
	byAuthor := q.Author == "" || *p.Author.Handle == q.Author && (q.Author != "asha" || p.Author.Node == nil) // asha has a profile here
	return p.State == protocol.Visible && byAuthor && (q.Kind == "" || p.Kind == q.Kind) &&
		(q.Tag == "" || slices.Contains(p.Tags, q.Tag)) && (!q.VerifiedOnly || p.Author.Verified)
}

// list is the posts of a query, newest first; or oldest first.
func (m model) list(show func(*protocol.StoredPost) bool, descending bool) (ids []string) {
	for _, p := range m {
		if show(p) {
			ids = append(ids, p.ID)
		}
	}
	slices.Sort(ids)
	if descending {
		slices.Reverse(ids)
	}
	return ids
}

// TestBoard_LikeAModel does what happens to a board in random order, posts of other
// nodes with replies before their parents included, and compares every listing with
// every combination of filters, and every thread, count and resolution.
func TestBoard_LikeAModel(t *testing.T) {
	t.Parallel()
	first, runs := storagetest.Seed(t)-1, storagetest.Rounds(t, 4)
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		for seed := range uint64(runs) {
			boardLikeModel(t, db, rand.New(rand.NewPCG(first+seed, 7)), fmt.Sprint("s", seed))
			require.NoError(t, db.Check(t.Context()))
		}
	})
}

var modelWords = []string{"paper", "indigo", "जयपुर", "हिन्दी", "rag"}

// boardLikeModel fills an emptied board: what earlier runs left is deleted first.
func boardLikeModel(t *testing.T, db *storage.DB, r *rand.Rand, run string) {
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "Asha", Kind: protocol.Person}}))
	})
	for _, id := range walkBoard(t, db, protocol.BoardQuery{}) {
		setState(t, db, id, protocol.Deleted)
	}
	planned := plannedPosts(r, run)
	var m model
	for _, n := range r.Perm(len(planned)) {
		p := planned[n]
		if m.parent(p) == nil && (p.Node == nil || strings.HasPrefix(p.ReplyTo, base)) {
			p.ReplyTo = "" // nobody replies to a post of this node before it is there, and nobody here to what is not
		}
		m = append(m, p)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			copied := *p
			if up := m.parent(p); up != nil && p.Node == nil {
				copied.InReplyTo = &up.ID
			}
			return publish(ctx, tx, &copied)
		})
		modelMove(t, db, m, r)
	}
	compareLists(t, db, m)
	compareThreads(t, db, m)
}

// plannedPosts are posts of three authors here and elsewhere that answer each other.
func plannedPosts(r *rand.Rand, run string) (posts []*protocol.StoredPost) {
	kinds := append([]protocol.PostKind{protocol.Resolution, protocol.Resolution}, protocol.PostKinds...)
	for n := range 60 {
		at := start.Add(time.Duration(n) * time.Second)
		p := samplePost(at, int64(n))
		if r.IntN(2) == 0 {
			p = remotePost(at, fmt.Sprint(run, "-", n))
			p.Author.Method = protocol.BySignature
		}
		who := []string{"asha", "ben", "chen"}[r.IntN(3)]
		p.Author.Handle, p.Author.KeyID, p.Author.ERC8004, p.Author.Verified = &who, ptr("key of "+who), nil, r.IntN(4) > 0
		p.Kind, p.Tags = kinds[r.IntN(len(kinds))], []string{"paper", "ink.blue_2"}[:1+r.IntN(2)]
		p.Title, p.Body = modelWords[r.IntN(5)], modelWords[r.IntN(5)]+" "+modelWords[r.IntN(5)]
		if len(posts) > 0 && r.IntN(4) > 0 {
			p.ReplyTo = posts[max(0, len(posts)-1-r.IntN(8))].URI
		}
		posts = append(posts, p)
	}
	return posts
}

// modelMove hides, restores, deletes a post or changes the verdict on its author.
func modelMove(t *testing.T, db *storage.DB, m model, r *rand.Rand) {
	p := m[r.IntN(len(m))]
	if p.State == protocol.Deleted {
		return
	}
	switch r.IntN(8) {
	case 0:
		p.State = protocol.Hidden
		setState(t, db, p.ID, p.State)
	case 1, 2:
		p.State = protocol.Visible
		setState(t, db, p.ID, p.State)
	case 3:
		if r.IntN(3) == 0 {
			p.State = protocol.Deleted
			setState(t, db, p.ID, p.State)
		}
	case 4:
		p.Author.Verified = !p.Author.Verified
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			p.Author.Proof = protocol.AuthorProof{Level: protocol.ByNothing}
			if p.Author.Verified {
				p.Author.Proof.Level = protocol.ByChainKey
			}
			return tx.Posts().SetVerdict(ctx, p.ID, p.Author.Proof, *p.Author.KeyID, "")
		})
	}
}

func compareLists(t *testing.T, db *storage.DB, m model) {
	roots := []string{"", m.root(m[0]).ID}
	for _, p := range m {
		if root := m.root(p); root != p && !slices.Contains(roots, root.ID) && len(roots) < 4 {
			roots = append(roots, root.ID)
		}
	}
	for _, kind := range append([]protocol.PostKind{""}, protocol.PostKinds...) {
		for _, tag := range []string{"", "ink.blue_2"} {
			for _, text := range []string{"", "हिन्दी", "paper rag"} {
				for _, author := range []string{"", "asha", "chen"} {
					for _, verified := range []bool{false, true} {
						for _, resolved := range []*bool{nil, ptr(true), ptr(false)} {
							for _, root := range roots {
								q := protocol.BoardQuery{Kind: kind, Tag: tag, Q: text, Author: author, VerifiedOnly: verified, Resolved: resolved, Root: root, Sort: protocol.SortNew,
									Paging: protocol.Paging{Limit: 7}}
								words := len(strings.Fields(text))
								want := m.list(func(p *protocol.StoredPost) bool { return m.shows(p, q, words) }, true)
								if words > 1 && want == nil { // those with one of the words
									want = m.list(func(p *protocol.StoredPost) bool { return m.shows(p, q, 1) }, true)
								}
								require.Equal(t, want, walkBoard(t, db, q), "%+v", q)
							}
						}
					}
				}
			}
		}
	}
	own := m.list(func(p *protocol.StoredPost) bool { return *p.Author.Handle == "asha" && p.Author.Node == nil }, true)
	for _, id := range walkOwn(t, db, "asha") {
		if len(own) > 0 && id == own[0] {
			own = own[1:]
		}
	}
	require.Empty(t, own, "hidden and deleted ones too, in order")
}

func compareThreads(t *testing.T, db *storage.DB, m model) {
	visible := func(p *protocol.StoredPost) bool { return p.State == protocol.Visible }
	for _, p := range m {
		var got *protocol.StoredPost
		var thread, replies []string
		read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
			if got, err = tx.Posts().ByID(ctx, p.ID); err != nil {
				return err
			}
			thread = walkPages(t, func(after string) (protocol.Page[protocol.Post], error) {
				return tx.Posts().ListThread(ctx, p.ID, 3, after)
			})
			replies = walkPages(t, func(after string) (protocol.Page[protocol.Post], error) {
				return tx.Posts().ListReplies(ctx, p.ID, 2, after)
			})
			n, err := tx.Posts().CountThread(ctx, p.ID)
			require.Len(t, thread, n)
			return err
		})
		require.Equal(t, m.list(func(r *protocol.StoredPost) bool { return visible(r) && m.parent(r) == p }, false), replies)
		require.Len(t, replies, got.ReplyCount)
		root := m.root(p)
		if root == p {
			require.Nil(t, got.Root)
			require.Equal(t, m.list(func(r *protocol.StoredPost) bool { return visible(r) && r != p && m.root(r) == p }, false), thread)
		} else {
			require.Equal(t, root.ID, *got.Root)
		}
		if by := m.resolvedBy(p); by != nil && p.State != protocol.Deleted {
			require.True(t, got.Resolved)
			require.Equal(t, by.ID, *got.ResolvedBy)
		} else {
			require.False(t, got.Resolved)
			require.Nil(t, got.ResolvedBy)
		}
	}
}

// walkPages follows a listing to its end and returns the ids.
func walkPages(t testing.TB, list func(after string) (protocol.Page[protocol.Post], error)) (ids []string) {
	t.Helper()
	for after := ""; ; {
		p := must.Get(list(after))(t)
		for _, post := range p.Items {
			ids = append(ids, post.ID)
		}
		if p.Next == nil {
			return ids
		}
		after = *p.Next
	}
}

func walkOwn(t testing.TB, db *storage.DB, handle string) (ids []string) {
	t.Helper()
	read(t, db, func(ctx context.Context, tx *storage.Tx) error {
		for after := ""; ; {
			p, err := tx.Posts().ListOwn(ctx, handle, 4, after)
			if err != nil {
				return err
			}
			for _, post := range p.Items {
				ids = append(ids, post.ID)
				require.Equal(t, post.State == protocol.Visible, post.Reason == "")
			}
			if p.Next == nil {
				return nil
			}
			after = *p.Next
		}
	})
	return ids
}
