package operate

import (
	"context"
	"errors"
	"strconv"

	"stoa/protocol"
	"stoa/storage"
)

// Jobs lists the newest hundred jobs of a state.
func Jobs(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.JobQuery) (protocol.Jobs, error) {
	page, err := tx.Jobs().List(ctx, storage.JobState(in.State), protocol.MaxLimit, "")
	out := protocol.Jobs{Items: make([]protocol.Job, 0, len(page.Items))}
	for _, j := range page.Items {
		out.Items = append(out.Items, protocol.Job{ID: j.ID, Kind: string(j.Kind), Lane: j.Lane, Attempt: j.Attempt, RunAt: j.RunAt, LastError: j.LastError})
	}
	return out, err
}

// Requeue makes a dead job wait again.
func Requeue(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.JobRef) (protocol.None, error) {
	if err := tx.Jobs().Requeue(ctx, in.ID); err != nil {
		return protocol.None{}, missing(err, "there is no dead job %d", in.ID)
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "job requeue", strconv.FormatInt(in.ID, 10), "")
}

func missing(err error, format string, args ...any) error {
	if errors.Is(err, storage.ErrNotFound) {
		return protocol.Errorf(protocol.NotFound, format, args...)
	}
	return err
}
