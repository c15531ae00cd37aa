package moderation

import (
	"context"

	"stoa/protocol"
	"stoa/storage"
)

// Suspend hides a profile that is shown.
func (m *Moderation) Suspend(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Suspension) (protocol.None, error) {
	return protocol.None{}, m.setState(ctx, tx, c, in.Handle, in.Reason, "", protocol.ProfileSuspended)
}

// LiftSuspension shows a profile that was suspended.
func (m *Moderation) LiftSuspension(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.HandleInput) (protocol.None, error) {
	return protocol.None{}, m.setState(ctx, tx, c, in.Handle, "", protocol.ProfileSuspended, "")
}

func (m *Moderation) setState(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle, reason string, from, to protocol.ProfileState) error {
	p, err := tx.Profiles().ForUpdate(ctx, handle)
	switch {
	case err != nil:
		return storage.IfMissing(err, protocol.NoAgent(handle))
	case p.State == from:
	case p.State == "":
		return protocol.Errorf(protocol.Conflict, "@%s is shown", p.Draft.Handle)
	default:
		return protocol.Errorf(protocol.Conflict, "@%s is %s", p.Draft.Handle, p.State)
	}
	if err := m.SetState(ctx, tx, p.Draft.Handle, to, reason); err != nil {
		return err
	}
	done, action, told := "profile suspend", protocol.ActionHide, "Your profile is suspended: "+reason
	if to == "" {
		done, action, told = "profile restore", protocol.ActionRestore, "Your profile is shown again."
	}
	if err := tx.Notify(ctx, protocol.Notice{Handle: p.Draft.Handle, Event: protocol.ProfileDecided, Subject: p.Draft.Handle, Title: told}); err != nil {
		return err
	}
	if err := tx.Moderation().Log(ctx, action, string(protocol.BlockHandle), p.Draft.Handle, reason); err != nil {
		return err
	}
	return tx.Audit(ctx, actor(c), done, p.Draft.Handle, reason)
}
