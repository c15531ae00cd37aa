package storage

import (
	"context"
	"time"
)

// A DelegatedKey signs for a chain identity until its end, while the account that delegated to it controls the identity.
type DelegatedKey struct {
	ID         string // identity and thumbprint; Put sets it
	Identity   string // chain identity, in lower case
	Thumbprint string // of the key, RFC 7638
	Account    string // that delegated, by CAIP-10
	PublicJWK  string
	CreatedAt  time.Time
	EndsAt     time.Time
	LastUsedAt *time.Time // when it last signed a request, to within ten minutes; nil: never
}

var delegatedKeyTable = tableOf[DelegatedKey]("delegated_key")

// DelegatedKeys reads and writes delegated keys.
type DelegatedKeys struct{ tx *Tx }

func (tx *Tx) DelegatedKeys() DelegatedKeys { return DelegatedKeys{tx} }

// Put stores a key in place of an earlier delegation to it, and deletes those of the identity beyond the newest most.
func (ds DelegatedKeys) Put(ctx context.Context, k DelegatedKey, most int) error {
	k.CreatedAt, k.ID = ds.tx.Now, delegatedID(k.Identity, k.Thumbprint)
	if err := ds.tx.exec(ctx, `DELETE FROM delegated_key WHERE id = ?`, k.ID); err != nil {
		return err
	}
	if err := delegatedKeyTable.insert(ctx, ds.tx, &k); err != nil {
		return err
	}
	return ds.tx.exec(ctx, `DELETE FROM delegated_key WHERE identity = ? AND id NOT IN
		(SELECT id FROM delegated_key WHERE identity = ? ORDER BY created_at DESC, id DESC LIMIT ?)`, k.Identity, k.Identity, most)
}

func delegatedID(identity, thumbprint string) string { return identity + " " + thumbprint }

// keyDelegated runs with every signed request of an identity that the chain names another key for.
var keyDelegated = delegatedKeyTable.from + `WHERE id = ?`

// Find returns a key; ErrNotFound when there is none. Whether it has ended is the caller's to see.
func (ds DelegatedKeys) Find(ctx context.Context, identity, thumbprint string) (DelegatedKey, error) {
	return findIn[DelegatedKey](ds.tx.lookup(ctx, keyDelegated, delegatedID(identity, thumbprint)))
}

// Of returns the keys of an identity that have not ended, newest first, at most n.
func (ds DelegatedKeys) Of(ctx context.Context, identity string, n int) ([]DelegatedKey, error) {
	return list[DelegatedKey](ctx, ds.tx, delegatedKeyTable.from+`WHERE identity = ? AND ends_at > ? ORDER BY created_at DESC, id DESC LIMIT ?`,
		identity, millis(ds.tx.Now), n)
}

// Touch records that a key signed a request now, if it is a delegated one.
func (ds DelegatedKeys) Touch(ctx context.Context, identity, thumbprint string) error {
	_, err := ds.tx.writeAside(ctx, `UPDATE delegated_key SET last_used_at = ? WHERE id = ?`, millis(ds.tx.Now), delegatedID(identity, thumbprint))
	return err
}

// DeleteOne deletes a key of an identity; ErrNotFound when it has none of that thumbprint.
func (ds DelegatedKeys) DeleteOne(ctx context.Context, identity, thumbprint string) error {
	return one(ds.tx.write(ctx, `DELETE FROM delegated_key WHERE id = ?`, delegatedID(identity, thumbprint)))
}

// Delete deletes the keys of an identity, all of them, and returns how many there were.
func (ds DelegatedKeys) Delete(ctx context.Context, identity string) (int, error) {
	n, err := ds.tx.write(ctx, `DELETE FROM delegated_key WHERE identity = ?`, identity)
	return int(n), err
}
