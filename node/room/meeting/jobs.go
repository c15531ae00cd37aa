package meeting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/storage"
)

// A Sender delivers one signed document; its failures are *webhook.Failure.
type Sender interface {
	Send(ctx context.Context, address, id string, body []byte) error
}

// Due does what is due of a request by itself: it deletes one whose mailbox was not confirmed, ends one
// on which nobody decided, and notes that a meeting is over.
func (m *Meeting) Due(_ context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error {
		r, _, err := locked(ctx, tx, s.ID)
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		if err != nil || r.Moves != s.N { // it has moved, and that enqueued what is due next
			return err
		}
		switch r.State {
		case protocol.MeetingUnconfirmed, protocol.MeetingWithdrawn, protocol.MeetingExpired:
			return tx.Meetings().Delete(ctx, r.ID)
		case protocol.MeetingSubmitted, protocol.MeetingProposed:
			return m.move(ctx, tx, r, change{to: protocol.MeetingExpired, note: "nobody decided in time"})
		case protocol.MeetingApproved:
			return m.move(ctx, tx, r, change{to: protocol.MeetingDone})
		}
		return nil
	}, nil
}

// Update makes one attempt to tell a requester's callbackUrl of one move. When a process dies before the
// outcome is stored, the update is sent again with the same id.
func (m *Meeting) Update(ctx context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	var address string
	u := protocol.MeetingUpdate{Type: "meeting.updated", MeetingID: s.ID, ID: fmt.Sprintf("%s-%d", s.ID, s.N)}
	err := m.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		r, err := tx.Meetings().ByID(ctx, s.ID)
		if err != nil || s.N < 1 || s.N > len(r.History) {
			return err
		}
		step := r.History[s.N-1]
		address, u.Handle, u.State, u.CreatedAt, u.Request = r.Callback, r.Handle, step.State, step.At, m.view(r)
		return nil
	})
	if err != nil || address == "" {
		return nil, storage.Missing(err, nil)
	}
	body, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	sent := m.Webhook.Send(ctx, address, u.ID, body)
	if sent == nil {
		return nil, nil
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		f, at := webhook.After(sent, s.Try+1, tx.Now, u.CreatedAt.Add(protocol.CallbackFor))
		switch {
		case !at.IsZero():
			return enqueue(ctx, tx, j.Kind, j.Lane, subject{ID: s.ID, N: s.N, Try: s.Try + 1}, at)
		case f.Kind != webhook.ErrGone:
			return nil
		}
		r, _, err := locked(ctx, tx, s.ID)
		if err != nil {
			return storage.IfMissing(err, nil)
		}
		r.Callback = ""
		return tx.Meetings().Save(ctx, r)
	}, nil
}
