package storage

import (
	"context"
	"time"

	"github.com/uptrace/bun"
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

type remoteActorRow struct {
	bun.BaseModel `bun:"table:remote_actor"`
	ID            string `bun:",pk"`
	Host          string
	Type          string
	Handle        string
	Name          string
	Inbox         string
	SharedInbox   string
	Doc           []byte `bun:",notnull"`
	FetchedAt     int64
}

// PutActor stores a fetched actor, replacing the previous one.
func (ps Peers) PutActor(ctx context.Context, a RemoteActor) error {
	return ps.tx.put(ctx, &remoteActorRow{ID: a.ID, Host: a.Host, Type: a.Type, Handle: a.Handle, Name: a.Name, Inbox: a.Inbox, SharedInbox: a.SharedInbox,
		Doc: append([]byte{}, a.Doc...), FetchedAt: millis(a.FetchedAt)}, "id", "host", "type", "handle", "name", "inbox", "shared_inbox", "doc", "fetched_at")
}

// ActorByID returns an actor; ErrNotFound when it was never fetched.
func (ps Peers) ActorByID(ctx context.Context, id string) (*RemoteActor, error) {
	var r remoteActorRow
	if err := ps.tx.selectFrom(&r).Where("id = ?", id).Scan(ps.tx.in(ctx)); err != nil {
		return nil, found(err)
	}
	return &RemoteActor{ID: r.ID, Host: r.Host, Type: r.Type, Handle: r.Handle, Name: r.Name, Inbox: r.Inbox, SharedInbox: r.SharedInbox,
		Doc: r.Doc, FetchedAt: moment(r.FetchedAt)}, nil
}

type remoteKeyRow struct {
	bun.BaseModel `bun:"table:remote_key"`
	KeyID         string `bun:",pk"`
	Owner         string
	Host          string
	Algorithm     string
	Key           []byte `bun:",notnull"`
	FetchedAt     int64
	NegativeUntil int64
}

// PutKey stores a fetched key, replacing the previous one.
func (ps Peers) PutKey(ctx context.Context, k RemoteKey) error {
	return ps.tx.put(ctx, &remoteKeyRow{KeyID: k.KeyID, Owner: k.Owner, Host: k.Host, Algorithm: k.Algorithm, Key: append([]byte{}, k.Key...),
		FetchedAt: millis(k.FetchedAt), NegativeUntil: millis(k.NegativeUntil)}, "key_id", "owner", "host", "algorithm", "key", "fetched_at", "negative_until")
}

// KeyByID returns a key; ErrNotFound when it was never fetched.
func (ps Peers) KeyByID(ctx context.Context, keyID string) (*RemoteKey, error) {
	var r remoteKeyRow
	if err := ps.tx.selectFrom(&r).Where("key_id = ?", keyID).Scan(ps.tx.in(ctx)); err != nil {
		return nil, found(err)
	}
	return &RemoteKey{KeyID: r.KeyID, Owner: r.Owner, Host: r.Host, Algorithm: r.Algorithm, Key: r.Key, FetchedAt: moment(r.FetchedAt),
		NegativeUntil: moment(r.NegativeUntil)}, nil
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
