package erc8004

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
)

// Events of the reputation registry (ERC-8004 "Reputation Registry"). The agent is in topics[1], the
// client in topics[2].
var (
	topicFeedback = topic("NewFeedback(uint256,address,uint64,int128,uint8,string,string,string,string,string,bytes32)")
	topicRevoked  = topic("FeedbackRevoked(uint256,address,uint64)")                         // index in topics[3]
	topicResponse = topic("ResponseAppended(uint256,address,uint64,address,string,bytes32)") // responder in topics[3]
)

// A FeedbackKind says which event of the reputation registry it is.
type FeedbackKind string

const (
	FeedbackGiven     FeedbackKind = "given"
	FeedbackRevoked   FeedbackKind = "revoked"
	FeedbackResponded FeedbackKind = "responded"
	FeedbackMoved     FeedbackKind = "moved" // the agent itself was transferred, by the identity registry
)

// A Feedback is one event of a reputation registry, or a transfer of the agent. Its texts are a stranger's.
type Feedback struct {
	Kind                   FeedbackKind
	Agent                  ID
	Client                 string // address in lower case
	Index                  uint64 // of the client's feedback to the agent, from 1
	Value                  *big.Int
	Decimals               uint8
	Tag1                   string
	URI                    string
	Hash                   [32]byte
	Responder              string // of a response
	Owner                  string // of a transfer to another account: that account
	Block, LogIndex, Place uint64 // Place is that of the transaction in its block
	Tx                     string
	At                     time.Time // of the block
	Source                 int       // the endpoint that it came from
}

// A Mark is a block up to which events were read.
type Mark struct {
	Number uint64
	Hash   string // "" for one that was never read
}

// A FeedbackPage is what one slice of blocks holds.
type FeedbackPage struct {
	Events   []Feedback // in the order of the chain
	Upto     Mark       // events are complete up to it
	Final    uint64     // newest final block
	Replaced bool       // the mark's block has another hash now: what was read after an earlier block is not to be trusted; nothing was read
	Skipped  bool       // the slice is a single block whose events no endpoint's answer could hold
}

// MaxFeedbackAgents is how many agents one call filters for: geth bounds a position of topics.
const MaxFeedbackAgents = 500

// maxFeedbackText bounds the texts of an event that are kept; longer ones make the event useless here.
const maxFeedbackText = 96 << 10

// Feedback reads the next slice of final blocks after a mark, up to the block most unless that is 0, for
// the events of agents of a registry and their transfers, at most MaxFeedbackAgents. It makes two requests, and more while a provider refuses the size of the
// slice, which is then halved. Errors wrap ErrUnavailable or ErrChainNotSupported.
func (r *Reader) Feedback(ctx context.Context, registry ID, agents []*big.Int, after Mark, most uint64) (page FeedbackPage, err error) {
	c, reputation, err := r.reputation(registry)
	if err != nil {
		return page, err
	}
	err = c.try(ctx, func(ctx context.Context, e *endpoint) error {
		page = FeedbackPage{Upto: after}
		v, there, err := c.readBlocks(ctx, e, &header{Number: hexutil.Uint64(after.Number)})
		if err != nil {
			return err
		}
		if page.Final = v.final; there != nil && after.Hash != "" && there.Hash.Hex() != after.Hash {
			page.Replaced = true
			return nil
		}
		if most > 0 {
			v.final = min(v.final, most)
		}
		if v.final <= after.Number {
			return nil
		}
		return c.feedbackSlice(ctx, e, reputation, registry, agents, after.Number+1, v.final, &page)
	})
	return page, err
}

// reputation returns the chain and the reputation registry of an identity registry.
func (r *Reader) reputation(registry ID) (*chain, common.Address, error) {
	c := r.chains[registry.ChainID]
	if c == nil {
		return nil, common.Address{}, fmt.Errorf("%w: %d", ErrChainNotSupported, registry.ChainID)
	}
	for _, reg := range c.Registries {
		if reg.Identity == registry.Registry && reg.Reputation != (common.Address{}) {
			return c, reg.Reputation, nil
		}
	}
	return nil, common.Address{}, fmt.Errorf("%w: %s has no reputation registry here", ErrRegistryNotAllowed, registry.Registry)
}

// Reputations returns the reputation registry of each configured identity registry that has one, both
// as eip155:<chainId>:<address> in lower case.
func (r *Reader) Reputations() map[string]string {
	all := map[string]string{}
	for id, c := range r.chains {
		for _, reg := range c.Registries {
			if reg.Reputation != (common.Address{}) {
				prefix := fmt.Sprintf("eip155:%d:", id)
				all[prefix+strings.ToLower(reg.Identity.Hex())] = prefix + strings.ToLower(reg.Reputation.Hex())
			}
		}
	}
	return all
}

func (c *chain) feedbackSlice(
	ctx context.Context, e *endpoint, at common.Address, registry ID, agents []*big.Int, from, final uint64, page *FeedbackPage,
) error {
	ids := make([]common.Hash, len(agents))
	for i, a := range agents {
		ids[i] = common.BigToHash(a)
	}
	for {
		step := c.feedbackRange.Load()
		end := min(final, from+step-1)
		var logs, moves []feedbackLog
		var last *header
		elems := []rpc.BatchElem{headerElem(hexutil.Uint64(end).String(), &last)}
		if len(ids) > 0 {
			ask := func(address common.Address, result *[]feedbackLog, topics ...any) {
				elems = append(elems, rpc.BatchElem{Method: "eth_getLogs", Result: result, Args: []any{map[string]any{
					"address": address, "topics": topics, "fromBlock": hexutil.Uint64(from), "toBlock": hexutil.Uint64(end)}}})
			}
			ask(at, &logs, []common.Hash{topicFeedback, topicRevoked, topicResponse}, ids)
			ask(registry.Registry, &moves, topicTransfer, nil, nil, ids)
		}
		err := e.batch(ctx, c.ID, elems)
		for _, el := range elems {
			err = errors.Join(err, el.Error)
		}
		switch {
		case err != nil && step > 1 && refusedRange(err):
			c.feedbackRange.Store(step / 2)
			continue
		case err != nil && refusedRange(err):
			page.Skipped = true
			ids = nil // only the block's hash
			continue
		case err != nil:
			if errors.Is(err, context.DeadlineExceeded) { // fewer blocks the next time
				c.feedbackRange.Store(max(1, step/2))
			}
			return fmt.Errorf("eth_getLogs: %w", err)
		case last == nil:
			return errBehind
		}
		if step < c.LogRange {
			c.feedbackRange.Store(min(c.LogRange, step*2))
		}
		for _, l := range logs {
			if n := uint64(l.Block); n < from || n > end || len(l.Topics) < 3 || !slices.Contains(ids, l.Topics[1]) || l.Address != at || l.Removed {
				return errors.New("eth_getLogs: unexpected event")
			}
		}
		for _, l := range moves {
			if n := uint64(l.Block); n < from || n > end || len(l.Topics) != 4 || l.Topics[0] != topicTransfer || !slices.Contains(ids, l.Topics[3]) ||
				l.Address != registry.Registry || l.Removed {
				return errors.New("eth_getLogs: unexpected event")
			}
		}
		if page.Events, err = c.feedbackEvents(ctx, e, registry, append(logs, moves...)); err != nil {
			return err
		}
		for i := range page.Events {
			page.Events[i].Source = c.indexOf(e)
		}
		page.Upto = Mark{end, last.Hash.Hex()}
		return nil
	}
}

func (c *chain) indexOf(e *endpoint) int {
	for i := range c.endpoints {
		if c.endpoints[i] == e {
			return i
		}
	}
	return -1
}

// A feedbackLog is a log of eth_getLogs or of a receipt.
type feedbackLog struct {
	Address  common.Address `json:"address"`
	Topics   []common.Hash  `json:"topics"`
	Data     hexutil.Bytes  `json:"data"`
	Block    hexutil.Uint64 `json:"blockNumber"`
	Hash     common.Hash    `json:"blockHash"`
	Time     hexutil.Uint64 `json:"blockTimestamp"` // geth 1.16 and later
	Tx       common.Hash    `json:"transactionHash"`
	Place    hexutil.Uint64 `json:"transactionIndex"`
	LogIndex hexutil.Uint64 `json:"logIndex"`
	Removed  bool           `json:"removed"`
}

// feedbackEvents decodes logs and finds the times of their blocks. An event that cannot be decoded, or whose texts are too long, is left out.
func (c *chain) feedbackEvents(ctx context.Context, e *endpoint, registry ID, logs []feedbackLog) ([]Feedback, error) {
	var events []Feedback
	times := map[uint64]*header{}
	var elems []rpc.BatchElem
	for _, l := range logs {
		f, ok := decodeFeedback(l, registry)
		if !ok {
			continue
		}
		events = append(events, f)
		if _, asked := times[f.Block]; l.Time == 0 && !asked {
			times[f.Block] = nil
		}
	}
	heads := make([]*header, 0, len(times))
	for n := range times {
		heads = append(heads, nil)
		elems = append(elems, headerElem(hexutil.Uint64(n).String(), nil))
	}
	for i := range elems {
		elems[i].Result = &heads[i]
	}
	for len(elems) > 0 {
		part := elems[:min(100, len(elems))]
		if err := e.batch(ctx, c.ID, part); err != nil {
			return nil, err
		}
		elems = elems[len(part):]
	}
	for _, h := range heads {
		if h == nil {
			return nil, errBehind
		}
		times[uint64(h.Number)] = h
	}
	for i := range events {
		if h := times[events[i].Block]; h != nil {
			events[i].At = time.Unix(int64(h.Time), 0).UTC()
		}
	}
	return events, nil
}

var feedbackABI = mustABI(`[
{"type":"event","name":"NewFeedback","inputs":[{"type":"uint256","indexed":true},{"type":"address","indexed":true},{"type":"uint64","name":"index"},
 {"type":"int128","name":"value"},{"type":"uint8","name":"decimals"},{"type":"string","indexed":true},{"type":"string","name":"tag1"},
 {"type":"string","name":"tag2"},
 {"type":"string","name":"endpoint"},{"type":"string","name":"uri"},{"type":"bytes32","name":"hash"}]},
{"type":"event","name":"ResponseAppended","inputs":[{"type":"uint256","indexed":true},{"type":"address","indexed":true},{"type":"uint64","name":"index"},
 {"type":"address","indexed":true},{"type":"string","name":"uri"},{"type":"bytes32","name":"hash"}]},
{"type":"function","name":"giveFeedback","inputs":[{"type":"uint256"},{"type":"int128"},{"type":"uint8"},{"type":"string"},{"type":"string"},{"type":"string"},
 {"type":"string"},{"type":"bytes32"}]},
{"type":"function","name":"revokeFeedback","inputs":[{"type":"uint256"},{"type":"uint64"}]},
{"type":"function","name":"appendResponse","inputs":[{"type":"uint256"},{"type":"address"},{"type":"uint64"},{"type":"string"},{"type":"bytes32"}]},
{"type":"function","name":"decimals","inputs":[],"outputs":[{"type":"uint8"}]},
{"type":"function","name":"transfer","inputs":[{"type":"address"},{"type":"uint256"}],"outputs":[{"type":"bool"}]}
]`)

func decodeFeedback(l feedbackLog, registry ID) (f Feedback, ok bool) {
	f = Feedback{
		Agent: ID{registry.ChainID, registry.Registry, l.Topics[1].Big()}, Client: strings.ToLower(common.BytesToAddress(l.Topics[2][:]).Hex()),
		Block: uint64(l.Block), LogIndex: uint64(l.LogIndex), Place: uint64(l.Place), Tx: l.Tx.Hex(),
	}
	if l.Time > 0 {
		f.At = time.Unix(int64(l.Time), 0).UTC()
	}
	if len(l.Data) > maxFeedbackText {
		return f, false
	}
	if l.Topics[0] == topicTransfer && len(l.Topics) == 4 {
		f.Kind, f.Agent.AgentID, f.Owner = FeedbackMoved, l.Topics[3].Big(), addressText(common.BytesToAddress(l.Topics[2][:]))
		return f, l.Topics[1] != l.Topics[2] && l.Topics[1] != (common.Hash{}) // not to the same account, nor the first owner
	}
	unpack := func(name string) ([]any, bool) {
		values, err := feedbackABI.Unpack(name, l.Data)
		return values, err == nil
	}
	switch {
	case l.Topics[0] == topicRevoked && len(l.Topics) == 4:
		f.Kind, f.Index = FeedbackRevoked, l.Topics[3].Big().Uint64()
	case l.Topics[0] == topicResponse && len(l.Topics) == 4:
		v, good := unpack("ResponseAppended")
		if !good {
			return f, false
		}
		f.Kind, f.Responder = FeedbackResponded, strings.ToLower(common.BytesToAddress(l.Topics[3][:]).Hex())
		f.Index, f.URI, f.Hash = v[0].(uint64), v[1].(string), v[2].([32]byte)
	case l.Topics[0] == topicFeedback && len(l.Topics) == 4:
		v, good := unpack("NewFeedback")
		if !good {
			return f, false
		}
		f.Kind, f.Index, f.Value, f.Decimals = FeedbackGiven, v[0].(uint64), v[1].(*big.Int), v[2].(uint8)
		f.Tag1, f.URI, f.Hash = v[3].(string), v[6].(string), v[7].([32]byte)
	default:
		return f, false
	}
	return f, true
}

// Confirm reports, for events of one chain, whether an endpoint other than the one that they came from
// has the same event in the receipt of the transaction. With a single endpoint configured nobody else
// can be asked, and all are confirmed.
func (r *Reader) Confirm(ctx context.Context, registry ID, events []Feedback) ([]bool, error) {
	c, at, err := r.reputation(registry)
	if err != nil {
		return nil, err
	}
	same := make([]bool, len(events))
	if len(c.endpoints) == 1 {
		for i := range same {
			same[i] = true
		}
		return same, nil
	}
	groups := map[int][]int{}
	for i, f := range events {
		groups[f.Source] = append(groups[f.Source], i)
	}
	for source, members := range groups {
		var errs []error
		for i, e := range c.endpoints {
			if i == source || len(members) == 0 {
				continue
			}
			for len(members) > 0 {
				part := members[:min(50, len(members))]
				attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
				err := c.confirmPart(attempt, e, at, registry, events, part, same)
				cancel()
				if err != nil {
					errs = append(errs, err)
					break
				}
				members = members[len(part):]
			}
		}
		if len(members) > 0 {
			return nil, fmt.Errorf("%w: no second endpoint: %w", ErrUnavailable, errors.Join(errs...))
		}
	}
	return same, nil
}

func (c *chain) confirmPart(ctx context.Context, e *endpoint, at common.Address, registry ID, events []Feedback, part []int, same []bool) error {
	receipts := make([]*txReceipt, len(part))
	elems := make([]rpc.BatchElem, len(part))
	for i, n := range part {
		elems[i] = rpc.BatchElem{Method: "eth_getTransactionReceipt", Args: []any{events[n].Tx}, Result: &receipts[i]}
	}
	if err := e.batch(ctx, c.ID, elems); err != nil {
		return err
	}
	for i, n := range part {
		if elems[i].Error != nil {
			return elems[i].Error
		}
		if receipts[i] == nil || receipts[i].Status != 1 {
			continue
		}
		for _, l := range receipts[i].Logs {
			if l.Address != at || len(l.Topics) < 3 {
				continue
			}
			f, ok := decodeFeedback(l, registry)
			if ok && sameFeedback(f, events[n]) {
				same[n] = true
			}
		}
	}
	return nil
}

func sameFeedback(a, b Feedback) bool {
	return a.Kind == b.Kind && a.Agent.AgentID.Cmp(b.Agent.AgentID) == 0 && a.Client == b.Client && a.Index == b.Index && a.Value.Cmp(b.Value) == 0 &&
		a.Decimals == b.Decimals && a.Tag1 == b.Tag1 && a.Hash == b.Hash && a.Block == b.Block && a.LogIndex == b.LogIndex
}

// FeedbackHash is the hash that a registry stores of the bytes at feedbackURI.
func FeedbackHash(file []byte) [32]byte { return crypto.Keccak256Hash(file) }

// GiveFeedbackCall returns the data of a call of a reputation registry that gives feedback with the tag
// starred, for a wallet to sign.
func GiveFeedbackCall(agent *big.Int, value int64, decimals uint8, uri string, hash [32]byte) []byte {
	return mustFeedback("giveFeedback", agent, big.NewInt(value), decimals, Starred, "", "", uri, hash)
}

// RevokeFeedbackCall returns the data of a call that revokes feedback of the account that sends it.
func RevokeFeedbackCall(agent *big.Int, index uint64) []byte {
	return mustFeedback("revokeFeedback", agent, index)
}

// AppendResponseCall returns the data of a call that answers feedback.
func AppendResponseCall(agent *big.Int, client common.Address, index uint64, uri string, hash [32]byte) []byte {
	return mustFeedback("appendResponse", agent, client, index, uri, hash)
}

// TransferCall returns the data of a call that pays an amount of an ERC-20 token.
func TransferCall(to common.Address, amount *big.Int) []byte {
	return mustFeedback("transfer", to, amount)
}

// Starred is the tag of feedback that is a rating from 0 to 100.
const Starred = "starred"

func mustFeedback(method string, args ...any) []byte {
	b, err := feedbackABI.Pack(method, args...)
	if err != nil {
		panic(err) // the types are fixed above
	}
	return b
}

// FinalMark returns the newest final block of a chain.
func (r *Reader) FinalMark(ctx context.Context, chainID uint64) (m Mark, err error) {
	c := r.chains[chainID]
	if c == nil {
		return m, fmt.Errorf("%w: %d", ErrChainNotSupported, chainID)
	}
	err = c.try(ctx, func(ctx context.Context, e *endpoint) error {
		v, _, err := c.readBlocks(ctx, e, nil)
		if err != nil {
			return err
		}
		var h *header
		elems := []rpc.BatchElem{headerElem(hexutil.Uint64(v.final).String(), &h)}
		if err := errors.Join(e.batch(ctx, c.ID, elems), elems[0].Error); err != nil {
			return err
		}
		if h == nil {
			return errBehind
		}
		m = Mark{v.final, h.Hash.Hex()}
		return nil
	})
	return m, err
}

// Rating returns value/10^decimals in hundredths of a point, rounded; ok is false outside of 0 to 100.
func Rating(value *big.Int, decimals uint8) (hundredths int64, ok bool) {
	if value == nil || value.Sign() < 0 || decimals > 18 {
		return 0, false
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	if value.Cmp(new(big.Int).Mul(big.NewInt(100), unit)) > 0 {
		return 0, false
	}
	n := new(big.Int).Mul(value, big.NewInt(200))
	n.Add(n, unit).Div(n, unit.Lsh(unit, 1)) // (200·value + unit) / (2·unit)
	return n.Int64(), true
}

// Rated reads the rating that a client gave to an agent, from the receipt of the transaction; found is false when the
// transaction has no such feedback with the tag starred. Errors wrap ErrUnavailable, ErrChainNotSupported or
// ErrRegistryNotAllowed.
func (r *Reader) Rated(ctx context.Context, agent ID, client, tx string, index uint64) (rating int64, found bool, err error) {
	c, at, err := r.reputation(agent)
	if err != nil {
		return 0, false, err
	}
	var errs []error
	for _, e := range c.endpoints {
		var receipt *txReceipt
		elems := []rpc.BatchElem{{Method: "eth_getTransactionReceipt", Args: []any{tx}, Result: &receipt}}
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := errors.Join(e.batch(attempt, c.ID, elems), elems[0].Error)
		cancel()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if receipt == nil { // this endpoint may be behind
			continue
		}
		for _, l := range receipt.Logs {
			if receipt.Status != 1 || l.Address != at || len(l.Topics) < 3 {
				continue
			}
			f, ok := decodeFeedback(l, agent)
			if ok && f.Kind == FeedbackGiven && f.Agent.AgentID.Cmp(agent.AgentID) == 0 && f.Client == client && f.Index == index && f.Tag1 == Starred {
				rating, found = Rating(f.Value, f.Decimals)
				return rating, found, nil
			}
		}
		return 0, false, nil
	}
	if len(errs) > 0 {
		return 0, false, fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(errs...))
	}
	return 0, false, nil
}
