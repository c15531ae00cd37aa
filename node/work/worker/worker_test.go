package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

func newWorker(t *testing.T, db *storage.DB) *Worker {
	return &Worker{DB: db, Log: slog.New(slog.DiscardHandler), Owner: "test"}
}

func run(t *testing.T, w *Worker) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
}

func enqueue(t *testing.T, db *storage.DB, j storage.Job) {
	t.Helper()
	require.NoError(t, db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error { return tx.Enqueue(ctx, j) }))
}

func jobs(t *testing.T, db *storage.DB, state storage.JobState) (found []storage.Job) {
	t.Helper()
	require.NoError(t, db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
		page, err := tx.Jobs().List(ctx, state, "", 100, "")
		found = page.Items
		return err
	}))
	return found
}

func TestWorker(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		w := newWorker(t, db)
		var ran atomic.Int64
		w.Handle("good", func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error) {
			return func(ctx context.Context, tx *storage.Tx) error {
				ran.Add(1)
				return tx.Settings().Put(ctx, "good", "done")
			}, nil
		})
		w.Handle("final", func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error) {
			return nil, protocol.Errorf(protocol.Gone, "the receiver is gone")
		})
		w.Handle("later", func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error) {
			return nil, errors.New("not now")
		})
		w.Handle("panics", func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error) {
			panic("boom")
		})
		w.Handle("again", func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error) {
			return func(ctx context.Context, tx *storage.Tx) error {
				return tx.Enqueue(ctx, storage.Job{Kind: "again", Dedupe: "again", RunAt: tx.Now.Add(time.Hour)})
			}, nil
		})
		for _, kind := range []storage.JobKind{"good", "final", "later", "panics", "unknown"} {
			enqueue(t, db, storage.Job{Kind: kind})
		}
		enqueue(t, db, storage.Job{Kind: "again", Dedupe: "again"})
		run(t, w)
		require.Eventually(t, func() bool { return len(jobs(t, db, "done")) == 2 && len(jobs(t, db, "dead")) == 1 }, time.Minute, 10*time.Millisecond)
		require.EqualValues(t, 1, ran.Load())
		require.Equal(t, "gone: the receiver is gone", jobs(t, db, "dead")[0].LastError)
		var waiting = map[storage.JobKind]storage.Job{}
		require.Eventually(t, func() bool {
			clear(waiting)
			for _, j := range jobs(t, db, "waiting") {
				waiting[j.Kind] = j
			}
			return len(waiting) == 4 && waiting["later"].LastError != "" && waiting["panics"].LastError != "" && waiting["unknown"].LastError != ""
		}, time.Minute, 10*time.Millisecond)
		require.Equal(t, "not now", waiting["later"].LastError)
		require.Equal(t, "panic: boom", waiting["panics"].LastError)
		require.True(t, waiting["later"].RunAt.After(time.Now()))
		require.True(t, waiting["again"].RunAt.After(time.Now().Add(30*time.Minute)), "a job may follow itself under its own name")
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for attempt, around := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 5: 80 * time.Second, 60: 6 * time.Hour} {
		for range 50 {
			wait := Backoff(attempt, errors.New("x"))
			require.GreaterOrEqual(t, wait, around/2)
			require.LessOrEqual(t, wait, around*3/2)
		}
	}
	asked := Backoff(1, &protocol.Error{Code: protocol.Overloaded, RetryAfter: time.Minute})
	require.Equal(t, time.Minute, asked)
}

func TestHandle_Twice(t *testing.T) {
	t.Parallel()
	w, none := &Worker{}, func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error) { return nil, nil }
	w.Handle("one", none)
	w.Handle("two", none)
	require.Panics(t, func() { w.Handle("one", none) })
}

// TestComplete checks that a kind without a handler, and a handler of a kind that is not listed, are errors.
func TestComplete(t *testing.T) {
	t.Parallel()
	w := &Worker{}
	all := storage.JobKinds()
	for _, kind := range all[1:] {
		w.Handle(kind, func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error) { return nil, nil })
	}
	require.EqualError(t, w.Complete(all), "jobs of kind process have no handler: return one from the method Jobs of a room")
	require.NoError(t, w.Complete(all[1:]))
	require.ErrorContains(t, w.Complete(all[1:len(all)-1]), "jobs of kind "+string(all[len(all)-1])+" have a handler")
	require.Panics(t, func() { w.Handle(all[1], w.handlers[all[1]]) }, "a second handler")
}

// A job has the id of the request that caused it, and so does what the job causes.
func TestWorker_Request(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		w, seen := newWorker(t, db), make(chan string, 2)
		w.Handle("first", func(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
			seen <- protocol.RequestID(ctx)
			return func(ctx context.Context, tx *storage.Tx) error { return tx.Enqueue(ctx, storage.Job{Kind: "second"}) }, nil
		})
		w.Handle("second", func(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
			seen <- protocol.RequestID(ctx)
			return nil, nil
		})
		run(t, w)
		require.NoError(t, db.Write(protocol.WithRequestID(context.Background(), "edge-1"), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Enqueue(ctx, storage.Job{Kind: "first"})
		}))
		require.Equal(t, "edge-1", <-seen)
		require.Equal(t, "edge-1", <-seen)
	})
}

// A run that used up its time is settled: its error is kept, it is retried soon, since it may have done a part of its work, and in the end it is dead.
func TestWorker_OutOfTime(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		w := newWorker(t, db)
		w.Handle("slow", func(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		enqueue(t, db, storage.Job{Kind: "slow"})
		over, stop := context.WithCancel(t.Context())
		stop()
		claimed, _, err := db.ClaimJobs(t.Context(), w.Owner, 1, lease)
		require.NoError(t, err)
		require.Len(t, claimed, 1)
		require.Nil(t, w.do(over, claimed[0], true))
		claimed[0].Attempt = maxAttempts
		require.Nil(t, w.do(over, claimed[0], true))
		waiting := jobs(t, db, storage.JobWaiting)[0]
		require.Equal(t, "context canceled", waiting.LastError)
		require.False(t, waiting.RunAt.After(time.Now().Add(longPause)))
		claimed[0].Attempt = maxLong
		require.Nil(t, w.do(over, claimed[0], true))
		require.Equal(t, "context canceled", jobs(t, db, storage.JobDead)[0].LastError)

		w.Handle("late", func(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
			<-ctx.Done()
			return nil, nil
		})
		enqueue(t, db, storage.Job{Kind: "late"})
		claimed, _, err = db.ClaimJobs(t.Context(), w.Owner, 1, lease)
		require.NoError(t, err)
		require.Nil(t, w.do(over, claimed[0], true))
		require.Len(t, jobs(t, db, storage.JobDone), 1, "what it returned is stored")
	})
}

// Jobs that wait for servers which do not answer hold up no others.
func TestWorker_Late(t *testing.T) {
	t.Parallel()
	db := storagetest.Open(t)
	w := newWorker(t, db)
	w.Parallel = 2
	silent, ran := make(chan struct{}), make(chan struct{})
	w.Handle(storage.DeliverJob, func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error) {
		<-silent
		return nil, nil
	})
	w.Handle(storage.EraseJob, func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error) {
		close(ran)
		return nil, nil
	})
	for range 7 {
		enqueue(t, db, storage.Job{Kind: storage.DeliverJob})
	}
	enqueue(t, db, storage.Job{Kind: storage.EraseJob})
	run(t, w)
	<-ran
	close(silent)
	require.Eventually(t, func() bool { return len(jobs(t, db, "done")) == 8 }, time.Minute, 10*time.Millisecond)
}

// What a killed process had is run when its lease ends, by one of the others, also when it takes longer than a lease.
func TestWorker_Lease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := storagetest.Open(t)
		enqueue(t, db, storage.Job{Kind: storage.EraseJob})
		claimed, _, err := db.ClaimJobs(t.Context(), "killed", 1, lease)
		require.NoError(t, err)
		require.Len(t, claimed, 1)

		var runs atomic.Int64
		for _, owner := range []string{"one", "two"} {
			w := newWorker(t, db)
			w.Owner = owner
			w.Handle(storage.EraseJob, func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error) {
				runs.Add(1)
				time.Sleep(timeout - renewal)
				return nil, nil
			})
			run(t, w)
		}
		time.Sleep(lease - poll)
		require.Zero(t, runs.Load())
		time.Sleep(3 * poll)
		require.EqualValues(t, 1, runs.Load())
		time.Sleep(2 * timeout)
		require.EqualValues(t, 1, runs.Load())
		require.Len(t, jobs(t, db, "done"), 1)
	})
}
