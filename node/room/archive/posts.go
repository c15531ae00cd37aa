package archive

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"stoa/identity/integrity"
	"stoa/protocol"
	"stoa/storage"
)

// A postIn is a post of an archive as this node will store it.
type postIn struct {
	storage.ArchivedPost
	uri  string
	left string // why it is not stored, "" when it is
}

// post reads one post and decides who wrote it.
func (im *importing) post(ctx context.Context, r record) (*postIn, error) {
	var in postRecord
	if err := im.decode(r, &in); err != nil {
		return nil, err
	}
	p := &postIn{uri: in.URI}
	left := func(why string) (*postIn, error) {
		p.left = "posts were left out: " + why
		return p, nil
	}
	if !slices.Equal(protocol.FoldTags(in.Tags), in.Tags) {
		return nil, refused("%s, record %d: /tags: in lower case, each once", r.file, r.n)
	}
	if in.State != string(protocol.Deleted) {
		if in.Title == "" || in.Body == "" || !protocol.IsLine(in.Author.Name) {
			return nil, refused("%s, record %d: a title, a body and an author of one line are required", r.file, r.n)
		}
		if faults := (protocol.NewPost{Tags: in.Tags}).Check(); len(faults) > 0 {
			return nil, refused("%s, record %d: %s %s", r.file, r.n, faults[0].Pointer, faults[0].Detail)
		}
	}
	switch {
	case !im.signed:
		return left(im.why)
	case in.URI != protocol.PostURI(im.manifest.Node, in.ID) || in.Author.Actor != protocol.ActorID(im.manifest.Node, im.manifest.Handle) ||
		in.Author.Handle != im.manifest.Handle:
		return left("they were not made by the profile and the node that the archive names")
	case im.manifest.Node == im.Base:
		return left("this node made them and no longer has them; restore them from a backup")
	}
	if u, err := url.Parse(in.Board); err != nil || u.Host == "" {
		return nil, refused("%s, record %d: /board", r.file, r.n)
	}
	p.Reason = in.Reason
	p.URI, p.URL, p.Kind, p.Title, p.Body, p.Tags = in.URI, in.URI, protocol.PostKind(in.Kind), in.Title, in.Body, in.Tags
	p.State, p.ReplyTo, p.Board, p.CreatedAt = protocol.PostState(in.State), in.ReplyTo, in.Board, in.CreatedAt
	p.EditedAt = in.EditedAt
	p.Node, p.Author, p.Untrusted = &im.host, in.Author.author(im.host), true
	p.Author.Node, p.Author.ERC8004, p.Author.KeyID = &im.host, nil, nil
	if p.Tags == nil {
		p.Tags = []string{}
	}
	if p.State == protocol.Deleted {
		return p, nil
	}
	p.Evidence, p.Statement = in.Evidence, in.Statement
	claim := integrity.Claim{
		ID: in.URI, Kind: in.Kind, Title: in.Title, Body: in.Body, Tags: in.Tags, ReplyTo: in.ReplyTo, Name: in.Author.Name, Handle: in.Author.Handle,
		ERC8004: in.Author.ERC8004, Actor: in.Author.Actor, Board: in.Board, Published: p.WrittenAt(), Evidence: in.Evidence,
		Statement: in.Statement, Own: im.provenKey,
	}
	v, err := integrity.Judge(ctx, claim, im)
	switch {
	case errors.Is(err, integrity.ErrTampered), errors.Is(err, integrity.ErrProof):
		return left("their text is not the one that their author signed")
	case err != nil:
		return nil, err
	}
	// An identity other than the enrolled one proves nothing about this profile.
	if v.Verified && (v.ERC8004 == "" || v.ERC8004 == im.erc8004) {
		p.Author.Verified, p.Author.Method, p.Author.Proof, p.Author.Name = true, v.Method, v.Proof(), im.profile.Draft.Name
	}
	p.Author.ERC8004, p.Author.KeyID = protocol.OrNil(v.ERC8004), protocol.OrNil(v.KeyID)
	return p, nil
}

func (im *importing) postStep(ctx context.Context, r record) (step, error) {
	p, err := im.post(ctx, r)
	return step{begins: true, do: func(ctx context.Context, tx *storage.Tx) error { return im.storePost(ctx, tx, p) }}, err
}

func (im *importing) storePost(ctx context.Context, tx *storage.Tx, p *postIn) error {
	// A post that is stored already does not change.
	here, err := tx.Posts().ByURI(ctx, p.uri)
	switch {
	case err == nil:
		im.report.Posts.Same++
		return im.storeSame(ctx, tx, here, p)
	case !errors.Is(err, storage.ErrNotFound):
		return err
	case p.left != "":
		im.report.Posts.LeftOut++
		im.note("%s", p.left)
		return nil
	}
	stored := p.ArchivedPost // a copy, because the step may run twice
	stored.CreatedAt = notAfter(p.CreatedAt, tx.Now)
	stored.ID = protocol.RemoteID(protocol.PostID, stored.CreatedAt, p.URI)
	switch err := tx.Posts().Import(ctx, im.handle, &stored); {
	case errors.Is(err, storage.ErrExists):
		im.report.Posts.Same++
	case err != nil:
		return err
	default:
		im.report.Posts.New++
		if !p.Author.Verified && p.State != protocol.Deleted {
			im.note("posts are shown as unverified: they are not signed with a key that is proven to be the profile's")
		}
	}
	return nil
}

// storeSame links a post that is stored already to the profile, and deletes it when its origin has
// deleted it since. Both need that node's signature: otherwise anyone could write an archive to
// find out why posts are hidden.
func (im *importing) storeSame(ctx context.Context, tx *storage.Tx, here *protocol.StoredPost, p *postIn) error {
	if p.left != "" && here.Node != nil {
		im.note("%s", p.left)
	}
	if p.left != "" || here.Node == nil || *here.Node != im.host || here.Author.Actor == nil ||
		*here.Author.Actor != protocol.ActorID(im.manifest.Node, im.manifest.Handle) {
		return nil
	}
	if err := tx.Posts().LinkArchived(ctx, im.handle, here); err != nil || p.State != protocol.Deleted || here.State == protocol.Deleted {
		return err
	}
	im.note("posts that were deleted on %s since are deleted here too", im.host)
	return tx.Posts().SetState(ctx, here.ID, protocol.Deleted, "by its origin")
}

// originBlocked returns why this node accepts nothing from the node that made the archive, "" when
// it does accept.
func (im *importing) originBlocked(ctx context.Context, tx *storage.Tx) (why string, err error) {
	refused, err := tx.Peers().Refused(ctx, im.host)
	if refused {
		why = "this node does not accept anything from " + im.host
	}
	return why, err
}
