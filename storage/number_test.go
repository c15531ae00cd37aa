package storage_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
	"testing"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

// onProcesses runs fn with three processes' handles of one PostgreSQL database
// and a plain connection to it.
func onProcesses(t *testing.T, fn func(t *testing.T, dbs []*storage.DB, plain *sql.DB)) {
	t.Parallel()
	if os.Getenv(storagetest.PostgresEnv) == "" {
		return
	}
	url := storagetest.PostgresURL(t)
	var dbs []*storage.DB
	for range 3 {
		db := must.Get(storage.Open(t.Context(), storage.Config{URL: url}))(t)
		defer db.Close()
		dbs = append(dbs, db)
	}
	plain := must.Get(sql.Open("pgx", url))(t)
	defer plain.Close()
	fn(t, dbs, plain)
}

type followed struct {
	feed, news, log []string
	upTo            int64 // of the news
}

// follow is what the feed, the news of asha and the log of the board hold.
func follow(t *testing.T, db *storage.DB) (f followed) {
	t.Helper()
	require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		items := must.Get(tx.Feed().After(ctx, 0, 100))(t)
		for _, i := range items {
			f.feed = append(f.feed, i.Subject.ID)
		}
		news, upTo, _, err := tx.News().After(ctx, []string{"handle:asha"}, 0, 100)
		require.NoError(t, err)
		f.upTo = upTo
		for _, i := range news {
			f.news = append(f.news, i.Ref)
		}
		entries, err := tx.Logs().After(ctx, boardID, 0, 100)
		for i, e := range entries {
			require.EqualValues(t, i+1, e.Seq)
			f.log = append(f.log, e.ObjectID)
		}
		return err
	}))
	return f
}

// tell appends to all that is numbered.
func tell(ctx context.Context, tx *storage.Tx, subject string) error {
	if err := tx.Feed().Append(ctx, someNews(tx.Now, subject)); err != nil {
		return err
	}
	if err := tx.News().Append(ctx, storage.NewsReply, subject, "handle:asha"); err != nil {
		return err
	}
	return tx.Logs().Append(ctx, boardID, "create", subject, nil)
}

// A transaction that has numbers and is not over keeps the feed and the news after
// it from being told, so that nobody's place passes it. Logs number what is
// committed and wait for nobody.
func TestNumbers_OfARunningTransaction(t *testing.T) {
	onProcesses(t, func(t *testing.T, dbs []*storage.DB, _ *sql.DB) {
		write(t, dbs[0], func(ctx context.Context, tx *storage.Tx) error { return tell(ctx, tx, "first") })
		require.NoError(t, dbs[1].Numbered(t.Context()))
		held, end := make(chan struct{}), make(chan struct{})
		release := sync.OnceFunc(func() { close(end) })
		defer release()
		var running sync.WaitGroup
		running.Go(func() {
			err := dbs[0].Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
				if err := tell(ctx, tx, "slow"); err != nil {
					return err
				}
				// A look at each makes it have its number or place before the end.
				if _, err := tx.Feed().After(ctx, 0, 1); err != nil {
					return err
				}
				if _, _, _, err := tx.News().After(ctx, []string{"handle:asha"}, 0, 1); err != nil {
					return err
				}
				if _, err := tx.Logs().After(ctx, boardID, 0, 1); err != nil {
					return err
				}
				close(held)
				<-end
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-held
		before := follow(t, dbs[1])
		require.NoError(t, dbs[1].Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tell(ctx, tx, "quick") }))
		for len(follow(t, dbs[1]).log) < 2 {
		}
		now := follow(t, dbs[1])
		require.Equal(t, []string{"first"}, now.feed)
		require.Equal(t, []string{"first"}, now.news)
		require.Equal(t, before.upTo, now.upTo, "a cursor that is handed out does not pass it")
		require.Equal(t, []string{"first", "quick"}, now.log)
		var place, newest int64
		read(t, dbs[1], func(ctx context.Context, tx *storage.Tx) (err error) {
			p := must.Get(tx.Feed().List(ctx, nil, false, 1, ""))(t)
			require.Equal(t, "quick", p.Items[0].Subject.ID, "it is in lists")
			if place, _, err = tx.Feed().Place(ctx, p.Items[0].ID); err != nil {
				return err
			}
			newest, _, err = tx.Feed().Place(ctx, "")
			return err
		})
		require.Equal(t, before.upTo, max(place, newest), "a stream that begins now is told of both")
		release()
		running.Wait()
		for _, db := range dbs {
			require.NoError(t, db.Numbered(t.Context()))
			now := follow(t, db)
			require.Equal(t, []string{"first", "slow", "quick"}, now.feed)
			require.Equal(t, []string{"first", "slow", "quick"}, now.news)
			require.Equal(t, []string{"first", "quick", "slow"}, now.log)
		}
		require.NoError(t, dbs[0].Check(t.Context()))
	})
}

// What waits for its number when its process dies is numbered by another, and what
// is deleted until then has no text in the log.
func TestNumbers_Waiting(t *testing.T) {
	storagetest.SkipPooled(t) // it holds a lock of a session
	onProcesses(t, func(t *testing.T, dbs []*storage.DB, plain *sql.DB) {
		lock := must.Get(plain.Conn(t.Context()))(t)
		defer lock.Close()
		must.Get(lock.ExecContext(t.Context(), `SELECT pg_advisory_lock(hashtextextended('number the logs', 0))`))(t)
		append2 := func(db *storage.DB, kind string, redact bool) {
			require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				if redact {
					if err := tx.Logs().Redact(ctx, boardID, "x"); err != nil {
						return err
					}
				}
				return tx.Logs().Append(ctx, boardID, storage.LogKind(kind), "x", []byte("text"))
			}))
		}
		append2(dbs[0], "create", false)
		append2(dbs[1], "delete", true)
		require.NoError(t, dbs[0].Close())
		require.Empty(t, follow(t, dbs[2]).log)
		require.NoError(t, dbs[2].Check(t.Context()))
		must.Get(lock.ExecContext(t.Context(), `SELECT pg_advisory_unlock_all()`))(t)
		require.NoError(t, dbs[2].Numbered(t.Context()))
		require.NoError(t, dbs[2].Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			entries, err := tx.Logs().After(ctx, boardID, 0, 10)
			require.Len(t, entries, 2)
			require.True(t, entries[0].Redacted)
			require.Nil(t, entries[0].Activity)
			require.Equal(t, storage.LogDelete, entries[1].Kind)
			require.Equal(t, []byte("text"), entries[1].Activity)
			return err
		}))
	})
}

// TestNumbers_Order has each of some writers create an object at one process and
// delete it at the next, while logs are numbered: numbers have no gap, no deletion
// comes before its object, and who follows with a cursor has each entry once.
func TestNumbers_Order(t *testing.T) {
	onProcesses(t, func(t *testing.T, dbs []*storage.DB, _ *sql.DB) {
		const writers, each = 6, 40
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for i := range each {
					object := fmt.Sprint(w, " ", i)
					for n, kind := range []string{"create", "delete"} {
						if err := dbs[(w+n)%3].Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
							if i%3 == n { // in a batch that is written in parts
								if _, err := tx.Posts().ByID(ctx, protocol.NewID(protocol.PostID, tx.Now)); err != storage.ErrNotFound {
									return err
								}
							}
							return tx.Logs().Append(ctx, boardID, storage.LogKind(kind), object, nil)
						}); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		created := map[string]bool{}
		var at int64
		for at < 2*writers*each && !t.Failed() {
			require.NoError(t, dbs[2].Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				entries, err := tx.Logs().After(ctx, boardID, at, 50)
				for _, e := range entries {
					require.Equal(t, at+1, e.Seq)
					at = e.Seq
					require.Equal(t, e.Kind == "delete", created[e.ObjectID], "%s of %s", e.Kind, e.ObjectID)
					created[e.ObjectID] = true
				}
				return err
			}))
		}
		group.Wait()
		require.NoError(t, dbs[0].Check(t.Context()))
	})
}

// What each process asks up to a hundred times a second sorts and reads no table.
func TestNumbers_Plans(t *testing.T) {
	onProcesses(t, func(t *testing.T, dbs []*storage.DB, _ *sql.DB) {
		plans := storage.NumberPlans(t.Context(), t, dbs[0])
		for _, index := range []string{"feed_n", "news_n", "log_waiting_pkey", "log_waiting_object"} {
			require.Contains(t, plans, index)
		}
		for _, table := range []string{"feed", "news", "log_waiting", "log", "stream"} {
			require.NotContains(t, plans, "Seq Scan on "+table)
		}
	})
}
