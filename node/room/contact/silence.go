package contact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"stoa/protocol"
	"stoa/storage"
)

// The ClosedBy of a thread that SilenceJob closed, and of one whose writer canceled a task.
const bySilence, byWriter = "silence", "writer"

type subject struct {
	ID string `json:"id"`
}

func enqueueSilence(ctx context.Context, tx *storage.Tx, t *storage.StoredThread) error {
	args, err := json.Marshal(subject{t.ID})
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: storage.SilenceJob, Args: args, Dedupe: string(storage.SilenceJob) + ":" + t.ID,
		RunAt: t.UpdatedAt.Add(protocol.ThreadSilence)})
}

// Watch enqueues the job that closes an imported thread after its silence.
func Watch(ctx context.Context, tx *storage.Tx, t *storage.StoredThread) error {
	return enqueueSilence(ctx, tx, t)
}

// Silence closes a thread that is still silent, and otherwise enqueues the next check.
func (r *Contact) Silence(_ context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error {
		t, err := tx.Threads().ByID(ctx, s.ID)
		switch {
		case errors.Is(err, storage.ErrNotFound), err == nil && t.State == protocol.ThreadClosed:
			return nil
		case err != nil:
			return fmt.Errorf("thread %s: %w", s.ID, err)
		case t.UpdatedAt.Add(protocol.ThreadSilence).After(tx.Now):
			return enqueueSilence(ctx, tx, t)
		}
		return closeThread(ctx, tx, t, bySilence)
	}, nil
}

// closeThread closes a thread for good and tells the side that did not close it.
func closeThread(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, by string) error {
	now := tx.Now
	t.State, t.ClosedAt, t.ClosedBy = protocol.ThreadClosed, &now, by
	if err := tx.Threads().Save(ctx, t); err != nil {
		return err
	}
	if by == bySilence {
		if err := tx.News().Append(ctx, storage.NewsLapsed, t.ID, "handle:"+t.Handle); err != nil {
			return err
		}
	}
	return tx.News().Append(ctx, storage.NewsClosed, t.ID, writerReaders(t)...)
}
