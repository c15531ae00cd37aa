package contact

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// SendExchange begins or continues a thread (A2A 1.0 §3.4). A
// message that names an exchange is added to it while it waits for the agent. A message that names
// only the thread joins the exchange that is waiting there, or begins the next.
func (r *Contact) SendExchange(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.AgentMessage) (protocol.Exchange, error) {
	t, err := r.exchangeThread(ctx, tx, c, in)
	if err != nil {
		return protocol.Exchange{}, err
	}
	token := ""
	if t == nil {
		if t, token, err = r.begin(ctx, tx, c, protocol.NewContact{Handle: in.Handle, Message: in.Text, Kind: in.Kind}, true); err != nil {
			return protocol.Exchange{}, err
		}
	} else if _, err := r.next(ctx, tx, c, t, protocol.NewMessage{ThreadID: t.ID, Message: in.Text}, true); err != nil {
		return protocol.Exchange{}, err
	}
	if err := tx.Threads().SetClientID(ctx, t.ID, t.Messages, in.MessageID); err != nil {
		return protocol.Exchange{}, err
	}
	e, err := exchange(ctx, tx, t, t.Task)
	if err == nil && in.Push != nil {
		_, err = r.setPush(ctx, tx, t, e, *in.Push, "/push")
	}
	if c.Standing == protocol.Proof { // others are recognised
		e.ReadToken = token
	}
	return e, err
}

// waiting returns the number of the first message that the agent has not answered.
func waiting(t *storage.StoredThread) int { return t.Messages - t.Unread + 1 }

// exchangeThread returns the thread that a message continues, nil for a new one. A thread of
// another caller is not found, like one that does not exist.
func (r *Contact) exchangeThread(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.AgentMessage) (*storage.StoredThread, error) {
	if in.ExchangeID == "" && in.ThreadID == "" {
		return nil, nil
	}
	threadID, first := in.ThreadID, 0
	if in.ExchangeID != "" {
		id, ok := protocol.ParseExchangeID(in.ExchangeID)
		if !ok {
			return nil, threadNotFound()
		}
		threadID, first = id.ThreadID, id.First
	}
	t, err := r.writerThread(ctx, tx, c, in.Handle, threadID)
	if err != nil {
		return nil, err
	}
	if in.ThreadID != "" && in.ThreadID != threadID {
		return nil, protocol.Invalid(protocol.Fault{Pointer: "/threadId", Code: "mismatch", Detail: "the task belongs to another context; leave one of the two out"})
	}
	if first > 0 {
		e, err := exchange(ctx, tx, t, first)
		if err != nil {
			return nil, err
		}
		if e.State.Final() {
			return nil, protocol.Errorf(protocol.Gone, "the task is over; leave taskId out to begin another in the same context")
		}
	}
	if t.State == protocol.ThreadClosed {
		return nil, protocol.Errorf(protocol.Gone, "the context is closed; leave contextId out to begin another")
	}
	return t, nil
}

// writerThread returns a thread that the caller has with an agent.
func (r *Contact) writerThread(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle, threadID string) (*storage.StoredThread, error) {
	t, err := tx.Threads().ByID(ctx, threadID)
	if err != nil {
		return nil, storage.IfMissing(err, threadNotFound())
	}
	if asWriter, _ := sidesOf(t, c, c.ReadToken); !asWriter || t.Handle != handle {
		return nil, threadNotFound()
	}
	return t, nil
}

// AheadExchange is Ahead for a message by A2A, of which only one that begins a thread depends on the policy.
func (r *Contact) AheadExchange(ctx context.Context, tx *storage.Tx, in protocol.AgentMessage) error {
	if in.ThreadID != "" || in.ExchangeID != "" {
		return nil
	}
	return r.Ahead(ctx, tx, protocol.NewContact{Handle: in.Handle, Message: in.Text, Kind: in.Kind})
}

// GetExchange returns one exchange of the caller.
func (r *Contact) GetExchange(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ExchangeInput) (protocol.Exchange, error) {
	_, e, err := r.ownExchange(ctx, tx, c, in)
	return e, err
}

func (r *Contact) ownExchange(
	ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ExchangeInput,
) (*storage.StoredThread, protocol.Exchange, error) {
	id, ok := protocol.ParseExchangeID(in.ID)
	if !ok {
		return nil, protocol.Exchange{}, threadNotFound()
	}
	t, err := r.writerThread(ctx, tx, c, in.Handle, id.ThreadID)
	if err != nil {
		return nil, protocol.Exchange{}, err
	}
	e, err := exchange(ctx, tx, t, id.First)
	return t, e, err
}

// exchange returns the exchange that begins with message number first, which must be a message of
// the writer: the first of the thread, the first after an answer, or that of a task. The exchange ends before the
// next such message.
func exchange(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, first int) (protocol.Exchange, error) {
	e := protocol.Exchange{
		ID: protocol.ExchangeID{ThreadID: t.ID, First: first}.String(), ThreadID: t.ID, State: protocol.ExchangeOpen, Untrusted: true,
	}
	messages, err := tx.Threads().MessagesFrom(ctx, t.ID, max(first-1, 1), protocol.MaxThreadMessages)
	if err != nil {
		return e, err
	}
	if first > 1 {
		if len(messages) < 2 || first != t.Task && !ends(messages[0]) {
			return e, threadNotFound()
		}
		messages = messages[1:]
	}
	if len(messages) == 0 || messages[0].From != protocol.WriterSide {
		return e, threadNotFound()
	}
	_, removed, err := tx.Leavings().Thread(ctx, t, protocol.WriterSide)
	if err != nil {
		return e, err
	}
	for _, m := range messages {
		if removed {
			storage.Removed(&m.Message, protocol.WriterSide)
		}
		if m.From == protocol.WriterSide && e.State.Final() {
			break
		}
		if m.From == protocol.AgentSide {
			e.State = e.State.Answered(m.Part.Mark)
		} else if e.State == protocol.ExchangeAsked {
			e.State = protocol.ExchangeWorking
		}
		e.Since = m.CreatedAt
		e.Messages = append(e.Messages, exchangeMessage(m))
	}
	if !e.State.Final() && t.State == protocol.ThreadClosed {
		e.State, e.Since = e.State.Closed(t.ClosedBy), *t.ClosedAt
	}
	return e, nil
}

// ends reports whether a message ends the exchange that it belongs to.
func ends(m storage.NumberedMessage) bool {
	return m.From == protocol.AgentSide && protocol.ExchangeOpen.Answered(m.Part.Mark).Final()
}

func exchangeMessage(m storage.NumberedMessage) protocol.ExchangeMessage {
	out := protocol.ExchangeMessage{ID: m.ID, ClientID: m.ClientID, From: m.From, Text: m.Text, CreatedAt: m.CreatedAt, As: m.Part.Mark}
	if a := m.Part.Artifact; len(a.Data) > 0 || a.URL != "" || a.Bytes != "" {
		out.Attachment = &a
	}
	return out
}

// CancelExchange ends an exchange that waits: its thread is closed, which tells the agent's owner. One that was canceled before is returned
// as it is.
func (r *Contact) CancelExchange(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ExchangeInput) (protocol.Exchange, error) {
	t, e, err := r.ownExchange(ctx, tx, c, in)
	switch {
	case err != nil || e.State == protocol.ExchangeCanceled:
		return e, err
	case e.State.Final():
		return e, protocol.Errorf(protocol.Conflict, "the task is over: %s", e.State)
	}
	if err := closeThread(ctx, tx, t, byWriter); err != nil {
		return e, err
	}
	if err := tx.News().Append(ctx, storage.NewsLapsed, t.ID, "handle:"+t.Handle); err != nil {
		return e, err
	}
	e.State, e.Since = protocol.ExchangeCanceled, tx.Now
	return e, nil
}

// ListExchanges lists the tasks of the caller with an agent. One who has only a read token sees those of its thread.
func (r *Contact) ListExchanges(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ExchangeQuery) (out protocol.ExchangePage, err error) {
	out.Items = []protocol.Exchange{}
	f := storage.ExchangeFilter{Party: storage.Party(in.Handle, writer(c, in.Handle)), ThreadID: in.Thread, States: in.States}
	if in.Since != nil {
		f.Since = *in.Since
	}
	if c.ReadToken != "" {
		if f.Party, f.ThreadID, err = opened(ctx, tx, c.ReadToken); err != nil {
			return out, storage.IfMissing(err, nil)
		}
		if !strings.HasPrefix(f.Party, in.Handle+" ") || in.Thread != "" && in.Thread != f.ThreadID {
			return out, nil
		}
	}
	if out.Total, err = tx.Exchanges().Count(ctx, f); err != nil {
		return out, err
	}
	found, err := tx.Exchanges().List(ctx, f, listing(in), in.Size(), in.After)
	if err != nil {
		return out, err
	}
	out.Next = found.Next
	for _, x := range found.Items {
		if x.First == 0 {
			out.Items = append(out.Items, protocol.Exchange{ID: x.ThreadID, ThreadID: x.ThreadID, State: x.State, Since: x.Moved, Untrusted: true})
			continue
		}
		t, err := tx.Threads().ByID(ctx, x.ThreadID)
		if err != nil {
			return out, err
		}
		e, err := exchange(ctx, tx, t, x.First)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, e)
	}
	return out, nil
}

// opened returns what a token opens: a thread, a bid or a meeting request, and whose it is; ErrNotFound for nothing.
func opened(ctx context.Context, tx *storage.Tx, token string) (party, id string, err error) {
	hash := protocol.SecretHash(token)
	if id, err = tx.Threads().IDByToken(ctx, hash); err == nil {
		t, err := tx.Threads().ByID(ctx, id)
		if err != nil {
			return "", "", err
		}
		return storage.Party(t.Handle, t.Writer), id, nil
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return "", "", err
	}
	b, err := tx.Bids().ByToken(ctx, hash)
	if err == nil {
		return storage.PartyOf(b.Handle, b.Bidder, b.ID), b.ID, nil
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return "", "", err
	}
	m, err := tx.Meetings().ByToken(ctx, hash)
	return storage.PartyOf(m.Handle, m.Requester, m.ID), m.ID, err
}

// listing names a list for its cursors, which are valid for the same filter only.
func listing(in protocol.ExchangeQuery) string {
	since := int64(0)
	if in.Since != nil {
		since = in.Since.UnixMilli()
	}
	return fmt.Sprint("tasks ", in.Thread, in.States, since)
}
