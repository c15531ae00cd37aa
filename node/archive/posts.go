package archive

import (
	"context"
	"errors"
	"net/url"

	"stoa/identity/integrity"
	"stoa/protocol"
	"stoa/storage"
)

// post reads one post. left says why it is not taken, "" when it is.
func (im *importing) post(ctx context.Context, r record) (p *storage.ArchivedPost, left string, err error) {
	var in postRecord
	if err := im.decode(r, &in); err != nil {
		return nil, "", err
	}
	if in.State != string(protocol.Deleted) {
		if in.Title == "" || in.Body == "" {
			return nil, "", refused("%s, record %d: title and body are required", r.file, r.n)
		}
		if faults := (protocol.NewPost{Title: in.Title, Name: in.Author.Name}).Check(); len(faults) > 0 {
			return nil, "", refused("%s, record %d: %s %s", r.file, r.n, faults[0].Pointer, faults[0].Detail)
		}
	}
	switch {
	case !im.signed:
		return nil, "posts were left out: " + im.why, nil
	case in.URI != protocol.PostURI(im.manifest.Node, in.ID) || in.Author.Actor != protocol.ActorID(im.manifest.Node, im.manifest.Handle) || in.Author.Handle != im.manifest.Handle:
		return nil, "posts were left out: they are of another node than made the archive, or of another profile", nil
	case im.manifest.Node == im.Base:
		return nil, "posts of this node that are not here any more were left out: a backup brings them back", nil
	}
	if u, err := url.Parse(in.Board); err != nil || u.Host == "" {
		return nil, "", refused("%s, record %d: /board", r.file, r.n)
	}
	p = &storage.ArchivedPost{Reason: in.Reason}
	p.URI, p.URL, p.Kind, p.Title, p.Body, p.Tags = in.URI, in.URI, protocol.PostKind(in.Kind), in.Title, in.Body, in.Tags
	p.State, p.ReplyTo, p.Board, p.CreatedAt = protocol.PostState(in.State), in.ReplyTo, in.Board, in.CreatedAt
	p.Node, p.Author, p.Untrusted = &im.host, in.Author.author(im.host), true
	p.Author.Node, p.Author.ERC8004, p.Author.KeyID = &im.host, nil, nil
	if in.State == string(protocol.Deleted) {
		return p, "", nil
	}
	p.Evidence, p.Statement = in.Evidence, in.Statement
	claim := integrity.Claim{
		ID: in.URI, Kind: in.Kind, Title: in.Title, Body: in.Body, Tags: in.Tags, ReplyTo: in.ReplyTo, Name: in.Author.Name, Handle: in.Author.Handle,
		ERC8004: in.Author.ERC8004, Actor: in.Author.Actor, Board: in.Board, Published: in.CreatedAt, Evidence: in.Evidence, Statement: in.Statement, Own: im.own,
	}
	v, err := integrity.Judge(ctx, claim, im)
	switch {
	case errors.Is(err, integrity.ErrTampered), errors.Is(err, integrity.ErrProof):
		return nil, "posts were left out: they say something else than their author signed", nil
	case err != nil:
		return nil, "", err
	}
	// The identity of somebody else proves somebody else's post.
	if v.Verified && (v.ERC8004 == "" || v.ERC8004 == im.erc8004) {
		p.Author.Verified, p.Author.Method = true, v.Method
	}
	p.Author.ERC8004, p.Author.KeyID = some(v.ERC8004), some(v.KeyID)
	return p, "", nil
}

func (im *importing) storePost(ctx context.Context, tx *storage.Tx, r record) error {
	if r.n == 1 {
		if err := im.hostAllowed(ctx, tx); err != nil {
			return err
		}
	}
	p, left, err := im.post(ctx, r)
	if err != nil {
		return err
	}
	// What is here already needs no proof, and stays.
	var in struct{ URI string }
	if p == nil {
		var full postRecord
		if err := im.decode(r, &full); err != nil {
			return err
		}
		in.URI = full.URI
	} else {
		in.URI = p.URI
	}
	same, err := tx.LinkArchivedPost(ctx, im.handle, in.URI, protocol.ActorID(im.manifest.Node, im.manifest.Handle))
	switch {
	case err != nil:
		return err
	case same:
		im.report.Posts.Same++
		return nil
	case left != "":
		im.report.Posts.LeftOut++
		im.note("%s", left)
		return nil
	}
	p.CreatedAt = past(p.CreatedAt, tx.Now)
	p.ID = protocol.RemoteID(protocol.PostID, p.CreatedAt, p.URI)
	if p.Tags == nil {
		p.Tags = []string{}
	}
	switch err := tx.ImportPost(ctx, im.handle, p); {
	case errors.Is(err, storage.ErrExists):
		im.report.Posts.Same++
	case err != nil:
		return err
	default:
		im.report.Posts.New++
		if !p.Author.Verified && p.State != protocol.Deleted {
			im.note("posts are shown as unverified: no key that is shown to be the profile's signed them")
		}
	}
	return nil
}

// hostAllowed leaves the posts of a node out that this one does not hear.
func (im *importing) hostAllowed(ctx context.Context, tx *storage.Tx) error {
	policy, err := tx.HostPolicyFor(ctx, im.host)
	if err != nil {
		return err
	}
	blocked, err := tx.HostBlocked(ctx, im.host)
	if blocked || policy.Policy == storage.PolicyReject {
		im.signed, im.why = false, "this node does not hear "+im.host
	}
	return err
}
