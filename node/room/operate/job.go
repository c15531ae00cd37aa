package operate

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"stoa/protocol"
	"stoa/storage"
)

// Jobs lists jobs of a state.
func Jobs(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.JobQuery) (protocol.Page[protocol.Job], error) {
	page, err := tx.Jobs().List(ctx, storage.JobState(cmp.Or(in.State, string(storage.JobDead))), storage.JobKind(in.Kind), in.Size(), in.After)
	out := protocol.Page[protocol.Job]{Items: make([]protocol.Job, 0, len(page.Items)), Next: page.Next}
	for _, j := range page.Items {
		out.Items = append(out.Items, protocol.Job{ID: j.ID, Kind: string(j.Kind), Lane: j.Lane, State: string(j.State), Attempt: j.Attempt,
			RunAt: j.RunAt, DoneAt: j.DoneAt, LastError: j.LastError, Untrusted: true})
	}
	return out, err
}

// Requeue makes a dead job wait again.
func Requeue(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.JobRef) (protocol.None, error) {
	err := tx.Jobs().Requeue(ctx, in.ID)
	if errors.Is(err, storage.ErrExists) {
		return protocol.None{}, protocol.Errorf(protocol.Conflict, "another job that does the same waits already; drop this one")
	}
	if err != nil {
		return protocol.None{}, missing(err, "there is no dead job %d", in.ID)
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "job requeue", strconv.FormatInt(in.ID, 10), "")
}

// Drop deletes a dead job.
func Drop(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.JobRef) (protocol.None, error) {
	j, err := tx.Jobs().Drop(ctx, in.ID)
	if err != nil {
		return protocol.None{}, missing(err, "there is no dead job %d", in.ID)
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "job drop", strconv.FormatInt(in.ID, 10), string(j.Kind)+": "+j.LastError)
}

func missing(err error, format string, args ...any) error {
	return storage.IfMissing(err, protocol.Errorf(protocol.NotFound, format, args...))
}
