package storage_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

// The process that serves a SQLite database ends what leases the one before it left: a job
// that was begun once is due at once, one that was begun again and again waits longer each
// time, up to the end of its lease. A process that does not serve ends none.
func TestServe_EndsLeases(t *testing.T) {
	t.Parallel()
	now := start
	c := storage.Config{Path: filepath.Join(t.TempDir(), "stoa.db"), Now: func() time.Time { return now }, Serve: true}
	storagetest.Migrated(t, c.Path)
	left := func(serve bool, fn func(db *storage.DB)) {
		t.Helper()
		c.Serve = serve
		db := must.Get(storage.Open(t.Context(), c))(t)
		fn(db)
		require.NoError(t, db.Close()) // which ends no lease, as a kill does not
	}
	outlets := func(db *storage.DB) int {
		got := must.Get(db.ClaimOutlets(t.Context(), "federation", 9, 9, time.Minute))(t)
		return len(got)
	}
	inbox := protocol.BoardID("https://b.example") + "/inbox"
	left(true, func(db *storage.DB) {
		enqueue(t, db, storage.Job{Kind: "money", Lane: "a"}, storage.Job{Kind: "later", Lane: "a"}, storage.Job{Kind: "mail"})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.NoError(t, tx.Logs().Append(ctx, boardID, "create", "x", nil))
			return tx.Outlets().Put(ctx, storage.Outlet{Board: boardID, Inbox: inbox, Host: "b.example", Stoa: true})
		})
		require.Equal(t, 1, outlets(db))
		_, kinds := claim(t, db, "one", 9)
		require.Equal(t, []string{"money", "mail"}, kinds)
	})
	left(false, func(db *storage.DB) {
		require.Zero(t, outlets(db))
		_, kinds := claim(t, db, "admin", 9)
		require.Empty(t, kinds)
	})
	left(true, func(db *storage.DB) {
		require.Equal(t, 1, outlets(db))
		jobs, kinds := claim(t, db, "two", 9)
		require.Equal(t, []string{"money", "mail"}, kinds, "at once, and in the order of the lane")
		require.Equal(t, 2, jobs[0].Attempt, "what may have ended the process is counted")
	})
	for attempt := 3; attempt < 20; attempt++ {
		left(true, func(db *storage.DB) {
			pause := min(time.Minute, time.Duration(attempt-2)*5*time.Second)
			now = now.Add(pause - time.Millisecond)
			_, kinds := claim(t, db, "again", 9)
			require.Empty(t, kinds, attempt)
			now = now.Add(time.Millisecond)
			jobs, _ := claim(t, db, "again", 9)
			require.Len(t, jobs, 2)
			require.Equal(t, attempt, jobs[0].Attempt)
		})
	}
}

// One process serves a SQLite database; others may open it to administer it, before and
// meanwhile.
func TestServe_OneProcess(t *testing.T) {
	t.Parallel()
	c := storage.Config{Path: filepath.Join(t.TempDir(), "stoa.db")}
	storagetest.Migrated(t, c.Path)
	first := storagetest.OpenConfig(t, c)
	c.Serve = true
	for range 3 {
		one := must.Get(storage.Open(t.Context(), c))(t)
		require.ErrorIs(t, must.Err(storage.Open(t.Context(), c)), storage.ErrServed)
		require.NoError(t, first.Ping(t.Context()))
		storagetest.OpenConfig(t, storage.Config{Path: c.Path})
		require.NoError(t, one.Close())
	}
}

// Several processes serve a PostgreSQL database; what one has leased remains its own
// when another starts.
func TestServe_Several(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		if c.URL == "" {
			return // TestServe_OneProcess
		}
		c.Serve = true
		one := storagetest.OpenConfig(t, c)
		enqueue(t, one, storage.Job{Kind: "mail"})
		_, kinds := claim(t, one, "one", 9)
		require.Len(t, kinds, 1)
		_, kinds = claim(t, storagetest.OpenConfig(t, c), "two", 9)
		require.Empty(t, kinds)
	})
}
