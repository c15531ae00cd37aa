package erc8004

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/rpc"
)

// Prove returns what a registry holds about an agent in the state of a block that an earlier answer of this Reader named, and
// the proof of it. Without a proof the error is ErrNoStateProof, with a View if the endpoint answered from that state, and otherwise
// one of those of [Reader.Snapshot]. It costs two requests, which are counted as those of a read are.
func (r *Reader) Prove(ctx context.Context, id ID, block uint64, blockHash string) (View, *StateProof, error) {
	hash := common.HexToHash(blockHash)
	c, err := r.chainOf(id)
	if err != nil {
		return View{}, nil, err
	}
	if err := r.pay(ctx, c, id.String(), false); err != nil {
		return View{}, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var v View
	var proof *StateProof
	at := header{Number: hexutil.Uint64(block), Hash: hash}
	err = c.try(ctx, func(ctx context.Context, e *endpoint) error {
		v, proof = View{}, nil
		snap, err := e.snapshot(ctx, id, at)
		if errors.Is(err, errUnknownBlock) || errors.Is(err, ErrNotRegistered) {
			return nil // not the fault of the endpoint: it keeps the state of some blocks only
		}
		if err != nil {
			return err
		}
		v = View{Block: block, BlockHash: hash, Owner: snap.Owner, Wallet: snap.Wallet, Record: snap.Keys, Bound: len(snap.Binding) > 0}
		if len(v.Record) > MaxRecordBytes {
			v.Record = nil
		}
		proof, err = e.prove(ctx, id, at, v)
		return err
	})
	if err == nil && proof == nil {
		err = ErrNoStateProof
	}
	return v, proof, err
}

// prove asks for the proof of a view; nil when the endpoint gives none that shows it.
func (e *endpoint) prove(ctx context.Context, id ID, at header, want View) (*StateProof, error) {
	type answer struct {
		AccountProof []hexutil.Bytes `json:"accountProof"`
		StorageProof []struct {
			Proof []hexutil.Bytes `json:"proof"`
		} `json:"storageProof"`
	}
	var fields map[string]any
	answers := make([]answer, len(layouts))
	elems := []rpc.BatchElem{{Method: "eth_getBlockByHash", Args: []any{at.Hash, false}, Result: &fields}}
	for i, l := range layouts {
		elems = append(elems, rpc.BatchElem{Method: "eth_getProof", Result: &answers[i],
			Args: []any{id.Registry, l.slots(id.AgentID, len(want.Record)), map[string]any{"blockHash": at.Hash}}})
	}
	if err := e.batch(ctx, id.ChainID, elems); err != nil {
		return nil, err
	}
	head, err := encodeHeader(fields)
	if elems[0].Error != nil || err != nil || crypto.Keccak256Hash(head) != at.Hash {
		return nil, definite(elems[0].Error)
	}
	for i, a := range answers {
		if err := elems[i+1].Error; err != nil {
			if err := definite(err); err != nil {
				return nil, err
			}
			continue
		}
		p := &StateProof{Layout: layouts[i].name, Header: head}
		seen := map[string]bool{}
		lists := [][]hexutil.Bytes{a.AccountProof}
		for _, s := range a.StorageProof {
			lists = append(lists, s.Proof)
		}
		for _, n := range slices.Concat(lists...) {
			if !seen[string(n)] {
				seen[string(n)] = true
				p.Nodes = append(p.Nodes, n)
			}
		}
		if got, err := p.Open(id); err == nil && got.same(want) {
			return p, nil
		}
	}
	return nil, nil
}

// definite is nil for the error of an endpoint that will never give the answer: it does not know the method, or has no state of the block.
func definite(err error) error {
	if err == nil || errorCode(err) == -32601 || unknownBlock(err) {
		return nil
	}
	return err
}

func (v View) same(o View) bool {
	return v.Block == o.Block && v.BlockHash == o.BlockHash && v.Owner == o.Owner && v.Wallet == o.Wallet && bytes.Equal(v.Record, o.Record) && v.Bound == o.Bound
}

// headerFields are the members of a block in JSON-RPC that make its header, in their order; those after the fifteenth came with later
// upgrades of the protocol, and a header has the first of them without a gap. q marks numbers.
var headerFields = []struct {
	name string
	q    bool
}{
	{"parentHash", false}, {"sha3Uncles", false}, {"miner", false}, {"stateRoot", false}, {"transactionsRoot", false}, {"receiptsRoot", false},
	{"logsBloom", false}, {"difficulty", true}, {"number", true}, {"gasLimit", true}, {"gasUsed", true}, {"timestamp", true}, {"extraData", false},
	{"mixHash", false}, {"nonce", false}, {"baseFeePerGas", true}, {"withdrawalsRoot", false}, {"blobGasUsed", true}, {"excessBlobGas", true},
	{"parentBeaconBlockRoot", false}, {"requestsHash", false},
}

// encodeHeader returns the header of a block as RLP. Whether it is the right one, its hash shows.
func encodeHeader(fields map[string]any) ([]byte, error) {
	var items [][]byte
	for _, f := range headerFields {
		text, ok := fields[f.name].(string)
		if !ok {
			break
		}
		if !f.q {
			b, err := hexutil.Decode(text)
			if err != nil {
				return nil, err
			}
			items = append(items, b)
			continue
		}
		n, err := hexutil.DecodeBig(text)
		if err != nil {
			return nil, err
		}
		items = append(items, n.Bytes())
	}
	return rlp.EncodeToBytes(items)
}

// AskNow asks one endpoint of the identity's chain what the registry holds about it now, and for the hash of the block at a height, for
// programs that run once. Owner is zero when the registry has no such agent any more; the hash is zero when there is no such block.
func AskNow(ctx context.Context, address string, id ID, height uint64) (now View, at common.Hash, err error) {
	client, err := rpc.DialOptions(ctx, address, rpc.WithHTTPClient(httpClient(nil)))
	if err != nil {
		return now, at, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	e := &endpoint{client: client}
	var head, there *header
	elems := []rpc.BatchElem{headerElem("latest", &head), headerElem(hexutil.EncodeUint64(height), &there)}
	if err := e.batch(ctx, id.ChainID, elems); err != nil {
		return now, at, err
	}
	if err := errors.Join(elems[0].Error, elems[1].Error); err != nil || head == nil {
		return now, at, errors.Join(ErrUnavailable, err)
	}
	if there != nil {
		at = there.Hash
	}
	now = View{Block: uint64(head.Number), BlockHash: head.Hash}
	snap, err := e.snapshot(ctx, id, *head)
	if errors.Is(err, ErrNotRegistered) {
		return now, at, nil
	}
	if err == nil {
		now.Owner, now.Wallet, now.Record, now.Bound = snap.Owner, snap.Wallet, snap.Keys, len(snap.Binding) > 0
	}
	return now, at, err
}

// AskFeedback asks one endpoint of a chain for the feedback to an agent that a transaction gave by the event with a number in the block, in
// a reputation registry of that chain, for programs that run once. known is false when the endpoint knows no such transaction, and found when
// the transaction failed or has no such event.
func AskFeedback(ctx context.Context, address string, agent ID, registry common.Address, tx string, logIndex uint64) (
	f Feedback, known, found bool, err error,
) {
	client, err := rpc.DialOptions(ctx, address, rpc.WithHTTPClient(httpClient(nil)))
	if err != nil {
		return f, false, false, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var receipt *txReceipt
	elems := []rpc.BatchElem{{Method: "eth_getTransactionReceipt", Args: []any{tx}, Result: &receipt}}
	if err := errors.Join((&endpoint{client: client}).batch(ctx, agent.ChainID, elems), elems[0].Error); err != nil || receipt == nil {
		return f, false, false, err
	}
	for _, l := range receipt.Logs {
		if receipt.Status != 1 || l.Address != registry || len(l.Topics) < 3 || uint64(l.LogIndex) != logIndex {
			continue
		}
		if f, ok := decodeFeedback(l, agent); ok && f.Kind == FeedbackGiven && f.Agent.AgentID.Cmp(agent.AgentID) == 0 {
			return f, true, true, nil
		}
	}
	return f, true, false, nil
}
