package account

import (
	"context"
	"errors"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

const (
	lapseEvery  = time.Hour
	keepRefused = 7 * 24 * time.Hour // a refused profile, for its owner to read why
)

// Waiting lists profiles that wait for approval.
func (a *Accounts) Waiting(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.Paging) (out protocol.Page[protocol.Joining], err error) {
	found, err := tx.Profiles().Hidden(ctx, protocol.ProfilePending, in)
	if err != nil {
		return out, err
	}
	out = protocol.Page[protocol.Joining]{Items: make([]protocol.Joining, 0, len(found.Items)), Next: found.Next}
	for _, p := range found.Items {
		handle := p.Draft.Handle
		w := protocol.Joining{Handle: handle, Name: p.Draft.Name, Kind: p.Draft.Kind, Headline: p.Draft.Headline, Description: p.Draft.Description,
			Way: "account", At: p.StateAt, Untrusted: true}
		j, err := tx.Joins().Of(ctx, handle)
		if err == nil {
			w.Way, w.Identity = string(j.Way), identityOf(j)
		} else if !errors.Is(err, storage.ErrNotFound) {
			return out, err
		}
		acc, err := tx.Accounts().OfProfile(ctx, handle)
		if err == nil && acc.Mail != "" {
			w.Mail = &acc.Mail
		} else if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return out, err
		}
		out.Items = append(out.Items, w)
	}
	return out, nil
}

// Decide approves or refuses a profile that waits for it, and tells its owner.
func (a *Accounts) Decide(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.JoinDecision) (protocol.None, error) {
	p, err := tx.Profiles().ForUpdate(ctx, in.Handle)
	if err != nil {
		return protocol.None{}, storage.IfMissing(err, protocol.NoAgent(in.Handle))
	}
	if p.State != protocol.ProfilePending {
		return protocol.None{}, protocol.Errorf(protocol.Conflict, "@%s does not wait for approval; somebody has decided", in.Handle)
	}
	state, action, told := protocol.ProfileState(""), "profile approve", "Your profile is approved and shown."
	if in.Decision == "refuse" {
		state, action, told = protocol.ProfileRefused, "profile refuse", "Your profile was not approved: "+in.Reason
	}
	if err := a.Joining.SetState(ctx, tx, in.Handle, state, in.Reason); err != nil {
		return protocol.None{}, err
	}
	if err := tx.Notify(ctx, protocol.Notice{Handle: in.Handle, Event: protocol.ProfileDecided, Subject: in.Handle, Title: told}); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), action, in.Handle, in.Reason)
}

// Enqueue queues the job that deletes joins that nobody finished.
func (a *Accounts) Enqueue(ctx context.Context, tx *storage.Tx) error {
	return tx.Enqueue(ctx, storage.Job{Kind: storage.LapseJob, Lane: string(storage.LapseJob), Dedupe: string(storage.LapseJob), RunAt: tx.Now.Add(lapseEvery)})
}

// Lapse is the handler of LapseJob.
func (a *Accounts) Lapse(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
	for _, some := range []func(context.Context, *storage.Tx) (int, error){a.LapseJoins, a.lapseRefused} {
		for n := 1; n > 0; {
			err := a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
				n, err = some(ctx, tx)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return a.Enqueue, nil
}

// lapseRefused deletes profiles that were refused some time ago.
func (a *Accounts) lapseRefused(ctx context.Context, tx *storage.Tx) (n int, err error) {
	found, err := tx.Profiles().Hidden(ctx, protocol.ProfileRefused, protocol.Paging{Limit: 50})
	for _, p := range found.Items {
		if tx.Now.Sub(p.StateAt) < keepRefused {
			break
		}
		if err := a.lapse(ctx, tx, p.Draft.Handle); err != nil {
			return n, err
		}
		n++
	}
	return n, err
}
