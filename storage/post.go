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
	proof_level, proof_subject, proof_block, proof_at, proof_owner, proof_hash, author_claimed,
	language, warning, sensitive, edited_at, revisions, likes, shares, quotes, part`

// storedColumns are those of a protocol.StoredPost.
const storedColumns = postColumns + `, state, reports, reply_to, board, unlisted, mentions, evidence, statement, object`

var postInsert = insert{
	Into: `INSERT INTO post (seq, id, uri, foreign_uri, url, kind, state, title, tags, in_reply_to, reply_to, board,
	author_name, author_handle, author_node, author_local, author_actor, author_erc8004, author_method, author_keyid,
	verified, node, created_at, stored_at, body, evidence, statement, object, root,
	reply_count, resolved_by, language, mentions, proof_level, proof_subject, proof_block, proof_at,
	proof_owner, proof_hash, author_claimed) VALUES `,
	Row:    `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	Sorted: true,
}

var tagInsert = insert{Into: `INSERT INTO post_tag (tag, kind, verified, seq) VALUES `, Row: `(?, ?, ?, ?)`}

// Posts reads and writes posts, of this node and of others.
type Posts struct{ tx *Tx }

func (tx *Tx) Posts() Posts { return Posts{tx} }

// Insert stores a new post; an empty state means visible. ErrExists when its id or
// uri is stored, also as a deleted post: a deleted post does not return. A visible
// reply increments the count of its parent, if that is stored, and may resolve it;
// a parent known only by ReplyTo is looked up, and replies that arrived before
// their parent are joined to it with their threads. The root and resolution of p
// are set here.
func (ps Posts) Insert(ctx context.Context, p *protocol.StoredPost) error {
	if !ps.tx.writes() {
		return ErrReadOnly
	}
	if p.State == "" {
		p.State = protocol.Visible
	}
	p.ReplyCount, p.Resolved, p.ResolvedBy = 0, false, nil
	p.Author.Complete(ps.tx.Now)
	seq, err := seqOf(p.ID)
	if err != nil {
		return err
	}
	if err := ps.keepWriter(ctx, p); err != nil {
		return err
	}
	plain := p.State == protocol.Visible && p.Node == nil && p.InReplyTo == nil && p.ReplyTo == "" && !foreignURI(p)
	if plain && !ps.tx.careful() {
		return ps.hold(p, seq)
	}
	return ps.insertNow(ctx, p, seq)
}

func foreignURI(p *protocol.StoredPost) bool { return !strings.HasSuffix(p.URI, "/"+p.ID) }

// hold leaves writing the post to the end of the batch.
func (ps Posts) hold(p *protocol.StoredPost, seq int64) error {
	if err := ps.tx.hold(heldPosts, postValues(ps.tx, p, seq)...); err != nil {
		return err
	}
	for _, tag := range tagKeys(p.Tags) {
		if err := ps.tx.hold(heldTags, tag, string(p.Kind), p.Author.Verified, seq); err != nil {
			return err
		}
	}
	return ps.holdWords(p, seq)
}

func postValues(tx *Tx, p *protocol.StoredPost, seq int64) []any {
	a := &p.Author
	return []any{seq, p.ID, p.URI, foreignURI(p), p.URL, string(p.Kind), string(p.State), p.Title, encodeTags(p.Tags),
		orNull(p.InReplyTo), p.ReplyTo, p.Board,
		a.Name, orNull(a.Handle), orNull(a.Node), a.Node == nil, orNull(a.Actor), orNull(a.ERC8004), string(a.Method), orNull(a.KeyID),
		a.Verified, orNull(p.Node), p.CreatedAt.UnixMilli(), tx.Now.UnixMilli(), p.Body,
		blob(p.Evidence), blob(p.Statement), blob(p.Object), orNull(p.Root),
		p.ReplyCount, orNull(p.ResolvedBy), p.Language, encodeMentions(p.Mentions), string(a.Proof.Level), proofSubject(a), a.Proof.Block,
		millisPtr(a.Proof.CheckedAt), orNull(a.Proof.Owner), orNull(a.Proof.BlockHash), a.ClaimedName}
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

// postText is the full-text document of a post: the keys of its words, those of title and tags also in the form of these, and a facet for each
// filter of the board.
func postText(p *protocol.StoredPost) string {
	tags := tagKeys(p.Tags)
	t := &text{seen: make(map[string]bool, 64), b: make([]byte, 0, len(p.Title)+len(p.Body)+256)}
	eachPostField(&p.Post, t.spell)
	b := t.b
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

// insertNow stores a post at once and detects every conflict.
func (ps Posts) insertNow(ctx context.Context, p *protocol.StoredPost, seq int64) error {
	if p.Kind == protocol.Resolution { // its parent may have to be indexed again
		if err := ps.tx.settleWords(); err != nil {
			return err
		}
	}
	if known, err := ps.has(ctx, p.URI, p.ID); err != nil || known {
		return orExists(err)
	}
	if err := ps.findParent(ctx, p); err != nil {
		return err
	}
	seq, err := ps.place(ctx, p, seq)
	if err != nil {
		return err
	}
	if p.Unlisted || p.Sensitive || p.Warning != "" || p.EditedAt != nil { // few are: no other insert carries these columns
		if _, err := ps.tx.write(ctx, `UPDATE post SET unlisted = ?, sensitive = ?, warning = ?, edited_at = ? WHERE seq = ?`,
			p.Unlisted, p.Sensitive, p.Warning, millisPtr(p.EditedAt), seq); err != nil {
			return err
		}
	}
	replies, err := ps.adoptReplies(ctx, p, seq)
	if err != nil {
		return err
	}
	if len(replies) > 0 {
		if err := ps.findResolution(ctx, p, seq); err != nil {
			return err
		}
	}
	if p.State != protocol.Visible {
		return nil
	}
	return ps.show(ctx, p, seq)
}

// place inserts the row under the first free number from seq on.
func (ps Posts) place(ctx context.Context, p *protocol.StoredPost, seq int64) (int64, error) {
	for at := seq; at < seq+nearby; at++ {
		n, err := ps.tx.write(ctx, postInsert.Into+postInsert.Row+` ON CONFLICT DO NOTHING`, postValues(ps.tx, p, at)...)
		if err != nil {
			return 0, fmt.Errorf("insert post: %w", err)
		}
		if n == 1 {
			return at, nil
		}
		// Taken since, or by another id: by the same id only on PostgreSQL.
		if _, _, err := ps.byID(ctx, p.ID); err != ErrNotFound {
			return 0, orExists(err)
		}
		if _, _, err := ps.byURI(ctx, p.URI); err != ErrNotFound {
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

// ByID returns a post in any state; ErrNotFound when there is none.
func (ps Posts) ByID(ctx context.Context, id string) (*protocol.StoredPost, error) {
	return ps.wholeOf(ps.byID(ctx, id))(ctx)
}

// wholeOf adds what is in the part of a post that was read.
func (ps Posts) wholeOf(p *protocol.StoredPost, seq int64, err error) func(context.Context) (*protocol.StoredPost, error) {
	return func(ctx context.Context) (*protocol.StoredPost, error) {
		if err == nil {
			err = ps.tx.whole(ctx, seq, p)
		}
		return p, err
	}
}

// ForUpdate is ByID for a caller that decides by the result: in a writing
// transaction the post's row is locked, so that the result is valid until its end.
func (ps Posts) ForUpdate(ctx context.Context, id string) (*protocol.StoredPost, error) {
	if !ps.tx.writes() {
		return ps.ByID(ctx, id)
	}
	if err := ps.tx.settleWords(); err != nil { // a decision removes its words
		return nil, err
	}
	return ps.wholeOf(ps.lock(ctx, id))(ctx)
}

func (ps Posts) byID(ctx context.Context, id string) (*protocol.StoredPost, int64, error) {
	return ps.read(ctx, id, "")
}

// lock is byID with a lock on the row.
func (ps Posts) lock(ctx context.Context, id string) (*protocol.StoredPost, int64, error) {
	if err := ps.tx.dirty(); err != nil {
		return nil, 0, err
	}
	return ps.read(ctx, id, ps.tx.db.engine.ForUpdate())
}

func (ps Posts) read(ctx context.Context, id, lock string) (*protocol.StoredPost, int64, error) {
	var p protocol.StoredPost
	seq, err := scanStored(ps.tx.row(ctx, `SELECT `+storedColumns+` FROM post WHERE `+byID+lock, idRange(id)...), &p)
	if err != nil {
		return nil, 0, err
	}
	return &p, seq, nil
}

// Has reports whether there is a post with that ActivityPub id, as ByURI finds
// it.
func (ps Posts) Has(ctx context.Context, uri string) (bool, error) { return ps.has(ctx, uri, "") }

// has reports whether there is a post with the ActivityPub id or, unless it is "", with the
// id.
func (ps Posts) has(ctx context.Context, uri, id string) (bool, error) {
	text, args := postKnown(uri, id)
	return ps.tx.exists(ctx, text, args...)
}

func postKnown(uri, id string) (text string, args []any) {
	text, args = `SELECT 1 FROM post WHERE uri = ? AND foreign_uri`, []any{uri}
	if own := uri[strings.LastIndexByte(uri, '/')+1:]; protocol.IsID(protocol.PostID, own) {
		text, args = text+` UNION ALL SELECT 1 FROM post WHERE `+byID+` AND uri = ?`, append(append(args, idRange(own)...), uri)
	}
	if id != "" {
		text, args = text+` UNION ALL SELECT 1 FROM post WHERE `+byID, append(args, idRange(id)...)
	}
	return text + ` LIMIT 1`, args
}

// ByURI returns the post with that ActivityPub id, of this node or another, in any
// state; ErrNotFound when there is none.
func (ps Posts) ByURI(ctx context.Context, uri string) (*protocol.StoredPost, error) {
	return ps.wholeOf(ps.byURI(ctx, uri))(ctx)
}

func (ps Posts) byURI(ctx context.Context, uri string) (*protocol.StoredPost, int64, error) {
	if id := uri[strings.LastIndexByte(uri, '/')+1:]; protocol.IsID(protocol.PostID, id) {
		p, seq, err := ps.byID(ctx, id)
		if err == nil && p.URI == uri || err != nil && err != ErrNotFound {
			return p, seq, err
		}
	}
	var p protocol.StoredPost
	seq, err := scanStored(ps.tx.row(ctx, `SELECT `+storedColumns+` FROM post WHERE uri = ? AND foreign_uri`, uri), &p)
	if err != nil {
		return nil, 0, err
	}
	return &p, seq, nil
}

func scanPost(s scanner, p *protocol.Post, part *int64, more ...any) (seq int64, err error) {
	var tags string
	var created int64
	var level *string
	var checked, edited *int64
	a := &p.Author
	dest := append([]any{&seq, &p.ID, &p.URI, &p.URL, &p.Kind, &p.Title, &p.Body, &tags, &p.InReplyTo, &p.Node, &p.ReplyCount, &created,
		&a.Name, &a.Handle, &a.Node, &a.Actor, &a.ERC8004, &a.Method, &a.KeyID, &a.Verified, &p.Root, &p.ResolvedBy,
		&level, &a.Proof.Subject, &a.Proof.Block, &checked, &a.Proof.Owner, &a.Proof.BlockHash, &a.ClaimedName,
		&p.Language, &p.Warning, &p.Sensitive, &edited, &p.Revisions, &p.Likes, &p.Shares, &p.Quotes, part}, more...)
	if err := s.Scan(dest...); err != nil {
		return 0, err
	}
	if level != nil { // otherwise it was stored before levels existed
		a.Proof.Level = protocol.ProofLevel(*level)
	}
	a.Proof.CheckedAt, p.EditedAt = momentPtr(checked), momentPtr(edited)
	if p.Node == nil { // checked when it was written
		a.Complete(moment(created))
	} else {
		a.Complete(time.Time{})
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
	seq, err := scanPost(s, &p.Post, &p.Part, append([]any{
		&p.State, &p.Reports, &p.ReplyTo, &p.Board, &p.Unlisted, &mentions, &evidence, &statement, &object,
	}, more...)...)
	p.Evidence, p.Statement, p.Object = evidence, statement, object
	if err == nil && mentions != "" {
		err = json.Unmarshal([]byte(mentions), &p.Mentions)
	}
	return seq, err
}

// Count is how many posts of this node are visible.
func (ps Posts) Count(ctx context.Context) (n int, err error) {
	err = ps.tx.row(ctx, `SELECT (SELECT count(*) FROM post WHERE state = 'visible')
		- (SELECT count(*) FROM post WHERE state = 'visible' AND node IS NOT NULL)`).Scan(&n)
	return n, err
}
