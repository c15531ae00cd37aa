package credential

import (
	"context"
	"errors"
	"strconv"
	"time"

	"stoa/identity/erc8004"
)

// A Progress says how far the registration of an identity is, for who waits for it.
type Progress struct {
	Owner string        // of the token, in lower case; "" while the chain has none
	Named bool          // a record of owner or wallet names the key
	Final bool          // and that cannot be reverted any more, so that the key is valid
	Wait  time.Duration // until that, about; 0 when nothing is known
}

const lagKept = 5 * time.Second // so one who asks often, and many who ask, cause no more reads than that

// Progress returns how far an identity is to which a key shall belong. The reads are counted for the network that asks. Errors are those of
// Grant, without that there is no such identity.
func (c *Chain) Progress(ctx context.Context, network, claimed, keyid string) (p Progress, err error) {
	ctx, id, err := c.asked(ctx, network, claimed)
	if err != nil {
		return p, chainError(err)
	}
	v, err := c.Reader.Overview(ctx, id)
	if errors.Is(err, erc8004.ErrNotRegistered) {
		return p, nil
	}
	if err != nil {
		return p, chainError(err)
	}
	p.Owner, _ = controllers(v.Snapshot)
	for _, k := range v.Record {
		if k.Thumbprint == keyid {
			p.Named, p.Final = true, k.Valid
		}
	}
	if p.Named && !p.Final {
		name, now := strconv.FormatUint(id.ChainID, 10), time.Now()
		lag, kept := c.lags.Get(name, now)
		if !kept {
			if lag, err = c.Reader.Lag(ctx, id.ChainID); err != nil {
				return p, nil // how long it takes is not known
			}
			c.lags.Put(name, lag, 0, now.Add(lagKept))
		}
		p.Wait = lag.Until(v.Block)
	}
	return p, nil
}
