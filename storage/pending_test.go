package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/storage"
)

// TestPending: on PostgreSQL no write has to move words into their index: those that wait are moved on
// another connection, long before there are many.
func TestPending(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		if !storage.OnPostgres(db) {
			return
		}
		require.NoError(t, storage.Exec(t.Context(), db, `CREATE EXTENSION pgstattuple`), "a part of every PostgreSQL")
		for i := range 20 {
			store(t, db, samplePost(start.Add(time.Duration(i)*time.Second), 1))
		}
		require.Eventually(t, func() bool {
			waiting := 1
			read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				waiting, err = storage.PendingTuples(ctx, tx, "post_word_gin")
				return err
			})
			return waiting == 0
		}, time.Minute, 50*time.Millisecond)
	})
}
