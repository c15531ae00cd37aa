package credential

import (
	"context"
	"errors"
	"math"

	"stoa/identity/erc8004"
	"stoa/storage"
)

// What identities without a profile here began ends with their owner as enrolments do: when the
// poller saw a change, and for all at the start, after a gap and after a reorganisation.

func (w *Enrolments) names(ctx context.Context, registry, after string, limit int) (names []string, err error) {
	err = w.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		names, err = tx.Begun().List(ctx, registry, after, limit)
		return err
	})
	return names, err
}

// walkBegun looks at the next identities of each walk.
func (w *Enrolments) walkBegun(ctx context.Context) {
	w.mu.Lock()
	walks := make(map[string]string, len(w.begun))
	for registry, after := range w.begun {
		walks[registry] = after
	}
	w.mu.Unlock()
	for registry, after := range walks {
		names, err := w.names(ctx, registry, after, enrolmentPage)
		if err != nil {
			w.log.Warn("read what identities began", "err", err)
			continue
		}
		last := ""
		for _, name := range names {
			if agent := storage.AgentOf(name); agent != last {
				last = agent
				w.sold(ctx, agent)
			}
		}
		w.mu.Lock()
		switch at, on := w.begun[registry]; {
		case !on || at != after: // begun again meanwhile
		case len(names) < enrolmentPage:
			delete(w.begun, registry)
		default:
			w.begun[registry] = names[len(names)-1]
		}
		w.mu.Unlock()
	}
}

// sold ends what opens the things that an identity began under owners who no longer have it.
func (w *Enrolments) sold(ctx context.Context, agent string) {
	has := false
	err := w.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		has, err = tx.Begun().Has(ctx, agent)
		return err
	})
	id, unknown := erc8004.ParseID(agent)
	if err == nil && !has || unknown != nil {
		return
	}
	s := storage.Sale{Agent: agent}
	if err == nil {
		s, err = w.chain.owner(ctx, id)
	}
	all := 0
	for err == nil {
		ended, newer := 0, 0
		err = w.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			ended, newer, err = tx.Begun().End(ctx, s)
			if err == nil && ended > 0 && s.Owner != "" {
				err = tx.Moves().Note(ctx, storage.IdentityMove{Agent: agent, Owner: s.Owner, Block: s.Block})
			}
			return err
		})
		if all += ended; ended > 0 {
			continue
		}
		if newer > 0 {
			w.later(agent)
		}
		break
	}
	switch {
	case errors.Is(err, erc8004.ErrRegistryNotAllowed), errors.Is(err, erc8004.ErrChainNotSupported):
	case err != nil:
		w.later(agent)
	case all > 0:
		w.log.Warn("identity has another owner", "identity", agent, "ended", all)
	}
}

// owner asks the chain who has an identity. One that is gone, or that follows another token, has no
// owner.
func (c *Chain) owner(ctx context.Context, id erc8004.ID) (storage.Sale, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s, err := c.Reader.Control(ctx, id)
	if errors.Is(err, erc8004.ErrNotRegistered) || errors.Is(err, erc8004.ErrIdentityBound) {
		return storage.Sale{Agent: id.String(), Block: math.MaxInt64}, nil
	}
	return storage.Sale{Agent: id.String(), Owner: s.Owner, Block: int64(s.Block)}, err
}
