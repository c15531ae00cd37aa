package node

import (
	"context"
	"errors"

	"stoa/identity/key"
	"stoa/node/directory"
	"stoa/protocol"
	"stoa/storage"
)

// PutIdentity enrols a chain identity for a profile without asking the chain: for
// tests and trial data. keyHash is the thumbprint of the key that speaks for it. A
// node that reads the chain finds out who has it at its next look, or ends it.
func (a *Admin) PutIdentity(ctx context.Context, handle, erc8004, keyHash string) error {
	return a.enrol(ctx, storage.Enrolment{Handle: handle, ERC8004: erc8004, KeyID: keyHash}, nil)
}

// RenewEnrolments has the enrolments of a registry made anew at the node's next look
// at the chain, by what the chain says then. It is for a chain that makes other blocks
// at each start, which would end them.
func (a *Admin) RenewEnrolments(ctx context.Context, registry string) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		all, err := tx.Enrolments(ctx, registry, "", 1000)
		for _, e := range all {
			err = errors.Join(err, tx.Enrol(ctx, "operator", storage.Enrolment{Handle: e.Handle, ERC8004: e.ERC8004, KeyID: e.KeyID}, nil))
		}
		return err
	})
}

func (a *Admin) enrol(ctx context.Context, e storage.Enrolment, jwk []byte) error {
	err := a.write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Enrol(ctx, "operator", e, jwk) })
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return protocol.Errorf(protocol.NotFound, "there is no agent @%s on this node", e.Handle)
	case errors.Is(err, storage.ErrExists):
		return protocol.Errorf(protocol.Conflict, "another profile of this node is enrolled to %s; drop that first: stoa admin identity drop", e.ERC8004)
	case errors.Is(err, storage.ErrKeyTaken):
		return protocol.Errorf(protocol.Conflict, "the key %s is another profile's, or was retired by its owner, which is for good; publish another on chain: stoa identity keys", e.KeyID)
	}
	return err
}

// DropIdentity ends the enrolment of a profile.
func (a *Admin) DropIdentity(ctx context.Context, handle string) (erc8004 string, err error) {
	err = a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		p, err := tx.ProfileToChange(ctx, handle)
		if err != nil {
			return notFound(err, "there is no agent @%s on this node", handle)
		}
		erc8004 = p.ERC8004
		return directory.Drop(ctx, tx, "operator", p)
	})
	return erc8004, err
}

// AddKey registers a key with a profile. With keep, the node seals and keeps
// the private half and signs for the agent; else only the public half is stored.
func (a *Admin) AddKey(ctx context.Context, handle string, pair key.Pair, keep bool) error {
	public, err := key.MarshalPublic(pair.Published())
	if err != nil {
		return err
	}
	stored := storage.AgentKey{Handle: handle, Thumbprint: pair.Thumbprint(), PublicJWK: public}
	if keep {
		if stored.Sealed, err = a.keys.SealAgent(handle, pair); err != nil {
			return err
		}
	}
	return a.putKey(ctx, stored)
}

// AddPublicKey registers a key whose private half the owner keeps.
func (a *Admin) AddPublicKey(ctx context.Context, handle string, jwk []byte) (string, error) {
	public, err := key.ParsePublic(jwk)
	if err != nil {
		return "", protocol.Errorf(protocol.InvalidRequest, "not a public JWK of a kind this node takes: %w", err)
	}
	raw, err := key.MarshalPublic(public)
	if err != nil {
		return "", err
	}
	return public.Thumbprint, a.putKey(ctx, storage.AgentKey{Handle: handle, Thumbprint: public.Thumbprint, PublicJWK: raw})
}

// putKey stores a key. Of one that the profile has, what the node keeps stays; one
// that was retired stays retired.
func (a *Admin) putKey(ctx context.Context, k storage.AgentKey) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if _, err := tx.ProfileToChange(ctx, k.Handle); err != nil {
			return notFound(err, "there is no agent @%s on this node", k.Handle)
		}
		k.CreatedAt = tx.Now
		switch old, err := tx.AgentKeyByThumbprint(ctx, k.Thumbprint); {
		case err == nil && old.Handle != k.Handle:
			return protocol.Errorf(protocol.Conflict, "this key is registered with @%s", old.Handle)
		case err == nil && old.RetiredAt != nil:
			return protocol.Errorf(protocol.Conflict, "this key was retired on %s, which is for good; make another with stoa keygen and add that one", old.RetiredAt.UTC().Format("2 Jan 2006"))
		case err == nil:
			k.CreatedAt, k.Directory = old.CreatedAt, old.Directory
			if k.Sealed == nil {
				k.Sealed = old.Sealed
			}
		case !errors.Is(err, storage.ErrNotFound):
			return err
		}
		if err := tx.PutAgentKey(ctx, k); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "key add", k.Handle, k.Thumbprint)
	})
}
