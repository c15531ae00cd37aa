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

// List returns visible posts, newest first by id. All filters combine. A handle
// means the author of this node if it has a profile of that name, otherwise authors
// of that name on any node. Words are found in title and body, and all must occur;
// a q without any word finds nothing.
func (ps Posts) List(ctx context.Context, q protocol.BoardQuery) (protocol.Page[protocol.Post], error) {
	limit := bounded(q.Limit)
	before, err := position(listBoard, q.After, math.MaxInt64)
	if err != nil {
		return protocol.Page[protocol.Post]{}, err
	}
	q.Tag = tagKey(q.Tag)
	anywhere := false
	if q.Author != "" {
		_, err := ps.tx.Profiles().ByHandle(ctx, q.Author)
		if anywhere = err == ErrNotFound; err != nil && !anywhere {
			return protocol.Page[protocol.Post]{}, err
		}
	}
	var seqs []int64
	words := queryWords(q.Q)
	switch {
	case q.Q != "" && len(words) == 0, q.Resolved != nil && q.Kind != "" && !q.Kind.Resolvable():
	case q.Q == "" && q.Resolved == nil && q.Root == "" && (q.Author == "" || q.Tag == ""):
		text, args := boardQuery(q, anywhere, before, limit+1)
		rows, err := ps.tx.query(ctx, text, args...)
		if seqs, err = collect(rows, err, scanInt); err != nil {
			return protocol.Page[protocol.Post]{}, err
		}
	default:
		if seqs, err = postWords.find(ctx, ps.tx, boardWords(q, anywhere, words), before, limit+1); err != nil {
			return protocol.Page[protocol.Post]{}, err
		}
	}
	return ps.page(ctx, listBoard, seqs, limit)
}

// boardWords are the words and filters of a query as words of the index, roughly
// rarest first.
func boardWords(q protocol.BoardQuery, anywhere bool, words []string) []string {
	var all []string
	add := func(name, value string) { all = append(all, facet(name, value)) }
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
	all = append(all, words...)
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
// verified means both. Author and tag together use the index of words (boardWords).
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
	in, args := inSeqs(p.Items)
	rows, err := ps.tx.query(ctx, `SELECT `+postColumns+` FROM post WHERE `+in+` ORDER BY seq DESC`, args...)
	out.Items, err = collect(rows, err, func(s scanner) (p protocol.Post, err error) {
		_, err = scanPost(s, &p)
		return p, err
	})
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
	return collect(rows, err, func(s scanner) (p protocol.StoredPost, err error) {
		_, err = scanStored(s, &p)
		return p, err
	})
}

func (ps Posts) listStored(ctx context.Context, listing, where string, args []any, limit int, after string) (protocol.Page[protocol.StoredPost], error) {
	limit = bounded(limit)
	before, err := position(listing, after, math.MaxInt64)
	if err != nil {
		return protocol.Page[protocol.StoredPost]{}, err
	}
	type item struct {
		protocol.StoredPost
		seq int64
	}
	var rows *sql.Rows
	rows, err = ps.tx.query(ctx, `SELECT `+storedColumns+` FROM post WHERE `+where+` AND seq < ? ORDER BY seq DESC LIMIT ?`, append(args, before, limit+1)...)
	items, err := collect(rows, err, func(s scanner) (i item, err error) {
		i.seq, err = scanStored(s, &i.StoredPost)
		return i, err
	})
	if err != nil {
		return protocol.Page[protocol.StoredPost]{}, err
	}
	p := page(items, limit, listing, func(i item) string { return number(i.seq) })
	out := protocol.Page[protocol.StoredPost]{Items: make([]protocol.StoredPost, len(p.Items)), Next: p.Next}
	for i := range p.Items {
		out.Items[i] = p.Items[i].StoredPost
	}
	return out, nil
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
	out.Items, err = collect(rows, err, func(s scanner) (p protocol.OwnPost, err error) {
		_, err = scanPost(s, &p.Post, &p.State, &p.Reason)
		if p.State == protocol.Visible {
			p.Reason = "" // the reason of a restoration is the operator's note
		}
		return p, err
	})
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
