package erc8004

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// A Snapshot is the registry's data about one agent at one block.
type Snapshot struct {
	ID        ID
	Block     uint64
	BlockHash common.Hash
	Owner     common.Address
	Wallet    common.Address // agentWallet; zero for none
	URI       string         // agentURI, untrusted
	Keys      []byte         // metadata agentKeys, unchecked
	Binding   []byte         // metadata agent-binding (ERC-8217)
	ReadAt    time.Time
}

// callGas bounds one eth_call: enough for 20 KB of metadata, and the answer stays in the tens of
// kilobytes.
const callGas = 3_000_000

// snapshot reads the agent at one block; nil when the registry has no such agent.
func (c *chain) snapshot(ctx context.Context, p *panel, id ID, at header) (*Snapshot, error) {
	return agree(ctx, p, func(ctx context.Context, e *endpoint) (*Snapshot, error) {
		s, err := e.snapshot(ctx, id, at)
		if errors.Is(err, ErrNotRegistered) {
			return nil, nil
		}
		return s, err
	}, func(s *Snapshot) string {
		if s == nil {
			return ""
		}
		return fmt.Sprintf("%x %x %q %x %x", s.Owner, s.Wallet, s.URI, s.Keys, s.Binding)
	})
}

// snapshot reads the agent at one block, or returns ErrNotRegistered.
func (e *endpoint) snapshot(ctx context.Context, id ID, at header) (*Snapshot, error) {
	data := [][]byte{
		mustPack("ownerOf", id.AgentID),
		mustPack("tokenURI", id.AgentID),
		mustPack("getAgentWallet", id.AgentID),
		mustPack("getMetadata", id.AgentID, MetadataKeys),
		mustPack("getMetadata", id.AgentID, metadataBinding),
	}
	calls := make([]call, len(data))
	for i, d := range data {
		calls[i] = call{id.Registry, d, callGas}
	}
	got, err := e.callAt(ctx, id.ChainID, at, calls)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(string(got[0].revert), nonexistentToken) {
		return nil, ErrNotRegistered
	}
	s := &Snapshot{ID: id, Block: uint64(at.Number), BlockHash: at.Hash}
	var errs [5]error
	s.Owner, errs[0] = result[common.Address]("ownerOf", got[0])
	s.URI, errs[1] = result[string]("tokenURI", got[1])
	s.Wallet, errs[2] = result[common.Address]("getAgentWallet", got[2])
	s.Keys, errs[3] = result[[]byte]("getMetadata", got[3])
	s.Binding, errs[4] = result[[]byte]("getMetadata", got[4])
	// Texts that are too long for the gas limit are the agent's fault, so they must not count
	// against the endpoint. Without a URI or a record the agent only has less; a binding that
	// cannot be read still binds.
	for _, i := range []int{1, 3, 4} {
		if errors.Is(errs[i], errGas) {
			errs[i] = nil
			if i == 4 {
				s.Binding = []byte("too long")
			}
		}
	}
	return s, errors.Join(errs[:]...)
}

var errGas = errors.New("out of gas")

func result[T any](method string, a answer) (T, error) {
	var zero T
	switch {
	case a.err != nil && strings.Contains(a.err.Error(), "out of gas"):
		return zero, errGas
	case a.err != nil:
		return zero, fmt.Errorf("%s: %w", method, a.err)
	case a.revert != nil:
		return zero, fmt.Errorf("%s: reverted with %x", method, a.revert[:min(4, len(a.revert))])
	}
	v, err := unpackOne[T](method, a.out)
	if err != nil {
		return zero, fmt.Errorf("%s: %w", method, err)
	}
	return v, nil
}

// changes collects the changes of authority of one agent in the blocks from..to.
func (c *chain) changes(ctx context.Context, e *endpoint, id ID, from uint64, to header) (change, error) {
	var ch change
	logs, err := c.logs(ctx, e, from, to, agentLogs(id))
	for _, l := range logs {
		if l.Address == id.Registry && l.agent().Cmp(id.AgentID) == 0 && l.authority() {
			ch.add(uint64(l.Block), true, 0)
		}
	}
	return ch, err
}

// magic1271 is a positive answer of isValidSignature (ERC-1271), padded to a word.
var magic1271 = new(big.Int).Lsh(big.NewInt(0x1626ba7e), 224)

// A verdict is the answer of a contract about a signature.
type verdict int

const (
	refused verdict = iota
	accepted
	noCode // an ordinary account: it will not answer later either
	unsure // the node could not run the code
)

// gas1271 bounds the code of a stranger's wallet.
const gas1271 = 300_000

// ask asks a contract account about a signature at one block (ERC-1271). Only a single word with
// the magic value is a yes.
func (e *endpoint) ask(ctx context.Context, chain uint64, at header, who common.Address, digest common.Hash, sig []byte) (verdict, error) {
	got, err := e.callAt(ctx, chain, at, []call{{who, mustPack("isValidSignature", digest, sig), gas1271}})
	if err != nil {
		return refused, err
	}
	a := got[0]
	switch {
	case a.revert != nil:
		return refused, nil
	case a.err != nil:
		// Failures of the contract (out of gas, invalid jump, ...) and failures of the node look
		// alike. Neither may trip the endpoint's breaker, since anyone can deploy such code.
		if strings.Contains(a.err.Error(), "gas") {
			return refused, nil
		}
		return unsure, nil
	case len(a.out) == 0:
		return noCode, nil
	case len(a.out) == 32 && new(big.Int).SetBytes(a.out).Cmp(magic1271) == 0:
		return accepted, nil
	}
	return refused, nil
}
