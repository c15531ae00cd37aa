package account

import (
	"context"

	"stoa/identity/session"
	"stoa/protocol"
	"stoa/storage"
)

// Invite makes an invitation.
func (a *Accounts) Invite(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewInvitation) (out protocol.Invited, err error) {
	if a.Joining.Policy == protocol.RegistrationsClosed {
		return out, protocol.Errorf(protocol.Conflict, "nobody joins this node by himself, so an invitation is for nothing (registrations)")
	}
	if c.Standing != protocol.Operator {
		if err := tx.Joins().Lock(ctx); err != nil {
			return out, err
		}
	}
	left, err := a.invitesLeft(ctx, tx, c)
	if err != nil {
		return out, err
	}
	if left != nil && *left == 0 {
		return out, protocol.Errorf(protocol.Forbidden, "your account may invite %d within 30 days, and has; the operator decides how many", a.Joining.Invites)
	}
	secret, hash := session.New(session.Ticket)
	i := storage.Invitation{ID: protocol.NewID(protocol.InvitationID, tx.Now), Hash: hash, Account: c.Account, Note: in.Note, CreatedAt: tx.Now,
		ExpiresAt: tx.Now.Add(protocol.InviteLife), KeptUntil: tx.Now.Add(protocol.InviteWithin)}
	if err := tx.Joins().Invite(ctx, i); err != nil {
		return out, err
	}
	out = protocol.Invited{ID: i.ID, Code: secret, URL: a.Base + "/join?invitation=" + secret, ExpiresAt: i.ExpiresAt}
	return out, tx.Audit(ctx, c.Actor(), "invitation create", i.ID, "")
}

// invitesLeft returns how many invitations the caller may make now, nil for any number.
func (a *Accounts) invitesLeft(ctx context.Context, tx *storage.Tx, c protocol.Caller) (*int, error) {
	if a.Joining.Policy == protocol.RegistrationsClosed {
		return new(0), nil
	}
	if c.Standing == protocol.Operator {
		return nil, nil
	}
	acc, err := tx.Accounts().ByID(ctx, c.Account)
	if err != nil || acc.Role == protocol.RoleOperator {
		return nil, err
	}
	n, err := tx.Joins().CountInvited(ctx, c.Account, tx.Now.Add(-protocol.InviteWithin))
	left := max(a.Joining.Invites-n, 0)
	return &left, err
}

// Invitations lists those that the account made.
func (a *Accounts) Invitations(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Paging) (out protocol.Invitations, err error) {
	if out.Left, err = a.invitesLeft(ctx, tx, c); err != nil {
		return out, err
	}
	found, err := tx.Joins().Invitations(ctx, c.Account, in.Size(), in.After)
	out.Items, out.Next = make([]protocol.Invitation, 0, len(found.Items)), found.Next
	for _, i := range found.Items {
		item := protocol.Invitation{ID: i.ID, Note: i.Note, CreatedAt: i.CreatedAt, ExpiresAt: i.ExpiresAt, State: "open", UsedAt: i.UsedAt,
			Became: protocol.OrNil(i.Became)}
		switch {
		case i.UsedAt != nil:
			item.State = "used"
		case !i.ExpiresAt.After(tx.Now):
			item.State = "lapsed"
		}
		out.Items = append(out.Items, item)
	}
	return out, err
}

// Withdraw ends an invitation that nobody has used.
func (a *Accounts) Withdraw(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.InvitationRef) (protocol.None, error) {
	if err := tx.Joins().Withdraw(ctx, c.Account, in.ID); err != nil {
		return protocol.None{}, missing(err, "the account has no invitation with that id that nobody has used")
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "invitation withdraw", in.ID, "")
}
