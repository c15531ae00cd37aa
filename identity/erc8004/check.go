package erc8004

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// A SettingError is a chain setting that cannot work, as the chain itself shows.
// Its text repeats nothing that an endpoint sent, nor where that is.
type SettingError struct {
	Chain  uint64
	Detail string
}

func (e *SettingError) Error() string { return fmt.Sprintf("chain %d: %s", e.Chain, e.Detail) }

// Check asks the configured chains whether their settings can work: that each
// endpoint which answers serves the chain, that there is an ERC-721 contract at
// each registry's address, and that the reputation registry points back at it.
// All faults are joined: a *[SettingError], or ErrUnavailable where nobody answers.
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

// A State is how a chain is served. Err is nil when it is; a *[SettingError]; or
// ErrUnavailable when no endpoint answered the last time one was asked.
type State struct {
	Chain uint64
	Err   error
}

// States are those of the configured chains, in order of their ids.
func (r *Reader) States() []State {
	var all []State
	for id, c := range r.chains {
		c.mu.Lock()
		err := c.setting
		if err == nil && c.failed {
			err = ErrUnavailable
		}
		c.mu.Unlock()
		all = append(all, State{id, err})
	}
	slices.SortFunc(all, func(a, b State) int { return int(a.Chain) - int(b.Chain) })
	return all
}

// watch repeats Check: every hour, and every minute while something is wrong.
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

// check is Check of one chain. It keeps what is wrong with the setting until a
// check that finds it right.
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

// checkEndpoints refuses an endpoint of another chain, also where another
// endpoint would do. One that does not answer is left to checkRegistry.
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

// ranCode reports whether the error of a call is what a contract's code did, and
// not that the endpoint could not run it. Some endpoints send no data with a revert.
func ranCode(err error) bool {
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
		v, _, err := c.look(ctx, e, nil)
		if err == nil {
			got, err = e.callAt(ctx, c.ID, v.head, calls)
		}
		for _, a := range got {
			if a.err != nil && !ranCode(a.err) {
				err = errors.Join(err, a.err)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if is, err := result[bool]("supportsInterface", got[0]); err != nil || !is {
		return &SettingError{c.ID, fmt.Sprintf("at %s there is no identity registry: no contract that says it is an ERC-721 token", reg.Identity)}
	}
	if len(got) > 1 {
		back, err := result[common.Address]("getIdentityRegistry", got[1])
		if err != nil {
			return &SettingError{c.ID, fmt.Sprintf("at %s there is no reputation registry", reg.Reputation)}
		}
		if back != reg.Identity {
			return &SettingError{c.ID, fmt.Sprintf("the reputation registry %s belongs to the identity registry %s, not to %s", reg.Reputation, back, reg.Identity)}
		}
	}
	return nil
}
