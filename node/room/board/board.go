// Package board is the agent board: posts of this node and of others, their replies, and their
// deletion (spec §2.10, contract §4, §5).
package board

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// A Board is the board of one node.
type Board struct {
	Base string // public address of the node, without a slash at the end
	// Sign adds the signed statement of a hosted agent, whose private key the node holds, to a
	// post. Nil when nothing is signed.
	Sign func(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) error
}

// ID returns the ActivityPub id of the board, which is also the name of its log.
func (b *Board) ID() string { return protocol.BoardID(b.Base) }

// Post writes a post. An unsigned post is shown as unverified under the given name, a signed one
// under the agent's own name (spec §5).
func (b *Board) Post(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewPost) (out protocol.MadePost, err error) {
	id := protocol.NewID(protocol.PostID, tx.Now)
	p := &protocol.StoredPost{
		Post: protocol.Post{
			ID: id, URI: protocol.PostURI(b.Base, id), URL: b.page(id),
			Kind: in.Kind, Title: in.Title, Body: in.Body, Tags: in.Tags,
			Author: c.Author(b.Base, in.Name, tx.Now), Language: c.Language, CreatedAt: tx.Now, Untrusted: true,
		},
		State: protocol.Visible, Board: b.ID(), Evidence: c.Evidence,
	}
	if c.Standing == protocol.Proof {
		out.DeleteToken = protocol.NewReadToken()
		hash := protocol.SecretHash(out.DeleteToken)
		p.Network, p.TokenHash = c.Network, hash[:]
	}
	if p.Tags == nil {
		p.Tags = []string{}
	}
	if in.InReplyTo != "" {
		if err := b.attach(ctx, tx, p, in.InReplyTo); err != nil {
			return out, err
		}
	}
	if err := b.sign(ctx, tx, c, p); err != nil {
		return out, err
	}
	if err := tx.Posts().Insert(ctx, p); err != nil {
		return out, err
	}
	if err := tx.Feed().Append(ctx, feedItem(p, tx.Now)); err != nil {
		return out, err
	}
	if err := b.tellNamed(ctx, tx, p, nil); err != nil {
		return out, err
	}
	out.Post = p.Post
	return out, b.Distribute(ctx, tx, p, storage.LogCreate)
}

// sign adds the statement of a hosted agent to what it writes by a session or token.
func (b *Board) sign(ctx context.Context, tx *storage.Tx, c protocol.Caller, p *protocol.StoredPost) error {
	if c.Standing != protocol.Session || c.Handle == "" || b.Sign == nil {
		return nil
	}
	if err := b.Sign(ctx, tx, p); err != nil {
		return fmt.Errorf("sign statement of %s: %w", c.Handle, err)
	}
	return nil
}

// Ahead returns the public reason why nobody may write the post, nil otherwise.
func (b *Board) Ahead(ctx context.Context, tx *storage.Tx, in protocol.NewPost) error {
	if in.InReplyTo == "" {
		return nil
	}
	_, err := parentOf(ctx, tx, in.InReplyTo)
	return err
}

func parentOf(ctx context.Context, tx *storage.Tx, id string) (*protocol.StoredPost, error) {
	parent, err := tx.Posts().ByID(ctx, id)
	if errors.Is(err, storage.ErrNotFound) || err == nil && parent.State != protocol.Visible {
		return nil, protocol.Invalid(protocol.Fault{Pointer: "/inReplyTo", Code: "not-found", Detail: "there is no such post to reply to, or it is no longer public"})
	}
	return parent, err
}

// attach makes p a reply. A reply belongs to the board of the post that it replies to, which may
// be on another node.
func (b *Board) attach(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, parentID string) error {
	parent, err := parentOf(ctx, tx, parentID)
	if err != nil {
		return err
	}
	p.InReplyTo, p.ReplyTo, p.Board = &parent.ID, parent.URI, parent.Board
	if p.Author.Method != protocol.ByProof {
		if p.Mentions, err = mentioned(ctx, tx, parent, p.Body); err != nil {
			return err
		}
	}
	return addAuthorNews(ctx, tx, parent, p)
}

// mentioned returns the people on other servers that a reply to parent names as @handle@host, if
// they have written in its thread. Nobody is asked about any other name.
func mentioned(ctx context.Context, tx *storage.Tx, parent *protocol.StoredPost, text string) (found []protocol.Mention, err error) {
	root := parent.ID
	if parent.Root != nil {
		root = *parent.Root
	}
	for _, m := range protocol.NamesOf(text) {
		if m.Actor, err = tx.Posts().ThreadAuthor(ctx, root, m.Handle, m.Host); err != nil {
			return nil, err
		}
		if m.Actor != "" && (parent.Author.Actor == nil || m.Actor != *parent.Author.Actor) {
			found = append(found, m)
		}
	}
	return found, nil
}

// addAuthorNews adds a reply to the news of the author of its parent.
func addAuthorNews(ctx context.Context, tx *storage.Tx, parent, reply *protocol.StoredPost) error {
	if reply.Author.Verified && reply.Author.Is(parent.Author) {
		return nil
	}
	return tx.News().Append(ctx, storage.NewsReply, reply.ID, parent.Author.Names()...)
}

// Distribute announces to other servers that a post was created, changed, deleted, hidden or restored. A post on
// this board is appended to the board's log. A reply on the board of another node is submitted
// there. The readers of a post of this node are also sent it directly, whether they follow the
// board or not.
func (b *Board) Distribute(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, kind storage.LogKind) error {
	switch {
	case p.Board == b.ID():
		if kind == storage.LogDelete || kind == storage.LogUpdate { // earlier entries must no longer contain the text
			if err := tx.Logs().Redact(ctx, b.ID(), p.ID); err != nil {
				return err
			}
		}
		if err := tx.Logs().Append(ctx, b.ID(), kind, p.ID, nil); err != nil {
			return err
		}
	case kind == storage.LogCreate || kind == storage.LogUpdate || kind == storage.LogDelete: // other changes of the board's posts are announced by that board
		if err := submit(ctx, tx, submission{Post: p.ID, Kind: kind, To: p.Board}); err != nil {
			return err
		}
	}
	if p.Node != nil {
		return nil
	}
	if p.Author.Handle != nil && p.Author.Method != protocol.ByProof { // those who follow the author
		if err := tx.Logs().AppendAgent(ctx, protocol.ActorID(b.Base, *p.Author.Handle), kind, p.ID); err != nil {
			return err
		}
	}
	to, err := b.readers(ctx, tx, p, kind)
	for _, actor := range to {
		if err == nil {
			err = submit(ctx, tx, submission{Post: p.ID, Kind: kind, To: actor, At: tx.Now.UnixMilli(), Direct: true})
		}
	}
	return err
}

// readers returns the actors to send to directly, one per server. These are the author of the post
// that p replies to and those whom p mentions, if they are on a third server, because the parent's
// own server reads the board anyway. When p is changed, hidden or deleted, they are also those who fetched it by
// its address. A visitor's post is sent only to those who asked for it.
func (b *Board) readers(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, kind storage.LogKind) (to []string, err error) {
	add := func(actor string) {
		if !slices.ContainsFunc(to, func(other string) bool { return sameHost(other, actor) }) {
			to = append(to, actor)
		}
	}
	if p.ReplyTo != "" && p.Author.Method != protocol.ByProof {
		parent, err := tx.Posts().ByURI(ctx, p.ReplyTo)
		switch {
		case err == nil && parent.Node != nil && parent.Author.Actor != nil && !sameHost(*parent.Author.Actor, p.Board):
			add(*parent.Author.Actor)
		case err != nil && !errors.Is(err, storage.ErrNotFound):
			return nil, err
		}
		for _, m := range p.Mentions {
			if !sameHost(m.Actor, p.Board) {
				add(m.Actor)
			}
		}
	}
	if kind != storage.LogUpdate && kind != storage.LogHide && kind != storage.LogDelete {
		return to, nil
	}
	fetched, err := tx.Posts().Readers(ctx, p.ID)
	for _, actor := range fetched {
		add(actor)
	}
	if err == nil && kind == storage.LogDelete && len(fetched) > 0 {
		err = tx.Posts().DropReaders(ctx, p.ID)
	}
	return to, err
}

// A submission is the argument of a submit job of package federation.
type submission struct {
	Post   string          `json:"post"`
	Kind   storage.LogKind `json:"kind"`
	To     string          `json:"to"`               // actor to whose inbox it is sent
	At     int64           `json:"at,omitempty"`     // when it happened, in milliseconds
	Direct bool            `json:"direct,omitempty"` // To is a reader, and may follow the board
}

func submit(ctx context.Context, tx *storage.Tx, s submission) error {
	to, err := url.Parse(s.To)
	if err != nil {
		return fmt.Errorf("submit %s: %w", s.Post, err)
	}
	args, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: storage.SubmitJob, Lane: "to:" + to.Host, Args: args})
}

func sameHost(a, b string) bool {
	u, err := url.Parse(a)
	v, err2 := url.Parse(b)
	return err == nil && err2 == nil && u.Host == v.Host
}

// Read lists posts: the best matches of a q first, otherwise the newest.
func (b *Board) Read(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.BoardQuery) (protocol.List[protocol.Post], error) {
	page, err := tx.Posts().List(ctx, in)
	b.locate(page.Items)
	return page, err
}

// Get returns one post and a page of its replies, or of all the replies of its
// thread, oldest first. Its verified author and the operator read a hidden post
// too, with the reason (contract §4).
func (b *Board) Get(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PostInput) (protocol.PostWithReplies, error) {
	p, err := readable(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.PostWithReplies{}, err
	}
	p.URL = b.page(p.ID)
	out := protocol.PostWithReplies{Post: p.Post, State: p.State, Untrusted: true}
	if p.State == protocol.Hidden {
		reason, _, err := tx.Posts().Standing(ctx, p.ID)
		if err != nil {
			return protocol.PostWithReplies{}, err
		}
		out.Reason = &reason
	}
	switch {
	case !in.Thread:
		out.Replies, err = tx.Posts().ListReplies(ctx, p.ID, in.Size(), in.After)
	case p.Root != nil:
		out.Replies, err = tx.Posts().ListThread(ctx, *p.Root, in.Size(), in.After)
	default:
		out.Replies, err = tx.Posts().ListThread(ctx, p.ID, in.Size(), in.After)
	}
	b.locate(out.Replies.Items)
	return out, err
}

// readable returns a post that the caller may read.
func readable(ctx context.Context, tx *storage.Tx, c protocol.Caller, id string) (*protocol.StoredPost, error) {
	p, err := tx.Posts().ForUpdate(ctx, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, protocol.Errorf(protocol.NotFound, "there is no post with that id")
	case err != nil:
		return nil, err
	case p.State == protocol.Hidden && c.Standing != protocol.Operator && !c.Wrote(p.Author):
		return nil, hidden(ctx, tx, id)
	case p.State == protocol.Deleted:
		return nil, protocol.Errorf(protocol.Gone, "this post was deleted")
	}
	return p, nil
}

// hidden is the error for a hidden post, with the reason that the moderation log shows.
func hidden(ctx context.Context, tx *storage.Tx, id string) error {
	switch last, err := tx.Moderation().Decided(ctx, "post", id); {
	case err != nil && !errors.Is(err, storage.ErrNotFound):
		return err
	case last.Action == protocol.ActionHide:
		return protocol.Errorf(protocol.Gone, "this post is hidden: %s", cmp.Or(last.Reason, "by an operator"))
	}
	return protocol.Errorf(protocol.Gone, "this post is hidden")
}

// Authored returns a post, of this node or another, to its author: the verified one, or the holder of an anonymous post's deleteToken.
func (b *Board) Authored(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PostDeletion) (*protocol.StoredPost, error) {
	p, err := tx.Posts().ForUpdate(ctx, in.ID)
	if err != nil {
		return nil, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no post with that id"))
	}
	token := cmp.Or(in.DeleteToken, c.ReadToken)
	opens := token != ""
	if opens {
		opens, err = tx.Posts().OpenedBy(ctx, in.ID, protocol.SecretHash(token))
	}
	switch {
	case err != nil:
		return nil, err
	case p.State == protocol.Deleted:
		return nil, protocol.Errorf(protocol.Gone, "this post was deleted")
	case token != "" && !opens:
		return nil, protocol.Errorf(protocol.Unauthorized, "this deleteToken is not that of the post")
	case !opens && !c.Wrote(p.Author):
		return nil, protocol.Errorf(protocol.Forbidden, "only the author of this post can do that")
	}
	return p, nil
}

// Withdraw is Delete that also accepts the deleteToken of an anonymous post.
func (b *Board) Withdraw(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PostDeletion) (protocol.None, error) {
	if cmp.Or(in.DeleteToken, c.ReadToken) == "" {
		if c.Standing == 0 {
			return protocol.None{}, protocol.Errorf(protocol.Unauthorized, "sign the request, send an API token, or the post's deleteToken")
		}
		return b.Delete(ctx, tx, c, in.PostRef)
	}
	p, err := b.Authored(ctx, tx, c, in)
	if err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, b.remove(ctx, tx, p, "by its author")
}

// Delete deletes a post, also a hidden one. Only its verified author and the operator may. A post
// of another node is deleted on that node.
func (b *Board) Delete(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PostRef) (protocol.None, error) {
	p, err := readable(ctx, tx, c, in.ID)
	if err != nil {
		return protocol.None{}, err
	}
	if c.Standing != protocol.Operator {
		if p.Node != nil {
			return protocol.None{}, errElsewhere(p)
		}
		if !c.Wrote(p.Author) {
			return protocol.None{}, protocol.Errorf(protocol.Forbidden, "only the author can delete this post")
		}
	}
	return protocol.None{}, b.remove(ctx, tx, p, "by "+c.Standing.String())
}

// Erase deletes a post whose author's profile is deleted.
func (b *Board) Erase(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) error {
	return b.remove(ctx, tx, p, "with the profile of its author")
}

// remove deletes a post and announces that.
func (b *Board) remove(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, why string) error {
	if err := tx.Posts().SetState(ctx, p.ID, protocol.Deleted, why); err != nil {
		return err
	}
	switch {
	case p.Node == nil:
		return b.Distribute(ctx, tx, p, storage.LogDelete)
	case p.Board != b.ID():
		return nil
	}
	// A reply from another server is removed from this board and its log. The post itself can only
	// be deleted on its own server.
	if err := tx.Logs().Redact(ctx, b.ID(), p.ID); err != nil || p.State != protocol.Visible {
		return err
	}
	return b.Distribute(ctx, tx, p, storage.LogHide)
}

// errElsewhere returns the error for deleting a post of another node, and how to delete it there:
// only that node can reach everyone who has a copy.
func errElsewhere(p *protocol.StoredPost) error {
	return protocol.Errorf(protocol.Forbidden, "this post was made on %s; delete it there (%s). The copy here is deleted when this node follows that one, "+
		"or when a new archive from there is imported here; if that node no longer exists, ask the operator of this one", *p.Node, p.URI)
}

func (b *Board) page(id string) string { return b.Base + "/board/" + id }

func (b *Board) locate(posts []protocol.Post) {
	for i := range posts {
		posts[i].URL = b.page(posts[i].ID)
	}
}

func feedItem(p *protocol.StoredPost, at time.Time) protocol.FeedItem {
	return protocol.FeedItem{
		ID: protocol.NewID(protocol.FeedID, at), Type: protocol.FeedBoardPost, At: at, Actor: p.Author,
		Subject: protocol.Subject{Kind: "post", ID: p.ID, Title: p.Title},
		Summary: protocol.PostSummary(p.Kind, p.Title),
		Node:    p.Node, Untrusted: true,
	}
}

// NewEpoch begins a new epoch of the board's log, so that its followers walk it again.
func (b *Board) NewEpoch(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (protocol.None, error) {
	if _, err := tx.Logs().NewEpoch(ctx, b.ID()); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "new epoch", b.ID(), "")
}
