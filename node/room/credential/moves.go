package credential

import (
	"context"
	"errors"
	"time"

	"stoa/identity/erc8004"
	"stoa/protocol"
	"stoa/storage"
)

// The last change of the owner of the identities that are known here is kept: by the transfers that the poller saw, and where it did not
// look, by the owner that an enrolment or the thing that an identity began no longer has.

// record stores what looks saw of transfers.
func (w *Enrolments) record(ctx context.Context) {
	w.mu.Lock()
	looks := w.looks
	w.looks = nil
	w.mu.Unlock()
	for i, look := range looks {
		if err := w.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return noteLook(ctx, tx, look) }); err != nil {
			if ctx.Err() == nil {
				w.log.Warn("note transfers of identities", "chain", look.Chain, "err", err)
			}
			w.mu.Lock()
			w.looks = append(looks[i:len(looks):len(looks)], w.looks...)
			w.mu.Unlock()
			return
		}
	}
}

func noteLook(ctx context.Context, tx *storage.Tx, look erc8004.Changes) error {
	if look.All {
		if err := errors.Join(tx.Moves().Forget(ctx, look.Chain, look.After), tx.AgentDocuments().Doubt(ctx, look.Chain)); err != nil {
			return err
		}
	}
	for _, agent := range look.URIs {
		if err := tx.AgentDocuments().Changed(ctx, agent); err != nil {
			return err
		}
	}
	for _, t := range look.Transfers {
		if t.From == "" || t.From == t.To { // made just now, or given to its owner
			continue
		}
		if err := tx.AgentDocuments().Sold(ctx, t.Agent); err != nil {
			return err
		}
		known, err := tx.Moves().Knows(ctx, t.Agent)
		if err == nil && known {
			err = tx.Moves().Note(ctx, storage.IdentityMove{Agent: t.Agent, Owner: t.To, Former: t.From, Block: int64(t.Block), Exact: true})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Holder returns who holds a chain identity as far as this node knows without asking the chain.
func Holder(ctx context.Context, tx *storage.Tx, agent string) (h protocol.Holder, err error) {
	m, err := tx.Moves().Last(ctx, agent)
	if err != nil {
		return h, err
	}
	h = protocol.Holder{Owner: m.Owner, Since: m.At, Exact: m.Exact, Moved: m.Block}
	e, err := tx.Enrolments().ByIdentity(ctx, agent)
	if err != nil || e.Owner == "" {
		return h, storage.IfMissing(err, nil)
	}
	if h.Owner != e.Owner { // the transfer was before this node looked
		h = protocol.Holder{Owner: e.Owner, Since: e.MadeAt}
	}
	h.Current = true
	at, err := tx.Moves().Arrived(ctx, agent, e.Owner)
	if !h.Exact && !at.IsZero() && at.Before(e.MadeAt.Add(-time.Minute)) { // a later one is when the enrolment was found with its reviews
		h.Since, h.Exact = at, true
	}
	return h, err
}
