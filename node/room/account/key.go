package account

import (
	"context"
	"encoding/json"
	"errors"

	"stoa/identity/key"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// Keys lists the signing keys of the profile that the caller acts as.
func (a *Accounts) Keys(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.Keys, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.Keys{}, err
	}
	stored, err := tx.Keys().OfProfile(ctx, p.Draft.Handle)
	if err != nil {
		return protocol.Keys{}, err
	}
	keys := protocol.Keys{Items: make([]protocol.Key, 0, len(stored))}
	for _, k := range stored {
		shown, err := show(k, p)
		if err != nil {
			return keys, err
		}
		keys.Items = append(keys.Items, shown)
	}
	return keys, nil
}

func show(k storage.AgentKey, p *storage.StoredProfile) (protocol.Key, error) {
	out := protocol.Key{
		KeyID: k.Thumbprint, Kept: k.Sealed != nil, CreatedAt: k.CreatedAt, RetiredAt: k.RetiredAt,
		Identity: p.ERC8004 != "" && p.KeyHash == k.Thumbprint,
	}
	return out, json.Unmarshal(k.PublicJWK, &out.JWK)
}

// AddKey registers a public key.
func (a *Accounts) AddKey(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewKey) (protocol.Key, error) {
	raw, err := json.Marshal(in.JWK)
	if err != nil {
		return protocol.Key{}, err
	}
	public, err := key.ParsePublic(raw)
	if err != nil || key.IsPublicTestKey(public.Thumbprint) {
		return protocol.Key{}, protocol.Invalid(protocol.Fault{Pointer: "/jwk", Code: "not-a-key",
			Detail: "not a valid public key of a supported kind: Ed25519, P-256, P-384 or RSA of 2048 to 8192 bits"})
	}
	if raw, err = key.MarshalPublic(public); err != nil {
		return protocol.Key{}, err
	}
	return a.register(ctx, tx, c, in.Owned, storage.AgentKey{Thumbprint: public.Thumbprint, PublicJWK: raw})
}

// MakeKey makes a key whose private half the node keeps.
func (a *Accounts) MakeKey(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.Key, error) {
	pair, err := key.GenerateEd25519()
	if err != nil {
		return protocol.Key{}, err
	}
	return a.keep(ctx, tx, c, in.Owned, pair)
}

// KeepKey registers a key with its private half, which the node stores.
func (a *Accounts) KeepKey(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PrivateKey) (protocol.Key, error) {
	pair, err := key.ParsePair([]byte(in.JWK))
	if err != nil || key.IsPublicTestKey(pair.Thumbprint()) {
		return protocol.Key{}, protocol.Invalid(protocol.Fault{Pointer: "/jwk", Code: "not-a-key", Detail: "not a valid private key of a supported kind"})
	}
	return a.keep(ctx, tx, c, in.Owned, pair)
}

// keep registers a key whose private half is sealed and stored by the node.
func (a *Accounts) keep(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned, pair key.Pair) (protocol.Key, error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return protocol.Key{}, err
	}
	raw, err := key.MarshalPublic(pair.Published())
	if err != nil {
		return protocol.Key{}, err
	}
	sealed, err := a.Seal(handle, pair)
	if err != nil {
		return protocol.Key{}, err
	}
	return a.register(ctx, tx, c, in, storage.AgentKey{Thumbprint: pair.Thumbprint(), PublicJWK: raw, Sealed: sealed})
}

// register stores a key for the profile that the caller acts as. A key that the
// profile already has is unchanged, except that a missing private half is added.
func (a *Accounts) register(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned, k storage.AgentKey) (protocol.Key, error) {
	p, err := hall.Own(ctx, tx, c, in)
	if err != nil {
		return protocol.Key{}, err
	}
	k.Handle, k.CreatedAt = p.Draft.Handle, tx.Now
	if k.Identity, err = addedBy(ctx, tx, c); err != nil {
		return protocol.Key{}, err
	}
	switch old, err := tx.Keys().ByThumbprint(ctx, k.Thumbprint); {
	case err == nil && old.Handle != k.Handle:
		return protocol.Key{}, protocol.Errorf(protocol.Conflict, "this key is registered with another profile")
	case err == nil && old.RetiredAt != nil:
		return protocol.Key{}, protocol.Errorf(protocol.Conflict, "this key was retired and cannot be used again; make another")
	case err == nil && (k.Sealed == nil || old.Sealed != nil):
		return show(*old, p)
	case err == nil: // the private half is new here
		old.Sealed = k.Sealed
		return a.put(ctx, tx, c, p, *old)
	case !errors.Is(err, storage.ErrNotFound):
		return protocol.Key{}, err
	}
	all, err := tx.Keys().OfProfile(ctx, k.Handle)
	if err != nil {
		return protocol.Key{}, err
	}
	inUse := 0
	for _, other := range all {
		if other.RetiredAt == nil {
			inUse++
		}
	}
	if inUse >= protocol.MaxKeys {
		return protocol.Key{}, protocol.Errorf(protocol.Conflict, "the profile has %d keys in use; retire one first", inUse)
	}
	return a.put(ctx, tx, c, p, k)
}

func (a *Accounts) put(ctx context.Context, tx *storage.Tx, c protocol.Caller, p *storage.StoredProfile, k storage.AgentKey) (protocol.Key, error) {
	if err := tx.Keys().Put(ctx, k); err != nil {
		return protocol.Key{}, err
	}
	if err := tx.Audit(ctx, c.Actor(), "key add", k.Handle, k.Thumbprint); err != nil {
		return protocol.Key{}, err
	}
	return show(k, p)
}

// addedBy is the chain identity by whose authority the caller adds a key: that of
// its signature, or the one by which the signing key was added. The new key ends
// with it.
func addedBy(ctx context.Context, tx *storage.Tx, c protocol.Caller) (string, error) {
	switch {
	case c.Standing != protocol.Signed:
		return "", nil
	case c.Agent != "":
		return c.Agent, nil
	}
	k, err := tx.Keys().ByThumbprint(ctx, c.KeyID)
	if err != nil {
		return "", missing(err, "the key that signs is not registered any more")
	}
	return k.Identity, nil
}

// RetireKey ends a key's authority on this node; the operator names only the key.
// If the key speaks for the chain identity, the enrolment ends.
func (a *Accounts) RetireKey(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.KeyRef) (protocol.None, error) {
	if c.Standing == protocol.Operator && in.Handle == "" {
		k, err := tx.Keys().ByThumbprint(ctx, in.KeyID)
		if err != nil {
			return protocol.None{}, missing(err, "there is no key %s", in.KeyID)
		}
		in.Handle = k.Handle
	}
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.None{}, err
	}
	k, err := tx.Keys().ByThumbprint(ctx, in.KeyID)
	if errors.Is(err, storage.ErrNotFound) || err == nil && k.Handle != p.Draft.Handle {
		return protocol.None{}, protocol.Errorf(protocol.NotFound, "the profile has no key %s", in.KeyID)
	}
	if err != nil || k.RetiredAt != nil {
		return protocol.None{}, err
	}
	if err := tx.Keys().Retire(ctx, in.KeyID); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "key retire", k.Handle, in.KeyID)
}
