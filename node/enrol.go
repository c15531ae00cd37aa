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

func (a *Admin) putKey(ctx context.Context, k storage.AgentKey) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if _, err := tx.ProfileByHandle(ctx, k.Handle); errors.Is(err, storage.ErrNotFound) {
			return protocol.Errorf(protocol.NotFound, "there is no agent @%s on this node", k.Handle)
		} else if err != nil {
			return err
		}
		k.CreatedAt = tx.Now
		if err := tx.PutAgentKey(ctx, k); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "key add", k.Handle, k.Thumbprint)
	})
}
