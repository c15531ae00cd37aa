package storage_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

var errRoom = errors.New("the room says no")

// together runs n functions at once and waits.
func together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}

func TestPruneSpent(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		now := start
		c.Now = func() time.Time { return now }
		db := storagetest.OpenConfig(t, c)
		old, young := spend(), spend()
		old.Until, young.Until = start.Add(time.Minute), start.Add(time.Hour)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return errors.Join(tx.Requests().Spend(ctx, old), tx.Requests().Spend(ctx, young))
		})
		now = start.Add(2 * time.Minute)
		total := 0
		for after, more := []byte(nil), true; more; more = after != nil {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				last, n, err := tx.Requests().PruneSpent(ctx, after)
				after, total = last, total+n
				return err
			})
		}
		require.Equal(t, 1, total)
		err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Requests().Spend(ctx, young) })
		require.Equal(t, protocol.SignatureReplayed, protocol.CodeOf(err))

		use := func(key byte, want bool) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				require.Equal(t, want, must.Get(tx.Requests().UseSignature(ctx, [32]byte{key}, now.Add(time.Hour)))(t))
				return nil
			})
		}
		prune := func() int {
			return pruned(t, db, func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.PruneExpired(ctx) })
		}
		use(1, true)
		use(1, false)
		require.Zero(t, prune())
		now = now.Add(30 * time.Minute)
		use(2, true)
		now = now.Add(31 * time.Minute)
		require.Equal(t, 1, prune())
		use(2, false)
		use(1, true)
	})
}

// Writers of every sort at once: those that append only, those that write
// otherwise, those that fail before or after writing, those that panic, those
// that double an id, and those whose caller gives up. Each that reported
// success is there whole, nothing of the others is, and the log has no gap.
func TestWrite_NeighboursAreKeptApart(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		c.Log = slog.New(slog.DiscardHandler) // the panics are meant
		db := storagetest.OpenConfig(t, c)
		taken := samplePost(start, 0)
		store(t, db, taken)
		var mu sync.Mutex
		succeeded := map[string]bool{taken.ID: true}
		rounds := storagetest.Rounds(t, 12)
		together(64, func(i int) {
			for n := range rounds {
				p := samplePost(time.Now(), int64(n))
				ctx, cancel := context.WithCancel(t.Context())
				sort := (i + n) % 8
				if sort == 6 {
					cancel()
				}
				err := db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
					switch sort {
					case 1: // a write that is not held back, before
						if err := tx.Audit(ctx, "a", "b", p.ID, ""); err != nil {
							return err
						}
					case 2:
						if err := tx.Requests().Spend(ctx, spend()); err != nil {
							return err
						}
						return errRoom
					case 7:
						if err := tx.Posts().Insert(ctx, taken); err != nil {
							return err
						}
					}
					if err := publish(ctx, tx, p); err != nil {
						return err
					}
					switch sort {
					case 3:
						return errRoom
					case 4: // reads its own write, then fails
						if _, err := tx.Posts().ByID(ctx, p.ID); err != nil {
							return err
						}
						if err := tx.Audit(ctx, "a", "b", p.ID, ""); err != nil {
							return err
						}
						return errRoom
					case 5:
						panic("a room that panics")
					}
					return nil
				})
				cancel()
				if err == nil {
					mu.Lock()
					succeeded[p.ID] = true
					mu.Unlock()
				}
				switch sort {
				case 0, 1:
					if err != nil {
						t.Error(err)
					}
				case 2, 3, 4:
					if !errors.Is(err, errRoom) {
						t.Error(err)
					}
				case 5:
					if err == nil {
						t.Error("a panic was a success")
					}
				case 6:
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				case 7:
					if !errors.Is(err, storage.ErrExists) {
						t.Error(err)
					}
				}
			}
		})
		require.NoError(t, db.Numbered(t.Context()))
		listed := walkBoard(t, db, protocol.BoardQuery{Paging: protocol.Paging{Limit: 100}})
		require.Len(t, listed, len(succeeded))
		for _, id := range listed {
			require.True(t, succeeded[id])
		}
		require.Len(t, walkBoard(t, db, protocol.BoardQuery{Q: "rag", Paging: protocol.Paging{Limit: 100}}), len(succeeded))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			entries, err := tx.Logs().After(ctx, boardID, 0, 1000)
			require.Len(t, entries, len(succeeded))
			for i, e := range entries {
				require.EqualValues(t, i+1, e.Seq)
				require.True(t, succeeded[e.ObjectID])
			}
			audit := must.Get(tx.AuditLog().List(ctx, "", "", 100, ""))(t)
			for _, a := range audit.Items {
				require.True(t, succeeded[a.Subject])
			}
			_, head, e := tx.Logs().Head(ctx, boardID)
			require.EqualValues(t, len(succeeded), head)
			return errors.Join(err, e)
		})
		require.NoError(t, db.Check(t.Context()))
	})
}

// What is held back is seen by later ops of the same batch, and an op that
// looks and then fails takes nothing of its neighbours with it.
func TestWrite_SeesWhatIsHeldBack(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		var kept atomic.Int64
		for range 5 {
			together(32, func(i int) {
				p := samplePost(time.Now(), int64(i))
				err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
					if err := publish(ctx, tx, p); err != nil || i%4 == 0 {
						return err
					}
					found, err := tx.Posts().List(ctx, protocol.BoardQuery{Q: "rag courier", Paging: protocol.Paging{Limit: 1}})
					if err != nil {
						return err
					}
					if len(found.Items) == 0 {
						return errors.New("a search does not see its own write")
					}
					if i%4 == 1 {
						return nil
					}
					if err := tx.Posts().SetState(ctx, p.ID, protocol.Hidden, ""); err != nil {
						return err
					}
					if i%4 == 2 {
						return errRoom
					}
					return tx.Posts().SetState(ctx, p.ID, protocol.Visible, "")
				})
				if err == nil {
					kept.Add(1)
				} else if !errors.Is(err, errRoom) {
					t.Error(err)
				}
			})
		}
		require.EqualValues(t, 120, kept.Load())
		for _, q := range []protocol.BoardQuery{{}, {Q: "rag"}, {Tag: "paper"}} {
			q.Limit = 50
			require.Len(t, walkBoard(t, db, q), 120)
		}
		require.NoError(t, db.Check(t.Context()))
	})
}

// A walk that began sees everything that was there then, once, whatever is
// written meanwhile (contract §1).
func TestListPosts_WalkWhileWriting(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		before := map[string]int{}
		for n := range 60 {
			p := samplePost(start.Add(time.Duration(n)*time.Millisecond), int64(n))
			store(t, db, p)
			before[p.ID] = 0
		}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for n := int64(0); ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					p := samplePost(time.Now(), n)
					if err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return publish(ctx, tx, p) }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		seen := map[string]bool{}
		for _, id := range walkBoard(t, db, protocol.BoardQuery{Paging: protocol.Paging{Limit: 4}}) {
			require.False(t, seen[id], "shown twice")
			seen[id] = true
			delete(before, id)
		}
		close(stop)
		wg.Wait()
		require.Empty(t, before, "skipped")
	})
}

func TestWrite_WakesAndCounts(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		require.Nil(t, db.Wake("nothing"))
		v := db.Version()
		store(t, db, samplePost(start, 1))
		require.Greater(t, db.Version(), v)
		<-db.Wake(storage.TopicFeed)
		<-db.Wake(storage.TopicLog)
		v = db.Version()
		require.ErrorIs(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Enqueue(ctx, storage.Job{Kind: "k"}); err != nil {
				return err
			}
			return errRoom
		}), errRoom)
		require.Equal(t, v, db.Version())
		select {
		case <-db.Wake(storage.TopicJobs):
			t.Fatal("woken by a write that failed")
		default:
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Enqueue(ctx, storage.Job{Kind: "k"}) })
		<-db.Wake(storage.TopicJobs)
		require.NoError(t, db.Ping(t.Context()))
	})
}

// Several processes on one database: the second handle acts as one.
func TestOpen_ManyAtOnce(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, c storage.Config) {
		var failed atomic.Int64
		together(6, func(i int) {
			db, err := storage.Open(context.Background(), c)
			if err != nil {
				t.Error(err)
				failed.Add(1)
				return
			}
			defer db.Close()
			for n := range 5 {
				p := samplePost(time.Now(), int64(n))
				if err := db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error { return publish(ctx, tx, p) }); err != nil {
					t.Error(err)
				}
			}
		})
		db := storagetest.OpenConfig(t, c)
		require.Len(t, walkBoard(t, db, protocol.BoardQuery{Paging: protocol.Paging{Limit: 100}}), 30)
		require.NoError(t, db.Check(t.Context()))
	}
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); run(t, storage.Config{Path: t.TempDir() + "/new/stoa.db"}) })
	if os.Getenv(storagetest.PostgresEnv) != "" {
		t.Run("postgres", func(t *testing.T) { t.Parallel(); run(t, storage.Config{URL: storagetest.EmptyPostgresURL(t)}) })
	}
}

func TestRead_IsOneMoment(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		store(t, db, samplePost(start, 1))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			first := must.Get(tx.Posts().Count(ctx))(t)
			store(t, db, samplePost(start, 2))
			require.Equal(t, first, must.Get(tx.Posts().Count(ctx))(t))
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		err := db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			cancel()
			return must.Err(tx.Posts().Count(ctx))
		})
		require.ErrorIs(t, err, context.Canceled)
		for range 40 { // every reader still works
			read(t, db, func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Posts().Count(ctx)) })
		}
	})
}

func TestOpen_Config(t *testing.T) {
	t.Parallel()
	for _, c := range []storage.Config{{}, {Path: "a", URL: "postgres://b"}, {URL: "postgres://127.0.0.1:1/none?connect_timeout=1"}} {
		_, err := storage.Open(t.Context(), c)
		require.Error(t, err, fmt.Sprintf("%+v", c))
	}
}

// A statement finds all rows that are held back of the table it names, of its own
// write and of an earlier one in the batch; a write that looks and fails leaves what
// the earlier one did.
func TestWrite_StatementsSettle(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		tables, named := []string{"post", "post_tag", "writer", "post_word", "feed", "news", "log_waiting"}, 12 // with log, stream, tally and feed_number
		from := map[string]string{}
		if !storage.OnPostgres(db) {
			tables[6], named = "log", 11
			from["post_word"] = "post_word WHERE post_word MATCH 'rag'" // which does not support scanning
		}
		at := start
		for _, table := range tables {
			for _, own := range []bool{true, false} {
				require.NoError(t, db.Numbered(t.Context()))
				before := 0
				read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
					before, err = storage.Count(ctx, tx, cmp.Or(from[table], table))
					return err
				})
				at = at.Add(time.Minute)
				p := samplePost(at, 0)
				p.Network = "n"
				var held, unasked, left []string
				found := 0
				hold := func(ctx context.Context, tx *storage.Tx) error {
					return errors.Join(publish(ctx, tx, p), tx.News().Append(ctx, storage.NewsReply, p.ID, "handle:asha"))
				}
				look := func(ctx context.Context, tx *storage.Tx) error {
					held = storage.Held(tx)
					_, err := storage.Count(ctx, tx, "report")
					unasked = storage.Held(tx)
					if err == nil {
						found, err = storage.Count(ctx, tx, cmp.Or(from[table], table))
					}
					left = storage.Held(tx)
					return err
				}
				if own {
					write(t, db, func(ctx context.Context, tx *storage.Tx) error {
						if err := hold(ctx, tx); err != nil {
							return err
						}
						return look(ctx, tx)
					})
				} else {
					errs := storage.Together(t.Context(), db, hold, func(ctx context.Context, tx *storage.Tx) error { return errors.Join(look(ctx, tx), errRoom) })
					require.NoError(t, errs[0])
					require.ErrorIs(t, errs[1], errRoom)
				}
				require.Len(t, held, named, table)
				require.Equal(t, held, unasked, "a statement that names no such table wrote what is held back")
				require.Greater(t, found, before, table)
				require.NotContains(t, left, table)
				read(t, db, func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Posts().ByID(ctx, p.ID)) })
			}
		}
	})
}

// Decisions about one post leave what an earlier write holds back about another, and
// the batch does not run again.
func TestWrite_DecidesBesideWhatIsHeldBack(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		decided := samplePost(start, 0)
		store(t, db, decided)
		proof := protocol.AuthorProof{Level: protocol.ByNothing}
		for i, decide := range []func(ctx context.Context, tx *storage.Tx) error{
			func(ctx context.Context, tx *storage.Tx) error {
				return tx.Posts().SetVerdict(ctx, decided.ID, proof, "", "")
			},
			func(ctx context.Context, tx *storage.Tx) error {
				return tx.Posts().SetState(ctx, decided.ID, protocol.Hidden, "")
			},
			func(ctx context.Context, tx *storage.Tx) error {
				return tx.Posts().SetState(ctx, decided.ID, protocol.Visible, "")
			},
			func(ctx context.Context, tx *storage.Tx) error {
				return errors.Join(tx.Posts().SetState(ctx, decided.ID, protocol.Deleted, ""), tx.Logs().Redact(ctx, decided.Board, decided.ID))
			},
		} {
			p := samplePost(start.Add(time.Duration(i+1)*time.Minute), 0)
			ran := 0
			var held []string
			errs := storage.Together(t.Context(), db, func(ctx context.Context, tx *storage.Tx) error {
				ran++
				return publish(ctx, tx, p)
			}, func(ctx context.Context, tx *storage.Tx) error {
				err := decide(ctx, tx)
				held = storage.Held(tx)
				return err
			})
			require.NoError(t, errors.Join(errs...))
			require.Equal(t, 1, ran, i)
			require.Contains(t, held, "feed", i)
		}
		require.NoError(t, db.Check(t.Context()))
	})
}
