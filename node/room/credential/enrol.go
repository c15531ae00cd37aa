package credential

import (
	"context"
	"errors"
	"slices"
	"strings"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// An Enroller enrols profiles to chain identities.
type Enroller struct {
	DB    *storage.DB
	Chain func() (*Chain, error) // as it is now

	// The others are for Connect. Recent refuses a session that did not begin lately; Told tells the owner of the
	// account; Status is get_identity.
	Recent func(ctx context.Context, tx *storage.Tx, c protocol.Caller) error
	Told   func(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle string) error
	Status func(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.IdentityStatus, error)
}

// Bind binds the operation of owners.
func (r Enroller) Bind(t *hall.Table) { hall.BindPlain(t, protocol.ConnectIdentity, r.Connect) }

// Enrol asks the chain whether the key speaks for the identity and, if so, enrols it
// for the profile, with the owner and wallet that the chain names. A key that the
// profile does not have yet is registered as the chain has it.
func (r Enroller) Enrol(ctx context.Context, c protocol.Caller, in protocol.NewEnrolment) (protocol.None, error) {
	chain, err := r.Chain()
	if err != nil {
		return protocol.None{}, err
	}
	e, jwk, err := chain.Enrolment(ctx, in.ERC8004, in.KeyID)
	if err != nil {
		return protocol.None{}, err
	}
	e.Handle = in.Handle
	return protocol.None{}, r.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return begin(ctx, tx, c, e, jwk) })
}

func begin(ctx context.Context, tx *storage.Tx, c protocol.Caller, e storage.Enrolment, jwk []byte) error {
	err := tx.Enrolments().Begin(ctx, c.Actor(), e, jwk)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return protocol.NoAgent(e.Handle)
	case errors.Is(err, storage.ErrExists):
		return protocol.Errorf(protocol.Conflict, "another profile of this node is enrolled to %s; remove it there first", e.ERC8004)
	case errors.Is(err, storage.ErrKeyTaken):
		return protocol.Errorf(protocol.Conflict,
			"the key %s is another profile's, or was retired by its owner, which is for good; publish another on chain: stoa identity keys", e.KeyID)
	}
	return err
}

// Connect enrols a profile for its owner. Owner or wallet of the identity have consented when their record on
// chain names a key whose private half only this node has, for this profile: nobody else's record does, and a
// former owner's record ends with the sale.
func (r Enroller) Connect(ctx context.Context, c protocol.Caller, in protocol.IdentityLink) (out protocol.IdentityStatus, err error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return out, err
	}
	var keys []string
	err = r.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		keys, err = r.may(ctx, tx, c, handle, in.ERC8004)
		return err
	})
	if err != nil {
		return out, err
	}
	chain, err := r.Chain()
	if err != nil {
		return out, err
	}
	if ctx, _, err = chain.asked(ctx, c.Network, in.ERC8004); err != nil {
		return out, chainError(err)
	}
	e := storage.Enrolment{}
	for _, keyid := range keys {
		if e, _, err = chain.Enrolment(ctx, in.ERC8004, keyid); protocol.CodeOf(err) != protocol.KeyUnknown {
			break
		}
	}
	if e.KeyID == "" && (err == nil || protocol.CodeOf(err) == protocol.KeyUnknown) {
		return out, protocol.Errorf(protocol.IdentityUnverified, "the identity's owner has not named a key on chain that this node keeps for the profile")
	}
	if err != nil {
		return out, err
	}
	e.Handle = handle
	err = r.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if keys, err := r.may(ctx, tx, c, handle, in.ERC8004); err != nil {
			return err
		} else if !slices.Contains(keys, e.KeyID) {
			return protocol.Errorf(protocol.Conflict, "the key was retired meanwhile; send the request again")
		}
		if err := begin(ctx, tx, c, e, nil); err != nil {
			return err
		}
		if err := r.Told(ctx, tx, c, handle); err != nil {
			return err
		}
		out, err = r.Status(ctx, tx, c, protocol.OwnInput{Owned: protocol.Owned{Handle: handle}})
		return err
	})
	return out, err
}

// may refuses a connection that the owner may not make now. It returns the keys, newest first, by which the profile
// may be enrolled to an identity: those that the node keeps and that are in use, or ended with that identity.
func (r Enroller) may(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle, identity string) (keys []string, err error) {
	if err := r.Recent(ctx, tx, c); err != nil {
		return nil, err
	}
	p, err := tx.Profiles().Own(ctx, handle)
	if err != nil {
		return nil, storage.IfMissing(err, protocol.NoAgent(handle))
	}
	identity = strings.ToLower(identity)
	if p.ERC8004 != "" && p.ERC8004 != identity {
		return nil, protocol.Errorf(protocol.Conflict, "the profile has another identity; remove it first")
	}
	all, err := tx.Keys().OfProfile(ctx, handle)
	for _, k := range all {
		if k.Sealed != nil && (k.RetiredAt == nil || k.OnChain && k.Identity == identity) && len(keys) < protocol.MaxKeys {
			keys = append(keys, k.Thumbprint)
		}
	}
	return keys, err
}

// Renew makes the node check the enrolments of a registry again at its next read of
// the chain.
func Renew(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Registry) (protocol.None, error) {
	all, err := tx.Enrolments().List(ctx, in.Registry, "", 1000)
	for _, e := range all {
		err = errors.Join(err, tx.Enrolments().Begin(ctx, c.Actor(), storage.Enrolment{Handle: e.Handle, ERC8004: e.ERC8004, KeyID: e.KeyID}, nil))
	}
	return protocol.None{}, err
}
