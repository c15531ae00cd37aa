package storage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// A connection that has searched before the database changed must not take the
// change for a fault: the text index keeps its layout in the connection.
func TestCheck_AfterSearch(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		for round := range 6 {
			for i := range 30 {
				write(t, db, func(ctx context.Context, tx *storage.Tx) error {
					return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{
						Draft:     protocol.ProfileDraft{Handle: fmt.Sprintf("agent-%d-%d", round, i), Name: fmt.Sprintf("Weaver %d", i), Kind: protocol.Person},
						CreatedAt: tx.Now, UpdatedAt: tx.Now,
					}))
				})
				if i%10 == 0 {
					read(t, db, func(ctx context.Context, tx *storage.Tx) error {
						return must.Err(tx.Profiles().List(ctx, protocol.AgentQuery{Q: "weaver"}))
					})
				}
			}
			require.NoError(t, db.Check(t.Context()), "round %d", round)
		}
	})
}
