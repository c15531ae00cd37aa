package erc8004

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common"
)

// A keySet is a valid record: its signer is owner or wallet in the snapshot, and it is neither
// from the future nor older than one that was seen before.
type keySet struct {
	rec      Record
	contract bool // not an ordinary signature: the signer must be asked each time (ERC-1271)
	digest   common.Hash

	mu         sync.Mutex  // guards all below
	noCode     bool        // it was asked once, and is not a contract
	remembered bool        // issuedAt is in Memory
	askedAt    common.Hash // block of that answer; zero for none
	answer     verdict
}

// proven reports whether the signature is known to be valid.
func (k *keySet) proven() bool {
	if k == nil || !k.contract {
		return k != nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.remembered
}

// judge checks the bytes of a record against a snapshot. An invalid record is treated as absent,
// nil: it is logged and is not an error, since anyone with rights to the token can write it.
func (r *Reader) judge(ctx context.Context, s *Snapshot, raw []byte) (*keySet, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	rec, err := ParseRecord(raw)
	if err == nil && (rec.Signer == common.Address{} || rec.Signer != s.Owner && rec.Signer != s.Wallet) {
		err = fmt.Errorf("%w: signer is neither owner nor wallet", ErrInvalidRecord)
	}
	if err == nil {
		err = r.checkTimes(ctx, s, rec)
	}
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		r.log.Info("key record does not count", "agent", s.ID.String(), "block", s.Block, "err", err)
		return nil, nil
	}
	set := &keySet{rec: rec}
	if !rec.SignedBySigner(s.ID) {
		set.contract, set.digest = true, rec.Digest(s.ID)
	}
	return set, nil
}

// checkTimes refuses records from the future, and records older than another by the same signer for
// this agent.
func (r *Reader) checkTimes(ctx context.Context, s *Snapshot, rec Record) error {
	if rec.IssuedAt > uint64(r.now().Add(recordSkew).Unix()) {
		return fmt.Errorf("%w: issued in the future", ErrInvalidRecord)
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

// remember stores the issuedAt of a record that is final and proven. One that is not final may be
// reverted and must not invalidate its predecessor.
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

// holds reports whether the set's signature is valid now. Contract signers are asked at the
// current head: a wallet that replaced its key emits no event here.
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
	at, _, fresh := c.current()
	if set.mu.Lock(); fresh && set.askedAt == at.head.Hash {
		defer set.mu.Unlock()
		return set.answer, nil // the same code with the same state
	}
	set.mu.Unlock()
	if err := r.pay(ctx, c, id.String(), set.proven()); err != nil {
		return refused, err
	}
	v, asked, err := c.consult(ctx, set.rec.Signer, set.digest, set.rec.Signature)
	if err == nil && v != unsure {
		set.mu.Lock()
		set.askedAt, set.answer = asked, v
		set.mu.Unlock()
	}
	return v, err
}

// consult asks a contract account about a signature, at the poller's head or at that of the endpoints,
// and returns the hash of that block.
func (c *chain) consult(ctx context.Context, who common.Address, digest common.Hash, sig []byte) (v verdict, block common.Hash, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	p := c.panel()
	p.quiet = true
	at, _, fresh := c.current()
	for {
		if !fresh {
			if at, _, err = c.look(ctx, p, nil); err != nil {
				return refused, block, err
			}
		}
		v, err = agree(ctx, p, func(ctx context.Context, ep *endpoint) (verdict, error) {
			return ep.ask(ctx, c.ID, at.head, who, digest, sig)
		}, func(v verdict) string { return fmt.Sprint(v) })
		if !fresh || !errors.Is(err, errUnknownBlock) {
			return v, at.head.Hash, err
		}
		fresh = false
	}
}

// SignedBy reports whether an account made a signature over a digest: an ordinary account by its
// key, and a contract by its own word at the head of the chain (ERC-1271). The reads are counted as
// those for the agent id, whose chain is asked. account is an address in any case. Errors are those
// of [Reader.Snapshot].
func (r *Reader) SignedBy(ctx context.Context, id ID, account string, digest [32]byte, sig []byte) (bool, error) {
	c, err := r.chainOf(id)
	if err != nil {
		return false, err
	}
	account = strings.ToLower(account)
	sig = unwrapped(sig)
	if who, ok := recoverSigner(digest, sig); ok && addressText(who) == account {
		return true, nil
	}
	if len(sig) > maxSignature {
		return false, nil
	}
	if err := r.pay(ctx, c, id.String(), true); err != nil {
		return false, err
	}
	v, _, err := c.consult(ctx, common.HexToAddress(account), digest, sig)
	if err == nil && v == unsure {
		err = fmt.Errorf("%w: contract signer gave no answer", ErrUnavailable)
	}
	return v == accepted, err
}

// wrapping ends the signature of a contract that may not be there yet (ERC-6492).
var wrapping = bytes.Repeat([]byte{0x64, 0x92}, 16)

// unwrapped returns the signature within one of ERC-6492, which has the factory of the contract and its call in front. The contract
// is not made for a check: one that is not there has signed nothing yet.
func unwrapped(sig []byte) []byte {
	head, ok := bytes.CutSuffix(sig, wrapping)
	if !ok || len(head) > maxSignature || len(head) < 4*32 {
		return sig
	}
	at, size := new(big.Int).SetBytes(head[64:96]), new(big.Int)
	if !at.IsInt64() || at.Int64() > int64(len(head)-32) {
		return sig
	}
	rest := head[at.Int64():]
	if size.SetBytes(rest[:32]); !size.IsInt64() || size.Int64() > int64(len(rest)-32) {
		return sig
	}
	return rest[32 : 32+size.Int64()]
}

// maxSignature is the length of a signature that a contract is asked about, at most.
const maxSignature = 4096
