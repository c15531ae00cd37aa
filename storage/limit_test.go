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

// A listing is bounded in storage, whichever caller asks: commands and jobs pass no schema.
func TestList_Bounded(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for n := range protocol.MaxLimit + 5 {
				if err := tx.Audit(ctx, "acc_1", "note", fmt.Sprint(n), ""); err != nil {
					return err
				}
				if err := tx.Enqueue(ctx, storage.Job{Kind: storage.JobKind(fmt.Sprint("k", n))}); err != nil {
					return err
				}
			}
			return nil
		})
		for limit, want := range map[int]int{
			-1: protocol.DefaultLimit, 0: protocol.DefaultLimit, 1: 1, protocol.MaxLimit: protocol.MaxLimit, 1 << 40: protocol.MaxLimit,
		} {
			require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				entries := must.Get(tx.AuditLog().List(ctx, "", "", limit, ""))(t)
				require.Len(t, entries.Items, want, limit)
				require.NotNil(t, entries.Next)
				require.Len(t, must.Get(tx.Jobs().List(ctx, storage.JobWaiting, "", limit, ""))(t).Items, want, limit)
				return nil
			}))
		}
	})
}
