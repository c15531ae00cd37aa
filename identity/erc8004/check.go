package erc8004

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"stoa/protocol/sorting"
)

// A SettingError is a chain setting that cannot work, as the chain itself shows. Its text contains
// nothing that an endpoint sent, nor the endpoint's address.
type SettingError struct {
	Chain  uint64
	Detail string
}

func (e *SettingError) Error() string { return fmt.Sprintf("chain %d: %s", e.Chain, e.Detail) }

// Check asks the configured chains whether their settings can work: whether each endpoint that
// answers serves the chain, whether there is an ERC-721 contract at each registry's address, and
// whether the reputation registry refers to it. All faults are joined: a *[SettingError], or
// ErrUnavailable when no endpoint answers.
func (r *Reader) Check(ctx context.Context) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var faults []error
	for _, c := range r.chains {
		wg.Go(func() {
			err := c.check(ctx)
			mu.Lock()
			defer mu.Unlock()
			faults = append(faults, err)
		})
	}
	wg.Wait()
	return errors.Join(faults...)
}

// A State is the state of a chain. Err is nil when it can be read; a *[SettingError]; or
// ErrUnavailable when no endpoint, or no quorum of them, gave an answer to the last attempt.
type State struct {
	Chain    uint64
	Err      error
	Head     uint64    // last block that a look at the chain reached; 0 before the first
	HeadAt   time.Time // when that block was made; zero before the first look
	LookedAt time.Time // end of the last good look
	Quorum   int       // how many endpoints must agree
	Differed uint64    // how often endpoints gave different answers
	Bad      []bool    // for each endpoint, in the order of the setting: its last call failed
}

// States returns the states of the configured chains, sorted by id.
func (r *Reader) States() []State {
	var all []State
	for id, c := range r.chains {
		c.mu.Lock()
		err := c.setting
		if err == nil && c.failed {
			err = ErrUnavailable
		}
		s := State{Chain: id, Err: err, Head: uint64(c.view.head.Number), LookedAt: c.lookedAt, Quorum: c.Quorum, Differed: c.differed.Load()}
		for _, e := range c.endpoints {
			s.Bad = append(s.Bad, e.isBad())
		}
		if s.Head > 0 {
			s.HeadAt = time.Unix(int64(c.view.head.Time), 0).UTC()
		}
		c.mu.Unlock()
		all = append(all, s)
	}
	sorting.Stable(all, func(a, b State) int { return int(a.Chain) - int(b.Chain) })
	return all
}

// watch repeats Check: every hour, and every minute while a check fails.
func (r *Reader) watch(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		pause := time.Hour
		if err := r.Check(ctx); err == nil {
			said = ""
		} else if pause = time.Minute; err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			r.log.Error("registry check", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// check is Check for one chain. It keeps a fault of the setting until a check succeeds.
func (c *chain) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := c.checkEndpoints(ctx)
	for _, reg := range c.Registries {
		if err == nil {
			err = c.checkRegistry(ctx, reg)
		}
	}
	wrong, ok := errors.AsType[*SettingError](err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.setting = nil
	} else if ok {
		c.setting = wrong
	}
	return err
}

// checkEndpoints refuses an endpoint of another chain, even if another endpoint works. Endpoints
// that do not answer are left to checkRegistry.
func (c *chain) checkEndpoints(ctx context.Context) error {
	for i, e := range c.endpoints {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := e.batch(attempt, c.ID, nil)
		cancel()
		if errors.Is(err, errWrongChain) {
			e.report(c.now(), err)
			return &SettingError{c.ID, fmt.Sprintf("endpoint %d serves another chain", i+1)}
		}
	}
	return nil
}

// revertedByCode reports whether the error of a call was caused by the contract's code, and not by the
// endpoint failing to run it. Some endpoints send no data with a revert.
func revertedByCode(err error) bool {
	s := strings.ToLower(err.Error())
	return strings.Contains(s, "revert") || strings.Contains(s, "opcode") || strings.Contains(s, "jump") || strings.Contains(s, "out of gas")
}

func (c *chain) checkRegistry(ctx context.Context, reg Registry) error {
	calls := []call{{reg.Identity, mustPack("supportsInterface", [4]byte{0x80, 0xac, 0x58, 0xcd}), callGas}}
	if reg.Reputation != (common.Address{}) {
		calls = append(calls, call{reg.Reputation, mustPack("getIdentityRegistry"), callGas})
	}
	var got []answer
	err := c.try(ctx, func(ctx context.Context, e *endpoint) error {
		v, _, err := c.readBlocks(ctx, e, nil)
		if err == nil {
			got, err = e.callAt(ctx, c.ID, v.head, calls)
		}
		for _, a := range got {
			if a.err != nil && !revertedByCode(a.err) {
				err = errors.Join(err, a.err)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if is, err := result[bool]("supportsInterface", got[0]); err != nil || !is {
		return &SettingError{c.ID, fmt.Sprintf("there is no identity registry at %s: no contract that reports to be an ERC-721 token", reg.Identity)}
	}
	if len(got) > 1 {
		back, err := result[common.Address]("getIdentityRegistry", got[1])
		if err != nil {
			return &SettingError{c.ID, fmt.Sprintf("there is no reputation registry at %s", reg.Reputation)}
		}
		if back != reg.Identity {
			return &SettingError{c.ID, fmt.Sprintf("the reputation registry %s belongs to the identity registry %s, not to %s", reg.Reputation, back, reg.Identity)}
		}
	}
	return nil
}
