package erc8004

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// Run watches the chains until ctx ends: it keeps heads and finality fresh, evicts cached agents
// when their events arrive, and repeats [Reader.Check] every hour. A chain without lookups for 15
// minutes is not polled. Without Run the Reader still works; it then reads more and caches for a
// minute only.
func (r *Reader) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, c := range r.chains {
		wg.Go(func() { c.run(ctx) })
	}
	wg.Go(func() { r.watch(ctx) })
	wg.Wait()
	return ctx.Err()
}

// every calls f at once and then after each pause until ctx ends.
func every(ctx context.Context, pause time.Duration, f func()) {
	t := time.NewTicker(pause)
	defer t.Stop()
	for ctx.Err() == nil {
		f()
		select {
		case <-ctx.Done():
		case <-t.C:
		}
	}
}

const pollIdle = 15 * time.Minute

func (c *chain) run(ctx context.Context) {
	defer c.forget()
	c.lastUse.Store(c.now().UnixNano())
	failed := 0
	every(ctx, c.Poll, func() {
		if c.now().Sub(time.Unix(0, c.lastUse.Load())) > pollIdle {
			c.forget()
			return
		}
		if err := c.poll(ctx); err == nil {
			failed = 0
		} else if failed++; failed == 3 {
			// Start again: the chain may have become shorter.
			c.forget()
		}
	})
}

// maxWindow bounds, in slices, how many blocks of events one look may catch up.
const maxWindow = 100

// poll looks at the head once and reads the events since the last look. Only one poll runs at a
// time, so that the view never goes back.
func (c *chain) poll(ctx context.Context) error {
	c.polling.Lock()
	defer c.polling.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	c.mu.Lock()
	last, settled, covered := c.view.head, c.view.final, c.covered
	c.mu.Unlock()
	p := c.panel()
	p.hedge = 0 // nobody waits
	var prev *header
	if covered {
		prev = &last
	}
	v, there, err := c.look(ctx, p, prev)
	if err != nil {
		return err
	}
	from, reset := v.final+1, true
	switch {
	case covered && there.Hash == last.Hash:
		from, reset = uint64(last.Number)+1, false
	case settled > 0 && v.final > settled && v.final-settled <= 4*c.LogRange:
		from = settled + 1 // what became final since the last look may not be what that look saw
	}
	if covered && reset {
		c.log.Warn("chain reorganised", "chain", c.ID, "block", uint64(last.Number))
	}
	logs, err := agree(ctx, p, func(ctx context.Context, e *endpoint) ([]logEntry, error) {
		return c.logs(ctx, e, from, v.head, c.allLogs())
	}, markOf)
	if err != nil {
		return err
	}
	c.advance(v, logs, reset)
	c.reportChanged(logs, reset, from-1)
	return nil
}

// markOf is the text by which events are compared.
func markOf(logs []logEntry) string {
	lines := make([]string, len(logs))
	for i, l := range logs {
		lines[i] = fmt.Sprint(uint64(l.Block), l.Address, l.Topics)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// staleAfter is the age at which a view is not enough for a refusal.
const staleAfter = time.Second

// freshen polls at once when the view is older than a second, and reports whether the view is
// newer now. A key that was just registered is then found without waiting for the next poll, at
// the cost of at most one look a second, however many strangers are refused.
func (c *chain) freshen(ctx context.Context) bool {
	stale := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.covered && c.now().Sub(c.lookedAt) >= min(staleAfter, c.Poll)
	}
	if !stale() || c.budget.take(c.now(), asker{class: known}) != nil {
		return false
	}
	done := c.fresh.DoChan("", func() (any, error) {
		return nil, c.poll(context.WithoutCancel(ctx))
	})
	select {
	case <-ctx.Done():
		return false
	case res := <-done:
		return res.Err == nil
	}
}

// A logEntry is one event. It always has a first topic and an agent, unless it is Upgraded.
type logEntry struct {
	Address common.Address `json:"address"`
	Topics  []common.Hash  `json:"topics"`
	Block   hexutil.Uint64 `json:"blockNumber"`
}

func (l logEntry) agent() *big.Int {
	if l.Topics[0] == topicTransfer {
		return l.Topics[3].Big()
	}
	return l.Topics[1].Big()
}

// authority reports whether the event changes who is authorised for the agent.
func (l logEntry) authority() bool {
	if l.Topics[0] == topicMetadataSet {
		for _, k := range authorityKeys {
			if l.Topics[2] == k {
				return true
			}
		}
		return false
	}
	return l.Topics[0] == topicTransfer
}

func (l logEntry) wellFormed(c *chain) bool {
	if len(l.Topics) == 0 || !c.allowed(l.Address) {
		return false
	}
	switch l.Topics[0] {
	case topicTransfer:
		return len(l.Topics) == 4
	case topicMetadataSet:
		return len(l.Topics) == 3
	case topicRegistered, topicURIUpdated:
		return len(l.Topics) >= 2
	}
	return l.Topics[0] == topicUpgraded
}

// A logFilter is the address and topics of eth_getLogs.
type logFilter map[string]any

func (c *chain) allLogs() []logFilter {
	var at []common.Address
	for _, r := range c.Registries {
		at = append(at, r.Identity)
	}
	return []logFilter{{"address": at, "topics": []any{[]common.Hash{
		topicTransfer, topicMetadataSet, topicURIUpdated, topicRegistered, topicUpgraded}}}}
}

// agentLogs returns the filters for changes of authority of one agent.
func agentLogs(id ID) []logFilter {
	agent := common.BigToHash(id.AgentID)
	return []logFilter{
		{"address": id.Registry, "topics": []any{topicTransfer, nil, nil, agent}},
		{"address": id.Registry, "topics": []any{topicMetadataSet, agent, authorityKeys}},
	}
}

// logs reads the events of the blocks from..head, in slices, from an endpoint that has that head: one that is behind would leave out
// the last of them. Providers allow 500 to 10,000 blocks and say so in many ways, so any error that
// mentions a range or a limit halves the slice permanently.
func (c *chain) logs(ctx context.Context, e *endpoint, from uint64, head header, filters []logFilter) ([]logEntry, error) {
	var all []logEntry
	to := uint64(head.Number)
	if to >= from && to-from >= maxWindow*c.LogRange {
		return nil, fmt.Errorf("%d blocks of events to catch up", to-from+1)
	}
	for from <= to {
		step := c.logRange.Load()
		end := min(to, from+step-1)
		outs := make([][]logEntry, len(filters))
		var there *header
		elems := []rpc.BatchElem{headerElem(head.Number.String(), &there)}
		for i, f := range filters {
			q := logFilter{"fromBlock": hexutil.Uint64(from), "toBlock": hexutil.Uint64(end)}
			for k, v := range f {
				q[k] = v
			}
			elems = append(elems, rpc.BatchElem{Method: "eth_getLogs", Args: []any{q}, Result: &outs[i]})
		}
		err := e.batch(ctx, c.ID, elems)
		for _, el := range elems {
			err = errors.Join(err, el.Error)
		}
		switch {
		case err != nil && step > 50 && refusedRange(err):
			c.logRange.Store(max(50, step/2))
			continue
		case err != nil:
			return nil, fmt.Errorf("eth_getLogs: %w", err)
		case there == nil || there.Hash != head.Hash:
			return nil, errUnknownBlock
		}
		for _, out := range outs {
			for _, l := range out {
				if !l.wellFormed(c) {
					return nil, fmt.Errorf("eth_getLogs: unexpected event")
				}
				all = append(all, l)
			}
		}
		from = end + 1
	}
	return all, nil
}
