package storage

import (
	"context"
	"time"
)

// A RemoteActor is the stored part of an actor of another server.
type RemoteActor struct {
	ID, Host, Type, Handle, Name, Inbox, SharedInbox string
	Doc                                              []byte // the members that are read again
	FetchedAt                                        time.Time
}

// A RemoteKey is a key of an actor of another server, or the fact that there was
// none.
type RemoteKey struct {
	KeyID, Owner, Host, Algorithm string // Host is the owner's
	Key                           []byte // SPKI or raw; empty when none was found
	FetchedAt                     time.Time
	NegativeUntil                 time.Time // no key, and not fetched again before this; zero for a key
}

var remoteActorTable = tableOf[RemoteActor]("remote_actor")

// PutActor stores a fetched actor, replacing the previous one.
func (ps Peers) PutActor(ctx context.Context, a RemoteActor) error {
	return remoteActorTable.put(ctx, ps.tx, &a, "id")
}

// ActorByID returns an actor; ErrNotFound when it was never fetched.
func (ps Peers) ActorByID(ctx context.Context, id string) (*RemoteActor, error) {
	return orNil(find[RemoteActor](ctx, ps.tx, remoteActorTable.from+`WHERE id = ?`, id))
}

var remoteKeyTable = tableOf[RemoteKey]("remote_key")

// PutKey stores a fetched key, replacing the previous one.
func (ps Peers) PutKey(ctx context.Context, k RemoteKey) error {
	return remoteKeyTable.put(ctx, ps.tx, &k, "key_id")
}

// KeyByID returns a key; ErrNotFound when it was never fetched.
func (ps Peers) KeyByID(ctx context.Context, keyID string) (*RemoteKey, error) {
	return orNil(find[RemoteKey](ctx, ps.tx, remoteKeyTable.from+`WHERE key_id = ?`, keyID))
}

// PruneFetched deletes actors and keys fetched before a time, at most a thousand
// of each per call, and returns how many. Followers keep their own inboxes.
func (ps Peers) PruneFetched(ctx context.Context, before time.Time) (int, error) {
	actors, err := ps.tx.deleteSome(ctx, "remote_actor", "id", `fetched_at < ? ORDER BY fetched_at LIMIT 1000`, millis(before))
	if err != nil {
		return 0, err
	}
	keys, err := ps.tx.deleteSome(ctx, "remote_key", "key_id", `fetched_at < ? ORDER BY fetched_at LIMIT 1000`, millis(before))
	return actors + keys, err
}
