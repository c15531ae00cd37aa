package account

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stoa/identity/key"
	"stoa/identity/session"
	"stoa/protocol"
	"stoa/storage"
)

// A Joining is what joining takes from the rest of the node. docs/DESIGN.md, "Joining", has the rules.
type Joining struct {
	Policy     protocol.Registrations
	PerNetwork int // joins a day of one client network
	PerDay     int // of all, half of them at most of strangers: callers without identity, account and invitation
	Invites    int // within 30 days, of an account that is no operator's
	Reserved   []string

	// Put stores a profile, SetState shows or hides one.
	Put      func(ctx context.Context, tx *storage.Tx, p *storage.StoredProfile) (created bool, err error)
	SetState func(ctx context.Context, tx *storage.Tx, handle string, state protocol.ProfileState, reason string) error
}

const (
	joinWindow = 24 * time.Hour
	maxPending = 1000 // profiles that wait for approval, half of them at most of strangers
)

// An entrance is somebody who joins.
type entrance struct {
	draft      protocol.JoinDraft
	invitation string
	network    string
	known      bool // by an identity or an account
	begun      bool // what it may begin was counted before its mailbox was confirmed
	joined     storage.Joined
}

// Register makes a profile for the caller: of its identity or key directory, of its account, or with a token.
func (a *Accounts) Register(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewMember) (out protocol.Member, err error) {
	e := entrance{draft: in.JoinDraft, invitation: in.Invitation, network: c.Network, known: c.Standing != protocol.Proof}
	switch {
	case c.Standing == protocol.Signed && c.Handle != "":
		return out, protocol.Errorf(protocol.Conflict, "your key acts as @%s already; another profile needs another identity", c.Handle)
	case c.Standing == protocol.Signed:
		e.joined = storage.Joined{Way: storage.JoinedSigned, Identity: c.Agent}
		if c.Agent == "" {
			e.joined.Directory = *c.Proof.Subject
		}
		e.joined.ConfirmedAt = &tx.Now
	case c.Standing == protocol.Session:
		e.joined = storage.Joined{Way: storage.JoinedSignedIn, ConfirmedAt: &tx.Now}
	default:
		e.joined = storage.Joined{Way: storage.JoinedByProof}
	}
	if out, err = a.enter(ctx, tx, &e); err != nil {
		return out, err
	}
	switch e.joined.Way {
	case storage.JoinedSigned:
		err = a.enrolJoined(ctx, tx, c, in.Handle)
	case storage.JoinedSignedIn:
		return out, a.Link(ctx, tx, c.Account, in.Handle)
	case storage.JoinedByProof:
		out.Token, err = a.memberToken(ctx, tx, c, in.JoinDraft)
	}
	if err != nil {
		return out, err
	}
	link, err := a.claimLink(ctx, tx, e.joined)
	out.ClaimURL, out.ClaimExpiresAt = &link.ClaimURL, &link.ExpiresAt
	return out, err
}

// MayRegister returns why nobody with a proof of work could register what is asked for (hall.Ahead).
func (a *Accounts) MayRegister(ctx context.Context, tx *storage.Tx, in protocol.NewMember) error {
	if _, _, err := a.may(ctx, tx, in.Invitation); err != nil {
		return err
	}
	return a.free(ctx, tx, in.Handle)
}

// enter makes the profile of somebody who joins, waiting for approval where the node asks for it.
func (a *Accounts) enter(ctx context.Context, tx *storage.Tx, e *entrance) (out protocol.Member, err error) {
	if err := tx.Joins().Lock(ctx); err != nil {
		return out, err
	}
	invited, state, err := a.may(ctx, tx, e.invitation)
	if err != nil {
		return out, err
	}
	if err := a.free(ctx, tx, e.draft.Handle); err != nil {
		return out, err
	}
	known := e.known || invited.ID != ""
	if err := a.queue(ctx, tx, known, state); err != nil {
		return out, err
	}
	if !e.begun {
		if err := a.begins(ctx, tx, e.network, known); err != nil {
			return out, err
		}
	}
	p := &storage.StoredProfile{Draft: e.draft.Profile(), State: state}
	if _, err := a.Joining.Put(ctx, tx, p); err != nil {
		return out, err
	}
	if invited.ID != "" {
		if err := tx.Joins().Use(ctx, invited.ID, e.draft.Handle); err != nil {
			return out, storage.IfMissing(err, errInvitation)
		}
	}
	e.joined.Handle, e.joined.At = e.draft.Handle, tx.Now
	if err := tx.Joins().Put(ctx, e.joined); errors.Is(err, storage.ErrExists) {
		return out, protocol.Errorf(protocol.Conflict, "another profile of this node belongs to your key directory")
	} else if err != nil {
		return out, err
	}
	out = protocol.Member{Handle: e.draft.Handle, Page: a.Base + "/@" + e.draft.Handle, State: state}
	return out, tx.Audit(ctx, "@"+e.draft.Handle, "profile join", e.draft.Handle, string(e.joined.Way))
}

var errInvitation = protocol.Invalid(protocol.Fault{Pointer: "/invitation", Code: "used",
	Detail: "this invitation was used, has expired or never was; ask for another"})

// may returns the invitation of a code, and the state of a profile that joins now. The error says who may join.
func (a *Accounts) may(ctx context.Context, tx *storage.Tx, code string) (i storage.Invitation, state protocol.ProfileState, err error) {
	switch {
	case a.Joining.Policy == protocol.RegistrationsClosed:
		return i, "", protocol.Errorf(protocol.Forbidden, "nobody joins this node by himself; its operator makes accounts and profiles: %s/contact", a.Base)
	case code != "":
		hash, ok := session.Hash(session.Ticket, code)
		if !ok {
			return i, "", errInvitation
		}
		i, err = tx.Joins().Invitation(ctx, hash)
		return i, "", storage.IfMissing(err, errInvitation)
	case a.Joining.Policy == protocol.RegistrationsInvite:
		return i, "", protocol.Errorf(protocol.Forbidden, "this node is joined by invitation; ask an owner or the operator for one: %s/contact", a.Base)
	case a.Joining.Policy == protocol.RegistrationsApproval:
		state = protocol.ProfilePending
	}
	return i, state, nil
}

// free refuses a handle that the node reserves, that a profile has or had, or that looks like one.
func (a *Accounts) free(ctx context.Context, tx *storage.Tx, handle string) error {
	fault := func(code, why string) error {
		return protocol.Invalid(protocol.Fault{Pointer: "/handle", Code: code, Detail: why})
	}
	if protocol.ReservedForNode(handle) || slices.Contains(a.Joining.Reserved, protocol.HandleSkeleton(handle)) {
		return fault("reserved", "@"+handle+" is kept for the node; choose another")
	}
	like, err := tx.Handles().Like(ctx, handle)
	if err != nil {
		return storage.Missing(err, nil)
	}
	why := "@" + handle + " is taken"
	if like != handle {
		why = "@" + handle + " looks like @" + like + ", which is taken"
	}
	others, err := a.others(ctx, tx, handle)
	if err != nil || len(others) == 0 {
		return fault("taken", why+"; choose another")
	}
	return fault("taken", why+"; free are @"+strings.Join(others, ", @"))
}

// others are up to three handles near one that is taken.
func (a *Accounts) others(ctx context.Context, tx *storage.Tx, handle string) (free []string, err error) {
	for _, end := range []string{"-here", "2", "-shop", "3", "-home", "-online"} {
		near := strings.TrimRight(handle[:min(len(handle), 39-len(end))], "-") + end
		_, err := tx.Handles().Like(ctx, near)
		switch {
		case errors.Is(err, storage.ErrNotFound) && !protocol.ReservedForNode(near):
			if free = append(free, near); len(free) == 3 {
				return free, nil
			}
		case err != nil && !errors.Is(err, storage.ErrNotFound):
			return nil, err
		}
	}
	return free, nil
}

// full is the refusal of a join that finds no room.
func full(why string) error {
	return &protocol.Error{Code: protocol.RateLimited, Detail: why, RetryAfter: joinWindow / 4}
}

// crowded refuses a join beyond what the network or the node takes in a day. Strangers leave half of the node's to others.
func (a *Accounts) crowded(ctx context.Context, tx *storage.Tx, network string, known bool) error {
	own, strangers, all, err := tx.Joins().CountBegun(ctx, network)
	if err != nil {
		return err
	}
	switch {
	case own >= a.Joining.PerNetwork:
		return full(fmt.Sprintf("%d joined from your network within a day, which is the most; try tomorrow", own))
	case all >= a.Joining.PerDay || !known && strangers >= a.Joining.PerDay/2:
		return full("this node takes no more newcomers today; try tomorrow, or with an invitation")
	}
	return nil
}

// begins counts a join that finds room.
func (a *Accounts) begins(ctx context.Context, tx *storage.Tx, network string, known bool) error {
	if err := a.crowded(ctx, tx, network, known); err != nil {
		return err
	}
	return tx.Joins().Begun(ctx, network, known, tx.Now.Add(joinWindow))
}

// queue refuses a profile that would wait for approval behind too many others.
func (a *Accounts) queue(ctx context.Context, tx *storage.Tx, known bool, state protocol.ProfileState) error {
	if state != protocol.ProfilePending {
		return nil
	}
	waiting, err := tx.Profiles().CountHidden(ctx, protocol.ProfilePending)
	if err == nil && (waiting >= maxPending || !known && waiting >= maxPending/2) {
		return full("more profiles wait for approval than the operators can look at; try again in a few days, or with an invitation")
	}
	return err
}

// Admit returns the state of a profile that an owner brings from another node under a handle that is new here. The handle and the
// number follow the rules of those who join; where these need an invitation or an approval, an operator approves.
func (a *Accounts) Admit(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle string) (state protocol.ProfileState, err error) {
	if err := a.free(ctx, tx, handle); err != nil {
		return "", err
	}
	if a.Joining.Policy == protocol.RegistrationsApproval || a.Joining.Policy == protocol.RegistrationsInvite {
		state = protocol.ProfilePending
	}
	if err := a.queue(ctx, tx, true, state); err != nil {
		return "", err
	}
	return state, a.crowded(ctx, tx, c.Network, true)
}

// Admitted counts what [Accounts.Admit] let in.
func (a *Accounts) Admitted(ctx context.Context, tx *storage.Tx, c protocol.Caller) error {
	return tx.Joins().Begun(ctx, c.Network, true, tx.Now.Add(joinWindow))
}

// enrolJoined ties a new profile to the chain identity of the caller.
func (a *Accounts) enrolJoined(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle string) error {
	if c.Agent == "" {
		return nil
	}
	if c.Proof.Level == protocol.ByOwner || c.Proof.Level == protocol.ByWallet {
		return protocol.Errorf(protocol.Forbidden,
			"an identity joins with its message key, which its record agentKeys names; a person joins with an Ethereum account at %s/join", a.Base)
	}
	public, ok := c.Key.(crypto.PublicKey)
	if !ok || c.Proof.Block == nil || c.Proof.BlockHash == nil {
		return protocol.Errorf(protocol.IdentityUnverified, "the chain's answer is not at hand; send the request again")
	}
	jwk, err := key.MarshalPublic(key.Public{Key: public, Thumbprint: c.KeyID})
	if err != nil {
		return err
	}
	err = tx.Enrolments().Begin(ctx, c.Actor(), storage.Enrolment{Handle: handle, ERC8004: c.Agent, KeyID: c.KeyID, Owner: c.Owner, Wallet: c.Wallet,
		Block: uint64(*c.Proof.Block), BlockHash: *c.Proof.BlockHash}, jwk)
	if errors.Is(err, storage.ErrExists) || errors.Is(err, storage.ErrKeyTaken) {
		return protocol.Errorf(protocol.Conflict, "another profile of this node has your identity or your key")
	}
	return err
}

// memberToken opens an account for a profile that a proof of work paid for, and makes its only key: a token.
func (a *Accounts) memberToken(ctx context.Context, tx *storage.Tx, c protocol.Caller, d protocol.JoinDraft) (*string, error) {
	acc, err := a.OwnerOf(ctx, tx, d.Handle)
	if err != nil {
		return nil, err
	}
	made, err := a.makeToken(ctx, tx, c, acc, protocol.NewToken{Name: "joined", Scopes: protocol.OwnerScopes, Handle: d.Handle}, nil)
	return &made.Secret, err
}

// LapseJoins deletes profiles that joined more than [protocol.JoinLapse] ago and that nobody acted as since, and returns how many were looked at.
func (a *Accounts) LapseJoins(ctx context.Context, tx *storage.Tx) (int, error) {
	old, err := tx.Joins().Unconfirmed(ctx, tx.Now.Add(-protocol.JoinLapse), 50)
	for _, j := range old {
		used, err := tx.Accounts().Reachable(ctx, j.Handle)
		if err != nil {
			return 0, err
		}
		if used {
			j.ConfirmedAt = &tx.Now
			err = tx.Joins().Put(ctx, j)
		} else {
			err = a.lapse(ctx, tx, j.Handle)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(old), err
}

// lapse deletes a profile that was never anybody's, and the account that was made for it.
func (a *Accounts) lapse(ctx context.Context, tx *storage.Tx, handle string) error {
	acc, err := tx.Accounts().OfProfile(ctx, handle)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if err := tx.Profiles().Delete(ctx, handle); err != nil {
		return storage.Missing(err, nil)
	}
	if err := tx.Handles().Free(ctx, handle); err != nil { // nobody ever was it
		return err
	}
	if acc.ID != "" {
		if err := a.closeEmpty(ctx, tx, acc.ID); err != nil {
			return err
		}
	}
	return tx.Audit(ctx, "@"+handle, "profile lapse", handle, "")
}
