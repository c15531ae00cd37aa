package contact

import (
	"cmp"
	"context"

	"stoa/protocol"
	"stoa/storage"
)

// Check returns a thread to either of its sides; for everyone else it is not found.
func (r *Contact) Check(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ThreadInput) (protocol.Conversation, error) {
	t, err := tx.Threads().ByID(ctx, in.ThreadID)
	if err != nil {
		return protocol.Conversation{}, storage.IfMissing(err, threadNotFound())
	}
	asWriter, asAgent := sidesOf(t, c, cmp.Or(in.ReadToken, c.ReadToken))
	if !asWriter && !asAgent {
		return protocol.Conversation{}, threadNotFound()
	}
	side := protocol.WriterSide
	if asAgent && !asWriter {
		side = protocol.AgentSide
	}
	return conversation(ctx, tx, t, side, in.Paging)
}

// conversation returns a thread and a page of its messages, as a side of it reads them.
func conversation(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, side protocol.Side, in protocol.Paging) (protocol.Conversation, error) {
	t, removed, err := tx.Leavings().Thread(ctx, t, side)
	if err != nil {
		return protocol.Conversation{}, err
	}
	messages, err := tx.Threads().ListMessages(ctx, t.ID, in.Size(), in.After)
	for i := range messages.Items {
		if removed {
			storage.Removed(&messages.Items[i], side)
		}
	}
	return protocol.Conversation{Thread: view(t, side), Messages: messages}, err
}

// DeleteMessage takes the text out of a message of the writer, also of a closed thread. Whoever has read it has read it; here nobody reads it
// any more, in the inbox, the archive of the agent or the writer's own page.
func (r *Contact) DeleteMessage(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MessageDeletion) (protocol.None, error) {
	t, err := tx.Threads().ByID(ctx, in.ThreadID)
	if err != nil {
		return protocol.None{}, storage.IfMissing(err, threadNotFound())
	}
	if asWriter, _ := sidesOf(t, c, cmp.Or(in.ReadToken, c.ReadToken)); !asWriter {
		return protocol.None{}, threadNotFound()
	}
	err = tx.Threads().Withdraw(ctx, t.ID, in.MessageID)
	return protocol.None{}, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "you have written no message with that id in this thread"))
}

// Opens returns the name under which the writer of a thread reads its news, when the caller may read it as the writer.
func (r *Contact) Opens(ctx context.Context, tx *storage.Tx, c protocol.Caller, id, token string) (string, error) {
	t, err := tx.Threads().ByID(ctx, id)
	if err != nil {
		return "", storage.IfMissing(err, threadNotFound())
	}
	if asWriter, _ := sidesOf(t, c, cmp.Or(token, c.ReadToken)); !asWriter {
		return "", threadNotFound()
	}
	return storage.ThreadReader(id), nil
}

// view returns a thread as one side sees it.
func view(t *storage.StoredThread, side protocol.Side) protocol.Thread {
	unread, fresh := t.Unseen, 0
	if side == protocol.AgentSide {
		unread = t.Unread
		fresh = min(t.Unread, t.Messages-t.Seen)
	}
	return protocol.Thread{
		ThreadID: t.ID, Handle: t.Handle, Kind: t.Kind, State: t.State, Writer: t.Author, Count: t.Messages,
		Unread: unread, New: fresh, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, ClosedAt: t.ClosedAt, Untrusted: true,
	}
}

// Continue stores another message of the writer. The contact policy is checked only when a thread
// begins, blocks with every message.
func (r *Contact) Continue(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewMessage) (protocol.Said, error) {
	t, err := tx.Threads().ByID(ctx, in.ThreadID)
	if err != nil {
		return protocol.Said{}, storage.IfMissing(err, threadNotFound())
	}
	return r.next(ctx, tx, c, t, in, false)
}

// next stores another message of the writer; for task it belongs to an exchange that is a task.
func (r *Contact) next(
	ctx context.Context, tx *storage.Tx, c protocol.Caller, t *storage.StoredThread, in protocol.NewMessage, task bool,
) (protocol.Said, error) {
	asWriter, asAgent := sidesOf(t, c, cmp.Or(in.ReadToken, c.ReadToken))
	switch {
	case !asWriter && asAgent:
		return protocol.Said{}, protocol.Errorf(protocol.Forbidden, "this thread was begun by another writer; answer it with answer_thread")
	case !asWriter:
		return protocol.Said{}, threadNotFound()
	case !c.Owns(t.Handle):
		if err := unblocked(ctx, tx, t.Handle, append(c.KnownAs(writer(c, t.Handle)), t.Writer)); err != nil {
			return protocol.Said{}, err
		}
	}
	if err := answers(ctx, tx, t.Handle); err != nil {
		return protocol.Said{}, err
	}
	// The author is the caller, no matter who began the thread. The writer's own name is kept for the
	// writer and for callers without an identity.
	name := ""
	if c.Standing == protocol.Proof || isWriter(t, c) {
		name = cmp.Or(t.Author.ClaimedName, t.Author.Name)
	}
	if task && (t.Task == 0 || t.TaskState.Final()) {
		if t.Task, t.TaskState = t.Messages+1, protocol.ExchangeOpen; t.Unread > 0 { // it joins what waits
			t.Task = waiting(t)
		}
	}
	m, err := r.appendMessage(ctx, tx, t, protocol.Message{From: protocol.WriterSide, Author: c.Author(r.Base, name, tx.Now), Text: in.Message})
	if err != nil {
		return protocol.Said{}, err
	}
	return protocol.Said{ThreadID: t.ID, State: t.State, Message: m}, notify(ctx, tx, t, protocol.ThreadMessage)
}
