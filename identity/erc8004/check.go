package erc8004

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Check asks every endpoint-independent question about the configured
// registries: that there is a contract, that it is an ERC-721 token and that the
// reputation registry points back at it. All faults are joined.
func (r *Reader) Check(ctx context.Context) error {
	var faults []error
	for _, c := range r.chains {
		for _, reg := range c.Registries {
			if err := c.check(ctx, reg); err != nil {
				faults = append(faults, fmt.Errorf("chain %d registry %s: %w", c.ID, reg.Identity, err))
			}
		}
	}
	return errors.Join(faults...)
}

func (c *chain) check(ctx context.Context, reg Registry) error {
	calls := []call{{reg.Identity, mustPack("supportsInterface", [4]byte{0x80, 0xac, 0x58, 0xcd}), callGas}}
	if reg.Reputation != (common.Address{}) {
		calls = append(calls, call{reg.Reputation, mustPack("getIdentityRegistry"), callGas})
	}
	var got []answer
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := c.try(ctx, func(ctx context.Context, e *endpoint) error {
		v, _, err := c.look(ctx, e, nil)
		if err == nil {
			got, err = e.callAt(ctx, c.ID, v.head, calls)
		}
		return err
	})
	if err != nil {
		return err
	}
	if is, err := result[bool]("supportsInterface", got[0]); err != nil || !is {
		return errors.Join(errors.New("not an ERC-721 contract"), err)
	}
	if len(got) > 1 {
		if back, err := result[common.Address]("getIdentityRegistry", got[1]); err != nil || back != reg.Identity {
			return errors.Join(fmt.Errorf("reputation registry points at %s", back), err)
		}
	}
	return nil
}
