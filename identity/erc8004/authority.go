package erc8004

import (
	"context"
	"crypto"
	"errors"

	"github.com/ethereum/go-ethereum/common"
)

// A Grant is the authority of one key for one agent, with the block that shows it. Store Block and
// BlockHash with what the key signed: the chain's state changes later.
type Grant struct {
	Identity  string           // canonical
	Display   string           // with EIP-55 checksum
	KeyID     string           // RFC 7638 thumbprint
	PublicKey crypto.PublicKey // ed25519.PublicKey or *ecdsa.PublicKey on P-256
	Owner     common.Address
	Wallet    common.Address // zero for none
	Block     uint64
	BlockHash common.Hash
	Final     uint64 // newest final block at the read
	Pending   bool   // not final; only with Config.AllowPending
}

// Authority returns the grant of the key with that thumbprint for the agent.
//
// The signed record on chain is the only source. Revocation and transfer take effect at once, at
// the head of the chain. A new grant takes effect when the change is final; until then only keys
// that were also granted in the last final state are granted. In addition to the errors of
// [Reader.Snapshot] it returns ErrKeyUnknown, ErrPendingFinality and ErrIdentityBound. A cached
// answer costs no call, except for contract owners, who are asked each time at the head. A refusal
// based on a view older than a second is checked again first.
func (r *Reader) Authority(ctx context.Context, id ID, keyid string) (Grant, error) {
	grants, err := r.grants(ctx, id, keyid)
	if errors.Is(err, ErrNotRegistered) || errors.Is(err, ErrKeyUnknown) || errors.Is(err, ErrPendingFinality) {
		// The view may be as old as one polling interval: look again before refusing.
		if c := r.chains[id.ChainID]; c != nil && c.freshen(ctx) {
			grants, err = r.grants(ctx, id, keyid)
		}
	}
	if err != nil {
		return Grant{}, err
	}
	return grants[0], nil
}

// Grants returns the grants of all keys of the agent, preferred first. Errors are those of
// [Reader.Authority]; an agent without keys gives ErrKeyUnknown.
func (r *Reader) Grants(ctx context.Context, id ID) ([]Grant, error) {
	return r.grants(ctx, id, "")
}

func (r *Reader) grants(ctx context.Context, id ID, keyid string) ([]Grant, error) {
	e, err := r.lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	set, err := r.keysNow(ctx, e)
	if err != nil {
		return nil, err
	}
	var out []Grant
	pending := false
	for _, k := range set.rec.Keys {
		if keyid != "" && k.Thumbprint != keyid {
			continue
		}
		final := e.pending == 0
		if !final {
			if final, err = r.hadKey(ctx, e, k.Thumbprint); err != nil {
				return nil, err
			}
		}
		if !final && !r.allowPending {
			pending = true
			continue
		}
		out = append(out, Grant{
			Identity: e.key, Display: e.display, KeyID: k.Thumbprint, PublicKey: k.Public,
			Owner: e.snap.Owner, Wallet: e.snap.Wallet, Block: e.snap.Block, BlockHash: e.snap.BlockHash, Final: e.final, Pending: !final,
		})
	}
	switch {
	case len(out) > 0:
		return out, nil
	case pending:
		return nil, ErrPendingFinality
	}
	return nil, ErrKeyUnknown
}

// keysNow returns the key set that is valid for the entry's own state.
func (r *Reader) keysNow(ctx context.Context, e *entry) (*keySet, error) {
	if len(e.snap.Binding) > 0 {
		return nil, ErrIdentityBound // ERC-8217
	}
	if ok, err := r.holds(ctx, e, e.keys); err != nil {
		return nil, err
	} else if !ok {
		return nil, ErrKeyUnknown
	}
	return e.keys, nil
}

// hadKey reports whether the last final state of a pending entry is known,
// has the same owner, and granted the key too.
func (r *Reader) hadKey(ctx context.Context, e *entry, keyid string) (bool, error) {
	if e.kept == nil || e.kept.snap.Owner != e.snap.Owner {
		return false, nil
	}
	set, err := r.keysNow(ctx, e.kept)
	switch {
	case errors.Is(err, ErrUnavailable):
		return false, err
	case err != nil:
		return false, nil
	}
	for _, k := range set.rec.Keys {
		if k.Thumbprint == keyid {
			return true, nil
		}
	}
	return false, nil
}
