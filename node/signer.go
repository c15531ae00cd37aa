package node

import (
	"context"

	"stoa/storage"
)

// formMemory keeps which form of signature a host took, beside the signature schemes of ActivityPub: what is signed in the node's own
// name has the name agent: in front of the host. The stock is capped and pruned as those are.
type formMemory struct{ db *storage.DB }

const agentForms = "agent:"

// Form implements signed.Memory.
func (m formMemory) Form(ctx context.Context, host string) (form string, err error) {
	err = m.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		form, err = tx.Peers().Scheme(ctx, agentForms+host)
		return err
	})
	return form, err
}

// Keep implements signed.Memory.
func (m formMemory) Keep(ctx context.Context, host, form string) error {
	return m.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Peers().SetScheme(ctx, agentForms+host, form)
	})
}
