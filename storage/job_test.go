package storage_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"

	"github.com/stretchr/testify/require"
)

// clocked opens a database whose clock the test moves.
func clocked(t *testing.T, fn func(t *testing.T, db *storage.DB, advance func(time.Duration))) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		now := make(chan time.Time, 1)
		now <- start
		c.Now = func() time.Time { at := <-now; now <- at; return at }
		db := must.Get(storage.Open(t.Context(), c))(t)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		fn(t, db, func(d time.Duration) { at := <-now; now <- at.Add(d) })
	})
}

func enqueue(t *testing.T, db *storage.DB, jobs ...storage.Job) {
	t.Helper()
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		for _, j := range jobs {
			if err := tx.Enqueue(ctx, j); err != nil {
				return err
			}
		}
		return nil
	})
}

func claim(t *testing.T, db *storage.DB, owner string, n int) (jobs []storage.Job, kinds []string) {
	t.Helper()
	jobs, _, err := db.ClaimJobs(t.Context(), owner, n, time.Minute)
	require.NoError(t, err)
	for _, j := range jobs {
		kinds = append(kinds, string(j.Kind))
	}
	return jobs, kinds
}

func TestJobs_LanesRunOneAtATimeInOrder(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		enqueue(t, db, storage.Job{Kind: "a1", Lane: "a"}, storage.Job{Kind: "a2", Lane: "a"}, storage.Job{Kind: "b1", Lane: "b"},
			storage.Job{Kind: "free1"}, storage.Job{Kind: "free2"}, storage.Job{Kind: "later", RunAt: start.Add(time.Hour)})
		jobs, kinds := claim(t, db, "one", 10)
		require.Equal(t, []string{"a1", "b1", "free1", "free2"}, kinds)
		require.Equal(t, 1, jobs[0].Attempt)
		_, kinds = claim(t, db, "two", 10)
		require.Empty(t, kinds, "the lane is busy")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Finish(ctx, jobs[0].ID) })
		next, kinds := claim(t, db, "two", 10)
		require.Equal(t, []string{"a2"}, kinds)

		// A try that waits holds its lane: Delete never overtakes Create.
		require.NoError(t, db.RetryJob(t.Context(), next[0].ID, 10*time.Minute, "boom"))
		enqueue(t, db, storage.Job{Kind: "a3", Lane: "a"})
		_, kinds = claim(t, db, "two", 10)
		require.Empty(t, kinds)
		advance(11 * time.Minute)
		next, kinds = claim(t, db, "two", 10)
		require.Equal(t, []string{"b1", "free1", "free2", "a2"}, kinds, "leases that expired, and the retry")
		require.Equal(t, 2, next[3].Attempt)
		require.Equal(t, "boom", next[3].LastError)

		// A dead job frees its lane and stays in sight.
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Bury(ctx, next[3].ID, "for good") })
		_, kinds = claim(t, db, "two", 10)
		require.Equal(t, []string{"a3"}, kinds)
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			dead, err := tx.Jobs().List(ctx, storage.JobDead, "", 10, "")
			require.Len(t, dead.Items, 1)
			require.Equal(t, "for good", dead.Items[0].LastError)
			require.NotNil(t, dead.Items[0].DoneAt)
			require.Len(t, must.Get(tx.Jobs().Stats(ctx))(t), 7)
			return err
		})
	})
}

// A worker goes from one job of a lane to the next with one commit, and leaves a
// lane in which none waits.
func TestJobs_NextOfALane(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		enqueue(t, db, storage.Job{Kind: "a1", Lane: "a"}, storage.Job{Kind: "a2", Lane: "a"}, storage.Job{Kind: "a3", Lane: "a"},
			storage.Job{Kind: "b1", Lane: "b"}, storage.Job{Kind: "free"})
		jobs, kinds := claim(t, db, "one", 10)
		require.Equal(t, []string{"a1", "b1", "free"}, kinds)
		next := func(j storage.Job) *storage.Job {
			return writes(t, db, func(ctx context.Context, tx *storage.Tx) (*storage.Job, error) {
				return tx.Jobs().Next(ctx, j.ID, "one", time.Minute)
			})
		}
		require.Nil(t, next(jobs[1]), "a lane in which none waits")
		require.Nil(t, next(jobs[2]), "no lane")
		a2 := next(jobs[0])
		require.EqualValues(t, "a2", a2.Kind)
		require.Equal(t, 1, a2.Attempt)
		require.Equal(t, start.Add(time.Minute), a2.RunAt)
		require.Nil(t, next(jobs[0]), "a job ends once, and its lane is another's by now")
		_, kinds = claim(t, db, "two", 10)
		require.Empty(t, kinds)

		advance(2 * time.Minute) // the worker died
		again, kinds := claim(t, db, "two", 10)
		require.Equal(t, []string{"a2"}, kinds)
		require.Equal(t, 2, again[0].Attempt)
		require.EqualValues(t, "a3", next(again[0]).Kind)
		require.NoError(t, db.ReleaseJobs(t.Context(), "one"))
		last, kinds := claim(t, db, "two", 10)
		require.Equal(t, []string{"a3"}, kinds)
		require.Nil(t, next(last[0]))
		enqueue(t, db, storage.Job{Kind: "a4", Lane: "a"})
		_, kinds = claim(t, db, "two", 10)
		require.Equal(t, []string{"a4"}, kinds)
	})
}

// However many jobs sleep or queue in lanes, a claim finds those that can run.
func TestJobs_ManyInOneLane(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		var all []storage.Job
		for range 300 {
			all = append(all, storage.Job{Kind: "crowd", Lane: "crowd"}, storage.Job{Kind: "sleeper", RunAt: start.Add(time.Hour)})
		}
		enqueue(t, db, append(all, storage.Job{Kind: "other", Lane: "other"}, storage.Job{Kind: "free"})...)
		_, kinds := claim(t, db, "one", 3)
		require.Equal(t, []string{"crowd", "other", "free"}, kinds)
		_, kinds = claim(t, db, "one", 3)
		require.Empty(t, kinds)
	})
}

// A scheduled job does not hold up its lane before its time, and does not join
// one that is running when its time has come.
func TestJobs_ScheduledInALane(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		enqueue(t, db, storage.Job{Kind: "scheduled", Lane: "a", RunAt: start.Add(30 * time.Second)}, storage.Job{Kind: "now", Lane: "a"})
		jobs, kinds := claim(t, db, "one", 10)
		require.Equal(t, []string{"now"}, kinds)
		advance(40 * time.Second)
		_, kinds = claim(t, db, "one", 10)
		require.Empty(t, kinds)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Finish(ctx, jobs[0].ID) })
		_, kinds = claim(t, db, "one", 10)
		require.Equal(t, []string{"scheduled"}, kinds)
	})
}

func TestJobs_DedupeReleaseRequeuePrune(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		job := storage.Job{Kind: "mail", Dedupe: "mail:1", Args: []byte(`{"to":1}`)}
		enqueue(t, db, job, job)
		enqueue(t, db, job)
		jobs, kinds := claim(t, db, "one", 10)
		require.Equal(t, []string{"mail"}, kinds)
		require.Equal(t, job.Args, jobs[0].Args)
		require.Equal(t, "mail:1", jobs[0].Dedupe)

		require.NoError(t, db.ReleaseJobs(t.Context(), "other"))
		_, kinds = claim(t, db, "two", 10)
		require.Empty(t, kinds)
		require.NoError(t, db.ReleaseJobs(t.Context(), "one"))
		jobs, _ = claim(t, db, "two", 10)
		require.Len(t, jobs, 1)
		require.Equal(t, 1, jobs[0].Attempt, "a lease given back is no attempt")

		id := jobs[0].ID
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Bury(ctx, id, "no") })
		enqueue(t, db, job) // the dead one is no obstacle
		requeue := func() error {
			return db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Requeue(ctx, id) })
		}
		require.ErrorIs(t, requeue(), storage.ErrExists)
		jobs, _ = claim(t, db, "two", 10)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Finish(ctx, jobs[0].ID) })
		require.NoError(t, requeue())
		require.ErrorIs(t, requeue(), storage.ErrNotFound)
		jobs, _ = claim(t, db, "two", 10)
		require.Equal(t, id, jobs[0].ID)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Finish(ctx, id) })

		advance(time.Hour)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			n, err := tx.Jobs().Prune(ctx, start)
			require.Zero(t, n)
			require.NoError(t, err)
			n, err = tx.Jobs().Prune(ctx, tx.Now)
			require.Equal(t, 2, n)
			return err
		})
	})
}

// A worker whose lease expired and who comes back late changes nothing of a job
// that was given up meanwhile.
func TestJobs_DeadStaysDead(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, _ func(time.Duration)) {
		enqueue(t, db, storage.Job{Kind: "mail"})
		jobs, _ := claim(t, db, "one", 1)
		id := jobs[0].ID
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Bury(ctx, id, "no such host") })
		dead := func() storage.Job {
			var list protocol.Page[storage.Job]
			require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
				list, err = tx.Jobs().List(ctx, storage.JobDead, "", 10, "")
				return err
			}))
			require.Len(t, list.Items, 1)
			return list.Items[0]
		}
		before := dead()
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Finish(ctx, id) })
		require.NoError(t, db.RetryJob(t.Context(), id, 0, "again"))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Bury(ctx, id, "another reason") })
		require.Equal(t, before, dead())
		_, kinds := claim(t, db, "two", 1)
		require.Empty(t, kinds)
	})
}

func TestJobs_ManyOwnersShareThem(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		const total = 200
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for n := range total {
				if err := tx.Enqueue(ctx, storage.Job{Kind: "k", Lane: string(rune('a' + n%20))}); err != nil {
					return err
				}
			}
			return nil
		})
		done := make(chan int64, 2*total)
		together(4, func(i int) {
			for len(done) < total {
				jobs, _, err := db.ClaimJobs(t.Context(), string(rune('A'+i)), 7, time.Hour)
				if err != nil {
					t.Error(err)
					return
				}
				lanes := map[string]bool{}
				for _, j := range jobs {
					if lanes[j.Lane] {
						t.Error("two of a lane")
					}
					lanes[j.Lane] = true
					if err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Finish(ctx, j.ID) }); err != nil {
						t.Error(err)
					}
					done <- j.ID
				}
			}
		})
		require.Len(t, done, total)
		close(done)
		seen := map[int64]bool{}
		for id := range done {
			require.False(t, seen[id])
			seen[id] = true
		}
	})
}

// TestJobs_ErrorTexts: whatever an error contains, the job can be settled.
func TestJobs_ErrorTexts(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		for name, text := range map[string]string{
			"not UTF-8": "the peer said \xff\xfe", "NUL": "a\x00b", "cut in a letter": strings.Repeat("न", 2000),
		} {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return tx.Enqueue(ctx, storage.Job{Kind: "k", LastError: text})
			})
			jobs, _, err := db.ClaimJobs(t.Context(), "me", 1, time.Minute)
			require.NoError(t, err, name)
			require.Len(t, jobs, 1, name)
			require.NotEmpty(t, jobs[0].LastError)
			require.True(t, utf8.ValidString(jobs[0].LastError))
			require.NoError(t, db.RetryJob(t.Context(), jobs[0].ID, 0, text), name)
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Bury(ctx, jobs[0].ID, text) })
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				require.LessOrEqual(t, len(must.Get(tx.Jobs().List(ctx, storage.JobDead, "", 1, ""))(t).Items[0].LastError), 2000)
				return nil
			})
		}
	})
}

// TestJobsNamed finds what waits and what is dead of a kind, and forgets it by name.
func TestJobsNamed(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		names := func() (found []string) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				jobs, err := tx.Jobs().Named(ctx, "follow")
				for _, j := range jobs {
					found = append(found, j.Dedupe+" "+string(j.State))
				}
				return err
			})
			slices.Sort(found)
			return found
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, name := range []string{"follow b", "follow a", "followed c", "follow!", ""} {
				require.NoError(t, tx.Enqueue(ctx, storage.Job{Kind: "follow", Dedupe: name}))
			}
			return tx.Enqueue(ctx, storage.Job{Kind: "other", Dedupe: "other a"})
		})
		require.Equal(t, []string{"follow a waiting", "follow b waiting"}, names())
		jobs, _, err := db.ClaimJobs(t.Context(), "o", 10, time.Minute)
		require.NoError(t, err)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, j := range jobs {
				if j.Dedupe == "follow a" {
					require.NoError(t, tx.Jobs().Bury(ctx, j.ID, "no"))
				}
			}
			require.Zero(t, must.Get(tx.Jobs().DropNamed(ctx, "follow", "follow b"))(t), "it is being run")
			return nil
		})
		require.Equal(t, []string{"follow a dead", "follow b waiting"}, names())
		require.NoError(t, db.ReleaseJobs(t.Context(), "o"))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, name := range []string{"follow a", "follow b"} {
				n, err := tx.Jobs().DropNamed(ctx, "follow", name)
				require.Equal(t, 1, n, name)
				require.NoError(t, err)
			}
			return nil
		})
		require.Empty(t, names())
	})
}

// A job that is dropped leaves its lane: one of the same name that is enqueued
// after it can run.
func TestDropNamed_LeavesLane(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		follow := storage.Job{Kind: "follow", Lane: "follow x", Dedupe: "follow x"}
		for _, back := range []func([]storage.Job) error{
			func([]storage.Job) error { return db.ReleaseJobs(t.Context(), "one") }, // the process stopped
			func(jobs []storage.Job) error { return db.RetryJob(t.Context(), jobs[0].ID, time.Hour, "away") },
		} {
			enqueue(t, db, follow)
			jobs, kinds := claim(t, db, "one", 10)
			require.Equal(t, []string{"follow"}, kinds)
			require.NoError(t, back(jobs))
			require.Equal(t, 1, pruned(t, db, func(ctx context.Context, tx *storage.Tx) (int, error) {
				return tx.Jobs().DropNamed(ctx, "follow", "follow x")
			}))
			enqueue(t, db, follow)
			jobs, kinds = claim(t, db, "two", 10)
			require.Equal(t, []string{"follow"}, kinds)
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Finish(ctx, jobs[0].ID) })
		}
	})
}
