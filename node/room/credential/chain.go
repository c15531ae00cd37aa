package credential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"stoa/identity"
	"stoa/identity/cache"
	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/integrity"
	"stoa/protocol"
	"stoa/storage"
)

// A Chain answers which keys may speak for a chain identity, from the reader's
// cache or the chain itself. Nil when no chain is configured.
type Chain struct {
	Reader *erc8004.Reader           // the caller runs it
	keys   *cache.Cache[httpsig.Key] // by thumbprint, which names the key for good
	seen   *cache.Cache[struct{}]    // accounts that signed for identities, which are stored as known
	lags   *cache.Cache[erc8004.Lag] // by chain
	memory issued
	Dev    bool // all callers are on one machine
	// tell is told of agents that changed; set before the reader runs. Nil tells nobody.
	tell func(erc8004.Changes)
}

// NewChain makes a reader of the chains that settings names (see [erc8004.ParseChain]);
// nil for none. dev is for a chain on this machine: it is polled four times a second,
// and its readers are not told apart by network.
func NewChain(settings []string, dev bool, db *storage.DB, log *slog.Logger) (*Chain, error) {
	if len(settings) == 0 {
		return nil, nil
	}
	var chains []erc8004.Chain
	for _, s := range settings {
		parsed, err := erc8004.ParseChain(s)
		if err != nil {
			return nil, fmt.Errorf("chain: %w", err)
		}
		if dev {
			parsed.Poll = 250 * time.Millisecond
		}
		chains = append(chains, parsed)
	}
	ch := &Chain{Dev: dev, keys: cache.Of[httpsig.Key](memoMax), seen: cache.Of[struct{}](memoMax), lags: cache.Of[erc8004.Lag](64), memory: issued{db}}
	var err error
	ch.Reader, err = erc8004.NewReader(erc8004.Config{
		Chains: chains, Memory: ch.memory, Known: ch.memory.known, Log: log,
		Changed: func(seen erc8004.Changes) {
			if ch.tell != nil {
				ch.tell(seen)
			}
		},
	})
	return ch, err
}

// Troubles are public explanations for the chains that are not served.
func (c *Chain) Troubles() []string {
	if c == nil {
		return nil
	}
	var all []string
	for _, s := range c.Reader.States() {
		if wrong, ok := errors.AsType[*erc8004.SettingError](s.Err); ok {
			all = append(all, wrong.Error())
		} else if s.Err != nil {
			why := "no endpoint answered"
			if s.Quorum > 1 {
				why = fmt.Sprintf("no %d endpoints gave the same answer", s.Quorum)
			}
			all = append(all, fmt.Sprintf("chain %d: %s the last time; its identities cannot be verified", s.Chain, why))
		}
	}
	return all
}

// Health returns the states of the chains, sorted by id.
func (c *Chain) Health() []protocol.ChainHealth {
	all := []protocol.ChainHealth{}
	if c == nil {
		return all
	}
	for _, s := range c.Reader.States() {
		h := protocol.ChainHealth{ChainID: s.Chain, Block: s.Head}
		if s.Err != nil {
			h.Trouble = s.Err.Error()
		}
		if !s.LookedAt.IsZero() {
			at := s.LookedAt.UTC()
			h.LookedAt, h.BlockAt = &at, &s.HeadAt
		}
		all = append(all, h)
	}
	return all
}

// Authority implements integrity.Authority: the key of that thumbprint, or the account, when the chain says it may speak for the
// identity now.
func (c *Chain) Authority(ctx context.Context, identity, keyid string) (integrity.Grant, error) {
	if account, ok := httpsig.ParseAccount(keyid); ok {
		k, level, err := c.accountKey(ctx, identity, account)
		return integrity.Grant{Account: k.Key, Level: level, Owner: k.Owner, Block: k.Block, BlockHash: k.BlockHash}, err
	}
	grant, err := c.Grant(ctx, identity, keyid)
	if err != nil {
		return integrity.Grant{}, err
	}
	owner, _ := grant.Controllers()
	return integrity.Grant{Key: grant.PublicKey, Owner: owner, Block: grant.Block, BlockHash: grant.BlockHash.Hex()}, nil
}

// MessageKey implements identity.Chain.
func (c *Chain) MessageKey(ctx context.Context, network, claimed, keyid string) (identity.ChainKey, error) {
	if !c.Dev { // there, all callers are on one machine
		ctx = erc8004.WithSource(ctx, network)
	}
	grant, err := c.Grant(ctx, claimed, keyid)
	if err != nil {
		return identity.ChainKey{}, err
	}
	now := time.Now()
	k, ok := c.keys.Get(grant.KeyID, now)
	if !ok {
		if k, err = httpsig.NewKey(grant.PublicKey); err == nil {
			c.keys.Put(grant.KeyID, k, 0, now.Add(memoTTL))
		}
	}
	owner, wallet := grant.Controllers()
	return identity.ChainKey{Identity: grant.Identity, Owner: owner, Wallet: wallet, Key: k, Block: grant.Block, BlockHash: grant.BlockHash.Hex()}, err
}

// Grant is the chain's answer for a key that may speak for an identity. Errors are
// *protocol.Error: identity-unverified, key-unknown, chain-unavailable,
// rate-limited.
func (c *Chain) Grant(ctx context.Context, claimed, keyid string) (erc8004.Grant, error) {
	id, err := erc8004.ParseID(claimed)
	if err != nil {
		return erc8004.Grant{}, protocol.Errorf(protocol.IdentityUnverified, "Agent-Identity must be eip155:<chainId>:<registry>:<agentId>: %w", err)
	}
	grant, err := c.Reader.Authority(ctx, id, keyid)
	if err != nil {
		return erc8004.Grant{}, chainError(err)
	}
	return grant, nil
}

// chainError converts a reader's error to its public code.
func chainError(err error) error {
	if spent, ok := errors.AsType[*erc8004.BudgetError](err); ok {
		return budgetError(spent, err)
	}
	for _, row := range []struct {
		is     error
		code   protocol.Code
		detail string
		wait   time.Duration
	}{
		{erc8004.ErrKeyUnknown, protocol.KeyUnknown, "the chain gives this key no authority for the identity", 0},
		{erc8004.ErrNotRegistered, protocol.IdentityUnverified, "the registry has no such agent", 0},
		{erc8004.ErrChainNotSupported, protocol.IdentityUnverified, "this node does not read that chain", 0},
		{erc8004.ErrRegistryNotAllowed, protocol.IdentityUnverified, "this node does not accept that registry", 0},
		{erc8004.ErrIdentityBound, protocol.IdentityUnverified, "identities bound to another token are not supported", 0},
		{erc8004.ErrPendingFinality, protocol.IdentityUnverified, "the key's registration is not final yet; try again in some minutes", time.Minute},
		{erc8004.ErrInvalidID, protocol.IdentityUnverified, "that is not a chain identity", 0},
		{erc8004.ErrUnavailable, protocol.ChainUnavailable, "the chain cannot be read now; send the request again", 5 * time.Second},
	} {
		if errors.Is(err, row.is) {
			return &protocol.Error{Code: row.code, Detail: row.detail, RetryAfter: row.wait, Err: err}
		}
	}
	return err
}

// budgetError says what helps against a budget that is used up; err wraps it.
func budgetError(spent *erc8004.BudgetError, err error) error {
	if refused, ok := errors.AsType[*protocol.Error](spent.Payment); ok {
		e := *refused
		e.Err = err
		return &e
	}
	e := &protocol.Error{Code: protocol.ChainUnavailable, RetryAfter: spent.Wait, Err: err,
		Detail: "too many identities are looked up now; send the request again"}
	if spent.Source {
		e.Code, e.Detail = protocol.RateLimited, "this network asked about too many identities; send the request again later"
	}
	if spent.Payable {
		e.Detail += ", or at once with the solved challenge as the member pow or the Proof-Of-Work header: the identity is new here"
	}
	return e
}

// remember makes an identity one that is known here, as those with a key record are, after an account of it signed. A record that the account
// issued before still counts.
func (c *Chain) remember(ctx context.Context, identity, account string) error {
	now, name := time.Now(), identity+" "+account
	if _, known := c.seen.Get(name, now); known {
		return nil
	}
	err := c.memory.Raise(ctx, identity, account, 0)
	if err == nil {
		c.seen.Put(name, struct{}{}, 0, now.Add(time.Hour))
	}
	return err
}

// issued is the reader's persistent memory (erc8004.Memory).
type issued struct{ db *storage.DB }

func (m issued) Newest(ctx context.Context, id, signer string) (newest uint64, err error) {
	err = m.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		newest, err = tx.Keys().HighestIssued(ctx, id, signer)
		return err
	})
	return newest, err
}

func (m issued) Raise(ctx context.Context, id, signer string, issuedAt uint64) error {
	return m.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Keys().RaiseIssued(ctx, id, signer, issuedAt)
	})
}

// known reports whether an identity is enrolled here or had a valid record.
func (m issued) known(ctx context.Context, id string) (known bool, err error) {
	err = m.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		known, err = tx.Keys().KnownIdentity(ctx, id)
		return err
	})
	return known, err
}

// agentURI is the registration address of an identity on the chain.
func (c *Chain) agentURI(ctx context.Context, identity string) (string, error) {
	id, err := erc8004.ParseID(identity)
	if err != nil {
		return "", err
	}
	s, err := c.Reader.Snapshot(ctx, id)
	return s.URI, err
}

// Owns reports whether an account, an address in lower case, owns an identity now, by the reader's
// view of the chain. An identity that follows another token has no owner here. Errors are those of
// Grant.
func (c *Chain) Owns(ctx context.Context, network, identity, account string) (bool, error) {
	ctx, id, err := c.asked(ctx, network, identity)
	if err != nil {
		return false, err
	}
	control, err := c.Reader.Control(ctx, id)
	if errors.Is(err, erc8004.ErrNotRegistered) || errors.Is(err, erc8004.ErrIdentityBound) {
		return false, nil
	}
	return err == nil && control.Owner == account, chainError(err)
}

// Signed reports whether an account made a signature over a digest, on the chain of an identity.
// Errors are those of Grant.
func (c *Chain) Signed(ctx context.Context, network, identity, account string, digest [32]byte, sig []byte) (bool, error) {
	ctx, id, err := c.asked(ctx, network, identity)
	if err != nil {
		return false, err
	}
	good, err := c.Reader.SignedBy(ctx, id, account, digest, sig)
	return good, chainError(err)
}

// SignedOn is Signed on a chain that the node reads; false on another.
func (c *Chain) SignedOn(ctx context.Context, network string, chain uint64, account string, digest [32]byte, sig []byte) (bool, error) {
	registries := c.Reader.Registries()[chain]
	if len(registries) == 0 {
		return false, nil
	}
	return c.Signed(ctx, network, registries[0]+":0", account, digest, sig) // the agent only names the chain
}

// asked counts the reads for an identity for the network that asks.
func (c *Chain) asked(ctx context.Context, network, identity string) (context.Context, erc8004.ID, error) {
	if !c.Dev { // there, all callers are on one machine
		ctx = erc8004.WithSource(ctx, network)
	}
	id, err := erc8004.ParseID(identity)
	return ctx, id, err
}

// transaction is the hash of a transaction.
var transaction = regexp.MustCompile(`^0x[0-9a-f]{64}$`)

// Review checks that the chain has the feedback of a review with its rating: not-found when it has not, and
// identity-unverified when the chain or its registry is not read here. Other errors are temporary.
func (c *Chain) Review(ctx context.Context, r protocol.NewsReview) error {
	id, err := erc8004.ParseID(r.Agent)
	if err != nil || !transaction.MatchString(r.Tx) {
		return protocol.Errorf(protocol.NotFound, "the review names no feedback")
	}
	rating, found, err := c.Reader.Rated(ctx, id, r.Client, r.Tx, r.Index)
	switch {
	case errors.Is(err, erc8004.ErrChainNotSupported), errors.Is(err, erc8004.ErrRegistryNotAllowed):
		return protocol.Errorf(protocol.IdentityUnverified, "%w", err)
	case err != nil:
		return protocol.Errorf(protocol.ChainUnavailable, "%w", err)
	case !found || rating != r.Rating:
		return protocol.Errorf(protocol.NotFound, "the chain has no such feedback with this rating")
	}
	return nil
}
