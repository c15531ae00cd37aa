package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"stoa/protocol"
)

// postColumns are the columns of a protocol.Post, in the order of scanPost.
const postColumns = `seq, id, uri, url, kind, title, body, tags, in_reply_to, node, reply_count, created_at,
	author_name, author_handle, author_node, author_actor, author_erc8004, author_method, author_keyid, verified, root, resolved_by,
	proof_level, proof_subject, proof_block, proof_at`

// storedColumns are those of a protocol.StoredPost.
const storedColumns = postColumns + `, state, reports, reply_to, board, language, mentions, evidence, statement, object`

var postInsert = insert{
	into: `INSERT INTO post (seq, id, uri, foreign_uri, url, kind, state, title, tags, in_reply_to, reply_to, board,
	author_name, author_handle, author_node, author_local, author_actor, author_erc8004, author_method, author_keyid,
	verified, node, created_at, stored_at, body, evidence, statement, object, root,
	reply_count, resolved_by, language, mentions, proof_level, proof_subject, proof_block, proof_at) VALUES `,
	row:   `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	bySeq: true,
}

var tagInsert = insert{into: `INSERT INTO post_tag (tag, kind, verified, seq) VALUES `, row: `(?, ?, ?, ?)`}

// InsertPost stores a new post; an empty state means visible. ErrExists when its id
// or uri is stored, also as a deleted post: a deleted post does not return. A
// visible reply increments the count of its parent, if that is stored, and may
// resolve it; a parent known only by ReplyTo is looked up, and replies that arrived
// before their parent are joined to it with their threads. The root and resolution
// of p are set here.
func (tx *Tx) InsertPost(ctx context.Context, p *protocol.StoredPost) error {
	if tx.batch == nil {
		return ErrReadOnly
	}
	if p.State == "" {
		p.State = protocol.Visible
	}
	p.ReplyCount, p.Resolved, p.ResolvedBy = 0, false, nil
	p.Author.Rest(tx.Now)
	seq, err := seqOf(p.ID)
	if err != nil {
		return err
	}
	if err := tx.keepWriter(ctx, p); err != nil {
		return err
	}
	plain := p.State == protocol.Visible && p.Node == nil && p.InReplyTo == nil && p.ReplyTo == "" && !foreignURI(p)
	if plain && !tx.batch.careful {
		return tx.holdPost(p, seq)
	}
	return tx.insertPostNow(ctx, p, seq)
}

func foreignURI(p *protocol.StoredPost) bool { return !strings.HasSuffix(p.URI, "/"+p.ID) }

// holdPost leaves writing the post to the end of the batch.
func (tx *Tx) holdPost(p *protocol.StoredPost, seq int64) error {
	b := tx.batch
	if !b.posts.first(seq) {
		return b.apart(ErrExists) // two ids of one number, or one id twice: the run in a transaction alone decides
	}
	b.touched = true
	b.posts.add(postValues(tx, p, seq)...)
	for _, tag := range tagKeys(p.Tags) {
		b.tags.add(tag, string(p.Kind), p.Author.Verified, seq)
	}
	b.words.add(seq, postText(p))
	return nil
}

func postValues(tx *Tx, p *protocol.StoredPost, seq int64) []any {
	a := &p.Author
	return []any{seq, p.ID, p.URI, foreignURI(p), p.URL, string(p.Kind), string(p.State), p.Title, encodeTags(p.Tags),
		orNull(p.InReplyTo), p.ReplyTo, p.Board,
		a.Name, orNull(a.Handle), orNull(a.Node), a.Node == nil, orNull(a.Actor), orNull(a.ERC8004), string(a.Method), orNull(a.KeyID),
		a.Verified, orNull(p.Node), p.CreatedAt.UnixMilli(), tx.Now.UnixMilli(), p.Body,
		blob(p.Evidence), blob(p.Statement), blob(p.Object), orNull(p.Root),
		p.ReplyCount, orNull(p.ResolvedBy), p.Language, encodeMentions(p.Mentions), string(a.Proof.Level), proofSubject(a), a.Proof.Block,
		millisPtr(a.Proof.CheckedAt)}
}

// proofSubject is the stored subject of a proof: that of a key directory. The other
// subjects are the author's identity or actor.
func proofSubject(a *protocol.Author) any {
	if a.Proof.Level != protocol.ByDirectory {
		return nil
	}
	return orNull(a.Proof.Subject)
}

func orNull(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}

func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

func encodeTags(tags []string) string {
	if len(tags) == 0 {
		return "[]"
	}
	raw, _ := json.Marshal(tags) // strings always encode
	return string(raw)
}

func encodeMentions(all []protocol.Mention) string {
	if len(all) == 0 {
		return ""
	}
	raw, _ := json.Marshal(all) // strings always encode
	return string(raw)
}

// postText is the full-text document of a post: its words, and a facet for each
// filter of the board.
func postText(p *protocol.StoredPost) string {
	tags := tagKeys(p.Tags)
	b := make([]byte, 0, len(p.Title)+len(p.Body)+128)
	b = fold(b, p.Title)
	b = fold(b, p.Body)
	b = addFacet(b, facetKind, string(p.Kind))
	if p.Author.Verified {
		b = addFacet(b, facetVerified, "")
		b = addFacet(b, facetKindVerified, string(p.Kind))
	}
	if h := p.Author.Handle; h != nil {
		b = addFacet(b, facetAnyAuthor, *h)
		for _, tag := range tags {
			b = addFacet(b, facetAnyAuthorTag, *h+" "+tag)
		}
		if p.Author.Node == nil {
			b = addFacet(b, facetAuthor, *h)
			for _, tag := range tags {
				b = addFacet(b, facetAuthorTag, *h+" "+tag)
			}
		}
	}
	if p.Root != nil {
		b = addFacet(b, facetRoot, *p.Root)
	}
	switch {
	case p.ResolvedBy != nil:
		b = addFacet(b, facetResolved, "")
		b = addFacet(b, facetResolved, string(p.Kind))
	case p.Kind.Resolvable():
		b = addFacet(b, facetOpen, "")
		b = addFacet(b, facetOpen, string(p.Kind))
	}
	for _, tag := range tags {
		b = addFacet(b, facetTag, tag)
		if p.Author.Verified {
			b = addFacet(b, facetTagVerified, tag)
		}
	}
	return string(b)
}

// insertPostNow stores a post at once and detects every conflict.
func (tx *Tx) insertPostNow(ctx context.Context, p *protocol.StoredPost, seq int64) error {
	if p.Kind == protocol.Resolution { // its parent may have to be indexed again
		if err := tx.settleWords(); err != nil {
			return err
		}
	}
	if known, err := tx.HasPost(ctx, p.URI); err != nil || known {
		return orExists(err)
	}
	if err := tx.findParent(ctx, p); err != nil {
		return err
	}
	seq, err := tx.placePost(ctx, p, seq)
	if err != nil {
		return err
	}
	replies, err := tx.adoptReplies(ctx, p, seq)
	if err != nil {
		return err
	}
	if len(replies) > 0 {
		if err := tx.findResolution(ctx, p, seq); err != nil {
			return err
		}
	}
	if p.State != protocol.Visible {
		return nil
	}
	return tx.showPost(ctx, p, seq)
}

// placePost inserts the row under the first free number from seq on.
func (tx *Tx) placePost(ctx context.Context, p *protocol.StoredPost, seq int64) (int64, error) {
	if known, err := tx.hasPost(ctx, byID, idRange(p.ID)...); err != nil || known {
		return 0, orExists(err)
	}
	for at := seq; at < seq+nearby; at++ {
		n, err := tx.write(ctx, postInsert.into+postInsert.row+` ON CONFLICT DO NOTHING`, postValues(tx, p, at)...)
		if err != nil {
			return 0, fmt.Errorf("insert post: %w", err)
		}
		if n == 1 {
			return at, nil
		}
		// Taken since, or by another id: by the same id only on PostgreSQL.
		if _, _, err := tx.postByID(ctx, p.ID); err != ErrNotFound {
			return 0, orExists(err)
		}
		if _, _, err := tx.postByURI(ctx, p.URI); err != ErrNotFound {
			return 0, orExists(err)
		}
	}
	return 0, fmt.Errorf("storage: no room for post %s near its time", p.ID)
}

func orExists(err error) error {
	if err == nil {
		return ErrExists
	}
	return err
}

// byID finds a post by its id, with the arguments of idRange.
const byID = `seq BETWEEN ? AND ? AND id = ?`

func idRange(id string) []any {
	seq, err := seqOf(id)
	if err != nil {
		return []any{int64(1), int64(0), id} // an empty range: no such post
	}
	return []any{seq, seq + nearby, id}
}

// PostByID returns a post in any state; ErrNotFound when there is none.
func (tx *Tx) PostByID(ctx context.Context, id string) (*protocol.StoredPost, error) {
	p, _, err := tx.postByID(ctx, id)
	return p, err
}

// PostToDecide is PostByID for a caller that decides by the result: in a writing
// transaction the post's row is locked, so that the result is valid until its end.
func (tx *Tx) PostToDecide(ctx context.Context, id string) (*protocol.StoredPost, error) {
	if tx.batch == nil {
		return tx.PostByID(ctx, id)
	}
	if err := tx.settleWords(); err != nil { // a decision removes its words
		return nil, err
	}
	p, _, err := tx.lockPost(ctx, id)
	return p, err
}

func (tx *Tx) postByID(ctx context.Context, id string) (*protocol.StoredPost, int64, error) {
	return tx.onePost(ctx, id, "")
}

// lockPost is postByID with a lock on the row.
func (tx *Tx) lockPost(ctx context.Context, id string) (*protocol.StoredPost, int64, error) {
	if err := tx.dirty(); err != nil {
		return nil, 0, err
	}
	return tx.onePost(ctx, id, tx.db.engine.forUpdate())
}

func (tx *Tx) onePost(ctx context.Context, id, lock string) (*protocol.StoredPost, int64, error) {
	var p protocol.StoredPost
	seq, err := scanStored(tx.row(ctx, `SELECT `+storedColumns+` FROM post WHERE `+byID+lock, idRange(id)...), &p)
	if err != nil {
		return nil, 0, err
	}
	return &p, seq, nil
}

// HasPost reports whether there is a post with that ActivityPub id, as PostByURI
// finds it.
func (tx *Tx) HasPost(ctx context.Context, uri string) (bool, error) {
	if id := uri[strings.LastIndexByte(uri, '/')+1:]; protocol.IsID(protocol.PostID, id) {
		known, err := tx.hasPost(ctx, byID+` AND uri = ?`, append(idRange(id), uri)...)
		if err != nil || known {
			return known, err
		}
	}
	return tx.hasPost(ctx, `uri = ? AND foreign_uri`, uri)
}

func (tx *Tx) hasPost(ctx context.Context, where string, args ...any) (bool, error) {
	var one int
	err := tx.row(ctx, `SELECT 1 FROM post WHERE `+where, args...).Scan(&one)
	if err == ErrNotFound {
		return false, nil
	}
	return err == nil, err
}

// PostByURI returns the post with that ActivityPub id, of this node or another, in
// any state; ErrNotFound when there is none.
func (tx *Tx) PostByURI(ctx context.Context, uri string) (*protocol.StoredPost, error) {
	p, _, err := tx.postByURI(ctx, uri)
	return p, err
}

func (tx *Tx) postByURI(ctx context.Context, uri string) (*protocol.StoredPost, int64, error) {
	if id := uri[strings.LastIndexByte(uri, '/')+1:]; protocol.IsID(protocol.PostID, id) {
		p, seq, err := tx.postByID(ctx, id)
		if err == nil && p.URI == uri || err != nil && err != ErrNotFound {
			return p, seq, err
		}
	}
	var p protocol.StoredPost
	seq, err := scanStored(tx.row(ctx, `SELECT `+storedColumns+` FROM post WHERE uri = ? AND foreign_uri`, uri), &p)
	if err != nil {
		return nil, 0, err
	}
	return &p, seq, nil
}

func scanPost(s scanner, p *protocol.Post, more ...any) (seq int64, err error) {
	var tags string
	var created int64
	var level *string
	var checked *int64
	a := &p.Author
	dest := append([]any{&seq, &p.ID, &p.URI, &p.URL, &p.Kind, &p.Title, &p.Body, &tags, &p.InReplyTo, &p.Node, &p.ReplyCount, &created,
		&a.Name, &a.Handle, &a.Node, &a.Actor, &a.ERC8004, &a.Method, &a.KeyID, &a.Verified, &p.Root, &p.ResolvedBy,
		&level, &a.Proof.Subject, &a.Proof.Block, &checked}, more...)
	if err := s.Scan(dest...); err != nil {
		return 0, err
	}
	if level != nil { // otherwise it was stored before levels existed
		a.Proof.Level = protocol.ProofLevel(*level)
	}
	a.Proof.CheckedAt = momentPtr(checked)
	if p.Node == nil { // checked when it was written
		a.Rest(moment(created))
	} else {
		a.Rest(time.Time{})
	}
	p.Resolved = p.ResolvedBy != nil
	p.CreatedAt, p.Untrusted, p.Tags = moment(created), true, []string{}
	if tags != "[]" {
		if err := json.Unmarshal([]byte(tags), &p.Tags); err != nil {
			return 0, fmt.Errorf("tags of post %s: %w", p.ID, err)
		}
	}
	return seq, nil
}

// scanStored reads storedColumns, and what is selected after them into more.
func scanStored(s scanner, p *protocol.StoredPost, more ...any) (int64, error) {
	var evidence, statement, object []byte
	var mentions string
	seq, err := scanPost(s, &p.Post, append([]any{
		&p.State, &p.Reports, &p.ReplyTo, &p.Board, &p.Language, &mentions, &evidence, &statement, &object,
	}, more...)...)
	p.Evidence, p.Statement, p.Object = evidence, statement, object
	if err == nil && mentions != "" {
		err = json.Unmarshal([]byte(mentions), &p.Mentions)
	}
	return seq, err
}

// CountPosts is how many posts of this node are visible.
func (tx *Tx) CountPosts(ctx context.Context) (n int, err error) {
	err = tx.row(ctx, `SELECT (SELECT count(*) FROM post WHERE state = 'visible')
		- (SELECT count(*) FROM post WHERE state = 'visible' AND node IS NOT NULL)`).Scan(&n)
	return n, err
}
