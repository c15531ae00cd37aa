package commit_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/commit"
	"stoa/storage/storagetest"
)

func postgres(t *testing.T) commit.Config {
	t.Helper()
	if os.Getenv(storagetest.PostgresEnv) == "" {
		t.Skip("needs " + storagetest.PostgresEnv)
	}
	c := config(commit.Config{URL: storagetest.EmptyPostgresURL(t), Serve: true})
	make := c.Migrate
	var once sync.Once
	c.Migrate = func(ctx context.Context, e commit.Engine, db *sql.DB) (err error) {
		once.Do(func() { err = make(ctx, e, db) })
		return err
	}
	return c
}

func openPostgres(t *testing.T, c commit.Config) *commit.DB {
	t.Helper()
	db := must.Get(commit.Open(t.Context(), c))(t)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// sleeps is a statement that the server answers so many seconds late.
func sleeps(seconds int) func(ctx context.Context, tx *commit.Tx) error {
	return func(ctx context.Context, tx *commit.Tx) error {
		return commit.First(tx.QueryRaw(ctx, fmt.Sprintf(`SELECT pg_sleep(%d)`, seconds))).Scan(new(any))
	}
}

// A statement that is not answered in time ends as overloaded. That of a write is not cancelled, because a commit that waits for a
// standby would be acknowledged by that; that of a read whose caller has gone is.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	c := postgres(t)
	db := openPostgres(t, c)
	plain := must.Get(sql.Open("pgx", c.URL))(t)
	defer plain.Close()
	asleep := func() (n int) {
		require.NoError(t, plain.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'
			AND datname = current_database()`).Scan(&n))
		return n
	}

	gone, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer leave()
	require.ErrorIs(t, db.Read(gone, sleeps(600)), context.DeadlineExceeded)
	require.Eventually(t, func() bool { return asleep() == 0 }, time.Minute, 10*time.Millisecond)

	db.Silence(300 * time.Millisecond)
	for name, do := range map[string]func() error{
		"read":  func() error { return db.Read(t.Context(), sleeps(60)) },
		"write": func() error { return db.Write(t.Context(), sleeps(60)) },
	} {
		require.Equal(t, protocol.Overloaded, protocol.CodeOf(do()), name)
	}
	require.Equal(t, 2, asleep())
	db.Silence(0)
	require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error { return hold(tx, 1, "asha") }))
	require.Equal(t, 1, counts(t, db)[things])
}

// Those behind a long transaction wait while the server answers its statements, and are told when it does not.
func TestWrite_HeldUp(t *testing.T) {
	t.Parallel()
	db := openPostgres(t, postgres(t))
	db.HeldUpAfter(5 * time.Second)
	behind := func(statements int, each string) error {
		begun := make(chan bool)
		long := make(chan error, 1)
		go func() {
			long <- db.Write(context.Background(), func(ctx context.Context, tx *commit.Tx) error {
				close(begun)
				for range statements {
					if err := commit.First(tx.QueryRaw(ctx, each)).Scan(new(any)); err != nil {
						return err
					}
				}
				return nil
			})
		}()
		<-begun
		err := db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error { return hold(tx, int64(statements), "asha") })
		require.NoError(t, <-long)
		return err
	}
	require.NoError(t, behind(60, `SELECT pg_sleep(0.1)`))
	require.Equal(t, protocol.Overloaded, protocol.CodeOf(behind(1, `SELECT pg_sleep(10)`)))
}

// A writing connection that turns out to lead to a standby is replaced.
func TestWrite_Standby(t *testing.T) {
	t.Parallel()
	db := openPostgres(t, postgres(t))
	require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error {
		_, err := tx.ExecRaw(ctx, `SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY`)
		return err
	}))
	for n := range int64(3) {
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error { return hold(tx, n, "asha") }))
	}
	require.Equal(t, 3, counts(t, db)[things])
}

// Of several hosts one that takes connections and says nothing holds the first connection up, and not each.
func TestOpen_Hosts(t *testing.T) {
	t.Parallel()
	c := postgres(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	through, cut := storagetest.Wire(t, c.URL)
	c.URL = strings.Replace(through, "@", "@"+l.Addr().String()+",", 1) + "&connect_timeout=1"
	db := openPostgres(t, c)
	write := func(n int64) error {
		return db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error { return hold(tx, n, "asha") })
	}
	require.NoError(t, write(1))
	for range 3 {
		cut(true)
		require.Equal(t, protocol.Overloaded, protocol.CodeOf(write(2)))
		began := time.Now()
		for range 500 { // one of them tries at a time
			require.Equal(t, protocol.Overloaded, protocol.CodeOf(write(2)))
		}
		require.Less(t, time.Since(began), 250*time.Second, "half of what it takes when each waits its second")
		cut(false)
		require.Eventually(t, func() bool { return protocol.CodeOf(write(time.Now().UnixNano())) == "" }, time.Minute, 10*time.Millisecond)
	}
}

// A process that serves waits for the database when it starts, but not for what waiting does not mend.
func TestOpen_Waits(t *testing.T) {
	t.Parallel()
	c := postgres(t)
	none := c
	u := must.Get(url.Parse(c.URL))(t)
	u.Path = "/nowhere"
	none.URL = u.String()
	require.ErrorContains(t, must.Err(commit.Open(t.Context(), none)), `database "nowhere" does not exist`)

	var cut func(bool)
	c.URL, cut = storagetest.Wire(t, c.URL)
	cut(true)
	admin := c
	admin.Serve = false
	require.ErrorContains(t, must.Err(commit.Open(t.Context(), admin)), "connect to the database")
	opened := make(chan error, 1)
	go func() {
		db, err := commit.Open(context.WithoutCancel(t.Context()), c)
		if err == nil {
			err = db.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatal(err)
	case <-time.After(time.Second):
	}
	cut(false)
	require.NoError(t, <-opened)
}

// Through PgBouncer in transaction mode, and in session mode, all works; one in statement mode is refused at the start.
func TestOpen_PgBouncer(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"transaction", "session", "statement"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := postgres(t)
			address, end := storagetest.Pooler(t, c.URL, mode)
			t.Cleanup(end)
			c.URL = storagetest.Through(t, c.URL, address)
			if mode == "statement" {
				require.ErrorContains(t, must.Err(commit.Open(t.Context(), c)), "pool_mode must be transaction or session")
				return
			}
			db := openPostgres(t, c)
			require.False(t, db.Direct())
			var group sync.WaitGroup
			for n := range int64(100) {
				group.Go(func() {
					if err := db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error { return hold(tx, n, "asha") }); err != nil {
						t.Error(err)
					}
					err := db.Read(t.Context(), func(ctx context.Context, tx *commit.Tx) error {
						var owner string
						return tx.Lookup(ctx, `SELECT owner FROM thing WHERE n = ?`, n).Scan(&owner)
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			require.Equal(t, 100, counts(t, db)[things])

			// Where a caller leaves, the statement goes on: PgBouncer 1.18 to 1.20 may end when it is asked to cancel one.
			plain, err := sql.Open("pgx", c.URL)
			require.NoError(t, err)
			defer plain.Close()
			must.Get(plain.Exec(`CREATE SEQUENCE ended`))(t)
			gone, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer leave()
			require.ErrorIs(t, db.Lookup(gone, `SELECT pg_sleep(0.5)::text || nextval('ended')`).Scan(new(string)), context.DeadlineExceeded)
			require.Eventually(t, func() bool {
				var ended bool
				return plain.QueryRow(`SELECT is_called FROM ended`).Scan(&ended) == nil && ended
			}, time.Minute, 10*time.Millisecond)
		})
	}
}
