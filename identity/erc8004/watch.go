package erc8004

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// A Control is the current owner and wallet of an agent, and the keys that they gave it.
type Control struct {
	Owner, Wallet string // in lower case; Wallet "" for none
	Keys          []Key  // preferred first; none when no valid record names any
	Block         uint64
	BlockHash     common.Hash
	// Pending: the last change of authority can still be reverted. Keys are those at the head of
	// the chain, which may not be authorised yet.
	Pending bool
}

// Control returns the chain's data about the agent at the head, from the cache or in one batch of
// reads. Errors are those of [Reader.Snapshot], and ErrIdentityBound.
func (r *Reader) Control(ctx context.Context, id ID) (Control, error) {
	e, err := r.lookup(ctx, id)
	if err != nil {
		return Control{}, err
	}
	s := Control{Owner: addressText(e.snap.Owner), Wallet: addressText(e.snap.Wallet), Block: e.snap.Block, BlockHash: e.snap.BlockHash, Pending: e.pending > 0}
	set, err := r.keysNow(ctx, e)
	switch {
	case err == nil:
		s.Keys = set.rec.Keys
	case !errors.Is(err, ErrKeyUnknown):
		return Control{}, err
	}
	return s, nil
}

// ControlBy is Control for an account, an address in lower case, that speaks as the owner or the wallet of the agent. Before it refuses, it
// looks again. Errors are those of Control, ErrKeyUnknown for another account, and ErrPendingFinality while the account's control can
// still be reverted.
func (r *Reader) ControlBy(ctx context.Context, id ID, account string) (Control, error) {
	s, err := r.controlBy(ctx, id, account)
	if errors.Is(err, ErrNotRegistered) || errors.Is(err, ErrKeyUnknown) || errors.Is(err, ErrPendingFinality) {
		if c := r.chains[id.ChainID]; c != nil && c.freshen(ctx) {
			s, err = r.controlBy(ctx, id, account)
		}
	}
	return s, err
}

func (r *Reader) controlBy(ctx context.Context, id ID, account string) (Control, error) {
	e, err := r.lookup(ctx, id)
	if err != nil {
		return Control{}, err
	}
	if len(e.snap.Binding) > 0 {
		return Control{}, ErrIdentityBound // ERC-8217
	}
	has := func(e *entry) bool {
		return addressText(e.snap.Owner) == account || addressText(e.snap.Wallet) == account
	}
	switch {
	case account == "" || !has(e):
		return Control{}, ErrKeyUnknown
	case e.pending > 0 && !r.allowPending && (e.kept == nil || e.kept.snap == nil || !has(e.kept)):
		return Control{}, ErrPendingFinality
	}
	return Control{Owner: addressText(e.snap.Owner), Wallet: addressText(e.snap.Wallet), Block: e.snap.Block, BlockHash: e.snap.BlockHash,
		Pending: e.pending > 0}, nil
}

// addressText returns an address in lower case, "" for the zero address.
func addressText(a common.Address) string {
	if a == (common.Address{}) {
		return ""
	}
	return strings.ToLower(a.Hex())
}

// BlockHashes returns the current hashes of the blocks with those numbers, in the same order; ""
// for a number above the head.
func (r *Reader) BlockHashes(ctx context.Context, chainID uint64, numbers []uint64) ([]string, error) {
	c := r.chains[chainID]
	if c == nil {
		return nil, fmt.Errorf("%w: %d", ErrChainNotSupported, chainID)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return agree(ctx, c.panel(), func(ctx context.Context, e *endpoint) ([]string, error) {
		found := make([]*header, len(numbers))
		elems := make([]rpc.BatchElem, len(numbers))
		for i, n := range numbers {
			elems[i] = headerElem(hexutil.Uint64(n).String(), &found[i])
		}
		if err := e.batch(ctx, c.ID, elems); err != nil {
			return nil, err
		}
		hashes := make([]string, len(numbers))
		for i, h := range found {
			if elems[i].Error != nil {
				return nil, fmt.Errorf("eth_getBlockByNumber %d: %w", numbers[i], elems[i].Error)
			}
			if h != nil {
				hashes[i] = h.Hash.Hex()
			}
		}
		return hashes, nil
	}, func(hashes []string) string { return strings.Join(hashes, " ") })
}

// Registries returns the configured registries, as eip155:<chainId>:<address> in lower case, by
// chain.
func (r *Reader) Registries() map[uint64][]string {
	all := map[uint64][]string{}
	for id, c := range r.chains {
		for _, reg := range c.Registries {
			all[id] = append(all[id], fmt.Sprintf("eip155:%d:%s", id, strings.ToLower(reg.Identity.Hex())))
		}
	}
	return all
}

// Keep makes [Reader.Run] watch the chain even without lookups.
func (r *Reader) Keep(chainID uint64) {
	if c := r.chains[chainID]; c != nil {
		c.lastUse.Store(c.now().UnixNano())
	}
}

// Changes are what a look at a chain saw.
type Changes struct {
	Chain  uint64
	Agents []string // in canonical form, whose authority changed
	// All means any agent of the chain: after a reorganisation, a gap in the events, an upgrade, and at the first look.
	All bool
	// Transfers are those in the blocks after After. With All, the chain may have other blocks after it than an earlier look saw.
	After     uint64
	Transfers []Transfer
	URIs      []string // agents, in canonical form, whose agentURI was set
}

// A Transfer is a token that changed its owner. From and To are addresses in lower case, "" for the zero address.
type Transfer struct {
	Agent    string // in canonical form
	From, To string
	Block    uint64
}

// reportChanged reports what the events after a block changed. all means that the events since the last look are unknown or invalid.
func (c *chain) reportChanged(logs []logEntry, all bool, after uint64) {
	if c.changed == nil {
		return
	}
	ch := Changes{Chain: c.ID, All: all, After: after}
	for _, l := range logs {
		switch {
		case l.Topics[0] == topicUpgraded:
			ch.All = true
		case l.authority():
			agent := ID{c.ID, l.Address, l.agent()}.String()
			ch.Agents = append(ch.Agents, agent)
			if l.Topics[0] == topicTransfer {
				from, to := common.BytesToAddress(l.Topics[1][:]), common.BytesToAddress(l.Topics[2][:])
				ch.Transfers = append(ch.Transfers, Transfer{agent, addressText(from), addressText(to), uint64(l.Block)})
			}
		case l.Topics[0] == topicURIUpdated:
			ch.URIs = append(ch.URIs, ID{c.ID, l.Address, l.agent()}.String())
		}
	}
	if ch.All || len(ch.Agents)+len(ch.URIs) > 0 {
		c.changed(ch)
	}
}

// Controllers returns owner and wallet of the grant in the form of [Control].
func (g Grant) Controllers() (owner, wallet string) {
	return addressText(g.Owner), addressText(g.Wallet)
}
