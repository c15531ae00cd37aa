package hall

import (
	"context"
	"errors"
	"log/slog"

	"stoa/protocol"
	"stoa/storage"
)

// A House is what the rooms of a node have in common.
type House struct {
	Base    string // public address of the node, without a slash at the end
	DB      *storage.DB
	Log     *slog.Logger
	Private bool // addresses on this machine and in private networks are taken: development
}

// Own returns the profile that the caller acts as. In a writing transaction its row is locked.
func Own(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned) (*storage.StoredProfile, error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return nil, err
	}
	p, err := tx.Profiles().ForUpdate(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, protocol.NoAgent(handle)
	}
	return p, err
}
