package erc8004

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// How a key came by its authority.
const (
	LevelChainKey   = "chain-key"   // a signed record on chain
	LevelSignedFile = "signed-file" // the same record published off chain, at most 90 days old
)

// A Grant is the authority of one key to speak for one agent, with the block
// that shows it. Keep Block and BlockHash with what the key signed: later the
// chain says something else.
type Grant struct {
	Identity  string // canonical
	Display   string // with EIP-55 checksum
	Level     string
	KeyID     string           // RFC 7638 thumbprint
	PublicKey crypto.PublicKey // ed25519.PublicKey or *ecdsa.PublicKey on P-256
	Owner     common.Address
	Wallet    common.Address // zero for none
	Block     uint64
	BlockHash common.Hash
	Pending   bool // not final; only with Config.AllowPending
}

// A keySet is a record that counts: its signer is owner or wallet in the
// snapshot, and it is neither from the future nor older than one seen before.
type keySet struct {
	level    string
	rec      Record
	contract bool // not an ordinary signature: the signer must be asked each time (ERC-1271)
	digest   common.Hash

	mu         sync.Mutex // guards all below
	noCode     bool       // asked once, and there is no contract
	remembered bool       // issuedAt is in Memory
}

// fileCache keeps the last off-chain record of an entry, so that it is verified once.
type fileCache struct {
	mu  sync.Mutex // guards all below
	raw []byte
	set *keySet
}

// Authority returns the grant of the key with that thumbprint for the agent.
//
// A valid record on chain is the only source when there is one; without it the
// record that [Records] has is taken. Revocation and transfer count at once, at
// the head of the chain. A new grant counts when the change is final; until then
// only keys that the last final state had too are granted. Beside the errors of
// [Reader.Snapshot] it returns ErrKeyUnknown, ErrPendingFinality and
// ErrIdentityBound. A cached answer costs no call, except for contract owners,
// who are asked each time at the head.
func (r *Reader) Authority(ctx context.Context, id ID, keyid string) (Grant, error) {
	grants, err := r.grants(ctx, id, keyid)
	if err != nil {
		return Grant{}, err
	}
	return grants[0], nil
}

// Grants returns the grants of all keys of the agent, preferred first. Errors
// are those of [Reader.Authority]: an agent without keys gives ErrKeyUnknown.
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
			Identity: e.key, Display: e.display, Level: set.level, KeyID: k.Thumbprint, PublicKey: k.Public,
			Owner: e.snap.Owner, Wallet: e.snap.Wallet, Block: e.snap.Block, BlockHash: e.snap.BlockHash, Pending: !final,
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

// keysNow is the key set that counts for the entry's own state.
func (r *Reader) keysNow(ctx context.Context, e *entry) (*keySet, error) {
	if len(e.snap.Binding) > 0 {
		return nil, ErrIdentityBound // ERC-8217
	}
	if ok, err := r.holds(ctx, e, e.keys); err != nil {
		return nil, err
	} else if ok {
		return e.keys, nil // also with no keys at all: that revokes, and nothing else is asked
	}
	set, err := r.fileKeys(ctx, e)
	if err != nil {
		return nil, err
	}
	if ok, err := r.holds(ctx, e, set); err != nil {
		return nil, err
	} else if !ok {
		return nil, ErrKeyUnknown
	}
	return set, nil
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

// judge checks the bytes of a record against a snapshot. What does not count is
// the same as absent, nil: it is logged and not an error, since anybody with
// rights on the token can write it. maxAge 0 means any age.
func (r *Reader) judge(ctx context.Context, s *Snapshot, raw []byte, maxAge time.Duration) (*keySet, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	rec, err := ParseRecord(raw)
	if err == nil && (rec.Signer == common.Address{} || rec.Signer != s.Owner && rec.Signer != s.Wallet) {
		err = fmt.Errorf("%w: signer is neither owner nor wallet", ErrInvalidRecord)
	}
	if err == nil {
		err = r.timely(ctx, s, rec, maxAge)
	}
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		r.log.Info("key record does not count", "agent", s.ID.String(), "block", s.Block, "err", err)
		return nil, nil
	}
	set := &keySet{level: LevelChainKey, rec: rec}
	if maxAge > 0 {
		set.level = LevelSignedFile
	}
	if !rec.SignedBySigner(s.ID) {
		set.contract, set.digest = true, rec.Digest(s.ID)
	}
	return set, nil
}

// timely refuses records from the future, too old ones, and those older than
// another that the same signer made for this agent.
func (r *Reader) timely(ctx context.Context, s *Snapshot, rec Record, maxAge time.Duration) error {
	now := uint64(r.now().Unix())
	if rec.IssuedAt > now+uint64(recordSkew/time.Second) {
		return fmt.Errorf("%w: issued in the future", ErrInvalidRecord)
	}
	if maxAge > 0 && rec.IssuedAt+uint64(maxAge/time.Second) < now {
		return fmt.Errorf("%w: older than %s", ErrInvalidRecord, maxAge)
	}
	newest, err := r.memory.Newest(ctx, s.ID.String(), signerKey(rec.Signer))
	if err != nil {
		return fmt.Errorf("%w: memory of records: %w", ErrUnavailable, err)
	}
	if rec.IssuedAt < newest {
		return fmt.Errorf("%w: an older one than was seen before", ErrInvalidRecord)
	}
	return nil
}

func signerKey(a common.Address) string { return strings.ToLower(a.Hex()) }

// remember keeps the issuedAt of a record that is final and proven. One that
// was not final may be undone and must not shut out the record before it.
func (r *Reader) remember(ctx context.Context, e *entry, set *keySet) error {
	set.mu.Lock()
	defer set.mu.Unlock()
	if e.pending > 0 || set.remembered {
		return nil
	}
	if err := r.memory.Raise(ctx, e.key, signerKey(set.rec.Signer), set.rec.IssuedAt); err != nil {
		return fmt.Errorf("%w: memory of records: %w", ErrUnavailable, err)
	}
	set.remembered = true
	return nil
}

// holds reports whether the set's signature stands now. Contract signers are
// asked at the present head: a wallet that replaced its key emits no event here.
func (r *Reader) holds(ctx context.Context, e *entry, set *keySet) (bool, error) {
	if set == nil {
		return false, nil
	}
	if !set.contract {
		return true, r.remember(ctx, e, set)
	}
	set.mu.Lock()
	known := set.noCode
	set.mu.Unlock()
	if known {
		return false, nil
	}
	v, err := r.ask(ctx, e.snap.ID, set)
	if err != nil {
		return false, err
	}
	switch v {
	case accepted:
		return true, r.remember(ctx, e, set)
	case noCode:
		set.mu.Lock()
		set.noCode = true
		set.mu.Unlock()
	case unsure:
		return false, fmt.Errorf("%w: contract signer gave no answer", ErrUnavailable)
	}
	r.log.Info("key record does not count", "agent", e.key, "err", "bad signature")
	return false, nil
}

func (r *Reader) ask(ctx context.Context, id ID, set *keySet) (v verdict, err error) {
	c := r.chains[id.ChainID]
	if !c.budget.take(c.now()) {
		return refused, fmt.Errorf("%w: budget of chain reads is spent", ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err = c.try(ctx, func(ctx context.Context, ep *endpoint) error {
		at, _, fresh := c.current()
		for {
			var err error
			if !fresh {
				if at, _, err = c.look(ctx, ep, nil); err != nil {
					return err
				}
			}
			v, err = ep.ask(ctx, id.ChainID, at.head, set.rec.Signer, set.digest, set.rec.Signature)
			if fresh && errors.Is(err, errUnknownBlock) {
				fresh = false
				continue
			}
			return err
		}
	})
	return v, err
}

// fileKeys judges the off-chain record of the entry's agent, if there is one.
func (r *Reader) fileKeys(ctx context.Context, e *entry) (*keySet, error) {
	if r.records == nil {
		return nil, nil
	}
	raw, err := r.records.Record(ctx, e.key)
	if err != nil {
		return nil, fmt.Errorf("%w: off-chain record: %w", ErrUnavailable, err)
	}
	e.file.mu.Lock()
	defer e.file.mu.Unlock()
	if e.file.set == nil || !bytes.Equal(raw, e.file.raw) {
		if e.file.set, err = r.judge(ctx, e.snap, raw, fileRecordAge); err != nil {
			return nil, err
		}
		e.file.raw = bytes.Clone(raw)
	}
	return e.file.set, nil
}
