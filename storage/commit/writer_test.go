package commit_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/commit"

	"github.com/stretchr/testify/require"
)

// However a write comes to the table, it finds what its batch holds back of it; one
// that fails leaves what the earlier ones did, and nothing of its own.
func TestWrite_Settles(t *testing.T) {
	each(t, func(t *testing.T, db *commit.DB) {
		n := int64(0)
		for name, look := range map[string]func(ctx context.Context, tx *commit.Tx) error{
			"query": func(ctx context.Context, tx *commit.Tx) error {
				var owner string
				return commit.First(tx.Query(ctx, `SELECT owner FROM thing WHERE n = ?`, n)).Scan(&owner)
			},
			"lookup": func(ctx context.Context, tx *commit.Tx) error {
				var owner string
				return tx.Lookup(ctx, `SELECT owner FROM thing WHERE n = ?`, n).Scan(&owner)
			},
			"exec": func(ctx context.Context, tx *commit.Tx) error {
				require.EqualValues(t, 1, must.Get(tx.Exec(ctx, `UPDATE thing SET owner = 'rao' WHERE n = ?`, n))(t))
				return nil
			},
			"bun select": func(ctx context.Context, tx *commit.Tx) error {
				return tx.Select(new(thing)).Where("n = ?", n).Scan(tx.In(ctx))
			},
			"bun insert": func(ctx context.Context, tx *commit.Tx) error {
				require.ErrorIs(t, tx.Insert(ctx, &thing{N: n, Owner: "rao"}), commit.ErrExists)
				return nil
			},
			"bun put": func(ctx context.Context, tx *commit.Tx) error {
				return tx.Put(ctx, &thing{N: n, Owner: "rao"}, "n", "owner")
			},
			"settle": func(ctx context.Context, tx *commit.Tx) error {
				return tx.Settle(things)
			},
			"another table of the buffer": func(ctx context.Context, tx *commit.Tx) error {
				if err := tx.Settle(things); err != nil { // as the notes
					return err
				}
				_, err := count(ctx, tx, "head")
				require.Zero(t, tx.Held(notes))
				return err
			},
		} {
			before := counts(t, db)
			for _, own := range []bool{false, true} {
				n++
				first := func(_ context.Context, tx *commit.Tx) error { return hold(tx, n, "asha") }
				second := func(ctx context.Context, tx *commit.Tx) error {
					if own {
						if err := first(ctx, tx); err != nil {
							return err
						}
					}
					require.Equal(t, 1, tx.Held(things), name)
					_, err := count(ctx, tx, "other")
					require.Equal(t, 1, tx.Held(things), name)
					err = errors.Join(err, look(ctx, tx))
					require.Zero(t, tx.Held(things), name)
					return errors.Join(err, other(ctx, tx, n), errRoom)
				}
				nothing := func(context.Context, *commit.Tx) error { return nil }
				if own {
					require.ErrorIs(t, together(t, db, nothing, second, nothing)[1], errRoom, name)
				} else {
					errs := together(t, db, first, second)
					require.NoError(t, errs[0], name)
					require.ErrorIs(t, errs[1], errRoom, name)
					before[things]++
					before[notes]++
				}
				require.Equal(t, before, counts(t, db), name)
			}
		}
	})
}

// A write that fails takes what it holds back with it, and nothing of its neighbours,
// wherever it fails and whether or not the batch has to run again.
func TestWrite_FailsAlone(t *testing.T) {
	each(t, func(t *testing.T, db *commit.DB) {
		kept := 0
		for i, test := range []struct {
			runs int // of the write before
			fail write
		}{
			{1, func(context.Context, *commit.Tx) error { return errRoom }},
			{1, func(_ context.Context, tx *commit.Tx) error { return errors.Join(tx.Dirty(), errRoom) }},
			{1, func(ctx context.Context, tx *commit.Tx) error {
				_, err := count(ctx, tx, "thing")
				return errors.Join(other(ctx, tx, 1), err, errRoom)
			}},
			{1, func(ctx context.Context, tx *commit.Tx) error { // the savepoint writes what is not late
				err := other(ctx, tx, 1)
				_, e := count(ctx, tx, "thing")
				return errors.Join(err, e, errRoom)
			}},
			{2, func(ctx context.Context, tx *commit.Tx) error { // of what is late, nothing can be written in it
				err := other(ctx, tx, 1)
				_, e := count(ctx, tx, "note")
				return errors.Join(err, e, errRoom)
			}},
		} {
			runs := 0
			keep := func(_ context.Context, tx *commit.Tx) error {
				runs++
				return hold(tx, int64(3*i), "asha")
			}
			fail := func(ctx context.Context, tx *commit.Tx) error {
				return errors.Join(hold(tx, int64(3*i+1), "asha"), test.fail(ctx, tx))
			}
			errs := together(t, db, keep, fail, func(_ context.Context, tx *commit.Tx) error { return hold(tx, int64(3*i+2), "asha") })
			require.NoError(t, errors.Join(errs[0], errs[2]), i)
			require.ErrorIs(t, errs[1], errRoom, i)
			require.Equal(t, test.runs, runs, i)
			kept += 2
			require.Equal(t, [3]int{kept, kept, 0}, counts(t, db), i)
		}
	})
}

// Rows stay held back beside a statement that selects others by their key.
func TestWrite_LeavesOtherKeys(t *testing.T) {
	each(t, func(t *testing.T, db *commit.DB) {
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error {
			if err := hold(tx, 1, "asha"); err != nil {
				return err
			}
			must.Get(tx.Exec(ctx, `DELETE FROM thing WHERE owner = ?`, "rao"))(t)
			require.Equal(t, 1, tx.Held(things))
			require.EqualValues(t, 1, must.Get(tx.Exec(ctx, `DELETE FROM thing WHERE owner = ?`, "asha"))(t))
			return nil
		}))
	})
}

// A row that the database refuses fails its own write, whichever statement wrote it.
func TestWrite_RefusedRow(t *testing.T) {
	each(t, func(t *testing.T, db *commit.DB) {
		require.NoError(t, db.Write(t.Context(), func(_ context.Context, tx *commit.Tx) error { return hold(tx, 1, "asha") }))
		double := func(ctx context.Context, tx *commit.Tx) error {
			if tx.Careful() {
				return tx.Insert(ctx, &thing{N: 1, Owner: "asha"})
			}
			return hold(tx, 1, "asha")
		}
		for i, look := range []write{
			func(context.Context, *commit.Tx) error { return nil },
			func(ctx context.Context, tx *commit.Tx) error { _, err := count(ctx, tx, "thing"); return err },
			func(ctx context.Context, tx *commit.Tx) error { return other(ctx, tx, 100) },
			func(_ context.Context, tx *commit.Tx) error { return tx.Dirty() },
		} {
			n := int64(10 * (i + 1))
			errs := together(t, db, func(_ context.Context, tx *commit.Tx) error { return hold(tx, n, "rao") }, double, look, double,
				func(_ context.Context, tx *commit.Tx) error { return hold(tx, n+1, "rao") })
			for j, err := range errs {
				if j == 1 || j == 3 {
					require.ErrorIs(t, err, commit.ErrExists)
				} else {
					require.NoError(t, err, j)
				}
			}
			require.Equal(t, [3]int{1 + 2*(i+1), 1 + 2*(i+1), min(1, i/2)}, counts(t, db))
		}
	})
}

func TestWrite_Wakes(t *testing.T) {
	each(t, func(t *testing.T, db *commit.DB) {
		n := int64(0)
		wake := func(result error) write {
			n++
			row := n
			return func(ctx context.Context, tx *commit.Tx) error {
				tx.Wake("topic")
				return errors.Join(hold(tx, row, "asha"), result)
			}
		}
		v := db.Version()
		require.ErrorIs(t, db.Write(t.Context(), wake(errRoom)), errRoom)
		require.Equal(t, v, db.Version())
		require.Empty(t, db.Topic("topic"))
		require.NoError(t, errors.Join(together(t, db, wake(nil), wake(nil))...))
		require.Greater(t, db.Version(), v)
		require.Len(t, db.Topic("topic"), 1)
		require.Nil(t, db.Topic("unknown"))
	})
}

func TestWrite_Refusals(t *testing.T) {
	eachConfig(t, func(t *testing.T, c commit.Config) {
		c.Queue = 1
		db := must.Get(commit.Open(t.Context(), c))(t)
		defer db.Close()
		held, running := make(chan struct{}), make(chan struct{}, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = db.Write(context.Background(), func(context.Context, *commit.Tx) error { running <- struct{}{}; <-held; return nil })
		})
		<-running
		nothing := func(context.Context, *commit.Tx) error { return nil }
		ctx, cancel := context.WithCancel(context.Background())
		gone := make(chan error, 1)
		go func() { gone <- db.Write(ctx, nothing) }()
		require.Eventually(t, func() bool { return db.QueueLen() == 1 }, time.Minute, time.Millisecond)
		err := db.Write(context.Background(), nothing)
		e, ok := errors.AsType[*protocol.Error](err)
		require.True(t, ok)
		require.Equal(t, protocol.Overloaded, e.Code)
		require.Positive(t, e.RetryAfter)
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled, "a waiting write is given up at once")
		close(held)
		wg.Wait()

		require.ErrorIs(t, db.Read(context.Background(), func(ctx context.Context, tx *commit.Tx) error { return other(ctx, tx, 1) }), commit.ErrReadOnly)
		require.NoError(t, db.Close())
		require.NoError(t, db.Close())
		require.ErrorIs(t, db.Write(context.Background(), nothing), commit.ErrClosed)
	})
}

// A failing test ends the goroutine it runs on, which is a writer's here.
func TestWrite_SurvivesGoexit(t *testing.T) {
	each(t, func(t *testing.T, db *commit.DB) {
		for range 3 {
			err := db.Write(t.Context(), func(ctx context.Context, tx *commit.Tx) error {
				if err := other(ctx, tx, 1); err != nil {
					return err
				}
				runtime.Goexit()
				return nil
			})
			require.ErrorContains(t, err, "goroutine")
		}
		require.NoError(t, db.Write(t.Context(), func(_ context.Context, tx *commit.Tx) error { return hold(tx, 1, "asha") }))
		require.Equal(t, [3]int{1, 1, 0}, counts(t, db))
	})
}
