package contact_test

import (
	"context"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// runJobs does what is due, as the worker does: the handler's calls, then what
// follows in the transaction that ends the job. crash makes the process die
// between the two for a job, which leaves it leased.
func (w *world) runJobs(crash func(storage.Job) bool) error {
	for {
		jobs, _, err := w.db.ClaimJobs(w.t.Context(), "test", 10, 2*time.Minute)
		if err != nil || len(jobs) == 0 {
			return err
		}
		for _, j := range jobs {
			var after func(context.Context, *storage.Tx) error
			if handle := w.Jobs()[j.Kind]; handle != nil {
				after, err = handle(w.t.Context(), j)
			}
			if err != nil {
				return err
			}
			if crash != nil && crash(j) {
				continue
			}
			if err := w.write(func(ctx context.Context, tx *storage.Tx) error {
				if err := tx.Jobs().Finish(ctx, j.ID); err != nil || after == nil {
					return err
				}
				return after(ctx, tx)
			}); err != nil {
				return err
			}
		}
	}
}

// notices are the events that the owner was told of, oldest first.
func (w *world) notices() (events []string) {
	w.t.Helper()
	err := w.db.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for _, state := range []storage.JobState{storage.JobWaiting, storage.JobDone} {
			page, err := tx.Jobs().List(ctx, state, "", protocol.MaxLimit, "")
			if err != nil {
				return err
			}
			for _, j := range page.Items {
				if j.Kind == storage.NoticeJob {
					events = append([]string{string(j.Args)}, events...)
				}
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return events
}
