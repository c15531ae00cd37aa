package pow

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// maxWork bounds the work that SolveParallel accepts: expected iterations, 64 times the top of the
// Ladder. A challenge may come from a stranger.
const maxWork = 1 << 29

// ErrTooHard is returned for a challenge that is harder than any honest node's.
var ErrTooHard = errors.New("proof of work out of proportion")

// SolveParallel is Solve on several cores: each worker tries every workers-th counter. The counter
// that it returns need not be the lowest solution. The error wraps ErrShape, ErrTooHard or the
// reason why ctx ended.
func SolveParallel(ctx context.Context, c Challenge, workers int) (Solution, error) {
	p := c.Parameters
	switch {
	case p.Algorithm != Algorithm:
		return Solution{}, fmt.Errorf("%w: algorithm %.40q", ErrShape, p.Algorithm)
	case p.Cost < 1 || p.KeyLength < 16 || p.KeyLength > 64 || len(p.Nonce) > 128 || len(p.Salt) > 128:
		return Solution{}, fmt.Errorf("%w: parameters", ErrShape)
	case len(p.KeyPrefix) > 7 || p.Cost > maxWork>>(4*len(p.KeyPrefix)):
		return Solution{}, fmt.Errorf("%w: cost %d, prefix %.20q", ErrTooHard, p.Cost, p.KeyPrefix)
	}
	workers = max(1, workers)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		wg    sync.WaitGroup
		once  sync.Once
		found atomic.Pointer[Answer]
		fault error // written once, read after wg.Wait
	)
	for w := range workers {
		wg.Go(func() {
			for n := uint64(w); n < 1<<32 && ctx.Err() == nil; n += uint64(workers) {
				key, err := p.derive(uint32(n))
				if err != nil {
					once.Do(func() { fault = fmt.Errorf("%w: %v", ErrShape, err) })
					stop()
					return
				}
				if text := hex.EncodeToString(key); strings.HasPrefix(text, p.KeyPrefix) {
					found.CompareAndSwap(nil, &Answer{Counter: uint32(n), DerivedKey: text})
					stop()
					return
				}
			}
		})
	}
	wg.Wait()
	if a := found.Load(); a != nil {
		return Solution{Challenge: Challenge{Parameters: p, Signature: c.Signature}, Solution: *a}, nil
	}
	if fault != nil {
		return Solution{}, fault
	}
	if err := context.Cause(ctx); err != nil {
		return Solution{}, err
	}
	return Solution{}, errors.New("no counter solves this challenge")
}
