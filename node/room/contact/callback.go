package contact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/storage"
)

// A Sender delivers one signed document; its failures are *webhook.Failure.
type Sender interface {
	Send(ctx context.Context, address, id string, body []byte) error
	SendWith(ctx context.Context, address, id string, body []byte, fields http.Header) error
}

// enqueueCallback enqueues the delivery of a reply.
func enqueueCallback(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, m protocol.Message) error {
	cb := &storage.StoredCallback{
		ID: m.ID, Handle: t.Handle, ThreadID: t.ID, URL: t.Callback, N: t.Messages,
		State: protocol.CallbackWaiting, NextAt: tx.Now, Until: tx.Now.Add(protocol.CallbackFor),
	}
	if err := tx.Callbacks().Insert(ctx, cb); err != nil {
		return err
	}
	return enqueueTry(ctx, tx, cb)
}

func enqueueTry(ctx context.Context, tx *storage.Tx, cb *storage.StoredCallback) error {
	args, err := json.Marshal(subject{cb.ID})
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{
		Kind: storage.CallbackJob, Lane: webhook.Lane(cb.URL), Args: args, RunAt: cb.NextAt,
		Dedupe: dedupeKey(cb),
	})
}

// dedupeKey names the next attempt at a delivery. A job with another key was replaced by a replay:
// it must not start a second series of attempts.
func dedupeKey(cb *storage.StoredCallback) string {
	return string(storage.CallbackJob) + ":" + cb.ID + ":" + strconv.FormatInt(cb.NextAt.UnixMilli(), 10)
}

// Deliver makes one attempt at a delivery. It reads the delivery first and sends nothing that was
// delivered or ended in the meantime. When a process dies before the outcome is stored, the
// delivery is made again with the same id (contract §4).
func (r *Contact) Deliver(ctx context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	var cb *storage.StoredCallback
	var m *protocol.Message
	err := r.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if cb, err = tx.Callbacks().ByID(ctx, s.ID); err == nil {
			m, err = tx.Threads().MessageByNumber(ctx, cb.ThreadID, cb.N)
		}
		return err
	})
	if errors.Is(err, storage.ErrNotFound) || err == nil && (cb.State != protocol.CallbackWaiting || j.Dedupe != dedupeKey(cb)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("callback %s: %w", s.ID, err)
	}
	body, err := json.Marshal(protocol.Callback{Type: "thread.reply", ID: cb.ID, ThreadID: cb.ThreadID, Handle: cb.Handle, Message: *m, CreatedAt: m.CreatedAt})
	if err != nil {
		return nil, fmt.Errorf("encode callback %s: %w", s.ID, err)
	}
	sent := r.Webhook.Send(ctx, cb.URL, cb.ID, body)
	return func(ctx context.Context, tx *storage.Tx) error { return settle(ctx, tx, s.ID, j.Dedupe, sent) }, nil
}

// settle stores the outcome of an attempt and enqueues what follows.
func settle(ctx context.Context, tx *storage.Tx, id, tried string, sent error) error {
	cb, err := tx.Callbacks().ByID(ctx, id)
	if err != nil {
		return storage.IfMissing(err, nil)
	}
	open := cb.State == protocol.CallbackWaiting && dedupeKey(cb) == tried
	after := applyOutcome(cb, sent, tx.Now)
	if !open { // ended or replayed during this attempt; a success still counts
		if sent != nil {
			return nil
		}
		after = false
	}
	if err := tx.Callbacks().Save(ctx, cb); err != nil {
		return err
	}
	switch {
	case errors.Is(sent, webhook.ErrGone):
		return tx.Callbacks().End(ctx, cb.ThreadID, cb.LastError)
	case after:
		return enqueueTry(ctx, tx, cb)
	}
	return nil
}

// applyOutcome updates a delivery after an attempt and reports whether to try again: for 24 hours,
// unless the receiver is gone or must not be reached (contract §4).
func applyOutcome(cb *storage.StoredCallback, sent error, now time.Time) (again bool) {
	cb.Attempts++
	cb.Tries++
	cb.Status, cb.LastError = 0, ""
	if sent == nil {
		cb.State = protocol.CallbackDone
		return false
	}
	f, at := webhook.After(sent, cb.Tries, now, cb.Until)
	cb.Status, cb.LastError = f.Status, f.Text
	switch {
	case !at.IsZero():
		cb.NextAt = at
		return true
	case f.Kind == webhook.ErrGone:
		cb.State = protocol.CallbackGone
	case f.Kind == webhook.ErrRefused:
		cb.State = protocol.CallbackRefused
	default:
		cb.State = protocol.CallbackFailed
	}
	return false
}

// ListCallbacks returns the deliveries of one of the owner's agents.
func (r *Contact) ListCallbacks(
	ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CallbackQuery,
) (protocol.Page[protocol.CallbackDelivery], error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return protocol.Page[protocol.CallbackDelivery]{}, err
	}
	if in.ThreadID != "" {
		t, err := ownThread(ctx, tx, c, in.ThreadID)
		if err != nil {
			return protocol.Page[protocol.CallbackDelivery]{}, err
		}
		if t.Handle != handle {
			return protocol.Page[protocol.CallbackDelivery]{Items: []protocol.CallbackDelivery{}}, nil
		}
	}
	found, err := tx.Callbacks().List(ctx, handle, in.State, in.ThreadID, in.Size(), in.After)
	return convert(found, delivery), err
}

func delivery(cb *storage.StoredCallback) protocol.CallbackDelivery {
	d := protocol.CallbackDelivery{
		ID: cb.ID, ThreadID: cb.ThreadID, URL: cb.URL, State: cb.State, Attempts: cb.Attempts, LastError: cb.LastError,
		CreatedAt: cb.CreatedAt, Untrusted: true,
	}
	if cb.Status != 0 {
		d.Status = &cb.Status
	}
	if cb.State == protocol.CallbackWaiting {
		d.NextAt = &cb.NextAt
	}
	return d
}

// Replay makes a delivery again at once, whatever its state, and retries for another 24 hours when
// that fails.
func (r *Contact) Replay(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CallbackRef) (protocol.CallbackDelivery, error) {
	cb, err := tx.Callbacks().ByID(ctx, in.ID)
	if err != nil || !actsAs(c, cb.Handle) {
		return protocol.CallbackDelivery{}, storage.Missing(err, protocol.Errorf(protocol.NotFound, "none of your agents has a callback delivery with that id"))
	}
	cb.State, cb.Tries, cb.NextAt, cb.Until = protocol.CallbackWaiting, 0, tx.Now, tx.Now.Add(protocol.CallbackFor)
	if err := tx.Callbacks().Save(ctx, cb); err != nil {
		return protocol.CallbackDelivery{}, err
	}
	return delivery(cb), enqueueTry(ctx, tx, cb)
}
