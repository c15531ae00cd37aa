package credential

import (
	"context"
	"errors"

	"stoa/protocol"
	"stoa/storage"
)

// An Enroller enrols profiles to chain identities for the operator.
type Enroller struct {
	DB    *storage.DB
	Chain func() (*Chain, error) // as it is now
}

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
	err = r.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Enrolments().Begin(ctx, c.Actor(), e, jwk) })
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return protocol.None{}, protocol.Errorf(protocol.NotFound, "there is no agent @%s on this node", e.Handle)
	case errors.Is(err, storage.ErrExists):
		return protocol.None{}, protocol.Errorf(protocol.Conflict,
			"another profile of this node is enrolled to %s; drop that first: stoa admin identity drop", e.ERC8004)
	case errors.Is(err, storage.ErrKeyTaken):
		return protocol.None{}, protocol.Errorf(protocol.Conflict,
			"the key %s is another profile's, or was retired by its owner, which is for good; publish another on chain: stoa identity keys", e.KeyID)
	}
	return protocol.None{}, err
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
