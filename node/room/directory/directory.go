// Package directory is the room of agent profiles (spec §2.1 to §2.9): reading and
// searching them, and writing them for the owner or operator.
package directory

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// A Directory holds the profiles of one node.
type Directory struct {
	Base string // public address of the node, without a slash at the end

	// Reputation is that of a profile, nil for none.
	Reputation func(p *storage.StoredProfile) *protocol.Reputation

	// Sign adds to news of a shop what the nodes that follow this one check; nil where no keys are at hand.
	Sign func(ctx context.Context, tx *storage.Tx, board string, item *protocol.FeedItem, review *protocol.NewsReview) error

	// House and Client read followed directories; a Directory that has no jobs to do needs neither.
	House  hall.House
	Client *http.Client

	// Guests reports that A2A serves callers without a chain identity too.
	Guests bool

	// Explored is what ExploreARD counts.
	Explored storage.Memo[explored]
}

// New makes the room of a node. reputation returns that of a profile; nil where nobody has any.
func New(base string, reputation func(*storage.StoredProfile) *protocol.Reputation) *Directory {
	if reputation == nil {
		reputation = func(*storage.StoredProfile) *protocol.Reputation { return nil }
	}
	d := &Directory{Base: base, Reputation: reputation}
	d.Explored.Age, d.Explored.Count = exploreAge, d.count
	return d
}

// Get returns one agent's profile.
func (d *Directory) Get(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.HandleInput) (protocol.Profile, error) {
	p, err := tx.Profiles().ByHandle(ctx, in.Handle)
	if err != nil {
		return protocol.Profile{}, storage.IfMissing(err, protocol.NoAgent(in.Handle))
	}
	return d.Profile(p), nil
}

// Search lists profiles that meet every given condition.
func (d *Directory) Search(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.AgentQuery) (protocol.List[protocol.Profile], error) {
	found, err := tx.Profiles().List(ctx, in)
	page := entries(found.Page, func(f *storage.ListedProfile) protocol.Profile {
		if f.Remote == nil {
			return d.Profile(&f.StoredProfile)
		}
		p := elsewhere(f.Remote).Profile(&f.StoredProfile)
		p.Elsewhere = f.Remote.Elsewhere(tx.Now)
		return p
	})
	return protocol.List[protocol.Profile]{Page: page, Finding: found.Finding}, err
}

// Put writes a whole profile and reports whether it is new. The draft decides
// whether it is listed and who may write to it; if it does not say, both are
// unchanged. A new profile accepts messages. A business that is listed for the
// first time is announced in the feed.
func (d *Directory) Put(ctx context.Context, tx *storage.Tx, p *storage.StoredProfile) (created bool, err error) {
	old, err := tx.Profiles().ForUpdate(ctx, p.Draft.Handle)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return false, err
	}
	switch {
	case p.Draft.ContactPolicy != nil:
	case err == nil:
		p.Draft.ContactPolicy = old.Draft.ContactPolicy
	default:
		p.Draft.ContactPolicy = protocol.NewPolicy()
	}
	if p.Draft.Listed != nil {
		p.Unlisted = !*p.Draft.Listed
	} else if err == nil {
		p.Unlisted = old.Unlisted
	}
	if err == nil && old.Draft.Kind != p.Draft.Kind {
		return false, protocol.Invalid(protocol.Fault{Pointer: "/kind", Code: "fixed", Detail: "a profile stays a " + string(old.Draft.Kind) +
			"; take another handle"})
	}
	if created, err = tx.Profiles().Put(ctx, p); err != nil {
		return created, err
	}
	if !created && old.Shown() != p.Shown() {
		if err := d.showNews(ctx, tx, p.Draft.Handle, p.Shown()); err != nil {
			return false, err
		}
	}
	if p.Draft.Kind != protocol.Business {
		return created, nil
	}
	return created, d.announceNews(ctx, tx, p, nil)
}

// SetState shows a profile ("") or hides it, with what the feed tells of its shop and reviews.
func (d *Directory) SetState(ctx context.Context, tx *storage.Tx, handle string, state protocol.ProfileState, reason string) error {
	p, err := tx.Profiles().SetState(ctx, handle, state, reason)
	if err != nil {
		return storage.IfMissing(err, protocol.NoAgent(handle))
	}
	if err := d.showNews(ctx, tx, handle, p.Shown()); err != nil {
		return err
	}
	if p.Draft.Kind != protocol.Business || !p.Shown() {
		return nil
	}
	return d.announceNews(ctx, tx, p, nil)
}

// Author is a profile of the node at base as the author of what the node says about it.
func Author(base string, p *storage.StoredProfile, at time.Time) protocol.Author {
	actor := protocol.ActorID(base, p.Draft.Handle)
	a := protocol.Author{Name: p.Draft.Name, Handle: &p.Draft.Handle, Actor: &actor, Verified: true, Method: protocol.BySession}
	if p.ERC8004 != "" {
		a.ERC8004 = &p.ERC8004
	}
	a.Complete(at)
	return a
}

// PutFor creates or replaces a profile for the operator. An identity that it names
// must be the one that the profile is enrolled to.
func (d *Directory) PutFor(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ProfileFile) (out protocol.WrittenProfile, err error) {
	p, err := tx.Profiles().ForUpdate(ctx, in.Handle)
	if errors.Is(err, storage.ErrNotFound) {
		p, err = &storage.StoredProfile{CreatedAt: tx.Now}, nil
	}
	if err != nil {
		return out, err
	}
	if id := strings.ToLower(in.Identity.ERC8004); id != "" && id != p.ERC8004 {
		return out, protocol.Invalid(protocol.Fault{Pointer: "/identity/erc8004", Code: "not-enrolled",
			Detail: "an identity is set with its proof: stoa admin identity put <handle> <identity> <thumbprint>"})
	}
	p.Draft = in.ProfileDraft
	if out.Created, err = d.Put(ctx, tx, p); err != nil {
		return out, err
	}
	out.Profile = d.interfaces(p.Draft, p.Open()).Profile
	return out, tx.Audit(ctx, c.Actor(), "profile put", in.Handle, "")
}

// Delete deletes a profile and its news. Its posts are kept: they belong to their
// author.
func (d *Directory) Delete(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.HandleInput) (protocol.None, error) {
	err := d.Drop(ctx, tx, in.Handle)
	if err != nil {
		if errors.Is(err, storage.ErrOwing) {
			return protocol.None{}, protocol.Errorf(protocol.Conflict, "@%s has an attention board with bids that are not over, or refunds that are not made; "+
				"close the board first", in.Handle)
		}
		if errors.Is(err, storage.ErrMeeting) {
			return protocol.None{}, protocol.Errorf(protocol.Conflict, "@%s has approved meetings that are not over; cancel them first (cancel_own_meeting)", in.Handle)
		}
	}
	if err != nil {
		return protocol.None{}, storage.IfMissing(err, protocol.NoAgent(in.Handle))
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "profile delete", in.Handle, "")
}

// Drop deletes a profile and its news, and has its followers deleted. storage.ErrOwing while money of its board is under way, and
// storage.ErrMeeting before an agreed meeting.
func (d *Directory) Drop(ctx context.Context, tx *storage.Tx, handle string) error {
	if err := d.showNews(ctx, tx, handle, false); err != nil {
		return err
	}
	p, err := tx.Profiles().Own(ctx, handle)
	if err != nil {
		return err
	}
	items, err := tx.Items().ToldIDs(ctx, handle)
	if err != nil {
		return err
	}
	if err := tx.Feed().WipeAgent(ctx, handle, p.ERC8004, items); err != nil {
		return err
	}
	people, err := tx.RemoteThreads().Inboxes(ctx, handle, toldInboxes) // the threads go with the profile
	if err != nil {
		return err
	}
	if err := tx.Profiles().Delete(ctx, handle); err != nil {
		return err
	}
	actor := protocol.ActorID(d.Base, handle)
	return tx.Followers().EnqueueDrop(ctx, storage.GoneArgs{Actor: actor, Board: actor, Inboxes: people})
}

// toldInboxes is how many servers of people who have letters of a deleted profile are told.
const toldInboxes = 500
