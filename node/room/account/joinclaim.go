package account

import (
	"context"
	"errors"

	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// claimLink makes the link by which a person takes a profile that joined; the one before ends.
func (a *Accounts) claimLink(ctx context.Context, tx *storage.Tx, j storage.Joined) (protocol.NewClaim, error) {
	secret, hash := session.New(session.Ticket)
	j.Claim, j.ClaimUntil = hash[:], tx.Now.Add(protocol.ClaimLife)
	return protocol.NewClaim{ClaimURL: a.Base + "/account/claim/" + secret, ExpiresAt: j.ClaimUntil}, tx.Joins().Put(ctx, j)
}

var errClaim = protocol.Errorf(protocol.Gone, "this link was used, was replaced by another, or has expired; ask the agent for a new one")

func claimed(ctx context.Context, tx *storage.Tx, ticket string) (storage.Joined, error) {
	hash, ok := session.Hash(session.Ticket, ticket)
	if !ok {
		return storage.Joined{}, errClaim
	}
	j, err := tx.Joins().OfClaim(ctx, hash)
	return j, storage.IfMissing(err, errClaim)
}

// ReadClaim shows what a claim link gives.
func (a *Accounts) ReadClaim(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.ClaimRef) (out protocol.Claim, err error) {
	j, err := claimed(ctx, tx, in.Ticket)
	if err != nil {
		return out, err
	}
	p, err := tx.Profiles().Own(ctx, j.Handle)
	if err != nil {
		return out, err
	}
	return protocol.Claim{Handle: j.Handle, Name: p.Draft.Name, Kind: p.Draft.Kind, Way: string(j.Way), Identity: identityOf(j), Untrusted: true}, nil
}

// identityOf is the chain identity or key directory by which a profile joined, nil for none.
func identityOf(j storage.Joined) *string {
	switch {
	case j.Identity != "":
		return &j.Identity
	case j.Directory != "":
		return &j.Directory
	}
	return nil
}

// Claim gives a profile that an agent registered to the account of the caller. The token by which the agent acts as it goes on to work,
// as one of that account.
func (a *Accounts) Claim(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ClaimRef) (protocol.Account, error) {
	j, err := claimed(ctx, tx, in.Ticket)
	if err != nil {
		return protocol.Account{}, err
	}
	former, err := tx.Accounts().OfProfile(ctx, j.Handle)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return protocol.Account{}, err
	}
	if former.ID == c.Account {
		return protocol.Account{}, protocol.Errorf(protocol.Conflict, "the profile is your account's already")
	}
	if former.ID != "" {
		if err := tx.Tokens().Move(ctx, j.Handle, c.Account); err != nil {
			return protocol.Account{}, err
		}
	}
	if err := a.Link(ctx, tx, c.Account, j.Handle); err != nil {
		return protocol.Account{}, err
	}
	if former.ID != "" {
		if err := a.closeEmpty(ctx, tx, former.ID); err != nil {
			return protocol.Account{}, err
		}
	}
	j.Claim, j.ClaimedAt, j.ConfirmedAt = nil, &tx.Now, &tx.Now
	if err := tx.Joins().Put(ctx, j); err != nil {
		return protocol.Account{}, err
	}
	if err := tx.Audit(ctx, c.Actor(), "profile claim", j.Handle, ""); err != nil {
		return protocol.Account{}, err
	}
	c.Handles = append(c.Handles, j.Handle)
	return a.Get(ctx, tx, c, protocol.None{})
}

// closeEmpty deletes an account that has no profile and no way to sign in: it was made for a profile that joined.
func (a *Accounts) closeEmpty(ctx context.Context, tx *storage.Tx, account string) error {
	left, err := tx.Accounts().Handles(ctx, account)
	if err != nil || len(left) > 0 {
		return err
	}
	return tx.Accounts().DeleteUnreachable(ctx, account)
}

// Holders returns who may act as a profile.
func (a *Accounts) Holders(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (out protocol.Holders, err error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return out, err
	}
	return a.holders(ctx, tx, p)
}

func (a *Accounts) holders(ctx context.Context, tx *storage.Tx, p *storage.StoredProfile) (out protocol.Holders, err error) {
	handle := p.Draft.Handle
	out = protocol.Holders{Handle: handle, State: p.State, Reason: p.StateReason}
	if p.ERC8004 != "" {
		out.Identity = &p.ERC8004
	}
	j, err := tx.Joins().Of(ctx, handle)
	if err == nil {
		out.ClaimedAt = j.ClaimedAt
		if j.Directory != "" {
			out.Directory = &j.Directory
		}
	} else if !errors.Is(err, storage.ErrNotFound) {
		return out, err
	}
	if _, err = tx.Accounts().OfProfile(ctx, handle); err == nil {
		out.Account = j.Way != storage.JoinedByProof || j.ClaimedAt != nil
	} else if !errors.Is(err, storage.ErrNotFound) {
		return out, err
	}
	if out.Keys, err = tx.Keys().CountUsed(ctx, handle); err != nil {
		return out, err
	}
	out.Tokens, err = tx.Tokens().CountFor(ctx, handle)
	return out, err
}

// ClaimLink makes another claim link for a profile that an agent registered and nobody has claimed.
func (a *Accounts) ClaimLink(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.NewClaim, error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return protocol.NewClaim{}, err
	}
	j, err := tx.Joins().Of(ctx, handle)
	if err != nil || j.ClaimedAt != nil || j.Way != storage.JoinedSigned && j.Way != storage.JoinedByProof {
		return protocol.NewClaim{}, storage.Missing(err, protocol.Errorf(protocol.Conflict, "@%s has an account, or was not registered by an agent", handle))
	}
	return a.claimLink(ctx, tx, j)
}

// Release takes a profile from the account that claimed it. The account may do that at any time, the agent for a while.
func (a *Accounts) Release(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (out protocol.Holders, err error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return out, err
	}
	handle := p.Draft.Handle
	j, err := tx.Joins().Of(ctx, handle)
	switch {
	case err != nil && !errors.Is(err, storage.ErrNotFound):
		return out, err
	case err != nil || j.ClaimedAt == nil:
		return out, protocol.Errorf(protocol.Conflict, "nobody has claimed @%s", handle)
	case j.Way != storage.JoinedSigned || p.ERC8004 == "" && j.Directory == "":
		return out, protocol.Errorf(protocol.Conflict, "without the account nobody could act as @%s any more; delete the profile instead", handle)
	case c.Standing == protocol.Signed && tx.Now.Sub(*j.ClaimedAt) > protocol.ReleaseWithin:
		return out, protocol.Errorf(protocol.Forbidden, "the agent may end a claim within %d days of it; now only the account may",
			int(protocol.ReleaseWithin.Hours()/24))
	}
	if err := tx.Accounts().UnlinkProfile(ctx, handle); err != nil {
		return out, err
	}
	j.ClaimedAt = nil
	if err := tx.Joins().Put(ctx, j); err != nil {
		return out, err
	}
	if err := tx.Audit(ctx, c.Actor(), "profile release", handle, ""); err != nil {
		return out, err
	}
	return a.holders(ctx, tx, p)
}
