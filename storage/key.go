package storage

import (
	"context"
	"time"

	"stoa/protocol"

	"github.com/uptrace/bun"
)

// An AgentKey is a signing key of a profile of this node.
type AgentKey struct {
	Handle, Thumbprint string // RFC 7638
	PublicJWK          []byte
	Sealed             []byte // the sealed private key; nil when the owner holds it
	Directory          []byte // the signed directory headers as the owner sent them, JSON; nil when the node signs
	CreatedAt          time.Time
	RetiredAt          *time.Time // signatures made after this are not valid; nil while in use
	Identity           string     // the chain identity with whose enrolment the key ends; "" for none
	OnChain            bool       // the key has its authority from the record of that identity
}

type agentKeyRow struct {
	bun.BaseModel `bun:"table:agent_key"`
	Thumbprint    string `bun:",pk"`
	Handle        string
	PublicJWK     []byte `bun:"public_jwk,notnull"`
	Sealed        []byte
	Directory     []byte
	CreatedAt     int64
	RetiredAt     *int64
	Identity      string
	OnChain       bool
}

func (r agentKeyRow) key() AgentKey {
	return AgentKey{Handle: r.Handle, Thumbprint: r.Thumbprint, PublicJWK: r.PublicJWK, Sealed: r.Sealed, Directory: r.Directory,
		CreatedAt: moment(r.CreatedAt), RetiredAt: momentPtr(r.RetiredAt), Identity: r.Identity, OnChain: r.OnChain}
}

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
	return ks.tx.put(ctx, &agentKeyRow{Thumbprint: k.Thumbprint, Handle: k.Handle, PublicJWK: k.PublicJWK, Sealed: k.Sealed, Directory: k.Directory,
		CreatedAt: millis(k.CreatedAt), RetiredAt: millisPtr(k.RetiredAt), Identity: k.Identity, OnChain: k.OnChain}, "thumbprint", "sealed", "directory")
}

// ByThumbprint returns a key, retired or not; ErrNotFound when unknown.
func (ks Keys) ByThumbprint(ctx context.Context, thumbprint string) (*AgentKey, error) {
	var r agentKeyRow
	if err := ks.tx.lookup(ctx, keyByThumbprint, thumbprint).Scan(&r.Thumbprint, &r.Handle, &r.PublicJWK, &r.Sealed, &r.Directory,
		&r.CreatedAt, &r.RetiredAt, &r.Identity, &r.OnChain); err != nil {
		return nil, err
	}
	k := r.key()
	return &k, nil
}

// keyByThumbprint runs with every signed request.
const keyByThumbprint = `SELECT thumbprint, handle, public_jwk, sealed, directory, created_at, retired_at, identity, on_chain
	FROM agent_key WHERE thumbprint = ?`

// OfProfile returns the keys of a profile, including retired ones, newest first.
func (ks Keys) OfProfile(ctx context.Context, handle string) ([]AgentKey, error) {
	var rows []agentKeyRow
	err := ks.tx.selectFrom(&rows).Where("handle = ?", handle).Order("created_at DESC", "thumbprint").Limit(1000).Scan(ks.tx.in(ctx))
	return convert(rows, agentKeyRow.key), err
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

// convert converts rows to their values.
func convert[R, T any](rows []R, to func(R) T) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = to(r)
	}
	return out
}
