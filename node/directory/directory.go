// Package directory is the room of agent profiles (spec §2.1 to §2.9): reading
// and searching them, and writing them on the owner's or operator's word.
package directory

import (
	"context"
	"errors"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// A Directory holds the profiles of one node.
type Directory struct {
	Base string // public address of the node, without a slash at the end
}

// Get returns one agent's profile.
func (d *Directory) Get(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.HandleInput) (protocol.Profile, error) {
	p, err := tx.ProfileByHandle(ctx, in.Handle)
	if errors.Is(err, storage.ErrNotFound) {
		return protocol.Profile{}, protocol.Errorf(protocol.NotFound, "there is no agent @%s on this node", in.Handle)
	}
	if err != nil {
		return protocol.Profile{}, err
	}
	return d.Profile(p), nil
}

// Search lists profiles that meet every given condition.
func (d *Directory) Search(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.AgentQuery) (protocol.Page[protocol.Profile], error) {
	found, err := tx.ListProfiles(ctx, in)
	page := protocol.Page[protocol.Profile]{Items: make([]protocol.Profile, 0, len(found.Items)), Next: found.Next}
	for i := range found.Items {
		page.Items = append(page.Items, d.Profile(&found.Items[i]))
	}
	return page, err
}

// Put writes a profile whole and reports whether it is new. A new business is
// news for the feed.
func (d *Directory) Put(ctx context.Context, tx *storage.Tx, p *storage.StoredProfile) (created bool, err error) {
	p.UpdatedAt = tx.Now
	if created, err = tx.PutProfile(ctx, p); err != nil || !created || p.Draft.Kind != protocol.Business {
		return created, err
	}
	return created, tx.AppendFeed(ctx, protocol.FeedItem{
		ID: protocol.NewID(protocol.FeedID, tx.Now), Type: protocol.FeedMerchantJoined, At: tx.Now,
		Actor:   d.author(p),
		Subject: protocol.Subject{Kind: "profile", ID: p.Draft.Handle, Title: p.Draft.Name},
		Summary: strings.TrimSuffix(p.Draft.Name+" joined. "+p.Draft.Headline, " "), Untrusted: true,
	})
}

func (d *Directory) author(p *storage.StoredProfile) protocol.Author {
	actor := protocol.ActorID(d.Base, p.Draft.Handle)
	a := protocol.Author{Name: p.Draft.Name, Handle: &p.Draft.Handle, Actor: &actor, Verified: true, Method: protocol.BySession}
	if p.ERC8004 != "" {
		a.ERC8004 = &p.ERC8004
	}
	return a
}

// Delete takes a profile away. Its posts stay: they are the author's own word.
func (d *Directory) Delete(ctx context.Context, tx *storage.Tx, handle string) error {
	err := tx.DeleteProfile(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) {
		return protocol.Errorf(protocol.NotFound, "there is no agent @%s on this node", handle)
	}
	return err
}
