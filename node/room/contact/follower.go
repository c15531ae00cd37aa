package contact

import (
	"context"

	"stoa/protocol"
	"stoa/storage"
)

// ListFollowers returns who follows one of the owner's agents.
func (r *Contact) ListFollowers(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.FollowerQuery) (protocol.Page[protocol.Follower], error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return protocol.Page[protocol.Follower]{}, err
	}
	found, err := tx.Followers().List(ctx, protocol.ActorID(r.Base, handle), in.Size(), in.After)
	return convert(found, func(f *storage.Follower) protocol.Follower {
		return protocol.Follower{Actor: f.Actor, Since: f.CreatedAt}
	}), err
}

// RemoveFollower ends a follow of one of the owner's agents. Its server is told by a Reject.
func (r *Contact) RemoveFollower(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.FollowerRef) (protocol.None, error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return protocol.None{}, err
	}
	err = tx.Followers().Reject(ctx, protocol.ActorID(r.Base, handle), in.Actor)
	return protocol.None{}, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "no such actor follows @%s", handle))
}
