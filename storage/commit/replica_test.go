package commit_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/storage/commit"
	"stoa/storage/storagetest"
)

// withReplicas opens a database on servers of its own with standbys; with migrate it makes the tables.
func withReplicas(t *testing.T, migrate bool, url string, replicas ...*storagetest.Server) *commit.DB {
	t.Helper()
	c := config(commit.Config{URL: url, Serve: true})
	for _, r := range replicas {
		c.Replicas = append(c.Replicas, r.URL())
	}
	tables := c.Migrate
	c.Migrate = func(ctx context.Context, e commit.Engine, db *sql.DB) error {
		if err := tables(ctx, e, db); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, `CREATE TABLE generation (name TEXT PRIMARY KEY, n BIGINT NOT NULL)`)
		return err
	}
	if !migrate {
		c.Migrate = func(context.Context, commit.Engine, *sql.DB) error { return nil }
	}
	return openPostgres(t, c)
}

// where reports where a read is answered, and how many things it finds.
func where(t *testing.T, db *commit.DB) (standby bool, things int) {
	err := db.ReadAnywhere(t.Context(), func(ctx context.Context, tx *commit.Tx) error {
		return commit.First(tx.Query(ctx, `SELECT pg_is_in_recovery(), count(*) FROM thing`)).Scan(&standby, &things)
	})
	if err != nil {
		t.Error(err)
	}
	return standby, things
}

func put(t *testing.T, db *commit.DB, n int64) {
	if err := db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error { return hold(tx, n, "asha") }); err != nil {
		t.Error(err)
	}
}

// uses waits until reads are answered by a standby.
func uses(t *testing.T, db *commit.DB) {
	t.Helper()
	require.Eventually(t, func() bool { standby, _ := where(t, db); return standby }, time.Minute, 10*time.Millisecond)
}

// A read of a standby has every write of every process that was answered before it, whether the standby keeps up, is paused, or is
// away; then the primary is asked.
func TestReadAnywhere(t *testing.T) {
	t.Parallel()
	primary := storagetest.Primary(t)
	standby := primary.Standby(false)
	one := withReplicas(t, true, storagetest.URL(primary), standby)
	two := withReplicas(t, false, storagetest.URL(primary), standby)
	uses(t, one)
	uses(t, two)
	n := int64(0)
	for range 100 {
		put(t, one, n)
		n++
		for _, db := range []*commit.DB{one, two} {
			_, things := where(t, db)
			require.EqualValues(t, n, things)
		}
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if _, things := where(t, two); int64(things) < n {
					t.Errorf("%d of %d things", things, n)
				}
			}
		})
	}
	group.Wait()
	states, _ := two.Replicas(t.Context())
	require.Len(t, states, 1)
	require.True(t, states[0].Up)
	require.Positive(t, states[0].Reads)
	require.Equal(t, standby.Address, states[0].Host)

	standby.Exec(`SELECT pg_wal_replay_pause()`)
	for range 20 {
		put(t, two, n)
		n++
		for _, db := range []*commit.DB{one, two} { // the writer, and a stranger
			behind, things := where(t, db)
			require.False(t, behind)
			require.EqualValues(t, n, things)
		}
	}
	states, direct := one.Replicas(t.Context())
	require.Positive(t, states[0].Bytes)
	require.Positive(t, states[0].Lag)
	require.Positive(t, states[0].Behind)
	require.GreaterOrEqual(t, direct, uint64(20))
	standby.Exec(`SELECT pg_wal_replay_resume()`)
	uses(t, one)

	standby.Kill()
	for range 20 {
		away, things := where(t, one)
		require.False(t, away)
		require.EqualValues(t, n, things)
	}
	states, _ = one.Replicas(t.Context())
	require.False(t, states[0].Up)
	standby.Start()
	uses(t, one)
	_, things := where(t, one)
	require.EqualValues(t, n, things)
}

// After a fail-over a standby that has replayed more of the old primary's log than the new primary has, in bytes, is not read.
func TestReadAnywhere_History(t *testing.T) {
	t.Parallel()
	first := storagetest.Primary(t)
	second, third := first.Standby(false), first.Standby(false)
	db := withReplicas(t, true, storagetest.URL(first, second), third)
	put(t, db, 0)
	uses(t, db)
	plain := second.Open("stoa")
	require.Eventually(t, func() bool {
		var n int
		return plain.QueryRow(`SELECT count(*) FROM thing`).Scan(&n) == nil && n == 1
	}, time.Minute, 10*time.Millisecond)
	second.Kill()
	first.Exec(`INSERT INTO other SELECT generate_series(1, 100000)`)
	put(t, db, 1)
	put(t, db, 2)
	uses(t, db)
	_, things := where(t, db)
	require.Equal(t, 3, things)
	first.Kill()
	second.Start()
	second.Promote()
	require.Eventually(t, func() bool {
		return db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error { return hold(tx, 7, "asha") }) == nil
	}, time.Minute, 10*time.Millisecond)
	for range 20 {
		standby, things := where(t, db)
		require.False(t, standby)
		require.Equal(t, 2, things)
		time.Sleep(50 * time.Millisecond) // longer than a standby is passed over, in all
	}
}
