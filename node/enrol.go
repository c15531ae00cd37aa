package node

import (
	"context"
	"errors"

	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
)

// PutIdentity enrols a chain identity for a profile. keyHash is the thumbprint
// of the registered key that speaks for it. The caller has checked with the
// chain that it does.
func (a *Admin) PutIdentity(ctx context.Context, handle, erc8004, keyHash string) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		p, err := tx.ProfileToChange(ctx, handle)
		if errors.Is(err, storage.ErrNotFound) {
			return protocol.Errorf(protocol.NotFound, "there is no agent @%s on this node", handle)
		}
		if err != nil {
			return err
		}
		p.ERC8004, p.KeyHash = erc8004, keyHash
		if _, err := a.directory.Put(ctx, tx, p); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "identity put", handle, erc8004)
	})
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
		if stored.Sealed, err = a.keys.sealAgent(handle, pair); err != nil {
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
