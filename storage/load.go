package storage

import (
	"context"
	"encoding/json"
	"fmt"

	"stoa/protocol"
)

// What fills a database with many things writes them new and whole, and looks
// nothing up.

// LoadPost stores a visible post of this node as it is, with its thread, count and
// resolution, which must be true when the transaction ends.
func (tx *Tx) LoadPost(p *protocol.StoredPost) error {
	if tx.batch == nil {
		return ErrReadOnly
	}
	seq, err := seqOf(p.ID)
	if err != nil {
		return err
	}
	p.State = protocol.Visible
	return tx.holdPost(p, seq)
}

// LoadProfile stores a new profile with its liveness and, for a business, its
// merchant record; nil is none. Nothing is probed. ErrExists when handle or identity are taken. Some
// hundred in one transaction are enough: each moves the clock of the lists.
func (tx *Tx) LoadProfile(ctx context.Context, p *StoredProfile, merchant *protocol.MerchantDraft) error {
	if err := tx.dirty(); err != nil {
		return err
	}
	p.Draft.Listed = nil
	raw, err := json.Marshal(p.Draft)
	if err != nil {
		return fmt.Errorf("encode profile: %w", err)
	}
	p.CreatedAt, p.UpdatedAt = tx.Now, tx.Now
	r := profileRow{Handle: p.Draft.Handle, Draft: string(raw), ERC8004: p.ERC8004, KeyHash: p.KeyHash, IdentityNote: p.IdentityNote,
		Listed: !p.Unlisted, Alive: string(p.Alive), LastSeenAt: millis(p.LastSeenAt), CreatedAt: millis(tx.Now), UpdatedAt: millis(tx.Now)}
	if r.Alive == "" {
		r.Alive = string(protocol.LivenessUnknown)
	}
	if _, err := tx.conn.bun.NewInsert().Model(&r).Returning("seq").Exec(tx.in(ctx)); conflicts(err) {
		return ErrExists
	} else if err != nil {
		return fmt.Errorf("store profile: %w", err)
	}
	var m *StoredMerchant
	if merchant != nil {
		if m, err = tx.storeMerchant(ctx, r.Seq, p, *merchant); err != nil {
			return err
		}
	}
	return tx.rerank(ctx, &r, p, m)
}
