package storage

import (
	"context"
	"time"
)

// A Kept is an activity as it was received, before it is processed.
type Kept struct {
	Key                 [32]byte // identifies the activity
	Host, Actor, Signer string
	Body                []byte    // empty once it is processed
	Proven              bool      // its signature verified
	At                  time.Time // when it was stored
}

// KeepActivity stores an activity; fresh is false if one with its key exists.
func (tx *Tx) KeepActivity(ctx context.Context, k Kept) (fresh bool, err error) {
	n, err := tx.write(ctx, `INSERT INTO kept (key, host, actor, signer, proven, at, body) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		k.Key[:], k.Host, k.Actor, k.Signer, k.Proven, millis(tx.Now), append([]byte{}, k.Body...))
	return n == 1, err
}

// KeptByKey returns a stored activity; ErrNotFound when there is none.
func (tx *Tx) KeptByKey(ctx context.Context, key [32]byte) (*Kept, error) {
	k := Kept{Key: key}
	var at int64
	err := tx.row(ctx, `SELECT host, actor, signer, proven, at, body FROM kept WHERE key = ?`, key[:]).Scan(&k.Host, &k.Actor, &k.Signer, &k.Proven, &at, &k.Body)
	if err != nil {
		return nil, err
	}
	k.At = moment(at)
	return &k, nil
}

// EmptyKept deletes the body of a processed activity; its key is kept, so that a
// repeat is recognized.
func (tx *Tx) EmptyKept(ctx context.Context, key [32]byte) error {
	_, err := tx.write(ctx, `UPDATE kept SET body = ? WHERE key = ?`, []byte{}, key[:])
	return err
}

// DropKept deletes activities stored before a time, at most a thousand per call,
// and returns how many.
func (tx *Tx) DropKept(ctx context.Context, before time.Time) (int, error) {
	return tx.deleteSome(ctx, "kept", "key", `at < ? ORDER BY at LIMIT 1000`, millis(before))
}

// PutTombstone remembers until a time that the object with that ActivityPub id of
// that host was deleted, so that a late Create does not restore it.
func (tx *Tx) PutTombstone(ctx context.Context, uri, host string, until time.Time) error {
	_, err := tx.write(ctx, `INSERT INTO tombstone (uri, host, until) VALUES (?, ?, ?)
		ON CONFLICT (uri) DO UPDATE SET until = EXCLUDED.until WHERE tombstone.until < EXCLUDED.until`, uri, host, millis(until))
	return err
}

// Tombstoned reports whether there is a tombstone for the uri.
func (tx *Tx) Tombstoned(ctx context.Context, uri string) (bool, error) {
	var until int64
	err := tx.row(ctx, `SELECT until FROM tombstone WHERE uri = ?`, uri).Scan(&until)
	if err == ErrNotFound {
		return false, nil
	}
	return err == nil && until > millis(tx.Now), err
}

// PruneTombstones deletes expired tombstones, at most a thousand per call, and
// returns how many.
func (tx *Tx) PruneTombstones(ctx context.Context) (int, error) {
	return tx.deleteSome(ctx, "tombstone", "uri", `until <= ? ORDER BY until LIMIT 1000`, millis(tx.Now))
}
