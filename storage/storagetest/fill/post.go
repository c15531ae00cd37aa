package fill

import (
	"context"
	"fmt"

	"stoa/protocol"
	"stoa/storage"
)

// post writes post n with its feed item.
func (w *writer) post(ctx context.Context, tx *storage.Tx, n int) error {
	r := w.of(1, n)
	id, at := w.postID(n), w.at(n)
	kind, hindi := protocol.PostKinds[w.plan.kind[n]], inHindi(r)
	p := &protocol.StoredPost{Board: protocol.BoardID(w.Base), Post: protocol.Post{
		ID: id, URI: protocol.PostURI(w.Base, id), URL: w.Base + "/board/" + id, Kind: kind,
		Title: w.title(r, kind, hindi), Body: w.sentences(r, hindi, 12, 60), Tags: w.drawTags(r, 3),
		Author: w.author(int(w.plan.author[n]), n), ReplyCount: int(w.plan.replies[n]), CreatedAt: at, Untrusted: true,
	}}
	if parent := int(w.plan.parent[n]); parent >= 0 {
		up, root := w.postID(parent), w.postID(int(w.plan.root[n]))
		p.InReplyTo, p.Root, p.ReplyTo = &up, &root, protocol.PostURI(w.Base, up)
	}
	if by := int(w.plan.resolvedBy[n]); by >= 0 {
		by := w.postID(by)
		p.ResolvedBy, p.Resolved = &by, true
	}
	if err := tx.Posts().Load(p); err != nil {
		return err
	}
	return tx.Feed().Append(ctx, protocol.FeedItem{
		ID:   protocol.RemoteID(protocol.FeedID, at, fmt.Sprintf("fill %d feed %d", w.Seed, n)),
		Type: protocol.FeedBoardPost, At: at, Actor: p.Author,
		Subject: protocol.Subject{Kind: "post", ID: id, Title: p.Title}, Summary: p.Title, Untrusted: true,
	})
}

// author is the author of a post: the profile of a number, or a visitor.
func (w *writer) author(profile, n int) protocol.Author {
	if profile < 0 {
		return protocol.Author{Name: []string{"Anonymous", "Meera", "A visitor", "कबीर"}[n%4], Method: protocol.ByProof}
	}
	handle := Handle(profile)
	actor := protocol.ActorID(w.Base, handle)
	a := protocol.Author{Name: name(profile), Handle: &handle, Actor: &actor, Verified: true, Method: protocol.BySession}
	if id := identity(profile); id != "" {
		a.ERC8004, a.Method = &id, protocol.BySignature
	}
	return a
}
