package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// An AgentKey is a signing key of a profile of this node.
type AgentKey struct {
	Handle, Thumbprint string // RFC 7638
	PublicJWK          []byte
	Sealed             []byte `db:",null"` // the sealed private key; nil when the owner holds it
	Directory          []byte `db:",null"` // the signed directory headers as the owner sent them, JSON; nil when the node signs
	CreatedAt          time.Time
	RetiredAt          *time.Time // signatures made after this are not valid; nil while in use
	Identity           string     // the chain identity with whose enrolment the key ends; "" for none
	OnChain            bool       // the key has its authority from the record of that identity
	LastUsedAt         *time.Time // when it last signed a request, to within ten minutes; nil: never
}

var agentKeyTable = tableOf[AgentKey]("agent_key")

// Keys reads and writes the keys of profiles, key directories, and issue times of
// signed key records.
type Keys struct{ tx *Tx }

func (tx *Tx) Keys() Keys { return Keys{tx} }

// Put stores a key, or updates the sealed form and directory of a known one. It
// does not change whether a known key is retired, which is final and set by Retire,
// nor with which identity it ends, which is set by Enrolments.Begin. A zero CreatedAt means
// now. ErrExists when the key belongs to another handle.
func (ks Keys) Put(ctx context.Context, k AgentKey) error {
	if k.CreatedAt.IsZero() {
		k.CreatedAt = ks.tx.Now
	}
	old, err := ks.ByThumbprint(ctx, k.Thumbprint)
	if err != nil && err != ErrNotFound {
		return err
	}
	if err == nil && old.Handle != k.Handle {
		return ErrExists
	}
	return agentKeyTable.put(ctx, ks.tx, &k, "thumbprint", "sealed", "directory")
}

// ByThumbprint returns a key, retired or not; ErrNotFound when unknown.
func (ks Keys) ByThumbprint(ctx context.Context, thumbprint string) (*AgentKey, error) {
	return orNil(findIn[AgentKey](ks.tx.lookup(ctx, keyByThumbprint, thumbprint)))
}

// keyByThumbprint runs with every signed request.
var keyByThumbprint = agentKeyTable.from + `WHERE thumbprint = ?`

// OfProfile returns the keys of a profile, including retired ones, newest first.
func (ks Keys) OfProfile(ctx context.Context, handle string) ([]AgentKey, error) {
	return list[AgentKey](ctx, ks.tx, agentKeyTable.from+`WHERE handle = ? ORDER BY created_at DESC, thumbprint LIMIT 1000`, handle)
}

// Touch records that a key signed a request now, if it is one of a profile.
func (ks Keys) Touch(ctx context.Context, thumbprint string) error {
	_, err := ks.tx.writeAside(ctx, `UPDATE agent_key SET last_used_at = ? WHERE thumbprint = ?`, millis(ks.tx.Now), thumbprint)
	return err
}

// CountUsed is how many keys of a profile are not retired.
func (ks Keys) CountUsed(ctx context.Context, handle string) (int, error) {
	return find[int](ctx, ks.tx, `SELECT count(*) FROM agent_key WHERE handle = ? AND retired_at IS NULL`, handle)
}

// Retire ends the use of a key permanently: no enrolment makes it usable again.
// A retired key is unchanged. The enrolment of which it is the key ends.
// ErrNotFound when unknown.
func (ks Keys) Retire(ctx context.Context, thumbprint string) error {
	k, err := ks.ByThumbprint(ctx, thumbprint)
	if err != nil {
		return err
	}
	if _, err := ks.tx.write(ctx, `UPDATE agent_key SET retired_at = COALESCE(retired_at, ?), identity = '', on_chain = ? WHERE thumbprint = ?`,
		millis(ks.tx.Now), false, thumbprint); err != nil || k.Identity == "" {
		return err
	}
	e, err := ks.tx.Enrolments().ByIdentity(ctx, k.Identity)
	if err == nil && e.Handle == k.Handle && e.KeyID == thumbprint {
		err = ks.tx.Enrolments().End(ctx, "node", e, protocol.EndedByKey)
	}
	if err == ErrNotFound {
		return nil
	}
	return err
}
