package storage

import (
	"context"
	"database/sql"
	"math"
	"strings"

	"stoa/protocol"
)

// Names of listings in cursors.
const (
	listBoard   = "board"
	listReplies = "replies"
	listThread  = "thread"
	listHidden  = "hidden"
	listBoosted = "boosted"
	listOwn     = "own-posts"
	listFeed    = "feed"
	listNews    = "news"
)

// List returns visible posts: the best matches of a q first, otherwise newest first by id. All filters combine. A handle
// means the author of this node if it has a profile of that name, otherwise authors
// of that name on any node. A q without any word finds nothing.
func (ps Posts) List(ctx context.Context, q protocol.BoardQuery) (out protocol.List[protocol.Post], err error) {
	out.Items = []protocol.Post{}
	q.Tag = tagKey(q.Tag)
	anywhere := false
	if q.Author != "" {
		_, err := ps.tx.Profiles().ByHandle(ctx, q.Author)
		if anywhere = err == ErrNotFound; err != nil && !anywhere {
			return out, err
		}
	}
	s := asked{all: boardFacets(q, anywhere)}
	terms := termsOf(foldWords(q.Q), false)
	ranked := len(terms) > 0 && q.Sort != protocol.SortNew
	before := int64(math.MaxInt64)
	if !ranked {
		if before, err = position(listBoard, q.After, math.MaxInt64); err != nil {
			return out, err
		}
	}
	limit := bounded(q.Limit)
	var seqs []int64
	switch {
	case q.Q != "" && len(terms) == 0, q.Resolved != nil && q.Kind != "" && !q.Kind.Resolvable():
	case ranked:
		return ps.relevant(ctx, &q, s, terms)
	case q.Q == "" && q.Resolved == nil && q.Root == "" && (q.Author == "" || q.Tag == ""):
		text, args := boardQuery(q, anywhere, before, limit+1)
		if seqs, err = list[int64](ctx, ps.tx, text, args...); err != nil {
			return out, err
		}
	default:
		if len(terms) > 0 {
			u, err := ps.question(&q, s, terms).understand(ctx, "")
			if out.Finding = u.Finding; err != nil || u.whole == nil {
				return out, err
			}
			s = s.with(u.whole)
		}
		if seqs, err = postWords.find(ctx, ps.tx, s.whole(), before, limit+1); err != nil {
			return out, err
		}
	}
	out.Page, err = ps.page(ctx, listBoard, seqs, limit)
	return out, err
}

// question is the words of a query of the board, with what finds posts by them.
func (ps Posts) question(q *protocol.BoardQuery, s asked, terms []*term) *question {
	a := &question{tx: ps.tx, q: q.Q, terms: terms, tables: []string{postTerms}, late: true}
	a.find = func(ctx context.Context, c condition, limit int) ([]int64, int, error) {
		at, err := postWords.find(ctx, ps.tx, s.with(c).whole(), math.MaxInt64, limit)
		return at, 0, err
	}
	a.any = func(ctx context.Context, c condition) (bool, error) {
		at, err := postWords.find(ctx, ps.tx, c, math.MaxInt64, 1)
		return len(at) > 0, err
	}
	for _, f := range []struct {
		name  string
		given bool
	}{{"kind", q.Kind != ""}, {"tag", q.Tag != ""}, {"author", q.Author != ""}, {"verifiedOnly", q.VerifiedOnly}, {"resolved", q.Resolved != nil},
		{"root", q.Root != ""}} {
		if f.given {
			a.filters = append(a.filters, f.name)
		}
	}
	return a
}

// mostPosts is how many posts are looked at for one page by relevance.
const mostPosts = 1000

// relevant is a page of the board by relevance.
func (ps Posts) relevant(ctx context.Context, q *protocol.BoardQuery, s asked, terms []*term) (out protocol.List[protocol.Post], err error) {
	out.Items = []protocol.Post{}
	w, err := resumeRanked(listBoard, q.After)
	if err != nil {
		return out, err
	}
	way, resumed := "", q.After != ""
	if resumed {
		way = string(w.way)
	}
	u, err := ps.question(q, s, terms).understand(ctx, way)
	if out.Finding = u.Finding; err != nil || u.whole == nil {
		return out, err
	}
	if !resumed {
		w = beginRanked(&u, math.MaxInt64, 0)
	}
	var rows []seqPost
	l := rankedList{
		limit: bounded(q.Limit), most: mostPosts, begin: math.MaxInt64,
		number: func(pos int64) int64 { return pos },
		find: func(ctx context.Context, c condition, from int64, limit int) ([]int64, error) {
			return postWords.find(ctx, ps.tx, s.with(c).whole(), from, limit)
		},
		read: func(ctx context.Context, at []int64) (int, error) {
			if rows, err = ps.bySeqs(ctx, at); err == nil {
				err = ps.tx.wholePosts(ctx, rows)
			}
			return len(rows), err
		},
		fields: func(row int, _ bool) []field { return postFields(&rows[row].Post) },
		place:  func(row int) int64 { return rows[row].seq },
		show:   func(row int) { out.Items = append(out.Items, rows[row].Post) },
	}
	next, err := l.walk(ctx, &u, w, resumed)
	out.Next = cursorTo(listBoard, next)
	return out, err
}

// A seqPost is a post with its number.
type seqPost struct {
	protocol.Post
	seq, part int64
}

// bySeqs reads the rows of posts by their numbers, the newest first.
func (ps Posts) bySeqs(ctx context.Context, seqs []int64) ([]seqPost, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	in, args := inSeqs(seqs)
	rows, err := ps.tx.query(ctx, `SELECT `+postColumns+` FROM post WHERE `+in+` ORDER BY seq DESC`, args...)
	return collect(rows, err, func(s scanner) (p seqPost, err error) {
		p.seq, err = scanPost(s, &p.Post, &p.part)
		return p, err
	})
}

// boardFacets are the filters of a query, roughly rarest first.
func boardFacets(q protocol.BoardQuery, anywhere bool) (all []condition) {
	add := func(name, value string) { all = append(all, oneOf([]string{facet(name, value)})) }
	if q.Root != "" {
		add(facetRoot, q.Root)
	}
	author, authorTag := facetAuthor, facetAuthorTag
	if anywhere {
		author, authorTag = facetAnyAuthor, facetAnyAuthorTag
	}
	checked := q.Author == "" && q.Tag != "" && q.VerifiedOnly // by what is added here
	switch {
	case q.Author != "" && q.Tag != "":
		add(authorTag, q.Author+" "+q.Tag)
	case q.Author != "":
		add(author, q.Author)
	case checked:
		add(facetTagVerified, q.Tag)
	case q.Tag != "":
		add(facetTag, q.Tag)
	}
	if q.Resolved != nil && *q.Resolved {
		add(facetResolved, string(q.Kind))
		checked = true // only posts of verified authors can be resolved
	}
	if q.Resolved != nil && !*q.Resolved {
		add(facetOpen, string(q.Kind))
	}
	switch {
	case q.Kind != "" && q.VerifiedOnly && !checked:
		add(facetKindVerified, string(q.Kind))
	case q.Kind != "" && q.Resolved == nil:
		add(facetKind, string(q.Kind))
	case q.VerifiedOnly && !checked:
		add(facetVerified, "")
	}
	return all
}

// boardQuery selects the numbers of a page. Kind and verified lead every index of
// the board, so each filter is a handful of index ranges that are merged, and no
// filter reads posts that it does not show: no kind means each of the seven, not
// verified means both. Author and tag together use the index of words (List).
func boardQuery(q protocol.BoardQuery, anywhere bool, before int64, limit int) (string, []any) {
	kinds := protocol.PostKinds
	if q.Kind != "" {
		kinds = []protocol.PostKind{q.Kind}
	}
	verdicts := []bool{true, false}
	if q.VerifiedOnly {
		verdicts = []bool{true}
	}
	from, where, lead := `post`, `state = 'visible'`, [][]any{nil}
	switch {
	case q.Author != "":
		where += ` AND author_handle IS NOT NULL AND author_handle = ? AND author_local = ?`
		lead = [][]any{{q.Author, true}}
		if anywhere {
			lead = append(lead, []any{q.Author, false})
		}
	case q.Tag != "":
		from, where, lead = `post_tag`, `tag = ?`, [][]any{{q.Tag}}
	}
	where += ` AND kind = ? AND verified = ? AND seq < ?`
	one := `SELECT seq FROM (SELECT seq FROM ` + from + ` WHERE ` + where + ` ORDER BY seq DESC LIMIT ?) r`
	var args []any
	n := 0
	for _, l := range lead {
		for _, kind := range kinds {
			for _, verified := range verdicts {
				args = append(append(args, l...), string(kind), verified, before, limit)
				n++
			}
		}
	}
	text := strings.Repeat(one+` UNION ALL `, n-1) + one
	return `SELECT seq FROM (` + text + `) m ORDER BY seq DESC LIMIT ?`, append(args, limit)
}

// page reads the posts of a page that was selected with one more than its
// limit.
func (ps Posts) page(ctx context.Context, listing string, seqs []int64, limit int) (protocol.Page[protocol.Post], error) {
	p := page(seqs, limit, listing, number)
	out := protocol.Page[protocol.Post]{Items: []protocol.Post{}, Next: p.Next}
	if len(p.Items) == 0 {
		return out, nil
	}
	found, err := ps.bySeqs(ctx, p.Items)
	if err == nil {
		err = ps.tx.wholePosts(ctx, found)
	}
	for i := range found {
		out.Items = append(out.Items, found[i].Post)
	}
	return out, err
}

// ListHidden returns hidden posts, newest first, for the operator.
func (ps Posts) ListHidden(ctx context.Context, limit int, after string) (protocol.Page[protocol.StoredPost], error) {
	return ps.listStored(ctx, listHidden, `state = 'hidden'`, nil, limit, after)
}

// boosted are the posts of a board that it announces to the fediverse: all except
// those of visitors.
const boosted = `board = ? AND state = 'visible' AND author_method <> 'pow'`

// ListBoosted returns the posts that a board announces to the fediverse, newest
// first.
func (ps Posts) ListBoosted(ctx context.Context, board string, limit int, after string) (protocol.Page[protocol.StoredPost], error) {
	return ps.listStored(ctx, listBoosted, boosted, []any{board}, limit, after)
}

// CountBoosted is the number of posts that ListBoosted returns. It reads a whole
// index.
func (ps Posts) CountBoosted(ctx context.Context, board string) (int, error) {
	return find[int](ctx, ps.tx, `SELECT count(*) FROM post WHERE `+boosted, board)
}

const postsOfActor = `SELECT ` + storedColumns + ` FROM post WHERE author_actor = ? AND node IS NOT NULL AND state <> 'deleted' ORDER BY seq + 0 LIMIT ?`

// OfActor returns the oldest stored posts by an actor of another server that are
// not deleted.
func (ps Posts) OfActor(ctx context.Context, actor string, limit int) ([]protocol.StoredPost, error) {
	rows, err := ps.tx.query(ctx, postsOfActor, actor, limit)
	items, err := collect(rows, err, scanNumbered)
	return ps.wholeAll(ctx, items, err)
}

// wholeAll adds what is in the parts of posts that were read.
func (ps Posts) wholeAll(ctx context.Context, items []numberedPost, err error) ([]protocol.StoredPost, error) {
	out := make([]protocol.StoredPost, len(items))
	for i := range items {
		if err == nil {
			err = ps.tx.whole(ctx, items[i].seq, &items[i].StoredPost)
		}
		out[i] = items[i].StoredPost
	}
	return out, err
}

func (ps Posts) listStored(ctx context.Context, listing, where string, args []any, limit int, after string) (protocol.Page[protocol.StoredPost], error) {
	limit = bounded(limit)
	before, err := position(listing, after, math.MaxInt64)
	if err != nil {
		return protocol.Page[protocol.StoredPost]{}, err
	}
	var rows *sql.Rows
	rows, err = ps.tx.query(ctx, `SELECT `+storedColumns+` FROM post WHERE `+where+` AND seq < ? ORDER BY seq DESC LIMIT ?`, append(args, before, limit+1)...)
	items, err := collect(rows, err, scanNumbered)
	if err != nil {
		return protocol.Page[protocol.StoredPost]{}, err
	}
	p := page(items, limit, listing, func(p numberedPost) string { return number(p.seq) })
	out := protocol.Page[protocol.StoredPost]{Next: p.Next}
	out.Items, err = ps.wholeAll(ctx, p.Items, nil)
	return out, err
}

// ListOwn returns the posts of a profile of this node in every state, newest
// first, each with the reason of its state: those made here, and those that came
// with an archive of the profile.
func (ps Posts) ListOwn(ctx context.Context, handle string, limit int, after string) (protocol.Page[protocol.OwnPost], error) {
	limit = bounded(limit)
	before, err := position(listOwn, after, math.MaxInt64)
	if err != nil {
		return protocol.Page[protocol.OwnPost]{}, err
	}
	text, args := ownQuery(handle, before, limit+1)
	seqs, err := list[int64](ctx, ps.tx, text, args...)
	if err != nil {
		return protocol.Page[protocol.OwnPost]{}, err
	}
	p := page(seqs, limit, listOwn, number)
	out := protocol.Page[protocol.OwnPost]{Items: []protocol.OwnPost{}, Next: p.Next}
	if len(p.Items) == 0 {
		return out, nil
	}
	in, args := inSeqs(p.Items)
	rows, err := ps.tx.query(ctx, `SELECT `+postColumns+`, state, reason FROM post WHERE `+in+` ORDER BY seq DESC`, args...)
	var found []seqPost
	out.Items, err = collect(rows, err, func(s scanner) (p protocol.OwnPost, err error) {
		var at seqPost
		at.seq, err = scanPost(s, &p.Post, &at.part, &p.State, &p.Reason)
		if p.State == protocol.Visible {
			p.Reason = "" // the reason of a restoration is the operator's note
		}
		at.Post = p.Post
		found = append(found, at)
		return p, err
	})
	if err == nil {
		err = ps.tx.wholePosts(ctx, found)
	}
	for i := range out.Items {
		out.Items[i].Body = found[i].Body
	}
	return out, err
}

// ownQuery merges the visible posts of an author with the few that are not visible,
// and with those that came with an archive of the profile.
func ownQuery(handle string, before int64, limit int) (string, []any) {
	text, args := boardQuery(protocol.BoardQuery{Author: handle}, false, before, limit)
	text = strings.TrimSuffix(text, `) m ORDER BY seq DESC LIMIT ?`) + ` UNION ALL SELECT seq FROM (SELECT seq FROM post
		WHERE author_handle IS NOT NULL AND author_handle = ? AND author_local AND state <> 'visible' AND seq < ? ORDER BY seq DESC LIMIT ?) r
		UNION ALL SELECT seq FROM (SELECT seq FROM archive_post WHERE handle = ? AND seq < ? ORDER BY seq DESC LIMIT ?) r) m ORDER BY seq DESC LIMIT ?`
	return text, append(args[:len(args)-1], handle, before, limit, handle, before, limit, limit)
}
