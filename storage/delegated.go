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

// Delete deletes the keys of an identity, all of them, and returns how many there were.
func (ds DelegatedKeys) Delete(ctx context.Context, identity string) (int, error) {
	n, err := ds.tx.write(ctx, `DELETE FROM delegated_key WHERE identity = ?`, identity)
	return int(n), err
}
