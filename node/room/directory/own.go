package directory

import (
	"context"
	"slices"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// maxParts is how many needs or capabilities a profile has (spec §8).
const maxParts = 20

// GetOwn returns a profile as its owner wrote it.
func (d *Directory) GetOwn(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.OwnProfile, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.OwnProfile{}, err
	}
	return written(p), nil
}

func written(p *storage.StoredProfile) protocol.OwnProfile {
	out := protocol.OwnProfile{ProfileDraft: p.Draft, Untrusted: true}
	out.Listed = new(!p.Unlisted)
	return out
}

// PutOwn writes a whole profile. The node's findings (identity, liveness) are
// unchanged; Put describes which fields stay if the draft omits them.
func (d *Directory) PutOwn(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnProfile) (protocol.OwnProfile, error) {
	p, err := hall.Own(ctx, tx, c, protocol.Owned{Handle: in.Handle})
	if err != nil {
		return protocol.OwnProfile{}, err
	}
	p.Draft = in.ProfileDraft
	if _, err := d.Put(ctx, tx, p); err != nil {
		return protocol.OwnProfile{}, err
	}
	return written(p), nil
}

// Needs lists the needs of a profile.
func (d *Directory) Needs(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.OwnNeeds, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.OwnNeeds{}, err
	}
	return protocol.OwnNeeds{Items: list(p.Draft.Needs), Untrusted: true}, nil
}

// PutNeed adds a need, or replaces the one with its id in place.
func (d *Directory) PutNeed(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnNeed) (protocol.OwnNeeds, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.OwnNeeds{}, err
	}
	p.Draft.Needs, err = placed(p.Draft.Needs, in.Need, func(n protocol.Need) bool { return n.ID == in.Need.ID })
	if err != nil {
		return protocol.OwnNeeds{}, err
	}
	_, err = d.Put(ctx, tx, p)
	return protocol.OwnNeeds{Items: p.Draft.Needs, Untrusted: true}, err
}

// DeleteNeed deletes one need.
func (d *Directory) DeleteNeed(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PartRef) (protocol.None, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.None{}, err
	}
	p.Draft.Needs, err = without(p.Draft.Needs, func(n protocol.Need) bool { return n.ID == in.ID })
	if err != nil {
		return protocol.None{}, err
	}
	_, err = d.Put(ctx, tx, p)
	return protocol.None{}, err
}

// Capabilities lists the capabilities of a profile.
func (d *Directory) Capabilities(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.OwnCapabilities, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.OwnCapabilities{}, err
	}
	return protocol.OwnCapabilities{Items: list(p.Draft.Capabilities), Untrusted: true}, nil
}

// PutCapability adds a capability, or replaces the one with its id in place.
func (d *Directory) PutCapability(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnCapability) (protocol.OwnCapabilities, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.OwnCapabilities{}, err
	}
	p.Draft.Capabilities, err = placed(p.Draft.Capabilities, in.Capability, func(x protocol.Capability) bool { return x.ID == in.Capability.ID })
	if err != nil {
		return protocol.OwnCapabilities{}, err
	}
	_, err = d.Put(ctx, tx, p)
	return protocol.OwnCapabilities{Items: p.Draft.Capabilities, Untrusted: true}, err
}

// DeleteCapability deletes one capability.
func (d *Directory) DeleteCapability(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PartRef) (protocol.None, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.None{}, err
	}
	p.Draft.Capabilities, err = without(p.Draft.Capabilities, func(x protocol.Capability) bool { return x.ID == in.ID })
	if err != nil {
		return protocol.None{}, err
	}
	_, err = d.Put(ctx, tx, p)
	return protocol.None{}, err
}

// placed replaces the item that is the same, otherwise appends.
func placed[T any](items []T, item T, same func(T) bool) ([]T, error) {
	if i := slices.IndexFunc(items, same); i >= 0 {
		items[i] = item
		return items, nil
	}
	if len(items) >= maxParts {
		return items, protocol.Invalid(protocol.Fault{Pointer: "/id", Code: "too-many", Detail: "at most 20 items; delete one first"})
	}
	return append(items, item), nil
}

func without[T any](items []T, same func(T) bool) ([]T, error) {
	i := slices.IndexFunc(items, same)
	if i < 0 {
		return items, protocol.Errorf(protocol.NotFound, "the profile has nothing with that id")
	}
	return slices.Delete(items, i, i+1), nil
}

// Identity returns the on-chain identity to which a profile is enrolled, or how the
// last enrolment ended.
func (d *Directory) Identity(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.IdentityStatus, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.IdentityStatus{}, err
	}
	s := protocol.IdentityStatus{Identity: *d.identity(p)}
	if p.ERC8004 == "" {
		e, reason, at, err := tx.Enrolments().Last(ctx, p.Draft.Handle)
		if err == storage.ErrNotFound {
			return s, nil
		}
		s.Ended = &protocol.IdentityEnd{ERC8004: e.ERC8004, Reason: reason, Detail: reason.Text(), At: at}
		return s, err
	}
	e, err := tx.Enrolments().ByIdentity(ctx, p.ERC8004)
	if err != nil {
		return s, err
	}
	set := func(to **string, text string) {
		if text != "" {
			*to = &text
		}
	}
	set(&s.KeyID, e.KeyID)
	set(&s.Owner, e.Owner)
	set(&s.Wallet, e.Wallet)
	if e.Owner != "" {
		s.Block = new(int64(e.Block))
	}
	if !e.MadeAt.IsZero() {
		s.EnrolledAt = &e.MadeAt
	}
	doc, err := tx.AgentDocuments().ByAgent(ctx, p.ERC8004)
	if err == nil && !doc.ReadAt.IsZero() {
		s.Document = &protocol.DocumentReading{ReadAt: doc.ReadAt, Fault: doc.Fault}
	}
	return s, storage.IfMissing(err, nil)
}

// DropIdentity ends the enrolment of a profile, if there is one, and what the keys of a key directory may do as it.
func (d *Directory) DropIdentity(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.None, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Enrolments().Drop(ctx, c.Actor(), p)
}
