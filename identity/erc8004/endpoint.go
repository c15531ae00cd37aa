package erc8004

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"stoa/protocol/trace"
)

// Deadlines and pauses of calls.
const (
	attemptTimeout = 2500 * time.Millisecond // one endpoint
	readTimeout    = 5 * time.Second         // all endpoints together
	breakAfter     = 5                       // failures in a row
	breakFor       = 30 * time.Second
	wrongChainFor  = time.Hour
)

var (
	errNoContract   = errors.New("no contract at the address")
	errUnknownBlock = errors.New("block is unknown or not canonical")
	errHashRefused  = errors.New("endpoint takes no block hash (EIP-1898)")
	errWrongChain   = errors.New("endpoint serves another chain")
	errStuck        = errors.New("head is too old")
	errBehind       = errors.New("endpoint is behind")
)

// An endpoint is one JSON-RPC address with its circuit breaker.
type endpoint struct {
	name   string // host for the log; the path often holds a secret
	client *rpc.Client

	mu       sync.Mutex // guards the fields below
	failures int
	closedTo time.Time // no calls before, unless there is no other endpoint
	pausedTo time.Time // no calls before: it asked for that
	byNumber bool      // it has returned errHashRefused
	bad      bool      // the last call failed
}

// open reports whether the breaker allows a call, and whether the endpoint asked for a pause.
func (e *endpoint) open(now time.Time) (ok, paused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !now.Before(e.closedTo), now.Before(e.pausedTo)
}

func (e *endpoint) isBad() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bad
}

func (e *endpoint) report(now time.Time, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bad = err != nil
	switch wait := pauseOf(err); {
	case err == nil:
		e.failures = 0
	case wait > 0:
		e.pausedTo = now.Add(wait)
	case errors.Is(err, errWrongChain):
		e.closedTo = now.Add(wrongChainFor)
	default:
		if e.failures++; e.failures >= breakAfter {
			e.failures, e.closedTo = 0, now.Add(breakFor)
		}
	}
}

// batch sends eth_chainId and the elements in one request, so that an endpoint that now serves
// another chain is noticed at once. It returns an error when any answer is missing; errors of the
// elements are left to the caller.
func (e *endpoint) batch(ctx context.Context, chain uint64, elems []rpc.BatchElem) error {
	ctx, span := trace.Start(ctx, "chain", trace.Client)
	err := e.callAll(ctx, chain, elems)
	if span != nil {
		span.Set(trace.Number("stoa.chain", chain), trace.Text("server.address", e.name), trace.Number("stoa.chain.calls", len(elems)))
		if err != nil {
			span.Fail()
		}
		span.End()
	}
	return err
}

func (e *endpoint) callAll(ctx context.Context, chain uint64, elems []rpc.BatchElem) error {
	var id hexutil.Uint64
	all := append([]rpc.BatchElem{{Method: "eth_chainId", Result: &id}}, elems...)
	// A provider that refuses the whole batch sends one error object; the elements then carry no
	// error.
	if err := e.client.BatchCallContext(ctx, all); err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the address, whose path often holds a secret
		}
		return err
	}
	if err := all[0].Error; err != nil {
		return fmt.Errorf("eth_chainId: %w", err)
	}
	if uint64(id) != chain {
		return fmt.Errorf("%w: %d", errWrongChain, id)
	}
	for i := range elems {
		elems[i].Error = all[i+1].Error
		if errors.Is(elems[i].Error, rpc.ErrMissingBatchResponse) {
			return elems[i].Error
		}
	}
	return nil
}

// A header is the part of eth_getBlockByNumber that is used.
type header struct {
	Number hexutil.Uint64 `json:"number"`
	Hash   common.Hash    `json:"hash"`
	Time   hexutil.Uint64 `json:"timestamp"`
}

func (h header) age(now time.Time) time.Duration { return now.Sub(time.Unix(int64(h.Time), 0)) }

// mark is the text by which headers are compared; its hash covers the others.
func (h header) mark() string { return fmt.Sprint(h.Number, h.Hash) }

func headerElem(block string, into **header) rpc.BatchElem {
	return rpc.BatchElem{Method: "eth_getBlockByNumber", Args: []any{block, false}, Result: into}
}

// headers reads the headers at those heights; errBehind where one is above the endpoint's head.
func (e *endpoint) headers(ctx context.Context, chain uint64, numbers []hexutil.Uint64) ([]header, error) {
	found := make([]*header, len(numbers))
	elems := make([]rpc.BatchElem, len(numbers))
	for i, n := range numbers {
		elems[i] = headerElem(n.String(), &found[i])
	}
	if err := e.batch(ctx, chain, elems); err != nil {
		return nil, err
	}
	all := make([]header, len(numbers))
	for i, h := range found {
		switch {
		case elems[i].Error != nil:
			return nil, fmt.Errorf("eth_getBlockByNumber %d: %w", numbers[i], elems[i].Error)
		case h == nil:
			return nil, errBehind
		}
		all[i] = *h
	}
	return all, nil
}

// A call is one eth_call; gas bounds the cost and the size of a hostile contract's answer.
type call struct {
	to   common.Address
	data []byte
	gas  uint64
}

// An answer of a call: output, or the data of a revert.
type answer struct {
	out    []byte
	revert []byte
	err    error // any other error of this call
}

// callAt runs the calls against the state of one block. The block is named by hash and must be
// canonical: by default geth also answers from orphaned blocks. An endpoint that accepts no hash
// is asked by number, and then whether that number still has the hash.
func (e *endpoint) callAt(ctx context.Context, chain uint64, at header, calls []call) ([]answer, error) {
	e.mu.Lock()
	byNumber := e.byNumber
	e.mu.Unlock()
	if !byNumber {
		out, err := e.calls(ctx, chain, map[string]any{"blockHash": at.Hash, "requireCanonical": true}, calls)
		if !errors.Is(err, errHashRefused) {
			return out, err
		}
		e.mu.Lock()
		e.byNumber = true
		e.mu.Unlock()
	}
	out, err := e.calls(ctx, chain, at.Number.String(), calls)
	if err != nil {
		return nil, err
	}
	var again *header
	check := []rpc.BatchElem{headerElem(at.Number.String(), &again)}
	if err := e.batch(ctx, chain, check); err != nil {
		return nil, err
	}
	if check[0].Error != nil || again == nil || again.Hash != at.Hash {
		return nil, errUnknownBlock
	}
	return out, nil
}

func (e *endpoint) calls(ctx context.Context, chain uint64, block any, calls []call) ([]answer, error) {
	outs := make([]hexutil.Bytes, len(calls))
	elems := make([]rpc.BatchElem, len(calls))
	for i, c := range calls {
		elems[i] = rpc.BatchElem{Method: "eth_call", Result: &outs[i], Args: []any{
			map[string]any{"to": c.to, "data": hexutil.Bytes(c.data), "gas": hexutil.Uint64(c.gas)}, block}}
	}
	if err := e.batch(ctx, chain, elems); err != nil {
		return nil, err
	}
	answers := make([]answer, len(calls))
	for i, el := range elems {
		switch revert, err := revertData(el.Error), el.Error; {
		case err == nil:
			answers[i].out = outs[i]
		case revert != nil:
			answers[i].revert = revert
		case unknownBlock(err):
			return nil, errUnknownBlock
		case block != nil && errorCode(err) == -32602:
			return nil, errHashRefused
		default:
			answers[i].err = err
		}
	}
	return answers, nil
}

// revertData is the data of a revert, nil for every other error.
func revertData(err error) []byte {
	var d rpc.DataError
	if !errors.As(err, &d) {
		return nil
	}
	s, _ := d.ErrorData().(string)
	b, err := hexutil.Decode(s)
	if err != nil {
		return nil
	}
	return b
}

func errorCode(err error) int {
	var e rpc.Error
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return 0
}

// unknownBlock recognises geth 1.17's "header for hash not found" and "hash is not currently
// canonical", anvil 1.7's -32001, and what nodes return for a block whose state they no longer
// have: geth keeps that of 128 blocks.
func unknownBlock(err error) bool {
	if errorCode(err) == -32001 {
		return true
	}
	s := strings.ToLower(err.Error())
	for _, text := range []string{
		"not currently canonical", "header for hash not found", "block not found",
		"historical state", "missing trie node", "pruned", "no state available", "state unavailable", "state not available", "state is not available",
	} {
		if strings.Contains(s, text) {
			return true
		}
	}
	return false
}
