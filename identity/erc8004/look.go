package erc8004

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"stoa/protocol/sorting"
)

// An EndpointState is what an endpoint answers now.
type EndpointState struct {
	Chain uint64
	Host  string    // the path often holds a secret
	Head  uint64    // its newest block; 0 when it gave none
	At    time.Time // when that was made
	Wrong bool      // it serves another chain
	Stuck bool      // its newest block is too old
	Err   error     // nil, or why it gave no block; its text may repeat what the endpoint sent
}

// Look asks every endpoint of every chain for its newest block, by chain and in the order of the setting.
func (r *Reader) Look(ctx context.Context) []EndpointState {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var wg sync.WaitGroup
	var all []*EndpointState
	for id, c := range r.chains {
		for _, e := range c.endpoints {
			s := &EndpointState{Chain: id, Host: e.name}
			all = append(all, s)
			wg.Go(func() { s.look(ctx, c, e) })
		}
	}
	wg.Wait()
	sorting.Stable(all, func(a, b *EndpointState) int { return int(a.Chain) - int(b.Chain) })
	states := make([]EndpointState, len(all))
	for i, s := range all {
		states[i] = *s
	}
	return states
}

func (s *EndpointState) look(ctx context.Context, c *chain, e *endpoint) {
	var head *header
	elems := []rpc.BatchElem{headerElem("latest", &head)}
	s.Err = e.batch(ctx, c.ID, elems)
	s.Wrong = errors.Is(s.Err, errWrongChain)
	if s.Err == nil {
		s.Err = elems[0].Error
	}
	if s.Err == nil && head == nil {
		s.Err = ErrUnavailable
	}
	if s.Err != nil {
		return
	}
	s.Head, s.At = uint64(head.Number), time.Unix(int64(head.Time), 0).UTC()
	s.Stuck = head.age(c.now()) > c.MaxHeadAge
}
