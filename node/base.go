package node

import (
	"context"
	"fmt"

	"stoa/storage"
)

// claimBase binds a database to the node's public address. Published ids begin with
// the address, so a node that has published anything cannot change it.
func claimBase(ctx context.Context, db *storage.DB, base string) error {
	return db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		stored, err := tx.Settings().Get(ctx, "base")
		if err != nil || stored == base {
			return err
		}
		if stored != "" {
			posts, err := tx.Posts().Count(ctx)
			if err != nil {
				return err
			}
			if posts > 0 {
				return fmt.Errorf("%w: this database belongs to the node %s, and posts under that address have gone out; start it with --base-url %s, or use "+
					"another data directory", ErrConfig, stored, stored)
			}
		}
		return tx.Settings().Put(ctx, "base", base)
	})
}

func storedBase(ctx context.Context, db *storage.DB) (base string, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		base, err = tx.Settings().Get(ctx, "base")
		return err
	})
	return base, err
}
