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

var keptTable = tableOf[Kept]("kept")

// Inbox reads and writes received activities, and the tombstones of what other
// servers deleted.
type Inbox struct{ tx *Tx }

func (tx *Tx) Inbox() Inbox { return Inbox{tx} }

// Keep stores an activity; fresh is false if one with its key exists.
func (ib Inbox) Keep(ctx context.Context, k Kept) (fresh bool, err error) {
	k.At = ib.tx.Now
	return keptTable.add(ctx, ib.tx, &k)
}

// ByKey returns a stored activity; ErrNotFound when there is none.
func (ib Inbox) ByKey(ctx context.Context, key [32]byte) (*Kept, error) {
	return orNil(find[Kept](ctx, ib.tx, keptTable.from+`WHERE key = ?`, key[:]))
}

// Empty deletes the body of a processed activity; its key is kept, so that a
// repeat is recognized.
func (ib Inbox) Empty(ctx context.Context, key [32]byte) error {
	return ib.tx.exec(ctx, `UPDATE kept SET body = ? WHERE key = ?`, []byte{}, key[:])
}

// Prune deletes activities stored before a time, at most a thousand per call,
// and returns how many.
func (ib Inbox) Prune(ctx context.Context, before time.Time) (int, error) {
	return ib.tx.deleteSome(ctx, "kept", "key", `at < ? ORDER BY at LIMIT 1000`, millis(before))
}

// PutTombstone remembers until a time that the object with that ActivityPub id of
// that host was deleted, so that a late Create does not restore it.
func (ib Inbox) PutTombstone(ctx context.Context, uri, host string, until time.Time) error {
	return ib.tx.exec(ctx, `INSERT INTO tombstone (uri, host, until) VALUES (?, ?, ?)
		ON CONFLICT (uri) DO UPDATE SET until = EXCLUDED.until WHERE tombstone.until < EXCLUDED.until`, uri, host, millis(until))
}

// Tombstoned reports whether there is a tombstone for one of the uris.
func (ib Inbox) Tombstoned(ctx context.Context, uris ...string) (bool, error) {
	return ib.tx.exists(ctx, `SELECT 1 FROM tombstone WHERE uri IN (`+marks(len(uris))+`) AND until > ? LIMIT 1`, append(toAny(uris), millis(ib.tx.Now))...)
}
