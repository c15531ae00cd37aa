package erc8004

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"stoa/protocol/sorting"
)

// A Search says which agents of a registry [Reader.Holdings] looks for.
type Search struct {
	ChainID  uint64
	Registry common.Address
	Account  common.Address
	From     uint64                         // the first block that is searched
	Wallets  bool                           // also the agents whose agentWallet the account is
	Max      int                            // agents that are returned, at most; 0 for 100
	Progress func(block uint64, agents int) // called before each slice of blocks with its last one; may be nil
}

// Holdings are the agents that an account owns, or is the agentWallet of.
type Holdings struct {
	Agents   []ID   // by falling number
	Owned    int    // how many agents the account owns, by the registry's own count; -1 when it has none
	From, To uint64 // the blocks that were searched
	Complete bool   // no agent is missing among those that were asked for
}

// Bounds of a search. A slice begins large, because most providers answer a filter of one account over any number of blocks, and is
// halved for those that refuse it.
const (
	searchSlice   = 1 << 16 // blocks
	searchWait    = time.Second
	searchTries   = 6  // of one slice that is refused for its rate
	searchBatch   = 25 // agents that are checked in one request
	searchDefault = 100
)

// Holdings finds the agents of an account. An ERC-721 registry without enumeration lists nothing, so the events are searched, from the
// head of the chain backwards: those of agents that the account received, and with Wallets all changes of an agentWallet. Each agent
// found is asked of the registry. Without Wallets the search ends at the number of agents that the registry counts for the
// account. It may take minutes, and ends with ctx. Errors are those of [Reader.Snapshot].
func (r *Reader) Holdings(ctx context.Context, s Search) (Holdings, error) {
	c, err := r.chainOf(ID{s.ChainID, s.Registry, new(big.Int)})
	if err != nil {
		return Holdings{}, err
	}
	if s.Max <= 0 {
		s.Max = searchDefault
	}
	found := Holdings{Owned: -1}
	if err = c.try(ctx, func(ctx context.Context, e *endpoint) error {
		v, _, err := c.readBlocks(ctx, e, nil)
		if err != nil {
			return err
		}
		got, err := e.callAt(ctx, c.ID, v.head, []call{{s.Registry, mustPack("balanceOf", s.Account), callGas}})
		if err != nil {
			return err
		}
		found.From, found.To = uint64(v.head.Number)+1, uint64(v.head.Number)
		if n, err := result[*big.Int]("balanceOf", got[0]); err == nil && n.IsInt64() {
			found.Owned = int(n.Int64())
		}
		return nil
	}); err != nil {
		return found, err
	}
	return found, c.search(ctx, s, &found)
}

func (c *chain) search(ctx context.Context, s Search, found *Holdings) error {
	seen, owned := map[string]bool{}, 0
	all := func() bool { return !s.Wallets && owned == found.Owned }
	step, tries, searched := uint64(searchSlice), 0, false
	for to := found.To; !searched && !all() && to >= s.From && len(found.Agents) < s.Max; {
		from := max(s.From, to-min(to, step-1))
		if s.Progress != nil {
			s.Progress(to, len(found.Agents))
		}
		var agents []ID
		var mine int
		err := c.try(ctx, func(ctx context.Context, e *endpoint) error {
			ids, err := c.received(ctx, e, s, from, to)
			if err == nil {
				ids = slices.DeleteFunc(ids, func(id ID) bool { return seen[id.String()] })
				agents, mine, err = c.heldBy(ctx, e, s, ids)
			}
			return err
		})
		var status rpc.HTTPError
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &status) && status.StatusCode == http.StatusTooManyRequests && tries < searchTries:
			tries++
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(searchWait << (tries - 1)):
			}
			continue
		case err != nil && step > 1 && (refusedRange(err) || errors.Is(err, context.DeadlineExceeded)):
			step /= 2
			continue
		case err != nil:
			return fmt.Errorf("search the blocks %d to %d: %w", from, to, err)
		}
		for _, id := range agents {
			seen[id.String()] = true
		}
		found.Agents, owned, tries = append(found.Agents, agents...), owned+mine, 0
		found.From, searched, to = from, from == s.From, from-1
	}
	whole := searched && s.From == 0 && owned >= found.Owned
	found.Complete = (whole || all()) && len(found.Agents) <= s.Max
	found.Agents = found.Agents[:min(len(found.Agents), s.Max)]
	sorting.Stable(found.Agents, func(a, b ID) int { return b.AgentID.Cmp(a.AgentID) })
	return nil
}

// received returns the agents that the account may hold by the events of some blocks; some may be there twice.
func (c *chain) received(ctx context.Context, e *endpoint, s Search, from, to uint64) ([]ID, error) {
	filters := [][]any{{topicTransfer, nil, common.BytesToHash(s.Account[:])}}
	if s.Wallets {
		filters = append(filters, []any{topicMetadataSet, nil, topic("agentWallet")})
	}
	outs := make([][]feedbackLog, len(filters))
	elems := make([]rpc.BatchElem, len(filters))
	for i, topics := range filters {
		elems[i] = rpc.BatchElem{Method: "eth_getLogs", Result: &outs[i], Args: []any{map[string]any{
			"address": s.Registry, "topics": topics, "fromBlock": hexutil.Uint64(from), "toBlock": hexutil.Uint64(to)}}}
	}
	err := e.batch(ctx, c.ID, elems)
	for _, el := range elems {
		err = errors.Join(err, el.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("eth_getLogs: %w", err)
	}
	var ids []ID
	for _, l := range slices.Concat(outs...) {
		event := logEntry{Address: l.Address, Topics: l.Topics, Block: l.Block}
		if n := uint64(l.Block); n < from || n > to || l.Address != s.Registry || !event.wellFormed(c) {
			return nil, errors.New("eth_getLogs: unexpected event")
		}
		if l.Topics[0] == topicMetadataSet && !bytes.Contains(l.Data, s.Account[:]) {
			continue
		}
		ids = append(ids, ID{c.ID, s.Registry, event.agent()})
	}
	return ids, nil
}

// heldBy returns those of the agents, each once, that are the account's at the head, and how many of them it owns.
func (c *chain) heldBy(ctx context.Context, e *endpoint, s Search, ids []ID) (held []ID, owned int, err error) {
	sorting.Stable(ids, func(a, b ID) int { return b.AgentID.Cmp(a.AgentID) })
	ids = slices.CompactFunc(ids, func(a, b ID) bool { return a.AgentID.Cmp(b.AgentID) == 0 })
	for some := range slices.Chunk(ids, searchBatch) {
		v, _, err := c.readBlocks(ctx, e, nil)
		if err != nil {
			return nil, 0, err
		}
		var calls []call
		for _, id := range some {
			calls = append(calls, call{s.Registry, mustPack("ownerOf", id.AgentID), callGas}, call{s.Registry, mustPack("getAgentWallet", id.AgentID), callGas})
		}
		got, err := e.callAt(ctx, c.ID, v.head, calls)
		if err != nil {
			return nil, 0, err
		}
		for i, id := range some {
			owner, err := result[common.Address]("ownerOf", got[2*i])
			if err != nil && got[2*i].revert == nil {
				return nil, 0, err
			}
			wallet, _ := result[common.Address]("getAgentWallet", got[2*i+1])
			if owner == s.Account {
				owned++
			}
			if owner == s.Account || s.Wallets && wallet == s.Account {
				held = append(held, id)
			}
		}
	}
	return held, owned, nil
}
