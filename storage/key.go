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

// PutAgentKey stores a key, or updates the sealed form and directory of a known
// one. It does not change whether a known key is retired, which is final and set by
// RetireAgentKey, nor with which identity it ends, which is set by Enrol. A zero
// CreatedAt means now. ErrExists when the key belongs to another handle.
func (tx *Tx) PutAgentKey(ctx context.Context, k AgentKey) error {
	if k.CreatedAt.IsZero() {
		k.CreatedAt = tx.Now
	}
	old, err := tx.AgentKeyByThumbprint(ctx, k.Thumbprint)
	if err != nil && err != ErrNotFound {
		return err
	}
	if err == nil && old.Handle != k.Handle {
		return ErrExists
	}
	return tx.put(ctx, &agentKeyRow{Thumbprint: k.Thumbprint, Handle: k.Handle, PublicJWK: k.PublicJWK, Sealed: k.Sealed, Directory: k.Directory,
		CreatedAt: millis(k.CreatedAt), RetiredAt: millisPtr(k.RetiredAt), Identity: k.Identity, OnChain: k.OnChain}, "thumbprint", "sealed", "directory")
}

// AgentKeyByThumbprint returns a key, retired or not; ErrNotFound when unknown.
func (tx *Tx) AgentKeyByThumbprint(ctx context.Context, thumbprint string) (*AgentKey, error) {
	var r agentKeyRow
	if err := tx.selectFrom(&r).Where("thumbprint = ?", thumbprint).Scan(tx.in(ctx)); err != nil {
		return nil, found(err)
	}
	k := r.key()
	return &k, nil
}

// AgentKeys returns the keys of a profile, including retired ones, newest first.
func (tx *Tx) AgentKeys(ctx context.Context, handle string) ([]AgentKey, error) {
	var rows []agentKeyRow
	err := tx.selectFrom(&rows).Where("handle = ?", handle).Order("created_at DESC", "thumbprint").Limit(1000).Scan(tx.in(ctx))
	return convert(rows, agentKeyRow.key), err
}

// RetireAgentKey ends the use of a key permanently: no enrolment makes it usable
// again. A retired key is unchanged. The enrolment of which it is the key ends.
// ErrNotFound when unknown.
func (tx *Tx) RetireAgentKey(ctx context.Context, thumbprint string) error {
	k, err := tx.AgentKeyByThumbprint(ctx, thumbprint)
	if err != nil {
		return err
	}
	if _, err := tx.write(ctx, `UPDATE agent_key SET retired_at = COALESCE(retired_at, ?), identity = '', on_chain = ? WHERE thumbprint = ?`,
		millis(tx.Now), false, thumbprint); err != nil || k.Identity == "" {
		return err
	}
	e, err := tx.EnrolmentByIdentity(ctx, k.Identity)
	if err == nil && e.Handle == k.Handle && e.KeyID == thumbprint {
		err = tx.EndEnrolment(ctx, "node", e, protocol.EndedByKey)
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
